"""Which tests run which lines, and which compiled functions: `Map`, made by running each file of tests once.

Lines of Python are traced (`coverage`, per test). Compiled code is not: a file of tests counts as running all functions
that the entries it loaded, and functions it compiled itself, may call. As a plugin of pytest
(`-p benchmark.which_tests`) this file notes those, and the time of each test.
"""
from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent.parent
START, COMPILATION = 4.0, 0.2    # s: of a process or file, and of a function of compiled code
SOON = 25.0    # s: of the first round
NOTES = "RBD_TEST_NOTES"         # where the plugin writes
Code = tuple[str, int]           # path and first line of a function
_seconds: defaultdict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: Any) -> None:
    """Add up set-up, call and end."""
    _seconds[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    """Write what was noted."""
    from rbd_ros.core.compiled.entry import ENTRIES
    compiled = [item.python for item in ENTRIES if item._code is not None]
    for module in list(sys.modules.values()):    # of tests: what numba compiled
        if str(getattr(module, "__file__", "")).startswith(str(HERE / "test")):
            compiled += [value for value in vars(module).values() if type(value).__name__ == "CPUDispatcher"]
    notes = {"seconds": _seconds, "compiled": [sorted(_reached(each)) for each in compiled]}
    Path(os.environ[NOTES]).write_text(json.dumps(notes), encoding="utf-8")


class Chosen(NamedTuple):
    """Tests, a file or one of its functions each, and the seconds that they may take."""

    tests: list[str]
    seconds: float


class Map:
    """What the tests below `folders` of test run, in `jobs` processes side by side, which leave their notes in `room`:
    files with notes there are not run again. report: called with lines. Raises `RuntimeError` if no file could be run.
    """

    def __init__(self, folders: Iterable[str], jobs: int, room: Path, report: Callable[[str], None]) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)    # by test function
        self._lines: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._compiled: dict[str, list[set[Code]]] = {}    # by file: what each of its compiled functions may call
        files = sorted({path for folder in folders for path in _files(HERE / "test" / folder)})
        with ThreadPoolExecutor(jobs) as pool:
            notes = pool.map(lambda path: _run(path, room), files)
            for i, (path, said) in enumerate(zip(files, notes, strict=True), 1):
                name = path.relative_to(HERE).as_posix()
                report(f"[{i}/{len(files)}] {name}{said if isinstance(said, str) else ''}")
                if not isinstance(said, str):
                    self._add(name, *said)
        if not self._seconds:
            raise RuntimeError("no file of tests could be run: their output is above")

    def _add(self, name: str, said: dict[str, Any], data: Path) -> None:
        """Take up the notes of a file."""
        for test, seconds in said["seconds"].items():
            self._seconds[_function_of(test)] += seconds
        self._compiled[name] = [{(file, line) for file, line in each} for each in said["compiled"]]
        if data.exists():
            self._trace(data)

    def _trace(self, data: Path) -> None:
        from coverage import CoverageData
        traced = CoverageData(str(data))
        traced.read()
        for file in traced.measured_files():
            lines = self._lines[Path(file).relative_to(HERE).as_posix()]
            for line, contexts in traced.contexts_by_lineno(file).items():
                lines[line] |= {_function_of(context.rpartition("|")[0]) for context in contexts if context}

    def of(self, path: str, line: int) -> list[Chosen]:
        """Rounds of tests that may notice a fault: those of its line that are soon done, others of its line or
        function, and whole files of these, whose other tests may use what a fixture or a cache has made.
        """
        begin, end = _function(path, line)
        traced = self._lines[path]
        around = set().union(*(traced[k] for k in range(begin, end + 1)))
        costs = {test: self._seconds[test] for test in traced[line] or around}
        for file, compiled in self._compiled.items():
            affected = set().union(*(called for called in compiled if any(
                each == path and begin <= first <= end for each, first in called)))
            if affected:
                costs = {test: cost for test, cost in costs.items() if not test.startswith(f"{file}::")}
                costs[file] = COMPILATION * len(affected) + self._file(file)
        whole = {test.partition("::")[0] for test in around}.difference(costs)
        rounds: list[dict[str, float]] = [{}, {}, {file: self._file(file) for file in whole}]
        spent, files = START, set[str]()
        for cost, test in sorted((cost, test) for test, cost in costs.items()):
            file = test.partition("::")[0]
            spent += cost + (file not in files)
            files.add(file)
            rounds[spent > SOON and bool(rounds[0])][test] = cost
        return [Chosen(list(each), START * len(each) + sum(each.values())) for each in rounds if each]

    def _file(self, file: str) -> float:
        """Seconds of a file."""
        return sum(seconds for test, seconds in self._seconds.items() if test.startswith(f"{file}::"))


def _function_of(test: str) -> str:
    """A test without its case: which cases always run depends on which are collected (`SAMPLED` of conftest.py)."""
    return test.partition("[")[0]


def _run(path: Path, room: Path) -> tuple[dict[str, Any], Path] | str:
    """Run a file: its notes and what was traced, or what was wrong."""
    name = path.relative_to(HERE).as_posix()
    notes, new, data = (room / f"{name.replace('/', '.')}.{kind}" for kind in ("json", "new", "coverage"))
    if not notes.exists():
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-m", "not thorough", "-p", "no:cacheprovider", "-p",
             "benchmark.which_tests", "--cov=rbd_ros", "--cov-context=test", "--cov-report=", name], cwd=HERE,
            env=os.environ | {NOTES: str(new), "COVERAGE_FILE": str(data)}, capture_output=True, text=True)
        if done.returncode not in (0, 5):    # 5: no test, all are thorough
            return f": exit code {done.returncode}, {done.stdout[-300:]}{done.stderr[-300:]}"
        new.rename(notes)
    return json.loads(notes.read_text(encoding="utf-8")), data


def _files(path: Path) -> list[Path]:
    return [path] if path.suffix else sorted(path.rglob("test_*.py"))


def _function(path: str, line: int) -> tuple[int, int]:
    """First and last line, decorators included, of the outermost function or method around a line; of the file if it is
    in none.
    """
    text = (HERE / path).read_text(encoding="utf-8")

    def functions(node: ast.AST) -> Iterator[ast.FunctionDef]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                yield child
            elif isinstance(child, ast.ClassDef):
                yield from functions(child)

    for function in functions(ast.parse(text)):
        begin = min([function.lineno, *(each.lineno for each in function.decorator_list)])
        if begin <= line <= (function.end_lineno or 0):
            return begin, function.end_lineno or 0
    return 1, text.count("\n")


def _reached(function: Any) -> set[Code]:
    """Functions that a compiled one may call, itself included."""
    found: set[Code] = set()
    waiting, seen = [function], set[int]()
    while waiting:
        function = waiting.pop()
        function = getattr(function, "py_func", function)    # of `Callee`
        code = getattr(function, "__code__", None)
        if code is None or id(code) in seen or not code.co_filename.startswith(str(HERE)):
            continue
        seen.add(id(code))
        found.add((Path(code.co_filename).relative_to(HERE).as_posix(), code.co_firstlineno))
        waiting += [cell.cell_contents for cell in function.__closure__ or ()]
        for name in code.co_names:    # `module.function` too
            value = function.__globals__.get(name)
            waiting += [value, *(getattr(value, each, None) for each in code.co_names)] if (
                type(value).__name__ == "module") else [value]
    return found

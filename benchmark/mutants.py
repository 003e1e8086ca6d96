"""Mutation testing: random small faults in the source, one at a time, and whether the tests notice them.

A fault is a changed sign, comparison, `and`, constant or index, or a dropped term, in a copy of the checkout. First the
tests of the neighbouring folders (`NEAR`) that run the faulty function (`which_tests`) are run, then all of the default
run, which `--near` leaves out. A test that fails or does not end notices the fault. Unnoticed faults are listed: each
either has no effect, or needs a test.
"""
from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .which_tests import Chosen, Map

HERE = Path(__file__).resolve().parent.parent
# folders of rbd_ros, and the tests that are next to them
NEAR = {
    "core/dynamics": ("dynamics", "constrained", "contact", "simulation"),
    "core/derivatives": ("derivatives",),
    "core/feedback": ("feedback",),
    "runtime/safety": ("control", "nodes/test_emergency_stop.py"),
    "runtime/control": ("control", "parameters"),
    "runtime/inputs": ("control", "parameters", "planning"),
    "nodes/outputs": ("nodes/test_adapters.py", "nodes/test_feedforward_node.py", "nodes/test_flatness_node.py",
                      "nodes/test_mit_node.py", "nodes/test_elastic_nodes.py"),
}
PARTS = ("rbd_ros", "benchmark", "test", "config", "launch", "examples", "docs", "resource", "requirements", "scripts")
SWAPPED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=",
           ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.And: "or", ast.Or: "and"}
SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
           ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "and", ast.Or: "or"}
LONGEST = 300.0, 5.0    # tests that take longer than 300 s plus five times what is expected do not end
WHOLE = 600.0    # s: of all tests


class Fault(NamedTuple):
    """In the text of a file, from `begin` to `end`, `new` in place of what is there."""

    path: str
    line: int
    begin: int
    end: int
    new: str
    kind: str

    def plant(self, text: str) -> str:
        """The text with it."""
        return text[:self.begin] + self.new + text[self.end:]


def faults(path: Path) -> Iterator[Fault]:
    """All that may be planted in a file."""
    text = path.read_text(encoding="utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines()

    def place(line: int, column: int) -> int:    # columns of `ast` count bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def fault(node: ast.AST, begin: int, end: int, new: str, kind: str) -> Fault:
        return Fault(path.relative_to(HERE).as_posix(), node.lineno, begin, end, new, kind)    # type: ignore[attr-defined]

    def between(node: ast.AST, left: ast.expr, right: ast.expr, operator: ast.AST, kind: str) -> Iterator[Fault]:
        begin, end = place(left.end_lineno or 0, left.end_col_offset or 0), place(right.lineno, right.col_offset)
        old = SYMBOLS.get(type(operator))
        at = text.find(old, begin, end) if old else -1
        if old and at >= 0:
            yield fault(node, at, at + len(old), SWAPPED[type(operator)], kind)

    for node in _code(ast.parse(text)):
        if isinstance(node, ast.BinOp):
            yield from between(node, node.left, node.right, node.op, "sign")
            if isinstance(node.op, ast.Add | ast.Sub):
                yield fault(node, place(node.left.end_lineno or 0, node.left.end_col_offset or 0),
                            place(node.end_lineno or 0, node.end_col_offset or 0), "", "dropped term")
        elif isinstance(node, ast.Compare):
            yield from between(node, node.left, node.comparators[0], node.ops[0], "comparison")
        elif isinstance(node, ast.BoolOp):
            yield from between(node, node.values[0], node.values[1], node.op, "logic")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            begin = place(node.lineno, node.col_offset)
            yield fault(node, begin, begin + 1, "", "sign")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            new = node.value + 1 if isinstance(node.value, int) else 1.1 * node.value or 1.0
            end = place(node.end_lineno or 0, node.end_col_offset or 0)
            yield fault(node, place(node.lineno, node.col_offset), end, repr(new), "constant")


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes that compute: without annotations, messages of errors, and decorators."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        if isinstance(tree, ast.Raise | ast.Assert | ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from _code(child)


def rounds_of(fault: Fault, tests: Map, near: bool) -> list[Chosen]:
    """Tests to run, until one fails."""
    folder = next(name for name in NEAR if fault.path.startswith(f"rbd_ros/{name}/"))
    rounds = tests.of(fault.path, fault.line)
    # what child processes of tests run is not traced
    untraced = [name for name in NEAR[folder] if not rounds or name.startswith("nodes")]
    if untraced:
        rounds.append(Chosen([f"test/{name}" for name in untraced], WHOLE))
    return rounds if near else [*rounds, Chosen(["test"], WHOLE)]


def noticed(fault: Fault, rounds: list[Chosen]) -> str | None:
    """Which test fails with it, or None."""
    with tempfile.TemporaryDirectory(prefix="mutant_") as room:
        for part in PARTS:
            shutil.copytree(HERE / part, Path(room, part), ignore=shutil.ignore_patterns("__pycache__"))
        for path in HERE.glob("*.*"):
            if path.is_file():
                shutil.copy(path, room)
        target = Path(room, fault.path)
        target.write_text(fault.plant(target.read_text(encoding="utf-8")), encoding="utf-8")
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([room, *filter(None, [os.environ.get("PYTHONPATH")])]),
            "OMP_NUM_THREADS": "1", "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
        for tests, seconds in rounds:
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not thorough", "-p", "no:cacheprovider",
                       *tests]
            with subprocess.Popen(command, cwd=room, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, start_new_session=True) as process:
                try:
                    said = process.communicate(timeout=LONGEST[0] + LONGEST[1] * seconds)[0]
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    return "no end"
            if process.returncode == 4 and "ERROR: not found" in said:
                raise RuntimeError(f"the notes on tests are of other tests: {said[-300:]}")
            if process.returncode not in (0, 5):    # 5: all are thorough
                failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))]
                return failed[-1][:100] if failed else f"exit code {process.returncode}"
    return None


def main() -> None:
    """Plant so many faults and print a table. Exit code 1 if too many are not noticed."""
    parser = argparse.ArgumentParser(prog="scripts/mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="faults (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="at once (default: %(default)s)")
    parser.add_argument("--near", action="store_true", help="only the tests next to what a fault is in")
    parser.add_argument("--notes", type=Path, metavar="FOLDER", help="keep what tests run, for these sources")
    parser.add_argument("--in", dest="folders", action="append", choices=NEAR, metavar="FOLDER",
                        help=f"folder of rbd_ros (default: {', '.join(NEAR)})")
    arguments = parser.parse_args()
    paths = [path for folder in arguments.folders or NEAR for path in sorted((HERE / "rbd_ros" / folder).rglob("*.py"))]
    chosen = random.Random(arguments.seed).sample([fault for path in paths for fault in faults(path)], arguments.count)
    begin, left, kinds = time.monotonic(), [], Counter(fault.kind for fault in chosen)
    with tempfile.TemporaryDirectory() as room, ThreadPoolExecutor(arguments.jobs) as pool:
        notes = arguments.notes or Path(room)
        notes.mkdir(parents=True, exist_ok=True)
        folders = {each for name in arguments.folders or NEAR for each in NEAR[name] if not each.startswith("nodes")}
        tests = Map(folders, arguments.jobs, notes, lambda line: print(line, flush=True))
        results = pool.map(lambda each: noticed(each, rounds_of(each, tests, arguments.near)), chosen)
        for i, (fault, by) in enumerate(zip(chosen, results, strict=True), 1):
            text = (HERE / fault.path).read_text(encoding="utf-8").splitlines()[fault.line - 1].strip()
            what = f"{fault.path}:{fault.line}: {fault.kind}, {fault.new!r}: {text}"
            print(f"[{i}/{len(chosen)}, {time.monotonic() - begin:.0f} s] {by or 'NOT NOTICED'}: {what}", flush=True)
            if by is None:
                left.append((fault.kind, what))
    print(f"\n{len(chosen) - len(left)} of {len(chosen)} noticed")
    for kind, count in sorted(kinds.items()):
        print(f"  {kind:14} {count - sum(each[0] == kind for each in left)} of {count}")
    for _, what in left:
        print(f"not noticed: {what}")
    sys.exit(20 * len(left) > len(chosen))


if __name__ == "__main__":
    main()

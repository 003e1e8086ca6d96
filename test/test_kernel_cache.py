"""One cache of compiled kernels per content and machine: checkouts share it, a change reaches what depends on it."""
from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.compiled import cache as kernel_cache
from rbd_ros.core.compiled import entry, object_code
from rbd_ros.core.compiled.computing_time import computing_time
from rbd_ros.core.dynamics import energy
from rbd_ros.core.specialize import machine

CORE = Path(__file__).parents[1] / "rbd_ros" / "core"
ASK = """
from rbd_ros.core.model import state
entry = state.gather_wrenches    # a short one
print(entry.cached())
print(state.__file__)
entry.compile()
code = entry._code
hits = int(code.loaded) if hasattr(code, "loaded") else sum(code.stats.cache_hits.values())
print(hits)
print(1 - hits)
"""
pytestmark = pytest.mark.skipif(not rbd.COMPILED, reason="numba is not used")


def ask(checkout, cache):
    """Whether the entry was cached, the folder it was imported from, hits and misses of numba."""
    environment = dict(os.environ, PYTHONPATH=str(checkout), RBD_CACHE_DIR=str(cache))
    lines = subprocess.run([sys.executable, "-c", ASK], cwd=checkout, env=environment, check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return lines[0] == "True", lines[1], int(lines[2]), int(lines[3])


def test_two_checkouts_share_one_cache_and_a_changed_callee_does_not(tmp_path):
    for name in ("one", "two"):
        shutil.copytree(CORE.parent, tmp_path / name / "rbd_ros", ignore=shutil.ignore_patterns("__pycache__"))
    cache = tmp_path / "cache"
    cached, where, hits, misses = ask(tmp_path / "one", cache)
    assert (cached, hits, misses) == (False, 0, 1) and where.startswith(str(tmp_path / "one"))
    cached, where, hits, misses = ask(tmp_path / "two", cache)
    assert (cached, hits, misses) == (True, 1, 0) and where.startswith(str(tmp_path / "two"))
    callee = tmp_path / "two" / "rbd_ros" / "core" / "lie" / "spatial.py"
    callee.write_text(callee.read_text() + "\n# changed\n")
    assert ask(tmp_path / "two", cache)[0] is False
    assert ask(tmp_path / "one", cache)[0] is True


OUTSIDER = """
from rbd_ros.core.compiled.entry import quick_entry

@quick_entry("float64({kinds})")
def twice(x{more}):
    return {factor} * x
"""


def test_a_changed_entry_outside_the_core_is_compiled_again(tmp_path):
    """With other arguments its old code would be called wrongly."""
    def call(kinds, more, factor, arguments):
        (tmp_path / "outsider.py").write_text(OUTSIDER.format(kinds=kinds, more=more, factor=factor))
        ask = f"import outsider as o; print(o.twice.cached(), o.twice.call({arguments}), o.twice.cached())"
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), str(CORE.parents[1])]),
                           RBD_CACHE_DIR=str(tmp_path / "cache"), PYTHONDONTWRITEBYTECODE="1")
        return subprocess.run([sys.executable, "-c", ask], env=environment, check=True, text=True,
                              stdout=subprocess.PIPE).stdout.split()

    assert call("float64", "", "2.0", "3.0") == ["False", "6.0", "True"]
    assert call("float64", "", "2.0", "3.0") == ["True", "6.0", "True"]
    assert call("float64, float64", ", y", "4.0", "3.0, 1.0") == ["False", "12.0", "True"]


NAMESAKES = """
from rbd_ros.core.compiled.entry import quick_entry

def made(signature, factor):
    @quick_entry(signature)
    def times(x):
        return factor * x
    return times

class A:
    @quick_entry("float64(float64)")
    def times(x):
        return 2.0 * x

@quick_entry("float64(float64)")
def times(x):
    return 3.0 * x
third = times

@quick_entry("float64(float64, float64)")
def times(x, y):
    return 4.0 * x * y

if __name__ == "__main__":
    import namesakes as n
    print(n.A.times.call(1.0), n.third.call(1.0), n.times.call(1.0, 1.0), *(
        made("float64(float64)", x).call(1.0) for x in (5.0, 6.0)))
"""


def test_entries_of_one_name_are_kept_apart(tmp_path):
    (tmp_path / "namesakes.py").write_text(NAMESAKES)
    for _ in range(2):
        said = subprocess.run([sys.executable, "namesakes.py"], check=True, text=True, stdout=subprocess.PIPE,
                              cwd=tmp_path, env=dict(os.environ, RBD_CACHE_DIR=str(tmp_path / "cache"), PYTHONPATH=str(
                                  CORE.parents[1]), PYTHONDONTWRITEBYTECODE="1")).stdout
        assert said.split() == ["2.0", "3.0", "4.0", "5.0", "6.0"]


def test_an_entry_without_a_file_is_not_kept(tmp_path):
    ask = OUTSIDER.format(kinds="float64", more="", factor="2.0") + "print(twice.call(3.0), twice.cached())"
    found = subprocess.run([sys.executable, "-c", ask], check=True, text=True, stdout=subprocess.PIPE,
                           env=dict(os.environ, RBD_CACHE_DIR=str(tmp_path))).stdout.split()
    assert found == ["6.0", "False"] and not [*tmp_path.glob("outside*")]


def test_what_is_kept_for_other_processors_is_not_taken(monkeypatch):
    here = kernel_cache.folder_of("rbd_ros.core.dynamics.inverse")
    monkeypatch.setattr(kernel_cache, "_machine", lambda: "another")
    kernel_cache._key.cache_clear()
    try:
        assert kernel_cache.folder_of("rbd_ros.core.dynamics.inverse") != here
    finally:
        kernel_cache._key.cache_clear()


@pytest.mark.parametrize("what", ["the cache", "a folder in it", "a file"])
def test_code_that_others_may_have_written_is_not_loaded(tmp_path, what):
    cache = tmp_path / "cache"
    assert ask(CORE.parents[1], cache)[0] is False
    file = next(path for ending in ("o", "nbc") for path in cache.rglob(f"*.{ending}"))
    assert ask(CORE.parents[1], cache)[::2] == (True, 1)
    for path in {"the cache": [cache], "a folder in it": [file.parent.parent],
                 "a file": [file, file.parent, file.parent.parent]}[what]:
        path.chmod(0o757)    # of a file: only where others get to it
    cached, _, hits, misses = ask(CORE.parents[1], cache)
    assert (cached, hits, misses) == (False, 0, 1)


@pytest.fixture
def another_user(monkeypatch):
    """Gives files to somebody who is neither this user nor root."""
    def given(path):
        if os.geteuid() == 0:
            os.chown(path, 4242, -1)
        else:
            monkeypatch.setattr(kernel_cache.os, "geteuid", lambda: 4242)
    return given


@pytest.mark.parametrize("damage", [lambda code: code[:-1], lambda code: b"", lambda code: code[:3],
                                    lambda code: code[:100] + b"x" + code[101:], lambda code: code[1:]])
def test_damaged_code_is_compiled_again(tmp_path, damage):
    cache = tmp_path / "cache"
    assert ask(CORE.parents[1], cache)[2:] == (0, 1)
    if not (kept := [*cache.rglob("*.o")]):
        pytest.skip("kept by numba")
    for path in kept:
        path.write_bytes(damage(path.read_bytes()))
    assert ask(CORE.parents[1], cache)[2:] == (0, 1)
    assert ask(CORE.parents[1], cache)[2:] == (1, 0)


@pytest.mark.parametrize("change", ["nothing", "a file for all", "a file for a group", "a folder for all",
                                    "a folder for a group", "a file of another user", "a folder of another user"])
def test_objects_of_specialize_that_others_may_have_written_are_not_loaded(tmp_path, monkeypatch, change, another_user):
    monkeypatch.setenv("RBD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_cache, "_OWN", {})
    monkeypatch.setattr(kernel_cache, "_is_private", lambda group: False)
    path = tmp_path / "cache" / "specialize" / "key.o"
    machine._write(path, b"code")
    assert machine._read(path) == b"code" and path.parent.stat().st_mode & 0o077 == 0
    kernel_cache._OWN.clear()
    changed = path if "file" in change else path.parent
    if "for" in change:
        path.parent.chmod(0o755)
        changed.chmod(0o757 if "all" in change else 0o775)
    elif "another" in change:
        another_user(changed)
    if change == "nothing":
        assert machine._read(path) == b"code"
        return
    with pytest.warns(rbd.RbdWarning, match="cache of machine code is not used") as warned:
        assert machine._read(path) is None
        machine._write(path, b"more")    # nor is anything kept there
        assert machine._read(path) is None and path.read_bytes().endswith(b"code")
    assert len(warned) == 1 and str(changed) in str(warned[0].message)


def test_the_group_of_one_user_alone_may_write(tmp_path, monkeypatch):
    """As umask 002 leaves it on distributions where each user has a group."""
    monkeypatch.setenv("RBD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "_OWN", {})
    tmp_path.chmod(0o775)
    monkeypatch.setattr(kernel_cache, "_is_private", lambda group: True)
    assert kernel_cache.is_own(tmp_path)


def test_nothing_is_compiled_ahead_for_a_cache_of_others(tmp_path, monkeypatch):
    from rbd_ros.cli.main import main
    monkeypatch.setenv("RBD_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o777)
    with pytest.warns(rbd.RbdWarning, match="all users may write"):
        assert main(["compile"]) == 1


def holds_code(path):
    """More than a docstring; Python."""
    return path.suffix == ".py" and len(ast.parse(path.read_text()).body) > 1


def test_dependencies_are_all_files_that_an_import_loads():
    """Against Python itself: what importing a module loads of the core is among its dependencies."""
    code = ("import importlib, sys; importlib.import_module('rbd_ros.core.dynamics.constrained.forward'); "
            "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('rbd_ros.core.')), sep='\\n')")
    # `rbd_ros/__init__.py` imports everything: an empty one in its place
    loaded = subprocess.run([sys.executable, "-c", "import types, sys; package = types.ModuleType('rbd_ros'); "
                             f"package.__path__ = [{str(CORE.parent)!r}]; sys.modules['rbd_ros'] = package; {code}"],
                            check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    known = {str(path) for path in kernel_cache.dependencies(CORE / "dynamics" / "constrained" / "forward.py")}
    assert len(loaded) > 20
    # the front door of `lie` names all that lies behind it, what is no kernel, too, which no kernel uses
    door = {str(path) for path in (CORE / "lie").rglob("*.py")
            if "compiled.kernel import" not in path.read_text("utf-8")}
    assert {name for name in loaded if holds_code(Path(name))} - known <= door


def test_kernels_do_not_depend_on_what_decides():
    """A change of trajectories or drives must not cost every user minutes of compilation."""
    kernels = [path for path in CORE.rglob("*.py") if "compiled.entry import" in path.read_text()]
    own = ("motion", "actuation", "steady")    # have small ones of their own; the steady cycle is made of both
    kernels = [path for path in kernels if path.relative_to(CORE).parts[0] not in own]
    assert len(kernels) > 15
    for path in kernels:
        folders = {file.relative_to(CORE).parts[0] for file in kernel_cache.dependencies(path)}
        assert folders.isdisjoint({"motion", "actuation"}), path


def test_the_inside_of_numba_is_leant_on_in_one_room():
    words = ("numba.core", "numba import", "llvmlite", "_nrt\"", "dispatcher._")
    texts = {path.name: path.read_text(encoding="utf-8") for path in CORE.rglob("*.py")}
    found = {name for name, text in texts.items() if any(word in text for word in words)}
    # versions.py, object_code.py and machine.py use llvmlite's public functions
    assert found == {f"{name}.py" for name in ("callee", "kernel", "linking", "calling", "versions", "object_code",
                                               "machine")}


def test_compiling_takes_no_computing_time(monkeypatch):
    """So that no search ends at its time limit because kernels had to be compiled first."""
    owner, name = (entry.object_code, "loaded") if entry.EXTENSION else (entry.Entry, "_compiled")
    make, kernel, clock = getattr(owner, name), energy.totals_entry, [100.0]

    def slow(*arguments):
        clock[0] += 7.0
        return make(*arguments)

    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(owner, name, slow)
    monkeypatch.setattr(kernel, "call", kernel._first_call)
    before = computing_time()
    kernel.compile()
    assert clock[0] == 107.0 and computing_time() == pytest.approx(before)
    clock[0] += 1.0
    assert computing_time() == pytest.approx(before + 1.0)


START = """
import sys
import numpy as np
import rbd_ros as rbd
model = rbd.sample("two_link")
q = np.linspace(-1.0, 1.0, model.nq)
rbd.inverse_dynamics(model, q, q, q)
print("numba" in sys.modules, rbd.forward_dynamics(model, q, q, q).tobytes().hex())
"""
BROKEN = "raise ImportError('numba of this test is broken')\n"
needs_extension = pytest.mark.skipif(not entry.EXTENSION, reason="kept by numba")


def run_code(code, cache, *folders, **environment):
    """A new process."""
    environment = os.environ | {"RBD_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(
        [*map(str, folders), str(CORE.parents[1]), os.environ.get("PYTHONPATH", "")])} | environment
    return subprocess.run([sys.executable, "-c", code], env=environment, check=False, text=True, capture_output=True)


def start(cache, before="", *folders, **environment):
    """What START writes in a new process; its warnings."""
    ended = run_code(before + START, cache, *folders, **environment)
    assert ended.returncode == 0, ended.stderr
    imported, result = ended.stdout.split()
    return imported == "True", result, ended.stderr


@pytest.fixture(scope="module")
def started():
    """A cache with the code of START, and its result."""
    cache = kernel_cache.cache_directory()
    return cache, start(cache)[1]


@needs_extension
def test_where_machine_code_is_kept_numba_is_not_imported(started):
    cache, result = started
    assert start(cache) == (False, result, "")


@needs_extension
@pytest.mark.parametrize("change", [
    "from rbd_ros.core.compiled import object_code\nobject_code._extension = lambda name: None\n",
    "import llvmlite.binding as llvm\nadd = llvm.add_symbol\n"
    "llvm.add_symbol = lambda name, at: None if 'numba' not in sys.modules else add(name, at)\n"],
    ids=["other tables", "unknown functions"])
def test_numba_is_imported_for_functions_that_are_not_found(started, change):
    """A function that is not found when code is loaded would abort the process."""
    cache, result = started
    assert start(cache, "import sys\n" + change)[:2] == (True, result)


@needs_extension
def test_code_that_calls_unknown_functions_is_compiled_again(started, tmp_path):
    cache, result = started
    for name in ("compiled.calling", "dynamics.inverse", "dynamics.forward"):
        shutil.copytree(cache / name, tmp_path / "cache" / name)
    for path in (tmp_path / "cache").rglob("inverse_dynamics_entry-*.o"):
        names, code = object_code.read(path).split(b"\n", 1)
        object_code.write(path, names + b" function_of_nobody\n" + code)
    assert start(tmp_path / "cache")[:2] == (True, result)
    assert start(tmp_path / "cache") == (False, result, "")


def test_a_numba_that_cannot_be_imported_is_not_used(started, tmp_path):
    """Another one than before; each process finds out, and computes in plain Python."""
    cache, result = started
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text(BROKEN)
    for _ in range(2):
        imported, plain, said = start(cache, "", tmp_path)
        assert not imported and "numba is not used (numba of this test is broken)" in said
        np.testing.assert_allclose(*(np.frombuffer(bytes.fromhex(x)) for x in (plain, result)), rtol=1e-9)


@needs_extension
def test_a_numba_that_breaks_later_is_not_used_by_the_next_process(tmp_path):
    """Damaged, with the version that could be imported."""
    version = tmp_path / "numba" / "_version.py"
    version.parent.mkdir()
    shutil.copy(Path(importlib.util.find_spec("numba").origin).with_name("_version.py"), version)
    (tmp_path / "numba" / "__init__.py").write_text(BROKEN)
    ask = "import rbd_ros as rbd; from rbd_ros.core.compiled import availability as a; print(a._note().parent)"
    folder = Path(run_code(ask, tmp_path / "cache").stdout.strip())
    assert (folder / "imported").is_file()
    first = run_code(START, tmp_path / "cache", tmp_path)
    assert first.returncode == 1 and "numba of this test is broken" in first.stderr
    imported, _, said = start(tmp_path / "cache", "", tmp_path)
    assert not imported and "numba is not used (numba of this test is broken)" in said


@needs_extension
def test_numba_can_be_used_after_machine_code_was_loaded(started):
    """With all submodules as attributes; with Python's debug allocator."""
    cache, result = started
    ended = run_code(START + """
import numba, numba._helperlib
import numba.core.runtime._nrt_python
print(numba._helperlib.c_helpers["do_raise"] > 0, numba.njit(lambda x: (x + x).sum())(np.arange(3.0)))
rbd.mass_matrix(model, q)
""", cache, PYTHONDEVMODE="1")
    assert ended.stdout.split() == ["False", result, "True", "6.0"], ended.stderr


ALLOCATES = """
import numpy as np
from rbd_ros.core.compiled.entry import entry


@entry("float64(int64)", nogil=True)
def work(n):
    total = 0.0
    for k in range(n):
        x = np.ones(1000)
        x[k % 1000] += 1.0
        total += x.sum()
    return total
"""
USES = """
import sys, threading, allocates
print(allocates.work(1), "numba" in sys.modules)
imported = threading.Event()
def work():
    while not imported.is_set():
        allocates.work(10_000)
thread = threading.Thread(target=work)
thread.start()
import numba
imported.set()
thread.join()
print(allocates.work(2))
"""


@needs_extension
def test_numba_is_imported_while_machine_code_allocates(tmp_path):
    """Arrays allocated before are freed after, by the same allocator: Python's debug allocator would abort."""
    (tmp_path / "allocates.py").write_text(ALLOCATES)
    assert run_code("import allocates; allocates.work.compile()", tmp_path / "cache", tmp_path).returncode == 0
    ended = run_code(USES, tmp_path / "cache", tmp_path, PYTHONDEVMODE="1")
    assert ended.stdout.split() == ["1001.0", "False", "2002.0"], ended.stderr


HOMELESS = """
import os
from pathlib import Path
def expanduser(path):
    raise RuntimeError("Could not determine home directory.")
del os.environ["RBD_CACHE_DIR"]
os.environ.pop("XDG_CACHE_HOME", None)
Path.expanduser = expanduser
"""


@pytest.mark.parametrize(("before", "cache"), [("", "/tmp/" + "x" * 300), ("", "/proc/none"), (HOMELESS, "")],
                         ids=["name too long", "not to be made", "no home"])
def test_without_a_possible_cache_code_is_compiled(before, cache):
    ended = run_code(before + "from rbd_ros.core.model import state\nstate.gather_wrenches.compile()\n"
                     "import rbd_ros as rbd\nprint(rbd.COMPILED, state.gather_wrenches.cached())", cache)
    assert ended.stdout.split() == ["True", "False"], ended.stderr

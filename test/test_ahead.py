"""Compiling all kernels ahead: on all cores where that works, in this process where it does not."""
from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.compiled import ahead
from rbd_ros.core.compiled import cache as kernel_cache
from rbd_ros.core.compiled.callee import Callee
from rbd_ros.core.compiled.entry import ENTRIES
from rbd_ros.core.lie import spatial

pytestmark = pytest.mark.skipif(not rbd.COMPILED, reason="numba is not used")


def killed(keys):
    os.kill(os.getpid(), signal.SIGKILL)


def killed_once(keys):
    if keys[0][0] == ENTRIES[0].module:
        killed(keys)
    return [(key, 1.0) for key in keys]


def long_job(keys):
    Path(os.environ["GO"]).read_text()    # until somebody has written
    Path(os.environ["DONE"]).touch()


@pytest.fixture
def linking():
    """What compiled functions come together by, where this numba is known."""
    from rbd_ros.core.compiled import linking
    if not linking.KNOWN:
        pytest.skip("numba compiles in its own way")
    return linking


def compiled_here(monkeypatch):
    """Names of what this process compiles itself, as it does so; nothing counts as cached."""
    names = []
    monkeypatch.setattr(ahead, "_compile", lambda item: names.append(item.name) or 0.0)
    return names


def test_every_entry_is_in_one_job_and_the_largest_begin():
    ahead.know_all()
    jobs = ahead._jobs(ENTRIES)
    assert sorted(item.name for job in jobs for item in job.entries) == sorted(item.name for item in ENTRIES)
    assert all(len({item.module for item in job.entries}) == 1 for job in jobs)
    names = [job.entries[0].module.rpartition(".")[2] for job in jobs]
    assert names.index("second_derivatives") < names.index("mass_matrix")


def test_what_a_killed_helper_leaves_is_compiled_here(monkeypatch):
    monkeypatch.setattr(ahead, "_compile_job", killed)
    names = compiled_here(monkeypatch)
    assert len(list(ahead._compiled(ENTRIES[:3]))) == 3
    assert names == [item.name for item in ENTRIES[:3]]


def test_the_others_go_on_where_one_is_killed(monkeypatch):
    ahead.know_all()
    monkeypatch.setattr(ahead, "_compile_job", killed_once)
    monkeypatch.setattr(ahead, "_cores", lambda: 3)
    names = compiled_here(monkeypatch)
    assert {item.name for item, _ in ahead._compiled(ENTRIES)} == {item.name for item in ENTRIES}
    assert names == [item.name for item in ENTRIES if item.module == ENTRIES[0].module]


def test_nobody_waits_for_helpers_that_start_when_the_interrupt_comes(monkeypatch, tmp_path):
    give, given = ahead._give, []

    def interrupted(*arguments):
        give(*arguments)
        given.append(arguments)
        if len(given) == 2:
            raise KeyboardInterrupt

    ahead.know_all()
    os.mkfifo(tmp_path / "go")
    late = threading.Timer(60.0, (tmp_path / "go").write_text, [""])    # lets those end who are waited for
    late.daemon = True
    late.start()
    monkeypatch.setenv("GO", str(tmp_path / "go"))
    monkeypatch.setenv("DONE", str(tmp_path / "done"))
    monkeypatch.setattr(ahead, "_compile_job", long_job)
    monkeypatch.setattr(ahead, "_cores", lambda: 2)
    monkeypatch.setattr(ahead, "_give", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(ahead._by_helpers(ENTRIES))
    finally:
        late.cancel()
    assert not (tmp_path / "done").exists()


def test_what_helpers_did_before_one_was_killed_counts(monkeypatch):
    def one_and_no_more(entries):
        yield (entries[0].module, entries[0].name), 1.0
        raise BrokenProcessPool("killed")

    monkeypatch.setattr(ahead, "_by_helpers", one_and_no_more)
    names = compiled_here(monkeypatch)
    assert [item.name for item, _ in ahead._compiled(ENTRIES[:3])] == [item.name for item in ENTRIES[:3]]
    assert names == [item.name for item in ENTRIES[1:3]]


@pytest.mark.parametrize("why", ["one core", "nothing can be kept", "no processes"])
def test_without_helpers_this_process_does_all(why, monkeypatch):
    def refuse(entries):
        if why != "no processes":
            pytest.fail("helpers are asked")
        raise OSError("no semaphores")
        yield

    monkeypatch.setattr(ahead, "_cores", lambda: 1 if why == "one core" else 2)
    monkeypatch.setattr(ahead, "is_writable", lambda: why != "nothing can be kept")
    monkeypatch.setattr(ahead, "_by_helpers", refuse)
    names = compiled_here(monkeypatch)
    assert len(list(ahead._compiled(ENTRIES[:3]))) == 3 and len(names) == 3


def test_a_cache_that_nothing_can_be_written_to_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setenv("RBD_CACHE_DIR", str(tmp_path / "cache"))
    assert kernel_cache.is_writable()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RBD_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert not kernel_cache.is_writable()


def test_a_change_of_how_all_is_compiled_compiles_nothing_anew():
    core = kernel_cache._CORE
    assert all(core / "compiled" / "ahead.py" not in kernel_cache.dependencies(path)
               for path in core.rglob("*.py") if path.name != "ahead.py")


def test_callees_have_no_machine_code_of_their_own_until_they_are_called(linking):
    """What compiled callers take in is never compiled for Python; a call from Python compiles it for that."""
    rbd.mass_matrix(rbd.sample("two_link"), np.zeros(2))
    assert spatial.cross((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)) == (0.0, 0.0, 1.0)
    callee = spatial.cross._linked
    callee.compile("UniTuple(float64, 3)(UniTuple(float64, 3), UniTuple(float64, 3))")
    made = next(iter(callee.overloads.values()))
    assert made.library.get_pointer_to_function(made.fndesc.llvm_func_name) == 0


def test_numba_looks_for_other_packages_without_importing_them():
    code = ("import sys, rbd_ros as rbd; m = rbd.sample('two_link'); rbd.mass_matrix(m, m.neutral()); "
            "print([name for name in ('coverage', 'scipy.linalg') if name in sys.modules]); "
            "import numba, numpy as np; print(numba.njit(lambda a: np.dot(a, a))(np.eye(2))[1, 1])")
    said = subprocess.run([sys.executable, "-c", code], check=True, text=True, stdout=subprocess.PIPE).stdout
    assert said.split() == ["[]", "1.0"]


@pytest.mark.parametrize("known", [True, False])
def test_callees_of_a_numba_that_is_not_known(known, linking, monkeypatch):
    """Another version may lack what is changed inside: then it compiles in its own way."""
    import numba

    monkeypatch.setattr(linking, "KNOWN", known)

    def twice(x):
        return 2.0 * x

    called = Callee(twice, {})
    assert numba.njit(lambda x: called(x) + 1.0)(3.0) == 7.0
    assert (called._linked is called._called) is not known


def long_function(x, k):
    """Long enough to be compiled for any k."""
    total = 0.0
    for i in range(3):
        total += x[k + i] * x[k] + x[k + i] / (1.0 + x[k] * x[k])
        total -= x[k + i] * x[k + 1] + x[k + i] / (1.0 + x[k + 1] * x[k + 1])
        total += x[k + i] * x[k + 2] + x[k + i] / (1.0 + x[k + 2] * x[k + 2])
        total -= x[k + i] * x[k + 1] * x[k] + x[k] / (1.0 + x[k + 2] * x[k + 1])
    return total


def short_function(x, k):
    return 2.0 * x[k]


@pytest.mark.parametrize(("function", "versions"), [(long_function, 2), (short_function, 3)])
def test_callers_that_name_a_place_share_what_is_compiled_for_any(function, versions, linking):
    """In short functions, and numbers but 0, are constants: they make faster code."""
    import numba

    called = Callee(function, {})
    x = np.arange(1.0, 9.0)
    first, any_place, second = (numba.njit(caller) for caller in (
        lambda x, k: called(x, 0), lambda x, k: called(x, k), lambda x, k: called(x, 1)))
    assert [caller(x, 2) for caller in (first, any_place, second)] == pytest.approx(
        [function(x, 0), function(x, 2), function(x, 1)], rel=1e-14)
    assert len(called._linked.overloads) == versions


@pytest.mark.parametrize(("lines", "versions"), [(20, 1), (1, 3)], ids=["long", "short"])
def test_callers_that_name_a_boolean_share_what_is_compiled_for_any(lines, versions, linking):
    import numba

    code = "\n".join(f"    x = x * {k}.5 + 1.0 / (1.0 + x * x) if up else x - {k}.0" for k in range(1, 1 + lines))
    scope: dict = {}
    exec(f"def chosen(up, x):\n{code}\n    return x\n", scope)
    chosen = scope["chosen"]
    assert (len(chosen.__code__.co_code) > linking._LONG) == (versions == 1)
    called = Callee(chosen, {})
    callers = [numba.njit(caller) for caller in (
        lambda up, x: called(False, x), lambda up, x: called(up, x), lambda up, x: called(True, x))]
    assert [caller(True, 0.5) for caller in callers] == pytest.approx(
        [chosen(False, 0.5), chosen(True, 0.5), chosen(True, 0.5)], rel=1e-14)
    assert len(called._linked.overloads) == versions


def test_where_types_depend_on_a_number_it_stays_one(linking):
    import numba

    code = "\n".join(f"    x = x * {k}.5 + 1.0 / (1.0 + x * x)" for k in range(20))
    scope: dict = {}
    exec(f"def chosen(pair, k, x):\n{code}\n    return pair[k] * x\n", scope)
    assert len(scope["chosen"].__code__.co_code) > linking._LONG
    called = Callee(scope["chosen"], {})
    mixed = numba.njit(lambda x: called((2.0, 3), 0, x))
    assert mixed(0.5) == pytest.approx(scope["chosen"]((2.0, 3), 0, 0.5), rel=1e-14)


def test_a_routine_is_optimised_once_and_is_in_the_machine_code_of_all_that_calls_it(linking, monkeypatch):
    """Whoever calls it, and whatever it calls: a symbol that is missing would end the process."""
    import numba

    optimised = []
    optimise = linking._Joined._optimize_final_module
    monkeypatch.setattr(linking._Joined, "_optimize_final_module", lambda self: optimised.append(
        (self.name, [function.name for function in self._final_module.functions
                     if not function.is_declaration])) or optimise(self))

    def inner(x):
        return x + 1.0

    def outer(x):
        return 2.0 * inner(x)

    def short(x):
        return 3.0 * outer(x) + inner(x)

    expected = short(2.0)
    inner, outer = (Callee(function, {"forceinline": False}) for function in (inner, outer))
    short = Callee(short, {"forceinline": True})
    callers = [numba.njit(**options)(lambda x: short(x)) for options in (linking.ENTRY, linking.ENTRY, {})]
    assert [caller(2.0) for caller in callers] == [short(2.0)] * 3 == [expected] * 3
    assert outer(2.0) == 6.0
    names = [name.rpartition(".")[2] for name, _ in optimised]
    assert [names.count(name) for name in ("inner", "outer", "short")] == [1, 1, 1]
    assert not any("inner" in name for name in optimised[names.index("outer")][1])    # its caller is optimised alone


def test_code_from_the_cache_does_not_wait_for_what_compiling_needs():
    """And what is compiled after it has all that."""
    rbd.inverse_dynamics(rbd.sample("iiwa"), *np.zeros((3, 7)))
    code = ("import numpy as np, rbd_ros as rbd\n"
            "from numba.core.cpu import CPUContext\n"
            "calls = []; load = CPUContext.load_additional_registries\n"
            "CPUContext.load_additional_registries = lambda self: calls.append(1) or load(self)\n"
            "rbd.inverse_dynamics(rbd.sample('iiwa'), *np.zeros((3, 7)))\n"
            "print(len(calls))\n"
            "import numba\n"
            "print(numba.njit(lambda a: np.linalg.solve(a, a[0]).sum())(np.eye(2)), len(calls) > 0)\n")
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.split()
    assert said == ["0", "1.0", "True"]


def faults_of_calls():
    """Most pages that 1,000 calls needed, at many depths: a page counts anew where memory comes and goes."""
    inner = FunctionType((lambda: None).__code__.replace(co_stacksize=100), {})

    def calls(depth):
        if depth:
            return calls(depth - 1)
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        for _ in range(1000):
            inner()
        return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before

    return max(calls(depth) for depth in range(400))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="frames have no blocks")
def test_calls_while_compiling_ask_for_no_memory():
    assert faults_of_calls() >= 1000
    assert ahead._with_large_block(faults_of_calls) < 500


def test_each_helper_gets_what_shares_most_with_what_it_did():
    def job(name, *sources):
        return ahead._Job((SimpleNamespace(module=name, name=name),), frozenset(sources))

    class Pool:
        def submit(self, function, keys):
            given.append((self, keys[0][0]))
            return len(given)

    a, b = (kernel_cache._CORE / "compiled" / name for name in ("entry.py", "ahead.py"))
    given: list = []
    helpers = [ahead._Helper(Pool(), set()) for _ in range(2)]
    jobs, at_work = [job("a", a), job("both", a, b), job("more a", a), job("b", b)], {}
    for helper in (0, 1, 0, 1, 0):
        ahead._give(helpers[helper], helpers, jobs, at_work)
    order = [(next(k for k in range(2) if helpers[k].pool is pool), name) for pool, name in given]
    assert order == [(0, "a"), (1, "b"), (0, "more a"), (1, "both")] and not jobs


COMPILED_BY_CALLS = """
import numba.core.event
import rbd_ros as rbd
from rbd_ros.core.compiled import ahead, entry
from support.theory_calls import calls

class Compilations(numba.core.event.Listener):
    def on_start(self, event):
        print(name, "compiles", event.data["dispatcher"].__name__)

    def on_end(self, event):
        pass

name = "making the calls"
ahead.know_all()
for each in entry.ENTRIES:
    each.compile()    # or loaded from the cache
numba.core.event.register("numba:compile", Compilations())
for name, (call, _) in calls().items():
    call()
for name in ("feedforward", "flatness", "cartesian"):
    rbd.TorqueController(rbd.sample("two_link"), name).update(0.0, [0.3, 0.5], [0.1, 0.1])
"""


def test_no_function_of_the_library_compiles_beside_the_entries():
    """Machine code of entries is kept in the cache; kernels called from Python would be compiled in every process."""
    root = Path(__file__).parents[1]
    path = os.pathsep.join(map(str, (root, root / "test", *sys.path)))
    found = subprocess.run([sys.executable, "-c", COMPILED_BY_CALLS], cwd=root, env=os.environ | {"PYTHONPATH": path},
                           check=True, text=True, stdout=subprocess.PIPE).stdout
    assert not found

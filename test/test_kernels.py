"""Kernels, sweeps and quick entries do without reference counts: none may allocate or return an array."""
from __future__ import annotations

import ast
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
from support.functions import functions
from support.robots import random_states
from support.trees import TYPES, random_tree

import rbd_ros as rbd
from rbd_ros.core.compiled import workspace

CORE = Path(__file__).parents[1] / "rbd_ros" / "core"
# not `reshape(-1)`, which makes a view of the arrays that entries take
ALLOCATE = {"empty", "zeros", "ones", "full", "array", "copy", "zeros_like", "empty_like", "arange"}


def bare(source):
    """The functions of a file that are decorated with `kernel`, `exact`, `sweep` or `quick_entry(…)`."""
    names = ("kernel", "exact", "sweep", "quick_entry")
    return [item for item in ast.walk(ast.parse(source)) if isinstance(item, ast.FunctionDef)
            and any(getattr(getattr(d, "func", d), "id", "") in names for d in item.decorator_list)]


def complaints(function):
    """What is wrong: allocations, and results that may be arrays (a parameter that is indexed, or a slice)."""
    parameters = {argument.arg for argument in function.args.args}
    indexed = {item.value.id for item in ast.walk(function)
               if isinstance(item, ast.Subscript) and isinstance(item.value, ast.Name)}
    stored = {item.targets[0].value.id for item in ast.walk(function) if isinstance(item, ast.Assign)
              and isinstance(item.targets[0], ast.Subscript) and isinstance(item.targets[0].value, ast.Name)}
    for item in ast.walk(function):
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr in ALLOCATE:
            yield f"{function.name}:{item.lineno} allocates by {item.func.attr}"
        if isinstance(item, ast.Return) and item.value is not None:
            results = item.value.elts if isinstance(item.value, ast.Tuple) else [item.value]
            for result in results:
                if isinstance(result, ast.Subscript) and isinstance(result.slice, ast.Slice):
                    yield f"{function.name}:{item.lineno} returns a slice"
                if isinstance(result, ast.Name) and result.id in parameters & indexed & stored:
                    yield f"{function.name}:{item.lineno} returns the array {result.id}"


FILES = sorted(path for path in CORE.rglob("*.py")
               if re.search(r"compiled\.(kernel|entry|exact) import", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_kernel_allocates_or_returns_an_array(path):
    assert not [text for function in bare(path.read_text(encoding="utf-8")) for text in complaints(function)]


def test_the_check_finds_what_it_looks_for():
    source = """
@kernel
def one(A, k):
    A[k] = 1.0
    return A

@quick_entry("float64[::1](int64)")
def two(n):
    W = np.empty(n)
    W[0] = 1.0
    return W[1:]
"""
    found = [text for function in bare(source) for text in complaints(function)]
    assert len(found) == 3


def guarded(work):
    """An array that takes the place of a workspace, with a border behind it; and the border."""
    room = np.full(work.size + 64, np.nan)
    return room[:work.size], room[work.size:]


BORDER = 12345.0


def uncaught(source):
    """Calls of np.linalg, and `raise`, in compiled functions, outside a `try`."""
    decorators = ("kernel", "exact", "sweep", "routine", "allocating", "entry", "quick_entry")
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and any(
                getattr(getattr(d, "func", d), "id", "") in decorators for d in function.decorator_list):
            caught = {id(item) for attempt in ast.walk(function) if isinstance(attempt, ast.Try)
                      for statement in attempt.body for item in ast.walk(statement)}
            yield from (f"{function.name}:{item.lineno}" for item in ast.walk(function) if id(item) not in caught
                        and (isinstance(item, ast.Raise)
                             or (isinstance(item, ast.Attribute) and item.attr == "linalg")))


def test_no_compiled_function_raises():
    """A function that is called by its address cannot: numba prints the error, and the caller gets another one."""
    found = {path.name: list(uncaught(path.read_text(encoding="utf-8"))) for path in CORE.rglob("*.py")}
    assert not {name: places for name, places in found.items() if places}
    body = "    try:\n        y = np.linalg.inv(x)\n    except Exception:\n        y = x\n    return np.linalg.inv(y)\n"
    assert list(uncaught(f"@routine\ndef f(x):\n{body}")) == ["f:7"]


@pytest.mark.skipif(not rbd.COMPILED, reason="in plain Python each call takes its own workspace, and arrays have ends")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("root", ["fixed", "floating"])
@pytest.mark.parametrize("count", [1, 9])
def test_the_workspace_of_a_model_is_large_enough(kind, root, count):
    model = random_tree(5, [kind] * count, root=root)
    work, border = guarded(model._work)
    border[:] = BORDER
    object.__setattr__(model, "_work", work)
    state = [np.ascontiguousarray(x[0]) for x in random_states(model, 1, 1)]
    for name, call in functions(model).items():
        with suppress(rbd.RbdError) if name == "operational_space_inertia" else nullcontext():    # of few joints
            call(*state)
        assert (border == BORDER).all(), f"{name} writes beyond the workspace: what does its file take of ONE_STATE?"
    assert not np.isnan(work).all()


@pytest.mark.skipif(not rbd.COMPILED, reason="in plain Python each call takes its own workspace, and arrays have ends")
@pytest.mark.parametrize("name", rbd.sample_names())
def test_the_workspace_of_constraints_is_large_enough(name):
    model = rbd.sample(name)
    constraints = rbd.sample_constraints(name, model)
    bound = constraints.bound(model)
    work, border = guarded(bound.work)
    border[:] = BORDER
    object.__setattr__(bound, "work", work)
    q = model.neutral()
    rbd.constrained_forward_dynamics(model, constraints, q, np.zeros(model.nv), np.zeros(model.nv), damping=1e-3)
    assert (border == BORDER).all()
    assert model.nv == 0 or bound.contacts.rows or not np.isnan(work).all()    # contacts are not in the quick entry


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_who_uses_a_workspace_says_how_much(path):
    text = path.read_text(encoding="utf-8")
    assert ("model._work" in text) <= ("ONE_STATE.takes(" in text)


def test_nobody_asks_for_workspace_after_it_was_made():
    rbd.sample("two_link")
    with pytest.raises(RuntimeError, match="imported after"):
        workspace.ONE_STATE.takes(lambda nodes, columns, nv: 10**9)


def test_threads_may_share_a_model():
    """Compiled calls of one state share the model's workspace, one at a time; in plain Python each has its own."""
    model = random_tree(3, TYPES, root="floating")
    states = list(zip(*random_states(model, 8, 1), strict=True))
    calls = [rbd.inverse_dynamics, rbd.forward_dynamics, rbd.inverse_dynamics_derivatives,
             rbd.forward_dynamics_derivatives,
             lambda model, *state: rbd.constrained_forward_dynamics(model, held, *state)[:2]]
    held = rbd.ConstraintSet([rbd.FixedContact("link5", kind="point")])

    def work(index):
        return [np.concatenate([np.ravel(x) for x in call(model, *states[index])]) for call in calls]

    expected = [work(i) for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for i, found in pool.map(lambda i: (i % 8, work(i % 8)), range(400 if rbd.COMPILED else 16)):
            for x, y in zip(found, expected[i], strict=True):
                np.testing.assert_array_equal(x, y)

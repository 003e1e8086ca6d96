"""Own code for one state: what it takes, what it leaves to the ordinary kernels, and that it keeps nothing."""
from __future__ import annotations

import array
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.own_code import check_equal, states
from support.trees import random_tree

import rbd_ros as rbd
from rbd_ros.core.compiled.door import NUMBERS
from rbd_ros.core.compiled.entry import EXTENSION
from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.core.specialize import own_code
from rbd_ros.core.specialize.functions import FUNCTIONS

pytestmark = pytest.mark.skipif(not EXTENSION, reason="needs numba and the extension")
MODEL = rbd.sample("iiwa")
FAST = rbd.specialize(MODEL) if COMPILED else None


def code(name, model=None):
    """The way that the public function tries first."""
    fast = FAST if model is None else model
    given = states(fast, FUNCTIONS[name].inputs, None)
    getattr(rbd, name)(fast, *given)
    way = first_way(fast, name)
    assert isinstance(way, EXTENSION.Way)
    return way


def first_way(fast, name):
    return fast._ways[NUMBERS[name]][0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_state_is_computed_by_it(name):
    """`test_specialized` compares results of the public functions, which would hide that others made them."""
    given = states(MODEL, FUNCTIONS[name].inputs, None, seed=5)
    expected, found = getattr(rbd, name)(MODEL, *given), code(name)(*given)
    check_equal(expected, found, 1e-12)
    for a in found if isinstance(found, tuple) else [found]:
        assert isinstance(a, np.float64) or (a.flags.c_contiguous and a.flags.owndata and a.flags.writeable)


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "forward_kinematics"])
def test_a_state_alone_has_the_bits_that_it_has_in_a_batch(name):
    """A tree whose code is in several pieces, which end between other operations than those of the code for one."""
    model = random_tree(5, ["revolute", "prismatic", "revolute"] * 8)
    fast = rbd.specialize(model)
    batch = states(model, FUNCTIONS[name].inputs, 3, seed=4)
    many, way = getattr(rbd, name)(fast, *batch), code(name, fast)
    for row in range(3):
        assert np.array_equal(way(*(np.ascontiguousarray(x[row]) for x in batch)), many[row])


def read_only(v):
    out = v.copy()
    out.flags.writeable = False
    return out


def unaligned(v):
    out = np.zeros(8 * len(v) + 1, np.uint8)[1:].view(np.float64)
    out[:] = v
    assert not out.flags.aligned
    return out


LEFT = [memoryview, lambda v: array.array("d", v), list,
        tuple, unaligned, lambda v: v.astype(np.float32), lambda v: v.astype(int), lambda v: v.astype(">f8"),
        lambda v: np.repeat(v, 2)[::2], lambda v: v[::-1], lambda v: v[:, None], lambda v: v[None], lambda v: v[:-1],
        lambda v: np.append(v, 0.0), lambda v: v[:0], lambda v: v.astype(complex), lambda v: v.astype(object),
        lambda v: v.view(np.int64), lambda v: v.tobytes(), lambda v: None, lambda v: "text", lambda v: 1.0,
        lambda v: np.float64(1.0), lambda v: np.array(1.0), lambda v: v.view([("x", float)]), lambda v: v.view("M8[s]"),
        lambda v: np.where(np.arange(len(v)) == 3, np.nan, v), lambda v: np.where(np.arange(len(v)) == 6, np.inf, v),
        lambda v: np.full_like(v, 1e308)]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_it_takes_what_it_may_not_write_to(at):
    given = states(MODEL, "qvv", None)
    expected = rbd.inverse_dynamics(MODEL, *given)
    given[at] = read_only(given[at])
    np.testing.assert_allclose(code("inverse_dynamics")(*given), expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("wrong", LEFT)
def test_all_else_has_the_result_or_error_of_the_ordinary_kernels(wrong, at):
    given = states(MODEL, "qvv", None)
    given[at] = wrong(given[at])
    assert code("inverse_dynamics")(*given) is None
    said = []
    for model in (MODEL, FAST):
        try:
            said.append(rbd.inverse_dynamics(model, *given))
        except rbd.RbdError as error:
            said.append(str(error))
    if isinstance(said[0], str):
        assert said[0] == said[1]
    else:
        np.testing.assert_allclose(said[1], said[0], rtol=0.0, atol=1e-12 * np.abs(said[0]).max())


def test_what_is_too_long_for_one_state_has_code_for_batches(monkeypatch):
    monkeypatch.setattr(own_code, "LONGEST", 500)
    model = random_tree(12, ["revolute"] * 5)    # a model that no other test has kept code of
    fast = rbd.specialize(model)
    given = states(model, "qvv", None)
    with pytest.warns(rbd.RbdWarning, match=r"inverse_dynamics: [\d,]+ operations, for one state more than 500; the"):
        found = rbd.inverse_dynamics(fast, *given)
    np.testing.assert_array_equal(found, rbd.inverse_dynamics(model, *given))
    assert not fast.has_code("inverse_dynamics") and "for one state" in fast.functions["inverse_dynamics"]
    given = states(model, "qvv", 9)
    check_equal(rbd.inverse_dynamics(model, *given), rbd.inverse_dynamics(fast, *given), 1e-12)
    assert fast.functions["inverse_dynamics"] > 500


def test_another_number_of_arguments_is_left():
    q, v, a = states(MODEL, "qvv", None)
    call = code("inverse_dynamics")
    assert call() is None and call(q, v) is None and call(q, v, a, a) is None


@pytest.mark.parametrize("name", ["inverse_dynamics", "kinetic_energy", "inverse_dynamics_derivatives"])
def test_nothing_is_kept(name):
    """Neither arguments nor what results are made of, whether it takes the arguments or not."""
    given = states(MODEL, FUNCTIONS[name].inputs, None)
    wrong = [*given[:-1], np.full(MODEL.nv, np.nan)]
    call = code(name)
    empty = (7,)
    watched = [*given, *wrong, None, np.empty, np.float64, rbd.InverseDerivatives, empty, call]
    call(*given)

    def counts():
        gc.collect()
        return [sys.getrefcount(each) for each in watched]

    before = counts()
    for _ in range(400):
        call(*given), call(*wrong), call(*given[:-1], given[-1][::-1]), call(*given[:-1], [1.0]), call()
    assert max(abs(a - b) for a, b in zip(before, counts(), strict=True)) < 100    # of None, others count too
    found = call(*given)
    assert sys.getrefcount(found) == 2
    if isinstance(found, tuple):
        assert [sys.getrefcount(each) for each in found] == [3, 3, 3]    # the loop's, the argument and the tuple's
        resized = given[0]
        resized.resize(1, refcheck=False)    # would fail while somebody has its buffer


def test_it_outlives_its_model():
    given = states(MODEL, "qvv", None)
    expected = rbd.inverse_dynamics(MODEL, *given)
    call = code("inverse_dynamics", rbd.specialize(rbd.sample("iiwa")))
    gc.collect()
    np.testing.assert_allclose(call(*given), expected, rtol=0.0, atol=1e-12)


def test_threads_share_it():
    given = states(MODEL, "qvv", 400)
    expected = rbd.forward_dynamics(MODEL, *given)

    def all_states(_):
        return np.array([rbd.forward_dynamics(FAST, *(x[s] for x in given)) for s in range(400)])

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(all_states, range(8)):
            check_equal(expected, found, 1e-11)


def test_a_state_that_it_is_not_for():
    """Small rotations, angles that are too large: by the ordinary kernels, at once."""
    model = random_tree(3, ["spherical_exponential", "revolute", "spherical_exponential"])
    fast = rbd.specialize(model)
    given = [model.neutral(), *states(model, "vv", None)]
    code("inverse_dynamics", fast)
    check_equal(rbd.inverse_dynamics(model, *given), rbd.inverse_dynamics(fast, *given), 1e-12)
    q, v, a = states(MODEL, "qvv", None)
    q[2] = 1e9
    assert code("inverse_dynamics")(q, v, a) is None
    check_equal(rbd.inverse_dynamics(MODEL, q, v, a), rbd.inverse_dynamics(FAST, q, v, a), 1e-12)


def test_one_state_makes_no_code_for_batches_and_the_other_way_round():
    fast = rbd.specialize(MODEL)
    own = fast._specialized
    rbd.inverse_dynamics(fast, *states(MODEL, "qvv", 3))
    assert not isinstance(first_way(fast, "inverse_dynamics"), EXTENSION.Way)
    rbd.forward_dynamics(fast, *states(MODEL, "qvv", None))
    with pytest.raises(rbd.RbdError):
        rbd.forward_dynamics(fast, *states(MODEL, "qvv", None)[:2], np.full(MODEL.nv, np.nan))
    assert isinstance(first_way(fast, "forward_dynamics"), EXTENSION.Way)
    assert [bool(own.batch[name]._batches) for name in ("inverse_dynamics", "forward_dynamics")] == [True, False]

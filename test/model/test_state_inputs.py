"""States beside batches, empty batches, integers, bad quaternions, robots without coordinates: in every function."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.functions import functions
from support.robots import build, chain, inertia, random_state, random_states
from support.trees import random_tree

import rbd_ros as rbd
from rbd_ros.core.compiled.door import DOORS

SPECIALIZED_ALONE = {"forward_dynamics_time_derivatives"}    # whose doors lead nowhere for other models
MODEL = random_tree(11, ["revolute", "spherical", "prismatic", "floating", "universal"])
FUNCTIONS = functions(MODEL)
each_function = pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)


def test_no_function_is_left_out():
    public = {name for name in rbd.__all__ if inspect.isfunction(getattr(rbd, name))
              and list(inspect.signature(getattr(rbd, name)).parameters)[:2] == ["model", "q"]}
    missing = sorted(public - FUNCTIONS.keys())
    assert not missing, f"test/support/functions.py lacks {', '.join(missing)}: one line there for all tests below"


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() & DOORS.keys() - SPECIALIZED_ALONE))
def test_one_state_is_answered_by_its_door(name, monkeypatch):
    """A mistake in a door shows nowhere else: the validating path gives the same, in more time."""
    answers = []

    class Watched:
        def __init__(self, door):
            self._door = door

        def __call__(self, *inputs):
            answers.append(self._door(*inputs))
            return answers[-1]

    rooms = [vars(module) for at, module in list(sys.modules.items()) if at.startswith("rbd_ros.core")]
    places = {(id(names), key): (names, key) for names in rooms for key, item in names.items() if item is DOORS[name]}
    assert places
    for names, key in places.values():
        monkeypatch.setitem(names, key, Watched(DOORS[name]))
    FUNCTIONS[name](*random_state(MODEL, 2))
    assert len(answers) == 1 and answers[0] is not None, "do the arguments of the door fit the signature of the entry?"


@pytest.mark.parametrize("function", [rbd.inverse_dynamics_directional, rbd.forward_dynamics_directional])
def test_directions_that_were_looked_up_are_answered_at_once(function, monkeypatch):
    def closer(*arguments, **keywords):
        raise AssertionError("`_one_state` did not answer: do its arguments fit the signature of the entry?")

    monkeypatch.setitem(function.__globals__, "looked_at", closer)
    function(MODEL, *random_state(MODEL, 2), rbd.Tangents(MODEL, [rbd.Tangent(v=np.ones(MODEL.nv))]))


@each_function
def test_single_precision_and_integers(call):
    rounded = [x.astype(np.float32) for x in random_state(MODEL, 2)]
    np.testing.assert_array_equal(call(*rounded), call(*(x.astype(float) for x in rounded)))
    whole = [MODEL.neutral().astype(int), np.arange(MODEL.nv), np.arange(MODEL.nv)[::-1]]
    for same in (whole, [x.tolist() for x in whole], [x.astype(np.uint8) for x in whole], [map_int(x) for x in whole]):
        np.testing.assert_array_equal(call(*same), call(*(x.astype(float) for x in whole)))


def map_int(x):
    return [np.int32(entry) for entry in x]


@pytest.mark.parametrize("count", [1, 2, 5])
@each_function
def test_a_single_state_beside_a_batch_is_repeated(call, count):
    q, v, a = random_states(MODEL, count, 3)
    np.testing.assert_array_equal(call(q, v[0], a[0]), call(q, np.tile(v[0], (count, 1)), np.tile(a[0], (count, 1))))


@each_function
def test_an_empty_batch_gives_an_empty_result(call):
    state = [np.zeros((0, n)) for n in (MODEL.nq, MODEL.nv, MODEL.nv)]
    assert call(*state).shape == (0, *call(*random_states(MODEL, 1, 1)).shape[1:])


@each_function
def test_inputs_are_left_alone(call):
    state = random_states(MODEL, 2, 4)
    before = [x.copy() for x in state]
    call(*state)
    call(*(x[0] for x in state))
    for x, y in zip(state, before, strict=True):
        np.testing.assert_array_equal(x, y)


@each_function
def test_a_quaternion_of_length_two_is_refused_with_its_joint(call):
    q, v, a = random_state(MODEL, 6)
    joint = MODEL.joint("joint1")
    q[joint.idx_q:joint.idx_q + 4] *= 2.0
    for batch in (False, True):
        with pytest.raises(rbd.RbdError, match=r"joint1.*unit quaternion"):
            call(*((q[None], v[None], a[None]) if batch else (q, v, a)))


def test_batches_of_different_length_are_refused():
    q, v, a = random_states(MODEL, 3, 7)
    with pytest.raises(rbd.RbdError, match=r"q has 3.*v has 2"):
        rbd.inverse_dynamics(MODEL, q, v[:2], a)


def test_a_moderate_state_is_not_blamed_for_what_is_not_finite():
    q, v, a = random_state(MODEL, 9)
    with pytest.raises(rbd.RbdError, match=r"not be finite, though the state is not large \(q up to .*wrenches"):
        rbd.inverse_dynamics(MODEL, q, v, a, {"link4": np.full(6, 1.7e308)})


def test_a_bad_number_in_a_batch_is_found_with_its_joint():
    q, v, a = random_states(MODEL, 3, 8)
    at = MODEL.joint("joint2").idx_v
    v[2, at] = np.nan
    with pytest.raises(rbd.RbdError, match=rf"v\[2, {at}\] is nan \(joint 'joint2'\)"):
        rbd.inverse_dynamics(MODEL, q, v, a)


NOTHING_MOVES = {"no joints": build([], links={"base": inertia()}),
                 "a fixed tool": build([rbd.JointSpec("mount", "fixed", "base", "tool")]),
                 "all locked": chain("revolute", "prismatic", locked={"j0": 0.3, "j1": 0.2})}


@pytest.mark.parametrize("model", NOTHING_MOVES.values(), ids=NOTHING_MOVES)
@pytest.mark.parametrize("shape", [(), (3,), (1,), (0,)], ids=str)
def test_a_robot_without_coordinates(model, shape):
    # a view into NaNs: a kernel that reads where there is nothing to read would show it
    nb, none = len(model.body_names), np.full((*shape, 8), np.nan)[..., 4:4] if shape else np.full(8, np.nan)[4:4]
    wrench = {model.body_names[-1]: np.ones(6)}
    assert (model.nq, model.nv) == (0, 0)
    for wrenches in (None, wrench):
        assert rbd.inverse_dynamics(model, none, none, none, wrenches).shape == none.shape
        assert rbd.forward_dynamics(model, none, none, none, wrenches).shape == none.shape
        for found in (rbd.inverse_dynamics_derivatives(model, none, none, none, wrenches),
                      rbd.forward_dynamics_derivatives(model, none, none, none, wrenches),
                      rbd.hybrid_dynamics_derivatives(model, none, none, none, none, [], wrenches)):
            assert [part.shape for part in found] == [(*shape, 0, 0)] * 3
    assert rbd.bias_effort(model, none, none).shape == none.shape
    assert rbd.gravity_effort(model, none).shape == none.shape
    assert rbd.inertial_regressor(model, none, none, none).shape == (*shape, 0, 10 * nb)
    assert rbd.mass_matrix(model, none).shape == (*shape, 0, 0)
    assert rbd.jacobian(model, none, model.body_names[-1]).shape == (*shape, 6, 0)
    assert rbd.forward_kinematics(model, none).shape == (*shape, nb, 4, 4)
    assert not rbd.body_velocities(model, none, none).any()
    assert not rbd.body_accelerations(model, none, none, none).any()
    assert not rbd.kinetic_energy(model, none, none).any() and not rbd.potential_energy(model, none).any()
    assert not rbd.centroidal_momentum(model, none, none).any()
    assert model.integrate(none, none).shape == model.difference(none, none).shape == none.shape
    if shape != (0,):
        with pytest.raises(rbd.RbdError, match="mass"):
            rbd.center_of_mass(model, none)


def test_bytes_in_the_other_order_after_numbers_that_are_not_aligned():
    """numba keeps the types of unusual arrays by what it sees of them, which is not the order of their bytes."""
    code = """
import numpy as np, rbd_ros as rbd
model, x = rbd.sample("two_link"), np.array([0.3, -0.7])
odd = np.zeros(17, np.uint8)[1:].view(float)
odd[:] = x
fixed = odd.view()
fixed.flags.writeable = False
for given in (odd, fixed, x.astype(">f8"), odd.astype(">f8")):
    assert np.array_equal(rbd.inverse_dynamics(model, given, given, given), rbd.inverse_dynamics(model, x, x, x))
    assert np.array_equal(rbd.mass_matrix(model, given), rbd.mass_matrix(model, x))
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])

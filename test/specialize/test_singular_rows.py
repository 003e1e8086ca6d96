"""Batches with singular states: the row and the joint are named, the others are right, by own code and without."""
from __future__ import annotations

import pickle

import numpy as np
import pytest
from support.own_code import parts, states
from support.robots import build

import rbd_ros as rbd
from rbd_ros.core.compiled.kernel import COMPILED

WAYS = ("ordinary", "own code") if COMPILED else ("ordinary",)
SIZES = (1, 7, 8, 9)
RUBS = rbd.Friction(damping=np.array([0.3, 0.5, 0.2]), coulomb=np.array([0.1, 0.0, 0.4]))
CALLS = {
    "forward_dynamics": lambda m, q, v, a, tau: rbd.forward_dynamics(m, q, v, tau),
    "forward_dynamics_derivatives": lambda m, q, v, a, tau: rbd.forward_dynamics_derivatives(m, q, v, tau),
    "hybrid_dynamics": lambda m, q, v, a, tau: rbd.hybrid_dynamics(m, q, v, a, tau, ["slide"]),
    "hybrid_dynamics_derivatives": lambda m, q, v, a, tau: rbd.hybrid_dynamics_derivatives(m, q, v, a, tau, ["slide"]),
    "forward_dynamics_time_derivatives": lambda m, q, v, a, tau: rbd.forward_dynamics_time_derivatives(
        m, q, v, tau, a, a),
    "hybrid_dynamics with friction": lambda m, q, v, a, tau: rbd.hybrid_dynamics(
        m, q, v, a, tau, ["slide"], friction=RUBS),
    "forward_dynamics_derivatives with friction": lambda m, q, v, a, tau: rbd.forward_dynamics_derivatives(
        m, q, v, tau, friction=RUBS),
    "hybrid_dynamics_derivatives with friction": lambda m, q, v, a, tau: rbd.hybrid_dynamics_derivatives(
        m, q, v, a, tau, ["slide"], friction=RUBS),
    "forward_dynamics_directional": lambda m, q, v, a, tau: rbd.forward_dynamics_directional(
        m, q, v, tau, rbd.Tangent(q=a, v=tau, inertias={"mass": np.ones(10)})),
    "hybrid_dynamics_directional": lambda m, q, v, a, tau: rbd.hybrid_dynamics_directional(
        m, q, v, a, tau, ["slide"], rbd.Tangent(v=tau, a=tau, friction={"turn": {"damping": 1.0}}), friction=RUBS)}


def polar_arm(mimic=False):
    """A point mass on a radial slide turns about an axis: with radius 0 its inertia about that is none."""
    joints = [rbd.JointSpec("lift", "prismatic", "base", "column", axis=(0.0, 0.0, 1.0)),
              rbd.JointSpec("turn", "revolute", "column", "arm", axis=(0.0, 0.0, 1.0)),
              rbd.JointSpec("slide", "prismatic", "arm", "mass", axis=(1.0, 0.0, 0.0))]
    links = {"arm": rbd.Inertia.zero(), "mass": rbd.Inertia(2.0, np.zeros(3), np.zeros((3, 3)))}
    if mimic:
        joints += [rbd.JointSpec("second", "prismatic", "base", "other", axis=(0.0, 0.0, 1.0),
                                 mimic=("lift", 2.0, 0.0))]
    return build(joints, links)


@pytest.fixture(scope="module")
def polar():
    """The arm and the same with code of its own."""
    ordinary = polar_arm()
    return {"ordinary": ordinary, "own code": rbd.specialize(ordinary) if COMPILED else None}


def batch(model, count, singular=()):
    q, v, a, tau = states(model, "qvvv", count, seed=count)
    q[:, 2] = 0.3 + np.abs(q[:, 2])
    q[list(singular), 2] = 0.0
    return q, v, a, tau


def refused(call, model, given):
    with pytest.raises(rbd.SingularMassMatrix) as error:
        call(model, *given)
    return error.value


def check(error, call, model, given, singular, joint="turn"):
    """The error names the first row; its result is that of the regular states alone, and NaN in the others."""
    assert (error.row, error.joint, list(error.rows)) == (singular[0], joint, list(singular))
    assert f"in state {singular[0]}" in str(error) and (joint is None or f"joint '{joint}'" in str(error))
    count = len(given[0])
    others = np.setdiff1d(np.arange(count), singular)
    expected = call(model, *(x[others] for x in given))
    assert type(error.result) is type(expected)
    for found, right in zip(parts(error.result), parts(expected), strict=True):
        assert found.shape == (count, *right.shape[1:])
        assert np.isnan(found[list(singular)]).all()
        np.testing.assert_allclose(found[others], right, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CALLS)
def test_in_every_lane(name, way, polar):
    model, call = polar[way], CALLS[name]
    for count in SIZES:
        for row in range(count):
            given = batch(model, count, [row])
            check(refused(call, model, given), call, polar["ordinary"], given, [row])
    for rows in ([0, 8], [3, 4, 5], list(range(9))):
        given = batch(model, 9, rows)
        check(refused(call, model, given), call, polar["ordinary"], given, rows)
    empty = call(model, *batch(model, 0))    # none is none
    assert all(len(part) == 0 for part in parts(empty))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", [[0], [4999], [10_000], [1, 7, 8, 5000]])
@pytest.mark.parametrize("name", ["forward_dynamics", "hybrid_dynamics"])
def test_large_batches(name, rows, way, polar):
    given = batch(polar[way], 10_001, rows)
    check(refused(CALLS[name], polar[way], given), CALLS[name], polar["ordinary"], given, rows)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.skipif(not COMPILED, reason="needs numba")
def test_both_ways_say_the_same(name, polar):
    for rows in ([2], [0, 6], list(range(9))):
        given = batch(polar["ordinary"], 9, rows)
        one, other = (refused(CALLS[name], polar[way], given) for way in WAYS)
        assert str(one) == str(other)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CALLS)
def test_a_number_that_is_none_goes_first(name, way, polar):
    """It names its row, also in a batch with singular ones."""
    for singular in ([], [1], [7]):
        for row in (0, 4, 8):
            given = batch(polar[way], 9, singular)
            given[1][row, 1] = np.nan
            with pytest.raises(rbd.RbdError, match=rf"v\[{row}, 1\] is nan"):
                CALLS[name](polar[way], *given)


@pytest.mark.parametrize("way", WAYS)
def test_one_state_has_no_rows(way, polar):
    error = refused(CALLS["forward_dynamics"], polar[way], [x[0].copy() for x in batch(polar[way], 1, [0])])
    assert (error.joint, error.row, error.rows, error.result) == ("turn", None, None, None)
    assert "in state" not in str(error)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [name for name in CALLS if "derivatives" not in name or "time" in name])
def test_bodies_that_share_coordinates(name, way):
    """Whole matrices find no joint."""
    ordinary = polar_arm(mimic=True)
    model = ordinary if way == "ordinary" else rbd.specialize(ordinary)
    for rows in ([0], [4], [2, 8]):
        given = batch(model, 9, rows)
        check(refused(CALLS[name], model, given), CALLS[name], ordinary, given, rows, joint=None)


@pytest.mark.parametrize("name", [name for name in CALLS if "friction" not in name])
@pytest.mark.parametrize("each", ["one for all", "one per state"])
def test_wrenches_from_outside(name, each, polar):
    """They belong to their rows."""
    model, given = polar["ordinary"], batch(polar["ordinary"], 9, [3])
    wrench = np.random.default_rng(2).normal(size=(9, 6) if each == "one per state" else 6)
    full = np.zeros((9, len(model.body_names), 6))
    full[:, model.body_index("mass")] = wrench
    function = {"hybrid_dynamics": lambda *x, w: rbd.hybrid_dynamics(model, *x, ["slide"], w),
                "hybrid_dynamics_derivatives": lambda *x, w: rbd.hybrid_dynamics_derivatives(model, *x, ["slide"], w),
                "forward_dynamics_time_derivatives": lambda q, v, a, tau, w: rbd.forward_dynamics_time_derivatives(
                    model, q, v, tau, a, external_wrenches=[w, w]),
                "forward_dynamics_directional": lambda q, v, a, tau, w: rbd.forward_dynamics_directional(
                    model, q, v, tau, rbd.Tangent(v=a, external_wrenches=w), w),
                "hybrid_dynamics_directional": lambda q, v, a, tau, w: rbd.hybrid_dynamics_directional(
                    model, q, v, a, tau, ["slide"], rbd.Tangent(placements={"slide": np.ones(6)}), w)}.get(
        name, lambda q, v, a, tau, w: getattr(rbd, name)(model, q, v, tau, w))
    others = np.setdiff1d(np.arange(9), [3])
    part = {"mass": wrench[others] if wrench.ndim == 2 else wrench}
    expected = function(*(x[others] for x in given), w=part)
    for w in ({"mass": wrench}, full):
        with pytest.raises(rbd.SingularMassMatrix) as error:
            function(*given, w=w)
        for found, right in zip(parts(error.value.result), parts(expected), strict=True):
            np.testing.assert_allclose(found[others], right, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("way", WAYS)
def test_a_state_beyond_numbers_has_no_result_either(way, polar):
    given = batch(polar[way], 9, [5])
    given[3][2] = 1e300
    given[1][2] = 1e200
    error = refused(CALLS["forward_dynamics"], polar[way], given)
    assert error.row == 5 and list(error.rows) == [2, 5]
    given = batch(polar[way], 9)
    given[1][2] = 1e200
    with pytest.raises(rbd.RbdError, match="would not be finite") as other:
        CALLS["forward_dynamics"](polar[way], *given)
    assert not isinstance(other.value, rbd.SingularMassMatrix)


def test_it_goes_through_a_pipe(polar):
    error = refused(CALLS["hybrid_dynamics"], polar["ordinary"], batch(polar["ordinary"], 9, [5]))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.row, again.joint) == (str(error), error.row, error.joint)
    np.testing.assert_array_equal(again.result.acceleration, error.result.acceleration)


@pytest.mark.parametrize("bodies", [False, True])
@pytest.mark.parametrize("mimic", [False, True])
def test_several_directions(mimic, bodies):
    """Directions first, as in what is returned without a singular state."""
    model = polar_arm(mimic)
    q, v, a, tau = batch(model, 5, [1, 3])
    directions = [rbd.Tangent(v=a), rbd.Tangent(gravity=np.ones(3)), rbd.Tangent(tau=v)]
    for along in (directions, rbd.Tangents(model, directions)):
        with pytest.raises(rbd.SingularMassMatrix) as error:
            rbd.forward_dynamics_directional(model, q, v, tau, along, bodies=bodies)
        assert (error.value.row, list(error.value.rows)) == (1, [1, 3])
        for row in range(5):
            alone = [rbd.Tangent(v=a[row]), directions[1], rbd.Tangent(tau=v[row])]
            expected = np.nan if row in (1, 3) else rbd.forward_dynamics_directional(
                model, q[row], v[row], tau[row], alone)
            np.testing.assert_allclose(error.value.result[:, row], np.broadcast_to(expected, (3, model.nv)), rtol=1e-10)

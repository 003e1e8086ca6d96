"""Excitation: gradients against differences, limits at 1 kHz by plain inverse dynamics, and what it shows."""
from __future__ import annotations

import csv

import numpy as np
import pytest
import yaml
from support.recordings import perturbed, record

import rbd_ros as rbd
from rbd_ros.core.identification.base_parameters import structural_base
from rbd_ros.core.identification.excited.excitation_cost import Information, Penalty, Series
from rbd_ros.core.identification.regressor_columns import parameter_names
from rbd_ros.core.motion.places.plane_limit import Planes
from rbd_ros.core.motion.periodic_motion import PeriodicMotion

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
TWO = rbd.sample("two_link").with_(damping=0.3, friction=0.2)
LIMITS = rbd.MotionLimits(position_lower=-2.0, position_upper=2.5, velocity=3.0, acceleration=8.0, effort=25.0)


def test_cost_and_limits_have_the_gradients_of_differences():
    model = rbd.sample("iiwa").with_(damping=0.3, friction=0.2)
    base = structural_base(model, np.arange(len(parameter_names(model))))
    series = Series(4, 8.0, 40)
    rng = np.random.default_rng(0)
    x, d = rng.normal(size=(series.size, 7)), rng.normal(size=(series.size, 7))
    limits = rbd.MotionLimits(velocity=0.5, acceleration=0.5, effort=5.0).checked(model)
    planes = Planes(model, [rbd.PlaneLimit(name, (0.1, 0.2, 1.0), 0.4, (0.1, 0.0, 0.1)) for name in model.body_names])
    for cost in (Information(model, series, base.independent, np.ones(7)).cost,
                 Penalty(model, series, limits, Planes(model, ())).cost, Penalty(model, series, limits, planes).cost):
        value, slope = cost(x)[:2]
        h = 1e-5
        assert value != 0.0
        assert (cost(x + h * d)[0] - cost(x - h * d)[0]) / (2.0 * h) == pytest.approx(np.sum(slope * d), rel=2e-4)


def test_the_cost_is_the_log_determinant():
    base = structural_base(TWO, np.arange(len(parameter_names(TWO))))
    series = Series(3, 5.0, 60)
    information = Information(TWO, series, base.independent, np.array([1.0, 2.0]))
    x = np.random.default_rng(1).normal(size=(series.size, 2))
    W = information.regressor(x, 0.1).reshape(-1, base.rank)
    assert information.cost(x)[2] == pytest.approx(np.linalg.slogdet(W.T @ W)[1], abs=1e-5)


@pytest.fixture(scope="module")
def found():
    return rbd.excitation(TWO, 30.0, limits=LIMITS, seconds=6.0)


def test_limits_are_kept_at_one_kilohertz(found):
    t = np.arange(0.0, found.duration, 1e-3)
    q, v, a = found(t)[:3]
    tau = rbd.inverse_dynamics(TWO, q, v, a) + rbd.friction_effort(TWO, v)
    assert q.min() >= -2.0 and q.max() <= 2.5 and found.good
    for values, limit in ((v, 3.0), (a, 8.0), (tau, 25.0)):
        assert np.abs(values).max() <= limit * (1.0 + 1e-9)
    assert max(usage.ratio for usage in found.usage.values()) > 0.8    # and made use of


def test_it_begins_ends_and_repeats_at_rest(found):
    assert found.periods == 2
    for t in (0.0, 15.0, 30.0):
        assert np.abs(found(t).v).max() < 1e-9 and np.abs(found(t).a).max() < 1e-8
        np.testing.assert_allclose(found(t).q, found(0.0).q, atol=1e-9)
    assert not found(31.0).v.any() and not found(-1.0).a.any()
    h = 1e-5
    np.testing.assert_allclose((found(7.0 + h).q - found(7.0 - h).q) / (2.0 * h), found(7.0).v, atol=1e-7)
    np.testing.assert_allclose((found(7.0 + h).v - found(7.0 - h).v) / (2.0 * h), found(7.0).a, atol=1e-6)


def test_it_shows_more_than_a_random_motion_within_the_same_limits(found):
    base = structural_base(TWO, np.arange(len(parameter_names(TWO))))

    def log_det(motion):
        t = np.linspace(0.0, motion.period, 400)
        q, v, a = motion(t)[:3]
        Y = [np.column_stack([rbd.inertial_regressor(TWO, *state), np.diag(state[2]), np.diag(state[1]),
                              np.diag(np.tanh(state[1] / 0.02)), np.eye(2)]) for state in zip(q, v, a, strict=True)]
        W = np.concatenate(Y)[:, base.independent]
        return np.linalg.slogdet(W.T @ W)[1]

    rng = np.random.default_rng(0)
    others = []
    for _ in range(20):
        c = rng.normal(size=found.motion.coefficients.shape)
        motion = PeriodicMotion(c, found.motion.period)
        q, v, a = motion(np.linspace(0.0, motion.period, 500))[:3]
        share = max(np.abs(q).max() / 2.0, np.abs(v).max() / 3.0, np.abs(a).max() / 8.0)
        others.append(log_det(PeriodicMotion(c / share, found.motion.period)))
    assert log_det(found.motion) > max(others)


def test_what_it_shows_is_identified(found):
    truth = perturbed(TWO, 4)
    result = rbd.identify(TWO, record(truth, found.motion))
    assert not result.unidentifiable and result.residual.overall < 0.01
    assert found.condition < 15.0


def test_planes_are_kept_out():
    iiwa = rbd.sample("iiwa")
    floor = [rbd.PlaneLimit(name, (0.0, 0.0, 1.0), 0.4) for name in iiwa.body_names[4:]]
    wall = rbd.PlaneLimit(iiwa.body_names[-1], (-1.0, 0.0, 0.0), -0.3, (0.0, 0.0, 0.1), "tip")
    found = rbd.excitation(iiwa, 10.0, planes=[*floor, wall], seconds=6.0)
    poses = rbd.forward_kinematics(iiwa, found(np.arange(0.0, 10.0, 2e-3)).q)
    assert poses[:, 4:, 2, 3].min() >= 0.4 and (poses[:, -1, 0] @ [0.0, 0.0, 0.1, 1.0]).max() <= 0.3
    assert found.good and 0.9 < found.usage["clearance"].ratio <= 1.0 and np.ptp(poses[:, -1, 2, 3]) > 0.1


def test_trajectories_are_written_as_drivers_take_them(found, tmp_path):
    found.motion.write_trajectory(tmp_path / "a.yaml", TWO.velocity_names, rate=5.0)
    message = yaml.safe_load((tmp_path / "a.yaml").read_text())
    assert message["joint_names"] == list(TWO.velocity_names) and len(message["points"]) == 151
    point = message["points"][123]
    t = point["time_from_start"]["sec"] + 1e-9 * point["time_from_start"]["nanosec"]
    for name, values in zip(("positions", "velocities", "accelerations"), found(t), strict=False):
        np.testing.assert_allclose(point[name], values, atol=1e-6)
    found.motion.write_trajectory(tmp_path / "a.csv", TWO.velocity_names, rate=5.0)
    rows = list(csv.reader((tmp_path / "a.csv").open()))
    assert rows[0][:2] == ["t", f"q_{TWO.velocity_names[0]}"] and len(rows) == 152
    with pytest.raises(rbd.RbdError, match="cannot write"):
        found.motion.write_trajectory(tmp_path / "none" / "a.yaml", TWO.velocity_names)


@pytest.mark.parametrize("given, words", [
    ({"duration": 0.0}, "duration"), ({"harmonics": 1}, "harmonics"), ({"seconds": -1.0}, "seconds"),
    ({"period": "x"}, "period"), ({"limits": rbd.MotionLimits(effort=0.01), "seconds": 0.5}, "no motion within"),
    ({"limits": rbd.MotionLimits(velocity=[1.0, np.inf], effort=[np.inf, np.inf])}, "joint 'elbow' has no limit of")])
def test_wrong_input_is_a_clear_error(given, words):
    with pytest.raises(rbd.RbdError, match=words):
        rbd.excitation(TWO, **{"duration": 5.0, **given})


def test_floating_roots_are_refused():
    with pytest.raises(rbd.RbdError, match="excitation"):
        rbd.excitation(rbd.sample("biped", root="floating"), 5.0)

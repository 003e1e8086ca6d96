"""Loads that are known: exactly without noise, within their intervals with noise, and nothing that was not shown."""
from __future__ import annotations

import dataclasses
from contextlib import suppress
from functools import cache

import numpy as np
import pytest
from support.recordings import periodic, perturbed, record

import rbd_ros as rbd
from rbd_ros.core.derivatives.regressor import PARAMETERS
from rbd_ros.core.estimation.payload_estimator import FilteredRows
from rbd_ros.core.identification.consistency import is_consistent, parameters_of_pseudo_inertia

IIWA = rbd.sample("iiwa")
TWO = rbd.sample("two_link")
TIP = IIWA.body_names[-1]


def random_load(rng):
    points = rng.normal(scale=0.05, size=(8, 3)) + rng.normal(scale=0.05, size=3)
    mass = rng.uniform(0.5, 4.0)
    com = points.mean(axis=0)
    spread = (points - com).T @ (points - com) * mass / 8
    return rbd.Inertia(mass, com, np.trace(spread) * np.eye(3) - spread)


def ten(load):
    m, c = load.mass, np.asarray(load.com)
    second = 0.5 * np.trace(load.matrix) * np.eye(3) - load.matrix + m * np.outer(c, c)
    P = np.zeros((4, 4))
    P[:3, :3], P[:3, 3], P[3, :3], P[3, 3] = second, m * c, m * c, m
    return parameters_of_pseudo_inertia(P)


def fed(load, seed=0, seconds=4.0, rate=200.0, noise=0.0, correlated=0.0, still=False, **options):
    """An estimator after a moderate motion with this load."""
    rng = np.random.default_rng((seed, 5))
    truth = IIWA.with_payload(TIP, load)
    estimator = rbd.PayloadEstimator(IIWA, TIP, **options)
    t = np.arange(0.0, seconds, 1.0 / rate)
    q, v, a = periodic(IIWA, seed, period=4.0)(t)[:3]
    if still:
        q, v, a = np.repeat(q[::len(q) // 5][:5], len(q) // 5, axis=0), np.zeros_like(v), np.zeros_like(a)
    tau = rbd.inverse_dynamics(truth, q, v, a, friction=options.get("friction")) if len(q) == len(v) else \
        rbd.inverse_dynamics(truth, q, v[:len(q)], a[:len(q)])
    error = np.zeros(7)
    for k in range(len(q)):
        error = correlated * error + np.sqrt(1.0 - correlated**2) * noise * rng.normal(size=7)
        estimator.update(t[k], q[k], v[k], a[k], tau[k] + error)
    return estimator


def test_without_noise_it_is_the_load():
    for seed in range(3):
        load = random_load(np.random.default_rng(seed))
        found = fed(load, seed, seconds=1.0)
        assert found.observed.all() and (found.confidence < 1e-4).all()
        np.testing.assert_allclose(found.parameters, ten(load), atol=1e-8)
        assert found.mass == pytest.approx(load.mass) and np.allclose(found.com, load.com, atol=1e-8)
        np.testing.assert_allclose(found.inertia, load.matrix, atol=1e-8)
        assert found.load.mass == pytest.approx(load.mass, rel=1e-4)
        np.testing.assert_allclose(found.load.com, load.com, atol=1e-4)


def test_rounding_is_no_noise():
    """Last bits of what is fed, which differ between machines, change neither what is observed nor the intervals."""
    t = np.arange(0.0, 1.0, 0.005)
    for seed in range(10):
        load = random_load(np.random.default_rng(seed))
        exact = periodic(IIWA, seed, period=4.0)(t)[:3]
        exact = (*exact, rbd.inverse_dynamics(IIWA.with_payload(TIP, load), *exact))
        widths = []
        for other in range(3):
            rng, estimator = np.random.default_rng((seed, other)), rbd.PayloadEstimator(IIWA, TIP)
            rows = [x * (1.0 + np.finfo(float).eps * rng.integers(-1, 2, size=x.shape) * (other > 0)) for x in exact]
            for k in range(len(t)):
                estimator.update(t[k], *(x[k] for x in rows))
            assert estimator.observed.all()
            widths.append(estimator.confidence)
        np.testing.assert_allclose(widths, np.tile(widths[0], (3, 1)), rtol=0.02)


@pytest.mark.parametrize(("correlated", "seeds"), [
    (0.0, 15), *(pytest.param(correlated, 40, marks=pytest.mark.thorough) for correlated in (0.0, 0.9))])
def test_intervals_hold_the_truth(correlated, seeds):
    inside = []
    for seed in range(seeds):
        load = random_load(np.random.default_rng(seed))
        found = fed(load, seed, rate=100.0, noise=0.5, correlated=correlated)
        inside.append(np.abs(found._fit[0] - ten(load)) <= found.confidence)
        assert abs(found.mass - load.mass) < 0.03 * max(load.mass, 1.0) and is_consistent(ten(found.load))
    assert 0.88 < np.mean(inside) < 0.985


def test_poses_show_mass_and_moments_and_no_inertia():
    load = random_load(np.random.default_rng(4))
    found = fed(load, still=True, noise=0.05)
    assert found.observed[:4].all() and not found.observed[4:].any()
    assert found.mass == pytest.approx(load.mass, rel=0.02)
    np.testing.assert_allclose(found.com, load.com, atol=0.01)
    assert np.isnan(found.inertia).all() and np.isinf(found.confidence[4:]).all()
    assert is_consistent(ten(found.load)) and found.load.mass == pytest.approx(load.mass, rel=0.03)


def test_one_pose_does_not_show_the_mass():
    load = random_load(np.random.default_rng(5))
    truth, estimator = IIWA.with_payload(TIP, load), rbd.PayloadEstimator(IIWA, TIP)
    q, zero = IIWA.random_configuration(0), np.zeros(7)
    for k in range(100):
        estimator.update(0.01 * k, q, zero, zero, rbd.gravity_effort(truth, q))
    assert not estimator.observed[1:].all() and not estimator.observed[4:].any() and np.isnan(estimator.com).any()


def test_nothing_is_known_before_it_moves():
    estimator = rbd.PayloadEstimator(IIWA, TIP)
    assert not estimator.observed.any() and np.isnan(estimator.mass) and np.isinf(estimator.confidence).all()
    assert is_consistent(ten(estimator.load))
    found = fed(random_load(np.random.default_rng(0)), seconds=0.5)
    assert found.observed.any()
    found.reset()
    assert not found.observed.any()


def test_contact_is_left_out_and_a_new_load_replaces_a_forgotten_one():
    rng = np.random.default_rng(6)
    first, second = random_load(rng), random_load(rng)
    estimator = rbd.PayloadEstimator(IIWA, TIP, memory=0.3)
    t = np.arange(0.0, 7.0, 0.005)
    q, v, a = periodic(IIWA, 1, period=4.0)(t)[:3]
    with_first, with_second = (rbd.inverse_dynamics(IIWA.with_payload(TIP, load), q, v, a) for load in (first, second))
    tau = np.where(t[:, None] < 2.0, with_first, with_second)
    for k in range(len(t)):
        pushed = 1.0 < t[k] < 2.0
        estimator.update(t[k], q[k], v[k], a[k], tau[k] + 30.0 * pushed, contact=pushed)
        if min(abs(t[k] - 0.9), abs(t[k] - 1.95)) < 1e-6:    # before the contact and in it
            assert estimator.mass == pytest.approx(first.mass, rel=1e-6)
    assert estimator.mass == pytest.approx(second.mass, rel=1e-2)


def test_friction_is_taken_off():
    load = random_load(np.random.default_rng(7))
    for law in (rbd.Friction(damping=2.0, coulomb=3.0), rbd.Friction(2.0, 3.0, asymmetry=0.5, load=0.2)):
        assert fed(load, seconds=1.0, friction=law).mass == pytest.approx(load.mass, rel=1e-6)


@pytest.mark.parametrize(("wrong", "words"), [
    ({"t": 0.0}, "later"), ({"t": np.nan}, "later"), ({"t": "now"}, "later"), ({"q": np.zeros(6)}, "q"),
    ({"tau": np.full(7, np.nan)}, "tau"), ({"a": np.full(7, np.inf)}, "a"), ({"q": np.zeros((2, 7))}, "one state"),
    ({"v": np.full(7, 1e200)}, "overflow|large"), ({"tau": np.full(7, 1e200)}, "overflow")])
def test_wrong_samples_change_nothing(wrong, words):
    estimators = [fed(random_load(np.random.default_rng(0)), seconds=0.5) for _ in range(2)]
    sample = {"t": 10.0, "q": np.zeros(7), "v": np.zeros(7), "a": np.zeros(7), "tau": np.zeros(7), **wrong}
    with pytest.raises(rbd.RbdError, match=words):
        estimators[0].update(**sample)
    np.testing.assert_array_equal(*(one.parameters for one in estimators))


def test_wrong_estimators():
    for arguments, words in (((IIWA, "no"), "no"), ((None, TIP), "model"), ((IIWA, TIP, None, -1.0), "memory")):
        with pytest.raises(rbd.RbdError, match=words):
            rbd.PayloadEstimator(*arguments)


class Moving:
    """States of a control loop at 1 kHz on an arm with a load that may change."""

    def __init__(self, seed, rate=1000.0):
        self.truth, self.h, self.k, self.rng = IIWA, 1.0 / rate, 0, np.random.default_rng((seed, 9))
        self.motion = periodic(IIWA, seed, period=4.0)
        self.push, self.before = np.zeros(7), None

    def feed(self, estimator, seconds, noise=0.0, speed_noise=0.0, friction=None):
        """Returns for each state whether it was taken for one of a contact."""
        touching, count = [], round(seconds / self.h)
        t = self.h * np.arange(self.k, self.k + count)
        q, v, a = self.motion(t % 4.0)[:3]
        noises = self.rng.normal(size=(count, 2, 7))
        tau = rbd.inverse_dynamics(self.truth, q, v, a, friction=friction) - self.push + noise * noises[:, 0]
        v = v + speed_noise * noises[:, 1]
        for k in range(count):
            mean = tau[k] if self.before is None else 0.5 * (tau[k] + self.before)
            estimator.update(t[k], q[k], v[k], None, mean)
            touching.append(estimator.touching)
            self.before = tau[k]
        self.k += count
        return np.array(touching)


def test_without_accelerations_it_is_the_load():
    for seed in range(2):
        load = random_load(np.random.default_rng(seed))
        moving, estimator = Moving(seed), rbd.PayloadEstimator(IIWA, TIP)
        moving.truth = IIWA.with_payload(TIP, load)
        moving.feed(estimator, 2.5)
        assert estimator.observed.all()
        np.testing.assert_allclose(estimator.parameters, ten(load), atol=3e-4 * load.mass)


def test_rows_of_the_filter_are_those_of_accelerations_behind_it():
    """A first-order filter of the regressor, integrated by hand; from rest, after some time constants."""
    gain, h = 5.0, 1e-3
    rows = FilteredRows(IIWA, TIP, None, gain)
    motion = periodic(IIWA, 3, period=4.0)
    first = PARAMETERS * IIWA.body_index(TIP)
    q, v, a = motion(h * np.arange(1501))[:3]
    Y = rbd.inertial_regressor(IIWA, q, v, a)[:, :, first:first + PARAMETERS]
    rows.reset(0.0, q[0], v[0])
    expected, share = np.zeros_like(Y[0]), -np.expm1(-gain * h)
    for k in range(1, len(q)):
        found, uncertain = rows.update(h * k, q[k], v[k], np.zeros(7))
        expected += share * (0.5 * (Y[k] + Y[k - 1]) - expected)
    assert not uncertain.any()
    np.testing.assert_allclose(found[:, :PARAMETERS], expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("speed_noise", [0.0, 0.01])
def test_intervals_without_accelerations(speed_noise):
    inside = []
    for seed in range(4):
        load = random_load(np.random.default_rng(seed))
        moving, estimator = Moving(seed, 250.0), rbd.PayloadEstimator(IIWA, TIP)
        moving.truth = IIWA.with_payload(TIP, load)
        moving.feed(estimator, 4.0, noise=0.5, speed_noise=speed_noise)
        inside.append(np.abs(estimator._fit[0] - ten(load)) <= estimator.confidence)
        assert abs(estimator.mass / load.mass - 1.0) < 0.01
        assert np.linalg.norm(estimator.com - load.com) < 5e-3
    assert np.mean(inside) > 0.8


def test_joints_near_rest_do_not_count():
    """Friction that acts in full at rest, where the law has none, is no load."""
    law = rbd.Friction(coulomb=5.0)
    load = random_load(np.random.default_rng(3))
    truth, t = IIWA.with_payload(TIP, load), 0.004 * np.arange(900)
    q, v, a = periodic(IIWA, 3, period=4.0)(t)[:3]
    q[:, 1], v[:, 1], a[:, 1] = q[0, 1], 0.0, 0.0
    tau = rbd.inverse_dynamics(truth, q, v, a, friction=law)
    tau[:, 1] = 1e3
    for given in (True, False):
        estimator = rbd.PayloadEstimator(IIWA, TIP, law)
        for k in range(900):
            estimator.update(t[k], q[k], v[k], a[k] if given else None, tau[k])
        assert estimator._count[1] == 0.0 and estimator._count[3] > 10.0
        assert estimator.mass == pytest.approx(load.mass, rel=0.02)


def test_a_push_is_left_out_and_another_load_is_found():
    first, second = random_load(np.random.default_rng(0)), random_load(np.random.default_rng(1))
    moving, estimator = Moving(0, 250.0), rbd.PayloadEstimator(IIWA, TIP, threshold=2.0)
    moving.truth = IIWA.with_payload(TIP, first)
    assert not moving.feed(estimator, 4.0, noise=0.2).any()
    was, width = estimator.mass, estimator.confidence
    assert was == pytest.approx(first.mass, rel=0.01)
    moving.push = np.array([0.0, 12.0, 0.0, -8.0, 0.0, 3.0, 0.0])
    touching = moving.feed(estimator, 1.5, noise=0.2)
    assert touching[-200:].all() and not touching[:2].any()
    assert abs(estimator.mass - was) < 2.0 * width[0]    # it holds, but for what came before the push was seen
    moving.push = np.zeros(7)
    assert not moving.feed(estimator, 1.5, noise=0.2)[-100:].any()
    assert estimator.mass == pytest.approx(first.mass, rel=0.01)
    moving.truth = IIWA.with_payload(TIP, second)
    touching = moving.feed(estimator, 8.0, noise=0.2)
    assert touching.any() and not touching[-500:].any()
    assert estimator.mass == pytest.approx(second.mass, rel=0.01)


def test_what_it_refuses():
    with pytest.raises(rbd.RbdError, match="threshold"):
        rbd.PayloadEstimator(IIWA, TIP, threshold=[1.0, 2.0])
    for options in ({"gain": 0.0}, {"patience": -1.0}, {"memory": 0.0}):
        with pytest.raises(rbd.RbdError, match=next(iter(options))):
            rbd.PayloadEstimator(IIWA, TIP, **options)
    estimator, zero = rbd.PayloadEstimator(IIWA, TIP), np.zeros(7)
    for k in range(3):
        estimator.update(0.01 * k, zero, zero, None, zero)
    with pytest.raises(rbd.RbdError, match="later"):
        estimator.update(0.02, zero, zero, None, zero)
    with pytest.raises(rbd.RbdError, match="finite"):
        estimator.update(0.03, zero, np.full(7, np.nan), None, zero)
    estimator.update(5.0, zero, zero, None, zero)    # after a gap the filter begins anew
    estimator.update(5.01, zero, zero, None, zero)
    assert not estimator.observed.any()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough),
                                  pytest.param(3, marks=pytest.mark.thorough)])
def test_it_comes_back_from_anything(seed):
    """Pushes, loads that change much or a little, lost states, efforts that overflow: after 12 s of motion nothing is
    in doubt, and the load found differs from the one carried by less than the threshold in any pose.
    """
    rng = np.random.default_rng(seed)
    moving, estimator = Moving(seed, 100.0), rbd.PayloadEstimator(IIWA, TIP, memory=20.0, threshold=2.0)
    load = random_load(rng)
    moving.truth = IIWA.with_payload(TIP, load)
    moving.feed(estimator, 6.0, noise=0.2)
    for event in rng.permutation(["push", "load", "more", "more", "gap", "overflow"]):
        if event == "push":
            moving.push = 10.0 * rng.normal(size=7)
            moving.feed(estimator, rng.uniform(0.2, 3.0), noise=0.2)
            moving.push = np.zeros(7)
        elif event == "load":
            load = random_load(rng)
        elif event == "more":
            load = rbd.Inertia(load.mass + rng.uniform(0.15, 0.3), load.com, load.matrix)
        elif event == "gap":
            moving.k, moving.before = moving.k + rng.integers(1, 300), None
            estimator.gap()
        else:
            for state in ((1e49, 0.0), (0.0, 1e49)):
                with suppress(rbd.RbdError):
                    estimator.update(moving.h * moving.k, np.zeros(7), np.full(7, state[0]), None, np.full(7, state[1]))
                moving.k += 1
        moving.truth = IIWA.with_payload(TIP, load)
        moving.feed(estimator, 12.0, noise=0.2)
        assert not estimator.doubtful and estimator.observed[:4].all(), event
        found = IIWA.with_payload(TIP, estimator.load)
        for q in (IIWA.random_configuration(k) for k in range(5)):
            assert np.abs(rbd.gravity_effort(found, q) - rbd.gravity_effort(moving.truth, q)).max() < 2.0, event


def test_a_load_that_is_a_little_different_is_found():
    """It is felt in some poses only, never for as long as the patience."""
    moving, estimator = Moving(0, 100.0), rbd.PayloadEstimator(IIWA, TIP, threshold=2.0)
    load = rbd.Inertia(0.8, np.array([0.02, 0.0, 0.05]), 2e-3 * np.eye(3))
    for mass in (0.8, 1.0):
        moving.truth = IIWA.with_payload(TIP, rbd.Inertia(mass, load.com, load.matrix))
        touching = moving.feed(estimator, 12.0, noise=0.2)
    assert touching.any() and not touching[-300:].any() and not estimator.doubtful
    assert estimator.mass == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("given", [True, False])
def test_what_is_put_down_at_rest_leaves_a_doubt(given):
    """As far as friction at rest is not as much; and the estimate holds."""
    law = rbd.Friction(damping=1.0, coulomb=1.0)
    load = rbd.Inertia(3.0, np.array([0.02, 0.0, 0.05]), 2e-3 * np.eye(3))
    moving, estimator = Moving(0, 100.0), rbd.PayloadEstimator(IIWA, TIP, law, threshold=2.0)
    moving.truth = IIWA.with_payload(TIP, load)
    moving.feed(estimator, 4.0, friction=law)
    q, zero, mass = moving.motion(np.zeros(1)).q[0], np.zeros(7), estimator.mass
    estimator.gap()
    for truth, doubt in ((moving.truth, False), (IIWA, True)):
        for _ in range(120):
            moving.k += 1
            effort = rbd.gravity_effort(truth, q) + 0.9 * (-1.0) ** np.arange(7)    # it sticks
            estimator.update(moving.h * moving.k, q, zero, zero if given else None, effort)
        assert estimator.touching == estimator.doubtful == doubt
    assert estimator.mass == mass and mass == pytest.approx(3.0, rel=0.01)


def test_exact_efforts_of_one_joint_alone():
    """The equations are singular, in exact numbers: an arm without weight that turns its last joint."""
    estimator = rbd.PayloadEstimator(IIWA.with_(gravity=np.zeros(3)), TIP, threshold=1.0)
    for k in range(600):
        last = np.eye(7)[6]
        estimator.update(0.004 * k, 0.004 * k * last, last, None, np.zeros(7))
    assert not estimator.touching and not estimator.observed[0]


def test_a_law_of_load_alone_lets_joints_in_motion_count():
    law = rbd.Friction(load=0.2)
    found = rbd.PayloadEstimator(IIWA, TIP, law)
    moving, load = Moving(0, 100.0), rbd.Inertia(2.0, np.zeros(3), 2e-3 * np.eye(3))
    moving.truth = IIWA.with_payload(TIP, load)
    moving.feed(found, 4.0, friction=law)
    assert found.mass == pytest.approx(2.0, rel=0.02)


@cache
def identified():
    motion = periodic(TWO, 0, period=10.0, reach=0.5)
    return rbd.identify(TWO, record(TWO, motion, 0, noise=0.3))


def with_errors(deviation, wrong, given, noise=0.3):
    """An estimator of efforts that errors `wrong` (p,) of the arm's parameters change, if by its identification these
    are one random number times `deviation` (p,); accelerations given or not.
    """
    rng, errors = np.random.default_rng(0), identified().parameter_errors.of_model
    found = dataclasses.replace(identified(), covariance=deviation[:, None] * deviation)
    h = 0.01 if given else 0.002
    t = np.arange(0.0, 8.0, h)
    q, v, a = periodic(TWO, 3, period=4.0)(t % 4.0)[:3]
    load = rbd.Inertia(2.0, np.array([0.05, 0.0, -0.1]), 2e-3 * np.eye(3))
    effect = errors.rows(q, v, a) @ wrong[np.isin(identified().parameter_errors.names, errors.names)]
    tau = rbd.inverse_dynamics(TWO.with_payload("lower", load), q, v, a) + effect + noise * rng.normal(size=q.shape)
    estimator = rbd.PayloadEstimator(TWO, "lower", identification=found)
    for k in range(1, len(t)):
        mean = tau[k] if given else 0.5 * (tau[k - 1] + tau[k])
        estimator.update(t[k], q[k], v[k], a[k] if given else None, mean)
    return estimator


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2))])
def test_intervals_count_the_arm_by_what_its_errors_do_to_the_estimate(given, seed):
    """With errors of rank one, along any direction: the difference of two estimates, with this error and without."""
    p = len(identified().base.independent)
    direction = 1e-4 * np.random.default_rng(seed).normal(size=p)
    direction[[name.startswith("offset") for name in identified().parameter_errors.names]] = 0.0
    exact, off = (with_errors(1e3 * direction, wrong, given) for wrong in (np.zeros(p), direction))
    alone = with_errors(0.0 * direction, np.zeros(p), given)
    seen = np.isfinite(alone.confidence)
    assert seen.any() and (np.isfinite(exact.confidence) == seen).all()
    added = np.sqrt(exact.confidence[seen] ** 2 - alone.confidence[seen] ** 2) / 1.959964
    moved = 1e3 * np.abs(off._fit[0] - exact._fit[0])[seen]
    np.testing.assert_allclose(added, moved, rtol=0.02 if given else 0.15, atol=0.02 * moved.max())
    np.testing.assert_array_equal(exact._fit[0], alone._fit[0])    # they widen intervals alone


@pytest.mark.parametrize("seeds", [4, pytest.param(12, marks=pytest.mark.thorough)])
def test_intervals_of_identified_arms_hold_the_load(seeds):
    """Of arms that are each identified from a noisy recording; without what these know of their errors they do not."""
    known, ignored = [], []
    for seed in range(seeds):
        arm = perturbed(TWO, seed)
        found = rbd.identify(TWO, record(arm, periodic(TWO, seed, period=10.0, reach=0.5), seed, noise=0.5))
        load, t = rbd.Inertia(1.0, np.array([0.05, 0.0, -0.1]), 2e-3 * np.eye(3)), np.arange(0.0, 8.0, 0.01)
        q, v, a = periodic(TWO, 100 + seed, period=4.0, reach=0.5)(t % 4.0)[:3]
        tau = rbd.inverse_dynamics(arm.with_payload("lower", load), q, v, a) + rbd.friction_effort(arm, v)
        tau = tau + 0.05 * np.random.default_rng((seed, 8)).normal(size=q.shape)
        for inside, identification in ((known, found), (ignored, None)):
            estimator = rbd.PayloadEstimator(found.model, "lower", found.friction, identification=identification)
            for k in range(len(t)):
                estimator.update(t[k], q[k], v[k], a[k], tau[k])
            seen = np.isfinite(estimator.confidence)
            inside += (np.abs(estimator._fit[0] - ten(load)) <= estimator.confidence)[seen].tolist()
    assert np.mean(known) > 0.85 and np.mean(ignored) < 0.5


def test_what_the_recording_did_not_determine_leaves_the_load_unknown():
    p = len(identified().base.independent)
    estimator = with_errors(np.full(p, np.inf), np.zeros(p), True)
    assert not estimator.observed.any()


def test_wrong_identifications():
    with pytest.raises(rbd.RbdError, match=r"identification: expected the result of rbd.identify"):
        rbd.PayloadEstimator(TWO, "lower", identification="arm.yaml")
    with pytest.raises(rbd.RbdError, match="another robot"):
        rbd.PayloadEstimator(IIWA, TIP, identification=identified())
    one, other = (rbd.PayloadEstimator(TWO, "lower", identification=x) for x in (None, identified()))
    assert not one.same_as(other) and other.same_as(other)

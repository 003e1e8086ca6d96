"""Identification from poses: the motion within its limits, and gravity, zero offsets and mounting of a known truth."""
from __future__ import annotations

import numpy as np
import pytest
from support.collisions import arm
from support.recordings import perturbed

import rbd_ros as rbd
from rbd_ros.core.identification.zeros import tilt_axes, turned

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
TWO = rbd.sample("two_link")
IIWA = rbd.sample("iiwa")
# of slow motions a low cutoff leaves what is searched for, in a fifth of the samples; as they come: thorough
BRIEF = {"delay": 0.0, "cutoff": 1.0}
AS_THEY_COME = [pytest.param(seed, {}, marks=pytest.mark.thorough) for seed in range(4)]


@pytest.fixture(scope="module")
def slow():
    return rbd.excitation_poses(IIWA, 12, seed=2)


def test_the_motion_keeps_its_limits_and_passes_each_pose_in_both_directions(slow):
    t = np.linspace(0.0, slow.duration, 20_001)
    q, v, a, *_ = slow(t)
    low, high = (np.array([getattr(joint, name) for joint in IIWA.joints]).ravel() for name in ("lower", "upper"))
    assert (q >= low).all() and (q <= high).all() and np.abs(v).max() <= 0.3 + 1e-12 and np.abs(a).max() < 1.0
    effort = rbd.inverse_dynamics(IIWA, q, v, a)
    assert (np.abs(effort) <= IIWA.effort_limit).all()
    for pose in slow.poses:
        near = np.abs(q - pose).max(axis=1) < 2e-3
        assert near.any() and np.abs(v[near]).max() <= 0.05 + 1e-9
        assert (v[near] > 0.0).any(axis=0).all() and (v[near] < 0.0).any(axis=0).all()
    np.testing.assert_allclose(slow(0.0).v, 0.0)


def test_chosen_poses_show_more_than_random_ones(slow):
    from rbd_ros.core.identification.excited.poses import static_columns

    rng = np.random.default_rng(0)
    random = [np.array([IIWA.random_configuration(rng) for _ in range(12)]) for _ in range(20)]
    q = np.concatenate([slow.poses, *random])
    columns, rank = static_columns(IIWA, q, 1.0 / IIWA.effort_limit)
    X = columns.reshape(21, -1, columns.shape[-1])
    X = X / np.where(X.any(axis=(0, 1)), np.sqrt(np.mean(X**2, axis=(0, 1))), 1.0)
    log_dets = np.linalg.slogdet(np.einsum("kni,knj->kij", X, X) + 1e-8 * np.eye(X.shape[-1]))[1]
    assert log_dets[0] > log_dets[1:].max() + 3.0
    assert rank == slow.rank == np.linalg.matrix_rank(X[-1, :, :rank], tol=1e-9 * np.linalg.norm(X[-1]))


def test_the_order_is_short(slow):
    rng = np.random.default_rng(1)

    def length(poses):
        return np.abs(np.diff(poses, axis=0)).max(axis=1).sum()

    assert length(slow.poses) < 0.9 * min(length(rng.permutation(slow.poses)) for _ in range(50))


def test_planes_hold_between_poses_too():
    floor = rbd.PlaneLimit(IIWA.body_names[-1], (0.0, 0.0, 1.0), 0.4)
    slow = rbd.excitation_poses(IIWA, 8, planes=[floor])
    q = slow(np.linspace(0.0, slow.duration, 3000)).q
    assert rbd.forward_kinematics(IIWA, q)[:, -1, 2, 3].min() > 0.4 - 5e-3


@pytest.mark.parametrize(("arguments", "words"), [
    ({"count": 2}, "count"), ({"count": 5.0}, "count"), ({"count": True}, "count"), ({"speed": 0.0}, "speed"),
    ({"limits": rbd.MotionLimits(effort=0.01)}, "random poses are within the limits")])
def test_wrong_requests(arguments, words):
    with pytest.raises(rbd.RbdError, match=words):
        rbd.excitation_poses(TWO, **{"count": 6, **arguments})


def record(truth, motion, zero, seed, load=0.0):
    """Slow currents of an arm: quantised positions, jitter, noise, offsets, friction by direction and load."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, motion.duration, 0.03)
    q, v, a, *_ = motion(t + 5e-4 * rng.normal(size=len(t)))
    tau = rbd.inverse_dynamics(truth, q + zero, v, a)
    tau += load * np.abs(tau) * np.tanh(v / 0.01) + 0.3 * truth.friction * np.tanh(v / 0.01) ** 2
    tau += rbd.friction_effort(truth, v) + 0.2 * rng.normal(size=tau.shape) + 0.3 * rng.normal(size=truth.nv)
    step = 2.0 * np.pi / 2**14
    return rbd.Recording(t, step * np.round(q / step), tau=tau, joints=truth.velocity_names)


@pytest.mark.parametrize(("seed", "options"), [(0, BRIEF), *AS_THEY_COME[:2]])
def test_gravity_on_other_poses(slow, seed, options):
    truth = perturbed(IIWA, seed, rotors=False).with_(friction=2.0)
    found = rbd.identify(IIWA, record(truth, slow, 0.0, seed, load=0.05), **options)
    rng = np.random.default_rng(seed)
    q = np.array([IIWA.random_configuration(rng) for _ in range(200)])
    before, after, exact = (rbd.gravity_effort(model, q) for model in (IIWA, found.model, truth))
    largest = np.abs(exact).max()
    assert np.abs(after - exact).max() < 0.02 * largest < np.abs(before - exact).max()
    assert found.zeros is None


@pytest.mark.parametrize(("seed", "options"), [(0, BRIEF), *AS_THEY_COME])
def test_zero_offsets_and_the_mounting_are_found_where_gravity_shows_them(slow, seed, options):
    rng = np.random.default_rng((3, seed))
    zero, tilt = 0.02 * rng.normal(size=7), np.radians(rng.uniform(-2.0, 2.0, 2))
    truth = perturbed(IIWA, seed, rotors=False).with_(gravity=turned(IIWA.gravity, tilt))
    found = rbd.identify(IIWA, record(truth, slow, zero, seed), zeros=True, **options)
    zeros = found.zeros
    seen = np.isfinite(zeros.half_width)
    assert seen[1:5].all() and not seen[0]    # nothing tells an offset about the vertical from the mounting's
    assert (np.abs(zeros.position - zero) <= 2.0 * zeros.half_width + 1e-4).all()
    assert not zeros.position[~seen].any()
    angle = np.arccos(zeros.gravity @ truth.gravity / 9.81**2)
    assert angle < 2e-3 and np.linalg.norm(zeros.gravity) == pytest.approx(9.81)
    assert abs(zeros.tilt - np.linalg.norm(tilt)) < 2e-3
    assert any("does not show" in line and IIWA.velocity_names[0] in line for line in found.findings)
    q = np.array([IIWA.random_configuration(rng) for _ in range(100)])
    still = np.zeros_like(q)
    exact = rbd.gravity_effort(truth, q + zero)
    assert np.abs(found.effort(q, still, still) - found.offset - exact).max() < 0.02 * np.abs(exact).max()


@pytest.mark.thorough
def test_right_zeros_stay(slow):
    truth = perturbed(IIWA, 4, rotors=False)
    found = rbd.identify(IIWA, record(truth, slow, 0.0, 4), zeros=True).zeros
    shown = np.isfinite(found.half_width)
    assert (np.abs(found.position[shown]) < 2.0 * found.half_width[shown]).all()
    assert found.tilt < 1e-3


@pytest.mark.parametrize("options", [BRIEF, pytest.param({}, marks=pytest.mark.thorough)])
def test_positions_from_another_zero_are_refused(slow, options):
    recording = record(perturbed(IIWA, 0, rotors=False), slow, np.array([0.0, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0]), 0)
    with pytest.raises(rbd.RbdError, match=r"zeros: .* units"):
        rbd.identify(IIWA, recording, zeros=True, **options)


def test_gravity_turns_without_growing():
    rng = np.random.default_rng(0)
    for gravity in (*rng.normal(size=(20, 3)), np.array([0.0, 0.0, -9.81]), np.array([9.81, 0.0, 0.0])):
        axes = np.array(tilt_axes(gravity))
        np.testing.assert_allclose(axes @ axes.T, np.eye(2), atol=1e-12)
        np.testing.assert_allclose(axes @ gravity, 0.0, atol=1e-12)
        tilts = 1e-3 * rng.normal(size=2)
        new = turned(gravity, tilts)
        assert np.linalg.norm(new) == pytest.approx(np.linalg.norm(gravity))
        np.testing.assert_allclose(new - gravity, np.cross(tilts @ axes, gravity), atol=1e-5)
    assert tilt_axes(np.zeros(3)) == () and not turned(np.zeros(3), np.zeros(0)).any()


@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 5)]])
def test_poses_are_chosen_where_ways_lead(seed):
    """A UR5 folds its elbow and wrists to either side of its links, and half of its poses are cut off from the rest."""
    model, collisions = arm("ur_description/ur5_robot")
    slow = rbd.excitation_poses(model, 8, collisions=collisions, speed=0.6, seed=seed)
    t = np.linspace(0.0, slow.duration, 2000)
    assert collisions.distances(slow(t).q).min() > 0.0099
    assert slow.condition < 5.0

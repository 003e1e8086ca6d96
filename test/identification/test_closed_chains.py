"""Robots with closed loops: ranks against the energies of motions on the loops, and simulated truth recovered."""
from __future__ import annotations

import numpy as np
import pytest
from support.recordings import on_the_loops, periodic, perturbed, record_closed

import rbd_ros as rbd
from rbd_ros.core.identification.consistency import is_consistent
from rbd_ros.core.identification.regressor_columns import parameter_names, parameters_of

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
MOTORS = {"four_bar": ("crank_joint",), "five_bar": ("left_shoulder", "right_shoulder"),
          "gripper": ("left_crank_joint",)}
REACH = {"four_bar": 0.4, "five_bar": 0.2, "gripper": 0.3}
SIZE = {"four_bar": 0.002, "five_bar": 0.002, "gripper": 2e-4}    # N m: noise, below a hundredth of the efforts


def motion_of(name, seed=0):
    model = rbd.sample(name)
    found = periodic(model, seed, period=6.0, periods=4, reach=REACH[name])
    return type(found)(found.coefficients[:, :len(MOTORS[name])], found.period, found.periods)


def truth_of(name):
    model = rbd.sample(name)
    driven = np.isin(model.velocity_names, MOTORS[name])
    return perturbed(model, 4, rotors=False, friction=False).with_(
        armature=2e-4 * driven, damping=np.where(driven, 5e-3, 0.0), friction=np.where(driven, 4e-3, 0.0))


def identified(name, **options):
    model = rbd.sample(name)
    constraints = rbd.sample_constraints(name, model)
    recording = record_closed(truth_of(name), constraints, MOTORS[name], motion_of(name), noise=SIZE[name],
                              whole=options.pop("whole", True))
    return model, constraints, rbd.identify(model, recording, constraints=constraints, **options)


@pytest.mark.parametrize("name", MOTORS)
def test_the_rank_is_that_of_the_energies_on_the_loops(name):
    """Efforts along the loops follow from T and U of motions on them (Lagrange): their parameters span one space."""
    model = rbd.sample(name)
    constraints = rbd.sample_constraints(name, model)
    base = rbd.base_parameters(model, constraints=constraints)
    rows = []
    for seed in range(3):
        motion = motion_of(name, seed)
        t = np.linspace(0.0, motion.duration, 1000)
        q, v = (x[::25] for x in on_the_loops(model, constraints, MOTORS[name], motion, t)[:2])
        kinetic, potential = energies(model, q, v)
        rows += [kinetic, potential - potential[0]]
    W = np.concatenate(rows)
    lengths = np.linalg.norm(W, axis=0)
    sizes = np.linalg.svd(W / np.where(lengths > 1e-8 * lengths.max(), lengths, np.inf), compute_uv=False)
    assert base.rank == int(np.sum(sizes > 1e-7 * sizes[0])) < rbd.base_parameters(model).rank
    seen = np.linalg.svd(np.concatenate([W / lengths.max(), base.matrix]), compute_uv=False)
    assert np.sum(seen > 1e-7 * seen[0]) == base.rank


def energies(model, q, v):
    """T and U (N, P) per parameter: of a robot in which nothing but one parameter of one link is not zero."""
    out = np.zeros((2, len(q), 10 * len(model.body_names)))
    poses = rbd.forward_kinematics(model, q)
    gravity = np.asarray(model.gravity)
    for i, name in enumerate(model.body_names):
        V = rbd.jacobian(model, q, name) @ v[..., None]
        w, u = V[:, :3, 0], V[:, 3:, 0]
        c = np.cross(u, w)
        out[0, :, 10 * i:10 * i + 10] = np.column_stack([
            (u**2).sum(axis=1) / 2, c, w[:, 0]**2 / 2, w[:, 0] * w[:, 1], w[:, 1]**2 / 2, w[:, 0] * w[:, 2],
            w[:, 1] * w[:, 2], w[:, 2]**2 / 2])
        out[1, :, 10 * i] = -poses[:, i, :3, 3] @ gravity
        out[1, :, 10 * i + 1:10 * i + 4] = -np.einsum("nij,i->nj", poses[:, i, :3, :3], gravity)
    return out


@pytest.mark.parametrize("whole", [True, False], ids=["all positions", "motors only"])
@pytest.mark.parametrize("name", MOTORS)
def test_simulated_truth_is_recovered(name, whole):
    model, constraints, found = identified(name, whole=whole)
    truth = truth_of(name)
    assert found.residual.overall < 0.03 < found.residual.overall_before, found
    assert any("without motors" in finding for finding in found.findings)
    bodies = found.model.inertial_parameters.reshape(-1, 10)
    assert all(is_consistent(body) for body in bodies if body[0] > 0.0)
    names = parameter_names(truth)
    expected = found.base.values(parameters_of(truth)[[names.index(one) for one in found.base.parameter_names]])
    hits = [abs(e.linear - x) <= 1.5 * e.half_width for e, x in zip(found.confidence, expected, strict=True)]
    assert np.mean(hits) >= 0.9, [(e, x) for e, x, hit in zip(found.confidence, expected, hits, strict=True) if not hit]
    motion = motion_of(name, 7)
    q, v, a = on_the_loops(model, constraints, MOTORS[name], motion, np.linspace(0.0, motion.duration, 1000))
    efforts = [motor_efforts(robot, constraints, MOTORS[name], q, v, a) for robot in (truth, found.model, model)]
    off = [np.linalg.norm(one - efforts[0]) / np.linalg.norm(efforts[0]) for one in efforts[1:]]
    assert off[0] < 0.02 < off[1], off


def motor_efforts(robot, constraints, motors, q, v, a):
    rubbing = rbd.friction_effort(robot, v)
    effort = rbd.constrained_inverse_dynamics(robot, constraints, q, v, a, motors, passive_effort=-rubbing).effort
    driven = [robot.velocity_names.index(name) for name in motors]
    return (effort + rubbing)[:, driven]


def test_a_second_motor_on_the_loop_shares_the_effort():
    """With redundant motors their efforts along the loops count, however they are shared."""
    model = rbd.sample("five_bar")
    constraints = rbd.sample_constraints("five_bar", model)
    recording = record_closed(truth_of("five_bar"), constraints, MOTORS["five_bar"], motion_of("five_bar"), noise=0.0)
    A = rbd.constraint_jacobian(model, constraints, recording.q)
    chosen = [model.velocity_names.index(name) for name in (*MOTORS["five_bar"], "left_elbow")]
    null = [np.linalg.svd(rows[:, [j for j in range(5) if j not in chosen]].T)[2][-1] for rows in A]
    inside = np.array([rows.T @ x * np.sign(x[0]) for rows, x in zip(A, null, strict=True)])    # forces that do no work
    tau = recording.tau + 0.3 * inside
    found = rbd.identify(model, rbd.Recording(recording.t, recording.q, tau=tau, joints=recording.joints),
                         constraints=constraints, delay=0.0)
    assert found.residual.overall < 0.02


def test_what_does_not_close_is_said():
    model = rbd.sample("five_bar")
    constraints = rbd.sample_constraints("five_bar", model)
    recording = record_closed(truth_of("five_bar"), constraints, MOTORS["five_bar"], motion_of("five_bar"))
    apart = rbd.Recording(recording.t, recording.q[:, [0]], tau=recording.tau[:, [0]], joints=["left_shoulder"])
    with pytest.raises(rbd.RbdError, match="cannot be closed in row 0, or not by left_elbow"):
        rbd.identify(model, apart, constraints=constraints)
    with pytest.raises(rbd.RbdError, match="at least one constraint"):
        rbd.identify(model, recording, constraints=rbd.ConstraintSet())
    with pytest.raises(rbd.RbdError, match="cannot be closed"):
        far = recording.q * 5.0
        rbd.identify(model, rbd.Recording(recording.t, far[:, [0, 3]], tau=recording.tau[:, [0, 3]],
                                          joints=MOTORS["five_bar"]), constraints=constraints)


def test_constant_efforts_of_joints_without_motors_count_nowhere():
    """Neither where they are fitted nor where they are judged."""
    model = rbd.sample("four_bar")
    constraints = rbd.sample_constraints("four_bar", model)
    plain = record_closed(truth_of("four_bar"), constraints, MOTORS["four_bar"], motion_of("four_bar"), noise=0.002)
    passive = ~np.isin(model.velocity_names, MOTORS["four_bar"])
    shifted = rbd.Recording(plain.t, plain.q, tau=plain.tau + 5.0 * passive, joints=plain.joints)
    found = rbd.identify(model, shifted, constraints=constraints, validation=plain, delay=0.0)
    other = rbd.identify(model, plain, constraints=constraints, validation=shifted, delay=0.0)
    assert other.residual.overall == pytest.approx(found.residual.overall, rel=1e-9) and other.residual.overall < 0.03
    assert not any("efforts that are constant" in finding for finding in (*found.findings, *other.findings))

"""Gains along a motion: SciPy's Riccati equation, the quadratic programme as a whole, and robots in the loop."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from actuation.drives import mixed
from feedback.plants import Drifting, Resting, Turning, spline
from scipy.linalg import solve_discrete_are
from support.robots import urdf_paths
from support.trees import TYPES, random_tree

import rbd_ros as rbd

MS = 1e-3


def weights(n, nu):
    return np.concatenate([np.full(n, 1e3), np.full(n, 1.0)]), np.full(nu, 1e-2)


def random_weights(rng, size, definite=0.1):
    root = rng.normal(size=(size, size))
    return root @ root.T + definite * np.eye(size)


# ---- Riccati's equation


@pytest.mark.parametrize("make", [
    lambda: (rbd.sample("iiwa"), np.linspace(-0.5, 0.8, 7)), lambda: (rbd.sample("two_link"), np.array([0.3, 0.5])),
    lambda: (random_tree(2, ["floating", "revolute", "spherical"]), None)], ids=["iiwa", "two_link", "floating"])
def test_at_rest_they_are_those_of_scipy(make):
    """Both of the end that is held forever, and after a long time of an arbitrary end."""
    model, q = make()
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng) if q is None else q
    n = model.nv
    Q, R = random_weights(rng, 2 * n) * 100.0, random_weights(rng, n) * 0.01
    options = {"Q": Q, "R": R, "period": 2e-2, "actuated": model.velocity_names}
    motion = Resting(q, n, 60.0)
    held = rbd.tracking_gains(model, motion, **options)
    A, B = held.A[0], held.B[0]
    P = solve_discrete_are(A, B, Q, R)
    expected = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    scale = np.abs(expected).max()
    for gain in (held.gains[0], held.gains[-1]):
        np.testing.assert_allclose(gain, expected, rtol=0.0, atol=1e-9 * scale)
    ended = rbd.tracking_gains(model, motion, end=Q, **options)
    assert np.abs(ended.gains[-1] - expected).max() > 1e-2 * scale
    np.testing.assert_allclose(ended.gains[0], expected, rtol=0.0, atol=1e-9 * scale)


@pytest.mark.parametrize("kind", ["rigid", "tree", "elastic"])
def test_they_are_those_of_the_whole_problem_at_once(kind):
    """All efforts and states from an initial error as one quadratic programme, by its conditions of optimality."""
    rng = np.random.default_rng(3)
    if kind == "elastic":
        model, motion = mixed(), spline(np.zeros(7), 1e-4 * rng.normal(size=7), 0.05)
        n, nu = 7 + model.nm - 1, model.nm
    else:
        model = rbd.sample("iiwa") if kind == "rigid" else random_tree(1, TYPES)
        n = nu = model.nv
        motion = spline(np.zeros(7), rng.normal(size=7), 0.2) if kind == "rigid" else Turning(
            model, model.random_configuration(rng), 0.1 * rng.normal(size=(8, n)), 0.2)
    Q, R, end = random_weights(rng, 2 * n), random_weights(rng, nu), random_weights(rng, 2 * n)
    more = {} if kind == "elastic" else {"actuated": model.velocity_names}
    gains = rbd.tracking_gains(model, motion, Q, R, period=motion.duration / 10, end=end, **more)
    N, nx = len(gains.t), 2 * n
    size, x0 = nx + nu, rng.normal(size=nx)
    H, C = np.zeros((N * size, N * size)), np.zeros((N * nx, N * size))    # of u_0, x_1, u_1, x_2, …
    right = np.zeros(N * nx)
    for k in range(N):
        u, x, row = slice(k * size, k * size + nu), slice(k * size + nu, (k + 1) * size), slice(k * nx, (k + 1) * nx)
        H[u, u], H[x, x] = R, end if k == N - 1 else Q
        C[row, u], C[row, x] = gains.B[k], -np.eye(nx)
        if k:
            C[row, k * size - nx:k * size] = gains.A[k]
    right[:nx] = -gains.A[0] @ x0
    optimal = np.block([[H, C.T], [C, np.zeros((N * nx, N * nx))]])
    both = np.concatenate([np.zeros(N * size), right])
    solution = np.linalg.solve(optimal, both)
    solution += np.linalg.solve(optimal, both - optimal @ solution)
    best = solution[:N * size].reshape(N, size)[:, :nu]
    x, ours = x0, []
    for k in range(N):
        ours.append(gains.gains[k] @ x)
        x = gains.A[k] @ x + gains.B[k] @ ours[-1]
    np.testing.assert_allclose(ours, best, rtol=0.0, atol=1e-9 * np.abs(best).max())


class Sampled:
    """A motion as torque nodes have them: at one time after the other."""

    def __init__(self, motion):
        self.duration, self.sample = motion.duration, motion.sample


@pytest.mark.parametrize("elastic", [False, True])
def test_a_motion_that_is_sampled(elastic):
    model = mixed() if elastic else rbd.sample("iiwa")
    n, nu = (7 + model.nm - 1, model.nm) if elastic else (7, 7)
    motion = spline(np.zeros(7), np.full(7, 0.1), 0.2)
    both = [rbd.tracking_gains(model, each, np.ones(2 * n), np.ones(nu), period=2e-3)
            for each in (motion, Sampled(motion))]
    np.testing.assert_allclose(both[0].gains, both[1].gains, rtol=1e-9, atol=1e-9 * np.abs(both[0].gains).max())


# ---- what is between and beside the periods


@pytest.fixture(scope="module")
def arm():
    model = rbd.sample("iiwa")
    motion = spline(np.linspace(-0.4, 0.4, 7), np.linspace(0.5, -0.7, 7), 1.0)
    return model, motion, rbd.tracking_gains(model, motion, *weights(7, 7))


def test_between_periods(arm):
    model, motion, gains = arm
    feedback = gains.at(0.40025)
    reference = motion(0.40025)
    np.testing.assert_array_equal(feedback.q, reference.q)
    np.testing.assert_array_equal(feedback.v, reference.v)
    np.testing.assert_allclose(feedback.effort, rbd.inverse_dynamics(model, *reference[:3]), rtol=1e-12)
    np.testing.assert_allclose(feedback.gain, 0.75 * gains.gains[400] + 0.25 * gains.gains[401], rtol=1e-9)
    for t in (0.0, 0.4, 1.0):
        np.testing.assert_allclose(gains.at(t).gain, gains.gains[round(t / MS)], rtol=1e-9)
    for t, end in ((-1.0, 0), (1.5, -1)):
        np.testing.assert_array_equal(gains.at(t).gain, gains.gains[end])
    held = gains.held(0.39, 0.02)
    for ours, expected in zip(held, gains.at(0.4), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_the_period_hardly_matters(arm):
    model, motion, gains = arm
    slower = rbd.tracking_gains(model, motion, *weights(7, 7), period=2 * MS)
    a, b = gains.gains[500], slower.gains[250]
    assert np.abs(a - b).max() < 0.15 * np.abs(a).max()


def test_a_command_is_linear_in_the_error_on_the_tangent_space():
    model = random_tree(4, ["floating", "spherical", "revolute"])
    rng = np.random.default_rng(0)
    motion = Turning(model, model.random_configuration(rng), rng.normal(size=(9, model.nv)), 0.2)
    gains = rbd.tracking_gains(model, motion, *weights(model.nv, model.nv), actuated=model.velocity_names)
    k, dx = 100, 0.1 * rng.normal(size=2 * model.nv)
    u = gains.command(0.1, model.integrate(gains.q[k], dx[:model.nv]), gains.v[k] + dx[model.nv:])
    np.testing.assert_allclose(u, gains.effort[k] + gains.gains[k] @ dx, rtol=0.0, atol=1e-9 * np.abs(u).max())


# ---- in the loop


def error_after(model, gains, dx, seconds):
    """Errors along the motion from an initial one, of the robot simulated with gains and feed-forward: the feedback of
    each period is held, the feed-forward moves on.
    """
    n, h = model.nv, gains.period
    simulated = rbd.Simulator(model, step=h, integrator="rk4", limits=False,
                              q=model.integrate(gains.q[0], dx[:n]), v=gains.v[0] + dx[n:])
    mask = np.isin(model.velocity_names, gains.inputs)
    at, errors = cache(gains.at), []
    for k in range(round(seconds / h)):
        feedback = at(k * h)._replace(effort=0.0)
        held = np.zeros(n)
        held[mask] = gains.applied(feedback, simulated.q, simulated.v)

        def effort(t, held=held):
            tau = held.copy()
            tau[mask] += at(t).effort
            return tau

        simulated.step(effort)
        now = at((k + 1) * h)
        errors.append(np.concatenate([model.difference(now.q, simulated.q), simulated.v - now.v]))
    return np.array(errors)


def test_an_error_decays_as_the_linearisation_says(arm):
    model, _, gains = arm
    dx = 1e-4 * np.random.default_rng(0).normal(size=14)
    found, expected = error_after(model, gains, dx, 0.9), [dx]
    for k in range(900):
        expected.append((gains.A[k] + gains.B[k] @ gains.gains[k]) @ expected[-1])
    np.testing.assert_allclose(found, expected[1:], rtol=0.0, atol=1e-4 * np.abs(expected).max())
    assert np.abs(found[-1]).max() < 0.01 * np.abs(dx).max()


def test_a_pendulum_is_balanced_by_its_first_joint_alone():
    """Upright, driven at the shoulder alone: unstable without feedback."""
    model = rbd.sample("two_link")
    up = next(q for q in ([np.pi / 2, 0.0], [np.pi, 0.0], [0.0, 0.0], [-np.pi / 2, 0.0])
              if np.abs(rbd.gravity_effort(model, q)).max() < 1e-9 and rbd.potential_energy(model, q)
              > max(rbd.potential_energy(model, [0.3, 0.3]), rbd.potential_energy(model, [np.pi / 2 + 0.3, 0.3])))
    motion = Resting(up, 2, 4.0)
    gains = rbd.tracking_gains(model, motion, Q=[10.0, 10.0, 1.0, 1.0], R=[0.1], actuated=[model.joint_names[0]],
                               period=2e-3)
    assert gains.inputs == (model.joint_names[0],) and gains.gains.shape[1:] == (1, 4)
    assert np.abs(np.linalg.eigvals(gains.A[0])).max() > 1.0
    errors = error_after(model, gains, np.array([0.02, -0.01, 0.0, 0.0]), 3.0)
    assert np.abs(errors[-1]).max() < 1e-3


def test_a_floating_arm_is_led_by_its_joints_and_its_momentum_stays():
    model = rbd.sample("biped", root="floating").with_(gravity=(0, 0, 0), armature=0.02)
    joints = model.nv - 6
    motion = Drifting(model, 0.1 * np.random.default_rng(3).normal(size=(9, joints)), 1.0, 2e-3)
    Q = np.concatenate([np.zeros(6), np.full(joints, 1e3), np.zeros(6), np.full(joints, 1.0)])
    gains = rbd.tracking_gains(model, motion, Q, np.full(joints, 0.01), period=2e-3, end=Q)
    n, ends = model.nv, []
    dx = np.concatenate([np.zeros(6), 0.03 * np.cos(np.arange(joints))])
    for start in (np.zeros(n), dx):
        simulated = rbd.Simulator(model, step=1e-3, integrator="rk4", limits=False,
                                  q=model.integrate(gains.q[0], start), v=gains.v[0])
        momentum = rbd.centroidal_momentum(model, simulated.q, simulated.v)
        for k in range(500):
            tau = gains.applied(gains.at(k * 2e-3), simulated.q, simulated.v)
            simulated.step(np.concatenate([np.zeros(6), tau]), 2)
        ends.append(simulated.q)
        np.testing.assert_allclose(rbd.centroidal_momentum(model, simulated.q, simulated.v)[3:], momentum[3:],
                                   rtol=0.0, atol=1e-6)
    assert np.abs(model.difference(*ends)[6:]).max() < 0.01 * np.abs(dx).max()
    assert np.abs(model.difference(gains.q[500], ends[0])[6:]).max() < 2e-3
    rest = Resting(model.neutral(), model.nv, 0.1)
    with pytest.raises(rbd.RbdError, match=r"do not hold the end of the motion: they move 'root_joint/[0-5]' least"):
        rbd.tracking_gains(model, rest, np.ones(2 * model.nv), np.ones(joints), period=2e-3)


def test_elastic_joints_are_led_through_their_springs():
    actuation = mixed()
    model, n = actuation.model, 7 + actuation.nm - 1
    motion = spline(np.zeros(7), np.array([0.5, 0.4, -0.5, 0.3, 0.4, -0.4, 0.5]), 1.0)
    Q = np.concatenate([np.full(7, 1e5), np.full(n - 7, 1.0), np.full(7, 1e2), np.full(n - 7, 1e-2)])
    gains = rbd.tracking_gains(actuation, motion, Q, np.full(actuation.nm, 1e-3))
    behind = [j for j in range(actuation.nm) if j != 0]

    def run(gain):
        simulated = rbd.ElasticSimulator(actuation, step=MS / 4, limits=False, q=motion(0.0).q + 0.01)
        for k in range(1000):
            now = gains.at(k * MS)
            x = np.concatenate([simulated.q, simulated.motor_position[behind]])
            v = np.concatenate([simulated.v, simulated.motor_velocity[behind]])
            simulated.step(gains.applied(now._replace(gain=gain * now.gain), x, v), 4)
        return np.abs(simulated.q - motion(1.0).q).max()

    assert run(1.0) < 1e-3
    assert run(0.0) > 1e-2, "and without feedback it would not"
    assert model.nv == 7


def test_the_plant_is_mujoco():
    pytest.importorskip("mujoco")
    if "panda_description/panda" not in urdf_paths():
        pytest.skip("example-robot-data is not installed")
    import mujoco
    from support.mujoco_peer import Peer, stripped

    text = stripped(urdf_paths()["panda_description/panda"])
    model = rbd.load_urdf(text, mimic="independent")
    start = np.array([0.1, -0.5, 0.2, -1.9, 0.3, 1.6, 0.5, 0.01, 0.01])
    motion = spline(start, start + np.array([0.5, 0.4, -0.6, 0.5, 0.7, -0.5, 0.8, 0.01, 0.02]), 1.0)
    gains = rbd.tracking_gains(model, motion, *weights(9, 9))
    peer = Peer(model, text, False)
    peer.mj.opt.timestep, peer.mj.opt.integrator = MS, mujoco.mjtIntegrator.mjINT_RK4
    off = np.append(np.full(7, 0.05), [1e-3, -1e-3])
    peer.data.qpos[peer.q] = start + off
    for k in range(1000):
        peer.data.qfrc_applied[peer.v] = gains.command(k * MS, peer.data.qpos[peer.q], peer.data.qvel[peer.v])
        mujoco.mj_step(peer.mj, peer.data)
    assert np.abs(peer.data.qpos[peer.q] - motion(1.0).q).max() < 1e-3


# ---- refusals


@pytest.mark.parametrize("change, words", [
    ({"Q": np.ones(13)}, r"Q has shape \(13,\), expected \(14,\) or \(14, 14\)"),
    ({"R": np.ones((7, 6))}, r"R has shape \(7, 6\), expected \(7,\)"),
    ({"R": [1.0] * 6 + [0.0]}, "R must be positive definite, its least eigenvalue is 0"),
    ({"Q": [1.0] * 13 + [-1.0]}, "Q must be positive semidefinite"),
    ({"Q": np.triu(np.ones((14, 14)))}, "Q must be symmetric"),
    ({"Q": [np.nan] * 14}, "Q must be finite"), ({"R": ["a"] * 7}, "R: expected real numbers"),
    ({"end": np.ones(3)}, "end has shape"), ({"period": 0.0}, "period must be a positive time"),
    ({"period": 1e-6}, "expected a longer period"), ({"motion": None}, "motion.duration must be a positive time"),
    ({"actuated": ["joint_9"]}, "joint_9"), ({"actuated": np.zeros(7, dtype=bool)}, "no coordinate .* is driven"),
    ({"actuated": ["joint_1"], "R": [1.0]}, "which is not driven"), ({"friction": 3.0}, "expected a Friction"),
    ({"model": "iiwa"}, "model"), ({"Q": np.full(14, 1e308), "end": np.full(14, 1e308)},
                                   "not be finite")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_wrong_input_is_named(change, words):
    model = rbd.sample("iiwa")
    given = {"model": model, "motion": spline(np.zeros(7), np.ones(7), 1.0), "Q": np.ones(14), "R": np.ones(7)}
    with pytest.raises(rbd.RbdError, match=words):
        rbd.tracking_gains(**(given | change))


class Wrong:
    duration = 1.0

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, t):
        return self.answer(len(t))


@pytest.mark.parametrize("answer, words", [
    (lambda n: None, "expected a function of the times"), (lambda n: (np.zeros((n, 7)),) * 2, "expected a function"),
    (lambda n: (np.zeros((n, 6)),) * 3, "q"), (lambda n: (np.full((n, 7), np.nan),) * 3, "finite"),
    (lambda n: (np.zeros((2, 7)),) * 3, "states at")])
def test_a_wrong_motion_is_named(answer, words):
    with pytest.raises(rbd.RbdError, match=words):
        rbd.tracking_gains(rbd.sample("iiwa"), Wrong(answer), np.ones(14), np.ones(7))


def test_the_growth_of_what_cannot_be_held_is_that_of_the_pendulum():
    """Two pendulums upright on one base, one of them driven: the other falls with √(m g l / I)."""
    link = rbd.Inertia(2.0, (0.0, 0.0, 0.5), np.diag([0.1, 0.1, 0.01]))
    joints = tuple(rbd.JointSpec(name, "revolute", "base", f"{name}_link", axis=(0.0, 1.0, 0.0))
                   for name in ("driven", "free"))
    links = {"base": rbd.Inertia.zero(), "driven_link": link, "free_link": link}
    model = rbd.RobotModel.from_description(rbd.Description("pendulums", links, joints))
    growth = np.sqrt(2.0 * 9.81 * 0.5 / (0.1 + 2.0 * 0.25))
    with pytest.raises(rbd.RbdError, match=rf"they move 'free' least \(growth {growth:.3g} 1/s\)"):
        rbd.tracking_gains(model, Resting([0.0, 0.0], 2, 0.1), np.ones(4), [1.0], actuated=["driven"])


def test_elastic_joints_need_smooth_motions_and_have_their_own_friction():
    actuation = mixed()
    n, nu = 7 + actuation.nm - 1, actuation.nm
    with pytest.raises(rbd.RbdError, match="jerk and snap"):
        rbd.tracking_gains(actuation, Wrong(lambda m: (np.zeros((m, 7)),) * 3), np.ones(2 * n), np.ones(nu))
    with pytest.raises(rbd.RbdError, match="jerk and snap"):
        rbd.tracking_gains(actuation, Wrong(lambda m: (np.zeros((m, 7)),) * 4), np.ones(2 * n), np.ones(nu))
    with pytest.raises(rbd.RbdError, match="expected None with elastic joints"):
        rbd.tracking_gains(actuation, spline(np.zeros(7), np.ones(7), 1.0), np.ones(2 * n), np.ones(nu),
                           actuated=["joint_1"])


def test_the_coordinate_that_cannot_be_held_is_named():
    """Without gravity, nothing moves the momentum about the wrist's last joint."""
    model = rbd.sample("iiwa").with_(gravity=(0, 0, 0))
    driven = model.joint_names[:6]
    for q in (np.zeros(7), np.linspace(0.3, 0.9, 7)):
        with pytest.raises(rbd.RbdError, match="they move 'joint_7' least"):
            rbd.tracking_gains(model, Resting(q, 7, 0.1), np.ones(14), np.ones(6), actuated=driven)


@pytest.mark.parametrize("call, words", [
    (lambda gains: gains.at(np.nan), "t must be a finite time"), (lambda gains: gains.at([0.0, 1.0]), "finite time"),
    (lambda gains: gains.held(0.0, -1.0), "hold must be a positive time"),
    (lambda gains: gains.command(0.0, np.zeros(6), np.zeros(7)), "q"),
    (lambda gains: gains.command(0.0, np.zeros((2, 7)), np.zeros((2, 7))), "one state"),
    (lambda gains: gains.margins([np.inf]), "finite times")])
def test_wrong_arguments_of_the_result_are_named(arm, call, words):
    with pytest.raises(rbd.RbdError, match=words):
        call(arm[2])


def test_results_are_read_only(arm):
    for name in ("t", "gains", "q", "v", "effort", "A", "B"):
        with pytest.raises(ValueError):
            getattr(arm[2], name)[...] = 0.0

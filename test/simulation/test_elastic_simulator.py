"""The elastic plant: against a dense formulation and closed forms, order, energy, friction, stops, errors."""

import numpy as np
import pytest
from actuation.drives import MIXED, ROTORS, STIFFNESS, iiwa, mixed, series
from actuation.torques import Wave
from scipy.integrate import solve_ivp
from simulation import robots

import rbd_ros as rbd
from rbd_ros.cli.demo_motion import M_AMPLITUDE, M_FREQUENCY
from rbd_ros.core.simulation.elastic_simulator import ElasticSimulator
from rbd_ros.core.simulation.modes import Modes
from rbd_ros.core.simulation.simulator import Simulator

Q = np.array([0.3, 0.5, -0.4, 0.8, 0.2, -0.6, 0.1])
V = np.array([0.5, -0.4, 0.3, 0.6, -0.5, 0.4, 0.3])
PUBLISHED = Wave(M_AMPLITUDE, M_FREQUENCY)


def without_friction(**changed):
    """One joint of each kind, without friction."""
    return mixed(joint_1={"type": "rigid", "motor": {"rotor_inertia": 3.0}},
                 joint_3=MIXED["joint_3"] | {"motor": {"rotor_inertia": 2.0}},
                 joint_6=MIXED["joint_6"] | {"motor": {"rotor_inertia": 0.5}},
                 joint_7=MIXED["joint_7"] | {"stiffness_motor": {"rotor_inertia": 1e-6}}, **changed)


ARMS = {"series": series, "mixed": without_friction}


def holding(actuation, q):
    """Motor efforts that hold the arm at rest."""
    still = np.zeros(7)
    return rbd.motor_reference(actuation, q, still, still, [rbd.gravity_effort(actuation.model, q), still, still])


def pendulum(**drive):
    model = robots.pendulum().with_(gravity=(0.0, 0.0, 0.0))
    return rbd.load_actuation({"hinge": {"type": "series_elastic", "stiffness": 900.0,
                                         "motor": {"rotor_inertia": 0.4}} | drive}, model)


def test_two_masses_on_a_spring_swing_as_they_should():
    actuation = pendulum()
    inertia = float(rbd.mass_matrix(actuation.model, [0.0])[0, 0])
    simulator = ElasticSimulator(actuation, integrator="rk4", step=1e-3, motor_position=[0.1])
    simulator.step(n=300)
    omega = np.sqrt(900.0 * (1.0 / inertia + 1.0 / 0.4))
    phi, center = 0.1 * np.cos(0.3 * omega), 0.04 / (inertia + 0.4)
    assert simulator.q[0] == pytest.approx(center - phi * 0.4 / (inertia + 0.4), abs=1e-6)
    assert simulator.motor_position[0] - simulator.q[0] == pytest.approx(phi, abs=1e-6)
    assert simulator.torque[0] == pytest.approx(900.0 * phi, abs=1e-3)


@pytest.mark.parametrize("damping", [0.0, 2e-3])
def test_the_dense_equations_of_links_and_motors(damping):
    """`M q̈ + h = τ`, `B θ̈ + τ = τ_m`, τ = K(θ − q) + D(θ̇ − q̇), integrated by someone else."""
    actuation, K, B = series(damping=damping), np.array(STIFFNESS), np.array(ROTORS)
    D, model = damping * K, iiwa()
    start = holding(actuation, Q)
    effort = start.effort + np.array([5.0, -8.0, 3.0, 4.0, 1.0, 0.5, 0.2])

    def rates(t, y):
        q, v, z, w = y.reshape(4, 7)
        tau = K * (z - q) + D * (w - v)
        a = np.linalg.solve(rbd.mass_matrix(model, q), tau - rbd.bias_effort(model, q, v))
        return np.concatenate([v, a, w, (effort - tau) / B])

    end = solve_ivp(rates, (0.0, 0.05), np.concatenate([Q, V, start.position, V]), method="DOP853", rtol=1e-11,
                    atol=1e-13).y[:, -1].reshape(4, 7)
    simulator = ElasticSimulator(actuation, step=1e-4, integrator="rk4", q=Q, v=V)
    simulator.step(effort, 500)
    for got, expected, bound in zip((simulator.q, simulator.v, simulator.motor_position, simulator.motor_velocity), end,
                                    (1e-7, 1e-4, 1e-8, 1e-6), strict=True):
        np.testing.assert_allclose(got, expected, rtol=0.0, atol=bound)


@pytest.mark.parametrize(("arm", "steps"), [("series", (4e-4, 2e-4, 1e-4)), ("mixed", (1e-3, 5e-4, 1e-4))])
def test_feed_forward_by_flatness_leaves_only_the_error_of_the_integrator(arm, steps):
    """No feedback at all, M's trajectory on the iiwa: order 4 down to rounding, far below 1e-6 rad at 0.1 ms."""
    actuation, duration = ARMS[arm](), 0.4
    errors = []
    for h in steps:
        t = np.arange(2 * round(duration / h) + 1) * h / 2.0    # rk4 asks at the ends and in the middle of its steps
        motion = [np.array([PUBLISHED(x, order) for x in t]) for order in range(5)]
        reference = rbd.motor_reference(actuation, *motion[:3], rbd.link_efforts(actuation, *motion))
        simulator = ElasticSimulator(
            actuation, step=h, integrator="rk4", q=PUBLISHED(0.0), v=PUBLISHED(0.0, 1),
            motor_position=reference.position[0], motor_velocity=reference.velocity[0])
        error = 0.0
        for _ in range(round(duration / h)):
            simulator.step(lambda time, h=h, effort=reference.effort: effort[round(2.0 * time / h)])
            error = max(error, np.abs(simulator.q - PUBLISHED(simulator.time)).max())
        np.testing.assert_allclose(simulator.motor_position, reference.position[-1], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(simulator.torque[actuation.elastic], reference.torque[-1][actuation.elastic],
                                   rtol=1e-5, atol=1e-5)
        errors.append(error)
    assert errors[-1] < 1e-11
    assert np.log(errors[0] / errors[1]) / np.log(steps[0] / steps[1]) > 2.8    # 4, until rounding is reached


@pytest.mark.parametrize("arm", ARMS)
def test_energy_is_conserved_but_for_the_work_of_the_motors(arm):
    actuation = ARMS[arm]()
    effort = holding(actuation, Q).effort    # constant, so that its work is a product
    simulator = ElasticSimulator(actuation, integrator="rk4", q=Q, v=0.1 * V)
    before, z = simulator.energy, simulator.motor_position
    scale = 0.0
    for _ in range(20):
        simulator.step(effort, round(0.01 / simulator.step_size))
        work = effort @ (simulator.motor_position - z)
        scale = max(scale, abs(work))
        assert simulator.energy - before == pytest.approx(work, abs=1e-7 * max(1.0, scale))
    assert scale > 0.01


def test_dampers_dissipate_what_they_should():
    """`Ė = −D φ̇²`, summed by the trapezium rule."""
    simulator = ElasticSimulator(pendulum(damping=3.0), integrator="rk4", step=1e-4, motor_position=[0.1])
    before, powers = simulator.energy, []
    for _ in range(2000):
        powers.append(3.0 * (simulator.motor_velocity[0] - simulator.v[0])**2)
        simulator.step()
    powers.append(3.0 * (simulator.motor_velocity[0] - simulator.v[0])**2)
    assert before - simulator.energy == pytest.approx(np.trapezoid(powers, dx=1e-4), rel=1e-5)
    assert simulator.energy < 0.1 * before


@pytest.mark.parametrize(("integrator", "ratio"), [("semi_implicit", 2.0), ("variational", 4.0)])
def test_the_implicit_integrators_have_their_order(integrator, ratio):
    actuation = series(damping=1e-3)
    effort = holding(actuation, Q).effort
    exact = ElasticSimulator(actuation, integrator="rk4", step=1e-4, q=Q, v=V)
    exact.step(effort, 500)
    errors = []
    for h in (4e-4, 2e-4, 1e-4):
        simulator = ElasticSimulator(actuation, step=h, integrator=integrator, q=Q, v=V)
        simulator.step(effort, round(0.05 / h))
        errors.append(np.abs(simulator.q - exact.q).max())
    assert errors[0] / errors[1] == pytest.approx(ratio, rel=0.2)
    assert errors[1] / errors[2] == pytest.approx(ratio, rel=0.15)


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit"])
@pytest.mark.parametrize("arm", ["series", "mixed"])
def test_the_implicit_integrators_bear_any_step(arm, integrator):
    actuation = series(scale=1e4) if arm == "series" else without_friction()
    effort = holding(actuation, Q).effort
    simulator = ElasticSimulator(actuation, step=0.01, integrator=integrator, q=Q, v=0.1 * V, limits=False)
    simulator.step(effort, 30)
    assert np.abs(simulator.v).max() < 3.0
    if arm == "series":
        np.testing.assert_allclose(simulator.motor_position, simulator.q, atol=1e-4)


def test_stiff_springs_make_a_rigid_robot():
    actuation = series(scale=1e3)
    rigid = Simulator(iiwa().with_(armature=ROTORS), step=1e-4, integrator="rk4", q=Q, v=V)
    effort = rbd.gravity_effort(iiwa(), Q) + 2.0
    rigid.step(effort, 1000)
    simulator = ElasticSimulator(actuation, step=1e-5, integrator="semi_implicit", q=Q, v=V)
    simulator.step(effort, 10_000)
    np.testing.assert_allclose(simulator.q, rigid.q, atol=2e-4)


def test_rigid_drives_alone_are_the_simulator():
    actuation = rbd.load_actuation({name: {"type": "rigid", "motor": {"rotor_inertia": b, "damping": 1.0,
                                                                      "coulomb": 0.5}}
                                    for name, b in zip(iiwa().joint_names, ROTORS, strict=True)}, iiwa())
    plain = Simulator(iiwa().with_(armature=ROTORS, damping=1.0, friction=0.5), q=Q, v=V)
    simulator = ElasticSimulator(actuation, q=Q, v=V, step=1e-3)
    effort = np.linspace(-3.0, 3.0, 7)
    plain.step(effort, 50)
    simulator.step(effort, 50)
    np.testing.assert_array_equal(simulator.q, plain.q)
    np.testing.assert_array_equal(simulator.motor_velocity, plain.v)
    assert not simulator.torque.any()


@pytest.mark.parametrize("arm", ["series", "mixed", "friction"])
def test_an_arm_at_rest_stays_at_rest(arm):
    actuation = mixed() if arm == "friction" else ARMS[arm]()
    simulator = ElasticSimulator(actuation, integrator="rk4", q=Q)
    simulator.step(holding(actuation, Q).effort, 100)
    np.testing.assert_allclose(simulator.q, Q, rtol=0.0, atol=1e-11)


def test_motor_friction_sticks_up_to_its_breakaway_level():
    actuation = pendulum(motor={"rotor_inertia": 0.4, "coulomb": 2.0, "breakaway": 3.0, "stribeck_velocity": 0.05})
    for integrator in ("rk4", "semi_implicit"):
        simulator = ElasticSimulator(actuation, integrator=integrator, step=1e-3)
        simulator.step([2.9], 500)
        assert simulator.motor_position[0] == 0.0
        simulator.step([3.2], 300)
        slow = simulator.motor_velocity[0]
        assert slow > 0.0
        simulator.step([2.0], 300)    # what Coulomb friction takes: it goes on
        assert simulator.motor_velocity[0] > 0.5 * slow


def test_slack_tendons_and_stops_of_stiffness_motors_let_a_dead_arm_fall():
    simulator = ElasticSimulator(mixed(), q=Q, step=1e-3)
    energy = simulator.energy
    simulator.step(n=1000)
    sigma = simulator.motor_position[[7, 10]]
    assert np.all(sigma >= [500.0, 50.0]) and np.all(sigma <= [5000.0, 2000.0])
    assert simulator.energy < energy
    assert np.abs(simulator.v).max() < 50.0


def test_wrenches_by_name_and_as_array_and_a_reset():
    actuation = series()
    array = np.zeros((8, 6))
    array[7] = 0.0, 0.1, 0.0, 5.0, 0.0, -3.0
    ends = []
    simulator = ElasticSimulator(actuation, q=Q, v=V, step=1e-3)
    for wrenches in (array, {"link_7": array[7]}):
        simulator.step(n=20, external_wrenches=wrenches)
        ends.append(simulator.q.copy())
        simulator.reset(Q, V)
        assert simulator.time == 0.0 and simulator.steps == 0
    np.testing.assert_array_equal(*ends)
    simulator.step(n=20)
    assert np.abs(simulator.q - ends[0]).max() > 1e-5
    assert not simulator.q.flags.writeable


def test_the_step_is_chosen_from_the_stiffest_mode():
    soft, stiff = (ElasticSimulator(series(scale=scale), q=Q).step_size for scale in (1e-2, 1e4))
    assert soft == 1e-3 and stiff == 1e-6
    with pytest.raises(rbd.RbdError, match=r"step 0.005 s is too long for rk4 at 0 s: .* about joint 'joint_7'; use"):
        ElasticSimulator(series(), q=Q, step=5e-3, integrator="rk4")
    with pytest.raises(rbd.RbdError, match=r"step 0.001 s is too long for rk4"):    # because of the damper
        ElasticSimulator(pendulum(damping=2e3), step=1e-3, integrator="rk4")


def test_a_step_that_becomes_too_long_on_the_way_is_refused():
    """Two bent axes have more inertia against each other than two that come to lie on one line."""
    actuation = series()
    bent, straight = np.array([0.0, 0.5, 0.0, 1.0, 0.0, 1.2, 0.0]), np.array([0.0, 0.5, 0.0, 1.0, 0.0, 0.02, 0.0])
    rates = [ElasticSimulator(actuation, q=q)._stiffest(np.concatenate([q, q]))[0] for q in (bent, straight)]
    assert rates[1] > 1.02 * rates[0]
    step = 2.5 / (0.3 * rates[1] + 0.7 * rates[0])
    simulator = ElasticSimulator(actuation, q=bent, v=[0.0, 0.0, 0.0, 0.0, 0.0, -4.0, 0.0], step=step,
                                 integrator="rk4")
    with pytest.raises(rbd.RbdError, match=r"too long for rk4 at 0\.[0-9]* s"):
        simulator.step(holding(actuation, bent).effort, 1000)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: ElasticSimulator(series(), step=0.0), "step must be a positive time"),
    (lambda: ElasticSimulator(series(), step=1e-3, integrator="euler"), "integrator"),
    (lambda: ElasticSimulator(series(), q=np.zeros(6)), "q has shape"),
    (lambda: ElasticSimulator(series(), q=np.full(7, 3.0)), "outside its limits"),
    (lambda: ElasticSimulator(series(), motor_position=np.zeros(6)), "motor_position: expected 7 finite numbers"),
    (lambda: ElasticSimulator(mixed(), motor_velocity=[np.nan] * 11), r"motor_velocity.*joint_7/stiffness"),
    (lambda: ElasticSimulator(series()).step(np.zeros(3)), "motor_effort: expected 7"),
    (lambda: ElasticSimulator(series()).step(lambda t: [np.inf] * 7), "motor_effort: expected 7"),
    (lambda: ElasticSimulator(series()).step(n=0), "positive number of steps"),
    (lambda: ElasticSimulator(series()).step(external_wrenches=np.zeros((3, 6))), "external_wrenches has shape"),
    (lambda: ElasticSimulator(series()).step(external_wrenches={"link_9": np.zeros(6)}), "link_9"),
], ids=range(11))
def test_bad_input_is_refused(call, words):
    with pytest.raises(rbd.RbdError, match=words):
        call()


def test_efforts_as_a_function_of_time_in_the_plain_simulator():
    """A slide under a cubic force: rk4 integrates it exactly."""
    model = robots.pendulum(joint_type="prismatic", axis=(1.0, 0.0, 0.0))
    simulator = Simulator(model, step=0.1, integrator="rk4", limits=False)
    simulator.step(lambda t: [t**2], 10)
    assert simulator.v[0] == pytest.approx(1.0 / 3.0, rel=1e-13)
    assert simulator.q[0] == pytest.approx(1.0 / 12.0, rel=1e-13)
    with pytest.raises(rbd.RbdError, match="effort has shape"):
        simulator.step(lambda t: [1.0, 2.0])


@pytest.mark.parametrize("arm", ["series", "mixed"])
def test_efforts_and_stiffness_are_derivatives_of_the_energy(arm):
    """−∂U/∂x by differences, and ∂²U/∂x² where it has no negative direction."""
    springs = ElasticSimulator(ARMS[arm](), q=Q)._springs
    x = ElasticSimulator(ARMS[arm](), q=Q)._simulator.q + 0.002 * np.arange(springs.size)
    h, eye = 1e-6, np.eye(springs.size)
    # per coordinate, as stiffness motors count in N m/rad and others in rad
    scale = np.where(np.abs(x) > 10.0, 1e3, 1.0)
    slope = [(springs.energy(x + h * s * e) - springs.energy(x - h * s * e)) / (2.0 * h * s)
             for s, e in zip(scale, eye, strict=True)]
    np.testing.assert_allclose(springs.effort(x, None), -np.array(slope), atol=1e-5)
    hessian = -np.array([(springs.effort(x + h * s * e, None) - springs.effort(x - h * s * e, None)) / (2.0 * h * s)
                         for s, e in zip(scale, eye, strict=True)])
    definite = [i for i in range(7) if not (arm == "mixed" and i in (3, 6))]    # joints with a stiffness input are not
    block = [*definite, *(int(springs.motors[i]) for i in definite if springs.motors[i] != i)]
    at = np.ix_(block, block)
    np.testing.assert_allclose(springs.stiffness(x)[at], hessian[at], rtol=1e-5, atol=1e-3)
    assert np.linalg.eigvalsh(springs.stiffness(x))[0] > -1e-6
    np.testing.assert_allclose(springs.joint_stiffness(x)[springs.actuation.elastic],
                               np.diag(hessian)[springs.actuation.elastic], rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_slack_tendons_and_large_deflections(seed):
    """Efforts are −∂U/∂x wherever the coordinates are; stiffness is symmetric without negative directions."""
    simulator = ElasticSimulator(mixed(), q=Q)
    springs = simulator._springs
    x = simulator._simulator.q + np.random.default_rng(seed).normal(size=springs.size)
    h, eye = 1e-6, np.eye(springs.size)
    slope = [(springs.energy(x + h * e) - springs.energy(x - h * e)) / (2.0 * h) for e in eye]
    np.testing.assert_allclose(springs.effort(x, None), -np.array(slope), rtol=1e-6, atol=1e-8 * springs.energy(x))
    K = springs.stiffness(x)
    np.testing.assert_array_equal(K, K.T)
    values = np.linalg.eigvalsh(K)
    assert values[0] > -1e-12 * values[-1]


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit", "rk4"])
@pytest.mark.parametrize("arm", ["series", "mixed"])
def test_compiled_steps_are_those_made_one_by_one(arm, integrator):
    """With dampers, friction that sticks, stops, brakes, wrenches, and motors that follow functions of time."""
    actuation = series(iiwa().with_(friction=0.5), damping=2e-3, coulomb=1.0) if arm == "series" else mixed()
    many, plain = (ElasticSimulator(actuation, integrator=integrator, q=Q, v=V, step=1e-4) for _ in range(2))
    inside = plain._simulator
    inside._many = None
    inside._modes = Modes(inside.model, inside._level, inside._bounds) if integrator == "rk4" else None
    rng = np.random.default_rng(4)
    many._simulator._step = None    # would fail
    for brakes in (0.0, 0.0, 5.0):
        effort = rng.normal(size=actuation.nm) * np.where(np.arange(actuation.nm) < 7, 20.0, 1e-3)
        wrench = {many.model.body_names[-1]: rng.normal(size=6)}
        for each in (many, plain):
            each.brakes = np.full(actuation.nm, brakes)
            each.step(effort, 60, wrench)
            each.step(lambda t, effort=effort: effort * np.cos(300.0 * t), 20)
        np.testing.assert_allclose(many._simulator.q, inside.q, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(many._simulator.v, inside.v, rtol=1e-9, atol=1e-9)

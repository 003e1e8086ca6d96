"""The flatness map: every time derivative against a complex step, the motors' equations from the energy."""

import numpy as np
import pytest
from actuation.drives import MIXED, STIFFNESS, Cosines, iiwa, mixed, series
from actuation.torques import torques
from support.robots import assert_close

import rbd_ros as rbd
from rbd_ros.core.actuation.motor_reference import flat_motors
from rbd_ros.core.dynamics.friction import Friction
from rbd_ros.core.actuation.spring_motion import Motion

STEP = 1e-30
ARMS = {"mixed": mixed, "series": series, "rigid": lambda: rbd.load_actuation(
    {name: {"type": "rigid", "motor": {"rotor_inertia": 1.0}} for name in MIXED}, iiwa())}


def motion(actuation, seed):
    """q(t), τ(t) and k(t) of a motion within reach of all springs."""
    rng = np.random.default_rng(seed)
    torque = Cosines(rng, 7, 25.0)
    return Cosines(rng, 7), torque, Cosines(rng, actuation.variable.size, 20.0, actuation.stiffness)


def motors(actuation, functions, t):
    q, tau, k = functions
    return flat_motors(actuation, Motion(*q.motion(t)), Motion(*tau.motion(t)), Motion(*k.motion(t)))


@pytest.mark.parametrize("arm", ARMS)
def test_velocities_and_accelerations_are_time_derivatives(arm):
    actuation = ARMS[arm]()
    for seed in range(10):
        functions = motion(actuation, seed)
        now, step = (motors(actuation, functions, 0.7 + x) for x in (0.0, 1j * STEP))
        assert_close(now.velocity, step.position.imag / STEP, 1e-10)
        assert_close(now.acceleration, step.velocity.imag / STEP, 1e-10)
        for got, expected in ((now.velocity, step.position), (now.acceleration, step.velocity)):    # each motor
            np.testing.assert_allclose(got, expected.imag / STEP, rtol=1e-9, atol=1e-12)


def spring_energy(actuation, q, z):
    """Energy of all springs, from the drives one by one."""
    total = 0.0 * (q[0] + z[0])
    second = actuation.nv
    for i, drive in enumerate(actuation.drives.values()):
        if isinstance(drive, rbd.SeriesDrive):
            phi = z[i] - q[i]
            total += sum(c * phi**(2 * j + 2) / (2 * j + 2) for j, c in enumerate(drive.spring.coefficients))
        elif isinstance(drive, rbd.VariableDrive):
            theta, sigma = drive.spring.from_motors(z[i], z[second])
            total += drive.spring.energy(theta - q[i], sigma)
            second += 1
    return total


@pytest.mark.parametrize("arm", ["mixed", "series"])
def test_efforts_obey_the_equations_of_motors_and_links(arm):
    """`B z̈ + ∂U/∂z + τ_f(ż) = τ_m` and `τ = −∂U/∂q`, with U summed over the drives, by complex step."""
    actuation = ARMS[arm]()
    for seed in range(10):
        functions = motion(actuation, seed)
        now = motors(actuation, functions, 0.3)
        q, tau = functions[0](0.3), functions[1](0.3)
        for i, drive in enumerate(actuation.drives.values()):
            if isinstance(drive, rbd.RigidDrive):
                assert now.effort[i] == pytest.approx(tau[i] + drive.motor.damping * now.velocity[i], rel=1e-14)
                continue
            e = 1j * STEP * np.eye(7)[i]
            assert -spring_energy(actuation, q + e, now.position).imag / STEP == pytest.approx(tau[i], rel=1e-10)
        elastic = [j for j in range(actuation.nm) if j not in actuation.rigid]
        drives = list(actuation.drives.values())
        all_motors = [d.motor for d in drives] + [d.stiffness_motor for d in drives if isinstance(d, rbd.VariableDrive)]
        for j in elastic:
            load = spring_energy(actuation, q, now.position + 1j * STEP * np.eye(actuation.nm)[j]).imag / STEP
            m, v = all_motors[j], now.velocity[j]
            level = m.coulomb + (m.breakaway - m.coulomb) * np.exp(-(v / m.stribeck_velocity)**2)
            expected = (m.rotor_inertia * m.gear_ratio**2 * now.acceleration[j] + load + m.damping * v
                        + level * np.tanh(v / m.smoothing))
            assert now.effort[j] == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_the_stiffness_is_that_of_the_springs():
    actuation = mixed()
    functions = motion(actuation, 1)
    now = motors(actuation, functions, 0.5)
    q = functions[0](0.5)
    # the second derivative of the energy: a central difference of complex steps
    for i in actuation.elastic:
        e = np.eye(7)[i]
        slope = [spring_energy(actuation, q + (h + 1j * STEP) * e, now.position).imag / STEP for h in (1e-5, -1e-5)]
        assert now.stiffness[i] == pytest.approx((slope[0] - slope[1]) / 2e-5, rel=1e-6)
    np.testing.assert_allclose(now.stiffness[actuation.variable], functions[2](0.5), rtol=1e-15)
    assert np.isinf(now.stiffness[actuation.rigid]).all()
    np.testing.assert_array_equal(now.torque, functions[1](0.5))


def inputs(actuation, count=None, seed=3):
    rng = np.random.default_rng(seed)
    lead = () if count is None else (count,)
    return (*rng.normal(size=(3, *lead, 7)), 10.0 * rng.normal(size=(*lead, 3, 7)),
            np.stack([actuation.stiffness, *rng.normal(size=(2, actuation.variable.size))]))


def test_a_series_elastic_joint_in_words():
    """θ = q + τ/K, θ̇ = q̇ + τ̇/K, θ̈ = q̈ + τ̈/K, τ_m = B θ̈ + τ."""
    actuation = series()
    q, v, a, tau, _ = inputs(actuation)
    found = rbd.motor_reference(actuation, q, v, a, tau)
    K = np.array(STIFFNESS)
    for got, link, effort in zip(found, (q, v, a), tau, strict=False):
        np.testing.assert_allclose(got, link + effort / K, rtol=1e-14)
    np.testing.assert_allclose(found.effort, actuation.inertia * found.acceleration + tau[0], rtol=1e-14)
    np.testing.assert_array_equal(found.stiffness, K)


def test_rotors_of_rigid_joints_are_part_of_the_links_and_no_others():
    actuation = mixed(iiwa().with_(armature=0.7), joint_1={"type": "rigid"})
    np.testing.assert_array_equal(actuation.model.armature, [0.7, 0, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(actuation.inertia, [0.7, 4.0, 2.0, 2.0, 1.0, 0.5, 0.3, 1e-6, 1.0, 0.4, 1e-6])


def test_efforts_of_the_links_and_their_derivatives():
    """Against Cauchy's integral of the inverse dynamics at complex times, and with the friction of the joints."""
    actuation, wave, t = mixed(), Cosines(np.random.default_rng(8), 7), np.array([0.2, 1.3])
    motion = [np.array([wave(x, order) for x in t]) for order in range(5)]
    found = rbd.link_efforts(actuation, *motion)
    expected = torques(actuation.model, wave, t)
    assert_close(found, expected, 1e-9)
    np.testing.assert_allclose(rbd.link_efforts(actuation, *(x[0] for x in motion)), found[0], rtol=1e-12, atol=1e-12)
    rubbing = mixed(iiwa().with_(damping=2.0, friction=1.0))
    law = Friction(2.0, 1.0, 1.0)
    extra = rbd.link_efforts(rubbing, *motion) - found
    v, a, jerk = motion[1:4]
    slope = law.slope(v + 1j * STEP * a).imag / STEP
    for got, value in zip(np.moveaxis(extra, 1, 0), (law.effort(v), law.slope(v) * a, slope * a + law.slope(v) * jerk),
                          strict=True):
        assert_close(got, value, 1e-9)


@pytest.mark.parametrize("arm", ARMS)
def test_a_batch_is_its_states_one_by_one(arm):
    actuation = ARMS[arm]()
    q, v, a, tau, k = inputs(actuation, 4)
    batch = rbd.motor_reference(actuation, q, v, a, tau, k)
    for i in range(4):
        one = rbd.motor_reference(actuation, q[i], list(v[i]), a[i], tau[i].tolist(), k)
        for got, expected in zip(batch, one, strict=True):
            np.testing.assert_allclose(got[i], expected, rtol=1e-13, atol=1e-13)


def test_stiffness_may_be_left_out_or_be_constant():
    actuation = mixed()
    q, v, a, tau, _ = inputs(actuation)
    for got, expected in zip(rbd.motor_reference(actuation, q, v, a, tau),
                             rbd.motor_reference(actuation, q, v, a, tau, actuation.stiffness), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_what_a_spring_cannot_do_is_named_with_its_range():
    actuation = mixed()
    q, v, a, tau, k = inputs(actuation)
    k[:, 1] = 4000.0, 0.0, 0.0
    with pytest.raises(rbd.RbdError, match=r"joint 'joint_5': stiffness 4000 .* out of the spring's range, .* to 1540"):
        rbd.motor_reference(actuation, q, v, a, tau, k)
    k[:, 1] = 900.0, 0.0, 0.0
    tau[0, 5] = 1e6
    with pytest.raises(rbd.RbdError, match=r"joint 'joint_6': torque 1e\+06 N m .* at any stiffness"):
        rbd.motor_reference(actuation, q, v, a, tau, k)
    tau[0, 5], tau[0, 2] = 0.0, -6000.0
    with pytest.raises(rbd.RbdError, match=r"joint 'joint_3': torque -6000 N m .* largest deflection, 5500"):
        rbd.motor_reference(actuation, q, v, a, tau, k)


@pytest.mark.parametrize(("change", "words"), [
    ({"q": np.zeros(6)}, "q has shape"), ({"v": [np.nan] * 7}, "v"),
    ({"efforts": np.zeros((2, 7))}, "efforts has shape"),
    ({"efforts": np.full((3, 7), np.inf)}, "efforts must be finite"), ({"efforts": "x"}, "efforts"),
    ({"stiffness": [1.0, 2.0]}, "stiffness has shape"), ({"stiffness": [np.nan] * 4}, "stiffness must be finite"),
    ({"deflection": [0.1]}, "deflection has shape")])
def test_wrong_arrays_are_named(change, words):
    actuation = mixed()
    q, v, a, tau, _ = inputs(actuation)
    with pytest.raises(rbd.RbdError, match=words):
        rbd.motor_reference(**({"actuation": actuation, "q": q, "v": v, "a": a, "efforts": tau} | change))


@pytest.mark.parametrize("kind", ["rigid", "series_elastic"])
def test_friction_of_motors_by_direction_and_load(kind):
    """The load is the torque that the motor passes on to its joint."""
    rub = {"damping": 0.5, "coulomb": 2.0, "smoothing": 0.3, "asymmetry": -1.2, "viscous_asymmetry": 0.2, "load": 0.25}
    spring = {} if kind == "rigid" else {"stiffness": 900.0}
    made = [rbd.load_actuation({name: {"type": kind, **spring, "motor": {"rotor_inertia": 0.4, **motor}}
                                for name in iiwa().joint_names}, iiwa()) for motor in ({}, rub)]
    q, v, a, jerk, snap = np.random.default_rng(2).normal(size=(5, 7))
    tau = rbd.link_efforts(made[0], q, v, a, jerk, snap)
    bare, full = (rbd.motor_reference(actuation, q, v, a, tau) for actuation in made)
    z, t = bare.velocity, np.tanh(bare.velocity / 0.3)
    expected = 0.5 * z + 0.2 * np.abs(z) * np.abs(t) + (2.0 + 0.25 * np.sqrt(tau[0] ** 2 + 0.01)) * t - 1.2 * t * t
    np.testing.assert_allclose(full.effort - bare.effort, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("motor", "word"), [({"coulomb": 1.0, "asymmetry": 1.5}, "asymmetry"), ({"load": 1.0}, "load"),
                                             ({"viscous_asymmetry": 0.1}, "viscous_asymmetry")])
def test_motors_that_friction_would_drive_are_refused(motor, word):
    with pytest.raises(rbd.RbdError, match=f"motor: .*{word}"):
        rbd.Motor(**motor)


def test_elastic_joints_are_not_simulated_with_such_motors():
    drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=0.1, coulomb=1.0, load=0.1))
    with pytest.raises(rbd.RbdError, match="not simulated"):
        rbd.ElasticSimulator(rbd.Actuation(rbd.sample("two_link"), {"shoulder": drive, "elbow": drive}))

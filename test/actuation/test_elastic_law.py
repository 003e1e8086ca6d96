"""The law for elastic joints, mode by mode, on the simulated arm."""

import numpy as np
import pytest
from actuation.drives import MIXED, Cosines, mixed, series
from actuation.torques import Wave

import rbd_ros as rbd
from rbd_ros.cli.demo_motion import M_AMPLITUDE, M_FREQUENCY
from rbd_ros.core.simulation.elastic_simulator import ElasticSimulator
from rbd_ros.core.actuation.elastic_law import (
    ElasticLaw, ElasticLawSettings, ElasticState, ahead, without_fast_dampers,
)

WAVE = Wave(M_AMPLITUDE, M_FREQUENCY)
MOTOR_KP, MOTOR_KD = 4000.0, 200.0


def reference(t):
    return np.array([WAVE(t, order) for order in range(5)])


def controller(actuation, mode, period=1e-3, **options):
    gains = rbd.FeedbackGains.placed(actuation, options.pop("poles", 60.0), 60.0)
    return ElasticLaw(actuation, ElasticLawSettings(period, mode, gains=gains, **options))


def measured(robot):
    return ElasticState(robot.q, robot.v, robot.motor_position, robot.motor_velocity)


def follow(control, plant, duration, offset=0.0, **options):
    """Largest error of the links in the last third of the time."""
    period = control.settings.period
    start = controller(control.actuation, "feed_forward").command(reference(0.0)).reference
    robot = ElasticSimulator(plant, step=2.5e-4, integrator="rk4", q=WAVE(0.0) + offset, v=WAVE(0.0, 1),
                             motor_position=start.position, motor_velocity=start.velocity)
    count, error = round(duration / period), 0.0
    for i in range(count):
        command = control.command(reference(i * period), measured(robot), **options)
        robot.step(command.effort, round(period / robot.step_size))
        if 3 * i > 2 * count:
            error = max(error, np.abs(robot.q - WAVE(robot.time)).max())
    return error


def test_feed_forward_is_the_flatness_map():
    actuation = mixed()
    r = np.stack(Cosines(np.random.default_rng(1), 7).motion(0.5, 5))
    command = controller(actuation, "feed_forward").command(r)
    expected = rbd.motor_reference(actuation, *r[:3], rbd.link_efforts(actuation, *r))
    for got, value in zip(command.reference, expected, strict=True):
        np.testing.assert_array_equal(got, value)
    np.testing.assert_array_equal(command.effort, expected.effort)


def test_pd_acts_on_all_motors():
    actuation, rng = mixed(), np.random.default_rng(2)
    r = np.stack(Cosines(rng, 7).motion(0.5, 5))
    kp, kd = rng.uniform(1.0, 2.0, size=(2, 11))
    state = ElasticState(*rng.normal(size=(2, 7)), *rng.normal(size=(2, 11)))
    command = controller(actuation, "feed_forward_pd", kp=kp, kd=kd).command(r, state)
    motors = command.reference
    np.testing.assert_allclose(command.effort, motors.effort + kp * (motors.position - state.motor_position)
                               + kd * (motors.velocity - state.motor_velocity), rtol=1e-13)
    one = controller(actuation, "feed_forward_pd", kp=2.0, kd=3.0)
    many = controller(actuation, "feed_forward_pd", kp=np.full(11, 2.0), kd=np.full(11, 3.0))
    np.testing.assert_array_equal(one.command(r, state).effort, many.command(r, state).effort)


def test_feed_forward_with_pd_leaves_what_holding_the_effort_costs():
    """A held effort is half a period late: the error falls with the period."""
    actuation = series(scale=0.1)
    errors = [follow(controller(actuation, "feed_forward_pd", period, kp=MOTOR_KP, kd=MOTOR_KD), actuation, 0.45)
              for period in (1e-3, 5e-4, 2.5e-4)]
    assert errors[0] < 1e-4
    assert errors[1] < 0.6 * errors[0] and errors[2] < 0.6 * errors[1]


def test_feedback_linearization_makes_an_offset_die_out():
    actuation = series(scale=0.1)
    errors = [follow(controller(actuation, "feedback_linearization"), actuation, time, 0.002) for time in (0.1, 0.45)]
    assert errors[0] > 1e-3 and errors[1] < 2e-4


def test_looking_ahead_makes_up_for_the_sampling():
    actuation = series(scale=0.1)
    plain, looking = (follow(controller(actuation, "feedback_linearization", look_ahead=x), actuation, 0.3)
                      for x in (0.0, 0.5))
    assert looking < 0.3 * plain


def test_springs_with_damping_carry_their_state_along():
    actuation = series(damping=5e-3)
    control = controller(actuation, "feed_forward")
    deflection = rbd.DampedDeflection(actuation, 1e-3, rbd.link_efforts(actuation, *reference(0.0)))
    for i in range(5):
        r = reference(i * 1e-3)
        efforts = rbd.link_efforts(actuation, *r)
        value = deflection.value if i == 0 else deflection.advance(efforts)
        expected = rbd.motor_reference(actuation, *r[:3], efforts, deflection=value)
        np.testing.assert_array_equal(control.command(r).effort, expected.effort)
    control.reset()
    steady = rbd.motor_reference(actuation, *reference(0.0)[:3], rbd.link_efforts(actuation, *reference(0.0)))
    np.testing.assert_allclose(control.command(reference(0.0)).effort, steady.effort, rtol=1e-12)


def test_dampers_too_fast_for_the_control_count_as_none():
    actuation = mixed(joint_2=MIXED["joint_2"] | {"damping": 10.0},
                      joint_3=MIXED["joint_3"] | {"damping": 100.0})    # time constants 0.5 and 10 ms
    slow = without_fast_dampers(actuation, 2e-3)
    assert slow.spring_damping.tolist() == [0.0, 100.0] and actuation.spring_damping.tolist() == [10.0, 100.0]
    assert without_fast_dampers(slow, 2e-3) is slow


def test_the_reference_ahead_is_its_taylor_series():
    np.testing.assert_allclose(ahead(reference(0.4), 1e-3)[:4], reference(0.401)[:4], rtol=0.0, atol=2e-3)
    np.testing.assert_allclose(ahead(reference(0.4), 1e-3)[0], reference(0.401)[0], rtol=0.0, atol=1e-11)


@pytest.mark.parametrize(("options", "words"), [
    ({"mode": "feedforward"}, "unknown mode 'feedforward'; did you mean 'feed_forward'"),
    ({"period": 0.0}, "period must be a positive time"), ({"kp": -1.0}, "kp: expected one number or 7"),
    ({"kd": [1.0, 2.0]}, "kd: expected one number or 7"), ({"kp": [np.nan] * 7}, "kp: expected")])
def test_wrong_settings_are_named(options, words):
    with pytest.raises(rbd.RbdError, match=words):
        controller(series(), **({"mode": "feed_forward_pd"} | options))
    with pytest.raises(rbd.RbdError, match="feedback_linearization needs gains"):
        ElasticLaw(series(), ElasticLawSettings(1e-3, "feedback_linearization"))


def test_wrong_commands_are_named():
    control = controller(series(), "feed_forward_pd")
    with pytest.raises(rbd.RbdError, match=r"reference has shape \(4, 7\)"):
        control.command(np.zeros((4, 7)))
    with pytest.raises(rbd.RbdError, match="needs the measured state"):
        control.command(np.zeros((5, 7)))
    state = ElasticState(*np.zeros((4, 7)))
    for change in ({"q": np.zeros(6)}, {"motor_position": np.full(7, np.nan)}, {"motor_velocity": np.zeros(8)}):
        with pytest.raises(rbd.RbdError, match=f"measured {next(iter(change))}: expected 7 finite numbers"):
            control.command(np.zeros((5, 7)), state._replace(**change))
    with pytest.raises(rbd.RbdError, match="joint 'joint_5': stiffness"):
        controller(mixed(), "feed_forward").command(np.zeros((5, 7)), stiffness=[3000.0, 9000.0, 900.0, 400.0])

"""Law `lqr`, and what a faster local loop is sent: against SciPy, and with an arm in the loop."""
from __future__ import annotations

import numpy as np
import pytest
from feedback.test_slow_messages import STEPS, computed_torque, error, motion_of
from feedback.test_slow_messages import model as seven_joints    # noqa: F401
from support.arm import A_REF, NAMES, Q_REF, V_REF, Q, V, arm, measured
from support.lqr import gain

import rbd_ros as rbd
from rbd_ros.core.motion.trajectory import Reference
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.local_feedback import local_feedback
from rbd_ros.runtime.control.lqr_settings import LQRSettings
from rbd_ros.runtime.control.tracking_law import TrackingLaw, TrackingLawSettings
from rbd_ros.runtime.friction_terms import FrictionTerms
from rbd_ros.runtime.inputs.references import Point
from rbd_ros.runtime.steady.steady_tracking import TrackingCycle

MS, HOLD = 1_000_000, 20
REFERENCE = Reference(Q_REF, V_REF, A_REF)
WEIGHTS = LQRSettings(position=np.full(2, 100.0), velocity=np.full(2, 2.0), effort=np.full(2, 0.5), period=0.001)
K = gain(arm(), Q_REF, V_REF, A_REF, 100.0, 2.0, 0.5)
X = np.concatenate([Q - Q_REF, V - V_REF])


def law(**settings):
    zero = np.zeros(2)
    return TrackingLaw(arm(), TrackingLawSettings(**({"kp": zero, "kd": zero, "feedforward": "lqr",
                                                       "lqr": WEIGHTS} | settings)))


def full():
    return rbd.inverse_dynamics(arm(), *REFERENCE[:3]) + rbd.friction_effort(arm(), V_REF, 0.01)


def close(actual, expected, bound=1e-8):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=bound)


# ---- the law


def test_it_is_full_with_the_gains_of_the_weights():
    close(law().effort(Q, V, REFERENCE), full() + K @ X)
    close(law().effort(Q, V, REFERENCE, share=0.25), full() + 0.25 * K @ X)
    close(law().effort(Q, V, REFERENCE, share=0.0), full(), 1e-12)
    coupled = K.reshape(2, 2, 2)[:, 1]    # by velocities
    assert np.abs(coupled - np.diag(np.diag(coupled))).max() > 0.1, "more than gains of joints by themselves"


def test_gains_of_joints_do_not_count():
    close(law(kp=np.full(2, 50.0), kd=np.full(2, 9.0)).effort(Q, V, REFERENCE), full() + K @ X)


def test_friction_that_is_not_compensated_is_not_in_the_linearisation():
    without = law(friction=FrictionTerms(False, False))
    smooth = arm().with_(damping=0.0)
    close(without.effort(Q, V, REFERENCE), rbd.inverse_dynamics(smooth, *REFERENCE[:3])
          + gain(smooth, Q_REF, V_REF, A_REF, 100.0, 2.0, 0.5) @ X)


def test_each_reference_has_its_own_gains():
    made = law()
    other = Reference(Q_REF + 0.5, V_REF, A_REF)
    for reference in (REFERENCE, other, REFERENCE, other._replace(a=2.0 * A_REF), other):
        close(made.gain(Q, reference), gain(arm(), *reference[:3], 100.0, 2.0, 0.5))


@pytest.mark.parametrize("kind", ["none", "gravity", "full", "computed_torque"])
def test_the_gain_of_every_law_is_its_slope(kind):
    """By the state, where the model's own terms are left out: at rest in weightlessness."""
    model, kp, kd = arm().with_(gravity=(0, 0, 0)), np.array([30.0, 20.0]), np.array([3.0, 2.0])
    made = TrackingLaw(model, TrackingLawSettings(kp=kp, kd=kd, feedforward=kind))
    reference = Reference.rest(Q_REF)
    found, step = made.gain(Q_REF, reference), 1e-6
    for j in range(4):
        dx = step * np.eye(4)[j]
        sides = [made.effort(Q_REF + sign * dx[:2], sign * dx[2:], reference) for sign in (1.0, -1.0)]
        close(found[:, j], (sides[0] - sides[1]) / (2.0 * step), 1e-6)


# ---- in the controller


def controller(model=None, **values):
    model = arm() if model is None else model
    values = {"ramp_in": 0.0, "ramp_out": 0.0, "feedforward": "lqr", "lqr.position": [100.0], "lqr.velocity": [2.0],
              "lqr.effort": [0.5]} | {name.replace("__", "."): value for name, value in values.items()}
    made = FeedforwardController(model, FeedforwardSettings.from_values(values, model))
    made.local_loop = True
    made.activate(0.0)
    return made


def test_weights_that_do_not_hold_the_robot_and_odometry_are_refused():
    with pytest.raises(rbd.RbdError, match="which is not supported with odometry"):
        controller(odometry="odom")
    with pytest.raises(rbd.RbdError, match=r"lqr\.effort"):
        controller(lqr__effort=[0.0])
    with pytest.raises(rbd.RbdError, match=r"lqr\.position"):
        controller(lqr__position=[0.0])


@pytest.mark.closed_loop
def test_the_tolerance_is_by_its_gains_and_the_hold_by_those_of_joints():
    made = controller(gains__kp=[30.0], gains__kd=[2.0])
    laws = made.safety.laws.newest
    at_rest = gain(arm(), np.zeros(2), np.zeros(2), np.zeros(2), 100.0, 2.0, 0.5)
    np.testing.assert_array_equal(laws.hold_gains(Q).kp, [30.0, 30.0])
    assert controller().safety.laws.newest.hold_gains(Q) is None
    close(laws.return_time(), np.diag(at_rest[:, 2:]) / np.diag(at_rest[:, :2]), 1e-6)
    assert np.isfinite(laws.tolerance).all()


def test_the_steady_cycle_is_for_other_laws():
    for kind, suits in (("lqr", False), ("full", True)):
        laws = controller(feedforward=kind).safety.laws.newest
        assert TrackingCycle.suits(None, laws) is suits


def answered(made, q=Q, v=V, now=1.0, stamp=MS):
    q = measured(made.state.q, q)
    command = made.on_state(now, stamp, list(made.model.joint_names), q, v)
    return local_feedback(made, q, v, command.effort, HOLD * 1e-3), command


def test_a_local_loop_goes_on_as_the_law_at_the_middle_of_the_hold():
    """Along a trajectory: feed-forward and reference of 10 ms later, and the gain of the answered state."""
    made = controller(friction__coulomb=False)
    start = [Point(0.0, Q_REF, V_REF, A_REF), Point(0.5, Q_REF + 0.3, 0.0 * V_REF, 0.0 * A_REF)]
    assert made.on_state(0.99, MS, NAMES, Q_REF, V_REF) is not None
    assert made.on_trajectory(0.99, 2 * MS, NAMES, start)
    found, _ = answered(made, Q_REF + 0.02, V_REF - 0.05, 1.0, 12 * MS)
    motion = made.reference.followed
    now, later = motion.sample(0.01), motion.sample(0.02)
    there = gain(arm(), *now[:3], 100.0, 2.0, 0.5)
    feed = rbd.inverse_dynamics(arm(), *later[:3]) + arm().damping * later.v
    for q, v in ((Q_REF, V_REF), (Q_REF + 0.1, V_REF + 1.0)):
        u = found.effort + found.gain @ np.concatenate([q - found.q, v - found.v])
        close(u, feed + there @ np.concatenate([q - later.q, v - later.v]), 1e-6)


def test_looking_ahead_changes_nothing():
    """Also where another trajectory waits for its start, within the time that is looked ahead."""
    made = controller()
    assert made.on_state(0.99, MS, NAMES, Q_REF, V_REF) is not None
    for begin in (0, 15 * MS):
        assert made.on_trajectory(0.99, begin, NAMES, [Point(0.5, Q_REF + 0.1, 0.0 * V_REF, 0.0 * A_REF)])
    before = made.reference.followed
    answered(made, Q_REF, V_REF, 1.0, 12 * MS)
    assert made.reference.followed is before and made.reference.waits


@pytest.mark.parametrize("event", ["nothing", "stop", "inactive"])
def test_without_a_command_there_is_no_feedback(event):
    made = controller()
    if event != "nothing":
        assert made.on_reference(1.0, 0, NAMES, Q_REF, V_REF, A_REF)
        assert np.abs(answered(made)[0].gain).max() > 1.0
    if event == "stop":
        made.safety.stop()
    elif event == "inactive":
        made.deactivate()
    found, command = answered(made, now=1.01, stamp=2 * MS)
    assert not found.gain.any()
    close(found.effort, command.effort, 0.0)


def test_feedback_ramps_in_with_the_command():
    made = controller(ramp_in=0.1)
    shares = []
    for k in range(12):
        now = 1.0 + 0.01 * k
        assert made.on_reference(now, 0, NAMES, Q_REF, V_REF, A_REF)
        found = answered(made, now=now, stamp=(1 + 10 * k) * MS)[0]
        shares.append(found.gain[0, 0] / K[0, 0])
    assert shares[0] < 0.15 and np.all(np.diff(shares) >= -1e-9)
    close(shares[-1], 1.0, 1e-6)


def test_the_sent_effort_is_within_the_limits():
    made = controller(effort_limits__maximum=[3.0])
    assert made.on_reference(1.0, 0, NAMES, Q_REF, V_REF, 50.0 * A_REF)
    assert np.abs(answered(made)[0].effort).max() <= 3.0


@pytest.mark.closed_loop
# seeds: within the velocity limits of the description
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_an_arm_with_states_at_50_hz_tracks_as_by_computed_torque_at_1_khz(seven_joints, seed):    # noqa: F811
    """The node's logic answers every 20th state; the local loop applies its message at 1 kHz."""
    model, motion = seven_joints, motion_of(seed)
    mass = np.median([np.diag(rbd.mass_matrix(model, motion(t).q)) for t in np.linspace(0.0, 1.5, 20)], axis=0)
    made = controller(model, lqr__position=[60.0**4], lqr__velocity=[2.0 * 60.0**2],
                      lqr__effort=list(1.0 / mass**2), state_rate=50.0)
    times = np.linspace(0.0, 1.5, 76)
    points = [Point(float(t), *motion(t)[:3]) for t in times]
    names = list(model.joint_names)
    assert made.on_state(10.0, MS, names, motion(0.0).q, np.zeros(7)) is not None
    taken = made.on_trajectory(10.0, 21 * MS, names, points)
    assert taken, taken
    held = []

    def loop(k, q, v):
        if k % HOLD == 0:
            stamp = (21 + k) * MS
            command = made.on_state(10.02 + 1e-3 * k, stamp, names, q, v)
            held[:] = local_feedback(made, q.copy(), v.copy(), command.effort, HOLD * 1e-3)
        return held[2] + held[3] @ np.concatenate([q - held[0], v - held[1]])

    found = error(model, motion, loop)
    assert made.safety.mode == "running" and STEPS == 1500
    assert found < 1.2 * error(model, motion, computed_torque(model, motion, 1))


def standing(rate, seconds=1.0, **values):
    """An arm that is 5 % heavier than the model, at rest, with this rate of states (Hz): its controller and plant."""
    model = rbd.sample("iiwa").with_(armature=0.3)
    made = FeedforwardController(model, FeedforwardSettings.from_values({"feedforward": "lqr"} | values, model))
    made.activate(0.0)
    plant, fastest = rbd.Simulator(model.with_scaled_masses(1.05), q=np.full(7, 0.3)), 0.0
    problems = set()
    for k in range(round(seconds * rate)):
        now = 1.0 + k / rate
        command = made.on_state(now, round(1e9 * now), list(model.joint_names), plant.q, plant.v)
        if k == round(0.5 * rate):
            zero = np.zeros(7)
            made.on_trajectory(now, 0, list(model.joint_names), [Point(0.4, plant.q + 0.05, zero, zero)])
        problems.add(command.problem)
        plant.step(command.effort, round(1e3 / rate))
        fastest = max(fastest, float(np.abs(plant.v).max()))
    return made, plant, fastest, "".join(problems)


@pytest.mark.closed_loop
@pytest.mark.parametrize("rate", [50, 1000])
def test_what_holds_an_arm_without_a_command_does_not_shake_it(rate):
    """By stiff weights, for another period than that of the states."""
    made, _, fastest, _ = standing(rate, 0.5, **{"lqr.position": [1e6], "gains.kp": [100.0], "gains.kd": [5.0]})
    assert made.safety.mode == "waiting" and fastest < 0.5


@pytest.mark.closed_loop
def test_gains_for_a_faster_loop_than_that_of_the_states_give_no_command():
    made, _, fastest, problems = standing(50, 2.0, state_rate=50.0)
    assert made.safety.modes.share == 0.0 and fastest < 0.5
    assert "gains for a loop of 1 ms ('lqr.period'), joint states come every 20 ms" in problems
    made, plant, _, _ = standing(500, 2.0, **{"lqr.period": 0.002})
    assert made.safety.mode == "running" and np.abs(plant.v).max() < 0.05

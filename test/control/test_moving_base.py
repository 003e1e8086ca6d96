"""An arm on a base that moves: odometry is checked, torque is that of a floating root, and safe without odometry."""
from __future__ import annotations

import math

import numpy as np
import pytest
from support.arm import A_REF, NAMES, Q_REF, TILT, TILTED, V_REF, Q, V, arm, arm_urdf

import rbd_ros as rbd
from rbd_ros.core.lie.so3 import exp, from_rpy, to_quaternion
from rbd_ros.core.model.payload import payload, with_payloads
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.tracking_law import FEEDFORWARD
from rbd_ros.runtime.world.odometry import Odometry, OdometryInput

QUATERNION = tuple(to_quaternion(from_rpy(TILT)))
OMEGA = np.array([0.7, -0.4, 1.1])
GOOD = Odometry(10**9, "odom", "base", (1.0, 2.0, 3.0), QUATERNION, (*OMEGA, 5.0, -6.0, 7.0))


def controller(**values):
    model = arm()
    values = {"odometry": "odom", "ramp_in": 0.0, "feedback.min_rate": 0.0, "gravity_check": False,
              "reference_timeout": 0.0} | {name.replace("__", "."): value for name, value in values.items()}
    made = FeedforwardController(model, FeedforwardSettings.from_values(values, model))
    made.activate(0.0)
    return made


def answer(made, now, q=Q, v=V):
    return made.on_state(now, round(now * 1e9), NAMES, q, v)


def tell(made, now, **changes):
    return made.on_odometry(now, GOOD._replace(stamp_ns=round(now * 1e9), **changes))


def turntable():
    """The same arm on a joint that turns about ω, at the base's tilt: what it needs beyond the joint `turn`."""
    axis = " ".join(map(str, OMEGA / np.linalg.norm(OMEGA)))
    rpy = " ".join(map(str, TILT))
    return rbd.load_urdf(arm_urdf(extra='<link name="ground"/><joint name="turn" type="continuous">'
                                  f'<parent link="ground"/><child link="base"/><origin rpy="{rpy}"/>'
                                  f'<axis xyz="{axis}"/></joint>'))


@pytest.mark.parametrize("law", [law for law in FEEDFORWARD if law != "lqr"])
@pytest.mark.parametrize("turns", [False, True])
def test_every_law_is_that_of_the_arm_on_a_turntable(law, turns):
    kp, kd = np.array([30.0, 20.0]), np.array([3.0, 2.0])
    made = controller(feedforward=law, gains__kp=list(kp), gains__kd=list(kd))
    rate = float(np.linalg.norm(OMEGA)) if turns else 0.0
    assert tell(made, 1.0, twist=(*(OMEGA if turns else np.zeros(3)), 5.0, -6.0, 7.0))
    assert made.on_reference(1.0, 0, NAMES, Q_REF, V_REF, A_REF)
    found = answer(made, 1.0).effort
    table, fixed = turntable(), arm()
    pd = kp * (Q_REF - Q) + kd * (V_REF - V)
    friction = rbd.friction_effort(fixed, V_REF)

    def need(q, v, a):
        return rbd.inverse_dynamics(table, [0.0, *q], [rate, *v], [0.0, *a])[1:]

    expected = {"none": pd, "gravity": rbd.gravity_effort(table, [0.0, *Q])[1:] + pd,
                "full": need(Q_REF, V_REF, A_REF) + friction + pd,
                "computed_torque": need(Q, V, A_REF + pd) + friction}[law]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
    if not turns:    # then it is the arm mounted so
        mounted = arm().with_(gravity=TILTED)
        np.testing.assert_allclose(made.safety.laws.newest.gravity(Q), rbd.gravity_effort(mounted, Q), atol=1e-12)


def test_wrenches_and_loads_act_on_the_moving_arm_too():
    load = {"payload.body": "lower", "payload.mass": 1.0, "payload.com": [0.1, 0.0, 0.2]}
    push = [0.1, 0.2, 0.3, 4.0, 5.0, 6.0]
    made = controller(**load, **{"wrench_limits.rate": np.inf})
    tell(made, 1.0)
    made.on_wrenches(1.0, [("lower", push)])
    made.on_reference(1.0, 0, NAMES, Q_REF, V_REF, A_REF)
    model = made.settings.floating
    full = rbd.inverse_dynamics(model, [0, 0, 0, *QUATERNION, *Q_REF], [*OMEGA, 0, 0, 0, *V_REF],
                                [0.0] * 6 + [*A_REF], {"lower": push})
    np.testing.assert_allclose(answer(made, 1.0).effort, full[6:] + rbd.friction_effort(arm(), V_REF), atol=1e-11)
    assert model.total_mass == pytest.approx(4.0)


def test_nothing_before_the_first_odometry_and_the_safe_effort_without_a_fresh_one():
    made = controller(odometry_timeout=0.1, safe_output__damping=3.0, state_timeout=1.0, safe_output__hold=0.2)
    refused = answer(made, 0.9)
    assert not refused and "which way gravity points is not known" in refused.text
    assert made.rejections.counts["no_odometry"] == 1 and made.watchdog(0.95) is None and made.state.refused
    assert tell(made, 1.0)
    made.on_reference(1.0, 0, NAMES, Q_REF, V_REF, A_REF)
    followed = answer(made, 1.0).effort
    np.testing.assert_allclose(answer(made, 1.09).effort, followed)
    mounted = arm().with_(gravity=TILTED)
    held = rbd.inverse_dynamics(mounted, Q, 0 * V, -3.0 * V)
    lost = answer(made, 1.11)
    assert made.safety.mode == "waiting" and "odometry is 0.11 s old" in lost.problem
    np.testing.assert_allclose(lost.effort, held, atol=1e-12)
    assert tell(made, 1.12)
    np.testing.assert_allclose(answer(made, 1.12).effort, followed)    # soon enough: the reference still counts
    for now in (1.8, 2.4, 3.0):    # lost for longer than it is held
        np.testing.assert_allclose(answer(made, now).effort, held, atol=1e-12)
    assert tell(made, 3.01)
    np.testing.assert_allclose(answer(made, 3.01).effort, held, atol=1e-12)    # not any more
    made.on_reference(3.02, 0, NAMES, Q_REF, V_REF, A_REF)
    np.testing.assert_allclose(answer(made, 3.02).effort, followed)


def test_after_a_change_of_settings_both_laws_are_on_the_moving_base():
    values = {"odometry": "odom", "ramp_in": 1.0, "feedforward": "gravity", "feedback.min_rate": 0.0,
              "safe_output.damping": 0.0}
    load = {"payload.body": "lower", "payload.mass": 0.5, "payload.com": [0.2, 0.0, 0.1]}
    made = controller(**values)
    tell(made, 1.0, twist=(0.0,) * 6)
    answer(made, 1.0)
    answer(made, 2.5)
    tell(made, 2.5, twist=(0.0,) * 6)
    answer(made, 2.51)
    model = arm()
    made.apply(FeedforwardSettings.from_values({**values, **load}, model))
    tilt = np.add(TILT, [0.05, 0.0, 0.0])
    assert tell(made, 2.6, quaternion=tuple(to_quaternion(from_rpy(tilt))), twist=(0.0,) * 6)
    model = model.with_(gravity=from_rpy(tilt).T @ [0.0, 0.0, -9.81])
    old, new = (rbd.gravity_effort(each, Q) for each in (model, with_payloads(model, {
        "lower": payload(0.5, load["payload.com"], np.zeros((3, 3)))})))
    progress = (answer(made, 2.6).effort - old) / (new - old)
    assert 0.01 < progress[0] < 0.2 and progress[1] == pytest.approx(progress[0])


@pytest.mark.parametrize(("change", "kind", "words"), [
    ({"child": "base_footprint"}, "frame", "of frame 'base_footprint' (child_frame_id), expected 'base'"),
    ({"world": "map"}, "frame", "in frame 'map' (header.frame_id), expected 'odom', as before"),
    ({"world": ""}, "frame", "in frame ''"),
    ({"quaternion": (0.0, 0.0, 0.0, 0.0)}, "not_unit", "has norm 0"),
    ({"quaternion": (0.0, 0.0, 0.0, 1.1)}, "not_unit", "has norm 1.1"),
    ({"quaternion": (0.0, math.nan, 0.0, 1.0)}, "non_finite", "orientation is not finite"),
    ({"position": (math.inf, 0.0, 0.0)}, "non_finite", "position is not finite"),
    ({"twist": (0.0, 0.0, 0.0, 0.0, math.nan, 0.0)}, "non_finite", "twist is not finite"),
    ({"twist": (1e200,) * 6}, "non_finite", "twist is not finite, or absurd"),
    ({"twist": (1e9, 0.0, 0.0, 0.0, 0.0, 0.0)}, "implausible", "angular velocity is 1e+09 rad/s, expected at most 10"),
    ({"twist": (0.7, -9.0, 1.1, 0.0, 0.0, 0.0)}, "implausible", "angular velocity changed by 8.6 rad/s within 0.01 s"),
    ({"twist": (0.0, 0.0, 9.9, 0.0, 0.0, 0.0), "quaternion": tuple(to_quaternion(from_rpy(np.add(TILT, [0.1, 0, 0]))))},
     "implausible", "angular velocity changed by"),
    ({"stamp_ns": 10**9 - 1}, "stamp_backwards", "went backwards"),
    ({"stamp_ns": 0}, "stamp_backwards", "is missing"),
    ({"quaternion": tuple(to_quaternion(from_rpy([1.0, 0.0, 0.0])))}, "implausible", "rad within"),
    ({"quaternion": tuple(-np.array(to_quaternion(from_rpy([1.0, 0.0, 0.0]))))}, "implausible", "rad within"),
])
def test_bad_odometry_is_rejected_counted_and_changes_nothing(change, kind, words):
    made = OdometryInput("base", 0.2)
    assert made.accept(1.0, GOOD)
    verdict = made.accept(1.01, GOOD._replace(stamp_ns=10**9 + 10**7)._replace(**change))
    assert not verdict and words in verdict.text and words in made.problem(2.0)
    assert made.rejections.counts[kind] == made.rejections.total == 1
    np.testing.assert_allclose(made.quaternion, QUATERNION)
    np.testing.assert_allclose(made.twist, GOOD.twist)
    assert made.age(1.01) == pytest.approx(0.01)
    assert made.accept(1.02, GOOD._replace(stamp_ns=10**9 + 2 * 10**7))


def test_odometry_that_moves_as_it_says_is_accepted_in_either_sign():
    made, rng = OdometryInput("base", 0.2), np.random.default_rng(3)
    turn, now = np.eye(3), 1.0
    for k in range(200):
        omega = rng.normal(size=3) * rng.choice([0.0, 1.0, 8.0])
        omega *= min(1.0, 9.9 / max(np.linalg.norm(omega), 1e-9))
        turn = turn @ exp(0.02 * omega)
        quaternion = rng.choice([-1.0, 1.0]) * np.array(to_quaternion(turn))
        now += 0.02
        assert made.accept(now + 0.005 * rng.random(), GOOD._replace(
            stamp_ns=round(now * 1e9), quaternion=tuple(quaternion), twist=(*omega, 0.0, 0.0, 0.0))), k
    assert made.accept(now + 0.5, GOOD._replace(stamp_ns=1)), "after a pause, any turn and stamp"
    assert not made.accept(now + 1.0, GOOD._replace(twist=(8.0, 8.0, 0.0) * 2)), "but no angular velocity beyond reason"


@pytest.mark.parametrize("law", ["full", "computed_torque"])
def test_an_outlier_of_the_angular_velocity_does_not_reach_the_torque(law):
    made = controller(feedforward=law)
    tell(made, 1.0)
    made.on_reference(1.0, 0, NAMES, Q_REF, V_REF, A_REF)
    followed = answer(made, 1.0).effort
    for k in range(3):
        assert not tell(made, 1.02 + 0.001 * k, twist=(0.0, 60.0 * 10.0**k, 0.0, 0.0, 0.0, 0.0))
    np.testing.assert_array_equal(answer(made, 1.03).effort, followed)


def test_an_activation_does_not_begin_by_odometry_that_is_too_old():
    made = controller(safe_output__damping=0.0)
    tell(made, 1.0)
    made.deactivate()
    made.finish(1.1)
    made.activate(1.15)
    assert answer(made, 1.15), "fresh"
    made.deactivate()
    made.finish(1.2)
    made.activate(60.0)
    assert not answer(made, 60.0) and made.rejections.counts["no_odometry"] == 1
    assert made.watchdog(61.0) is None and "no odometry has been received" in made.state.refused
    tell(made, 61.0, quaternion=(0.0, 0.0, 0.0, 1.0))
    np.testing.assert_allclose(answer(made, 61.0).effort, rbd.gravity_effort(arm(), Q), atol=1e-12)


@pytest.mark.parametrize(("values", "words"), [
    ({"mounting__rpy": [0.1, 0.0, 0.0]}, "'odometry' and 'mounting.rpy' are both set"),
    ({"robot_compensates": ["gravity"]}, "'robot_compensates' has 'gravity'"),
    ({"robot_compensates": ["friction", "coriolis"]}, "'robot_compensates' has 'coriolis'"),
    ({"wrench_joints": ["elbow"]}, "'wrench_joints' is not supported with odometry")])
def test_what_does_not_go_with_odometry_is_refused(values, words):
    with pytest.raises(rbd.RbdError, match=words):
        controller(**values)

"""States that cannot follow on the last one: single outliers never reach a law, plausible motions always do."""
from __future__ import annotations

import math

import numpy as np
import pytest
from support.arm import NAMES, Q, V, arm

from rbd_ros.core.motion import continuity as bounds
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.inputs.joint_states import StateInput
from rbd_ros.runtime.inputs.rejections import Rejections
from rbd_ros.runtime.inputs.plausibility import CONFIRMED

MS = 1_000_000
LIMIT = 3.0    # rad/s, of both joints
DRIVERS = {
    "exact": {}, "noisy": {"noise": 3e-4, "v_noise": 0.1}, "quantised": {"quantum": 2 * math.pi / 4096},
    "coarse quotients": {"quantum": 2 * math.pi / 65536, "velocity": "quotient"},
    "filtered": {"velocity": "delayed"},
    "drops": {"drops": 0.3}, "jitter": {"jitter": 0.4}, "coarse stamps": {"grain": 10 * MS}, "no stamps": {"grain": 0},
    "no velocities": {"velocity": "none", "noise": 1e-4}, "zero velocities": {"velocity": "zero"},
    "slow simulation": {"pace": 0.1}, "fast simulation": {"pace": 10.0, "drops": 0.3},
    "everything": {"noise": 1e-4, "quantum": 1e-4, "velocity": "delayed", "drops": 0.1, "jitter": 0.3},
}


def states(rng, rate, seconds, quantum=0.0, noise=0.0, v_noise=0.0, velocity="true", drops=0.0, jitter=0.0, grain=1,
           pace=1.0, speed=0.9):
    """(time of reception, stamp, q, v) of an arm that moves at up to `speed` times the limit, as a driver tells it."""
    h = 1.0 / rate
    omega = rng.uniform(0.5, 6.0, 2)
    phase = rng.uniform(0.0, 6.0, 2)
    amplitude = speed * LIMIT / omega
    before, delayed = None, np.zeros(2)
    for i in range(int(seconds * rate)):
        t = i * h
        exact, v = amplitude * np.sin(omega * t + phase), amplitude * omega * np.cos(omega * t + phase)
        q = exact + noise * rng.standard_normal(2)
        q = np.round(q / quantum) * quantum if quantum else q
        delayed = v if before is None else delayed + (1.0 - math.exp(-h / 0.01)) * (v - delayed)    # 16 Hz
        seen = {"true": v + v_noise * rng.standard_normal(2), "delayed": delayed, "none": (), "zero": 0.0 * v,
                "quotient": v if before is None else (q - before) / h}[velocity]
        before = q
        if rng.random() < drops:
            continue
        stamp = 10**18 + round((t + jitter * h * rng.uniform(-0.5, 0.5)) * 1e9)
        late = rng.exponential(0.1 * h / pace) if pace <= 1.0 else 0.0
        yield 100.0 + t / pace + late, stamp // grain * grain if grain else 0, q, seen


@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("rate", [50.0, 125.0, 1000.0])
@pytest.mark.parametrize("driver", DRIVERS)
def test_plausible_motions_are_never_rejected(driver, rate, count):
    rng = np.random.default_rng(int(rate))
    for _ in range(count):
        rejections = Rejections()
        state = StateInput(arm(), rejections, 10.0, 30.0, 2.0)
        last = 0.0
        for now, stamp, q, v in states(rng, rate, 3.0, **DRIVERS[driver]):
            last = max(now, last + 1e-5)
            assert state.accept(last, stamp, NAMES, q, v), rejections.last
        assert state.restarts == 0


@pytest.mark.parametrize("rate", [50.0, 125.0, 1000.0])
def test_every_single_outlier_is_rejected_and_no_state_after_it(rate):
    """Of velocity and position, just beyond the bound and far beyond."""
    rng, h, rejections = np.random.default_rng(1), 1.0 / rate, Rejections()
    state, count = StateInput(arm(), rejections, 10.0, 30.0, 2.0), 0
    for i, (now, stamp, q, v) in enumerate(states(rng, rate, 6.0)):
        if i > 20 and i % 3 == 0:
            wrong_q, wrong_v, joint = q.copy(), v.copy(), rng.integers(2)
            beyond = 1.01 * 10.0 ** rng.choice([0.0, rng.uniform(0.0, 6.0)])
            sign = rng.choice([-1.0, 1.0])
            if rng.random() < 0.5:
                wrong_q[joint] = state.q[joint] + sign * beyond * (2.0 * LIMIT * 2.0 * h + bounds.SLACK)
            else:
                wrong_v[joint] = sign * 2.0 * LIMIT * beyond
            assert not state.accept(now - 1e-6, stamp - 100, NAMES, wrong_q, wrong_v), (wrong_q, wrong_v)
            assert "implausible" in rejections.counts and NAMES[joint] in rejections.last
            count += 1
        assert state.accept(now, stamp, NAMES, q, v), rejections.last
    assert rejections.counts["implausible"] == rejections.total == count > 50 and state.restarts == 0


def controller(**values):
    model = arm()
    made = FeedforwardController(model, FeedforwardSettings.from_values(
        {"ramp_in": 0.0, "reference_timeout": 0.0, "gains.kp": 100.0, "gains.kd": 10.0} | values, model))
    made.activate(0.0)
    made.on_reference(0.0, 0, NAMES, Q)
    return made


@pytest.mark.parametrize("wrong", [
    ([0.0, 0.0], [40.0, 0.2]), ([0.0, 0.0], [0.4, -5.7]), ([0.3, 0.0], V), (-Q, V), ([0.0, 0.0], [1e200, 0.0])])
def test_efforts_are_as_without_the_outlier(wrong):
    """Positions relative to the true ones. (0, 0) among good ones is what drivers publish when they miss a packet."""
    plain, other = controller(), controller()
    for i in range(100):
        now, stamp, q = 1.0 + 1e-3 * i, (1000 + i) * MS, Q + 1e-3 * i * V
        if i % 10 == 5:
            assert not other.on_state(now - 5e-4, stamp - MS // 2, NAMES, q + wrong[0], wrong[1]), i
        np.testing.assert_array_equal(*(each.on_state(now, stamp, NAMES, q, V).effort for each in (other, plain)))


def accepted(made, first, count, q, v, step=1):
    return [bool(made.on_state(1.0 + 1e-3 * i, (1000 + i) * MS, NAMES, q, v))
            for i in range(first, first + count * step, step)]


def test_a_robot_that_is_elsewhere_is_accepted_after_some_states_and_references_are_forgotten():
    """A simulation that is reset by a service: time goes on."""
    made = controller()
    assert all(accepted(made, 0, 20, Q, [0.0, 0.0]))
    assert accepted(made, 20, 7, 0.0 * Q, [0.0, 0.0]) == [False] * (CONFIRMED - 1) + [True] * 3
    assert made.report()["position_restarts"] == 1 and made.report()["clock_restarts"] == 0
    assert made.safety.mode == "waiting"
    # after the timeout as well, unless it is within reach in that time
    assert accepted(made, 120, 5, np.array([0.9, -2.1]), [0.0, 0.0]) == [False] * (CONFIRMED - 1) + [True]
    assert made.report()["position_restarts"] == 2
    assert accepted(made, 200, 1, np.array([0.8, -2.0]), [0.0, 0.0]) == [True]
    assert made.report()["position_restarts"] == 2


def test_a_velocity_that_positions_contradict_never_becomes_the_truth():
    made = controller()
    assert all(accepted(made, 0, 20, Q, [0.0, 0.0]))
    assert not any(accepted(made, 20, 300, Q, [40.0, 0.0]))
    assert "velocity of joint 'shoulder' is 40" in made.rejections.last and "plausible_velocity" in made.rejections.last
    assert all(accepted(made, 320, 1, Q, [0.0, 0.0]))


def test_the_joint_that_moved_too_far_is_named_not_the_one_that_moved_most():
    made = controller(plausible_velocity=[100.0, 1.0])
    assert all(accepted(made, 0, 20, Q, [0.0, 0.0]))
    assert not any(accepted(made, 20, 1, Q + np.array([0.45, 0.4]), [0.0, 0.0]))
    assert "position of joint 'elbow' moved by 0.4 " in made.rejections.last


def test_the_first_state_has_only_the_bound():
    assert accepted(controller(), 0, 1, Q, [5.9, 0.0]) == [True]
    assert accepted(controller(), 0, 1, Q, [6.1, 0.0]) == [False]
    assert accepted(controller(plausible_velocity=math.inf), 0, 1, Q, [1e3, 0.0]) == [True]


@pytest.mark.parametrize("rate", [100.0, 1000.0])
def test_a_robot_that_is_faster_than_its_description(rate):
    """Twenty times the limit, by 60 rad/s²."""
    state, rejections = StateInput(arm(), rejections := Rejections(), 0.05, 30.0, 2.0), rejections
    for i in range(int(1.0 * rate)):
        t = i / rate
        state.accept(1.0 + t, 10**18 + round(t * 1e9), NAMES, [30.0 * t * t, 0.0], [60.0 * t, 0.0])
    assert rejections.total == 0 and state.v[0] > 15.0 * LIMIT


def test_hard_stops_pass():
    """From 80 % of the limit to 0 within a period of 8 ms; at 1 kHz it may cost one state."""
    for rate, allowed in ((50.0, 0), (125.0, 0), (1000.0, 1)):
        state, rejections = StateInput(arm(), rejections := Rejections(), 0.1, 30.0, 2.0), rejections
        speed = 0.8 * LIMIT
        for i in range(60):
            t, stop = i / rate, 39.9 / rate
            q, v = speed * min(t, stop), speed if t < stop else 0.0
            state.accept(1.0 + t, 10**18 + round(t * 1e9), NAMES, [q, 0.0], [v, 0.0])
        assert rejections.total <= allowed, (rate, rejections.last)


# ---- drivers that repeat positions

def told(motion, velocity="true", every=1, slow=0.05, cutoff=30.0):
    """Verdicts at 1 kHz on an arm with encoders of 14 bit, whose shoulder is at motion(t) = position, velocity, with
    the input and its counts. every: states of one measurement; slow: time constant of a low-pass of velocities, s.
    """
    rejections = Rejections()
    state, filtered, verdicts, sent = StateInput(arm(), rejections, 0.05, cutoff, 2.0), 0.0, [], ()
    for k in range(2000):
        q, v = motion(1e-3 * k)
        filtered += (1.0 - math.exp(-1e-3 / slow)) * (v - filtered)
        if k % every == 0:
            count = 2.0 * math.pi / 2**14
            sent = ([round(q / count) * count, 0.0],
                    {"true": [v, 0.0], "filtered": [filtered, 0.0], "none": ()}[velocity])
        verdicts.append(bool(state.accept(1.0 + 1e-3 * k, 10**18 + k * MS, NAMES, *sent)))
    return np.array(verdicts), state, rejections.counts


def abrupt(t):
    """From 1 rad/s to rest within 30 ms."""
    late = min(max(t - 1.0, 0.0), 0.03)
    return min(t, 1.0) + late - late**2 / 0.06, 1.0 - late / 0.03


@pytest.mark.parametrize("velocity", ["true", "filtered", "none"])
@pytest.mark.parametrize("speed", [0.01, 0.049, 0.051, 0.1, 0.3, 1.0])
def test_slow_joints_with_coarse_encoders_do_not_repeat_themselves(speed, velocity):
    """At 0.05 rad/s such an encoder counts every 8 ms: 0.0004 rad."""
    verdicts = told(lambda t: (speed * t, speed), velocity)[0]
    assert verdicts.all()


@pytest.mark.parametrize("cutoff", [1.0, 30.0])
def test_velocities_that_are_not_measured_tell_no_driver_that_repeats_itself(cutoff):
    """After an abrupt stop the estimate fades, and with a low cut-off would have moved the joint by 0.1 rad."""
    verdicts, state, _ = told(abrupt, "none", cutoff=cutoff)
    assert verdicts.all() and abs(state.v[0]) < 0.01


@pytest.mark.parametrize("slow", [0.01, 0.05, 0.1])
def test_an_arm_at_rest_is_believed_once_the_low_pass_of_its_driver_has_faded(slow):
    """Velocities go on after the positions: from 0.02 rad on that is a driver that repeats itself, to 0.05 rad/s."""
    verdicts, state, counts = told(abrupt, "filtered", slow=slow)
    left = slow * (1.0 - math.exp(-0.03 / slow)) / 0.03    # rad/s, at rest
    refused = 1e3 * slow * math.log(left / 0.05 * (1.0 - 0.02 / (left * slow))) if left * slow > 0.02 else 0.0
    assert (~verdicts).sum() == counts["repeated"] == pytest.approx(refused, abs=5)
    assert verdicts[1500:].all() and not state.stuck


@pytest.mark.parametrize(("every", "speed", "repeated", "longest"), [
    (10, 1.3, 0, 0), (10, 2.4, 0, 3), (10, 2.6, 1, 1), (10, 3.0, 2, 2), (50, 0.3, 0, 2), (50, 1.0, 29, 29)])
def test_measurements_that_are_sent_several_times_keep_the_state_fresh(every, speed, repeated, longest):
    """Those of 100 Hz and 20 Hz, at 1 kHz. From the repeat on with which the joint would have gone 0.02 rad, each is
    refused, until the next measurement; where none is, the step to that may be implausible at first.
    """
    verdicts, _, counts = told(lambda t: (speed * t, speed), every=every)
    assert counts["repeated"] == pytest.approx(repeated * 2000 // every, abs=2)
    assert counts.total() == (~verdicts).sum()
    assert np.diff(np.flatnonzero(verdicts)).max() <= longest + 1    # ms; states are stale after 50

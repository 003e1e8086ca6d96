"""The logic of a generated controller, compiled: cycle by cycle as the node's, and on a simulated arm."""
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support.generated_controller import HAS_COMPILER, Logic, write_package
from support.generated_walk import FAULTS, Walk

import rbd_ros as rbd

pytestmark = [pytest.mark.skipif(not HAS_COMPILER, reason="no C++ compiler: g++, gcc"),
              pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")]
DT = 0.002
GAINS = {"none": 300.0, "gravity": 300.0, "full": 300.0, "computed_torque": 400.0}
RUBBING = {"damping": 0.4, "friction": 1.2, "armature": [0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.05]}


@pytest.fixture(scope="module")
def logic(tmp_path_factory):
    folder, model = tmp_path_factory.mktemp("package"), rbd.sample("iiwa").with_(**RUBBING)
    write_package(folder, model)
    return Logic(folder, model, "iiwa_effort_controller")


def walked(logic, seeds, cycles):
    modes, events, worst = Counter(), Counter(), 0.0
    for seed in seeds:
        walk = Walk(logic, seed, logic.model)
        assert walk.differences(cycles) == "", f"seed {seed}"
        modes, events, worst = modes + walk.modes, events + walk.events, max(worst, walk.worst)
    assert worst < 1e-9
    return modes, events


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 40), marks=pytest.mark.thorough)],
                         ids=["some", "more"])
def test_every_output_is_that_of_the_node(logic, seeds):
    modes, events = walked(logic, seeds, 600)
    assert min(modes[mode] for mode in ("waiting", "ramp_in", "running", "stale", "stopped")) > 50, modes
    assert all(events[event] for event in (*FAULTS, "stop here", "emergency stop", "change", "too fast", "repeated",
                                           "carried")), events


@pytest.mark.thorough
def test_every_output_of_longer_walks_is_that_of_the_node(logic):
    walked(logic, range(100, 160), 1500)


@pytest.mark.parametrize("law", GAINS)
def test_efforts_by_the_functions_of_the_library(logic, law):
    """In ordinary operation: running, no limit, with a load, friction and rotors; the formulas of the laws."""
    rng, kp = np.random.default_rng(3), GAINS[law]
    load = rbd.Inertia(2.0, np.array([0.01, 0.02, 0.05]), np.diag([0.01, 0.012, 0.011]))
    model = logic.model.with_payload("link_7", load)
    node = rbd.TorqueController(logic.model, **{
        "feedforward": law, "gains.kp": [kp], "gains.kd": [0.1 * kp], "payload.body": "link_7", "payload.mass": 2.0,
        "payload.com": load.com.tolist(), "payload.inertia": [0.01, 0.012, 0.011, 0.0, 0.0, 0.0], "ramp_in": 0.0})
    logic.configure(node.parameters)
    logic.call("activate", 0.0)
    q, friction = rng.uniform(-1.0, 1.0, 7), rbd.joint_friction(model)
    for k in range(1, 100):
        v = rng.normal(size=7) * 0.1
        q = q + DT * v
        wanted = rbd.Reference(q + rng.normal(size=7) * 0.01, v + rng.normal(size=7) * 0.01, rng.normal(size=7) * 0.1)
        assert logic.call("follow", k * DT, *wanted[:3])
        effort, mode = logic.update(k * DT, q, v)
        feedback = kp * (wanted.q - q) + 0.1 * kp * (wanted.v - v)
        if law == "computed_torque":
            expected = rbd.inverse_dynamics(model, q, v, wanted.a + feedback)
            expected = friction.add(wanted.v, expected)
        else:
            model_torque = {"gravity": rbd.gravity_effort(model, q), "none": np.zeros(7),
                            "full": rbd.inverse_dynamics(model, *wanted[:3], friction=friction)}
            expected = model_torque[law] + feedback
        assert mode == "running"
        np.testing.assert_allclose(effort, np.clip(expected, -model.effort_limit, model.effort_limit), rtol=0.0,
                                   atol=1e-9)


# ---- on an arm

class Arm:
    """A simulated iiwa, 5 % heavier than the model and with its friction, under the generated controller."""

    def __init__(self, logic, **parameters):
        self.logic, model = logic, logic.model
        self.plant = rbd.Simulator(model.with_scaled_masses(1.05), step=DT, q=[0.0, 0.6, 0.0, -1.0, 0.0, 0.5, 0.0])
        node = rbd.TorqueController(model, **{"feedforward": "computed_torque", "gains.kp": [400.0],
                                              "gains.kd": [40.0], **parameters})
        self.limit = np.minimum(model.effort_limit, np.min(node.parameters["effort_limits.maximum"]))
        logic.configure(node.parameters)
        logic.call("activate", 1.0)
        self.now, self.clock, self.start = 1.0, 0.0, self.plant.q.copy()
        self.speed = self.away = self.largest = 0.0
        self.mode = ""

    def reference(self, t):
        """Swings from rest, up to 0.5 rad/s."""
        return (self.start + 0.25 * (1.0 - np.cos(2.0 * t)), np.full(7, 0.5 * np.sin(2.0 * t)),
                np.full(7, np.cos(2.0 * t)))

    def run(self, seconds, follows=False, spoil=lambda k, q, v: (q, v), offset=0.0):
        origin, self.speed, self.away, self.largest = self.plant.q.copy(), 0.0, 0.0, 0.0
        for k in range(round(seconds / DT)):
            self.now += DT
            if follows:
                self.clock += DT
                q, v, a = self.reference(self.clock)
                self.logic.call("follow", self.now, q + offset, v, a)
            effort, self.mode = self.logic.update(self.now, *spoil(k, self.plant.q.copy(), self.plant.v.copy()))
            self.step(effort)
            self.away = max(self.away, np.abs(self.plant.q - origin).max())
        return self

    def step(self, effort):
        assert np.isfinite(effort).all() and (np.abs(effort) <= self.limit + 1e-9).all()
        self.largest = max(self.largest, np.abs(effort).max())
        self.plant.step(effort)
        self.speed = max(self.speed, np.abs(self.plant.v).max())

    @property
    def error(self):
        return np.abs(self.reference(self.clock)[0] - self.plant.q).max()

    @property
    def still(self):
        return np.abs(self.plant.v).max()

    def count(self, name):
        return self.logic.counts()[name]


@pytest.fixture
def moving(logic):
    """An arm in the middle of a motion, at 0.48 rad/s."""
    arm = Arm(logic).run(0.65, follows=True)
    assert arm.mode == "running" and arm.error < 0.03
    return arm


def test_it_follows_and_its_error_stays_small(logic):
    arm = Arm(logic).run(3.0, follows=True)
    assert arm.error < 0.03 and arm.speed < 0.7


def test_a_stream_that_ceases_ends_in_rest_nearby(moving):
    moving.run(1.5)
    assert moving.mode == "running" and moving.still < 0.01 and moving.away < 0.25 and moving.speed < 0.8


def test_a_stream_that_goes_on_elsewhere_fades_in(moving):
    moving.run(0.5)
    moving.run(1.5, follows=True, offset=0.05)
    assert moving.speed < 1.5 and moving.error < 0.1


def test_stop_here_ends_in_rest_nearby(moving):
    assert moving.logic.call("stop_here", moving.now)
    moving.run(1.0)
    assert moving.mode == "running" and moving.still < 0.01 and moving.away < 0.12 and moving.speed < 0.8


def test_an_emergency_stop_brakes_and_holds(moving):
    moving.logic.library.stop()
    moving.run(1.5)
    assert moving.mode == "stopped" and moving.still < 0.05 and moving.away < 0.2 and moving.speed < 0.8
    moving.logic.call("reset", moving.now)
    assert moving.run(0.1).mode == "waiting"


@pytest.mark.parametrize("seconds", [0.03, 0.3])
def test_states_that_are_not_finite(moving, seconds):
    moving.run(seconds, follows=True, spoil=lambda k, q, v: (q * np.nan, v))
    assert moving.mode == ("stale" if seconds > 0.05 else "running") and moving.speed < 1.5
    assert moving.count("rejected_non_finite") == round(seconds / DT)
    moving.run(1.5)
    assert moving.still < 0.05 and moving.speed < 1.5


def test_an_arm_at_rest_is_carried_without_states(logic):
    arm = Arm(logic).run(1.0)
    arm.run(0.5, spoil=lambda k, q, v: (q * np.nan, v))
    assert arm.mode == "stale" and arm.speed < 0.01


def test_states_that_never_return_let_it_down(logic):
    arm = Arm(logic, **{"safe_output.fallback": [1.0]}).run(0.5)
    effort = None
    for _ in range(round(2.0 / DT)):
        arm.now += DT
        effort, mode = logic.update(arm.now, np.full(7, np.nan), np.zeros(7))
    np.testing.assert_allclose(effort, 1.0)
    assert mode == "stale"
    np.testing.assert_allclose(logic.finish(), 1.0)


def test_an_outlier_has_no_effect(moving):
    before = moving.largest
    moving.run(0.1, follows=True, spoil=lambda k, q, v: (q + 0.5 * (k == 20), v))
    assert moving.count("rejected_implausible") == 1 and moving.mode == "running"
    assert moving.speed < 0.7 and moving.error < 0.03 and moving.largest < before + 20.0


def test_references_that_are_not_finite_are_refused(moving):
    for bad in (np.nan, np.inf, 1e200):
        assert not moving.logic.call("follow", moving.now, np.full(7, bad), np.zeros(7), np.zeros(7))
        assert not moving.logic.call("follow", moving.now, moving.plant.q.copy(), np.full(7, bad), np.zeros(7))
    assert moving.count("rejected_references") == 6
    moving.run(0.5, follows=True)
    assert moving.mode == "running" and moving.error < 0.03


@pytest.mark.parametrize("offset", [0.5, 2.0, -3.0])
def test_a_reference_that_jumps_far_away_throws_nothing(moving, offset):
    moving.run(1.0, follows=True, offset=offset)
    assert moving.mode == "waiting" and moving.speed < 0.8 and moving.still < 0.05
    assert moving.count("not_following") > 100


def test_a_reference_that_jumps_a_little_is_followed(moving):
    moving.run(1.0, follows=True, offset=0.05)
    assert moving.mode == "running" and moving.speed < 2.0 and moving.error < 0.08


@pytest.mark.parametrize("seconds", [0.02, 0.06, 0.3])
def test_a_loop_that_stood_still(moving, seconds):
    effort, _ = moving.logic.update(moving.now, moving.plant.q.copy(), moving.plant.v.copy())
    for _ in range(round(seconds / DT)):    # the last effort stays
        moving.now += DT
        moving.clock += DT
        moving.step(effort)
    moving.run(0.004, follows=True)
    assert moving.mode == ("ramp_in" if seconds > 0.05 else "running")
    moving.run(1.0, follows=True)
    assert moving.mode == "running" and moving.error < 0.05 and moving.speed < 1.5


def test_limits_of_the_effort(logic):
    arm = Arm(logic, **{"effort_limits.maximum": [80.0], "ramp_in": 0.0})
    arm.run(1.0, follows=True, offset=0.1)
    assert arm.largest == 80.0 and arm.count("saturated") > 0 and arm.speed < 3.0


def test_the_last_effort_and_a_restart(moving):
    moving.run(1.0)
    last = moving.logic.finish()
    gravity = rbd.gravity_effort(moving.logic.model, moving.plant.q)
    assert (np.abs(last - gravity) <= 0.1 * moving.logic.model.effort_limit + 1e-9).all()
    for _ in range(50):    # 0.1 s until brakes engage
        moving.step(last)
    assert moving.still < 0.05
    moving.logic.call("activate", moving.now)
    moving.start = moving.plant.q.copy()
    moving.clock = 0.0
    moving.run(1.5, follows=True)
    assert moving.mode == "running" and moving.error < 0.03 and moving.speed < 1.2


def test_what_carried_an_arm_at_rest_is_left_behind(moving):
    """Not the model's gravity torque, under which the heavier arm would sink until brakes engage."""
    moving.run(2.0)
    last, q = moving.logic.finish(), moving.plant.q.copy()
    gravity, true = (rbd.gravity_effort(model, q) for model in (moving.logic.model, moving.plant.model))
    assert np.abs(true - gravity).max() > 3.0 and np.abs(last - true).max() < 0.4 * np.abs(true - gravity).max()
    for _ in range(250):
        moving.step(last)
    assert np.abs(moving.plant.q - q).max() < 0.001


def test_an_arm_in_motion_is_left_to_the_safe_effort(moving):
    gravity = rbd.gravity_effort(moving.logic.model, moving.plant.q)
    np.testing.assert_allclose(moving.logic.finish(), gravity, rtol=0.0, atol=0.3)


def test_a_driver_that_repeats_itself_is_noticed(moving):
    """From 0.02 rad by the velocities on: with 0.48 rad/s after 0.042 s; `state_timeout` later it is stale. Meanwhile
    feedback takes the arm for one that lags: 0.48 rad/s + 400/s² · 0.48 rad/s · (0.092 s)²/2 = 1.3 rad/s per joint.
    """
    state = moving.plant.q.copy(), moving.plant.v.copy()
    moving.run(0.3, follows=True, spoil=lambda k, q, v: state)
    assert abs(moving.count("rejected_repeated") - round((0.3 - 0.042) / DT)) <= 2
    assert moving.mode == "stale" and moving.speed < 2.0
    moving.run(1.5)
    assert moving.mode == "running" and moving.still < 0.05 and moving.speed < 2.0


def test_a_driver_that_repeats_itself_at_rest_looks_like_an_arm_at_rest(moving):
    moving.run(1.5)
    state = moving.plant.q.copy(), moving.plant.v.copy()
    moving.run(0.5, spoil=lambda k, q, v: state)
    assert moving.count("rejected_repeated") == 0 and moving.mode == "running" and moving.away < 0.001


def test_references_with_rates_that_no_joint_has_are_refused(moving):
    q, limit = moving.plant.q.copy(), moving.logic.model.velocity_limit
    for j in range(7):
        for part, most in ((0, 2.0 * limit[j]), (1, 200.0 * limit[j])):
            rates = np.zeros((2, 7))
            rates[part, j] = -1.0001 * most
            assert not moving.logic.call("follow", moving.now, q, *rates)
            assert moving.count("rejected_references") == 2 * j + part + 1
            rates[part, j] *= 0.9998
            assert moving.logic.call("follow", moving.now, q, *rates)


def test_a_fast_motion_while_the_torque_fades_is_followed(logic):
    """The torque leads to the mean of rest and motion: the arm is 0.1 rad behind the motion, and not astray."""
    arm = Arm(logic, **{"feedforward": "full", "gains.kp": [800.0], "gains.kd": [80.0]}).run(1.0, follows=True)
    arm.logic.call("stop_here", arm.now)
    arm.run(1.0)
    arm.start, arm.clock = arm.plant.q.copy(), 0.0
    arm.reference = lambda t: (arm.start + 0.9 * t, np.full(7, 0.9), np.zeros(7))
    arm.run(0.25, follows=True)
    arm.behind = arm.error
    assert arm.behind > 0.1 and arm.mode == "running" and arm.count("not_following") == 0
    arm.run(0.75, follows=True)
    assert arm.count("not_following") == 0 and arm.error < 0.05


def test_a_load_changes_without_a_jump(moving):
    node = rbd.TorqueController(moving.logic.model, **{
        "feedforward": "computed_torque", "gains.kp": [400.0], "gains.kd": [40.0], "payload.body": "link_7",
        "payload.mass": 3.0})
    heavier = moving.plant.model.with_payload("link_7", rbd.Inertia(3.0, np.zeros(3), np.zeros((3, 3))))
    moving.plant = rbd.Simulator(heavier, step=DT, q=moving.plant.q, v=moving.plant.v)
    moving.logic.use(node.parameters)
    moving.run(1.0, follows=True)
    assert moving.error < 0.03 and moving.speed < 1.0


def test_continuous_joints_turn_the_short_way(tmp_path):
    """An angle that the hardware reports a turn apart, and a reference that is a turn away."""
    model = rbd.load_urdf("""<robot name="wheel"><link name="base"/><link name="rotor"><inertial><mass value="1"/>
        <origin xyz="0.1 0 0"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="turn" type="continuous"><parent link="base"/><child link="rotor"/><axis xyz="0 1 0"/>
        <limit effort="50" velocity="5"/></joint></robot>""")
    write_package(tmp_path, model)
    logic = Logic(tmp_path, model, "wheel_effort_controller")
    node = rbd.TorqueController(model, feedforward="gravity", gains={"kp": [50.0], "kd": [5.0]}, ramp_in=0.0)
    logic.configure(node.parameters)
    logic.call("activate", 0.0)
    for k in range(1, 100):
        q = np.array([3.1 + 0.001 * k])
        shown = q - 2.0 * np.pi * (q > np.pi)
        logic.call("follow", k * DT, q + 0.01 + 4.0 * np.pi, np.zeros(1), np.zeros(1))
        effort, mode = logic.update(k * DT, shown, np.array([0.5]))
        assert mode == "running"
        np.testing.assert_allclose(effort, rbd.gravity_effort(model, q) + 50.0 * 0.01 - 5.0 * 0.5, atol=1e-9)

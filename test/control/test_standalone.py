"""`rbd.TorqueController`: what it refuses and says, what no input can do to it, and arms in the loop.

That it is the same as the nodes: nodes/test_standalone_and_node.py, nodes/test_standalone_over_dds.py.
"""
from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.arm import NAMES, Q, V, arm, arm_urdf

import rbd_ros as rbd
from rbd_ros.core.lie.so3 import from_rpy
from rbd_ros.runtime.control.standalone import MOST_NOTICES

pytestmark = [pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning"), pytest.mark.closed_loop]
ROOT = Path(__file__).parents[2]
ROTORS = [0.602, 2.437, 0.0813, 0.4268, 0.00563, 0.00827, 0.001779]
GAINS = {"kp": [722.3, 2924.8, 97.57, 512.2, 6.76, 9.92, 2.134],    # as in config/demo.yaml
         "kd": [50.56, 204.73, 6.83, 35.85, 0.473, 0.6946, 0.1494]}
ACTUATION = str(ROOT / "config" / "sea_example.actuation.yaml")


# ---- without ROS


def test_it_needs_no_ros():
    code = ("import sys\n"
            "for name in ('rclpy', 'launch', 'rbd_interfaces', 'sensor_msgs', 'std_msgs'):\n"
            "    sys.modules[name] = None\n"
            "import numpy as np, rbd_ros as rbd\n"
            "arm = rbd.Simulator(rbd.sample('two_link'), q=[0.3, 0.5])\n"
            "for node in ('feedforward', 'flatness', 'cartesian'):\n"
            "    controller = rbd.TorqueController(arm.model, node=node, gains={'kp': 100.0, 'kd': 5.0})\n"
            "    for k in range(20):\n        command = controller.update(0.001 * k, arm.q, arm.v)\n"
            "    print(node, command.valid, sorted(name for name in sys.modules if 'rbd_ros.nodes' in name))\n"
            "observer = rbd.EffortObserver(arm.model)\n"
            "for k in range(3):\n    seen = observer.update(0.001 * k, arm.q, arm.v, [1.0, 2.0])\n"
            "names = sorted(name for name in sys.modules if 'rbd_ros.nodes' in name)\n"
            "print('observer', seen.effort.shape == (2,), names)\n")
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()
    assert said == [f"{node} True []" for node in ("feedforward", "flatness", "cartesian", "observer")]


# ---- parameters


@pytest.mark.parametrize(("wrong", "said"), [
    ({"node": "effort"}, "unknown node 'effort'.*feedforward, flatness, cartesian"),
    ({"gains": {"kq": 1.0}}, r"unknown parameter 'gains.kq'; did you mean 'gains.kp'"),
    ({"gains.kp": -1.0}, r"'gains.kp' is -1.0, expected a number, or a list with one per joint, from 0"),
    ({"gains": {"kp": [1.0, 2.0, 3.0]}}, r"'gains.kp' has 3 numbers, expected 1 or 2"),
    ({"feedforward": "magic"}, "'feedforward' is 'magic'.*'computed_torque'"),
    ({"ramp_in": "soon"}, "'ramp_in' is 'soon', expected a number"),
    ({"joints": ["shoulder"]}, "'joints' must list every joint once"),
    ({"gravity": [0.0, 0.0, 9.81]}, "'gravity' is for loading a description: give the URDF"),
    ({"locked": {"joints": ["elbow"]}}, r"'locked.joints' is for loading a description"),
    ({"odometry": "odom"}, "'odometry' is 'odom', a topic of ROS.*the base has to stand still"),
    ({"node": "cartesian", "force": {"topic": "wrench"}}, r"'force.topic' is 'wrench', a topic of ROS"),
    ({"node": "cartesian", "end_effector": "hand"}, "unknown link in parameter 'end_effector': 'hand'"),
    ({"node": "flatness", "actuation_file": "missing.yaml"}, "missing.yaml"),
    ({"file": "missing.yaml"}, "cannot read parameters 'missing.yaml'")])
def test_wrong_parameters_are_named(wrong, said):
    with pytest.raises(rbd.RbdError, match=said):
        rbd.TorqueController(arm(), **wrong)


def test_a_robot_that_no_node_takes_is_refused():
    with pytest.raises(rbd.RbdError, match=r"floating"):
        rbd.TorqueController(rbd.sample("biped", root="floating"))
    with pytest.raises(rbd.RbdError, match=r"to 0, so no torque could be sent.*override_zero"):
        rbd.TorqueController(arm(0.0))


def test_parameters_by_name_nested_or_from_a_file_are_the_same(tmp_path):
    file = tmp_path / "arm.yaml"
    file.write_text("/**:\n  ros__parameters:\n    gains: {kp: [40.0, 30.0]}\n    adapters: [forward_command]\n"
                    "    autostart: true\n"
                    "feedforward:\n  ros__parameters: {gains.kd: 4.0, effort_limits.rate: [.inf]}\n"
                    "flatness:\n  ros__parameters: {gains.kd: 9.0}\n")
    by_file = rbd.TorqueController(arm(), file=file).parameters
    assert by_file["gains.kp"] == (40.0, 30.0) and by_file["gains.kd"] == (4.0,)
    assert by_file == rbd.TorqueController(arm(), gains={"kp": [40.0, 30.0], "kd": 4.0}).parameters
    assert by_file == rbd.TorqueController(arm(), **{"gains.kp": [40.0, 30.0], "gains.kd": [4.0]}).parameters
    assert rbd.TorqueController(arm(), file=file, gains={"kd": 1.0}).parameters["gains.kd"] == (1.0,)
    assert rbd.TorqueController(arm(), "flatness", file).parameters["gains.kd"] == (9.0,)


def test_what_a_file_cannot_mean_is_named(tmp_path):
    file = tmp_path / "arm.yaml"
    file.write_text("/**:\n  ros__parameters: {mounting.frame: world}\n")
    with pytest.raises(rbd.RbdError, match=r"'mounting.frame' is 'world'.*set 'mounting.rpy'"):
        rbd.TorqueController(arm(), file=file)
    file.write_text("/**:\n  ros__parameters: {feedfoward: gravity}\n")
    with pytest.warns(rbd.RbdWarning, match="'feedfoward' has no effect; did you mean 'feedforward'"):
        rbd.TorqueController(arm(), file=file)
    file.write_text("/**:\n  parameters: {feedforward: gravity}\n")
    with pytest.raises(rbd.RbdError, match="no parameters for node feedforward: expected `/\\*\\*: ros__parameters:`"):
        rbd.TorqueController(arm(), file=file)


@pytest.mark.parametrize("node", ["feedforward", "flatness", "cartesian"])
def test_the_file_of_the_package_has_the_defaults(node, recwarn):
    model = rbd.sample("two_link")
    assert rbd.TorqueController(model, node, ROOT / "config" / f"{node}.yaml").parameters == rbd.TorqueController(
        model, node).parameters
    assert not [each for each in recwarn if "has no effect" in str(each.message)]


def test_a_description_is_loaded_with_the_parameters_of_the_robot():
    made = rbd.TorqueController(arm_urdf(), mounting={"rpy": [0.3, -0.4, 0.5]}, rotor_inertia=[0.2, 0.1], feedforward=(
        "gravity"), payload={"body": "lower", "mass": 0.5}, ramp_in=0.0)
    model = rbd.load_urdf(arm_urdf(), gravity=from_rpy((0.3, -0.4, 0.5)).T @ [0.0, 0.0, -9.81]).with_(
        armature=[0.2, 0.1]).with_payload("lower", rbd.Inertia(0.5, np.zeros(3), np.zeros((3, 3))))
    np.testing.assert_allclose(made.model.armature, [0.2, 0.1])
    for k in range(3):
        effort = made.update(1e-3 * k, Q, 0.0 * Q).effort
    np.testing.assert_allclose(effort, rbd.gravity_effort(model, Q), rtol=1e-12)


def test_parameters_change_while_it_runs_unless_read_only():
    made = rbd.TorqueController(arm(), feedforward="none", gains={"kp": 10.0}, ramp_in=0.0)
    made.update(0.0, Q, V)
    made.follow(rbd.Reference(Q + 0.1, 0.0 * Q, 0.0 * Q))
    assert [made.update(t, Q, V).effort[0] for t in (0.001, 0.002)] == pytest.approx([1.0, 1.0])
    made.set(gains={"kp": 20.0})
    assert [made.update(t, Q, V).effort[0] for t in (0.003, 0.004)][1] == pytest.approx(2.0)
    with pytest.raises(rbd.RbdError, match=r"'joints' is read-only: make another"):
        made.set(joints=NAMES[::-1])
    with pytest.raises(rbd.RbdError, match=r"'gains.kp' is 'stiff', expected a number"):
        made.set(gains={"kp": "stiff", "kd": 5.0})
    assert made.parameters["gains.kp"] == (20.0,) and made.parameters["gains.kd"] == (0.0,)
    assert made.update(0.005, Q, V).effort[0] == pytest.approx(2.0)


def test_a_joint_without_a_limit_is_named():
    free = arm().with_(effort_limit=[np.inf, 50.0])
    with pytest.warns(rbd.RbdWarning, match="no limit for the effort of shoulder"):
        rbd.TorqueController(free)


# ---- what is said


def test_before_the_first_state_it_is_the_fallback_within_the_limits():
    made = rbd.TorqueController(arm(), safe_output={"fallback": [2.0, 1e6]})
    with pytest.raises(rbd.RbdError, match=r"no joint state to begin from: call update first"):
        made.follow([])
    first = made.update(0.0)
    assert first.effort.tolist() == [2.0, 50.0] and not first.valid and first.reason == "no joint state yet"
    assert made.update(0.001, [math.nan, 0.0]).reason == "position of joint 'shoulder' is not finite"


@pytest.mark.parametrize(("motion", "said"), [
    ([(1.0, [0.1])], "1 numbers for 2 names"), ([(1.0, [0.1, math.nan])], "not finite"),
    ([(1.0, [5.0, 0.0])], "shoulder"), ([(0.01, [2.0, 0.0])], "at most .*velocity limit"),
    ([(2.0, Q), (1.0, Q)], "strictly increase"), ("fast", "motion is 'fast', expected a motion with duration"),
    ([0.1, 0.2], "point 0 is 0.1, expected its time and values"), ([("now", Q)], "point 0"),
    ([(1.0, ["a", "b"])], "expected numbers"), (rbd.Reference(Q, Q, Q[:1]), "1 numbers for 2 names"),
    (rbd.Reference(Q * math.inf, Q, Q), "not finite"), (lambda t: t, "expected a motion with duration"),
    (rbd.SplineMotion(np.zeros((8, 3)), 2.0), "3 numbers for 2 names"),
    (rbd.SplineMotion(np.repeat([Q], 8, axis=0), 200.0), r"has 20000 points, at most 10000 \(parameter"),
    ([(0.1 * k, Q) for k in range(10_001)], r"has 10001 points, at most 10000 \(parameter 'input_limits.points'\)")])
def test_what_cannot_be_followed_says_why_and_changes_nothing(motion, said):
    made = rbd.TorqueController(arm(), gains={"kp": 20.0, "kd": 1.0})
    made.update(0.0, Q, 0.0 * Q)
    before = made.update(0.001, Q, 0.0 * Q)
    with pytest.raises(rbd.RbdError, match=said):
        made.follow(motion)
    after = made.update(0.002, Q, 0.0 * Q)
    assert (after.mode, after.effort.tolist()) == (before.mode, before.effort.tolist()) and after.reason == ""


def test_what_belongs_to_another_node_is_refused():
    made = rbd.TorqueController(arm())
    for call in (lambda: made.goal(np.eye(4)), lambda: made.twist(np.zeros(6)), made.guide,
                 lambda: made.press(np.zeros(6))):
        with pytest.raises(rbd.RbdError, match=r"not supported by node 'feedforward'.*node='cartesian'"):
            call()
    made = rbd.TorqueController(rbd.sample("two_link"), "cartesian")
    made.update(0.0, Q, V)
    for call, said in ((lambda: made.goal(np.zeros((4, 4))), "pose"), (lambda: made.goal(np.eye(4), "hand"), "'hand'"),
                       (lambda: made.twist([0.1]), "twist has shape"), (lambda: made.press([math.nan] * 6), "finite"),
                       (lambda: made.follow([(1.0, np.eye(3))]), "pose|motion")):
        with pytest.raises(rbd.RbdError, match=said):
            call()


def test_reports_and_notices_are_those_of_the_node():
    made = rbd.TorqueController(arm(), gains={"kd": 500.0}, state_rate=500.0)
    gravity = rbd.gravity_effort(arm(), Q)
    for k in range(5):
        made.update(0.002 * k, Q, 0.0 * Q, gravity)
    notices = made.notices()
    assert any("gravity" in each for each in notices) and any("'gains.kd' is too high for 500 Hz" in each
                                                                for each in notices)
    assert made.notices() == []
    made.update(0.02, Q + 1.0, V)
    report = made.report()
    assert report["rejected_implausible"] == 1 and report["cycles"] == 5 and report["mode"] == "waiting"
    assert not any("latency" in key for key in report)


def test_notices_that_nobody_takes_are_bounded():
    made = rbd.TorqueController(arm(), state_timeout=0.001)
    for k in range(5 * MOST_NOTICES):
        made.update(1.0 + 0.01 * k, Q, 0.0 * Q)
        made.update(1.005 + 0.01 * k)
    assert made.report()["notices"] > 2 * MOST_NOTICES and len(made.notices()) <= MOST_NOTICES


def test_what_callers_do_to_a_command_does_not_matter():
    made = rbd.TorqueController(arm(), feedforward="gravity")
    command = made.update(0.0, Q, 0.0 * Q)
    wanted = made.update(0.001).effort.copy()
    command.effort[:] = 1e6
    made.update(0.002).effort[:] = math.nan
    assert made.update(0.003).effort.tolist() == wanted.tolist()
    q = Q.copy()
    made.update(0.004, q, 0.0 * q)
    q[:] = 2.0
    assert made.update(0.005, Q, 0.0 * Q).valid


# ---- whatever comes


HOSTILE = [None, math.nan, "q", [], [[0.1, 0.2]], [0.1, 0.2, 0.3], [1e300, 0.0], [math.inf, 0.0], [None, 1.0], {},
           object(), [1j, 0.0], np.zeros((2, 2)), np.array(0.3), b"12", [True, False], np.array([0.1, 0.2], object),
           [10**400, 0], range(2)]


@pytest.mark.parametrize("cycles", [1000, pytest.param(3000, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("node", ["feedforward", "flatness", "cartesian", "elastic"])
def test_no_input_of_a_cycle_raises_or_makes_torque_beyond_the_limits(node, cycles):
    rng, model = np.random.default_rng(3), rbd.sample("two_link")
    made = rbd.TorqueController(model, "flatness" if node == "elastic" else node, state_timeout=0.02, ramp_in=0.01,
                                **({"actuation_file": ACTUATION} if node == "elastic" else {"gains": {"kp": 5.0}}))
    times = [math.nan, -math.inf, None, "t", 1e300, -5.0, 10**30, 1j, [0.1]]

    def picked(value):
        return value if rng.random() < 0.7 else HOSTILE[int(rng.integers(len(HOSTILE)))]

    t, seen = 0.0, set()
    for _ in range(cycles):
        t += float(rng.choice([0.001, 0.002, 0.05])) * (1.0 if rng.random() < 0.995 else -100.0)
        more = {"motors": picked((Q + 0.01, V))} if node == "elastic" or rng.random() < 0.1 else {}
        if rng.random() < 0.2:
            more["external_wrenches"] = picked({model.body_names[-1]: picked(np.ones(6))})
        command = made.update(t if rng.random() < 0.95 else times[int(rng.integers(len(times)))],
                              picked(Q + 1e-6 * rng.random(2)), picked(V), picked(V), **more)
        seen |= {command.mode, command.valid}
        assert command.effort.shape == (2,) and (np.abs(command.effort) <= model.effort_limit).all(), command
        assert "Traceback" not in command.reason, command.reason
        if rng.random() < 0.01:
            (made.stop if rng.random() < 0.3 else made.reset)()
    assert seen >= {"waiting", "stale", "stopped", True, False}


def test_the_present_time_never_goes_back():
    made, rng, before = rbd.TorqueController(arm()), np.random.default_rng(1), -math.inf
    t, backwards = 0.1, 0
    for _ in range(3000):
        t += float(rng.uniform(0.0, 1e-3)) if rng.random() < 0.7 else -float(rng.uniform(0.0, 1e3))
        made.update(t)
        backwards += t + made._offset < before    # by rounding
        assert made._now >= before
        before = made._now
    assert backwards > 0


def test_of_a_time_that_is_no_number_a_cycle_passes_at_most_a_timeout():
    """Also after the clock jumped ahead: the arm is carried, not let down."""
    made = rbd.TorqueController(arm(), feedforward="gravity", ramp_in=0.0, safe_output={"fallback": [3.0, 3.0]})
    for t in (0.0, 0.001, 0.002, 1e4, 1e4 + 0.001, 2e4):
        command = made.update(t, Q, 0.0 * Q)
    assert command.valid
    made.update(math.nan, Q, 0.0 * Q)
    lost = made.update(math.nan, Q, 0.0 * Q)
    assert lost.mode == "stale" and "time t is nan, expected a number of seconds" in lost.reason
    np.testing.assert_allclose(lost.effort, rbd.gravity_effort(arm(), Q), atol=1e-9)


def test_a_defect_stops_the_robot_and_not_the_program(monkeypatch):
    made = rbd.TorqueController(arm(), feedforward="gravity", ramp_in=0.0)
    made.update(0.0, Q, V)
    monkeypatch.setattr(type(made._logic), "on_state", lambda *arguments: {}["defect"])
    command = made.update(0.001, Q, V)
    assert "KeyError: 'defect'" in command.reason and command.mode == "stopped" and not command.valid
    monkeypatch.undo()
    assert made.update(0.002, Q, V).mode == "stopped"
    made.reset()
    assert made.update(0.003, Q, V).mode == "running"


# ---- arms in the loop


class Rig:
    """An arm that is 5 % heavier than its model, at 1 kHz. fastest: largest speed since it was set to 0, rad/s."""

    def __init__(self, plant, node="feedforward", **parameters):
        urdf = str(rbd.sample_path("iiwa"))
        self.controller = rbd.TorqueController(urdf, node, rotor_inertia=ROTORS, **parameters)
        model = self.controller.model
        heavy = model.with_scaled_masses(1.05)
        start = np.linspace(0.2, 0.8, 7)
        if plant == "mujoco":
            pytest.importorskip("mujoco")
            from rbd_ros.runtime.cosimulation.mujoco_robot import MujocoRobot
            self.arm = MujocoRobot(model, rbd.sample_path("iiwa").read_text(), q=start)
            self.arm.mj.body_mass[:] *= 1.05
            self.arm.mj.body_inertia[:] *= 1.05
        else:
            self.arm = rbd.Simulator(heavy, q=start)
        self.t, self.fastest, self.command = 0.0, 0.0, None
        self.goal = start

    def go(self, seconds, state=lambda q, v: (q, v)):
        """For that long, with what `state` makes of the measurements; None: no call."""
        for _ in range(round(seconds * 1e3)):
            measured = state(self.arm.q.copy(), self.arm.v.copy())
            if measured is not None:
                self.command = self.controller.update(self.t, *measured)
            self.arm.step(self.command.effort)
            self.t += 1e-3
            self.fastest = max(self.fastest, float(np.abs(self.arm.v).max()))
            assert np.isfinite(self.command.effort).all()
        return self

    def move(self, reach=0.5, duration=1.5):
        start, zero = self.arm.q.copy(), np.zeros(7)
        self.goal = start - reach * np.sign(start)
        self.controller.follow([(duration, self.goal, zero, zero)])
        return self

    @property
    def off(self):
        return float(np.abs(self.arm.q - self.goal).max())


plants = pytest.mark.parametrize("plant", ["simulator", "mujoco"])
mostly_simulator = pytest.mark.parametrize("plant", ["simulator", pytest.param("mujoco", marks=pytest.mark.thorough)])


@plants
@pytest.mark.parametrize("node", ["feedforward", "flatness"])
def test_an_arm_follows_stops_holds_and_goes_on(plant, node):
    rig = Rig(plant, node, gains=GAINS).go(0.7)
    place = rig.arm.q.copy()
    rig.move().go(2.2)
    assert rig.command.mode == "running" and rig.off < 0.03 and np.abs(rig.arm.v).max() < 0.01
    assert rig.command.following
    rig.move(-0.5).go(0.7)
    speed = float(np.abs(rig.arm.v).max())
    assert speed > 0.3
    rig.controller.stop()
    rig.fastest = 0.0
    rig.go(1.5)
    assert rig.command.mode == "stopped" and not rig.command.following
    assert rig.fastest < speed + 0.7 and np.abs(rig.arm.v).max() < 0.01
    place = rig.arm.q.copy()
    rig.go(1.0)
    assert np.abs(rig.arm.q - place).max() < 0.01
    with pytest.raises(rbd.RbdError, match="emergency stop"):
        rig.move()
    rig.controller.reset()
    rig.go(0.6)
    assert rig.command.mode == "waiting" and np.abs(rig.arm.q - place).max() < 0.02
    rig.move(0.3).go(2.5)
    assert rig.command.mode == "running" and rig.off < 0.03
    rig.controller.finish()
    rig.go(1.5)
    assert rig.command.mode == "inactive" and rig.command.reason
    np.testing.assert_allclose(rig.command.effort, rbd.gravity_effort(rig.controller.model, rig.arm.q), atol=25.0)


@mostly_simulator
def test_outliers_do_not_move_an_arm(plant):
    """Every tenth state is one."""
    rig, rng, count = Rig(plant, gains=GAINS).go(0.7), np.random.default_rng(1), iter(range(10**6))
    rig.move().go(2.5, lambda q, v: (q, v) if next(count) % 10 else (q + rng.normal(scale=3.0, size=7), v))
    assert rig.command.mode == "running" and rig.off < 0.03 and rig.fastest < 1.2
    assert rig.controller.report()["rejected_implausible"] > 200


@plants
@pytest.mark.parametrize("seen", [True, False])
def test_an_arm_whose_states_cease_is_carried_and_goes_on(plant, seen):
    """seen: with calls without a state; else without calls, as of a program that stood still."""
    rig = Rig(plant, gains=GAINS).go(0.7).move().go(2.5)
    place, rig.fastest = rig.arm.q.copy(), 0.0
    rig.go(0.3, (lambda q, v: ()) if seen else (lambda q, v: None))
    assert rig.fastest < 0.2 and np.abs(rig.arm.q - place).max() < 0.02
    assert rig.command.mode == ("stale" if seen else "running")
    rig.go(1.0)
    assert rig.fastest < 0.2 and rig.command.mode == "running" and rig.off < 0.03
    assert any("states are back" in each or "stood still" in each for each in rig.controller.notices())


def test_a_program_that_stands_still_in_motion_throws_no_arm():
    rig = Rig("simulator", gains=GAINS).go(0.7).move().go(0.7)
    rig.go(0.2, lambda q, v: None)
    before, rig.fastest = float(np.abs(rig.arm.v).max()), 0.0
    rig.go(2.0)
    assert rig.fastest < max(before, 0.7) + 0.8 and np.abs(rig.arm.v).max() < 0.05


@mostly_simulator
def test_a_link_goes_to_a_pose_and_holds_it(plant):
    rig = Rig(plant, "cartesian", gains=GAINS).go(0.8)
    link = rig.controller.model.body_names[-1]

    def pose():
        return rbd.forward_kinematics(rig.controller.model, rig.arm.q)[-1]

    goal = pose() @ rbd.lie.se3.pose(xyz=(0.05, 0.02, -0.04), rpy=(0.1, 0.0, 0.2))
    rig.controller.goal(goal)
    rig.go(2.5)
    assert np.linalg.norm((pose() - goal)[:3, 3]) < 0.02 and rig.fastest < 1.0, link
    place = pose()
    rig.controller.twist([0.0, 0.0, 0.0, 0.0, 0.1, 0.0])
    rig.go(0.2)
    moved = pose() - place
    assert moved[1, 3] > 0.004
    rig.controller.follow([(1.0, goal), (2.0, goal)])
    rig.go(3.0)
    assert np.linalg.norm((pose() - goal)[:3, 3]) < 0.02
    rig.controller.guide()
    rig.go(0.5)
    assert rig.controller.report()["guided"] != "no" and np.abs(rig.arm.v).max() < 0.3


@pytest.mark.parametrize("motion", ["spline", "path", "points"])
def test_motions_of_the_library_are_followed(motion):
    rig = Rig("simulator", gains=GAINS).go(0.7)
    model, start, goal = rig.controller.model, rig.arm.q.copy(), rig.arm.q - 0.4
    motion = {"spline": lambda: rbd.SplineMotion(np.repeat([start, goal], 6, axis=0), 2.0),
              "path": lambda: rbd.time_optimal(model, rbd.smoothed_path(np.stack([start, 0.5 * (start + goal), goal])))
              .check(), "points": lambda: [(1.0, 0.5 * (start + goal)), (2.0, goal)]}[motion]()
    rig.controller.follow([])    # held, so that a fast motion does not begin while the command ramps in
    rig.go(0.6)
    rig.controller.follow(motion)
    rig.goal = goal
    rig.go(getattr(motion, "duration", 2.0) + 1.0)
    assert rig.command.mode == "running" and rig.off < 0.03


def test_a_stream_of_references_that_ends_is_a_stop():
    rig = Rig("simulator", gains=GAINS, reference_timeout=0.1).go(0.7)
    start = rig.arm.q.copy()
    for k in range(500):
        s = 0.001 * k
        rig.controller.follow(rbd.Reference(start + 0.3 * s**2, np.full(7, 0.6 * s), np.full(7, 0.6)))
        rig.go(0.001)
    rig.go(2.0)
    assert np.abs(rig.arm.v).max() < 0.01 and np.abs(rig.arm.q - start - 0.3 * 0.5**2).max() < 0.05
    assert rig.command.mode == "running"


def test_the_efforts_of_elastic_joints():
    model = rbd.sample("two_link")
    made = rbd.TorqueController(model, "flatness", actuation_file=ACTUATION, state_rate=500.0)
    q, zero = np.array([0.1, 0.2]), np.zeros(2)
    motors = np.array([0.1, 0.2, 300.0]), np.zeros(3)
    assert made.update(0.002, q, zero, motors=motors).motor_effort.shape == (3,)
    made.follow([(1.0, q + 0.1, zero, zero)])
    for k in range(2, 300):
        command = made.update(0.002 * k, q, zero, motors=motors)
    assert command.mode == "running" and command.rates.shape == (2, 2) and command.motors.position.shape == (3,)
    assert "no fresh motor state" in [made.update(0.002 * k, q, zero) for k in range(300, 340)][-1].reason


def test_nothing_is_followed_after_the_end():
    rig = Rig("simulator", gains=GAINS).go(0.7)
    rig.controller.finish()
    rig.go(1.5)
    with pytest.raises(rbd.RbdError, match="has finished: call reset, then update"):
        rig.controller.follow([])


def test_motions_and_models_that_are_none_are_named():
    with pytest.raises(rbd.RbdError, match="model"):
        rbd.TorqueController(None)
    controller = rbd.TorqueController(rbd.sample("two_link"))
    controller.update(0.0, [0.1, 0.2], [0.0, 0.0])

    def motion(t):
        return None

    motion.duration = 1.0
    with pytest.raises(rbd.RbdError, match=r"motion: expected q, v, a of 101 times"):
        controller.follow(motion)
    with pytest.raises(rbd.RbdError, match="start is 1e\\+10 s"):
        controller.follow([], start=1e10)


# ---- faults of the program around it


def closest(rig, seconds):
    """Largest distance of the arm from the reference during this time."""
    far = 0.0
    for _ in range(round(seconds * 1e3)):
        rig.go(1e-3)
        if rig.controller.reference is not None:
            far = max(far, float(np.abs(rig.controller.reference.q - rig.arm.q).max()))
    return far


@plants
@pytest.mark.parametrize("begins", ["at the arm", "at the reference"])
def test_a_fast_motion_that_begins_where_the_arm_or_its_reference_is_arrives(plant, begins):
    """Weight that the model does not know holds the arm off its reference: from there the torque fades to the motion,
    and the arm comes later than that. It was dropped on the way, by `tracking_tolerance`.
    """
    rig = Rig(plant, gains=GAINS)
    rig.go(0.01)
    assert rig.controller.reference is None
    rig.controller.follow([])
    rig.go(1.5)
    start = rig.arm.q.copy() if begins == "at the arm" else rig.controller.reference.q
    rig.fastest, rig.goal = 0.0, start - 0.5
    rig.controller.follow(rbd.SplineMotion(np.repeat([start, rig.goal], 6, axis=0), 0.9))
    late = closest(rig, 2.0)
    assert not [each for each in rig.controller.notices() if "dropped" in each]
    assert rig.command.mode == "running" and rig.off < 0.03 and rig.fastest < 3.0
    assert late < (0.15 if begins == "at the arm" else 0.03), late
    np.testing.assert_allclose(rig.controller.reference.q, rig.goal, rtol=0.0, atol=1e-9)


def test_a_stream_that_begins_elsewhere_is_not_followed_through_its_fade():
    rig = Rig("simulator", gains=GAINS).go(0.7)
    rig.controller.follow([])
    rig.go(1.0)
    place, zero, rig.fastest = rig.arm.q.copy(), np.zeros(7), 0.0
    for _ in range(1000):
        rig.controller.follow(rbd.Reference(place + 0.6, zero, zero))
        rig.go(1e-3)
    assert rig.fastest < 0.2 and np.abs(rig.arm.q - place).max() < 0.05
    assert "tracking_tolerance" in rig.command.reason and rig.controller.report()["not_following"] > 400


@pytest.mark.parametrize(("row", "size", "said"), [
    (1, 50.0, r"reference: velocity 50 of joint '.*' is more than .* 2 times its velocity limit"),
    (2, 1000.0, r"reference: acceleration 1e\+03 of joint '.*' is more than .* reached within 0.01 s"),
    *(pytest.param(*case, marks=pytest.mark.thorough) for case in ((1, 1e300, "velocity"),
                                                                   (2, -1e300, "acceleration")))])
def test_a_reference_with_rates_that_no_joint_has_is_refused_and_not_felt(row, size, said):
    rig = Rig("simulator", gains=GAINS).go(0.7)
    rig.controller.follow([])
    rig.go(1.0)
    place, rig.fastest, efforts = rig.arm.q.copy(), 0.0, []
    for k in range(400):
        sample = [rig.controller.reference.q, np.zeros(7), np.zeros(7)]
        if k == 100:
            sample[row] = sample[row] + size
            with pytest.raises(rbd.RbdError, match=said):
                rig.controller.follow(rbd.Reference(*sample))
        elif k < 100:
            rig.controller.follow(rbd.Reference(*sample))
        rig.go(1e-3)
        efforts.append(rig.command.effort)
    assert np.abs(np.diff(efforts, axis=0)).max() < 0.5 and rig.fastest < 0.02
    assert np.abs(rig.arm.q - place).max() < 0.005


def test_points_with_accelerations_that_no_joint_has_are_refused():
    made = rbd.TorqueController(arm(), gains={"kp": 20.0, "kd": 1.0})
    made.update(0.0, Q, 0.0 * Q)
    with pytest.raises(rbd.RbdError, match=r"trajectory: acceleration -700 of joint 'elbow' is more than 600"):
        made.follow([(1.0, Q, 0.0 * Q, [0.0, -700.0])])
    made.follow([(1.0, Q, 0.0 * Q, [0.0, -50.0])])


@plants
@pytest.mark.parametrize("stamps", ["its own", "new"])
def test_a_driver_that_repeats_itself_is_no_arm_at_rest(plant, stamps):
    """The torque is that without states. It was that of an arm at rest, for ever, which braked nothing: 4 rad/s."""
    rig = Rig(plant, gains=GAINS).go(0.7).move().go(0.7)
    q, v, t = rig.arm.q.copy(), rig.arm.v.copy(), rig.t
    rig.command = rig.controller.update(t, q, v)
    assert np.abs(v).max() > 0.3 and rig.command.valid
    rig.fastest, modes = 0.0, []
    for k in range(1, 1001):
        rig.arm.step(rig.command.effort)
        rig.command = rig.controller.update(t if stamps == "its own" else t + 1e-3 * k, q, v)
        modes.append(rig.command.mode)
    late = modes.index("stale")
    assert late <= 150 and set(modes[late:]) == {"stale"} and not rig.command.valid
    assert "was given before" in rig.command.reason if stamps == "its own" else (
        "driver repeats positions, which stay equal to the bit though joint" in rig.command.reason)
    rig.t = t + 1.0
    rig.go(2.0)    # it measures again
    assert rig.command.valid and rig.command.mode == "waiting" and np.abs(rig.arm.v).max() < 0.05


def test_an_arm_at_rest_with_coarse_positions_and_noisy_velocities_is_no_such_driver():
    made, rng = rbd.TorqueController(arm(), gains={"kp": 20.0, "kd": 1.0}), np.random.default_rng(4)
    for k in range(5000):
        assert made.update(1e-3 * k, Q, rng.normal(scale=0.04, size=2)).valid
    slow = 0.04 * np.ones(2)    # below what counts as motion
    for k in range(5000, 8000):
        assert made.update(1e-3 * k, Q, slow).valid


def test_without_a_state_time_goes_on_though_the_program_gives_the_same():
    made = rbd.TorqueController(arm(), feedforward="gravity")
    for k in range(10):
        made.update(1e-3 * k, Q, 0.0 * Q)
    for _ in range(60):
        lost = made.update(9e-3)
    assert lost.mode == "stale" and "no valid joint state" in lost.reason
    for _ in range(60):
        made.update(10e-3, Q, 0.0 * Q)
    assert made.report()["rejected_repeated"] == 59


@pytest.fixture
def worn():
    """An iiwa with friction that is as heavy as its model and a tenth."""
    model = rbd.sample("iiwa").with_(armature=0.3)
    return model, model.with_scaled_masses(1.1).with_(friction=np.full(7, 0.3), damping=np.full(7, 0.2))


@pytest.mark.parametrize(("node", "gains", "moves"), [
    pytest.param("feedforward", {"kp": 400.0, "kd": 40.0}, False, marks=pytest.mark.thorough),
    ("flatness", {"kp": 400.0, "kd": 40.0}, False), ("feedforward", {"kp": 400.0, "kd": 40.0}, True),
    ("cartesian", {}, False)])
def test_the_torque_that_is_left_behind_carries_the_arm(worn, node, gains, moves):
    """Not that of the model, by which it sank from the end on: 0.8 rad within a second."""
    model, plant = worn
    made, robot = rbd.TorqueController(model, node, **({"gains": gains} if gains else {})), rbd.Simulator(
        plant, q=np.full(7, 0.3))
    command = made.update(robot.time, robot.q, robot.v)

    def go(seconds):
        nonlocal command
        for _ in range(round(seconds * 1e3)):
            robot.step(command.effort)
            command = made.update(robot.time, robot.q, robot.v)

    if node != "cartesian":
        made.follow([])
    go(2.0)
    if moves:
        made.follow([(1.5, robot.q - 0.4, np.zeros(7), np.zeros(7))])
        go(0.7)
    made.finish()
    begin, place = robot.time, robot.q.copy()
    while command.mode != "inactive":
        go(1e-3)
    assert robot.time - begin < (1.0 if moves else 0.6)
    if not moves:
        assert np.abs(robot.q - place).max() < 0.01    # also on the way
    place = robot.q.copy()
    for _ in range(1000):
        robot.step(command.effort)
    assert np.abs(robot.q - place).max() < (0.05 if moves else 0.01)
    assert np.abs(command.effort - rbd.gravity_effort(model, robot.q)).max() > 1.0


@pytest.mark.parametrize("node", ["feedforward", "flatness"])
def test_nothing_new_is_followed_after_finish(node):
    rig = Rig("simulator", node, gains=GAINS).go(0.7)
    rig.controller.follow([])
    rig.go(1.0)
    place, zero, rig.fastest = rig.arm.q.copy(), np.zeros(7), 0.0
    rig.controller.finish()
    for motion in ([(0.8, place - 0.4, zero, zero)], rbd.Reference(place, zero, zero),
                   rbd.SplineMotion(np.repeat([place, place - 0.4], 6, axis=0), 1.5)):
        with pytest.raises(rbd.RbdError, match=r"from the deactivation on"):
            rig.controller.follow(motion)
    rig.controller.follow([])    # stop, and stay
    rig.go(1.5)
    assert rig.command.mode == "inactive" and rig.fastest < 0.05 and np.abs(rig.arm.q - place).max() < 0.01
    rig.controller.reset()
    rig.go(0.6)
    rig.controller.follow([(2.0, rig.arm.q - 0.3, zero, zero)])


def test_a_stream_goes_on_while_the_torque_fades_at_the_end():
    """An arm in motion runs out with it; it does not begin anew."""
    rig = Rig("simulator", gains=GAINS).go(0.7)
    place, zero, taken = rig.arm.q.copy(), np.zeros(7), 0
    for k in range(2000):
        t = 1e-3 * k
        if k == 1000:
            rig.controller.finish()
        try:
            rig.controller.follow(rbd.Reference(place - 0.1 * (1.0 - np.cos(t)), zero - 0.1 * np.sin(t),
                                                zero - 0.1 * np.cos(t)))
            taken += k >= 1000
        except rbd.RbdError:
            assert k > 1400
        rig.go(1e-3)
    assert 500 <= taken <= 800 and rig.command.mode == "inactive" and rig.fastest < 0.5


def test_damping_that_is_too_high_is_noticed_after_some_states():
    """Without `state_rate` it was after 64 of them, at 50 Hz more than a second."""
    made = rbd.TorqueController(arm(), gains={"kd": 500.0})
    noticed = []
    for k in range(100):
        made.update(0.02 * k, Q, 0.0 * Q)
        noticed += [(k, each) for each in made.notices()]
    (count, text), = noticed
    assert count == 8 and "'gains.kd' is too high for 50 Hz" in text
    made.set(gains={"kd": 400.0})
    made.update(2.0, Q, 0.0 * Q)
    assert "shoulder: 400" in made.notices()[0]


def test_a_stream_after_a_trajectory_is_not_dropped_with_it():
    """A robot that is away from a stream ramps in when it is near again, also if a trajectory came before."""
    model = rbd.sample("two_link")
    controller = rbd.TorqueController(model, gains={"kp": 50.0, "kd": 5.0}, tracking_tolerance=[0.2], ramp_in=0.0)
    q, rest = np.array([0.3, 0.5]), np.zeros(2)
    controller.update(1.0, q, rest)
    controller.follow([])    # stop here: a trajectory
    controller.update(1.002, q, rest)
    for k, offset in enumerate((0.0, 0.5, 0.0)):
        controller.follow(rbd.Reference(q + offset, rest, rest))
        command = controller.update(1.004 + 0.002 * k, q, rest)
        assert (command.mode == "waiting") == (offset > 0.2)
    assert not any("dropped" in notice for notice in controller.notices())

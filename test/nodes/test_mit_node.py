"""Node feedforward with its output for motors that close a loop, over DDS, in front of an arm with such motors."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
import yaml
from builtin_interfaces.msg import Duration, Time
from harness import RELIABLE, ROOT, Peer
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from benchmark.robots import robot_file
from rbd_ros.runtime.rehearsal import rehearse

pytest.importorskip("mujoco", reason="the arm is MuJoCo's")
pytest.importorskip("pinocchio", reason="the arm is one of example-robot-data: scripts/setup --peers")
from support.mit_arm import PERIOD, MitArm

INTERFACES = ("position", "velocity", "effort", "kp", "kd")
START, GOAL = np.array([0.0, 1.2, -1.2, -0.3, 0.0, 0.0]), np.array([0.5, 1.6, -0.8, 0.2, 0.3, 0.3])
# in step with the arm, however slow the machine
CALM = {"state_timeout": 10.0, "feedback.max_age": float("inf"), "feedback.min_rate": 0.0, "state_rate": 0.0}


def test_an_arm_follows_through_the_shipped_configuration_and_is_held_when_the_node_is_killed(start_node):
    path = robot_file("z1_description/urdf/z1.urdf")
    rotors = [0.1, 0.1, 0.1, 0.03, 0.03, 0.03]
    model = rbd.load_urdf(path, locked={"jointGripper": 0.0}).with_(
        armature=np.array(rotors), friction=np.full(6, 0.05), damping=np.full(6, 0.1))
    arm = MitArm(model, path.read_text(), START, scale=1.0)
    process = start_node("feedforward", "--params-file", str(ROOT / "config" / "generic_mit.yaml"), **CALM,
                         robot_description_file=str(path), **{"locked.joints": ["jointGripper"]}, feedforward="full",
                         friction__damping=False, friction__coulomb=False, rotor_inertia=rotors, ramp_in=0.05)
    names, heard = list(model.joint_names), {name: [] for name in INTERFACES}
    with Peer() as peer:
        for name in INTERFACES:
            peer.node.create_subscription(Float64MultiArray, f"forward_{name}_controller/commands",
                                          heard[name].append, RELIABLE)
        trajectories = peer.node.create_publisher(JointTrajectory, "feedforward/joint_trajectory", RELIABLE)

        ticks = itertools.count()

        def stamp():
            sec, ns = divmod(1_000_000_000_000 + next(ticks) * round(PERIOD * 1e9), 1_000_000_000)
            return Time(sec=sec, nanosec=ns)

        def answer(q, v, at):
            """Of this state, on all topics; ~/effort has its stamp."""
            effort = peer.spin_until(lambda: next((each for each in peer.efforts if each.header.stamp == at), None),
                                     "effort", lambda: peer.send_state(names, q, v, stamp=at))
            expected = [list(q), list(v), list(effort.effort)]
            peer.spin_until(lambda: all(heard.values()) and expected == [
                list(heard[name][-1].data) for name in INTERFACES[:3]], f"command {expected}")
            return np.array([heard[name][-1].data for name in INTERFACES])

        def cycle():
            arm.send(answer(arm.q, arm.v, stamp()))
            for _ in range(10):
                arm.step()

        def move(goal, duration):
            point = JointTrajectoryPoint(positions=list(goal), velocities=[0.0] * 6, accelerations=[0.0] * 6,
                                         time_from_start=Duration(sec=int(duration)))
            peer.spin_until(lambda: trajectories.get_subscription_count() > 0, "subscription")
            trajectories.publish(JointTrajectory(joint_names=names, points=[point]))
            peer.spin_until(lambda: moves(goal), "motion", cycle)

        def moves(goal):
            return np.abs(arm.v * np.sign(goal - arm.q)).max() > 0.1

        peer.spin_until(lambda: peer.status.startswith("active"), "active node")
        peer.spin_until(lambda: all(heard.values()), "first command", lambda: peer.send_state(
            names, arm.q, arm.v, stamp=stamp()))    # nothing before some states agree
        for _ in range(30):
            cycle()
        kp, kd = (np.array(heard[name][-1].data) for name in ("kp", "kd"))
        assert kp.tolist() == [80.0, 80.0, 80.0, 40.0, 20.0, 20.0] and kd.tolist() == [5.0, 5.0, 5.0, 3.0, 2.0, 2.0]
        move(GOAL, 1.0)
        for _ in range(150):
            cycle()
        assert np.abs(arm.q - GOAL).max() < 0.01
        move(START, 1.0)
        for _ in range(20):
            cycle()
        process.kill()
        place, speed = arm.q, np.abs(arm.v).max()
        for _ in range(round(2.0 / PERIOD) * 10):
            arm.step()
        rest = arm.q
        assert speed > 0.3 and np.abs(rest - place).max() < 0.03 + 0.3 * speed and np.abs(arm.v).max() < 0.01
        for _ in range(10_000):
            arm.step()
        assert np.abs(arm.q - rest).max() < 2e-3


@pytest.mark.parametrize("name", ["openarm", "big_yam"])
def test_a_shipped_configuration_sends_to_the_controllers_of_its_driver(start_node, tmp_path, name):
    """Measured state, whole torque, and the gains only where the driver takes them."""
    plan = rehearse(ROOT / "config" / f"{name}.yaml")
    urdf, file = tmp_path / "arm.urdf", tmp_path / "node.yaml"
    urdf.write_text(plan.description)
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": {
        **plan.given, "locked.joints": plan.replaced["locked.joints"], "robot_description_file": str(urdf), **CALM}}}))
    start_node("feedforward", "--params-file", str(file))
    names, given = plan.given["joints"], plan.given
    q = np.linspace(0.3, 0.6, len(names))
    heard = {each: [] for each in INTERFACES}
    with Peer() as peer:
        for each in INTERFACES:
            peer.node.create_subscription(Float64MultiArray, f"forward_{each}_controller/commands",
                                          heard[each].append, RELIABLE)
        peer.spin_until(lambda: peer.status.startswith("active"), "active node")
        ticks = itertools.count()

        def state():
            peer.send_state(names, q, 0.0 * q, stamp=Time(sec=1000 + next(ticks)))

        peer.spin_until(lambda: all(heard[each] for each in given["mit.interfaces"]), "commands", state)
        last = {each: list(values[-1].data) for each, values in heard.items() if values}
    assert set(last) == set(given["mit.interfaces"])
    assert last["position"] == list(q) and last["velocity"] == [0.0] * len(names)
    assert len(last["effort"]) == len(names) and np.abs(last["effort"]).max() < max(given["effort_limits.maximum"])
    for gain in {"kp", "kd"} & set(last):
        assert last[gain] == given[f"mit.{gain}"]

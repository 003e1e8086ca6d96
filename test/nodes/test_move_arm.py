"""A simulated arm, started as README.md says, moves where examples/move_arm.py tells it to."""
from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from harness import RELIABLE, ROOT, NodeProcess, Peer
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

README = (ROOT / "README.md").read_text(encoding="utf-8")
URDF, SIMULATOR, FEEDFORWARD, EXAMPLE = (line.split("    #")[0].rstrip() for line in re.findall(
    r"^(?:URDF=|scripts/run (?:simulator|feedforward|python examples)).*$", README, re.MULTILINE))


def start(*arguments: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.getenv("PYTHONPATH")])])
    return subprocess.Popen([sys.executable, "examples/move_arm.py", *arguments], cwd=ROOT, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path})


def move(*goals: str) -> subprocess.CompletedProcess[str]:
    with start(*goals) as process:
        try:
            said, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    return subprocess.CompletedProcess(goals, process.returncode, said, errors)


@pytest.fixture(scope="module")
def arm(tmp_path_factory, private_domain):
    """Both nodes; a busy machine may pause between states."""
    processes = []
    try:
        for line, more in ((SIMULATOR, ("-p", "wait_for_command:=5.0")),
                           (FEEDFORWARD, ("-p", "state_timeout:=10.0"))):
            name, *arguments = line.replace("$URDF", URDF.removeprefix("URDF=")).split()[1:]
            assert arguments[0] == "--ros-args"
            processes.append(NodeProcess(tmp_path_factory.mktemp(name), name, [*arguments[1:], *more]))
        with Peer() as peer:
            peer.spin_until(lambda: float(peer.diagnostics.get("cycles", 0)) > 0, "joint state that is answered")
        yield processes
    finally:
        for process in processes:
            process.kill()


def test_a_stop_is_named(arm):
    with Peer() as peer:
        button = peer.node.create_publisher(Bool, "feedforward/emergency_stop", RELIABLE)
        peer.spin_until(button.get_subscription_count, "subscription to the stop")
        peer.spin_until(lambda: peer.diagnostics.get("mode") == "stopped", "stop",
                        lambda: button.publish(Bool(data=True)))
        result = move("joint_1=0.1")
        assert result.returncode == 1 and "stopped: call ~/reset" in result.stderr, result.stderr
        button.publish(Bool(data=False))
        peer.call(Trigger, "feedforward/reset", Trigger.Request())
        peer.spin_until(lambda: peer.diagnostics.get("mode") != "stopped", "release")


def test_the_arm_arrives(arm):
    result = move(*EXAMPLE.split("move_arm.py ")[1].split())
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"^joint_1 +0\.(49|50)\d+  moved by +0\.(49|50)\d+  off by 0\.00", result.stdout, re.MULTILINE)
    lines = result.stdout.splitlines()
    assert len(lines) == 7
    # brakes held the others where the simulator put them, until the controller came
    assert all(abs(float(line.split()[1])) < 0.01 for line in lines if line.split()[0] not in ("joint_1", "joint_4"))


def test_a_joint_that_is_not_the_robots_is_not_sent(arm):
    """As Gazebo's joint between the arm and the world, which its joint states have, too."""
    process = None
    with Peer() as peer:
        states = peer.node.create_publisher(JointState, "states_of_all", 10)

        def pass_on(state):
            states.publish(JointState(header=state.header, name=["world_joint", *state.name],
                                      position=[0.0, *state.position]))

        peer.node.create_subscription(JointState, "joint_states", pass_on, 10)
        process = start("joint_1=0.4", "--ros-args", "-r", "joint_states:=states_of_all")
        try:
            peer.spin_until(lambda: process.poll() is not None, "end")
        finally:
            process.kill()
    said, errors = process.communicate()
    assert process.returncode == 0, said + errors
    assert re.search(r"^joint_1 +0\.(39|40)\d+", said, re.MULTILINE) and "world_joint" not in said


def test_a_pose_beyond_the_limits_is_not_reached_and_the_log_says_why(arm):
    result = move("joint_4=-3.7")
    assert result.returncode == 1 and "it did not move" in result.stderr
    assert "joint 'joint_4' at -3.7 is beyond its limit -2.094" in arm[1].output()


def test_words_that_are_no_goals(arm):
    assert "no joint joint_9; the arm has joint_1" in move("joint_9=0.5").stderr
    assert "move_arm.py joint_1=0.5" in move().stderr
    assert "move_arm.py joint_1=0.5" in move("joint_1").stderr

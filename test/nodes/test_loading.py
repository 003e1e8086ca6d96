"""What a node says while it loads: that kernels are compiled only where they are."""
from __future__ import annotations

from pathlib import Path

import pytest
from harness import NodeProcess, Peer
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

import rbd_ros as rbd
from rbd_ros.core.compiled.entry import EXTENSION

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
XACRO = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="rod" default="rod"/>
<link name="base"/><link name="$(arg rod)"><inertial><origin xyz="0 0 1"/><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/>
<child link="$(arg rod)"/></joint></robot>"""


@pytest.mark.parametrize("cold", [True, False], ids=["empty cache", "nothing to compile"])
def test_compiling_is_announced_where_it_happens(tmp_path, private_domain, monkeypatch, cold):
    if cold:
        pytest.importorskip("numba")
        monkeypatch.setenv("RBD_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.delenv("RBD_DISABLE_COMPILE", raising=False)
    else:
        monkeypatch.setenv("RBD_DISABLE_COMPILE", "1")
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=str(rbd.sample_path("two_link")))
    try:
        with Peer() as peer:
            peer.spin_until(lambda: "loading the robot" in process.output(), "log line")
        (line,) = [line for line in process.output().splitlines() if "loading the robot" in line]
        assert ("compiling kernels, once" in line) == cold
    finally:
        process.kill()


@pytest.mark.skipif(not EXTENSION, reason="kept by numba")
def test_a_node_whose_kernels_are_kept_does_not_import_numba(tmp_path, private_domain, monkeypatch):
    monkeypatch.setenv("RBD_TEST_OF_ITS_OWN", "1")    # a process that is no fork
    for _ in range(2):    # the first one may have to compile
        process = NodeProcess(tmp_path, "feedforward", robot_description_file=str(rbd.sample_path("two_link")))
        try:
            with Peer() as peer:
                peer.spin_until(lambda process=process: "'two_link' ready in" in process.output(), "model")
            loaded = Path(f"/proc/{process.process.pid}/maps").read_text()
        finally:
            process.kill()
    assert "_door" in loaded and "numba/_dispatcher" not in loaded


def test_a_xacro_file_with_arguments(tmp_path, private_domain):
    pytest.importorskip("xacro")
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(XACRO)
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=f"{path} rod:=stick")
    try:
        with Peer() as peer:
            peer.spin_until(lambda: "'r' ready in" in process.output(), "model")
    finally:
        process.kill()


def test_a_path_on_the_topic_is_no_description(tmp_path, private_domain):
    """Who may publish does not choose which files of this computer are read."""
    process = NodeProcess(tmp_path, "feedforward")
    try:
        with Peer() as peer:
            publisher = peer.node.create_publisher(String, "robot_description", LATCHED)
            publisher.publish(String(data=str(rbd.sample_path("two_link"))))
            peer.spin_until(lambda: "is no XML" in process.output(), "refusal")
            publisher.publish(String(data=rbd.sample_path("two_link").read_text()))
            peer.spin_until(lambda: "'two_link' ready in" in process.output(), "model")
    finally:
        process.kill()

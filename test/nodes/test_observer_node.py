"""The observer as users have it, beside a simulated robot that is pushed: efforts, wrench and contacts."""
from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Wrench, WrenchStamped
from harness import RELIABLE, NodeProcess, Peer
from std_msgs.msg import Float64MultiArray

import rbd_ros as rbd
from rbd_interfaces.msg import Contact, JointEffort, NamedWrench, NamedWrenches

Q = np.linspace(0.2, 1.0, 7)


def test_a_push_is_seen_over_dds(tmp_path, private_domain):
    """A weightless arm, from rest, is pushed at its tip until it is seen there, and let go."""
    model = rbd.sample("iiwa")
    tip = model.body_names[-1]
    shared = {"robot_description_file": str(rbd.sample_path("iiwa")), "gravity": [0.0, 0.0, 0.0]}
    efforts: list[JointEffort] = []
    wrenches: list[WrenchStamped] = []
    contacts: list[Contact] = []
    with Peer("observer") as peer:
        node = peer.node
        pushes = node.create_publisher(NamedWrenches, "simulator/external_wrenches", RELIABLE)
        commands = node.create_publisher(Float64MultiArray, "simulator/commands", RELIABLE)
        node.create_subscription(JointEffort, "observer/external_effort", efforts.append, RELIABLE)
        node.create_subscription(WrenchStamped, "observer/external_wrench", wrenches.append, RELIABLE)
        node.create_subscription(Contact, "observer/contact", contacts.append, RELIABLE)
        simulator = NodeProcess(tmp_path, "simulator", **shared, initial_position=[float(x) for x in Q])
        observer = NodeProcess(tmp_path, "observer", ["--params-file", "config/observer.yaml"], **shared,
                               threshold=[0.02])

        def push(force):
            commands.publish(Float64MultiArray(data=[0.0] * 7))
            wrench = Wrench()
            wrench.force.x, wrench.torque.z = force, 0.1 * force
            pushes.publish(NamedWrenches(wrenches=[NamedWrench(body=tip, wrench=wrench)]))

        try:
            peer.spin_until(lambda: efforts, "an estimate", lambda: push(0.0))
            peer.spin_until(lambda: wrenches and wrenches[-1].wrench.force.x > 1.9 and contacts, "the push",
                            lambda: push(2.0))
            assert wrenches[-1].header.frame_id == tip == contacts[-1].header.frame_id and contacts[-1].touching
            assert abs(wrenches[-1].wrench.torque.z - 0.1 * wrenches[-1].wrench.force.x) < 0.05
            assert list(efforts[-1].name) == list(model.joint_names)
            peer.spin_until(lambda: not contacts[-1].touching, "no push", lambda: push(0.0))
            peer.spin_until(lambda: int(peer.diagnostics.get("contacts", "0")) >= 1, "diagnostics", lambda: push(0.0))
        finally:
            codes = [observer.end(), simulator.end()]
        assert codes == [0, 0], observer.output()

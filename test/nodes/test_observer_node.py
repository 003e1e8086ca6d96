"""The observer as users have it, beside a simulated robot that is pushed: efforts, wrench and contacts."""
from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Wrench, WrenchStamped
from builtin_interfaces.msg import Time
from harness import RELIABLE, NodeProcess, Peer
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from support.recordings import periodic

import rbd_ros as rbd
from rbd_interfaces.msg import (
    Contact, ExternalEffort, NamedWrench, NamedWrenches, Payload, WrenchWithCovarianceStamped,
)

Q = np.linspace(0.2, 1.0, 7)


def test_a_push_is_seen_over_dds(tmp_path, private_domain):
    """A weightless arm, from rest, is pushed at its tip until it is seen there, and let go."""
    model = rbd.sample("iiwa")
    tip = model.body_names[-1]
    shared = {"robot_description_file": str(rbd.sample_path("iiwa")), "gravity": [0.0, 0.0, 0.0]}
    efforts: list[ExternalEffort] = []
    wrenches: list[WrenchStamped] = []
    contacts: list[Contact] = []
    with Peer("observer") as peer:
        node = peer.node
        pushes = node.create_publisher(NamedWrenches, "simulator/external_wrenches", RELIABLE)
        commands = node.create_publisher(Float64MultiArray, "simulator/commands", RELIABLE)
        node.create_subscription(ExternalEffort, "observer/external_effort", efforts.append, RELIABLE)
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


def test_a_load_is_told_and_taken_over_by_a_torque_node(tmp_path, private_domain):
    """States of a motion with a load, as fast as they can be read; nobody takes it over unasked."""
    model, h = rbd.sample("iiwa"), 0.004
    load, names = rbd.Inertia(2.0, np.array([0.03, -0.02, 0.08]), np.diag([0.01, 0.012, 0.008])), model.joint_names
    q, v, a = periodic(model, 1, period=4.0)(h * np.arange(1000))[:3]
    tau = rbd.inverse_dynamics(model.with_payload("link_7", load), q, v, a)
    told: list[Payload] = []
    known: list[WrenchWithCovarianceStamped] = []
    sent = 0
    shared = {"robot_description_file": str(rbd.sample_path("iiwa"))}
    with Peer("observer") as peer:
        peer.node.create_subscription(Payload, "observer/payload", told.append, RELIABLE)
        peer.node.create_subscription(WrenchWithCovarianceStamped, "observer/external_wrench_with_covariance",
                                      known.append, RELIABLE)
        processes = [NodeProcess(tmp_path, "observer", **shared, payload__estimate="link_7", sigma=[0.1]),
                     NodeProcess(tmp_path, "feedforward", **shared, payload__topic="/observer/payload")]

        def send():
            """Some more, unless they wait to be read; one by one until the first is answered."""
            nonlocal sent
            stamp, count = (known[-1].header.stamp, 20) if known else (Time(), 1)
            if known and sent - round((stamp.sec + 1e-9 * stamp.nanosec) / h) > 20:
                return
            for k in range(sent, sent + count):
                ns = round(1e9 * h * (k + 1))
                peer.send_state(names, q[k % 1000], v[k % 1000], tau[k % 1000],
                                Time(sec=ns // 10**9, nanosec=ns % 10**9))
            sent += count

        def adopt(node):
            return peer.call(Trigger, f"/{node}/adopt_payload", Trigger.Request())

        try:
            first = adopt("feedforward")
            assert not first.success and "no estimate on /observer/payload" in first.message
            peer.spin_until(lambda: told and told[-1].observed[0] and told[-1].half_width[0] < 0.01, "a load", send)
            for _ in range(500):    # the estimate may still be on its way
                if (first := adopt("feedforward")).success:
                    break
                send()
            answers = [first, adopt("observer")]
            assert all(answer.success for answer in answers), answers
            for node in ("feedforward", "observer"):
                peer.target = node
                mass, com = peer.get_parameters(["payload.mass", "payload.com"])
                assert abs(mass.double_value - 2.0) < 0.02
                np.testing.assert_allclose(com.double_array_value, load.com, atol=5e-3)
            last, widths = told[-1], np.array(told[-1].half_width)
            assert last.header.frame_id == "link_7" and abs(last.inertia.m - 2.0) < 0.02 and not last.touching
            assert np.isfinite(widths).all() and (widths[:4] > 0.0).all()
            covariance = np.reshape(known[-1].covariance, (6, 6))
            assert np.linalg.eigvalsh(covariance)[0] > 0.0 and np.allclose(covariance, covariance.T)
        finally:
            codes = [process.end() for process in processes]
            print(processes[0].output()[:5000])
        assert codes == [0, 0], processes[0].output() + processes[1].output()

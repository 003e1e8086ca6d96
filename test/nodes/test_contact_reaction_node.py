"""A contact of the arm over DDS: it is told, and the next answer is that of the reaction."""
from __future__ import annotations

import numpy as np
from elbow import A_REF, NAMES, Q_REF, URDF, V_REF, Q, start_elbow
from harness import RELIABLE, Peer

import rbd_ros as rbd
from rbd_interfaces.msg import Contact


def stamp(message):
    return message.header.stamp.sec, message.header.stamp.nanosec


def test_it_stops_with_the_answer_after_the_contact(start_node, tmp_path, private_domain):
    """An arm that stands still whatever its torque: something holds it."""
    contacts: list[Contact] = []
    with Peer() as peer:
        peer.node.create_subscription(Contact, "feedforward/contact", contacts.append, RELIABLE)
        process = start_elbow(start_node, tmp_path)(**{"contact.reaction": "stop", "contact.threshold": [0.5]})
        peer.spin_until(lambda: peer.node.count_publishers("feedforward/contact"), "publisher")

        def send() -> None:
            peer.send_reference(NAMES, Q_REF, V_REF, A_REF)
            peer.send_state(NAMES, Q, np.zeros(2))

        peer.spin_until(lambda: contacts and peer.efforts and stamp(peer.efforts[-1]) > stamp(contacts[0])
                        and peer.diagnostics.get("mode") == "stopped", "a stop, and an answer after it", send)
        sent = {stamp(message): list(message.effort) for message in peer.efforts}
        first = stamp(contacts[0])
        gravity = rbd.gravity_effort(rbd.load_urdf(URDF.format(shoulder=100)), Q)
        before = [effort for at, effort in sent.items() if at <= first]
        after = [effort for at, effort in sent.items() if at > first]
        assert not np.allclose(before[-1], gravity, atol=0.5) and len(after) >= 1
        np.testing.assert_allclose(after, np.broadcast_to(gravity, np.shape(after)), rtol=0, atol=1e-9)
        assert contacts[0].touching and contacts[0].header.frame_id in ("upper", "lower")
        assert peer.diagnostics["contacts"] == "1" and peer.diagnostics["touched"]
        assert process.end() == 0
        assert "emergency stop, until ~/reset" in process.output()

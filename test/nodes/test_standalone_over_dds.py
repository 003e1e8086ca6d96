"""`rbd.TorqueController` and running nodes, reached over DDS: the same torque to the bit on the same states."""
from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import PoseStamped
from harness import RELIABLE, Peer
from std_msgs.msg import Bool
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_interfaces.msg import NamedWrench, NamedWrenches
from rbd_ros.core.lie.so3 import to_quaternion

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
S, STEP = 1_000_000_000, 2_000_000    # ns
LOST = 5.0                            # s without an answer
# nothing depends on when messages come, but on the stamps of the states
BY_STAMPS = {"ramp_in": 0.0, "ramp_out": 0.0, "state_timeout": 10.0, "feedback.max_age": math.inf,
             "feedback.min_rate": 0.0, "plausible_velocity": [math.inf], "gains.kp": [30.0], "gains.kd": [3.0],
             "tracking_tolerance": [math.inf], "reference_timeout": 0.0, "wrench_timeout": 0.0,
             "wrench_limits.rate": math.inf}


class Both:
    """A node in a process of its own, and the library's controller; `alike` sends a state to both."""

    def __init__(self, start_node, peer, kind, **changed):
        values = {name: value for name, value in (BY_STAMPS | changed).items() if kind != "cartesian" or not
                  name.startswith(("reference", "tracking", "wrench"))}
        urdf = str(rbd.sample_path("iiwa"))
        self.process = start_node(kind, robot_description_file=urdf, **{
            name: [".inf" if x == math.inf else x for x in value] if isinstance(value, list) else
            ".inf" if value == math.inf else value for name, value in values.items()})
        self.face = rbd.TorqueController(urdf, node=kind, **values)
        self.peer, self.kind, self.names = peer, kind, list(self.face.model.joint_names)
        self.count = 0

    def publisher(self, message, topic):
        publisher = self.peer.node.create_publisher(message, f"{self.kind}/{topic}", RELIABLE)
        self.peer.spin_until(lambda: publisher.get_subscription_count() > 0, "subscription")
        return publisher

    def sent(self, q, v):
        """Answers of both to a state. It is sent again, with a later stamp, only if it was lost: of a state that the
        node has, the controller has to know.
        """
        peer, sent, due = self.peer, [], [0.0]
        peer.efforts.clear()

        def send():
            if time.monotonic() >= due[0]:
                sent[:], due[0] = [peer.send_state(self.names, q, v, stamp=peer.stamp())], time.monotonic() + LOST

        effort = peer.spin_until(lambda: next((each for each in peer.efforts if each.header.stamp in sent), None),
                                 "effort", send)
        stamp = effort.header.stamp
        command = self.face.update(1e-9 * (stamp.sec * S + stamp.nanosec), q, None if len(v) == 0 else v)
        return effort, command

    def equal(self, effort, command):
        rates = command.rates if effort.derivatives_valid else ()
        return (np.array(effort.effort).tobytes() == command.effort.tobytes() and command.valid
                and effort.derivatives_valid == (command.rates is not None)
                and all(map(np.array_equal, rates, (effort.effort_rate, effort.effort_acceleration))))

    def alike(self, q, v):
        effort, command = self.sent(q, v)
        assert self.equal(effort, command), (list(effort.effort), command)
        self.count += 1
        return command

    def agree(self, q, repeat=None):
        """Until the node has what was sent to it on another topic, at rest."""
        self.peer.spin_until(lambda: self.equal(*self.sent(q, 0.0 * q)), "agreement", repeat)
        self.alike(q, 0.0 * q)

    def walk(self, rng, q, count):
        """Random states in motion; returns the last position."""
        for _ in range(count):
            v = rng.normal(scale=0.2, size=len(q))
            q = q + 1e-3 * v
            self.alike(q, v)
        return q


@pytest.fixture
def peer_of(private_domain):
    peers = []

    def make(kind):
        peers.append(Peer(kind))
        peers[-1]._stamps = itertools.count(1000 * S, STEP)
        return peers[-1]

    yield make
    for peer in peers:
        peer.__exit__(None, None, None)


@pytest.mark.parametrize("kind", ["feedforward", "flatness"])
def test_a_walk_through_references_trajectories_and_stops(start_node, peer_of, kind):
    rng, peer = np.random.default_rng(4), peer_of(kind)
    both = Both(start_node, peer, kind)
    face, names = both.face, both.names
    q = 0.3 * rng.normal(size=7)
    both.agree(q)
    stream = 0.1 * rng.normal(size=(5, 7)) + np.array([q, *np.zeros((4, 7))])
    face.follow(rbd.Reference(*stream))
    both.agree(q, lambda: peer.send_reference(names, *stream))
    assert face.update(face._t, q, 0.0 * q).mode == "running"
    q = both.walk(rng, q, 20)

    trajectories = both.publisher(JointTrajectory, "joint_trajectory")
    begin = next(peer._stamps) + 30 * STEP
    goal = stream[0] + 0.05 * rng.normal(size=7)
    points = [(round(0.1 * S), 0.5 * (stream[0] + goal)), (round(0.2 * S), goal)]
    message = JointTrajectory(joint_names=names, points=[
        JointTrajectoryPoint(positions=place.tolist(), time_from_start=Duration(nanosec=t)) for t, place in points])
    message.header.stamp = Time(sec=begin // S, nanosec=begin % S)
    for _ in range(3):    # the first one may be lost; nothing tells that it has arrived, but a second
        trajectories.publish(message)
        peer.diagnostics.clear()
        peer.spin_until(lambda: peer.diagnostics, "diagnostics, a second later")
    face.follow([(t * 1e-9, place) for t, place in points], start=1e-9 * begin)
    q = both.walk(rng, q, 150)    # from before its start to beyond its end
    assert int(both.process.output().count("rejected")) == 0
    for changes in ({"gains.kp": [60.0, 50.0, 40.0, 30.0, 20.0, 10.0, 5.0]}, {"payload.body": "link_7"},
                    {"payload.mass": 1.5}, {"effort_limits.maximum": [40.0]}, {"robot_compensates": ["gravity"]}):
        assert all(result.successful for result in peer.set_parameters(list(changes.items())))
        face.set(**changes)
        q = both.walk(rng, q, 4)

    item = NamedWrench(body="link_7")
    item.wrench.force.z, item.wrench.torque.x = 12.5, -0.7
    wrenches = both.publisher(NamedWrenches, "external_wrenches")
    face.update(face._t, q, 0.0 * q, external_wrenches={"link_7": [-0.7, 0.0, 0.0, 0.0, 0.0, 12.5]})
    both.agree(q, lambda: wrenches.publish(NamedWrenches(wrenches=[item])))
    q = both.walk(rng, q, 10)

    stops = both.publisher(Bool, "emergency_stop")
    peer.spin_until(lambda: "emergency stop" in both.process.output(), "stop", lambda: stops.publish(Bool(data=True)))
    face.stop()
    assert both.alike(q, 0.0 * q).mode == "stopped"
    q = both.walk(rng, q, 20)
    assert peer.call(Trigger, f"{kind}/reset", Trigger.Request()).success
    face.reset()
    assert both.alike(q, 0.0 * q).mode == "waiting"
    q = both.walk(rng, q, 20)
    assert both.count > 200 and both.process.end() == 0


def test_a_walk_to_goals(start_node, peer_of):
    """The target goes on with every state, so both have to take a goal between the same two."""
    rng, peer = np.random.default_rng(5), peer_of("cartesian")
    both = Both(start_node, peer, "cartesian")
    face, q = both.face, 0.5 * rng.normal(size=7)
    both.agree(q)
    for _ in range(12):    # until target, posture and walls hold
        both.alike(q, 0.0 * q)
    goals = both.publisher(PoseStamped, "target_pose")
    for _ in range(3):
        pose = rbd.forward_kinematics(face.model, q)[-1] @ rbd.lie.se3.exp(0.1 * rng.normal(size=6))
        message = PoseStamped()
        p, r = message.pose.position, message.pose.orientation
        p.x, p.y, p.z = pose[:3, 3].tolist()
        r.x, r.y, r.z, r.w = to_quaternion(pose[:3, :3]).tolist()
        before = int(peer.diagnostics.get("goals", 0))    # several times the same: without states, nothing moves
        peer.spin_until(lambda before=before: int(peer.diagnostics.get("goals", 0)) > before, "goal",
                        lambda message=message: goals.publish(message))
        peer.diagnostics.clear()
        peer.spin_until(lambda: peer.diagnostics, "diagnostics, a second later: the last one has arrived")
        face.goal(pose)
        q = both.walk(rng, q, 40)
    assert peer.set_parameter("stiffness.translation", [900.0, 200.0, 500.0]).successful
    face.set(**{"stiffness.translation": [900.0, 200.0, 500.0]})
    q = both.walk(rng, q, 40)
    assert face.update(face._t, q, 0.0 * q).mode == "running" and both.count > 170 and both.process.end() == 0

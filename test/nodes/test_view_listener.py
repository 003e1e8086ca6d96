"""`rbd view --live` and a running node: what it sees, that it stops it, and that it says when it is gone."""

import time

import pytest
from harness import NodeProcess, Peer

import rbd_ros as rbd
from rbd_ros.core.errors import RbdError
from rbd_ros.nodes.watching import view_listener
from rbd_ros.nodes.watching.view_listener import ViewListener
from rbd_ros.runtime.observed_robot import ObservedRobot

NAMES, Q = ["shoulder", "elbow"], [0.3, -0.7]


def test_a_node_is_seen_stopped_reset_and_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(view_listener, "PATIENCE", 60.0)
    model = rbd.sample("two_link")
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=rbd.sample_path("two_link"))
    listener = ViewListener("/feedforward")
    robot, said = ObservedRobot(model, "/feedforward", model.neutral()), []
    try:
        with Peer() as peer:
            def seen():
                peer.send_state(NAMES, Q, [0.0, 0.0], [1.5, 0.5])
                listener.poll(robot)
                return robot.at(time.monotonic())

            def until(condition, what):
                peer.spin_until(lambda: condition(seen()), what)

            until(lambda now: now.mode == "waiting" and not now.lost and not now.silent and now.rate_hz > 0.0, "report")
            until(lambda now: (now.commanded == now.commanded).all(), "commanded torque")
            now = seen()
            assert now.q.tolist() == Q and now.measured.tolist() == [1.5, 0.5] and now.latency_us[0] > 0.0
            assert "nobody" not in listener.emergency_stop()
            until(lambda now: now.mode == "stopped", "stop")
            listener.reset(said.append)
            until(lambda now: now.mode == "waiting" and said, "reset")
            assert said == ["released, ramping in while active"]
            before = time.monotonic()
            until(lambda now: now.mode == "waiting" and time.monotonic() - before > 1.0, "no stop from before")
            assert process.end() == 0
            until(lambda now: bool(now.silent), "loss of the node")
            now = seen()
            assert not now.lost and now.mode == "" and not (now.commanded == now.commanded).any()
            listener.reset(said.append)
            assert said[-1] == "there is no service /feedforward/reset"
            assert "nobody listens" in listener.emergency_stop()
        while not robot.at(time.monotonic()).lost:
            listener.poll(robot)
    finally:
        process.kill()
        listener.close()


def test_a_stop_is_heard_by_a_node_that_starts_later(tmp_path):
    listener = ViewListener("/feedforward")
    listener.emergency_stop()
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=rbd.sample_path("two_link"))
    robot = ObservedRobot(rbd.sample("two_link"), "/feedforward", rbd.sample("two_link").neutral())
    try:
        with Peer() as peer:
            def mode():
                listener.poll(robot)
                return robot.at(time.monotonic()).mode

            peer.spin_until(lambda: mode() == "stopped", "stop", lambda: peer.send_state(NAMES, Q, [0.0, 0.0]))
    finally:
        process.kill()
        listener.close()


@pytest.mark.parametrize("node", ["feedforward", "/", "/a b", "/feedforward/"])
def test_names_that_are_none_are_said(node):
    with pytest.raises(RbdError, match="--node"):
        ViewListener(node)


def test_a_missing_description_is_said():
    listener = ViewListener("/feedforward")
    try:
        with pytest.raises(RbdError, match="no robot description on /robot_description"):
            listener.description(patience=0.1)
    finally:
        listener.close()

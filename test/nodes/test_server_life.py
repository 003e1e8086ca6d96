"""How a dynamics server starts, what it says when it cannot, and that neither defects nor crowds end it."""
from __future__ import annotations

import contextlib
import os
from collections import Counter
from types import SimpleNamespace

import pytest
from harness import LATCHED, rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import TransitionCallbackReturn
from service_messages import URDF, server
from std_msgs.msg import String
from support import service_requests as req
from support.service_requests import FIVE_BAR

import rbd_ros as rbd
from benchmark import service_load
from rbd_interfaces import srv
from rbd_ros.nodes.dynamics_server import DynamicsServerNode


def test_life_cycle(tmp_path, private_domain):
    parameters = {"robot_description_file": "''", "autostart": False, "constraints_file": "five_bar"}
    with server(tmp_path, **parameters) as (_, client):
        client.spin_until(lambda: client.status == "not configured", "node")
        assert "is not active: not configured" in client.ask("info").message
        publisher = client.node.create_publisher(String, "robot_description", LATCHED)
        client.spin_until(publisher.get_subscription_count, "subscription")

        def change(transition):
            return client.call(ChangeState, "dynamics_server/change_state", ChangeState.Request(
                transition=Transition(id=transition))).success

        def failed():
            assert not change(Transition.TRANSITION_CONFIGURE)
            return "do not fit robot" in client.ask("info").message

        publisher.publish(String(data=rbd.sample_path("two_link").read_text()))    # the wrong robot
        client.spin_until(failed, "refusal of a robot that the constraints do not fit")
        client.spin_until(lambda: "configuration failed" in client.status, "status")
        publisher.publish(String(data=URDF.read_text()))
        client.spin_until(lambda: change(Transition.TRANSITION_CONFIGURE), "configuration")
        assert "is not active: configured" in client.ask("info").message
        assert change(Transition.TRANSITION_ACTIVATE) and client.ask("info").success
        assert client.ask("set_payload", req.PAYLOAD_GOOD).success
        assert change(Transition.TRANSITION_DEACTIVATE) and not client.ask("info").success
        assert change(Transition.TRANSITION_CLEANUP) and not client.ask("info").success
        assert change(Transition.TRANSITION_CONFIGURE) and change(Transition.TRANSITION_ACTIVATE)
        assert client.ask("info").total_mass == pytest.approx(FIVE_BAR.total_mass, rel=1e-12)


def test_shut_down_for_good(tmp_path, private_domain):
    """No robot description brings the node back, and none ends its process."""
    with server(tmp_path) as (_, client):
        client.spin_until(lambda: client.ask("info").success, "answer")
        assert client.call(ChangeState, "dynamics_server/change_state", ChangeState.Request(
            transition=Transition(id=Transition.TRANSITION_ACTIVE_SHUTDOWN))).success
        publisher = client.node.create_publisher(String, "robot_description", LATCHED)
        client.spin_until(publisher.get_subscription_count, "subscription")
        publisher.publish(String(data=URDF.read_text()))
        for _ in range(5):
            assert "is not active: shut down" in client.ask("info").message


@pytest.mark.parametrize(("parameters", "message"), [
    ("constraints_file:=/no/such.yaml", "cannot read constraints '/no/such.yaml'"),
    ("constraints_file:=delta", "do not fit robot 'five_bar'"), ("root:=loose", "'fixed', 'floating'")])
def test_a_wrong_configuration_is_named(private_domain, parameters, message):
    rclpy.init(args=["--ros-args", "-p", f"robot_description_file:={URDF}", "-p", parameters])
    try:
        node = DynamicsServerNode()
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
        answer = node._respond("get_model_info", node._model_info, None, srv.GetModelInfo.Response())
        assert node.status.startswith("configuration failed") and message in node.status
        assert not answer.success and node.status in answer.message
        node.destroy_node()
    finally:
        rclpy.shutdown()


def test_a_defect_is_an_answer_too():
    """Whatever a computation raises, the response says so, and holds nothing that was filled in before."""
    logged = []
    node = SimpleNamespace(lock=contextlib.nullcontext(), active=True, _counts=Counter(), get_logger=lambda: (
        SimpleNamespace(error=logged.append)))

    def fail(request, response):
        response.effort = [1.0]
        raise ZeroDivisionError("by nothing")

    answer = DynamicsServerNode._respond(node, "inverse_dynamics", fail, None, srv.InverseDynamics.Response())
    assert not answer.success and "failed with ZeroDivisionError (by nothing)" in answer.message
    assert not answer.effort and node._counts["defects"] == 1 and "Traceback" in logged[0]


def test_eight_clients_at_once():
    """No answer is lost or belongs to another request. For long: RBD_LOAD_SECONDS, or python -m benchmark…"""
    found = service_load.run(float(os.environ.get("RBD_LOAD_SECONDS", "2")), clients=8)
    assert found["exit_codes"] == [0]
    assert found["lost"] == found["crossed"] == found["refused"] == 0
    assert found["least_per_client"] >= 3

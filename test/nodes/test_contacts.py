"""Contacts over DDS: unilateral ones in the simulator, bilateral ones in the services of the dynamics server."""
from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from harness import RELIABLE
from service_messages import server
from support.ball_and_plate import ARM, BALL, COMPLIANT, HOLDING, SLIDING, UNILATERAL, urdf
from support.service_requests import FORWARD, HYBRID, INVERSE
from test_simulator_node import Robot

import rbd_ros as rbd
from rbd_interfaces.msg import ContactForces

WEIGHT = 0.11 * 9.81


@pytest.fixture
def files(tmp_path):
    """Paths of the robot description and of constraints with this text."""
    (tmp_path / "robot.urdf").write_text(urdf())

    def write(text):
        (tmp_path / "contacts.yaml").write_text(text)
        return {"robot_description_file": str(tmp_path / "robot.urdf"),
                "constraints_file": str(tmp_path / "contacts.yaml")}

    return write


def at(messages, stamp):
    """The message with this stamp."""
    return next((message for message in messages if message.header.stamp == stamp), None)


@pytest.mark.parametrize("text", [UNILATERAL, COMPLIANT], ids=["unilateral", "compliant"])
def test_a_ball_dropped_on_a_plate(start_node, files, text):
    """Forces and impulses are the library's, at rest they carry the weight, which the sensor below the plate shows."""
    start = np.zeros(6)
    start[2] = 0.01
    process = start_node("simulator", **files(text), locked__joints=list(ARM), initial_position=start.tolist(),
                         paused=True, publish_clock=True, timeout_action="zero", publish_rate=100.0,
                         wrench_joints=["roll"])
    model = rbd.load_urdf(urdf(), locked=dict.fromkeys(ARM, 0.0))
    simulator = rbd.Simulator(model, contacts=rbd.load_contacts(text, model), q=start)
    with Robot() as robot:
        heard: list[ContactForces] = []
        sensed: list[WrenchStamped] = []
        robot.node.create_subscription(ContactForces, "simulator/contact_forces", heard.append, RELIABLE)
        robot.node.create_subscription(WrenchStamped, "simulator/wrench/roll", sensed.append, RELIABLE)
        robot.ready()
        robot.spin_until(lambda: robot.node.count_publishers("simulator/contact_forces"), "contact forces")
        seen = set()
        while simulator.steps < 1000:
            state = robot.step(20)
            force, shown = (robot.spin_until(partial(at, messages, state.header.stamp), "contact forces at the state")
                            for messages in (heard, sensed))
            impulse = np.zeros(3)
            for i in range(20):
                impulse = impulse * (i != 10)    # a message in the middle took the first ten steps
                simulator.step()
                (touch,) = simulator.contacts
                impulse += touch.impulse
            seen.add(touch.state)
            sent = {name: np.array([getattr(getattr(force, name)[0], x) for x in "xyz"])
                    for name in ("point", "normal", "force", "impulse")}
            np.testing.assert_allclose(state.position, simulator.q, atol=1e-10)
            np.testing.assert_allclose(sent["impulse"], impulse, atol=1e-9)
            for name in ("point", "normal", "force"):
                np.testing.assert_allclose(sent[name], getattr(touch, name), atol=1e-6)
            assert force.gap[0] == pytest.approx(touch.gap, abs=1e-10)
            assert force.state[0] == {"open": 0, "sticking": 1, "sliding": 2}[touch.state]
        assert list(force.name) == ["top"] and force.header.frame_id == "base"
        np.testing.assert_allclose(sent["force"], [0.0, 0.0, WEIGHT], atol=1e-4)
        assert shown.wrench.force.z == pytest.approx(-(WEIGHT + 0.8 * 9.81), abs=1e-3)
        assert shown.wrench.torque.y == pytest.approx(0.25 * (WEIGHT + 0.8 * 9.81), abs=1e-3)
        assert "open" in seen and "sticking" in seen
    assert process.end() == 0


@pytest.mark.parametrize("text", [HOLDING + COMPLIANT, SLIDING], ids=["rolling", "sliding"])
def test_constrained_dynamics_with_contacts(tmp_path, files, text):
    """Torque of the arm that carries the ball: inverse, forward and hybrid, against the library. Contacts that let go
    are none of the server's business, which it says.
    """
    model = rbd.load_urdf(urdf())
    constraints = rbd.load_constraints(text, model)
    rng = np.random.default_rng(1)
    q, v = rbd.project(model, constraints, 0.2 * rng.normal(size=10), 0.5 * rng.normal(size=10))
    tau = np.array([*rng.normal(size=4), *np.zeros(6)])
    names = list(model.velocity_names)
    state = {"name": names, "position": q.tolist(), "velocity": v.tolist()}
    rows = [f"roll/{row}" for row in ("normal", "tangent_x", "tangent_y")] if constraints.size == 3 else ["slide"]
    with server(tmp_path, **files(text)) as (process, client):
        client.wait_until_active()
        assert ("unilateral or compliant contacts (top): no service uses them" in process.output()) == (
            "compliant" in text)

        def ask(mode, **fields):
            answer = client.ask("constrained", {"mode": mode, "state": state, "name": names, **fields})
            assert answer.success, answer.message
            assert list(answer.constraint) == rows and list(answer.name) == names
            assert answer.rank == len(rows) and answer.residual < 1e-9
            return answer

        forward = ask(FORWARD, effort=tau.tolist())
        expected = rbd.constrained_forward_dynamics(model, constraints, q, v, tau)
        np.testing.assert_allclose(forward.acceleration, expected.acceleration, atol=1e-8)
        np.testing.assert_allclose(forward.multiplier, expected.multipliers, atol=1e-9)
        a = rng.normal(size=4)
        hybrid = ask(HYBRID, prescribed=[name in ARM for name in names], acceleration=[*a, *np.zeros(6)],
                     effort=[0.0] * 10)
        expected = rbd.constrained_hybrid_dynamics(model, constraints, q, v, [*a, *np.zeros(6)], np.zeros(10),
                                                   list(ARM))
        np.testing.assert_allclose(hybrid.effort, expected.effort, atol=1e-8)
        np.testing.assert_allclose(hybrid.multiplier, expected.multipliers, atol=1e-9)
        inverse = ask(INVERSE, actuated=list(ARM), acceleration=list(hybrid.acceleration))
        np.testing.assert_allclose(inverse.effort, hybrid.effort, atol=1e-7)
        np.testing.assert_allclose(inverse.multiplier, hybrid.multiplier, atol=1e-8)
        assert np.abs(hybrid.effort[4:]).max() < 1e-9 and len(BALL) == 6

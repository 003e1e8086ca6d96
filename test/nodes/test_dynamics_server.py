"""The dynamics server as users have it: a process of its own, asked over DDS."""
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from harness import ROOT
from service_messages import KINDS, server
from support import service_requests as req
from support.service_requests import FIVE_BAR, LOOP, NAMES, SERVICES, TAU, A, Q, V

import rbd_ros as rbd

WRENCH = [0.1, 0.2, 0.3, 4.0, 5.0, 6.0]    # moment, force


@pytest.fixture(scope="module")
def running(tmp_path_factory, private_domain):
    """One server for tests that leave no trace in it; it must end cleanly after all of them."""
    with server(tmp_path_factory.mktemp("server"), constraints_file="five_bar") as (process, client):
        client.wait_until_active()
        yield process, client


@pytest.fixture
def client(running):
    return running[1]


def close(actual, expected):
    np.testing.assert_allclose(actual, np.ravel(expected), rtol=1e-12, atol=1e-12)


def test_inverse_forward_and_hybrid(client):
    wrenches = {"external_wrenches": [("tool", WRENCH)]}
    answer = client.ask("inverse", req.INVERSE_GOOD | wrenches)
    assert answer.success and not answer.message and list(answer.name) == NAMES
    close(answer.effort, rbd.inverse_dynamics(FIVE_BAR, Q, V, A, {"tool": WRENCH}))
    answer = client.ask("forward", req.FORWARD_GOOD | wrenches)
    close(answer.acceleration, rbd.forward_dynamics(FIVE_BAR, Q, V, TAU, {"tool": WRENCH}))
    answer = client.ask("hybrid", req.HYBRID_GOOD | wrenches | {"name": NAMES[::-1], "acceleration": A[::-1],
                                                                "effort": TAU[::-1]})
    expected = rbd.hybrid_dynamics(FIVE_BAR, Q, V, A, TAU, np.array(req.FLAGS[::-1]), {"tool": WRENCH})
    close(answer.acceleration, expected.acceleration)
    close(answer.effort, expected.effort)


def test_constrained(client):
    wrenches = {"external_wrenches": [("tool", WRENCH)]}
    for mode, fields in req.CONSTRAINED_GOOD.items():
        answer = client.ask("constrained", fields | wrenches)
        assert answer.success, answer.message
        assert list(answer.constraint) == list(LOOP.row_names) and answer.rank == 3 and answer.residual < 1e-9
        left = rbd.mass_matrix(FIVE_BAR, Q) @ answer.acceleration + rbd.bias_effort(FIVE_BAR, Q, V, {"tool": WRENCH})
        load = rbd.constraint_jacobian(FIVE_BAR, LOOP, Q).T @ answer.multiplier
        np.testing.assert_allclose(left, answer.effort + load, atol=1e-9)
        if mode == req.FORWARD:
            close(answer.effort, TAU)
            close(answer.acceleration, rbd.constrained_forward_dynamics(
                FIVE_BAR, LOOP, Q, V, TAU, external_wrenches={"tool": WRENCH}).acceleration)
        elif mode == req.INVERSE:
            close(answer.acceleration, req.MOTION.acceleration)
            close(np.array(answer.effort)[[1, 2, 4]], np.zeros(3))


def test_the_choice_among_redundant_drives(client):
    """Least weighted distance to preferred efforts within limits, as the library has it."""
    good = req.CONSTRAINED_GOOD[req.INVERSE] | {"actuated": [], "minimize": 1}
    wishes = {"preferred_effort": [0.5, -1.0, 0.2, 3.0, 0.1], "effort_limit": [0.4, np.inf, 4.0, 1.0, 4.0],
              "weight": [1.0, 2.0, 0.5, 3.0, 1.0]}
    expected = rbd.constrained_inverse_dynamics(
        FIVE_BAR, LOOP, Q, V, req.MOTION.acceleration, NAMES, "effort", wishes["weight"],
        preferred_effort=wishes["preferred_effort"], effort_limit=wishes["effort_limit"])
    for order in (slice(None), slice(None, None, -1)):
        answer = client.ask("constrained", good | {"name": NAMES[order], "acceleration": req.MOTION.acceleration[order]}
                            | {wish: value[order] for wish, value in wishes.items()})
        assert answer.success, answer.message
        close(answer.effort, expected.effort)
        close(answer.multiplier, expected.multipliers)
    assert abs(answer.effort[3]) == pytest.approx(1.0)
    refused = client.ask("constrained", good | {"effort_limit": [0.01] * 5})
    assert not refused.success and "within effort_limit" in refused.message and not refused.effort


def test_joint_wrenches(client):
    wrenches = {"external_wrenches": [("tool", WRENCH)], "with_joint_wrenches": True}
    answers = {kind: client.ask(kind, good | wrenches) for kind, good in (
        ("inverse", req.INVERSE_GOOD), ("forward", req.FORWARD_GOOD), ("hybrid", req.HYBRID_GOOD))}
    expected = rbd.joint_wrenches(FIVE_BAR, Q, V, A, {"tool": WRENCH})
    check_wrenches(answers["inverse"].joint_wrenches, expected)
    for kind in ("forward", "hybrid"):
        check_wrenches(answers[kind].joint_wrenches, rbd.joint_wrenches(
            FIVE_BAR, Q, V, answers[kind].acceleration, {"tool": WRENCH}))
    assert not client.ask("inverse", req.INVERSE_GOOD).joint_wrenches
    for fields in req.CONSTRAINED_GOOD.values():
        answer = client.ask("constrained", fields | wrenches)
        held = rbd.constraint_wrenches(FIVE_BAR, LOOP, Q, answer.multiplier)
        held[FIVE_BAR.body_index("tool")] += WRENCH
        check_wrenches(answer.joint_wrenches, rbd.joint_wrenches(FIVE_BAR, Q, V, answer.acceleration, held))


def check_wrenches(messages, expected):
    assert tuple(each.body for each in messages) == FIVE_BAR.body_names
    np.testing.assert_allclose([[getattr(part, axis) for part in (each.wrench.torque, each.wrench.force)
                                 for axis in "xyz"] for each in messages], expected, rtol=1e-9, atol=1e-9)


def test_terms(client):
    answer = client.ask("terms", {"state": req.state()})
    close(answer.mass_matrix, rbd.mass_matrix(FIVE_BAR, Q))
    close(answer.gravity_effort, rbd.gravity_effort(FIVE_BAR, Q))
    close(answer.bias_effort, rbd.bias_effort(FIVE_BAR, Q, V))
    C = np.array(answer.coriolis_matrix).reshape(5, 5)
    close(C @ V + np.array(answer.gravity_effort), answer.bias_effort)
    close([answer.kinetic_energy, answer.potential_energy],
          [rbd.kinetic_energy(FIVE_BAR, Q, V), rbd.potential_energy(FIVE_BAR, Q)])


def test_derivatives(client):
    for mode, derive in ((req.INVERSE, rbd.inverse_dynamics_derivatives),
                         (req.FORWARD, rbd.forward_dynamics_derivatives)):
        fields = req.DERIVATIVES_GOOD[mode] | {"name": NAMES[::-1], "external_wrenches": [("tool", WRENCH)]}
        answer = client.ask("derivatives", fields)
        assert answer.success and list(answer.name) == NAMES
        for field, expected in zip(("by_position", "by_velocity", "by_input"),
                                   derive(FIVE_BAR, Q, V, A[::-1], {"tool": WRENCH}), strict=True):
            scale = np.abs(expected).max()    # row by row
            close(np.array(getattr(answer, field)) / scale, expected / scale)


def test_time_derivatives(client):
    rows = np.reshape(req.ROWS, (3, 5))
    for mode, derive in ((req.INVERSE, rbd.inverse_dynamics_time_derivatives),
                         (req.FORWARD, rbd.forward_dynamics_time_derivatives)):
        fields = req.TIME_GOOD[mode] | {"name": NAMES[::-1], "input": rows[:, ::-1].ravel().tolist()}
        answer = client.ask("time_derivatives", fields)
        assert answer.success and list(answer.name) == NAMES and answer.rows == 3
        expected = derive(FIVE_BAR, Q, V, *rows)
        close(np.array(answer.output) / np.abs(expected).max(), expected / np.abs(expected).max())


def test_trajectory(client):
    answer = client.ask("trajectory", req.TRAJECTORY_GOOD)
    assert answer.success and list(answer.trajectory.joint_names) == NAMES
    for point, given in zip(answer.trajectory.points, req.TRAJECTORY_GOOD["points"], strict=True):
        close(point.effort, rbd.inverse_dynamics(FIVE_BAR, given["position"], given["velocity"],
                                                 given["acceleration"]))
        close(point.positions, given["position"])
        assert point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec == pytest.approx(given["time"])


def test_a_payload_comes_and_goes(client):
    before = client.ask("inverse", req.INVERSE_GOOD).effort
    answer = client.ask("set_payload", req.PAYLOAD_GOOD)
    assert answer.success and answer.message == "'tool' carries 2 kg"
    assert client.ask("info").total_mass == pytest.approx(FIVE_BAR.total_mass + 2.0)
    loaded = np.array(client.ask("inverse", req.INVERSE_GOOD).effort)
    push = {"name": NAMES, "position": Q, "velocity": [0.0] * 5}
    still = {"state": push, "name": NAMES, "acceleration": [0.0] * 5}
    weight = client.ask("inverse", still).effort - np.array(rbd.gravity_effort(FIVE_BAR, Q))
    R = rbd.forward_kinematics(FIVE_BAR, Q)[FIVE_BAR.body_names.index("tool"), :3, :3]
    force = R.T @ [0.0, 0.0, -2.0 * 9.81]
    hung = {"tool": np.concatenate([np.cross(req.LOAD["com"], force), force])}
    np.testing.assert_allclose(weight, rbd.inverse_dynamics(FIVE_BAR, Q, np.zeros(5), np.zeros(5), hung)
                               - rbd.gravity_effort(FIVE_BAR, Q), atol=1e-12)
    assert np.abs(loaded - before).max() > 0.1
    assert client.ask("set_payload", req.PAYLOAD_GOOD | {"mass": 0.0}).success
    np.testing.assert_array_equal(client.ask("inverse", req.INVERSE_GOOD).effort, before)


def test_model_info(client):
    info = client.ask("info")
    assert (info.robot, info.floating_base) == ("five_bar", False)
    assert list(info.joint) == list(info.coordinate) == NAMES and list(info.constraint) == list(LOOP.row_names)
    assert list(info.body) == list(FIVE_BAR.body_names)
    assert (info.gravity.x, info.gravity.y, info.gravity.z) == (0.0, 0.0, -9.81)
    close(info.total_mass, FIVE_BAR.total_mass)
    for field, array in (("lower_position", FIVE_BAR.position_lower), ("upper_position", FIVE_BAR.position_upper),
                         ("max_velocity", FIVE_BAR.velocity_limit), ("max_effort", FIVE_BAR.effort_limit)):
        np.testing.assert_array_equal(getattr(info, field), array)


@pytest.mark.parametrize("kind", SERVICES)
def test_bad_requests_are_refused_and_the_server_goes_on(running, kind):
    """All at once, each with a good one after it."""
    process, client = running
    good, bad = SERVICES[kind]
    before = client.ask("inverse", req.INVERSE_GOOD).effort
    answers = client.ask_all([one for _, changes, _ in bad
                              for one in ((kind, good | changes), ("inverse", req.INVERSE_GOOD))])
    for (what, _, words), answer, after in zip(bad, answers[::2], answers[1::2], strict=True):
        assert not answer.success, what
        assert all(word in answer.message for word in words), (what, answer.message)
        empty = KINDS[kind.split()[0]][0].Response()
        empty.message = answer.message
        assert answer == empty, what    # nothing that looks like a result
        np.testing.assert_array_equal(after.effort, before, what)
    assert process.process.poll() is None


def test_clients_that_vanish_do_no_harm(running):
    process, client = running
    # not more, for 1,000 requests at once would push out those of others
    text = ("import rclpy\nfrom rbd_interfaces.srv import GetModelInfo\nrclpy.init()\n"
            "end = rclpy.create_node('mortal').create_client(GetModelInfo, 'dynamics_server/get_model_info')\n"
            "end.wait_for_service()\n"
            "for _ in range(100):\n    end.call_async(GetModelInfo.Request())\n"
            "print('sent', flush=True)\ninput()\n")
    others = [subprocess.Popen([sys.executable, "-c", text], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
              for _ in range(2)]
    try:
        for other in others:
            assert other.stdout.readline() == b"sent\n"
            other.kill()    # in the middle of it, with answers on their way
            other.wait()
            assert client.ask("info").success
    finally:
        for other in others:
            other.kill()
            other.wait()
            other.stdin.close()
            other.stdout.close()
    assert process.process.poll() is None

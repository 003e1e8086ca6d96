"""A dynamics server whose parameters make another robot of it: on a floating base, on the moon, with a locked joint."""
from __future__ import annotations

import math
import signal

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, Quaternion, Twist, Vector3
from service_messages import URDF, server
from support import service_requests as req

import rbd_ros as rbd

NAMES = [name for name in req.NAMES if name != "tip"]
MODEL = rbd.load_urdf(URDF, root="floating", locked={"tip": 0.4}).with_(
    gravity=[0.0, 0.0, -1.62], armature=[0.0] * 6 + [0.4, 0.3, 0.2, 0.1])
COORDINATES = [*(f"base/{axis}" for axis in ("wx", "wy", "wz", "vx", "vy", "vz")), *NAMES]
RNG = np.random.default_rng(1)
Q, V = MODEL.random_configuration(RNG), RNG.normal(size=10)
ZERO = np.zeros(10)
BASE = {"base_pose": Pose(position=Point(x=Q[0], y=Q[1], z=Q[2]),
                          orientation=Quaternion(x=Q[3], y=Q[4], z=Q[5], w=Q[6])),
        "base_twist": Twist(angular=Vector3(x=V[0], y=V[1], z=V[2]), linear=Vector3(x=V[3], y=V[4], z=V[5]))}
JOINTS = {"name": NAMES, "position": Q[7:].tolist(), "velocity": V[6:].tolist()}


@pytest.fixture(scope="module")
def client(tmp_path_factory, private_domain):
    parameters = {"root": "floating", "locked__joints": ["tip"], "locked__positions": [0.4], "state_timeout": 0.3,
                  "gravity": [0.0, 0.0, -1.62], "rotor_inertia": [0.1, 0.2, 0.3, 0.4], "joints": NAMES[::-1]}
    with server(tmp_path_factory.mktemp("moon"), signal.SIGTERM, **parameters) as (_, client):
        client.wait_until_active()
        yield client


def close(actual, expected):
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(np.array(actual) / scale, np.ravel(expected) / scale, rtol=1e-12, atol=1e-12)


def test_the_model(client):
    info = client.ask("info")
    assert info.floating_base and list(info.joint) == NAMES and list(info.coordinate) == COORDINATES
    assert info.gravity.z == -1.62
    made = client.ask("inverse", {"state": JOINTS, "name": NAMES, "acceleration": [1.0, 2.0, 3.0, 4.0]})
    close(made.effort, rbd.inverse_dynamics(MODEL, [0, 0, 0, 0, 0, 0, 1, *Q[7:]], [0, 0, 0, 0, 0, 0, *V[6:]],
                                            [0, 0, 0, 0, 0, 0, 1, 2, 3, 4]))
    assert "no constraints" in client.ask("constrained", {"mode": 1, "state": JOINTS}).message


def test_the_base_moves(client):
    state = JOINTS | BASE
    close(client.ask("inverse", {"state": state}).effort, rbd.inverse_dynamics(MODEL, Q, V, ZERO))
    close(client.ask("terms", {"state": state}).coriolis_matrix, rbd.coriolis_matrix(MODEL, Q, V))
    lost = Pose(orientation=Quaternion(w=math.nan))
    for kind in ("inverse", "terms", "derivatives", "time_derivatives"):
        answer = client.ask(kind, {"state": state | {"base_pose": lost}} | ({"rows": 1} if "time" in kind else {}))
        assert "base_pose.orientation is not finite" in answer.message


@pytest.mark.parametrize("mode", [req.INVERSE, req.FORWARD])
def test_derivatives(client, mode):
    order = RNG.permutation(10)
    names, x = [COORDINATES[i] for i in order], RNG.normal(size=(3, 10))
    answer = client.ask("derivatives", {"mode": mode, "state": JOINTS | BASE, "name": names,
                                        "input": x[0, order].tolist()})
    derive = (rbd.inverse_dynamics_derivatives, rbd.forward_dynamics_derivatives)[mode]
    assert list(answer.name) == COORDINATES
    for field, expected in zip(("by_position", "by_velocity", "by_input"), derive(MODEL, Q, V, x[0]), strict=True):
        close(getattr(answer, field), expected)
    answer = client.ask("time_derivatives", {"mode": mode, "state": JOINTS | BASE, "name": names, "rows": 3,
                                             "input": x[:, order].ravel().tolist()})
    derive = (rbd.inverse_dynamics_time_derivatives, rbd.forward_dynamics_time_derivatives)[mode]
    assert list(answer.name) == COORDINATES and answer.rows == 3
    close(answer.output, derive(MODEL, Q, V, *x))


def test_the_robot_as_it_is_now(client):
    now = {"state": BASE, "name": ["base/vz"], "acceleration": [2.0]}
    assert "no joint state has been received" in client.ask("inverse", now).message
    answers = []

    def answered():
        answers[:] = [client.ask("inverse", now)]
        return answers[0].success

    client.spin_until(answered, "answer for the present state", lambda: client.send_state(
        ["gripper", *NAMES[::-1]], [9.0, *Q[:6:-1]], [9.0, *V[:5:-1]]))
    close(answers[0].effort, rbd.inverse_dynamics(MODEL, Q, V, [0, 0, 0, 0, 0, 2, 0, 0, 0, 0]))
    client.spin_until(lambda: not answered(), "state that is too old")
    assert "s old, expected at most 0.3 s (parameter 'state_timeout')" in answers[0].message
    assert client.set_parameter("state_timeout", 1000.0).successful
    assert answered()
    assert not client.set_parameter("state_timeout", -1.0).successful
    client.spin_until(lambda: client.diagnostics.get("refused", "0") != "0", "diagnostics")
    assert client.diagnostics["defects"] == "0" and float(client.diagnostics["time_p99_us"]) > 0.0

"""The message for linear-feedback-controller, by that controller's law with Pinocchio; C source, compiled and run."""
from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from actuation.drives import mixed
from feedback.plants import Drifting, Resting, spline
from nodes.stand_in_messages import LFC_MSGS, generate
from support.trees import random_tree

import rbd_ros as rbd

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
COMPILERS = [each for each in ("gcc", "clang") if shutil.which(each)]


@pytest.fixture(scope="module")
def arm():
    model = rbd.sample("iiwa")
    motion = spline(np.linspace(-0.4, 0.4, 7), np.linspace(0.5, -0.7, 7), 1.0)
    return rbd.tracking_gains(model, motion, np.repeat([1e3, 1.0], 7), np.full(7, 1e-2))


@pytest.fixture(scope="module")
def biped():
    model = rbd.sample("biped", root="floating").with_(gravity=(0, 0, 0), armature=0.02)
    n, period = model.nv, 2e-3
    motion = Drifting(model, 0.1 * np.random.default_rng(3).normal(size=(9, n - 6)), 0.1, period)
    return rbd.tracking_gains(model, motion, np.ones(2 * n), np.full(n - 6, 0.01), period=period, end=np.ones(2 * n))


# ---- the message


def matrix(fields):
    rows, columns = (dim["size"] for dim in fields["layout"]["dim"])
    assert [dim["stride"] for dim in fields["layout"]["dim"]] == [rows * columns, columns]
    return np.array(fields["data"]).reshape(rows, columns)


@pytest.mark.parametrize("robot", ["arm", "biped"])
def test_the_controller_applies_our_law(robot, request):
    """Its efforts, by Pinocchio's states and differences, in another order of joints, are ours."""
    pin = pytest.importorskip("pinocchio")
    from support.pinocchio_peer import Peer
    gains, name = request.getfixturevalue(robot), {"arm": "iiwa", "biped": "biped"}[robot]
    root = [pin.JointModelFreeFlyer()] if robot == "biped" else []
    theirs = pin.buildModelFromUrdf(str(rbd.sample_path(name)), *root)
    peer, model = Peer(gains.model, theirs), gains.model
    order = [joint for joint in theirs.names if joint in model.joint_names and joint != "root_joint"]
    feedback = gains.at(0.04)
    fields = gains.control_message(0.04, joints=order)
    state = fields["initial_state"]
    base_q, base_v = ([], []) if robot == "arm" else (
        [*state["base_pose"]["position"].values(), *state["base_pose"]["orientation"].values()],
        [*state["base_twist"]["linear"].values(), *state["base_twist"]["angular"].values()])
    q_0 = np.array([*base_q, *state["joint_state"]["position"]])
    v_0 = np.array([*base_v, *state["joint_state"]["velocity"]])
    np.testing.assert_allclose(q_0, peer.q(feedback.q), atol=1e-12)
    np.testing.assert_allclose(v_0, peer.rates(feedback.q) @ feedback.v, atol=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = model.integrate(feedback.q, 0.3 * rng.normal(size=model.nv))
        v = feedback.v + rng.normal(size=model.nv)
        error = np.concatenate([pin.difference(theirs, peer.q(q), q_0), v_0 - peer.rates(q) @ v])
        effort = matrix(fields["feedforward"])[:, 0] + matrix(fields["feedback_gain"]) @ error
        ours = dict(zip(gains.inputs, gains.applied(feedback, q, v), strict=True))
        np.testing.assert_allclose(effort, [ours[joint] for joint in order], rtol=1e-9, atol=1e-9)


def test_the_message_takes_the_fields(arm, biped, tmp_path, monkeypatch):
    pytest.importorskip("rclpy")
    from rbd_ros.nodes.linear_feedback import control
    with pytest.raises(rbd.RbdError, match="there is no package 'linear_feedback_controller_msgs'"):
        control(arm, 0.0)
    monkeypatch.syspath_prepend(str(tmp_path))
    generate(tmp_path, "linear_feedback_controller_msgs", LFC_MSGS)
    for gains in (arm, biped):
        message = control(gains, 0.04, hold=0.02)
        feedback = gains.held(0.04, 0.02)
        assert [(dim.label, dim.size) for dim in message.feedback_gain.layout.dim] == [
            ("rows", len(gains.inputs)), ("cols", 2 * gains.model.nv)]
        assert len(message.feedback_gain.data) == len(gains.inputs) * 2 * gains.model.nv
        np.testing.assert_array_equal(message.feedforward.data, feedback.effort)
        np.testing.assert_array_equal(message.initial_state.joint_state.position, feedback.q[-len(gains.inputs):])
    np.testing.assert_array_equal([getattr(message.initial_state.base_twist.angular, axis) for axis in "xyz"],
                                  feedback.v[:3])


def test_a_passive_joint_gets_no_effort():
    model = rbd.sample("two_link").with_(gravity=(0, 0, 0))
    gains = rbd.tracking_gains(model, Resting(model.neutral(), 2, 0.1), np.ones(4), [1.0], end=np.ones(4),
                               actuated=[model.joint_names[1]])
    gain = matrix(gains.control_message(0.0)["feedback_gain"])
    assert not gain[0].any()
    np.testing.assert_array_equal(gain[1], -gains.gains[0][0])


def test_what_the_message_cannot_say_is_refused(arm, biped):
    with pytest.raises(rbd.RbdError, match="joints: expected each of joint_1"):
        arm.control_message(0.0, joints=["joint_1"])
    actuation = mixed()
    n = 7 + actuation.nm - 1
    elastic = rbd.tracking_gains(actuation, spline(np.zeros(7), np.full(7, 0.01), 0.1), np.ones(2 * n),
                                 np.ones(actuation.nm))
    with pytest.raises(rbd.RbdError, match="elastic joints have motors"):
        elastic.control_message(0.0)
    for kind, words in (("spherical", "spherical"), ("continuous", "continuous")):
        model = random_tree(0, [kind])
        gains = rbd.tracking_gains(model, Resting(model.neutral(), model.nv, 0.1), np.ones(2 * model.nv),
                                   np.ones(model.nv))
        with pytest.raises(rbd.RbdError, match=f"is {words}"):
            gains.control_message(0.0)
    n = biped.model.nv
    driven = rbd.tracking_gains(biped.model, Resting(biped.model.neutral(), n, 0.1), np.ones(2 * n), np.ones(n),
                                actuated=biped.model.velocity_names)
    with pytest.raises(rbd.RbdError, match="of the base is driven"):
        driven.control_message(0.0)


# ---- C


def compiled(folder: Path, text: str, compiler: str):
    (folder / "gains.c").write_text(text)
    subprocess.run([compiler, *FLAGS, "-shared", "-fPIC", "gains.c", "-o", "gains.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "gains.so"))


def called(library, kind, t, q, v, count):
    real = {"double": (ctypes.c_double, np.float64), "float": (ctypes.c_float, np.float32)}[kind]
    out = np.zeros(count, real[1])
    states = [np.ascontiguousarray(x, dtype=real[1]) for x in (q, v)]
    library.arm_feedback(real[0](t), *(x.ctypes.data_as(ctypes.c_void_p) for x in (*states, out)))
    return out


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
@pytest.mark.parametrize("precision, bound", [("double", 1e-12), ("float", 1e-4)])
def test_c_is_our_law_at_its_samples_and_near_it_between(arm, precision, bound, tmp_path):
    library, rng = compiled(tmp_path, arm.c_source("arm", 50.0, precision), COMPILERS[0]), np.random.default_rng(0)
    for time in (*np.arange(0.0, 1.001, 0.1), 0.13, 0.451, 0.777):
        t = float(np.float32(time)) if precision == "float" else time
        q, v = arm.at(t).q + 0.01 * rng.normal(size=7), arm.at(t).v + 0.1 * rng.normal(size=7)
        if precision == "float":
            q, v = (x.astype(np.float32).astype(float) for x in (q, v))
        expected = arm.command(t, q, v)
        between = 1e-3 if abs(round(time * 50) - time * 50) > 1e-6 else bound
        found = called(library, precision, t, q, v, 7)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=max(between, bound) * np.abs(expected).max())


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
def test_the_ends_hold_and_a_finer_table_is_nearer(arm, tmp_path):
    wrong = []
    for rate in (25.0, 50.0, 100.0):
        folder = tmp_path / str(rate)
        folder.mkdir()
        library = compiled(folder, arm.c_source("arm", rate), COMPILERS[-1])
        q, v = np.full(7, 0.1), np.zeros(7)
        for t, end in ((-5.0, 0.0), (np.nan, 0.0), (9.0, 1.0), (np.inf, 1.0)):
            np.testing.assert_allclose(called(library, "double", t, q, v, 7), arm.command(end, q, v), rtol=0.0,
                                       atol=1e-10 * np.abs(arm.command(end, q, v)).max())
        times = np.linspace(0.031, 0.969, 40)
        wrong.append(max(np.abs(called(library, "double", t, arm.at(t).q, arm.at(t).v, 7) - arm.at(t).effort).max()
                         for t in times))
    assert wrong[0] / wrong[1] > 6.0 and wrong[1] / wrong[2] > 6.0, "an error of order 3 or 4 in their distance"


@pytest.fixture(scope="module")
def braking():
    """A motion that ends while it brakes with full torque, as time-optimal ones do."""
    model = rbd.sample("iiwa").with_(armature=0.3)
    motion = rbd.time_optimal(model, np.array([np.full(7, 0.3), np.full(7, 0.1), np.full(7, -0.2)]))
    return model, motion, rbd.tracking_gains(model, motion, np.repeat([1e4, 10.0], 7), np.full(7, 0.01))


def test_before_the_start_and_after_the_end_the_robot_is_held_at_rest(braking):
    model, motion, gains = braking
    for t, end in ((-0.1, 0.0), (motion.duration + 1e-3, motion.duration), (9.0, motion.duration)):
        found, place = gains.at(t), motion(np.array([end])).q[0]
        np.testing.assert_allclose(found.q, place, atol=1e-12)
        assert not found.v.any()
        np.testing.assert_allclose(found.effort, rbd.gravity_effort(model, place), atol=1e-9)
    assert not gains.held(-5.0, 0.02).v.any()
    arm = rbd.Simulator(model, q=motion(np.array([0.0])).q[0])
    for _ in range(round(1e3 * (motion.duration + 0.5))):
        arm.step(gains.command(arm.time, arm.q, arm.v))
    assert np.abs(arm.v).max() < 1e-3 and np.abs(arm.q - motion(np.array([motion.duration])).q[0]).max() < 1e-3


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
def test_c_holds_the_robot_at_rest_before_the_start_and_after_the_end(braking, tmp_path):
    _, motion, gains = braking
    library, v = compiled(tmp_path, gains.c_source("arm"), COMPILERS[0]), np.full(7, 0.1)
    for t in (-0.1, motion.duration + 0.1):
        q = gains.at(t).q + 0.01
        np.testing.assert_allclose(called(library, "double", t, q, v, 7), gains.command(t, q, v), atol=1e-9)


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
def test_elastic_joints_in_c(tmp_path):
    actuation = mixed()
    n = 7 + actuation.nm - 1
    gains = rbd.tracking_gains(actuation, spline(np.zeros(7), np.full(7, 0.2), 0.5), np.ones(2 * n),
                               np.full(actuation.nm, 0.1))
    library = compiled(tmp_path, gains.c_source("arm"), COMPILERS[0])
    q, v = gains.at(0.2).q + 1e-3, gains.at(0.2).v - 1e-2
    expected = gains.command(0.2, q, v)
    np.testing.assert_allclose(called(library, "double", 0.2, q, v, actuation.nm), expected, rtol=0.0,
                               atol=1e-9 * np.abs(expected).max())


def test_wrong_requests_are_named(arm, biped):
    for call, words in ((lambda: arm.c_source("1x"), "identifier"), (lambda: arm.c_source(precision="half"), "half"),
                        (lambda: arm.c_source(rate=0.0), "rate must be a positive"),
                        (lambda: arm.c_source(rate=1e9), "expected at most"),
                        (lambda: arm.c_source(rate=5000.0), "numbers, expected at most"),
                        (lambda: biped.c_source(), "quaternions")):
        with pytest.raises(rbd.RbdError, match=words):
            call()

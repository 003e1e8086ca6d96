"""The answers of the server, without ROS: right by name, and every bad request refused with words that help."""
from __future__ import annotations

import dataclasses
import math
import time
from types import SimpleNamespace

import numpy as np
import pytest
from support import service_requests as req
from support.service_calls import service
from support.service_requests import FIVE_BAR, LOOP, NAMES, NAN, TAU, A, Q, V

import rbd_ros as rbd
from rbd_ros.runtime.service.constrained import ConstrainedRequest
from rbd_ros.runtime.service.robot_state import StateRequest
from rbd_ros.runtime.service.server_settings import ServerSettings, load_server_model
from rbd_ros.runtime.service.trajectory import TrajectoryPoint
from rbd_ros.runtime.world.odometry import Odometry

ORDER = [3, 0, 4, 2, 1]
SHUFFLED = [NAMES[i] for i in ORDER]
WRENCHES = {"tool": np.array([0.1, 0.2, 0.3, 4.0, 5.0, 6.0]), "left_lower": np.array([0.0, -1.0, 0.0, 2.0, 0.0, -3.0])}


def mixed(values):
    return [values[i] for i in ORDER]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


NOW = StateRequest(SHUFFLED, mixed(Q), mixed(V))
PUSHED = [(body, half) for body, wrench in WRENCHES.items() for half in (0.25 * wrench, 0.75 * wrench)]


@pytest.fixture(scope="module")
def made():
    return service()


def test_inverse_and_forward_in_any_order_with_wrenches(made):
    answer = made.inverse(NOW, SHUFFLED, mixed(A), PUSHED)
    assert list(answer.name) == NAMES
    close(answer.effort, rbd.inverse_dynamics(FIVE_BAR, Q, V, A, WRENCHES))
    back = made.forward(NOW, NAMES, answer.effort, PUSHED)
    close(back.acceleration, rbd.forward_dynamics(FIVE_BAR, Q, V, answer.effort, WRENCHES))
    np.testing.assert_allclose(back.acceleration, A, rtol=1e-9)


def test_what_is_left_out_is_zero(made):
    close(made.inverse(NOW).effort, rbd.bias_effort(FIVE_BAR, Q, V))
    close(made.inverse(StateRequest(NAMES, Q)).effort, rbd.gravity_effort(FIVE_BAR, Q))
    close(made.forward(NOW, NAMES).acceleration, rbd.forward_dynamics(FIVE_BAR, Q, V, np.zeros(5)))
    close(made.inverse(NOW, ["tip"], [3.0]).effort, rbd.inverse_dynamics(FIVE_BAR, Q, V, [0, 0, 3.0, 0, 0]))


def test_hybrid_reads_only_what_is_given(made):
    mask = np.array([True, False, False, True, False])
    answer = made.hybrid(NOW, SHUFFLED, mixed(mask), mixed(A), mixed(TAU), PUSHED)
    expected = rbd.hybrid_dynamics(FIVE_BAR, Q, V, np.where(mask, A, 0.0), np.where(mask, 0.0, TAU), mask, WRENCHES)
    close(answer.acceleration, expected.acceleration)
    close(answer.effort, expected.effort)
    close(answer.acceleration[mask], np.array(A)[mask])
    some = made.hybrid(NOW, ["tip"], [True], [1.0])    # the others: no effort
    close(some.effort[[0, 1, 3, 4]], 0.0)
    assert some.acceleration[2] == 1.0


@pytest.mark.parametrize("minimize", [0, 1])
@pytest.mark.parametrize("drives", [NAMES[::3], [], NAMES[1:4]])
def test_constrained_inverse(made, drives, minimize):
    a = req.MOTION.acceleration
    answer = made.constrained(NOW, ConstrainedRequest(0, SHUFFLED, acceleration=mixed(a), actuated=drives,
                                                      minimize=minimize), PUSHED)
    expected = rbd.constrained_inverse_dynamics(FIVE_BAR, LOOP, Q, V, a, drives or NAMES,
                                                ["multipliers", "effort"][minimize], external_wrenches=WRENCHES)
    close(answer.effort, expected.effort)
    close(answer.multiplier, expected.multipliers)
    close(answer.acceleration, a)
    check_motion(answer)


def check_motion(answer):
    """The equation of motion, the constraints on accelerations, and what is said about them."""
    A_c = rbd.constraint_jacobian(FIVE_BAR, LOOP, Q)
    left = rbd.mass_matrix(FIVE_BAR, Q) @ answer.acceleration + rbd.bias_effort(FIVE_BAR, Q, V, WRENCHES)
    np.testing.assert_allclose(left, answer.effort + A_c.T @ answer.multiplier, atol=1e-9)
    remaining = A_c @ answer.acceleration + rbd.constraint_bias(FIVE_BAR, LOOP, Q, V)
    assert answer.residual == pytest.approx(np.abs(remaining).max(), abs=1e-15) and answer.residual < 1e-9
    assert answer.constraint == ("closure/ry", "closure/x", "closure/z") and answer.rank == 3


def test_constrained_forward_and_hybrid(made):
    forward = made.constrained(NOW, ConstrainedRequest(1, SHUFFLED, effort=mixed(TAU)), PUSHED)
    expected = rbd.constrained_forward_dynamics(FIVE_BAR, LOOP, Q, V, TAU, external_wrenches=WRENCHES)
    close(forward.acceleration, expected.acceleration)
    close(forward.multiplier, expected.multipliers)
    assert forward.rank == expected.rank
    check_motion(forward)
    flags = [True, False, False, True, False]
    hybrid = made.constrained(NOW, ConstrainedRequest(2, SHUFFLED, mixed(flags), mixed(A), mixed(TAU)), PUSHED)
    expected = rbd.constrained_hybrid_dynamics(FIVE_BAR, LOOP, Q, V, A, TAU, np.array(flags),
                                               external_wrenches=WRENCHES)
    close(hybrid.acceleration, expected.acceleration)
    close(hybrid.effort, expected.effort)
    close(hybrid.multiplier, expected.multipliers)
    check_motion(hybrid)


def test_passive_efforts_and_dependent_rows():
    six = "constraints: [{name: loop, type: loop, predecessor: right_lower, successor: tool, axes: fixed, " \
          "predecessor_frame: {xyz: [-0.25, 0, 0.3122498999199]}},\n {name: gear, type: coupling, " \
          "terms: {left_elbow: 1.0}, constant: " + repr(Q[1]) + "}]"
    loops = rbd.load_constraints(six, FIVE_BAR)
    made = service(constraints_file="")
    made.robot = dataclasses.replace(made.robot, constraints=loops)
    still = StateRequest(NAMES, Q)
    answer = made.constrained(still, ConstrainedRequest(1, NAMES, effort=TAU))
    assert answer.rank == 4 and len(answer.multiplier) == 7
    assert answer.constraint == (*(f"loop/{axis}" for axis in ("rx", "ry", "rz", "x", "y", "z")), "gear")
    back = made.constrained(still, ConstrainedRequest(0, NAMES, acceleration=answer.acceleration,
                                                      effort=[0, 0, 0.5, 0, 0], actuated=[NAMES[0]]))
    assert back.effort[2] == 0.5


def check_coriolis(answer, model, q, v):
    """C v + g is the bias, and dM/dt - 2 C is skew-symmetric."""
    C, h = answer.coriolis_matrix, 1e-6
    np.testing.assert_allclose(C @ v + answer.gravity_effort, rbd.bias_effort(model, q, v), rtol=1e-10, atol=1e-11)
    M_dot = (rbd.mass_matrix(model, model.integrate(q, h * v))
             - rbd.mass_matrix(model, model.integrate(q, -h * v))) / (2 * h)
    np.testing.assert_allclose(M_dot, C + C.T, atol=1e-7 * np.abs(C).max())


def test_joint_wrenches_where_they_are_asked_for(made):
    q, v, a, tau = np.array(Q), np.array(V), np.array(A), np.array(TAU)
    for asked in (False, True):
        inverse = made.inverse(NOW, NAMES, A, PUSHED, asked)
        forward = made.forward(NOW, NAMES, TAU, PUSHED, asked)
        hybrid = made.hybrid(NOW, NAMES, req.FLAGS, A, TAU, PUSHED, asked)
        free = rbd.hybrid_dynamics(FIVE_BAR, q, v, a, tau, np.array(req.FLAGS), WRENCHES).acceleration
        for found, acceleration in ((inverse, a), (hybrid, free), (forward, rbd.forward_dynamics(
                FIVE_BAR, q, v, tau, WRENCHES))):
            expected = rbd.joint_wrenches(FIVE_BAR, q, v, acceleration, WRENCHES)
            assert tuple(body for body, _ in found.joint_wrenches) == (FIVE_BAR.body_names if asked else ())
            close([wrench for _, wrench in found.joint_wrenches], expected if asked else np.zeros((0,)))
        for mode, fields in ((0, {"acceleration": req.MOTION.acceleration}), (1, {"effort": TAU}), (2, {
                "effort": TAU, "acceleration": req.MOTION.acceleration, "prescribed": [True] + 4 * [False]})):
            found = made.constrained(NOW, ConstrainedRequest(mode, NAMES, with_joint_wrenches=asked, **fields), PUSHED)
            held = rbd.constraint_wrenches(FIVE_BAR, LOOP, q, found.multiplier)
            for body, wrench in WRENCHES.items():
                held[FIVE_BAR.body_index(body)] += wrench
            expected = rbd.joint_wrenches(FIVE_BAR, q, v, found.acceleration, held)
            assert len(found.joint_wrenches) == (len(expected) if asked else 0)
            close([wrench for _, wrench in found.joint_wrenches], expected if asked else np.zeros((0,)))


def test_terms(made):
    answer = made.terms(NOW)
    q, v = np.array(Q), np.array(V)
    M, C = answer.mass_matrix, answer.coriolis_matrix
    close(M, rbd.mass_matrix(FIVE_BAR, q))
    close(answer.gravity_effort, rbd.gravity_effort(FIVE_BAR, q))
    close(answer.bias_effort, C @ v + answer.gravity_effort)
    check_coriolis(answer, FIVE_BAR, q, v)
    assert answer.kinetic_energy == pytest.approx(0.5 * v @ M @ v)
    assert answer.potential_energy == pytest.approx(float(rbd.potential_energy(FIVE_BAR, q)))
    assert np.isfinite(made.terms(StateRequest(NAMES, Q)).coriolis_matrix).all()


def test_trajectory(made):
    rng = np.random.default_rng(3)
    q, v, a = rng.normal(size=(3, 40, 5))
    points = [TrajectoryPoint(0.1 * i, q[i][ORDER], v[i][ORDER], a[i][ORDER]) for i in range(40)]
    close(made.trajectory(SHUFFLED, points), rbd.inverse_dynamics(FIVE_BAR, q, v, a)[:, ORDER])


def test_mimic_joints():
    model = rbd.load_urdf("""<robot name="hand"><link name="a"/><link name="b"><inertial><origin xyz="0.1 0 0"/>
      <mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="c"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
      <inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="one" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>
      <joint name="two" type="continuous"><parent link="b"/><child link="c"/><origin xyz="0.2 0 0"/><axis xyz="0 1 0"/>
      <mimic joint="one" multiplier="-2" offset="0.1"/></joint></robot>""")
    made = service(model)
    expected = rbd.inverse_dynamics(model, [0.3], [0.4], [0.5])
    close(made.inverse(StateRequest(["one"], [0.3], [0.4]), ["one"], [0.5]).effort, expected)
    close(made.inverse(StateRequest(["two", "one"], [-0.5, 0.3], [-0.8, 0.4]), ["one"], [0.5]).effort, expected)
    for names, position, velocity in ((["two", "one"], [0.5, 0.3], [-0.8, 0.4]),
                                      (["one", "two"], [0.3, -0.5], [0.4, 0.8])):
        with pytest.raises(rbd.RbdError, match=r"mimic joint 'two' contradicts 'one'.* -0\.5 with velocity -0\.8"):
            made.inverse(StateRequest(names, position, velocity))
    with pytest.raises(rbd.RbdError, match="'two' follows 'one'"):
        made.inverse(StateRequest(["one"], [0.3]), ["two"], [1.0])
    point = TrajectoryPoint(0.0, [9.0, 0.3], [9.0, 0.4], [9.0, 0.5])
    close(made.trajectory(["two", "one"], [point]), [[0.0, expected[0]]])


def test_a_floating_base():
    text = rbd.sample_path("two_link").read_text()
    values = {"gravity": (0.0, 0.0, -9.81), "locked.joints": (), "locked.positions": (0.0,), "joints": (),
              "mounting.rpy": (0.0, 0.0, 0.0), "rotor_inertia": (-1.0,), "root": "floating"}
    model = load_server_model(values, text)[0]
    with pytest.raises(rbd.RbdError, match=r"'mounting\.rpy' is for a root link that does not move"):
        load_server_model(values | {"mounting.rpy": (0.1, 0.0, 0.0)}, text)
    made = service(model, root="floating", state_timeout=60.0)
    rng = np.random.default_rng(5)
    quaternion = rng.normal(size=4)
    quaternion /= np.linalg.norm(quaternion)
    xyz, twist, q, v = rng.normal(size=3), rng.normal(size=6), rng.normal(size=2), rng.normal(size=2)
    request = StateRequest(["elbow", "shoulder"], q[::-1], v[::-1], xyz, 1.001 * quaternion, twist)
    names = ["base/vz", "elbow", "base/wx"]
    answer = made.inverse(request, names, [1.0, 2.0, 3.0])
    assert answer.name == ("base/wx", "base/wy", "base/wz", "base/vx", "base/vy", "base/vz", "shoulder", "elbow")
    full_q, full_v = np.concatenate([xyz, quaternion, q]), np.concatenate([twist, v])
    close(answer.effort, rbd.inverse_dynamics(model, full_q, full_v, [3, 0, 0, 0, 0, 1, 0, 2]))
    made.states.latest.accept(time.monotonic(), 1, ["elbow", "shoulder"], q[::-1], v[::-1])
    now = dataclasses.replace(request, names=(), position=(), velocity=())
    close(made.inverse(now, names, [1.0, 2.0, 3.0]).effort, answer.effort)
    check_coriolis(made.terms(request), model, full_q, full_v)
    info = made.model_info()
    assert info.floating_base and info.joint == ("shoulder", "elbow") and len(info.max_effort) == 2
    for change, words in (({"base_quaternion": [0, 0, 0, 0]}, "base_pose.orientation has norm 0"),
                          ({"base_position": [0, NAN, 0]}, "base_pose.position is not finite"),
                          ({"base_twist": [0, 0, 0, 0, math.inf, 0]}, "base_twist is not finite")):
        with pytest.raises(rbd.RbdError, match=words):
            made.inverse(dataclasses.replace(request, **change))
    with pytest.raises(rbd.RbdError, match="says nothing about the floating base"):
        made.trajectory(["elbow", "shoulder"], [TrajectoryPoint(0.0, q, v, v)])
    with pytest.raises(rbd.RbdError, match=r"unknown coordinate.*'root_joint/0'"):
        made.inverse(request, ["root_joint/0"], [1.0])


def test_the_present_state_of_a_floating_base_is_that_of_odometry():
    made = service(rbd.load_urdf(rbd.sample_path("five_bar"), root="floating"), root="floating", odometry="odom",
                   constraints_file="")
    now, twist = time.monotonic(), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    assert made.states.latest.accept(now, 1, NAMES, Q, V)
    with pytest.raises(rbd.RbdError, match="no odometry has been received"):
        made.states.read(StateRequest(), now)
    assert made.states.odometry.accept(now, Odometry(0, "odom", "base", (1.0, 2.0, 3.0), (0.0, 0.0, 1.0, 0.0), twist))
    q, v = made.states.read(StateRequest(), now + 0.1)
    close(q, [1.0, 2.0, 3.0, 0.0, 0.0, 1.0, 0.0, *Q])
    close(v, [*twist, *V])
    listed = StateRequest(NAMES, Q, V, (4.0, 5.0, 6.0))    # which says where the base is itself
    close(made.states.read(listed, now + 100.0)[0][:3], [4.0, 5.0, 6.0])
    for given in ({"base_position": (1.0, 0.0, 0.0)}, {"base_quaternion": (1.0, 0.0, 0.0, 0.0)}, {"base_twist": twist}):
        with pytest.raises(rbd.RbdError, match="leave it empty, or list the joints"):
            made.states.read(StateRequest(**given), now)
    with pytest.raises(rbd.RbdError, match=r"odometry is 0\.30 s old, expected at most 0\.2 s"):
        made.states.read(StateRequest(), now + 0.3)
    with pytest.raises(rbd.RbdError, match="expected 'root' floating"):
        service(odometry="odom")


# ---- the robot as it is now

def test_the_latest_joint_state_counts_until_it_is_old(monkeypatch):
    made = service(state_timeout=0.2)
    latest, now = made.states.latest, time.monotonic()
    monkeypatch.setattr("rbd_ros.runtime.service.dynamics.time", SimpleNamespace(monotonic=lambda: now + 0.19))
    assert latest.accept(now, 1, [*SHUFFLED, "gripper"], [*mixed(Q), 9.0], [*mixed(V), 9.0])
    close(made.inverse(StateRequest(), NAMES, A).effort, rbd.inverse_dynamics(FIVE_BAR, Q, V, A))
    q, v = made.states.read(StateRequest(), now + 0.19)
    close(q, Q)
    close(v, V)
    with pytest.raises(rbd.RbdError, match=r"is 0\.21 s old, expected at most 0\.2 s \(parameter 'state_timeout'\)"):
        made.states.read(StateRequest(), now + 0.21)
    made.apply(ServerSettings.from_values({"state_timeout": 5.0}, FIVE_BAR))
    close(made.states.read(StateRequest(), now + 0.21)[0], Q)
    assert not latest.accept(now + 6.0, 2, NAMES, [NAN] * 5)
    with pytest.raises(rbd.RbdError, match=r"s old.*The last joint state was rejected: .*not finite"):
        made.states.read(StateRequest(), now + 6.0)


def test_velocities_that_joint_states_lack_are_estimated_with_the_cutoff():
    for cutoff, part in ((0.0, 1.0), (1.0, 1.0 - math.exp(-0.02 * math.pi))):
        made = service(velocity_cutoff=cutoff)
        made.states.latest.accept(1.0, 10**9, NAMES, np.zeros(5))
        made.states.latest.accept(1.01, 10**9 + 10**7, NAMES, np.full(5, 0.1))
        close(made.states.read(StateRequest(), 1.02)[1], np.full(5, 10.0 * part))


def test_model_info(made):
    info = made.model_info()
    assert (info.robot, info.floating_base, list(info.joint)) == ("five_bar", False, NAMES)
    assert info.coordinate == info.joint and info.constraint == LOOP.row_names
    assert info.body == FIVE_BAR.body_names and info.total_mass == pytest.approx(FIVE_BAR.total_mass)
    close(info.gravity, [0, 0, -9.81])
    for field, array in (("lower_position", FIVE_BAR.position_lower), ("upper_position", FIVE_BAR.position_upper),
                         ("max_velocity", FIVE_BAR.velocity_limit), ("max_effort", FIVE_BAR.effort_limit)):
        np.testing.assert_array_equal(getattr(info, field), array)

"""Inverse kinematics: who is at the pose is judged by Pinocchio, and nothing is called reached that is not."""
from __future__ import annotations

import numpy as np
import pytest
from support.robots import build, load, random_states, urdf_paths
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.motion.inverse_kinematics import chain_to

IIWA = rbd.sample("iiwa")
Q = np.array([0.3, 0.5, 0.1, -1.2, 0.2, 0.8, 0.4])
ARMS = {"iiwa": ("", "link_7"), "panda": ("panda_description/panda", "panda_hand"),
        "ur5": ("ur_description/ur5_robot", "tool0"), "kinova": ("kinova_description/kinova", "j2s6s200_end_effector"),
        "xarm7": ("xarm_description/xarm7", "link7")}
COUNT = 300


def arm(name):
    """The model and the body of its tool."""
    path, body = ARMS[name]
    if not path:
        return IIWA, body
    if path not in urdf_paths():
        pytest.skip("example-robot-data is not installed")
    return load(path, mimic="independent"), body


def poses(model, q, body):
    return rbd.forward_kinematics(model, q)[..., model.body_index(body), :, :]


def judged(name, q, goals, body):
    """The largest deviation from the goals (m, or of a rotation matrix) by Pinocchio's forward kinematics."""
    pytest.importorskip("pinocchio")
    from support.pinocchio_peer import Peer, peer, read
    other = peer(ARMS[name][0], "fixed") if ARMS[name][0] else Peer(IIWA, read(rbd.sample_path("iiwa")))
    worst = 0.0
    for posture, goal in zip(q, goals, strict=True):
        zero = np.zeros(other.model.nv)
        other.update(posture, zero, zero)
        worst = max(worst, np.abs(other.poses()[other.model.body_index(body)] - goal).max())
    return worst


def within(model, q):
    limited = model.position_lower != model.position_upper
    return ((q >= model.position_lower) & (q <= model.position_upper) | ~limited).all()


@pytest.mark.parametrize("name", ARMS)
def test_random_poses_are_reached_within_limits(name):
    model, body = arm(name)
    goals = poses(model, random_states(model, COUNT, 1)[0], body)
    found = rbd.inverse_kinematics(model, body, goals)
    assert found.converged.all() and set(found.reason) == {""}
    assert within(model, found.q) and found.error.max() <= 1e-6
    assert judged(name, found.q, goals, body) <= 1e-6


@pytest.mark.parametrize("name", ["iiwa", "panda", "ur5"])
def test_postures_at_limits_and_singular_ones_are_reached(name):
    """Each joint at a limit, at zero, where wrists and elbows of arms are singular, or anywhere."""
    model, body = arm(name)
    rng = np.random.default_rng(2)
    q = random_states(model, COUNT, 3)[0]
    choices = [model.position_lower, model.position_upper, np.clip(0.0, model.position_lower, model.position_upper)]
    for at, value in enumerate(choices):
        q = np.where(rng.integers(6, size=q.shape) == at, value, q)
    goals = poses(model, q, body)
    found = rbd.inverse_kinematics(model, body, goals)
    assert found.converged.all() and within(model, found.q)
    reached = np.abs(poses(model, found.q, body) - goals).max(axis=(1, 2)) <= 2e-6
    np.testing.assert_array_equal(reached, found.converged)


def test_a_batch_is_each_alone_and_equal_input_gives_equal_output():
    goals = poses(IIWA, random_states(IIWA, 9, 4)[0], "link_7")
    goals[3, :3, 3] = [0.0, 0.0, 5.0]
    starts = 0.5 * random_states(IIWA, 9, 5)[0]
    batch = rbd.inverse_kinematics(IIWA, "link_7", goals, starts, preferred=Q)
    again = rbd.inverse_kinematics(rbd.sample("iiwa"), "link_7", goals, starts, preferred=np.tile(Q, (9, 1)))
    fast = rbd.inverse_kinematics(rbd.specialize(IIWA) if rbd.COMPILED else IIWA, "link_7", goals, starts, preferred=Q)
    for k in range(9):
        one = rbd.inverse_kinematics(IIWA, "link_7", goals[k], starts[k], preferred=Q)
        assert one.q.shape == (7,) and one.error.shape == (2,) and one.converged is (k != 3)
        for other in (batch, again, fast):
            np.testing.assert_array_equal(other.q[k], one.q)
            np.testing.assert_array_equal(other.error[k], one.error)
            assert other.converged[k] == one.converged and other.reason[k] == one.reason
    several = rbd.inverse_kinematics(IIWA, "link_7", goals[0], starts)    # one pose, many starts
    np.testing.assert_array_equal(several.q[4], rbd.inverse_kinematics(IIWA, "link_7", goals[0], starts[4]).q)


def test_from_the_posture_itself_nothing_moves():
    found = rbd.inverse_kinematics(IIWA, "link_7", poses(IIWA, Q, "link_7"), Q)
    np.testing.assert_allclose(found.q, Q, atol=1e-12)
    near = rbd.inverse_kinematics(IIWA, "link_7", poses(IIWA, Q + 0.02, "link_7"), Q)
    assert near.converged and np.abs(near.q - Q).max() < 0.1


@pytest.mark.parametrize("root", ["fixed", "floating"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_joint_type(kind, root):
    for seed in range(3):
        model = random_tree(seed, [kind] * (2 if kind in ("planar", "composite", "translation") else 4), root=root)
        body = model.body_names[-1]
        goals = poses(model, random_states(model, 10, seed)[0], body)
        start = random_states(model, 1, 99)[0][0]
        found = rbd.inverse_kinematics(model, body, goals, start)
        assert found.converged.all()
        np.testing.assert_allclose(poses(model, found.q, body), goals, atol=3e-6)
        moving = chain_to(model, body).columns
        kept = np.delete(np.arange(model.nv), moving)
        np.testing.assert_allclose(np.array([model.difference(start, q) for q in found.q])[:, kept], 0.0, atol=1e-12)


def test_mimic_joints_follow():
    model = mimic_tree()
    for body in model.body_names:
        goals = poses(model, random_states(model, 10, 6)[0], body)
        found = rbd.inverse_kinematics(model, body, goals)
        assert found.converged.all()
        np.testing.assert_allclose(poses(model, found.q, body), goals, atol=3e-6)


def test_angles_are_the_turn_nearest_to_the_start():
    """Of a continuous joint, and of one whose limits are two turns apart; never beyond limits."""
    model = build([rbd.JointSpec("free", "continuous", "base", "a"),
                   rbd.JointSpec("wide", "revolute", "a", "b", position=np.array([0.5, 0.0, 0.0]),
                                 axis=(0.0, 0.0, 1.0), lower=-6.3, upper=6.3)])
    goal = poses(model, [0.4, 0.7], "b")
    for turns in (-3, 0, 5):
        q = rbd.inverse_kinematics(model, "b", goal, [0.2 + turns * 2.0 * np.pi, 0.5]).q
        np.testing.assert_allclose(q, [0.4 + turns * 2.0 * np.pi, 0.7], atol=1e-6)
    q = rbd.inverse_kinematics(model, "b", goal, [0.2, -6.0]).q
    np.testing.assert_allclose(q, [0.4, 0.7 - 2.0 * np.pi], atol=1e-6)
    q = rbd.inverse_kinematics(model, "b", poses(model, [0.4, 0.1], "b"), [0.2, -6.2]).q
    np.testing.assert_allclose(q, [0.4, 0.1 - 2.0 * np.pi], atol=1e-6)
    q = rbd.inverse_kinematics(model, "b", poses(model, [0.4, -0.1], "b"), [0.2, -6.2]).q    # −6.383 is beyond
    np.testing.assert_allclose(q, [0.4, -0.1], atol=1e-6)


# ---- a position, an axis

def test_a_position_alone():
    point = np.array([0.02, -0.03, 0.1])
    states = random_states(IIWA, 200, 7)[0]
    pose = poses(IIWA, states, "link_7")
    places = pose[:, :3, :3] @ point + pose[:, :3, 3]
    found = rbd.inverse_kinematics(IIWA, "link_7", places, offset=point)
    there = poses(IIWA, found.q, "link_7")
    assert found.converged.all() and (found.error[:, 1] == 0.0).all()
    np.testing.assert_allclose(there[:, :3, :3] @ point + there[:, :3, 3], places, atol=1e-6)
    single = rbd.inverse_kinematics(IIWA, "link_7", places[0], offset=point)
    np.testing.assert_array_equal(single.q, found.q[0])


@pytest.mark.parametrize("axis", [[0.0, 0.0, 1.0], [1.0, -2.0, 0.5]])
@pytest.mark.parametrize("name", ["iiwa", "ur5"])
def test_an_axis(name, axis):
    model, body = arm(name)
    goals = poses(model, random_states(model, 200, 8)[0], body)
    found = rbd.inverse_kinematics(model, body, goals, axis=axis)
    assert found.converged.all()
    there, unit = poses(model, found.q, body), np.array(axis) / np.linalg.norm(axis)
    np.testing.assert_allclose(there[:, :3, 3], goals[:, :3, 3], atol=1e-6)
    np.testing.assert_allclose(there[:, :3, :3] @ unit, goals[:, :3, :3] @ unit, atol=1e-6)
    turned = np.abs(there[:, :3, :3] - goals[:, :3, :3]).max(axis=(1, 2))
    assert np.median(turned) > 0.1    # the rest is free


@pytest.mark.parametrize("task", ["pose", "position", "axis"])
@pytest.mark.parametrize("kind", ["spherical", "helical", "revolute"])
def test_steps_converge_quadratically(kind, task):
    """As those of Newton's method with the exact derivative do: once at the tolerance, at rounding in a step or two."""
    model = random_tree(3, [kind, "floating", kind, "spherical_exponential", kind])
    body = model.body_names[-1]
    goals = poses(model, random_states(model, 50, 9)[0], body)
    found = rbd.inverse_kinematics(model, body, goals[:, :3, 3] if task == "position" else goals,
                                   axis=[1.0, 2.0, -0.5] if task == "axis" else None, offset=[0.1, -0.2, 0.3],
                                   tolerance=1e-3)
    assert found.converged.all() and np.median(found.error.max(axis=1)) <= 1e-8


# ---- preferred postures

@pytest.mark.parametrize("kind", ["pose", "position"])
def test_no_posture_near_by_is_nearer_to_the_preferred_one(kind):
    """By SciPy, from the posture found and from one that is given."""
    optimize = pytest.importorskip("scipy.optimize")
    states, preferred = random_states(IIWA, 6, 10)[0], 0.8 * random_states(IIWA, 6, 11)[0]
    goals = poses(IIWA, states, "link_7")
    found = rbd.inverse_kinematics(IIWA, "link_7", goals if kind == "pose" else goals[:, :3, 3], preferred=preferred)
    assert found.converged.all() and within(IIWA, found.q)
    bounds = list(zip(IIWA.position_lower, IIWA.position_upper, strict=True))
    for q, goal, near, state in zip(found.q, goals, preferred, states, strict=True):
        body_goal = rbd.BodyGoal("link_7", goal[:3, 3], goal[:3, :3] if kind == "pose" else None)
        constraint = {"type": "eq", "fun": lambda x, g=body_goal: g.equations(IIWA, x),
                      "jac": lambda x, g=body_goal: g.jacobian(IIWA, x)}
        mine = np.sum((q - near) ** 2)
        for start in (q, state):
            other = optimize.minimize(lambda x, near=near: np.sum((x - near) ** 2), start, bounds=bounds,
                                      jac=lambda x, near=near: 2.0 * (x - near), constraints=[constraint],
                                      options={"maxiter": 200, "ftol": 1e-12})
            if np.abs(body_goal.equations(IIWA, other.x)).max() <= 1e-6 and body_goal.holds(IIWA, other.x):
                assert mine <= other.fun * (1.0 + 1e-4) + 1e-6


def test_a_preferred_posture_that_is_at_the_pose_is_the_answer():
    states = random_states(IIWA, 50, 12)[0]
    found = rbd.inverse_kinematics(IIWA, "link_7", poses(IIWA, states, "link_7"), preferred=states)
    np.testing.assert_allclose(found.q, states, atol=1e-6)
    elsewhere = rbd.inverse_kinematics(IIWA, "link_7", poses(IIWA, states, "link_7"), Q, preferred=states + 0.05)
    assert elsewhere.converged.all()
    assert (np.linalg.norm(elsewhere.q - states - 0.05, axis=1) <= 0.05 * np.sqrt(7.0) + 1e-6).all()


# ---- what is not reached

def hinge(lower=-1.0, upper=1.0):
    return build([rbd.JointSpec("hinge", "revolute", "base", "door", axis=(0.0, 0.0, 1.0), lower=lower, upper=upper),
                  rbd.JointSpec("grip", "fixed", "door", "handle", position=np.array([0.5, 0.0, 0.0]))])


def test_beyond_a_limit_the_nearest_posture_and_the_joint():
    model = hinge()
    found = rbd.inverse_kinematics(model, "handle", poses(hinge(-3.0, 3.0), [1.5], "handle"))
    assert not found.converged and found.q == [1.0]
    np.testing.assert_allclose(found.error, [2.0 * 0.5 * np.sin(0.25), 0.5], atol=1e-9)
    assert found.reason.startswith("position limits") and "'hinge' at 1.5" in found.reason


def test_out_of_reach_the_nearest_posture_and_the_distance():
    model = hinge(-3.0, 3.0)
    far = rbd.inverse_kinematics(model, "handle", [0.0, 2.0, 0.0])
    assert not far.converged and far.reason == "out of reach: 2 m from the first joint, of at most 0.5 m"
    np.testing.assert_allclose(far.q, [0.5 * np.pi], atol=1e-4)
    np.testing.assert_allclose(far.error, [1.5, 0.0], atol=1e-6)
    above = rbd.inverse_kinematics(model, "handle", [0.3, 0.0, 0.2])
    assert not above.converged and "without position limits" in above.reason
    np.testing.assert_allclose(above.error[0], np.hypot(0.2, 0.2), atol=1e-6)
    up = rbd.inverse_kinematics(IIWA, "link_7", [0.0, 0.0, 3.0])
    assert not up.converged and up.error[0] <= 3.0 - poses(IIWA, np.zeros(7), "link_7")[2, 3] + 1e-4


def test_one_start_may_not_be_enough():
    model, body = arm("panda")
    goals = poses(model, random_states(model, COUNT, 1)[0], body)
    found = rbd.inverse_kinematics(model, body, goals, starts=1)
    left = np.flatnonzero(~found.converged)
    assert 0 < len(left) < COUNT
    off = np.linalg.norm(poses(model, found.q[left], body)[:, :3, 3] - goals[left, :3, 3], axis=1)
    np.testing.assert_allclose(found.error[left, 0], off, atol=1e-9)
    assert all("off by" in found.reason[k] for k in left)


def test_a_body_that_does_not_move():
    pose = poses(IIWA, Q, IIWA.body_names[0])
    found = rbd.inverse_kinematics(IIWA, IIWA.body_names[0], pose, Q)
    assert found.converged and (found.q == Q).all()
    assert not rbd.inverse_kinematics(IIWA, IIWA.body_names[0], [0.0, 0.0, 1.0]).converged
    rigid = build([rbd.JointSpec("grip", "fixed", "base", "handle", position=np.array([0.5, 0.0, 0.0]))])
    assert rbd.inverse_kinematics(rigid, "handle", [0.5, 0.0, 0.0]).converged
    assert not rbd.inverse_kinematics(rigid, "handle", [0.4, 0.0, 0.0]).converged


POSE = poses(IIWA, Q, "link_7")


@pytest.mark.parametrize(("change", "words"), [
    ({"body": "link_8"}, "link_8.*Valid names"), ({"model": None}, "model.*NoneType"),
    ({"pose": np.eye(3)[:2, :2]}, r"pose has shape \(2, 2\)"), ({"pose": 1.0}, "pose has shape"),
    ({"pose": "there"}, "pose: expected real numbers"), ({"pose": 2.0 * POSE}, "pose: expected a pose with the last"),
    ({"pose": np.diag([1.0, 1.0, -1.0, 1.0])}, "rotation matrix"), ({"pose": np.nan * POSE}, "pose: .*finite"),
    ({"pose": [np.nan, 0.0, 0.0]}, "pose: expected finite"), ({"q": Q[:3]}, "q has shape"),
    ({"q": np.where(Q > 0.7, np.nan, Q)}, r"q\[5\] is nan"), ({"q": 9.0 * Q}, "q: joint 'joint_4' at .* beyond"),
    ({"q": np.tile(Q, (2, 1)), "pose": np.tile(POSE, (3, 1, 1))}, "different length: pose has 3, q"),
    ({"preferred": Q[:3]}, "preferred has shape"), ({"preferred": np.full(7, np.inf)}, r"preferred\[0\] is inf"),
    ({"axis": np.zeros(3)}, "axis: .*not zero"), ({"axis": [1.0, 0.0]}, "axis: expected three"),
    ({"axis": [0.0, 0.0, 1.0], "pose": [0.4, 0.2, 0.3]}, "axis: .*position"), ({"offset": "x"}, "offset: expected"),
    ({"tolerance": 0.0}, "tolerance must be"), ({"tolerance": np.nan}, "tolerance must be"),
    ({"starts": 0}, "starts must be"), ({"starts": 2.5}, "starts must be")])
def test_wrong_arguments_are_named(change, words):
    with pytest.raises(rbd.RbdError, match=words):
        rbd.inverse_kinematics(**({"model": IIWA, "body": "link_7", "pose": POSE} | change))


def test_a_start_a_little_beyond_a_limit_is_at_it():
    q = np.where(np.arange(7) == 3, IIWA.position_lower - 5e-4, Q)
    assert rbd.inverse_kinematics(IIWA, "link_7", POSE, q).converged


@pytest.mark.parametrize("size", [1e15, 1e100, 1e308])
def test_huge_numbers_are_answered_or_refused(size):
    model = build([rbd.JointSpec("a", "continuous", "base", "a"), rbd.JointSpec("b", "prismatic", "a", "b")])
    for given in ({"q": [size, 0.0]}, {"q": [0.0, -size]}, {"preferred": [size, size]}, {"pose": [size, 0.0, 0.0]},
                  {"offset": [size, 0.0, 0.0]}, {"tolerance": size}):
        try:
            found = rbd.inverse_kinematics(model, "b", **({"pose": [0.0, 0.0, 0.1], "starts": 5} | given))
        except rbd.RbdError:
            continue
        assert np.isfinite(found.q).all() and np.isfinite(found.error).all()
        there = poses(model, found.q, "b")
        off = there[:3, :3] @ given.get("offset", np.zeros(3)) + there[:3, 3] - given.get("pose", [0.0, 0.0, 0.1])
        assert found.converged is bool(np.linalg.norm(off) <= given.get("tolerance", 1e-6))

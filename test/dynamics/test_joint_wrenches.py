"""What joints carry: free bodies of all subtrees, power, Pinocchio, MuJoCo, closed forms."""

import pickle

import numpy as np
import pytest
from support.bodies import check_balance, joint_powers, tree_of
from support.robots import assert_close, load, random_state, random_states, urdf_paths
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd

MODELS = {"every joint": lambda: random_tree(4, TYPES), "floating": lambda: random_tree(5, TYPES, root="floating"),
          "mimic": mimic_tree, "locked": lambda: random_tree(
              7, ["revolute", "prismatic", "universal", "revolute"], locked={"joint1": 0.3, "joint2": [0.2, -0.4]}),
          "biped": lambda: rbd.sample("biped", root="floating")}
each_model = pytest.mark.parametrize("kind", MODELS)
PEERS = ["panda_description/panda", "ur_description/ur5_robot", "kinova_description/kinova",
         "solo_description/solo12", "a1_description/a1", "talos_data/talos_reduced"]
needs_robots = pytest.mark.skipif(not urdf_paths(), reason="example-robot-data is not installed")


def wrenches_on(model, seed):
    return np.random.default_rng(seed).normal(size=(len(model.body_names), 6))


@each_model
@pytest.mark.parametrize("seed", range(4))
def test_every_subtree_is_in_balance(kind, seed):
    model = MODELS[kind]()
    q, v, a = random_state(model, seed)
    outside = wrenches_on(model, seed)
    check_balance(model, q, v, a, rbd.joint_wrenches(model, q, v, a, outside), outside)
    check_balance(model, q, v, a, rbd.joint_wrenches(model, q, v, a), 0.0 * outside)


@each_model
@pytest.mark.parametrize("seed", range(3))
def test_the_component_along_the_joint_is_its_effort_without_its_rotor(kind, seed):
    """By power, so for joints of any kind; a mimic joint has no effort of its own, and its source both."""
    model = MODELS[kind]()
    q, v, a = random_state(model, seed)
    outside = wrenches_on(model, seed)
    powers = joint_powers(model, q, v, rbd.joint_wrenches(model, q, v, a, outside))
    effort = rbd.inverse_dynamics(model, q, v, a, outside)
    rotors = effort - rbd.inverse_dynamics(without_rotors(model), q, v, a, outside)
    sources = {mimic.name: mimic.source for mimic in model.mimics}
    found = dict.fromkeys(model.joint_names, 0.0)
    for name, power in zip(tree_of(model)[1], powers, strict=True):
        if name or model.description.root == "floating":
            name = sources.get(name, name) or "root_joint"
            if name in found:
                found[name] += power
            else:
                assert abs(power) < 1e-12 * np.abs(powers).max(), f"{name} does not move"
    for joint in model.joints:
        part = slice(joint.idx_v, joint.idx_v + joint.nv)
        assert found[joint.name] == pytest.approx((effort - rotors)[part] @ v[part], rel=1e-10, abs=1e-10)


def without_rotors(model):
    import dataclasses
    joints = tuple(dataclasses.replace(joint, rotor_inertia=0.0) for joint in model.description.joints)
    return rbd.RobotModel.from_description(dataclasses.replace(model.description, joints=joints))


def test_the_mount_carries_the_robot_and_a_sensor_its_tool():
    """A force-torque sensor at a fixed joint, though links that it connects are one body for the algorithms."""
    arm = rbd.Inertia(3.0, np.array([0.0, 0.0, 0.2]), 0.01 * np.eye(3))
    tool = rbd.Inertia(0.5, np.array([0.05, 0.0, 0.1]), 0.001 * np.eye(3))
    sideways = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])    # y of the sensor is up
    model = rbd.RobotModel.from_description(rbd.Description("stand", {
        "base": rbd.Inertia(10.0, np.zeros(3), np.eye(3)), "arm": arm, "sensor": tool}, (
        rbd.JointSpec("turn", "revolute", "base", "arm", axis=(0.0, 0.0, 1.0)),
        rbd.JointSpec("mount", "fixed", "arm", "sensor", rotation=sideways, position=np.array([0.3, 0.0, 0.4])))))
    g = 9.81
    carried = rbd.joint_wrenches(model, [0.0], [0.0], [0.0])
    np.testing.assert_allclose(carried[0, 3:], [0.0, 0.0, 13.5 * g], atol=1e-12)
    assert_close(sideways @ carried[2, 3:], [0.0, 0.0, 0.5 * g], 1e-12)
    assert_close(sideways @ carried[2, :3], np.cross(sideways @ tool.com, [0.0, 0.0, 0.5 * g]), 1e-12)
    spinning = rbd.joint_wrenches(model, [0.0], [2.0], [3.0])[2]    # m (a + ω̇ × r + ω × (ω × r))
    r = np.array([0.3, 0.0, 0.4]) + sideways @ tool.com
    force = 0.5 * (np.array([0.0, 0.0, g]) + np.cross([0, 0, 3.0], r) + np.cross([0, 0, 2.0], np.cross([0, 0, 2.0], r)))
    assert_close(sideways @ spinning[3:], force, 1e-12)
    pushed = rbd.joint_wrenches(model, [0.0], [0.0], [0.0], {"sensor": [0.0, 0.0, 0.0, 0.0, 5.0, 0.0]})
    np.testing.assert_allclose(carried[2, 3:] - pushed[2, 3:], [0.0, 5.0, 0.0], atol=1e-12)


def test_a_floating_root_carries_what_its_six_efforts_are():
    model = random_tree(3, ["revolute", "spherical"], root="floating")
    q, v, a = random_state(model, 1)
    assert_close(rbd.joint_wrenches(model, q, v, a)[0], rbd.inverse_dynamics(model, q, v, a)[:6], 1e-12)


def test_far_from_the_origin_nothing_is_lost():
    model = random_tree(3, ["revolute", "spherical", "fixed", "prismatic"], root="floating")
    q, v, a = random_state(model, 1)
    near = rbd.joint_wrenches(model, q, v, a)
    q[:3] += 1e9
    np.testing.assert_array_equal(rbd.joint_wrenches(model, q, v, a), near)


@each_model
def test_a_batch_is_its_states(kind):
    model = MODELS[kind]()
    q, v, a = random_states(model, 4, 2)
    outside = np.stack([wrenches_on(model, seed) for seed in range(4)])
    batch = rbd.joint_wrenches(model, q, v, a, outside)
    for k in range(4):
        np.testing.assert_array_equal(batch[k], rbd.joint_wrenches(model, q[k], v[k], a[k], outside[k]))
    named = {model.body_names[-1]: outside[:, -1]}
    alone = np.zeros_like(outside)
    alone[:, -1] = outside[:, -1]
    np.testing.assert_array_equal(rbd.joint_wrenches(model, q, v, a, named), rbd.joint_wrenches(model, q, v, a, alone))


@each_model
def test_forward_and_hybrid_dynamics_say_it_on_request(kind):
    model = MODELS[kind]()
    outside = wrenches_on(model, 3)
    held = np.arange(model.nv) % 2 == 0
    for q, v, tau in (random_state(model, 2), random_states(model, 3, 2)):
        found = rbd.forward_dynamics(model, q, v, tau, outside, joint_wrenches=True)
        assert type(found) is rbd.Forward
        np.testing.assert_array_equal(found.acceleration, rbd.forward_dynamics(model, q, v, tau, outside))
        np.testing.assert_array_equal(found.joint_wrenches,
                                      rbd.joint_wrenches(model, q, v, found.acceleration, outside))
        hybrid = rbd.hybrid_dynamics(model, q, v, tau, tau, held, outside, joint_wrenches=True)
        a, effort = hybrid
        np.testing.assert_array_equal(effort, rbd.hybrid_dynamics(model, q, v, tau, tau, held, outside).effort)
        np.testing.assert_array_equal(hybrid.joint_wrenches, rbd.joint_wrenches(model, q, v, a, outside))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(hybrid)).joint_wrenches, hybrid.joint_wrenches)
    with pytest.raises(rbd.RbdError, match="ask for them with joint_wrenches=True"):
        _ = rbd.hybrid_dynamics(model, q, v, tau, tau, held).joint_wrenches
    assert isinstance(rbd.forward_dynamics(model, q, v, tau, joint_wrenches=False), np.ndarray)


@needs_robots
@pytest.mark.parametrize("root", ["fixed", "floating"])
@pytest.mark.parametrize("name", PEERS)
def test_pinocchio(name, root):
    pin = pytest.importorskip("pinocchio")
    from support.pinocchio_peer import SWAP, peer
    other = peer(name, root)
    model = other.model
    children = {joint.name: joint.child for joint in model.description.joints}
    for q, v, a in zip(*random_states(model, 5, seed=2), strict=True):
        other.inverse_dynamics(q, v, a)
        carried = rbd.joint_wrenches(model, q, v, a)
        links = [model.body_index(children[joint]) for joint in model.joint_names if joint in children]
        forces = [other.data.f[other.pin.getJointId(joint)].vector[SWAP] for joint in model.joint_names
                  if joint in children]
        assert_close(carried[links], np.array(forces), 1e-12, "what joints carry")
    assert pin.__version__


@needs_robots
@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
@pytest.mark.parametrize("root", ["fixed", "floating"])
@pytest.mark.parametrize("name", PEERS)
def test_mujoco(name, root):
    """`cfrc_int`: of each body and its parent, fixed ones included, in world axes about the centre of mass of its tree.
    """
    mujoco = pytest.importorskip("mujoco")
    from support.mujoco_peer import Peer, stripped
    text = stripped(urdf_paths()[name])
    model = rbd.load_urdf(text, root=root, mimic="independent")
    other = Peer(model, text, root == "floating")
    bodies = {name: other.mj.body(name).id for name in model.body_names
              if mujoco.mj_name2id(other.mj, mujoco.mjtObj.mjOBJ_BODY, name) > 0}
    assert len(bodies) >= len(model.body_names) - 1
    fixed = {joint.child for joint in model.description.joints if joint.type == "fixed"}
    assert fixed & bodies.keys() or "solo" in name
    for q, v, a in zip(*random_states(model, 5, seed=2), strict=True):
        other.update(q, v, a)
        mujoco.mj_rnePostConstraint(other.mj, other.data)
        T, carried = rbd.forward_kinematics(model, q), rbd.joint_wrenches(model, q, v, a)
        got, expected = [], []
        for link, body in bodies.items():
            i = model.body_index(link)
            force = T[i, :3, :3] @ carried[i, 3:]
            centre = other.data.subtree_com[other.mj.body_rootid[body]]
            got.append([*(T[i, :3, :3] @ carried[i, :3] + np.cross(T[i, :3, 3] - centre, force)), *force])
            expected.append(other.data.cfrc_int[body])
        assert_close(np.array(got), np.array(expected), 1e-11, "what joints carry")


def test_a_state_beyond_numbers_is_named():
    model = load("ur_description/ur5_robot") if urdf_paths() else rbd.sample("iiwa")
    zero = np.zeros(model.nv)
    with pytest.raises(rbd.RbdError, match=r"^joint_wrenches.* would not be finite: .*v up to 1e\+200"):
        rbd.joint_wrenches(model, zero, zero + 1e200, zero)
    with pytest.raises(rbd.RbdError, match="external_wrenches"):
        rbd.joint_wrenches(model, zero, zero, zero, {"nobody": np.zeros(6)})

"""Every robot of example-robot-data that Pinocchio loads, on a fixed and a floating root, against Pinocchio."""

import numpy as np
import pytest
from support.robots import assert_close, load, random_states, urdf_paths
from support.samples import samples

import rbd_ros as rbd

pin = pytest.importorskip("pinocchio")
if not urdf_paths():
    pytest.skip("example-robot-data is not installed", allow_module_level=True)

from support import pinocchio_peer  # noqa: E402

BOUND = 1e-9
STATES = samples(20)
ROBOTS = pinocchio_peer.loadable()
each_robot = pytest.mark.parametrize("name", ROBOTS)
each_root = pytest.mark.parametrize("root", ["fixed", "floating"])

# Condition numbers of the mass matrix beyond 1e8: forward dynamics of these is compared with rotors added.
SINGULAR = {
    "romeo_description/romeo": "the links of all 24 finger joints weigh nothing",
    "romeo_description/romeo_laas_small": "l_gripper_joint and r_gripper_joint move no inertia",
}
ILL_CONDITIONED = {"icub_description/icub": "two of the three neck links weigh nothing: 1e6 to 1e12, by the state"}
BROKEN_MIMICS = {
    "alex_description/alex_psyonic_hands":
        "joint 'Left_index_q2': unknown joint to mimic 'index_q1'; did you mean 'Left_index_q1'",
}


def test_there_is_something_to_compare():
    assert len(ROBOTS) >= 67


@each_root
@each_robot
def test_dynamics(name, root):
    peer = pinocchio_peer.peer(name, root)
    model = peer.model
    q, v, a = random_states(model, STATES, seed=1)
    tau, M = rbd.inverse_dynamics(model, q, v, a), rbd.mass_matrix(model, q)
    kinetic, potential = rbd.kinetic_energy(model, q, v), rbd.potential_energy(model, q)
    bias, weight = rbd.bias_effort(model, q, v), rbd.gravity_effort(model, q)
    momentum = rbd.centroidal_momentum(model, q, v) if model.nv else None
    zero = np.zeros(model.nv)
    for k in range(STATES):
        assert_close(tau[k], peer.inverse_dynamics(q[k], v[k], a[k]), BOUND, f"inverse dynamics, state {k}")
        assert_close(bias[k], peer.inverse_dynamics(q[k], v[k], zero), BOUND, f"bias, state {k}")
        assert_close(weight[k], peer.inverse_dynamics(q[k], zero, zero), BOUND, f"gravity, state {k}")
        assert_close(M[k], peer.mass_matrix(q[k]), BOUND, f"mass matrix, state {k}")
        energies = peer.energies(q[k], v[k])
        assert_close(kinetic[k], energies[0], BOUND, f"kinetic energy, state {k}")
        assert_close(potential[k], energies[1], BOUND, f"potential energy, state {k}")
        if momentum is not None:
            assert_close(momentum[k], peer.momentum(q[k], v[k]), BOUND, f"centroidal momentum, state {k}")


@each_root
@each_robot
def test_kinematics(name, root):
    peer = pinocchio_peer.peer(name, root)
    model = peer.model
    q, v, a = random_states(model, STATES, seed=2)
    poses = rbd.forward_kinematics(model, q)
    twists, rates = rbd.body_velocities(model, q, v), rbd.body_accelerations(model, q, v, a)
    some = range(0, len(model.body_names), max(1, len(model.body_names) // 12))
    jacobians = {(i, frame): rbd.jacobian(model, q, model.body_names[i], frame)
                 for i in {*some, len(model.body_names) - 1} for frame in pinocchio_peer.FRAMES}
    for k in range(STATES):
        peer.update(q[k], v[k], a[k])
        assert_close(poses[k], peer.poses(), BOUND, f"poses, state {k}")
        assert_close(twists[k], peer.twists(), BOUND, f"twists, state {k}")
        assert_close(rates[k], peer.twist_derivatives(), BOUND, f"accelerations, state {k}")
        for (i, frame), J in jacobians.items():
            body = model.body_names[i]
            assert_close(J[k], peer.jacobian(body, frame), BOUND, f"{frame} Jacobian of {body}, state {k}")


def compare_forward_dynamics(peer):
    """Over random states; returns how many were conditioned well enough to compare."""
    model = peer.model
    q, v, a = random_states(model, STATES, seed=3)
    effort = np.random.default_rng(4).normal(size=(STATES, model.nv))
    compared = 0
    for k in range(STATES):
        M = rbd.mass_matrix(model, q[k])
        if model.nv and np.linalg.cond(M) >= 1e8:
            continue
        compared += 1
        found = rbd.forward_dynamics(model, q[k], v[k], effort[k])
        assert_close(found, peer.forward_dynamics(q[k], v[k], effort[k]), BOUND, f"forward dynamics, state {k}")
        assert_close(rbd.inverse_dynamics(model, q[k], v[k], found), effort[k], BOUND, f"ID of FD, state {k}")
        # FD of ID: beyond the bound, what rounding the efforts themselves to 16 digits must do to the accelerations
        tau = rbd.inverse_dynamics(model, q[k], v[k], a[k])
        rounding = 1e-16 * np.abs(np.linalg.inv(M)).sum(axis=1).max() * np.abs(tau).max() if model.nv else 0.0
        again = rbd.forward_dynamics(model, q[k], v[k], tau)
        assert np.abs(again - a[k]).max(initial=0.0) <= BOUND * np.abs(a[k]).max(initial=0.0) + rounding
    return compared


@each_root
@each_robot
def test_forward_dynamics(name, root):
    compared = compare_forward_dynamics(pinocchio_peer.peer(name, root))
    if name in SINGULAR:
        assert compared == 0, "the reason in SINGULAR no longer holds"
    else:
        assert compared == STATES or (name in ILL_CONDITIONED and compared > 0), f"only {compared} compared"


@each_root
@pytest.mark.parametrize("name", [*SINGULAR, *ILL_CONDITIONED])
def test_forward_dynamics_of_robots_without_inertia_at_some_joints_once_they_have_rotors(name, root):
    model, theirs = load(name, root=root, mimic="independent"), pinocchio_peer.read(urdf_paths()[name], root)
    armature = np.full(model.nv, 0.01)
    armature[:6 if root == "floating" else 0] = 0.0    # the base has no rotor
    theirs.armature = armature
    assert compare_forward_dynamics(pinocchio_peer.Peer(model.with_(armature=armature), theirs)) == STATES


@each_root
@each_robot
def test_a_batch_equals_its_states_one_by_one(name, root):
    for mimic in ["independent"] if name in BROKEN_MIMICS else ["independent", "project"]:
        model = load(name, root=root, mimic=mimic)
        q, v, a = random_states(model, 4, seed=5)
        body = model.body_names[-1]
        calls = [lambda *x, model=model: rbd.inverse_dynamics(model, *x),
                 lambda q, v, a, model=model: rbd.mass_matrix(model, q),
                 lambda q, v, a, model=model: rbd.forward_kinematics(model, q),
                 lambda q, v, a, model=model: rbd.body_velocities(model, q, v),
                 lambda *x, model=model: rbd.body_accelerations(model, *x),
                 lambda q, v, a, model=model, body=body: rbd.jacobian(model, q, body, "world"),
                 lambda q, v, a, model=model: rbd.kinetic_energy(model, q, v),
                 lambda q, v, a, model=model: rbd.potential_energy(model, q)]
        if name not in SINGULAR and name not in ILL_CONDITIONED:
            calls.append(lambda q, v, a, model=model: rbd.forward_dynamics(model, q, v, a))
        for call in calls:
            single = np.array([call(q[k], v[k], a[k]) for k in range(4)])
            assert_close(call(q, v, a), single, 1e-12)


@pytest.mark.parametrize("name", BROKEN_MIMICS)
def test_a_mimic_joint_that_names_no_joint_is_an_error(name):
    with pytest.raises(rbd.RbdError, match=BROKEN_MIMICS[name]):
        load(name)


PLANAR = """<robot name="cart"><link name="world_link"/><link name="body"><inertial><origin xyz="0.1 0.2 0.3"/>
<mass value="3"/><inertia ixx="0.2" iyy="0.3" izz="0.4" ixy="0.01" ixz="0.02" iyz="-0.03"/></inertial></link>
<link name="arm"><inertial><origin xyz="0 0.1 0.2"/><mass value="1"/>
<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="kite"><inertial><mass value="0.5"/><inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/>
</inertial></link>
<joint name="drive" type="planar"><parent link="world_link"/><child link="body"/><axis xyz="0 0 1"/>
<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/></joint>
<joint name="wheel" type="continuous"><parent link="body"/><child link="arm"/><axis xyz="0 0.6 0.8"/>
<origin xyz="0 0 1" rpy="0 0.4 0"/></joint>
<joint name="string" type="floating"><parent link="arm"/><child link="kite"/><origin xyz="0 0 1" rpy="0.4 0 0"/></joint>
</robot>"""


def test_planar_continuous_and_floating_joints_in_a_description():
    model = rbd.load_urdf(PLANAR)
    peer = pinocchio_peer.Peer(model, pin.buildModelFromXML(PLANAR))
    for q, v, a in zip(*random_states(model, STATES, seed=6), strict=True):
        assert_close(rbd.inverse_dynamics(model, q, v, a), peer.inverse_dynamics(q, v, a), BOUND, "inverse dynamics")
        assert_close(rbd.mass_matrix(model, q), peer.mass_matrix(q), BOUND, "mass matrix")
        peer.update(q, v, a)
        assert_close(rbd.forward_kinematics(model, q), peer.poses(), BOUND, "poses")
        assert_close(rbd.body_accelerations(model, q, v, a), peer.twist_derivatives(), BOUND, "accelerations")
        for frame in pinocchio_peer.FRAMES:
            assert_close(rbd.jacobian(model, q, "kite", frame), peer.jacobian("kite", frame), BOUND, frame)
        tau = rbd.inverse_dynamics(model, q, v, a)
        assert_close(rbd.forward_dynamics(model, q, v, tau), a, BOUND, "FD of ID")

"""Constrained forward dynamics against Pinocchio's: contacts of points and surfaces, and a loop of six axes."""

import numpy as np
import pytest
from support.closed import closed, consistent_states
from support.robots import assert_close, urdf_paths

import rbd_ros as rbd

pin = pytest.importorskip("pinocchio")
if not urdf_paths():
    pytest.skip("example-robot-data is not installed", allow_module_level=True)

from support.pinocchio_peer import SWAP, peer  # noqa: E402


def solve(p, contacts, q, v, tau):
    """Accelerations and forces in our conventions; contacts: (type, link 1 or None, frame 1, link 2, frame 2)."""
    models, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()

    def placed(link, frame):
        if link is None:
            return 0, pin.SE3(np.asarray(frame))
        at = p.pin.frames[p.frame(link)]
        return at.parentJoint, at.placement * pin.SE3(np.asarray(frame))

    for kind, link_1, frame_1, link_2, frame_2 in contacts:
        model = pin.RigidConstraintModel(kind, p.pin, *placed(link_1, frame_1), *placed(link_2, frame_2), pin.LOCAL)
        models.append(model)
        data.append(model.createData())
    pin.initConstraintDynamics(p.pin, p.data, models, data)
    P = p.rates(q)
    a = pin.constraintDynamics(p.pin, p.data, p.q(q), P @ v, np.linalg.inv(P).T @ tau, models, data,
                               pin.ProximalSettings(1e-13, 1e-12, 200))
    return np.linalg.inv(P) @ a, [d.contact_force.vector[SWAP] for d in data]


@pytest.mark.parametrize("kind", ["point", "surface"])
def test_talos_in_double_support(kind):
    constraints = closed("talos")[1]
    q, v, _, tau = (x[:20] for x in consistent_states("talos"))
    p = peer("talos_data/talos_reduced", "floating")
    constraints = rbd.ConstraintSet([rbd.FixedContact(c.link, c.frame, kind, c.world) for c in constraints.constraints])
    pin_kind = pin.ContactType.CONTACT_3D if kind == "point" else pin.ContactType.CONTACT_6D
    contacts = [(pin_kind, None, c.world, c.link, c.frame) for c in constraints.constraints]
    for i in range(len(q)):
        got = rbd.constrained_forward_dynamics(p.model, constraints, q[i], v[i], tau[i])
        a, _ = solve(p, contacts, q[i], v[i], tau[i])
        assert_close(got.acceleration, a, 1e-8, "acceleration")


def test_hands_of_talos_hold_each_other():
    p = peer("talos_data/talos_reduced", "floating")
    model = p.model
    rng = np.random.default_rng(0)
    left, right = "arm_left_7_link", "arm_right_7_link"
    for i in range(10):
        q, v, tau = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
        poses = rbd.forward_kinematics(model, q)
        frame = np.linalg.inv(poses[model.body_index(left)]) @ poses[model.body_index(right)]
        loop = rbd.ConstraintSet([rbd.LoopClosure(left, right, predecessor_frame=frame)])
        q, v = rbd.project(model, loop, q, v)
        got = rbd.constrained_forward_dynamics(model, loop, q, v, tau)
        a, forces = solve(p, [(pin.ContactType.CONTACT_6D, left, frame, right, np.eye(4))], q, v, tau)
        assert_close(got.acceleration, a, 1e-8, f"acceleration {i}")
        assert_close(np.abs(got.multipliers), np.abs(forces[0]), 1e-6, f"multipliers {i}")

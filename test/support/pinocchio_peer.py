"""The same robot in Pinocchio, with coordinates converted both ways.

Pinocchio orders joints alphabetically among siblings, writes continuous joints as (cos, sin), planar ones as
(x, y, cos, sin) with body twist velocities, and puts linear before angular parts.
"""

from functools import cache

import numpy as np
import pinocchio as pin

from support.robots import load, urdf_paths

FRAMES = {"body": pin.LOCAL, "world": pin.WORLD, "aligned": pin.LOCAL_WORLD_ALIGNED}
SWAP = [3, 4, 5, 0, 1, 2]


class Peer:
    """`model` is ours, `pin` Pinocchio's. Arguments and results of all methods are in our conventions."""

    def __init__(self, model, pin_model):
        self.model, self.pin, self.data = model, pin_model, pin_model.createData()
        assert (pin_model.nv, pin_model.njoints - 1) == (model.nv, len(model.joints) + self._mimics())
        self.pairs = [(joint, pin_model.joints[pin_model.getJointId(joint.name)]) for joint in model.joints]

    def _mimics(self):
        return sum(joint.shortname() == "JointModelMimic" for joint in self.pin.joints)

    def q(self, q):
        """Positions in Pinocchio's layout."""
        out = pin.neutral(self.pin)
        for ours, theirs in self.pairs:
            x = q[ours.idx_q:ours.idx_q + ours.nq]
            angle = x[-1]
            if ours.type == "planar":
                x = [x[0], x[1], np.cos(angle), np.sin(angle)]
            elif theirs.nq == 2:
                x = [np.cos(angle), np.sin(angle)]
            out[theirs.idx_q:theirs.idx_q + theirs.nq] = x
        return out

    def rates(self, q):
        """The matrix P with `v_pinocchio = P v`."""
        P = np.zeros((self.model.nv, self.model.nv))
        for ours, theirs in self.pairs:
            block = np.eye(ours.nv)
            if ours.type == "planar":
                c, s = np.cos(q[ours.idx_q + 2]), np.sin(q[ours.idx_q + 2])
                block[:2, :2] = [[c, s], [-s, c]]
            elif ours.type == "floating":
                block = block[SWAP]
            P[theirs.idx_v:theirs.idx_v + theirs.nv, ours.idx_v:ours.idx_v + ours.nv] = block
        return P

    def accelerations(self, q, v, a):
        """`a_pinocchio = P a + Ṗ v`."""
        out = self.rates(q) @ a
        for ours, theirs in self.pairs:
            if ours.type == "planar":
                x, y, w = (self.rates(q) @ v)[theirs.idx_v:theirs.idx_v + 3]
                out[theirs.idx_v:theirs.idx_v + 2] += [w * y, -w * x]
        return out

    def inverse_dynamics(self, q, v, a):
        P = self.rates(q)
        return P.T @ pin.rnea(self.pin, self.data, self.q(q), P @ v, self.accelerations(q, v, a))

    def forward_dynamics(self, q, v, tau):
        """Through `P⁻¹`; without planar joints, whose Ṗ would be needed."""
        P = np.linalg.inv(self.rates(q))
        return P @ pin.aba(self.pin, self.data, self.q(q), self.rates(q) @ v, P.T @ tau)

    def mass_matrix(self, q):
        P = self.rates(q)
        upper = np.triu(pin.crba(self.pin, self.data, self.q(q)))
        return P.T @ (upper + np.triu(upper, 1).T) @ P

    def update(self, q, v, a):
        """Compute what the kinematic methods below read."""
        self.P = self.rates(q)
        pin.forwardKinematics(self.pin, self.data, self.q(q), self.P @ v, self.accelerations(q, v, a))
        pin.computeJointJacobians(self.pin, self.data, self.q(q))
        pin.updateFramePlacements(self.pin, self.data)

    def frame(self, body):
        return self.pin.getFrameId(body, pin.FrameType.BODY)

    def poses(self):
        return np.array([self.data.oMf[self.frame(body)].homogeneous for body in self.model.body_names])

    def twists(self):
        return np.array([pin.getFrameVelocity(self.pin, self.data, self.frame(body), pin.LOCAL).vector[SWAP]
                         for body in self.model.body_names])

    def twist_derivatives(self):
        return np.array([pin.getFrameAcceleration(self.pin, self.data, self.frame(body), pin.LOCAL).vector[SWAP]
                         for body in self.model.body_names])

    def jacobian(self, body, frame):
        if self.model.nv == 0:    # Pinocchio crashes
            return np.zeros((6, 0))
        return pin.getFrameJacobian(self.pin, self.data, self.frame(body), FRAMES[frame])[SWAP] @ self.P

    def energies(self, q, v):
        q_pin, v_pin = self.q(q), self.rates(q) @ v
        return (pin.computeKineticEnergy(self.pin, self.data, q_pin, v_pin),
                pin.computePotentialEnergy(self.pin, self.data, q_pin))

    def momentum(self, q, v):
        return np.array(pin.computeCentroidalMomentum(self.pin, self.data, self.q(q), self.rates(q) @ v).vector)[SWAP]


def read(path, root="fixed", mimic=False):
    """Pinocchio's model of a URDF file."""
    if root == "floating":
        return pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer(), mimic)
    return pin.buildModelFromUrdf(str(path), mimic)


@cache
def loadable():
    """Names of the robots that Pinocchio itself loads."""
    names = []
    for name, path in urdf_paths().items():
        try:
            read(path)
        except ValueError:
            continue
        names.append(name)
    return names


@cache
def peer(name, root):
    """Both models of a robot, mimic joints free in both."""
    return Peer(load(name, root=root, mimic="independent"), read(urdf_paths()[name], root))

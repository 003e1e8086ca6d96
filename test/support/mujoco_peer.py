"""The same robot in MuJoCo, with coordinates converted both ways."""

from xml.etree import ElementTree

import mujoco
import numpy as np

import rbd_ros as rbd

# links stay as they are: not merged, not balanced, not bounded from below
OPTIONS = "<mujoco><compiler fusestatic='false' balanceinertia='false' discardvisual='true' boundmass='0'/></mujoco>"


def stripped(path):
    """The description without shapes, damping and friction, as URDF text that MuJoCo takes."""
    root = ElementTree.fromstring(path.read_text())
    kept = {"link": {"inertial"}, "joint": {"origin", "axis", "parent", "child", "limit"}}
    for element in list(root):
        if element.tag not in kept:
            root.remove(element)
            continue
        for child in list(element):
            if child.tag not in kept[element.tag]:
                element.remove(child)
            elif child.tag == "limit" and child.get("lower") == child.get("upper"):    # MuJoCo would write a log
                child.attrib.update(lower="-2", upper="2")
    root.append(ElementTree.fromstring(OPTIONS))
    return ElementTree.tostring(root, encoding="unicode")


class Peer:
    """MuJoCo's model; arguments and results in our coordinates."""

    def __init__(self, model, text, floating):
        spec = mujoco.MjSpec.from_string(text)
        if floating:
            spec.worldbody.bodies[0].add_freejoint()
        self.mj = spec.compile()
        self.mj.opt.gravity[:] = model.gravity
        self.mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.data = mujoco.MjData(self.mj)
        self.model, self.floating = model, floating
        self.q, self.v = np.empty(model.nq, dtype=int), np.empty(model.nv, dtype=int)
        for joint in model.joints:
            if joint.name == "root_joint":
                self.q[joint.idx_q:joint.idx_q + 7], self.v[joint.idx_v:joint.idx_v + 6] = range(7), range(6)
            else:
                other = self.mj.joint(joint.name)
                self.q[joint.idx_q], self.v[joint.idx_v] = other.qposadr[0], other.dofadr[0]

    def rates(self, q):
        """P with `v_mujoco = P v`: of a free joint linear velocity first, in world axes, then angular in body axes."""
        P = np.zeros((self.model.nv, self.model.nv))
        P[self.v, np.arange(self.model.nv)] = 1.0
        if self.floating:
            P[:6, :6] = 0.0
            root = self.model.body_index(self.model.joint("root_joint").child)
            P[:3, 3:6] = rbd.forward_kinematics(self.model, q)[root, :3, :3]
            P[3:6, :3] = np.eye(3)
        return P

    def update(self, q, v, a):
        """Set the state; `v̇_mujoco = P a + Ṗ v`, where Ṗ v is R (ω × v)."""
        P = self.rates(q)
        x = np.empty(self.mj.nq)
        x[self.q] = q
        acceleration = P @ a
        if self.floating:
            x[3:7] = q[[6, 3, 4, 5]]
            acceleration[:3] += P[:3, 3:6] @ np.cross(v[:3], v[3:6])
        self.data.qpos[:], self.data.qvel[:], self.data.qacc[:] = x, P @ v, acceleration
        mujoco.mj_forward(self.mj, self.data)
        self.data.qacc[:] = acceleration
        mujoco.mj_inverse(self.mj, self.data)
        M = np.zeros((self.mj.nv, self.mj.nv))
        mujoco.mj_fullM(self.mj, self.data, M)
        return P.T @ M @ P, P.T @ self.data.qfrc_inverse, P.T @ self.data.qfrc_bias

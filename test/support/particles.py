"""An oracle that knows no twist, wrench or recursion: d'Alembert's principle for the particles of every link.

Link poses T(x) are products of 4x4 matrices, x a local chart of the configuration at the state (x = 0 for
quaternions). With the second moments P of a link's mass, ∫(p, 1)(p, 1)ᵀ dm, virtual work is

    τ_k = Σ_links tr(∂T/∂x_k P (T̈ − G)ᵀ) + rotors,   T = Σ ½ tr(Ṫ P Ṫᵀ),   U = −Σ g·(first moment)

which is Lagrange's equation (Uicker's form). ∂T/∂x_k is a complex step. Ṫ and T̈ along x(t) = x + v t + a t²/2
come from Cauchy's integral on a circle of complex times: exact to rounding, since T(x(t)) is entire.
"""

import numpy as np
from scipy.linalg import expm

from rbd_ros.core.model.joints import aligning_rotation

CIRCLE, RADIUS = 32, 0.5
QUATERNIONS = ("spherical", "floating")


def hat(r):
    out = np.zeros((*r.shape[:-1], 3, 3), dtype=r.dtype)
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -r[..., 2], r[..., 1], -r[..., 0]
    return out - np.swapaxes(out, -1, -2)


def screw(axis, angle, slide):
    """Turn by `angle` about the axis, and slide along it."""
    K = hat(np.asarray(axis, dtype=float))
    out = np.zeros((*np.shape(angle), 4, 4), dtype=complex)
    s, c = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
    out[..., :3, :3] = np.eye(3) + s * K + (1 - c) * K @ K
    out[..., :3, 3] = np.asarray(slide)[..., None] * np.asarray(axis)
    out[..., 3, 3] = 1.0
    return out


def exponential(r, u=None):
    """The matrix exponential of the screw motion (r, u)."""
    X = np.zeros((*r.shape[:-1], 4, 4), dtype=complex)
    X[..., :3, :3] = hat(r)
    if u is not None:
        X[..., :3, 3] = u
    return expm(X)


def quaternion_pose(x, y, z, w, p=(0.0, 0.0, 0.0)):
    """From Rodrigues' double product, not from the formula with nine squares."""
    K = hat(np.array([x, y, z]))
    T = np.eye(4)
    T[:3, :3] += 2 * w * K + 2 * K @ K
    T[:3, 3] = p
    return T


def joint_motion(spec, q, x):
    """Poses (B, 4, 4) of the child in the joint's frame: at q (a quaternion's chart is centred there), moved to x."""
    zero = 0.0 * x[:, 0]

    def turns(axes):
        T = np.eye(4)
        for k, axis in enumerate(axes):
            T = T @ screw(axis, x[:, k], zero)
        return T

    def slides(axes):
        T = np.eye(4)
        for k, axis in enumerate(axes):
            T = T @ screw(axis, zero, x[:, k])
        return T

    kind = spec.type
    if kind in ("revolute", "continuous"):
        return screw(spec.axis, x[:, 0], zero)
    if kind == "prismatic":
        return screw(spec.axis, zero, x[:, 0])
    if kind == "helical":
        return screw(spec.axis, x[:, 0], spec.pitch * x[:, 0])
    if kind == "cam":
        return screw(spec.axis, x[:, 0], sum(c * x[:, 0] ** k for k, c in enumerate(spec.advance)))
    if kind == "cylindrical":
        return screw(spec.axis, x[:, 0], x[:, 1])
    if kind == "translation":
        return slides(np.eye(3))
    if kind == "planar":
        return slides(aligning_rotation(spec.axis).T[:2]) @ screw(spec.axis, x[:, 2], zero)
    if kind == "universal":
        return turns(spec.axes or np.eye(3)[:2])
    if kind == "spherical_euler":
        return turns(spec.axes or np.eye(3)[::-1])
    if kind == "spherical_exponential":
        return exponential(x)
    if kind == "spherical":
        return quaternion_pose(*q) @ exponential(x)
    if kind == "floating":
        return quaternion_pose(*q[3:], p=q[:3]) @ exponential(x[:, :3], x[:, 3:])
    if kind != "composite":
        raise ValueError(f"joint type {kind}: this oracle does not know it; a new type needs its pose here")
    T = np.eye(4)
    for k, part in enumerate(spec.parts):
        angle, slide = {0: (1.0, 0.0), 1: (0.0, 1.0), 2: (1.0, part.pitch)}[part.type]
        T = T @ screw(part.axis, angle * x[:, k], slide * x[:, k])
    return T


class Particles:
    """The oracle for one model at one configuration."""

    def __init__(self, model, q):
        self.model, self.q = model, np.asarray(q, dtype=float)
        self.centre = np.zeros(model.nv)
        for joint in model.joints:
            if joint.type not in QUATERNIONS:
                self.centre[joint.idx_v:joint.idx_v + joint.nv] = self.q[joint.idx_q:joint.idx_q + joint.nq]
        self.moments = {name: self._moments(link) for name, link in model.description.links.items()}

    @staticmethod
    def _moments(link):
        c, P = link.com, np.zeros((4, 4))
        P[:3, :3] = np.trace(link.matrix) / 2 * np.eye(3) - link.matrix + link.mass * np.outer(c, c)
        P[:3, 3] = P[3, :3] = link.mass * c
        P[3, 3] = link.mass
        return P

    def poses(self, x):
        """World poses {link: (B, 4, 4)} at chart points x (B, nv); mimic and locked joints as the model has them."""
        mimics = {mimic.name: mimic for mimic in self.model.mimics}
        children = {spec.child for spec in self.model.description.joints}
        placed = {name: np.broadcast_to(np.eye(4, dtype=complex), (len(x), 4, 4))
                  for name in self.model.description.links if name not in children}
        waiting = list(self.model.description.joints)
        if self.model.description.root == "floating":
            base = self.model.joint("root_joint")
            placed[base.child] = joint_motion(base, self.q[:7], x[:, :6])
        while waiting:
            spec = next(spec for spec in waiting if spec.parent in placed)
            waiting.remove(spec)
            mount = np.eye(4)
            mount[:3, :3], mount[:3, 3] = spec.rotation, spec.position
            placed[spec.child] = placed[spec.parent] @ mount
            locked = self.model.description.locked
            if spec.type == "fixed":
                continue
            if spec.name in locked:
                q = np.atleast_1d(locked[spec.name])
                part = np.tile(np.zeros(len(q) - 1) if spec.type in QUATERNIONS else q, (len(x), 1))
            else:
                mimic = mimics.get(spec.name)
                joint = self.model.joint(mimic.source if mimic else spec.name)
                q, part = self.q[joint.idx_q:joint.idx_q + joint.nq], x[:, joint.idx_v:joint.idx_v + joint.nv]
                if mimic:
                    part = mimic.multiplier * part + mimic.offset
            placed[spec.child] = placed[spec.child] @ joint_motion(spec, q, part)
        return placed

    def along(self, v, a):
        """{link: (T, Ṫ, T̈)} along x(t) = x + v t + a t²/2, by Cauchy's integral."""
        turn = np.exp(2j * np.pi * np.arange(CIRCLE) / CIRCLE)
        t = RADIUS * turn[:, None]
        poses = self.poses(self.centre + t * np.asarray(v) + t**2 * np.asarray(a) / 2)

        def coefficient(T, k):
            return np.mean(T * turn[:, None, None]**-k, axis=0).real / RADIUS**k

        return {name: (coefficient(T, 0), coefficient(T, 1), 2 * coefficient(T, 2)) for name, T in poses.items()}

    def partials(self):
        """{link: (nv, 4, 4)}: ∂T/∂x_k, by complex step."""
        poses = self.poses(self.centre + 1e-30j * np.eye(self.model.nv))
        return {name: T.imag / 1e-30 for name, T in poses.items()}

    def rotors(self, weights):
        """Rotor inertia times `weights` (nv,); a rotor on a mimic joint turns `multiplier` times as fast."""
        out = self.model.armature * weights
        for mimic in self.model.mimics:
            spec = next(spec for spec in self.model.description.joints if spec.name == mimic.name)
            k = self.model.joint(mimic.source).idx_v
            out[k] += spec.rotor_inertia * mimic.multiplier**2 * weights[k]
        return out

    def inverse_dynamics(self, v, a):
        G = np.zeros((4, 4))
        G[:3, 3] = self.model.gravity
        motion, partial = self.along(v, a), self.partials()
        return self.rotors(np.asarray(a)) + sum(np.einsum("kij,ij->k", partial[name], (motion[name][2] - G) @ P)
                                                for name, P in self.moments.items())

    def mass_matrix(self):
        partial = self.partials()
        n = self.model.nv
        M = sum((partial[name] @ P).reshape(n, 16) @ partial[name].reshape(n, 16).T for name, P in self.moments.items())
        return M + np.diag(self.rotors(np.ones(self.model.nv)))

    def kinetic_energy(self, v):
        motion = self.along(v, np.zeros_like(v))
        return 0.5 * v @ self.rotors(np.asarray(v)) + 0.5 * sum(
            np.sum((motion[name][1] @ P) * motion[name][1]) for name, P in self.moments.items())

    def potential_energy(self, moving):
        poses = self.poses(self.centre[None])
        return -sum(self.model.gravity @ (poses[name][0].real @ self.moments[name][:, 3])[:3] for name in moving)

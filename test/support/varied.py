"""A model on complex numbers, every number of it varied along a `Tangent`: assembled anew from what is declared.

Screws, axes and frames are moved as declared, not by the gauge that the library uses: a screw is decomposed into its
axis, place, pitch and scale, all of them analytic functions.
"""

import numpy as np

from rbd_ros.core.model import block
from rbd_ros.core.model.assembly import depth_first
from rbd_ros.core.model.joint_kinds import CAM, HELICAL, PRISMATIC, REVOLUTE
from rbd_ros.core.model.joints import JointSpec, aligning_rotation, primitives

STEP = 1e-30j


def hat(x):
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def pose(R, p):
    T = np.eye(4, dtype=complex)
    T[:3, :3], T[:3, 3] = np.reshape(R, (3, 3)), p
    return T


def moved(T, xi):
    """T exp(ξ̂ step), to first order, which is all that a step of 1e-30 sees."""
    X = np.zeros((4, 4), dtype=complex)
    X[:3, :3], X[:3, 3] = hat(xi[:3]), xi[3:]
    return T @ (np.eye(4) + STEP * X)


def inverse(T):
    R, p = T[:3, :3], T[:3, 3]
    return pose(R.T, -R.T @ p)


def length(x):
    return np.sqrt(x @ x)


def turned(A, z):
    """The rotation A with its third axis turned to z, the shortest way."""
    a = A[:, 2]
    x = hat(np.cross(a, z))
    return (np.eye(3) + x + x @ x / (1 + a @ z)) @ A


def aligned(z):
    """`aligning_rotation`, of complex numbers."""
    k = int(np.argmax(np.abs(z.real)))
    x = np.cross(np.sign(z.real[k]) * np.eye(3)[(k + 2) % 3], z)
    x = x / length(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def frames(spec, tangent):
    """Per step: its frame's pose in the joint's frame, with z as the axis; and its pitch and scale."""
    steps = primitives(spec)
    k = len(steps)
    axes = [np.array(step.axis, dtype=complex) for step in steps]
    A = [aligning_rotation(step.axis) if step.nv == 1 else np.eye(3) for step in steps]
    if spec.name in tangent.axes:
        change = np.asarray(tangent.axes[spec.name]).reshape(-1, 3)
        if spec.type == "composite":
            raw = [part.axis for part in spec.parts]
        elif spec.type in ("universal", "spherical_euler"):
            raw = spec.axes or [step.axis for step in steps]
        else:
            raw = [spec.axis]
        new = [np.asarray(old) + STEP * d for old, d in zip(raw, change, strict=True)]
        new = [x / length(x) for x in new]
        if spec.type == "planar":
            turn = aligned(new[0]) @ aligning_rotation(steps[2].axis).T
            axes = [turn @ axis for axis in axes]
            A = [turn @ a for a in A]
        else:
            axes = new if len(new) == k else new * k
            A = [turned(a, axis) for a, axis in zip(A, axes, strict=True)]
    screws = np.asarray(tangent.screws.get(spec.name, np.zeros((k, 6)))).reshape(k, 6)
    pitches = np.broadcast_to(tangent.pitches.get(spec.name, 0.0), (k,))
    out = []
    for step, axis, a, ds, dh in zip(steps, axes, A, screws, pitches, strict=True):
        G, pitch, scale = pose(a, np.zeros(3)), step.pitch + STEP * dh, 1.0
        if ds.any():
            if step.type == PRISMATIC:
                u = axis + STEP * ds[3:]
                scale = length(u)
                G = pose(turned(a, u / scale), np.zeros(3))
            else:
                w, u = axis + STEP * ds[:3], pitch * axis + STEP * ds[3:]
                scale = length(w)
                pitch = w @ u / scale**2
                G = pose(turned(a, w / scale), np.cross(w, u) / scale**2)
        out.append((step, G, pitch, scale))
    return out


def mimic(specs, tangent, name):
    if specs[name].mimic is None:
        return 1.0, 0.0
    source, m, c = specs[name].mimic
    change = tangent.mimics.get(name, (0.0, 0.0))
    M, C = mimic(specs, tangent, source)
    m, c = m + STEP * change[0], c + STEP * change[1]
    return m * M, m * C + c


class Varied:
    """`block`, complex; `links`, pose of each link in its node."""

    def __init__(self, model, tangent):
        self.model = model
        self.block = model._block.astype(complex)
        rows = self.block[block.HEADER:block.HEADER + block.NODE * len(model._node_rows)].reshape(-1, block.NODE)
        description = model.description
        root, order = depth_first(description)
        specs = {spec.name: spec for spec in order}
        followers = {m.name for m in model.mimics}
        place, at = {root: (-1, pose(np.eye(3), np.zeros(3)))}, 0
        if description.root == "floating":
            place = {"": (-1, pose(np.eye(3), np.zeros(3)))}
            order = [JointSpec("root_joint", "floating", "", root), *order]
        for spec in order:
            node, T = place[spec.parent]
            T = T @ moved(pose(spec.rotation, spec.position), tangent.placements.get(spec.name, np.zeros(6)))
            if spec.name not in model.joint_names and spec.name not in followers:
                first = 0
                for step in primitives(spec):    # locked
                    T = T @ pose(*step.pose(np.atleast_1d(description.locked[spec.name])[first:]))
                    first += step.nq
                place[spec.child] = node, T
                continue
            ratio, offset = mimic(specs, tangent, spec.name) if spec.name in followers else (1.0, 0.0)
            rotor = np.broadcast_to(spec.rotor_inertia, (sum(s.nv for s in primitives(spec)),))
            rotor = rotor + STEP * np.asarray(tangent.rotor_inertias.get(spec.name, 0.0))
            done = 0
            for step, G, pitch, scale in frames(spec, tangent):
                row = rows[at]
                T = T @ G
                row[block.ROTATION:block.POSITION], row[block.POSITION:block.MASS] = T[:3, :3].ravel(), T[:3, 3]
                if step.type in (REVOLUTE, HELICAL):
                    row[block.TYPE] = HELICAL if pitch != 0 else step.type
                    row[block.PITCH] = pitch
                if step.nv == 1:
                    row[block.RATIO], row[block.OFFSET] = scale * ratio, scale * offset
                row[block.ARMATURE:block.ARMATURE + step.nv] = rotor[done:done + step.nv] * ratio**2
                if step.type == CAM and spec.name in tangent.advances:
                    start = int(row[block.PITCH].real) + 1
                    self.block[start:start + len(step.advance)] += STEP * np.asarray(tangent.advances[spec.name])
                done += step.nv
                node, T, at = at, inverse(G), at + 1
            place[spec.child] = node, T
        assert at == len(rows)
        self.links = place
        self._inertias(rows, tangent)
        if tangent.gravity is not None:
            self.block[block.GRAVITY:block.GRAVITY + 3] += STEP * np.asarray(tangent.gravity)

    def _inertias(self, rows, tangent):
        rows[:, block.MASS:block.ARMATURE] = 0.0
        for name, x in zip(self.model.body_names, self.model.inertial_parameters.reshape(-1, 10), strict=True):
            x = x + STEP * np.asarray(tangent.inertias.get(name, np.zeros(10)))
            node, T = self.links[name]
            J = np.array([[x[4], x[5], x[7]], [x[5], x[6], x[8]], [x[7], x[8], x[9]]])
            R, p, c = T[:3, :3], T[:3, 3], T[:3, :3] @ x[1:4]
            # about the node's origin: of points r + p, Σ m (|r + p|² 1 − (r + p)(r + p)ᵀ)
            J = R @ J @ R.T + (2 * c @ p + x[0] * p @ p) * np.eye(3)
            J = J - np.outer(c, p) - np.outer(p, c) - x[0] * np.outer(p, p)
            if node >= 0:
                rows[node, block.MASS] += x[0]
                rows[node, block.MOMENT:block.INERTIA] += c + x[0] * p
                rows[node, block.INERTIA:block.ARMATURE] += J[np.triu_indices(3)]

    def wrenches(self, wrenches):
        """Flat, per node, of wrenches (nb, 6) in link axes."""
        out = np.zeros((len(self.model._node_rows), 6), dtype=complex)
        for name, x in zip(self.model.body_names, wrenches, strict=True):
            node, T = self.links[name]
            f = T[:3, :3] @ x[3:]
            if node >= 0:
                out[node] += np.concatenate([T[:3, :3] @ x[:3] + np.cross(T[:3, 3], f), f])
        return out.reshape(-1)

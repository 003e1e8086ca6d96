"""What is true of each link, written with matrices: equations of motion, joints between links."""

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.lie import se3


def tree_of(model):
    """Per link the index of its parent link, −1 for the root; and the joint's name ("" for the root)."""
    above = np.full(len(model.body_names), -1)
    names = [""] * len(model.body_names)
    for joint in model.description.joints:
        above[model.body_index(joint.child)] = model.body_index(joint.parent)
        names[model.body_index(joint.child)] = joint.name
    return above, names


def subtree(above, i):
    """Indices of link i and of all below it."""
    found = [i]
    for link in found:
        found += np.flatnonzero(above == link).tolist()
    return found


def inertial_wrenches(model, q, v, a):
    """`𝓘 V̇ − ad*_V 𝓘 V − (gravity)` (nb, 6) of one state, moment first, in link frames: what must act on each link."""
    out = []
    for name, V, A, T in zip(model.body_names, rbd.body_velocities(model, q, v), rbd.body_accelerations(model, q, v, a),
                             rbd.forward_kinematics(model, q), strict=True):
        link = model.description.links[name]
        c = link.mass * se3.so3.hat(link.com)
        inertia = np.block([[link.about_origin, c], [c.T, link.mass * np.eye(3)]])
        A = A - np.concatenate([np.zeros(3), T[:3, :3].T @ model.gravity])
        out.append(inertia @ A - se3.ad(V).T @ inertia @ V)
    return np.array(out)


def about(T, wrenches, point):
    """Wrenches (n, 6) in the frames T (n, 4, 4), in world axes about a point."""
    forces = np.einsum("nij,nj->ni", T[:, :3, :3], wrenches[:, 3:])
    moments = np.einsum("nij,nj->ni", T[:, :3, :3], wrenches[:, :3]) + np.cross(T[:, :3, 3] - point, forces)
    return np.concatenate([moments, forces], axis=1)


def check_balance(model, q, v, a, carried, outside, bound=1e-12):
    """The free body of every subtree of one state: what its joint carries and what acts from outside move it."""
    above, _ = tree_of(model)
    T = rbd.forward_kinematics(model, q)
    needed = inertial_wrenches(model, q, v, a)
    for i in range(len(above)):
        below = subtree(above, i)
        centre = T[i, :3, 3]
        terms = np.concatenate([about(T[[i]], carried[[i]], centre), about(T[below], outside[below], centre),
                                -about(T[below], needed[below], centre)])
        error = np.abs(terms.sum(axis=0)).max()
        assert error <= bound * np.abs(terms).sum(), (model.body_names[i], error, np.abs(terms).sum())


def relative_twists(model, q, v):
    """Twists (nb, 6) of the links against their parents, in their own frames; the root's against the world."""
    above, _ = tree_of(model)
    V, T = rbd.body_velocities(model, q, v), rbd.forward_kinematics(model, q)
    return np.array([V[i] - (se3.Ad(np.linalg.inv(T[i]) @ T[h]) @ V[h] if h >= 0 else 0.0)
                     for i, h in enumerate(above)])


def joint_powers(model, q, v, carried):
    """F · V of each joint (nb,): what its wrench does."""
    return np.einsum("bi,bi->b", carried, relative_twists(model, q, v))

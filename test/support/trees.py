"""Random trees with joints of every type."""

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.model import joint_kinds

TYPES = tuple(kind for kind in rbd.JOINT_TYPES if kind != "fixed")


def random_rotation(rng):
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q if np.linalg.det(Q) > 0 else Q[:, [1, 0, 2]]


def random_inertia(rng):
    """That of a random cloud of heavy points: any real body."""
    mass = rng.uniform(0.5, 2.0)
    points = rng.normal(scale=0.2, size=(6, 3))
    spread = points - points.mean(axis=0)
    second = mass * spread.T @ spread / 6
    return rbd.Inertia(mass, rng.normal(scale=0.2, size=3), np.trace(second) * np.eye(3) - second)


def random_axis(rng):
    """A coordinate axis or any other, as likely."""
    if rng.random() < 0.5:
        return tuple(float(x) for x in rng.choice([-1.0, 1.0]) * np.eye(3)[rng.integers(3)])
    x = rng.normal(size=3)
    return tuple(float(y) for y in x / np.linalg.norm(x))


def random_joint(rng, kind, name, parent, child, rotors=True):
    options = {}
    if kind in ("universal", "spherical_euler") and rng.random() < 0.7:
        axes = random_rotation(rng)[:2 if kind == "universal" else 3]
        options["axes"] = tuple(tuple(float(x) for x in axis) for axis in axes)
    if kind == "composite":
        steps = rng.permutation([joint_kinds.REVOLUTE, joint_kinds.PRISMATIC, joint_kinds.HELICAL])
        options["parts"] = tuple(rbd.Primitive(int(step), random_axis(rng), 0.1 if step == joint_kinds.HELICAL else 0.0)
                                 for step in steps)
    if kind == "cam":
        options["advance"] = (0.02, 0.1, -0.05, 0.03)
    return rbd.JointSpec(name, kind, parent, child, random_rotation(rng), rng.normal(scale=0.3, size=3),
                         axis=random_axis(rng), pitch=0.2 if kind == "helical" else 0.0,
                         rotor_inertia=float(rng.uniform(0.0, 0.1)) if rotors else 0.0, **options)


def random_description(seed, kinds, rotors=True, **options):
    """A tree with these joints, each on a random earlier link; every other link has a tool; gravity is tilted."""
    rng = np.random.default_rng(seed)
    links, joints = {"base": random_inertia(rng)}, []
    for i, kind in enumerate(kinds):
        names = list(links)
        parent = names[max(0, len(names) - 1 - int(rng.integers(3)))]
        links[f"link{i}"] = random_inertia(rng)
        joints.append(random_joint(rng, kind, f"joint{i}", parent, f"link{i}", rotors))
        if i % 2:
            links[f"tool{i}"] = random_inertia(rng)
            joints.append(random_joint(rng, "fixed", f"mount{i}", f"link{i}", f"tool{i}"))
    tilted = tuple(float(x) for x in 9.81 * random_rotation(rng)[0])
    return rbd.Description(f"tree{seed}", links, tuple(joints), **{"gravity": tilted, **options})


def random_tree(seed, kinds=None, count=6, **options):
    """A model of `count` random joints (or of these kinds)."""
    if kinds is None:
        kinds = np.random.default_rng((seed, 1)).choice(TYPES, size=count)
    return rbd.RobotModel.from_description(random_description(seed, kinds, **options))


def mimic_tree(seed=3):
    """A tree in which two joints follow others, one of them on another branch."""
    model = random_tree(seed, ["revolute", "prismatic", "revolute", "spherical", "prismatic", "helical", "revolute"])
    joints = list(model.description.joints)
    names = [joint.name for joint in joints]
    for follower, source, ratio in (("joint2", "joint0", -1.5), ("joint6", "joint0", 0.7), ("joint4", "joint1", 0.5)):
        at = names.index(follower)
        joints[at] = rbd.JointSpec(**{**vars(joints[at]), "mimic": (source, ratio, 0.2)})
    return rbd.RobotModel.from_description(rbd.Description("mimic", model.description.links, tuple(joints)))

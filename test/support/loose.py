"""Bodies that move freely, above planes and between fingers, for unilateral contacts."""

import numpy as np

import rbd_ros as rbd

from .robots import build

G = 9.81
FLOOR = rbd.Plane("base")


def free(*bodies, gravity=(0.0, 0.0, -G), joints=(), links=None):
    """A model of free bodies `body_0`, `body_1`, …, each (mass, principal moments), behind other joints."""
    specs = [rbd.JointSpec(f"free_{i}", "floating", "base", f"body_{i}") for i in range(len(bodies))]
    inertias = {f"body_{i}": rbd.Inertia(mass, np.zeros(3), np.diag(moments))
                for i, (mass, moments) in enumerate(bodies)}
    return build([*joints, *specs], {**(links or {}), **inertias}, gravity=gravity)


def ball(mass=0.7, radius=0.12):
    return mass, [0.4 * mass * radius**2] * 3


def box(mass, size):
    x, y, z = np.square(size)
    return mass, mass / 12.0 * np.array([y + z, x + z, x + y])


def inclined(angle):
    return (G * np.sin(angle), 0.0, -G * np.cos(angle))


def at(*places, rotation=(0.0, 0.0, 0.0, 1.0)):
    """q of free bodies at these places."""
    return np.concatenate([[*place, *rotation] for place in places])


def scene(seed):
    """Balls, eggs and boxes thrown onto a floor or into a bowl, some onto an arm with a stop and dry friction."""
    rng = np.random.default_rng(seed)
    ground = rbd.Sphere("base", 1.5, [0, 0, 1.5], inside=True) if rng.random() < 0.4 else FLOOR
    arm = rng.random() < 0.5
    joints = [rbd.JointSpec("arm", "revolute", "base", "arm", axis=(0.0, 1.0, 0.0), position=np.array([0, 0, 0.6]),
                            lower=-2.0, upper=2.0, velocity=10.0, effort=10.0)] * arm
    bodies, contacts, balls = [], [], []
    for i in range(rng.integers(1, 4)):
        bodies.append((rng.uniform(0.2, 2.0), 0.01 * rng.uniform(0.8, 1.2, 3)))
        options = {"friction": rng.choice([0.0, 0.3, 1.0]), "restitution": rng.choice([0.0, 0.5, 1.0])}
        link, kind = f"body_{i}", rng.choice(["ball", "egg"] + ["box"] * (ground is FLOOR))
        if kind == "box":
            contacts += rbd.box_contacts(FLOOR, link, (0.2, 0.24, 0.16), **options)
        elif kind == "egg":
            contacts.append(rbd.UnilateralContact(ground, rbd.Ellipsoid(link, (0.1, 0.12, 0.08)), **options))
        else:
            surface = rbd.Sphere(link, 0.1)
            others = [ground, *balls] + [rbd.Sphere("arm", 0.08, [0.4, 0, 0])] * arm
            contacts += [rbd.UnilateralContact(other, surface, **options) for other in others]
            balls.append(surface)
    model = free(*bodies, joints=joints, links={"arm": rbd.Inertia(0.5, np.array([0.2, 0, 0]), 0.01 * np.eye(3))}
                 if arm else None)
    if arm:
        model = model.with_(friction=np.array([0.2] + [0.0] * (model.nv - 1)))
    turns = rng.normal(size=(len(bodies), 4))
    q = [0.3] * arm + [x for i, turn in enumerate(turns) for x in (
        (i - 1) * 0.35, 0.2 * rng.normal(), 0.4 + 0.3 * rng.random(), *(turn / np.linalg.norm(turn)))]
    v = np.concatenate([rng.normal(size=int(arm)), *[rng.normal(size=6) * [4, 4, 4, 1, 1, 1] for _ in bodies]])
    return model, contacts, q, v

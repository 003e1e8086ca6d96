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

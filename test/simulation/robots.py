"""Small robots for the tests of the simulation."""

import warnings
from functools import cache

import numpy as np

import rbd_ros as rbd


def link(mass, com, moments):
    return rbd.Inertia(mass, np.array(com), np.diag(moments))


@cache
def iiwa():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rbd.RbdWarning)
        return rbd.sample("iiwa")


def pendulum(lower=None, upper=None, joint_type="revolute", axis=(0.0, 1.0, 0.0), **joint):
    """1 kg, 0.5 m below its joint; or a block that slides."""
    return rbd.RobotModel.from_description(rbd.Description(
        "pendulum", {"base": rbd.Inertia.zero(), "bob": link(1.0, (0.0, 0.0, -0.5), (0.02, 0.02, 0.01))},
        (rbd.JointSpec("hinge", joint_type, "base", "bob", axis=axis, lower=lower, upper=upper, **joint),)))


def top():
    """A heavy body on a spherical joint."""
    return rbd.RobotModel.from_description(rbd.Description(
        "top", {"base": rbd.Inertia.zero(), "body": link(1.0, (0.05, 0.1, -0.3), (0.03, 0.02, 0.01))},
        (rbd.JointSpec("ball", "spherical", "base", "body"),)))


def satellite(gravity=(0.0, 0.0, 0.0)):
    """A floating body with two arms, one of them on a spherical joint."""
    at = np.array
    return rbd.RobotModel.from_description(rbd.Description(
        "satellite",
        {"hub": link(2.0, (0.0, 0.02, 0.0), (0.05, 0.06, 0.07)),
         "left": link(0.5, (0.2, 0.0, 0.0), (0.002, 0.01, 0.01)),
         "right": link(0.7, (-0.1, 0.1, 0.0), (0.004, 0.003, 0.005))},
        (rbd.JointSpec("shoulder", "revolute", "hub", "left", position=at([0.2, 0.0, 0.0]), axis=(0.0, 0.6, 0.8)),
         rbd.JointSpec("ball", "spherical", "hub", "right", position=at([-0.2, 0.0, 0.0]))),
        root="floating", gravity=gravity))


def momentum(model, q, v):
    """About the origin of the world: angular, then linear."""
    about = rbd.centroidal_momentum(model, q, v)
    return np.concatenate([about[:3] + np.cross(rbd.center_of_mass(model, q), about[3:]), about[3:]])

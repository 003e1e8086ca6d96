"""Drives for the tests of elastic joints: on the iiwa, one of each kind, and all alike."""

from functools import cache

import numpy as np

import rbd_ros as rbd

ROTORS = (3.0, 4.0, 2.0, 2.0, 1.0, 0.5, 0.3)                              # kg m², behind the gears
STIFFNESS = (2.0e4, 2.0e4, 1.0e4, 1.0e4, 8.0e3, 5.0e3, 3.0e3)             # N m/rad
MIXED = {
    "joint_1": {"type": "rigid", "motor": {"rotor_inertia": 3.0, "damping": 2.0}},
    "joint_2": {"type": "series_elastic", "stiffness": 2.0e4, "motor": {"rotor_inertia": 4.0}},
    "joint_3": {"type": "series_elastic", "stiffness": 1.0e4, "hardening": 4.0e7, "max_deflection": 0.05,
                "motor": {"rotor_inertia": 2.0e-4, "gear_ratio": 100, "damping": 1.0, "coulomb": 2.0,
                          "breakaway": 3.0}},
    "joint_4": {"type": "variable_stiffness", "spring": "cubic", "offset": 100.0, "gain": 1.0, "hardening": 1.0e5,
                "range": [500.0, 5000.0], "stiffness": 3000.0, "motor": {"rotor_inertia": 2.0},
                "stiffness_motor": {"rotor_inertia": 1.0e-6}},
    "joint_5": {"type": "variable_stiffness", "spring": "antagonistic_quadratic", "linear": 50.0, "quadratic": 400.0,
                "range": [0.1, 0.9], "stiffness": 900.0, "motor": {"rotor_inertia": 1.0}},
    "joint_6": {"type": "variable_stiffness", "spring": "antagonistic_exponential", "scale": 3.0, "rate": 8.0,
                "range": [0.1, 0.7], "stiffness": 900.0, "motor": {"rotor_inertia": 0.5, "damping": 0.2},
                "stiffness_motor": {"rotor_inertia": 0.4}},
    "joint_7": {"type": "variable_stiffness", "spring": "linear", "range": [50.0, 2000.0], "stiffness": 400.0,
                "motor": {"rotor_inertia": 0.3}, "stiffness_motor": {"rotor_inertia": 1.0e-6, "damping": 1.0e-6}},
}


@cache
def iiwa():
    return rbd.sample("iiwa")


def mixed(model=None, **changed):
    """One joint of each kind; `changed`: other entries by joint name."""
    return rbd.load_actuation(MIXED | changed, model or iiwa())


def series(model=None, damping=0.0, scale=1.0, **motor):
    """Linear springs in all joints."""
    model = model or iiwa()
    return rbd.load_actuation({
        name: {"type": "series_elastic", "stiffness": scale * k, "damping": damping * k,
               "motor": {"rotor_inertia": b, **motor}}
        for name, k, b in zip(model.joint_names, STIFFNESS, ROTORS, strict=True)}, model)


class Cosines:
    """`Σ_j A_j cos(w_j t + p_j)` of random numbers, for real and complex t; `around` is added."""

    def __init__(self, rng, count, size=1.0, around=0.0):
        self.A = size * rng.normal(size=(3, count)) / 3.0
        self.w = rng.uniform(0.5, 3.0, size=(3, count))
        self.p = rng.uniform(0.0, 6.0, size=(3, count))
        self.around = np.asarray(around)

    def __call__(self, t, order=0):
        phase = self.w * t + self.p
        value = [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin][order % 4](phase)
        return np.sum(self.A * self.w**order * value, axis=0) + (self.around if order == 0 else 0.0)

    def motion(self, t, orders=3):
        return [self(t, order) for order in range(orders)]

"""A two-joint arm with a series elastic shoulder and an elbow of variable stiffness, and its controller."""
from __future__ import annotations

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import friction_effort, friction_effort_derivatives
from rbd_ros.runtime.control.elastic_controller import ElasticController
from rbd_ros.runtime.control.elastic_settings import ElasticSettings

from .arm import NAMES, Q, V, arm, measured

MS = 1_000_000
DRIVES = {"shoulder": {"type": "series_elastic", "stiffness": 800.0, "max_deflection": 0.1,
                       "motor": {"rotor_inertia": 0.3, "damping": 0.4}},
          "elbow": {"type": "variable_stiffness", "spring": "linear", "range": [50.0, 2000.0], "stiffness": 300.0,
                    "motor": {"rotor_inertia": 0.1}, "stiffness_motor": {"rotor_inertia": 1e-7}}}
MOTORS = ["shoulder", "elbow", "elbow/stiffness"]
Z, W = np.array([0.31, -0.68, 290.0]), np.array([0.5, 0.1, 3.0])
AMPLITUDE, RATE = np.array([0.3, -0.4]), np.array([1.7, 2.3])


def motion(t):
    """q, v, a, jerk, snap."""
    s, c = AMPLITUDE * np.sin(RATE * t), AMPLITUDE * np.cos(RATE * t)
    return np.array([s, RATE * c, -RATE**2 * s, -RATE**3 * c, RATE**4 * s])


R = motion(0.4)


def controller(drives=None, model=None, **values):
    model = arm() if model is None else model
    values = {"ramp_in": 0.0, "ramp_out": 0.0} | {name.replace("__", "."): value for name, value in values.items()}
    given = rbd.load_actuation(DRIVES if drives is None else drives, model).drives
    made = ElasticController(model, ElasticSettings.from_drives(values, model, given))
    made.activate(0.0)
    return made


def commanded(made, now=1.0, stamp_ns=MS, reference=R, motors=True):
    """The answer to the usual state."""
    if reference is not None:
        assert made.on_reference(now, 0, NAMES, *reference)
    if motors:
        assert made.on_motor_state(now, stamp_ns, MOTORS, measured(made.motor_state.position, Z), W)
    return made.on_state(now, stamp_ns, NAMES, measured(made.state.q), V)


def answer(*arguments, **changed):
    """Motor effort in the usual state."""
    return commanded(*arguments, **changed).motor_effort


def expected(made, smoothing=0.1):
    """The flatness map of R by the library."""
    model = made.model
    efforts = rbd.inverse_dynamics_time_derivatives(model, *R)
    efforts[0] += friction_effort(model, R[1], smoothing)
    efforts[1:] += friction_effort_derivatives(model, R[1], R[2], R[3], smoothing)
    return rbd.motor_reference(made.actuation, *R[:3], efforts)


def holding(made, q=Q, stiffness=300.0):
    """Motor efforts that hold gravity, written down by hand: the second motor feels ∂U/∂σ of U = σφ²/2."""
    g = rbd.gravity_effort(made.model, q)
    return np.array([g[0], g[1], 0.5 * (g[1] / stiffness) ** 2])


def close(actual, wanted, atol=1e-9):
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=atol)

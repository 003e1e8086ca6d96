"""Directional derivatives of friction, from a `Tangent` to efforts."""
from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ...compiled.entry import entry
from ...compiled.kernel import kernel, sweep
from ...dynamics.friction import (
    Friction, friction_by_parameters, friction_gain, friction_law, friction_load_share, friction_load_slope,
    friction_slopes, friction_unloaded,
)
from ...errors import unknown_name
from ...model.inertia import Array, finite
from ...model.robot_model import RobotModel

NAMES = tuple(field.name for field in fields(Friction))
COULOMB, BREAKAWAY, LOAD = (NAMES.index(name) for name in ("coulomb", "breakaway", "load"))


def friction_records(model: RobotModel, tangents: tuple[Any, ...]) -> Array:
    """∂ of the friction parameters of all coordinates (directions, 8, nv); NaN for a breakaway that a tangent does not
    name. Empty if no tangent names friction.
    """
    if not any(tangent.friction for tangent in tangents):
        return np.empty((0, len(NAMES), model.nv))
    out = np.zeros((len(tangents), len(NAMES), model.nv))
    out[:, BREAKAWAY] = np.nan
    for record, tangent in zip(out, tangents, strict=True):
        for name, changes in tangent.friction.items():
            if name not in model.joint_names:
                raise unknown_name("joint in friction", name, model.joint_names)
            joint = model.joint(name)
            for parameter, value in changes.items():
                if parameter not in NAMES:
                    raise unknown_name(f"parameter in friction['{name}']", parameter, NAMES)
                size = () if np.ndim(value) == 0 else (joint.nv,)
                record[NAMES.index(parameter), joint.idx_v:joint.idx_v + joint.nv] = finite(
                    value, size, f"friction['{name}']['{parameter}']")
    return out


def with_breakaway(model: RobotModel, law: Friction, record: Array) -> Array:
    """The record with the breakaway's ∂ filled in: that of the Coulomb level if both are equal in the law."""
    out = np.array(record)
    equal = np.broadcast_to(np.equal(law.breakaway, law.coulomb), model.nv)
    out[BREAKAWAY] = np.where(np.isnan(record[BREAKAWAY]), np.where(equal, record[COULOMB], 0.0), record[BREAKAWAY])
    return out


@kernel
def friction_terms(law, k, v, tau):
    """Derivatives of the effort with friction by tau, by v, and by the eight parameters, at speed v and effort tau
    without friction.
    """
    p = (law[0, k], law[1, k], law[2, k], law[3, k], law[4, k], law[5, k], law[6, k], law[7, k])
    slopes, slope = friction_by_parameters(p, v, tau), friction_slopes(p, v)[0]
    if p[7] == 0.0:
        return 1.0, slope, slopes
    return friction_gain(friction_load_share(p, v), tau), slope + friction_load_slope(p, v, tau), slopes


@kernel
def without_friction(law, k, v, tau):
    """The effort tau less friction: the part that accelerates and carries the links."""
    p = (law[0, k], law[1, k], law[2, k], law[3, k], law[4, k], law[5, k], law[6, k], law[7, k])
    net = tau - friction_law(p, v)
    return net if p[7] == 0.0 else friction_unloaded(friction_load_share(p, v), net)


@kernel
def friction_by(law, k, slopes, dlaw, r, c):
    """∂effort of coordinate c along direction r by the parameters, with the breakaway of `with_breakaway`."""
    level = dlaw[r, 2, c]
    if np.isnan(level):
        level = dlaw[r, 1, c] if law[2, k] == law[1, k] else 0.0
    return (slopes[0] * dlaw[r, 0, c] + slopes[1] * dlaw[r, 1, c] + slopes[2] * level + slopes[3] * dlaw[r, 3, c]
            + slopes[4] * dlaw[r, 4, c] + slopes[5] * dlaw[r, 5, c] + slopes[6] * dlaw[r, 6, c]
            + slopes[7] * dlaw[r, 7, c])


@sweep
def friction_changes(law, dlaw, v, tau, first, X, s, gain, change):
    """Friction of state s at efforts tau[first:] without friction and rates v: gain (nv), ∂ of the efforts with
    friction by tau; change (directions, nv), ∂ of friction at constant tau along X (directions, 4, states, nv) and
    dlaw (directions, 8, nv, or empty) of the parameters.
    """
    directions, _, _, nv = X.shape
    for c in range(nv):
        k = c if law.shape[1] > 1 else 0
        gain[c], slope, slopes = friction_terms(law, k, v[s * nv + c], tau[first + c])
        for r in range(directions):
            x = slope * X[r, 1, s, c]
            if dlaw.shape[0] > 0:
                x += friction_by(law, k, slopes, dlaw, r, c)
            change[r, c] = x


@entry("void(float64[:, ::1], float64[:, :, ::1], float64[::1], float64[::1], float64[:, :, :, ::1], float64[:, ::1], "
       "float64[:, :, ::1])", nogil=True)
def friction_changes_entry(law, dlaw, v, tau, X, gain, change):
    """`friction_changes` of all states: gain (states, nv), change (states, directions, nv)."""
    for s in range(X.shape[2]):
        friction_changes(law, dlaw, v, tau, s * X.shape[3], X, s, gain[s], change[s])

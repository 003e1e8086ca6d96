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
    """∂ of every parameter of each coordinate's friction (directions, 8, nv); NaN where a breakaway is not named. Empty
    where no tangent names any.
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
            for what, value in changes.items():
                if what not in NAMES:
                    raise unknown_name(f"parameter in friction['{name}']", what, NAMES)
                size = () if np.ndim(value) == 0 else (joint.nv,)
                record[NAMES.index(what), joint.idx_v:joint.idx_v + joint.nv] = finite(
                    value, size, f"friction['{name}']['{what}']")
    return out


def followed(model: RobotModel, law: Friction, record: Array) -> Array:
    """A record with the breakaway that goes with the Coulomb level."""
    out = np.array(record)
    plain = np.broadcast_to(np.equal(law.breakaway, law.coulomb), model.nv)
    out[BREAKAWAY] = np.where(np.isnan(record[BREAKAWAY]), np.where(plain, record[COULOMB], 0.0), record[BREAKAWAY])
    return out


@kernel
def friction_terms(law, k, v, tau):
    """At speed v, where the joint carries tau: the slopes of the effort with friction by tau and by v, and what its
    derivatives by the parameters need.
    """
    p = (law[0, k], law[1, k], law[2, k], law[3, k], law[4, k], law[5, k], law[6, k], law[7, k])
    by, slope = friction_by_parameters(p, v, tau), friction_slopes(p, v)[0]
    if p[7] == 0.0:
        return 1.0, slope, by
    return friction_gain(friction_load_share(p, v), tau), slope + friction_load_slope(p, v, tau), by


@kernel
def without_friction(law, k, v, tau):
    """What a joint carries under an effort tau."""
    p = (law[0, k], law[1, k], law[2, k], law[3, k], law[4, k], law[5, k], law[6, k], law[7, k])
    left = tau - friction_law(p, v)
    return left if p[7] == 0.0 else friction_unloaded(friction_load_share(p, v), left)


@kernel
def friction_by(law, k, by, rubs, r, c):
    """∂effort of coordinate c along direction r by the parameters: `followed`, then the sum."""
    level = rubs[r, 2, c]
    if np.isnan(level):
        level = rubs[r, 1, c] if law[2, k] == law[1, k] else 0.0
    return (by[0] * rubs[r, 0, c] + by[1] * rubs[r, 1, c] + by[2] * level + by[3] * rubs[r, 3, c]
            + by[4] * rubs[r, 4, c] + by[5] * rubs[r, 5, c] + by[6] * rubs[r, 6, c] + by[7] * rubs[r, 7, c])


@sweep
def friction_changes(law, rubs, v, tau, at, X, s, gain, change):
    """Of state s, whose joints carry tau[at:] at rates v: the slopes gain (nv) of the efforts with friction by tau, and
    ∂ of what friction adds (directions, nv) at constant tau, along X (directions, 4, states, nv) and parameters of the
    law, rubs (directions, 8, nv; or none).
    """
    directions, _, _, nv = X.shape
    for c in range(nv):
        k = c if law.shape[1] > 1 else 0
        gain[c], slope, by = friction_terms(law, k, v[s * nv + c], tau[at + c])
        for r in range(directions):
            x = slope * X[r, 1, s, c]
            if rubs.shape[0] > 0:
                x += friction_by(law, k, by, rubs, r, c)
            change[r, c] = x


@entry("void(float64[:, ::1], float64[:, :, ::1], float64[::1], float64[::1], float64[:, :, :, ::1], float64[:, ::1], "
       "float64[:, :, ::1])", nogil=True)
def friction_changes_entry(law, rubs, v, tau, X, gain, change):
    """`friction_changes` of all states: gain (states, nv), change (states, directions, nv)."""
    for s in range(X.shape[2]):
        friction_changes(law, rubs, v, tau, s * X.shape[3], X, s, gain[s], change[s])

"""Directional derivatives of friction, from a `Tangent` to efforts."""
from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ...compiled.entry import entry
from ...compiled.kernel import kernel, routine
from ...dynamics.friction import Friction, friction_by_parameters, friction_law, friction_slopes
from ...errors import unknown_name
from ...model.inertia import Array, finite
from ...model.robot_model import RobotModel

NAMES = tuple(field.name for field in fields(Friction))
COULOMB, BREAKAWAY = NAMES.index("coulomb"), NAMES.index("breakaway")


def friction_records(model: RobotModel, tangents: tuple[Any, ...]) -> Array:
    """∂ of every parameter of each coordinate's friction (directions, 5, nv); NaN where a breakaway is not named. Empty
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
def friction_terms(law, k, v):
    """At speed v: the effort, its slope, and what its derivatives by the parameters need."""
    p = (law[0, k], law[1, k], law[2, k], law[3, k], law[4, k])
    return friction_law(p, v), friction_slopes(p, v)[0], friction_by_parameters(p, v)


@kernel
def friction_by(law, k, by, rubs, r, c):
    """∂effort of coordinate c along direction r by the parameters: `followed`, then the sum."""
    level = rubs[r, 2, c]
    if np.isnan(level):
        level = rubs[r, 1, c] if law[2, k] == law[1, k] else 0.0
    return (by[0] * rubs[r, 0, c] + by[1] * rubs[r, 1, c] + by[2] * level + by[3] * rubs[r, 3, c]
            + by[4] * rubs[r, 4, c])


@routine
def friction_changes(law, rubs, v, X, effort, change):
    """The effort of friction (states · nv) at rates v, and ∂ of it (directions, states, nv) along X (directions, 4,
    states, nv) and along parameters of the law, rubs (directions, 5, nv; or none).
    """
    directions, _, states, nv = X.shape
    for s in range(states):
        for c in range(nv):
            k = c if law.shape[1] > 1 else 0
            effort[s * nv + c], slope, by = friction_terms(law, k, v[s * nv + c])
            for r in range(directions):
                x = slope * X[r, 1, s, c]
                if rubs.shape[0] > 0:
                    x += friction_by(law, k, by, rubs, r, c)
                change[r, s, c] = x


@entry("void(float64[:, ::1], float64[:, :, ::1], float64[::1], float64[:, :, :, ::1], float64[::1], "
       "float64[:, :, ::1])", nogil=True)
def friction_changes_entry(law, rubs, v, X, effort, change):
    """As `friction_changes`."""
    friction_changes(law, rubs, v, X, effort, change)

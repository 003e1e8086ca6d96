"""How friction changes along directions: from the names of a `Tangent` to efforts."""
from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ...dynamics.friction import Friction, fitting
from ...errors import RbdError, unknown_name
from ...model.inertia import Array, finite
from ...model.robot_model import RobotModel

NAMES = tuple(field.name for field in fields(Friction))
COULOMB, BREAKAWAY = NAMES.index("coulomb"), NAMES.index("breakaway")


def friction_records(model: RobotModel, tangents: tuple[Any, ...]) -> Array | None:
    """∂ of every parameter of each coordinate's friction (directions, 5, nv); NaN where a breakaway is not named. None
    where no tangent names any.
    """
    if not any(tangent.friction for tangent in tangents):
        return None
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


def friction_change(model: RobotModel, friction: Friction, records: Array | None, v: Array, dv: Array) -> Array:
    """∂ of the effort of friction at v (…, nv), dv (directions, …, nv): of the shape of dv."""
    law = fitting(model, friction)
    out: Array = law.slope(v) * dv
    if records is None:
        return out
    changes = np.array(records)
    plain = np.isclose(law.breakaway, law.coulomb, rtol=0.0, atol=0.0) & np.ones(model.nv, dtype=bool)
    followed = np.where(plain, changes[:, COULOMB], 0.0)
    changes[:, BREAKAWAY] = np.where(np.isnan(changes[:, BREAKAWAY]), followed, changes[:, BREAKAWAY])
    for i, slope in enumerate(law.by_parameters(v)):
        out += changes[:, i].reshape(len(changes), *([1] * (v.ndim - 1)), model.nv) * slope
    return out


def not_asked() -> RbdError:
    """The error for friction that changes where none was given."""
    return RbdError("tangent.friction: this call has no friction that could change: give "
                    "friction=joint_friction(model)")

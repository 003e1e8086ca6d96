"""Constraint rows along directions: how a `Tangent` changes the packed constraints and contacts."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import RbdError, unknown_name
from ...lie import so3
from ...model.constraint_block import (
    CONSTANT, COUPLING, FIRST_TERM, KIND, POSE, POSITION_1, POSITION_2, ROTATION_1, ROTATION_2, START,
    TERM_COUNT, TERM_FIRST, TERM_OFFSET, TERM_RATIO,
)
from ...model.constraint_block import SIZE as ITEM_SIZE
from ...model.constraints import ConstraintSet, FixedContact, JointCoupling, bound_to
from ...model.inertia import Array, finite
from ...model.robot_model import RobotModel
from ...model.surfaces import contact_block
from ...model.surfaces.contacts import RollingContact, SlidingContact
from ..constrained import row_changes
from .model_change import mimic_map
from .tangent import Tangent, Tangents

POSE_ENDS = ((ROTATION_1, POSITION_1), (ROTATION_2, POSITION_2))
CONTACT_ENDS = ((contact_block.ROTATION_1, contact_block.POSITION_1), (contact_block.ROTATION_2,
                                                                       contact_block.POSITION_2))
CONSTRAINTS = ("predecessor_frames", "successor_frames", "constants", "terms")


def directional_rows(model: RobotModel, constraints: ConstraintSet, tangents: Tangents, q: Array, v: Array, a: Array,
                     X: Array) -> tuple[Array, Array]:
    """`row_changes` along tangents, at states whose arrays have a batch axis."""
    parts = [constraint_change(model, constraints, tangent, shifts) for tangent, shifts in zip(
        tangents.tangents, tangents.shifts, strict=True)]
    bound = bound_to(model, constraints)
    frames, contacts = (np.array([part[i] for part in parts]).reshape(len(parts), len(block))
                        for i, block in enumerate((bound.block, bound.contacts.block)))
    return row_changes(bound, q, v, a, X, tangents.start, tangents.models, frames, contacts)


def constraint_change(model: RobotModel, constraints: ConstraintSet, tangent: Tangent,
                      shifts: Array) -> tuple[Array, Array]:
    """∂ of the packed constraints and of the packed contacts along a tangent."""
    bound = bound_to(model, constraints)
    C, contacts = bound.block, bound.contacts.block
    out, contact_out = np.zeros(len(C)), np.zeros(len(contacts))
    remaining: dict[str, dict[str, Any]] = {kind: dict(getattr(tangent, kind)) for kind in CONSTRAINTS}
    o, k = START, contact_block.START
    for name, item in zip(constraints.names, constraints.constraints, strict=True):
        changes = {kind: values.pop(name) for kind, values in remaining.items() if name in values}
        if isinstance(item, RollingContact | SlidingContact):
            _frames_change(model, name, (item.first.link, item.second.link), changes, shifts, contacts, CONTACT_ENDS, k,
                           contact_out)
            k += contact_block.RECORD
        else:
            if int(C[o + KIND]) == POSE:
                ends: tuple[Any, Any] = ((None, item.link) if isinstance(item, FixedContact)
                                         else (getattr(item, "predecessor", None), getattr(item, "successor", None)))
                _frames_change(model, name, ends, changes, shifts, C, POSE_ENDS, o, out)
            elif int(C[o + KIND]) == COUPLING and isinstance(item, JointCoupling):
                _coupling_change(model, name, item, tangent, changes, C, o, out)
            o += int(C[o + ITEM_SIZE])
        if changes:
            raise RbdError(f"tangent: constraint '{name}' has no {', '.join(changes)}")
    for kind, values in remaining.items():
        if values:
            raise unknown_name(f"constraint in {kind}", next(iter(values)), constraints.names)
    return out, contact_out


def _frames_change(model: RobotModel, name: str, ends: tuple[Any, Any], changes: dict[str, Any], shifts: Array,
                   C: Array, places: tuple[tuple[int, int], tuple[int, int]], o: int, out: Array) -> None:
    """Write to `out` the ∂ of the two frames of the record at o."""
    for end, (R_at, p_at), kind in zip(ends, places, CONSTRAINTS[:2], strict=True):
        R, p = C[o + R_at:o + R_at + 9].reshape(3, 3), C[o + p_at:o + p_at + 3]
        dR, dp = np.zeros((3, 3)), np.zeros(3)
        if kind in changes:
            x = finite(changes.pop(kind), (6,), f"{kind}['{name}']")
            dR, dp = dR + R @ so3.hat(x[:3]), dp + R @ x[3:]
        if end in model._body_by_name:
            x = shifts[model.body_index(end)]
            dR, dp = dR + so3.hat(x[:3]) @ R, dp + np.cross(x[:3], p) + x[3:]
        out[o + R_at:o + R_at + 9], out[o + p_at:o + p_at + 3] = dR.reshape(-1), dp


def _coupling_change(model: RobotModel, name: str, item: JointCoupling, tangent: Tangent, changes: dict[str, Any],
                     C: Array, o: int, out: Array) -> None:
    if "constants" in changes:
        out[o + CONSTANT] = finite(changes.pop("constants"), (), f"constants['{name}']")
    terms = dict(changes.pop("terms", {}))
    mimics = {mimic.name: mimic for mimic in model.mimics}
    specs = {spec.name: spec for spec in model.description.joints}
    k = o + FIRST_TERM
    for joint in item.terms:
        count = int(C[k + TERM_COUNT])
        if joint in terms:
            x = np.atleast_1d(np.asarray(terms.pop(joint)))
            out[k + TERM_FIRST:k + TERM_FIRST + count] = finite(x, (count,), f"terms['{name}']['{joint}']")
        if joint in mimics and tangent.mimics:
            out[k + TERM_RATIO], out[k + TERM_OFFSET] = mimic_map(specs, joint, tangent.mimics)[2:]
        k += TERM_FIRST + count
    if terms:
        raise unknown_name(f"joint in terms['{name}']", next(iter(terms)), item.terms)


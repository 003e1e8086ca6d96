"""Directional derivatives of constraint rows: complex step (1e-30) of their kernel in all of its inputs."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled.entry import entry
from ...dynamics.constrained.rows import Motion, constraint_rows
from ...dynamics.contact.contact_rows import contact_changes
from ...dynamics.kinematics import _ACCEL, _ALPHA, _OMEGA, SIZE, node_motion
from ...errors import RbdError, unknown_name
from ...lie import so3
from ...model.block import integer, node_count, size_q, size_v
from ...model.constraint_block import (
    CONSTANT, COUPLING, FIRST_TERM, KIND, POSE, POSITION_1, POSITION_2, ROTATION_1, ROTATION_2, ROWS, START,
    TERM_COUNT, TERM_FIRST, TERM_OFFSET, TERM_RATIO,
)
from ...model.constraint_block import SIZE as ITEM_SIZE
from ...model.constraints import ConstraintSet, FixedContact, JointCoupling, bound_to
from ...imaginary_step import STEP, step_numbers, step_state
from ...model.inertia import Array, finite
from ...model.robot_model import RobotModel
from ...model.surfaces import contact_block
from ...model.surfaces.contacts import RollingContact, SlidingContact
from .model_change import following
from .tangent import Tangent, Tangents

POSE_ENDS = ((ROTATION_1, POSITION_1), (ROTATION_2, POSITION_2))
CONTACT_ENDS = ((contact_block.ROTATION_1, contact_block.POSITION_1), (contact_block.ROTATION_2,
                                                                       contact_block.POSITION_2))
CONSTRAINTS = ("predecessor_frames", "successor_frames", "constants", "terms")


@entry("void(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64[::1], "
       "float64[:, :, :, ::1], float64[:, :, :, ::1], float64[:, :, ::1])", nogil=True)
def row_changes_entry(B, C, dB, dC, q, v, a, X, A_out, b_out):
    """∂A (directions, states, m, nv) and ∂(A a + Ȧq̇) (directions, states, m) along X (directions, 4, states, nv), dB
    and dC.
    """
    nv = size_v(B)
    rows = integer(C, ROWS)
    model = np.empty(B.shape[0], dtype=np.complex128)
    constraints = np.empty(C.shape[0], dtype=np.complex128)
    x = np.empty(size_q(B), dtype=np.complex128)
    rates = np.empty(nv, dtype=np.complex128)
    acc = np.empty(nv, dtype=np.complex128)
    A = np.empty(rows * nv, dtype=np.complex128)
    f = np.empty(rows, dtype=np.complex128)
    b = np.empty(rows, dtype=np.complex128)
    W = np.empty(SIZE * node_count(B), dtype=np.complex128)
    motion = Motion(W, SIZE, W, SIZE, _OMEGA, _ALPHA, _ACCEL, 0.0)
    for r in range(X.shape[0]):
        step_numbers(B, 0, dB[r], model)
        step_numbers(C, 0, dC[r], constraints)
        for s in range(X.shape[2]):
            step_state(B, (q, v, a), s, X[r], (x, rates, acc))
            node_motion(model, x, 0, rates, acc, 0, 2, W)
            constraint_rows(model, constraints, (x, 0, rates, 0, acc, 0), motion, (W[:0], 0), 2, (A, f, b, 0))
            for i in range(rows):
                b_out[r, s, i] = b[i].imag / STEP
                for c in range(nv):
                    A_out[r, s, i, c] = A[i * nv + c].imag / STEP


def row_changes(model: RobotModel, constraints: ConstraintSet, tangents: Tangents, q: Array, v: Array, a: Array,
                X: Array) -> tuple[Array, Array]:
    """As the entry, of states whose arrays have a batch axis."""
    bound = bound_to(model, constraints)
    if bound.users:
        raise RbdError("derivatives of constrained dynamics: functions of a UserConstraint or "
                       "NonholonomicConstraint do not tell how they change")
    count, states = tangents.count, len(q)
    start, changes = tangents.start, tangents.models if len(tangents.models) else np.zeros((count, len(tangents.start)))
    of_constraints = [constraint_change(model, constraints, tangent, shifts) for tangent, shifts in zip(
        tangents.tangents, tangents.shifts, strict=True)]
    frames = np.array([change for change, _ in of_constraints]).reshape(count, len(bound.block))
    out = np.empty((count, states, bound.size, model.nv)), np.empty((count, states, bound.size))
    row_changes_entry.call(start, bound.block_alone, changes, frames, q.reshape(-1), v.reshape(-1), a.reshape(-1),
                           np.ascontiguousarray(X), *out)
    if bound.contacts.rows:
        frames = np.array([change for _, change in of_constraints]).reshape(count, len(bound.contacts.block))
        rows = contact_changes(bound, q, v, a, X, start, changes, frames)
        out[0][:, :, bound.contacts.at], out[1][:, :, bound.contacts.at] = rows[..., :model.nv], rows[..., model.nv]
    return out


def constraint_change(model: RobotModel, constraints: ConstraintSet, tangent: Tangent,
                      shifts: Array) -> tuple[Array, Array]:
    """∂ of the packed constraints, and of the packed contacts."""
    bound = bound_to(model, constraints)
    C, contacts = bound.block, bound.contacts.block
    out, contact_out = np.zeros(len(C)), np.zeros(len(contacts))
    left: dict[str, dict[str, Any]] = {what: dict(getattr(tangent, what)) for what in CONSTRAINTS}
    o, k = START, contact_block.START
    for name, item in zip(constraints.names, constraints.constraints, strict=True):
        mine = {what: values.pop(name) for what, values in left.items() if name in values}
        if isinstance(item, RollingContact | SlidingContact):
            _frames_change(model, name, (item.first.link, item.second.link), mine, shifts, contacts, CONTACT_ENDS, k,
                           contact_out)
            k += contact_block.RECORD
        else:
            if int(C[o + KIND]) == POSE:
                ends: tuple[Any, Any] = ((None, item.link) if isinstance(item, FixedContact)
                                         else (getattr(item, "predecessor", None), getattr(item, "successor", None)))
                _frames_change(model, name, ends, mine, shifts, C, POSE_ENDS, o, out)
            elif int(C[o + KIND]) == COUPLING and isinstance(item, JointCoupling):
                _coupling_change(model, name, item, tangent, mine, C, o, out)
            o += int(C[o + ITEM_SIZE])
        if mine:
            raise RbdError(f"tangent: constraint '{name}' has no {', '.join(mine)}")
    for what, values in left.items():
        if values:
            raise unknown_name(f"constraint in {what}", next(iter(values)), constraints.names)
    return out, contact_out


def _frames_change(model: RobotModel, name: str, ends: tuple[Any, Any], mine: dict[str, Any], shifts: Array,
                   C: Array, places: tuple[tuple[int, int], tuple[int, int]], o: int, out: Array) -> None:
    """∂ of the two frames of the record at o."""
    for end, (R_at, p_at), what in zip(ends, places, CONSTRAINTS[:2], strict=True):
        R, p = C[o + R_at:o + R_at + 9].reshape(3, 3), C[o + p_at:o + p_at + 3]
        dR, dp = np.zeros((3, 3)), np.zeros(3)
        if what in mine:
            x = finite(mine.pop(what), (6,), f"{what}['{name}']")
            dR, dp = dR + R @ so3.hat(x[:3]), dp + R @ x[3:]
        if end in model._body_by_name:
            x = shifts[model.body_index(end)]
            dR, dp = dR + so3.hat(x[:3]) @ R, dp + np.cross(x[:3], p) + x[3:]
        out[o + R_at:o + R_at + 9], out[o + p_at:o + p_at + 3] = dR.reshape(-1), dp


def _coupling_change(model: RobotModel, name: str, item: JointCoupling, tangent: Tangent, mine: dict[str, Any],
                     C: Array, o: int, out: Array) -> None:
    if "constants" in mine:
        out[o + CONSTANT] = finite(mine.pop("constants"), (), f"constants['{name}']")
    terms = dict(mine.pop("terms", {}))
    mimics = {mimic.name: mimic for mimic in model.mimics}
    specs = {spec.name: spec for spec in model.description.joints}
    k = o + FIRST_TERM
    for joint in item.terms:
        count = int(C[k + TERM_COUNT])
        if joint in terms:
            x = np.atleast_1d(np.asarray(terms.pop(joint)))
            out[k + TERM_FIRST:k + TERM_FIRST + count] = finite(x, (count,), f"terms['{name}']['{joint}']")
        if joint in mimics and tangent.mimics:
            out[k + TERM_RATIO], out[k + TERM_OFFSET] = following(specs, joint, tangent.mimics)[2:]
        k += TERM_FIRST + count
    if terms:
        raise unknown_name(f"joint in terms['{name}']", next(iter(terms)), item.terms)


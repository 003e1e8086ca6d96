"""Robots with loops: equations of motion without the loop-closing forces.

`M a + b = τ + Aᵀλ` times the tangents T of independent coordinates (`Mechanism`; K eq. 56) leaves `Tᵀ Y(q, v, a) π =
Tᵀ τ`: as many rows as the mechanism has degrees of freedom, each of one joint, a motor if possible.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..dynamics.constrained.mechanism import Index, Mechanism, independent_coordinates, without_contacts
from ..dynamics.constrained.projection import project
from ..dynamics.constrained.values import evaluate
from ..errors import RbdError
from ..model.constraints import ConstraintSet
from ..model.robot_model import RobotModel
from .recorded.recording import Recording

Array = NDArray[np.float64]
NEGLIGIBLE = 1e-7     # singular values of A, as a share of the largest
SINGULAR = 1e-3       # smallest relative singular value of A_d with well determined dependent joints
STRIDE = 0.3          # rad, m: between random states


@dataclass(frozen=True, eq=False)
class RecordedChain(Mechanism):
    """motors: velocity coordinates with efforts."""

    motors: Index

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Mask (nv,) of coordinates whose rows compare a motor with the model."""
        chosen = np.zeros(self.model.nv, dtype=bool)
        chosen[np.intersect1d(self.independent, self.motors)] = True
        return chosen

    def reduced(self, q: Array, value: Array) -> Array:
        """Tᵀ of a value (N, nv, k) at q (N, nq): rows of dependent coordinates are zero."""
        out = np.zeros_like(value)
        out[:, self.independent] = np.swapaxes(self.tangents(q)[0], 1, 2) @ value
        return out


def closed_chain(model: RobotModel, constraints: ConstraintSet,
                 recording: Recording) -> tuple[RecordedChain, Recording]:
    """The closed chain of a recording, and the recording completed to all joints: missing positions follow from the
    others, missing or constant efforts are zero. Raises `RbdError` if positions do not follow.
    """
    if not isinstance(constraints, ConstraintSet) or not constraints.size:
        raise RbdError("constraints: expected a ConstraintSet with at least one constraint")
    without_contacts("identification", model, constraints)
    complete = completed(model, constraints, recording)
    finite = np.isfinite(complete.tau)
    low, high = (f(np.where(finite, complete.tau, bad), axis=0) for f, bad in ((np.min, np.inf), (np.max, -np.inf)))
    motors = np.flatnonzero(finite.any(axis=0) & (high > low))
    if not len(motors):
        raise RbdError(f"{recording.source}: the efforts of all joints are constant: they are not measured")
    complete = with_motors(complete, motors)
    rows = np.flatnonzero(np.isfinite(complete.q).all(axis=1))
    if not len(rows):
        raise RbdError(f"{recording.source}: no row has finite positions")
    q = complete.q[rows[np.unique(np.linspace(0, len(rows) - 1, 200).astype(int))]]
    A = evaluate(model, constraints, q, np.zeros_like(q), np.zeros_like(q), 1).jacobian
    independent = independent_coordinates(model, A, np.isin(np.arange(model.nv), motors))
    chain = RecordedChain(model, constraints, independent, motors)
    sizes = np.linalg.svd(A[..., chain.dependent], compute_uv=False)
    if (sizes[:, -1:] < SINGULAR * sizes[:, :1]).any():
        names = ", ".join(model.velocity_names[j] for j in chain.dependent)
        raise RbdError(f"{recording.source}: it passes a singular position of the loops, where {names} do not follow "
                       "the other joints")
    return chain, complete


def with_motors(complete: Recording, motors: Index) -> Recording:
    """The recording with efforts of these coordinates only."""
    tau = np.zeros_like(complete.tau)
    tau[:, motors] = complete.tau[:, motors]
    return replace(complete, tau=tau)


def completed(model: RobotModel, constraints: ConstraintSet, recording: Recording) -> Recording:
    """The recording with a column per joint of the model; unrecorded positions follow from loop closure."""
    names = model.velocity_names
    if model.nq != model.nv or recording.joints is None or not set(recording.joints) & set(names):
        return recording.in_order_of(model)[0]
    n = len(recording.t)
    q, tau = np.full((n, model.nv), np.nan), np.full((n, model.nv), np.nan)
    for j, name in enumerate(names):
        if name in recording.joints:
            column = recording.joints.index(name)
            q[:, j], tau[:, j] = recording.q[:, column], recording.tau[:, column]
    unknown = np.flatnonzero(~np.isfinite(q).any(axis=0))
    tau[:, ~np.isfinite(tau).any(axis=0)] = 0.0
    if len(unknown):
        q = _solved(model, constraints, q, unknown, recording.source)
    return Recording(recording.t, q, tau=tau, joints=names, source=recording.source)


def _solved(model: RobotModel, constraints: ConstraintSet, q: Array, unknown: Index, source: str) -> Array:
    """q (N, nv) with its unknown columns, row by row from the neutral position on."""
    chain = Mechanism(model, constraints, np.setdiff1d(np.arange(model.nv), unknown))
    rows = np.flatnonzero(np.isfinite(q[:, chain.own]).all(axis=1))
    solved = chain.along(q[rows][:, chain.own], project(model, constraints, model.neutral()).q)
    bad = np.asarray(~np.isfinite(solved).all(axis=1))
    columns = chain.tangents(solved[~bad])[2][..., unknown]
    bad[~bad] = np.linalg.matrix_rank(columns, NEGLIGIBLE * np.abs(columns).max(initial=0.0)) < len(unknown)
    if bad.any():
        missing = ", ".join(model.velocity_names[j] for j in unknown)
        raise RbdError(f"{source}: the loops cannot be closed in row {rows[np.argmax(bad)]}, or not by {missing} "
                       "alone, whose positions were not recorded")
    out = q.copy()
    out[rows] = solved
    return out


def closed_states(model: RobotModel, constraints: ConstraintSet, count: int, speed: float,
                  acceleration: float) -> tuple[Array, Array, Array, list[Array]]:
    """q, v, a (N, nv) of random states on the constraint manifold, and an orthonormal basis (nv, k) of its tangent
    space at each; by a random walk from the neutral position, which keeps the assembly mode.
    """
    rng = np.random.default_rng(2012)
    q = project(model, constraints, model.neutral()).q
    states: list[tuple[Array, Array, Array, Array]] = []
    zero = np.zeros(model.nv)
    for _ in range(40 * count):
        A = evaluate(model, constraints, q, zero, zero, 1).jacobian
        _, sizes, V = np.linalg.svd(A)
        rank = int(np.sum(sizes > NEGLIGIBLE * max(float(sizes[0]), 1e-300)))
        N = V[rank:].T
        if not N.shape[1]:
            raise RbdError("constraints: they leave no motion")
        v = N @ (speed * rng.normal(size=N.shape[1]))
        bias = evaluate(model, constraints, q, v, zero, 2).acceleration
        a = N @ (acceleration * rng.normal(size=N.shape[1])) - np.linalg.pinv(A, rcond=NEGLIGIBLE) @ bias
        if rank and sizes[rank - 1] > SINGULAR * sizes[0]:
            states.append((q, v, a, N))
        if len(states) == count:
            break
        try:
            q = project(model, constraints, model.integrate(q, STRIDE * (N @ rng.normal(size=N.shape[1])))).q
        except RbdError:    # end of the range: try another direction
            continue
    widths = [N.shape[1] for *_, N in states]
    regular = [state for state in states if state[3].shape[1] == min(widths)]
    if len(regular) < count // 2:
        raise RbdError("constraints: random states of the closed loops cannot be found")
    return (*(np.stack([state[k] for state in regular]) for k in range(3)), [state[3] for state in regular])    # type: ignore

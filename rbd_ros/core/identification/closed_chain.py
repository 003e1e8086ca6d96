"""Robots with loops: equations of motion without the loop-closing forces.

`M a + b = τ + Aᵀλ` times a basis G of the null space of A (K eq. 56) leaves `Gᵀ Y(q, v, a) π = Gᵀ τ`: as many rows as
the mechanism has degrees of freedom. G is chosen so that rows belong to joints: `G = [1; −A_d⁺ A_i]`, with independent
joints i, motors if possible, and dependent joints d.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..dynamics.constrained.projection import project
from ..dynamics.constrained.values import evaluate
from ..errors import RbdError
from ..model.constraints import ConstraintSet
from ..model.robot_model import RobotModel
from .recorded.recording import Recording

Array = NDArray[np.float64]
NEGLIGIBLE = 1e-7     # singular values of A, as a share of the largest
SINGULAR = 1e-3       # smallest relative singular value of A_d with well determined dependent joints
CLOSED = 1e-10        # m, rad: residual of f
ITERATIONS = 20
STEPS = 40            # from the neutral position to the first sample
STRIDE = 0.3          # rad, m: between random states


@dataclass(frozen=True, eq=False)
class ClosedChain:
    """independent, dependent: velocity coordinates; motors: coordinates with efforts."""

    model: RobotModel
    constraints: ConstraintSet
    independent: NDArray[np.int64]
    dependent: NDArray[np.int64]
    motors: NDArray[np.int64]

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Mask (nv,) of coordinates whose rows compare a motor with the model."""
        chosen = np.zeros(self.model.nv, dtype=bool)
        chosen[np.intersect1d(self.independent, self.motors)] = True
        return chosen

    def reduced(self, q: Array, value: Array) -> Array:
        """Gᵀ of a value (N, nv, k) at q (N, nq): rows of dependent coordinates are zero."""
        A = evaluate(self.model, self.constraints, q, np.zeros_like(value[..., 0]), np.zeros_like(value[..., 0]),
                     1).jacobian
        N = -np.linalg.pinv(A[..., self.dependent], rcond=1e-6) @ A[..., self.independent]
        out = np.zeros_like(value)
        out[:, self.independent] = value[:, self.independent] + np.swapaxes(N, 1, 2) @ value[:, self.dependent]
        return out


def closed_chain(model: RobotModel, constraints: ConstraintSet, recording: Recording) -> tuple[ClosedChain, Recording]:
    """The closed chain of a recording, and the recording completed to all joints: missing positions follow from the
    others, missing or constant efforts are zero. Raises `RbdError` if positions do not follow.
    """
    if not isinstance(constraints, ConstraintSet) or not constraints.size:
        raise RbdError("constraints: expected a ConstraintSet with at least one constraint")
    if constraints.bound(model).contacts.rows:
        raise RbdError(f"identification: rolling and sliding contacts "
                       f"({', '.join(constraints.bound(model).contacts.names)}) are not supported: what rolls has no "
                       "positions that follow from those of the motors")
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
    rank = int(np.linalg.matrix_rank(A, tol=None if not A.size else NEGLIGIBLE * np.abs(A).max()).max())
    if rank >= model.nv:
        raise RbdError("constraints: they leave no motion")
    dependent = _dependent(A, rank, motors)
    sizes = np.linalg.svd(A[..., dependent], compute_uv=False)
    if rank and (sizes[:, -1] < SINGULAR * sizes[:, 0]).any():
        names = ", ".join(model.velocity_names[j] for j in dependent)
        raise RbdError(f"{recording.source}: it passes a singular position of the loops, where {names} do not follow "
                       "the other joints")
    independent = np.setdiff1d(np.arange(model.nv), dependent)
    chain = ClosedChain(model, constraints, independent, dependent, motors)
    return chain, complete


def with_motors(whole: Recording, motors: NDArray[np.int64]) -> Recording:
    """The recording with efforts of these coordinates only."""
    tau = np.zeros_like(whole.tau)
    tau[:, motors] = whole.tau[:, motors]
    return Recording(whole.t, whole.q, whole.v, whole.a, tau=tau, joints=whole.joints, source=whole.source)


def _dependent(A: Array, rank: int, motors: NDArray[np.int64]) -> NDArray[np.int64]:
    """Dependent joints at all these positions, joints without motors first."""
    from scipy.linalg import qr

    nv = A.shape[-1]
    weight = np.ones(nv)
    weight[motors] = 1e-3    # chosen only if the others do not suffice
    chosen = qr(A.reshape(-1, nv)[:, :] * weight, mode="r", pivoting=True)[1] if rank else np.zeros(0, int)
    best, score = np.sort(chosen[:rank]), -1.0
    for j in range(len(A)):    # columns independent over all positions may be dependent at each one
        trial = np.sort(qr(A[j] * weight, mode="r", pivoting=True)[1][:rank])
        sizes = np.linalg.svd(A[..., trial], compute_uv=False)
        worst = float((sizes[:, -1] / sizes[:, 0]).min()) if rank else 1.0
        passive = len(np.setdiff1d(trial, motors))
        if passive + worst > score:
            best, score = trial, passive + worst
    return best.astype(np.int64)


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


def _solved(model: RobotModel, constraints: ConstraintSet, q: Array, unknown: NDArray[np.int64],
            source: str) -> Array:
    """Solve for the unknown columns of q (N, nv), row by row from the neutral position on."""
    known = np.setdiff1d(np.arange(model.nv), unknown)
    position = project(model, constraints, model.neutral()).q
    out = q.copy()
    first = True
    for i in np.flatnonzero(np.isfinite(q[:, known]).all(axis=1)):
        far = np.abs(q[i, known] - position[known]).max(initial=0.0)
        steps = STEPS if first else max(1, int(np.ceil(far / STRIDE)))
        begin = position[known].copy()
        for k in range(1, steps + 1):
            position[known] = begin + (q[i, known] - begin) * k / steps
            if not _close(model, constraints, position, unknown):
                missing = ", ".join(model.velocity_names[j] for j in unknown)
                raise RbdError(f"{source}: the loops cannot be closed in row {i}, or not by {missing} alone, whose "
                               "positions were not recorded")
        first = False
        out[i, unknown] = position[unknown]
    return out


def _close(model: RobotModel, constraints: ConstraintSet, q: Array, unknown: NDArray[np.int64]) -> bool:
    """Newton's method in the unknown columns of q (nv,), in place; False if the loops do not close."""
    zero = np.zeros_like(q)
    for _ in range(ITERATIONS):
        rows = evaluate(model, constraints, q, zero, zero, 1)
        A = rows.jacobian[:, unknown]
        step, _, rank, _ = np.linalg.lstsq(A, -rows.value, rcond=NEGLIGIBLE)
        if rank < len(unknown):
            return False
        q[unknown] += step * min(1.0, STRIDE / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < CLOSED:
            return bool(np.abs(rows.value).max() < 1e-6)
    return False


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

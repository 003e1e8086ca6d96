"""Forward dynamics under constraints: K eq. 67–69, by ABA (`constrained_recursion`).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import RbdError, shown
from ...model.constraints import ConstraintSet, bound_to
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import States, node_wrenches, shaped
from ...compiled.door import where_suited
from ..contact.contact_rows import contact_rows_entry
from ..forward import solve_mass_matrix
from ..friction import Friction, left_over
from ..inverse import bias_effort
from ..bodies.joint_wrenches import Loaded
from ..mass_matrix import mass_matrix
from ..singular import singular
from .constraint_wrenches import carry
from .given import given_rows
from .minimum_norm import minimum_norm_entry
from .recursion import (
    ALPHA, BETA, CONDITION, DAMPING, EXCESS, INFO, RANK, RESIDUAL, SCALE, constrained_entry, constrained_forward_entry,
    residuals_entry,
)
from .values import evaluate, warn_of_gap

_NO_MASK = np.empty(0, dtype=bool)
_NO_OPTIONS = np.zeros(3)
_new = tuple.__new__    # a NamedTuple's `__new__` is a Python function, half as fast


class _ConstrainedForward(NamedTuple):
    acceleration: Array
    multipliers: Array
    rank: Any
    residual: Any
    condition: Any


class ConstrainedForward(_ConstrainedForward, Loaded):
    """`acceleration` (nv,) and `multipliers` λ (m,) of `M a + b = τ + Aᵀλ`; `rank` (int), the
    number of independent constraints; `residual`, the largest remaining |A a + Ȧq̇| (plus Baumgarte terms); and
    `condition`, the ratio of the largest to the smallest pivot used (up to 1e8): large in nearly singular poses, and
    for nominally parallel axes of a loop that are not exactly parallel. A batch adds an axis. Optional:
    `joint_wrenches`.
    """


def _one_state(model: RobotModel, constraints: ConstraintSet, q: Any, v: Any, tau: Any, damping: float,
               baumgarte: Any) -> ConstrainedForward | None:
    """Result for unvalidated inputs of one state; None or `UNSUITED` if another path must compute or refuse them."""
    bound = bound_to(model, constraints)
    if bound.users:
        return None
    options = _NO_OPTIONS if damping == 0.0 and baumgarte is None else solver_options(damping, baumgarte)
    nv = efforts = model.nv
    if bound.contacts.rows:
        efforts = 2 * nv
        rows = np.empty(bound.contacts.rows * (nv + 2))
        out = np.empty(efforts + bound.size + INFO)
        if (contact_rows_entry.call(model._block, bound.contacts.block, q, v, model._zeros, 1, rows) != -1
                or constrained_entry.call(model._block, bound.block, q, v, v, tau, _NO_MASK, bound.none_given, rows,
                                          options, 1, out) != 0):
            return None
    else:
        out = np.empty(nv + bound.size + INFO)
        if constrained_forward_entry.call(model._block, bound.block, q, v, tau, options, bound.work, out) != 0:
            return None
    rank, residual, _, condition, excess = out[-INFO:].tolist()
    if not (excess <= 1.0 or damping > 0.0):
        return None
    if constraints.unseen and baumgarte is None:
        warn_of_gap(model, constraints, q)
    return _new(ConstrainedForward, (out[:nv], out[efforts:-INFO], int(rank), residual, condition))


def constrained_forward_dynamics(model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike,
                                 tau: ArrayLike, *, external_wrenches: Any = None, damping: float = 0.0,
                                 baumgarte: float | Sequence[float] | None = None,
                                 friction: Friction | None = None,
                                 joint_wrenches: bool | None = None) -> ConstrainedForward:
    """Accelerations and constraint forces under joint efforts tau (nv,) or (N, nv) at (q, v): K eq. 67–69.

    O(n) + O(m³). The state should satisfy the constraints (`project`). With redundant constraints the accelerations are
    those of a minimal set, the multipliers those of least norm (SI units). Raises `RbdError` with rank and residual if
    dependent rows contradict each other (a singular pose in motion). damping μ, relative to the largest singular value
    of M^-½ Aᵀ (try 1e-3): solves `(A M⁻¹ Aᵀ + μ² max) λ = …` instead: bounded multipliers near singular poses, with a
    residual, which is returned. baumgarte: (α, β) in 1/s, or a time T in s for α = β = 1/T: imposes
    f̈ + 2α ḟ + β² f = 0. external_wrenches, friction and the other errors as in `forward_dynamics`.
    joint_wrenches=True adds the joint wrenches to the result, loads by the multipliers included.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> found = rbd.constrained_forward_dynamics(model, loop, np.zeros(5), np.zeros(5), [20, 0, 0, 20, 0])
        >>> found.acceleration.shape, found.multipliers.shape
        ((5,), (3,))
    """
    if external_wrenches is None and friction is None and joint_wrenches is None:
        quick = where_suited(_one_state, model, constraints, q, v, tau, damping, baumgarte)
        if quick is not None:
            return quick    # type: ignore[no-any-return]
    bound_to(model, constraints)
    if friction is not None:
        tau = left_over(model, friction, v, tau)
    options = solver_options(damping, baumgarte)
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "tau": tau})
    solved = solve(model, constraints, inputs, None, _NO_MASK, external_wrenches, options)
    result = ConstrainedForward(solved[0], *solved[2:])
    if joint_wrenches:
        carry(result, model, constraints, inputs.arrays[0], inputs.arrays[1], external_wrenches)
    return result


def solver_options(damping: float, baumgarte: float | Sequence[float] | None) -> Array:
    """Options of the kernel from arguments of the public functions; `RbdError` for invalid ones."""
    options = np.zeros(3)
    options[DAMPING] = damping
    if baumgarte is not None:
        try:
            pair = np.asarray(baumgarte, dtype=float)
            if pair.ndim == 0 and pair > 0.0:
                pair = np.array([1.0 / pair, 1.0 / pair])
            options[ALPHA], options[BETA] = pair
        except (TypeError, ValueError, OverflowError):
            options[ALPHA] = np.nan
    if not np.isfinite(options[:2]).all() or (options[:2] < 0.0).any():
        raise RbdError(f"baumgarte is {shown(baumgarte)}, expected (α, β) in 1/s, not negative, or a positive time in "
                       "s")
    if not 0.0 <= options[DAMPING] < 1.0:
        raise RbdError(f"damping is {shown(damping)}, expected a number of 0 … 1, such as 1e-3")
    return options


def solve(model: RobotModel, constraints: ConstraintSet, inputs: States, a: Array | None, mask: NDArray[np.bool_],
          external_wrenches: Any, options: Array) -> tuple[Array, Array, Array, Any, Any, Any]:
    """Acceleration, effort, multipliers, rank, residual, condition of checked states. a: None without a mask."""
    bound = bound_to(model, constraints)
    q, v, _ = inputs.arrays
    inputs.check_values()
    out = np.empty(inputs.count * (2 * model.nv + bound.size + INFO))
    acceleration, effort, multipliers, info = _parts(out, inputs.batch, model.nv, model.nv, bound.size, INFO)
    if model.mimics:
        _dense(model, constraints, inputs, a, mask, external_wrenches, options,
               (acceleration, effort, multipliers, info))
    else:
        status = constrained_entry.call(
            model._block, bound.block, q.reshape(-1), v.reshape(-1), (v if a is None else a).reshape(-1),
            inputs.flat[2], mask, node_wrenches(model, external_wrenches, inputs.batch), given_rows(bound, q, v),
            options, inputs.count, out)
        if status > 0:
            raise inputs.beyond_numbers() or singular(model, status - 1)
        if status < 0:
            inputs.finite(acceleration=acceleration, multipliers=multipliers)
            inputs.finite(effort=effort[..., mask] if len(mask) else np.zeros(0))
    bad = ~(info[..., EXCESS] <= 1.0)
    if options[DAMPING] == 0.0 and bad.any():
        index = int(np.argmax(bad))
        raise contradiction(model, constraints, info.reshape(-1, INFO)[index], mask,
                            "" if inputs.batch is None else f"state {index}: ")
    if constraints.unseen and not options[ALPHA] and not options[BETA]:
        warn_of_gap(model, constraints, q)
    if inputs.batch is None:
        return acceleration, effort, multipliers, int(info[RANK]), float(info[RESIDUAL]), float(info[CONDITION])
    return acceleration, effort, multipliers, info[:, RANK].astype(int), info[:, RESIDUAL], info[:, CONDITION]


def _parts(out: Array, batch: int | None, *sizes: int) -> list[Array]:
    """Consecutive parts of a flat array, of `sizes` numbers per state."""
    parts, start = [], 0
    for size in sizes:
        end = start + (size if batch is None else batch * size)
        parts.append(out[start:end] if batch is None else out[start:end].reshape(batch, size))
        start = end
    return parts


def _dense(model: RobotModel, constraints: ConstraintSet, inputs: States, a: Array | None, mask: NDArray[np.bool_],
           external_wrenches: Any, options: Array, out: tuple[Array, Array, Array, Array]) -> None:
    """`solve` by the mass matrix, for models with mimic joints: into out."""
    q, v, tau = (np.atleast_2d(array) for array in inputs.arrays)
    is_prescribed = mask if len(mask) else np.zeros(model.nv, dtype=bool)
    free = ~is_prescribed
    M = mass_matrix(model, q)
    bias = np.atleast_2d(bias_effort(model, inputs.arrays[0], inputs.arrays[1], external_wrenches))
    start = np.zeros_like(v) if a is None else np.where(is_prescribed, np.atleast_2d(a), 0.0)
    residual = (tau - bias - (M @ start[..., None])[..., 0])[:, free]
    if free.any():
        start[:, free] = solve_mass_matrix(model, M[:, free][:, :, free], residual[..., None])[..., 0]
    f, A, b = evaluate(model, constraints, q, v, start)
    b = b + 2.0 * options[ALPHA] * (A @ v[..., None])[..., 0] + options[BETA] ** 2 * f
    acceleration, effort, multipliers, info = (np.atleast_2d(array) for array in out)
    for s in range(inputs.count):
        L = np.linalg.cholesky(M[s][np.ix_(free, free)])
        Z = np.ascontiguousarray(np.linalg.solve(L, A[s][:, free].T).T) if free.any() else np.zeros((len(b[s]), 0))
        lam, condition = multipliers[s], np.ones(1)
        info[s, RANK] = minimum_norm_entry(Z, b[s], float(options[DAMPING]), lam, condition)
        acceleration[s] = start[s]
        acceleration[s, free] += np.linalg.solve(L.T, Z.T @ lam)
        load = A[s].T @ lam
        effort[s] = np.where(is_prescribed, M[s] @ acceleration[s] + bias[s] - load, tau[s])
        residuals_entry.call(A[s].reshape(-1), b[s], start[s], acceleration[s], info[s])
        info[s, CONDITION] = condition[0]
    inputs.finite(acceleration=out[0], effort=out[1], multipliers=out[2])


def contradiction(model: RobotModel, constraints: ConstraintSet, info: Array, mask: NDArray[np.bool_] = _NO_MASK,
                  where: str = "") -> RbdError:
    """Error for accelerations that contradict the constraints, from the kernel's `info`."""
    text = (f"{where}the constraints ({', '.join(constraints.names)}) of model '{model.name}' cannot be met: rank "
            f"{int(info[RANK])} of {constraints.size} rows, residual {info[RESIDUAL]:.3g} of terms of "
            f"{info[SCALE]:.3g}. ")
    if mask.any():
        names = ", ".join(np.asarray(model.velocity_names)[mask].tolist())
        return RbdError(f"{text}The accelerations prescribed at {names} contradict the constraints or the pose is "
                        "singular: prescribe fewer, or accelerations with A a + Ȧq̇ = 0")
    return RbdError(f"{text}Rows contradict each other (a singular pose, or a state off the constraints: `project`), "
                    "or small ones are lost beside those in other units; damping=1e-3 gives the nearest solution")



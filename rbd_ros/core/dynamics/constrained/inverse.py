"""Inverse dynamics under constraints, K eq. 56–66, for any number of actuators by one singular value decomposition.

`A_pᵀ λ = τ_pr − τ_p` over the passive coordinates (K eq. 57) has the solutions `λ₀ + N s` with λ₀ of least norm and N
the null space of A_pᵀ: empty for just enough actuators (eq. 58), complete if every joint is actuated (eq. 66), and any
s for redundant actuators (eq. 59–64). Without a solution there are too few actuators.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import RbdError, shown, unknown_name
from ...model.constraints import ConstraintSet
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import States, states
from ..friction import Friction, left_over
from ..hybrid import prescribed_mask
from ..bodies.joint_wrenches import Loaded
from ..inverse import inverse_dynamics
from ..mass_matrix import mass_matrix
from .constraint_wrenches import carry
from .least_effort import OutOfLimits, least_effort
from .values import evaluate, warn_of_gap

MINIMIZE = ("multipliers", "effort")
RANK_TOLERANCE = 1e-8    # of the largest singular value of A
CONSISTENT = 1e-8         # accepted residual relative to the largest terms
NEGLIGIBLE = 1e-9         # always accepted residual (m/s², rad/s²); of efforts: times the largest M_ii


class _ConstrainedInverse(NamedTuple):
    effort: Array
    multipliers: Array
    rank: Any
    residual: Any


class ConstrainedInverse(_ConstrainedInverse, Loaded):
    """`effort` (nv,), passive ones as given, and `multipliers` λ (m,) of `M a + b = τ + Aᵀλ`; `rank` of A_p, the
    constraints' columns of passive coordinates (int); `residual`: largest remaining passive effort. A batch adds an
    axis. Optional: `joint_wrenches`.
    """


class Particular(NamedTuple):
    """Solution of least ‖λ‖ (K eq. 59) and the null space; a batch adds an axis to all but `mask`.

    `reference` (nv,): efforts without constraints and friction. `A_a` (n_a, m), `null` (m, m): A_aᵀ, and the projector
    onto the null space of A_pᵀ. `scale`: norm of A. `friction`: of the joints, beyond what they carry, or None.
    """

    inputs: States
    mask: NDArray[np.bool_]
    reference: Array
    tau_p: Array
    A_a: Array
    null: Array
    scale: Array
    multipliers: Array
    rank: Any
    residual: Any
    friction: Friction | None

    def effort(self, multipliers: Array) -> Array:
        """All efforts (nv,) at the multipliers λ (m,): K eq. 60."""
        effort = np.array(self.reference)
        effort[..., self.mask] -= _times(self.A_a, multipliers)
        if self.friction is not None:
            effort = self.friction.add(self.inputs.arrays[1], effort)
        return np.where(self.mask, effort, self.tau_p)


def constrained_inverse_dynamics(model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike,
                                 a: ArrayLike, actuated: ArrayLike | Sequence[str], minimize: str = "multipliers",
                                 weights: ArrayLike | None = None, passive_effort: ArrayLike | None = None, *,
                                 preferred_effort: ArrayLike | None = None, effort_limit: ArrayLike | None = None,
                                 external_wrenches: Any = None, friction: Friction | None = None,
                                 check_acceleration: bool = True,
                                 joint_wrenches: bool = False) -> ConstrainedInverse:
    """Efforts of the actuated coordinates that give accelerations a (nv,) or (N, nv) at (q, v): K eq. 56–66.

    actuated: mask (nv,) bool, or names of joints or coordinates. minimize, for redundant actuators: "multipliers",
    least ‖λ‖ (SI units), or "effort", least Σ w_i (τ_i − p_i)² over the actuated ones, and of equal efforts the least
    ‖λ‖; weights w (nv,) or one per actuated coordinate, positive (default 1); preferred_effort p likewise, of any sign
    (default 0; also per state of a batch); effort_limit likewise, not negative, inf for none: exact bounds
    |τ_i| ≤ limit, by a small quadratic programme. passive_effort (nv,) or (N, nv): efforts of the passive coordinates
    (springs), 0 by default; other entries are ignored. friction as in `inverse_dynamics`; actuators also overcome the
    friction of passive joints. Least efforts are not supported with load-dependent friction.

    All solutions: `constrained_inverse_solutions`. Raises `RbdError` if a contradicts the constraints (unless
    check_acceleration is off), if the actuators cannot produce it, naming rank, actuated joints and residual, or not
    within the limits, naming the coordinate. joint_wrenches=True adds the joint wrenches to the result, loads by the
    multipliers included.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> motors = ["left_shoulder", "right_shoulder"]
        >>> found = rbd.constrained_inverse_dynamics(model, loop, np.zeros(5), np.zeros(5), np.zeros(5), motors)
        >>> int(np.count_nonzero(found.effort.round(9)))    # the motors alone
        2
    """
    if minimize not in MINIMIZE:
        raise unknown_name("quantity to minimize", minimize, MINIMIZE)
    p = particular(model, constraints, q, v, a, actuated, passive_effort, external_wrenches, check_acceleration,
                   friction)
    lam = p.multipliers
    if minimize == "effort":
        root = np.sqrt(_per_actuated(model, weights, p.mask, "weights", 1.0, positive, "positive numbers"))
        wanted = _per_actuated(model, preferred_effort, p.mask, "preferred_effort", 0.0, np.isfinite, "numbers",
                               p.inputs.batch)
        if friction is not None:
            friction.without_load("the choice of least efforts (minimize='effort')")
        start = p.effort(lam)[..., p.mask]
        if effort_limit is None:
            free, _, _ = _pseudoinverse(root[:, None] * (p.A_a @ p.null), p.scale * root.max(initial=0.0))
            lam = lam + _times(p.null @ free, root * (start - wanted))
        else:
            limit = _per_actuated(model, effort_limit, p.mask, "effort_limit", np.inf, lambda x: x >= 0.0,
                                  "numbers that are not negative")
            lam = lam + _within(model, p, start, root, wanted, limit)
    elif not (weights is None and preferred_effort is None and effort_limit is None):
        raise RbdError("weights, preferred_effort and effort_limit are those of efforts: they need minimize='effort'")
    effort = p.effort(lam)
    p.inputs.finite(effort=effort, multipliers=lam)
    result = (ConstrainedInverse(effort, lam, int(p.rank), float(p.residual)) if p.inputs.batch is None
              else ConstrainedInverse(effort, lam, p.rank, p.residual))
    if joint_wrenches:
        q, v, a = p.inputs.arrays[:3]
        carry(result, model, constraints, q, v, external_wrenches, a)
    return result


def particular(model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike, a: ArrayLike,
               actuated: ArrayLike | Sequence[str], passive_effort: ArrayLike | None, external_wrenches: Any,
               check_acceleration: bool, friction: Friction | None = None) -> Particular:
    """K eq. 56–59; arguments and errors as in `constrained_inverse_dynamics`."""
    mask = prescribed_mask(model, actuated)
    passive = ~mask
    inputs = states(model, positions={"q": q}, rates={
        "v": v, "a": a, "passive_effort": model._zeros if passive_effort is None else passive_effort})
    q, v, a, tau_p = inputs.arrays
    f, A, f_ddot = evaluate(model, constraints, q, v, a)
    reference = inverse_dynamics(model, q, v, a, external_wrenches)
    carried = tau_p if friction is None else left_over(model, friction, v, tau_p)
    if check_acceleration:
        _check_consistent(model, constraints, f_ddot, A, a)

    scale = np.linalg.norm(A, axis=(-2, -1))
    A_a, A_p = (np.swapaxes(A[..., columns], -1, -2) for columns in (mask, passive))    # transposed
    residual = (reference - carried)[..., passive]
    inverse, null, rank = _pseudoinverse(A_p, scale)
    lam = _times(inverse, residual)
    remaining = np.abs(_times(A_p, lam) - residual).max(axis=-1, initial=0.0)
    size = (np.abs(reference) + np.abs(carried)).max(axis=-1, initial=0.0)
    heaviest = np.diagonal(mass_matrix(model, q), axis1=-2, axis2=-1).max(axis=-1, initial=0.0)
    bad = ~(remaining <= CONSISTENT * size + NEGLIGIBLE * heaviest)
    if bad.any():
        index = int(np.argmax(bad))
        raise _too_few(model, mask, int(np.atleast_1d(rank)[index]), float(np.atleast_1d(remaining)[index]),
                       "" if inputs.batch is None else f"state {index}: ")
    if constraints.unseen:
        warn_of_gap(model, constraints, q, f)
    return Particular(inputs, mask, reference, tau_p, A_a, null, np.asarray(scale), lam, rank, remaining, friction)


def _within(model: RobotModel, p: Particular, start: Array, root: Array, wanted: Array, limit: Array) -> Array:
    """Increment of the multipliers (m,) or (N, m) for least efforts within the limits."""
    out = np.zeros_like(p.multipliers)
    if not limit.size:
        return out
    flat = [x.reshape(-1, *x.shape[x.ndim - axes:]) for x, axes in ((p.A_a, 2), (p.null, 2), (start, 1), (out, 1))]
    targets = np.broadcast_to(wanted, start.shape).reshape(flat[2].shape)
    zero = RANK_TOLERANCE * root.max(initial=0.0) * p.scale.reshape(-1)
    for i, (A_a, null, start_i, lam, target) in enumerate(zip(*flat, targets, strict=True)):
        try:
            lam[:] = null @ least_effort(start_i, -A_a @ null, root, target, limit, float(zero[i]))
        except OutOfLimits as out_of:
            name = np.asarray(model.velocity_names)[p.mask][out_of.row]
            where = "" if p.inputs.batch is None else f"state {i}: "
            raise RbdError(f"{where}model '{model.name}': no efforts within effort_limit give these accelerations; the "
                           f"least ones have '{name}' beyond its limit of {limit[out_of.row]:.6g} by "
                           f"{out_of.excess:.3g}. Actuate more joints, or ask for less acceleration") from None
        except (np.linalg.LinAlgError, RuntimeError, ValueError) as error:
            raise RbdError(f"constrained inverse dynamics: {error}: the state is beyond what floating point numbers "
                           "hold") from None
    return out


def _times(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0])


def _pseudoinverse(B: Array, scale: Any) -> tuple[Array, Array, Any]:
    """Pseudoinverse, projector onto the null space, and rank, by singular values relative to `scale`."""
    rows, columns = B.shape[-2:]
    if rows == 0 or columns == 0:
        eye = np.broadcast_to(np.eye(columns), (*B.shape[:-2], columns, columns))
        return np.swapaxes(B, -1, -2), eye, np.zeros(B.shape[:-2], dtype=int)
    try:
        U, s, Vt = np.linalg.svd(B, full_matrices=False)
    except np.linalg.LinAlgError as error:
        raise RbdError(f"constrained inverse dynamics: {error}: the state is beyond what floating point numbers "
                       "hold") from None
    is_regular = s > RANK_TOLERANCE * np.asarray(scale)[..., None]
    s_inv = np.where(is_regular, 1.0 / np.where(is_regular, s, 1.0), 0.0)
    V = np.swapaxes(Vt, -1, -2)
    null = np.eye(columns) - (V * is_regular[..., None, :]) @ Vt
    return (V * s_inv[..., None, :]) @ np.swapaxes(U, -1, -2), null, is_regular.sum(axis=-1)


def _per_actuated(model: RobotModel, value: ArrayLike | None, mask: NDArray[np.bool_], name: str, default: float,
                  allowed: Callable[[Array], Any], kind: str, batch: int | None = None) -> Array:
    """One number per actuated coordinate, (n_a,), or (N, n_a) for values per state of a batch; `RbdError` otherwise."""
    count = int(mask.sum())
    if value is None:
        return np.full(count, default)
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.shape[-1:] == (model.nv,):
        array = array[..., mask]
    shapes = ((count,),) if batch is None else ((count,), (batch, count))
    if array.shape not in shapes or np.isnan(array).any() or not np.asarray(allowed(array)).all():
        raise RbdError(f"{name}: expected ({model.nv},) or ({count},) {kind}, one per coordinate or per "
                       f"actuated one, got {shown(value)}")
    return array


def positive(x: Array) -> Any:
    return (x > 0.0) & np.isfinite(x)


def _check_consistent(model: RobotModel, constraints: ConstraintSet, f_ddot: Array, A: Array, a: Array) -> None:
    """Raise `RbdError` unless A a + Ȧq̇ = 0, relative to its terms |A| |a| and to the row's largest possible one."""
    largest = (2.0 * _times(np.abs(A), np.abs(a)) + np.abs(f_ddot)).max(axis=-1, initial=0.0, keepdims=True)
    row_scale = 2.0 * np.abs(A).sum(axis=-1) * np.abs(a).max(axis=-1, initial=0.0, keepdims=True) + np.abs(f_ddot)
    bound = CONSISTENT * np.minimum(largest, row_scale) + NEGLIGIBLE
    bad = ~(np.abs(f_ddot) <= bound)
    if bad.any():
        row = int(np.argmax(bad.reshape(-1, bad.shape[-1]).any(axis=0)))
        worst = float(np.abs(f_ddot).max())
        raise RbdError(f"the accelerations contradict the constraints of model '{model.name}': A a + Ȧq̇ should vanish, "
                       f"residual {worst:.3g}, first at {constraints.row_names[row]}")


def _too_few(model: RobotModel, mask: NDArray[np.bool_], rank: int, residual: float, where: str) -> RbdError:
    names = ", ".join(np.asarray(model.velocity_names)[mask].tolist()) or "none"
    return RbdError(f"{where}model '{model.name}' is under-actuated here: the constraints carry the passive efforts in "
                    f"{rank} of {int((~mask).sum())} directions (rank of A_p), residual {residual:.3g}. Actuated: "
                    f"{names}. Actuate more joints, or prescribe the actuated ones only "
                    "(`constrained_hybrid_dynamics`)")

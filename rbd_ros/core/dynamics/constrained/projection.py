"""Projection of states to the manifold f(q) = 0, A v = 0: Newton steps of least norm on the group."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError
from ...model.constraints import ConstraintSet, bound_to
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import states
from ..forward import solve_mass_matrix
from ..mass_matrix import mass_matrix
from .minimum_norm import minimum_norm_entry
from .values import ConstraintRows, evaluate

TOLERANCE = 1e-12     # of the largest |f|
ACCEPTED = 1e-9       # accepted |f| when Newton's method no longer reduces it: rounding
ITERATIONS = 100
LONGEST = 0.5         # largest step (rad, m)
HALVINGS = 12         # of a step that does not reduce |f|


class Projected(NamedTuple):
    """Positions (nq,) and velocities (nv,), or a batch of them, that satisfy the constraints."""

    q: Array
    v: Array


def project(model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike | None = None, *,
            mass_weighted: bool = False) -> Projected:
    """The state near (q, v) with f(q) = 0 to 1e-12 (m, rad) and A v = 0; v (nv,), zero by default. Also (N, …).

    Positions: damped Gauss–Newton steps −A⁺ f by `model.integrate`, A of the holonomic constraints; quaternions stay
    normalised. Velocities: v − A⁺ A v for all constraints, the least change in Σ v_i² (SI units), or with mass_weighted
    in the kinetic energy, as by an impulse of the constraints. Raises `RbdError` naming the constraint with the largest
    violation if Newton's method does not converge, and for wrong input.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> q, v = rbd.project(model, loop, [0.1, 0.0, 0.0, 0.0, 0.0])
        >>> bool(np.abs(rbd.constraint_values(model, loop, q)).max() < 1e-12)
        True
    """
    inputs = states(model, positions={"q": q}, rates={"v": getattr(model, "_zeros", ()) if v is None else v})
    q, v = inputs.arrays
    if inputs.batch is not None:
        pairs = [project(model, constraints, x, y, mass_weighted=mass_weighted) for x, y in zip(q, v, strict=True)]
        return Projected(np.reshape([p.q for p in pairs], q.shape), np.reshape([p.v for p in pairs], v.shape))
    if bound_to(model, constraints).size == 0:
        return Projected(q.copy(), v.copy())
    q, rows = nearest(model, constraints, q)
    A, root = rows.jacobian, _root_of_mobility(model, q) if mass_weighted else None
    return Projected(*inputs.finite(q=q, v=v - _least_change(A, A @ v, root)))


def nearest(model: RobotModel, constraints: ConstraintSet, q: Array, mass_weighted: bool = False
            ) -> tuple[Array, ConstraintRows]:
    """Positions near q (nq,) with f(q) = 0, and the rows there; mass_weighted: steps as by impulses at q."""
    root = _root_of_mobility(model, q) if mass_weighted else None
    rows = evaluate(model, constraints, q, model._zeros, model._zeros, 1)
    holonomic = bound_to(model, constraints).holonomic
    size = _norm(rows.value)
    for _ in range(ITERATIONS):
        if np.abs(rows.value).max() <= TOLERANCE:
            return q.copy(), rows
        step = -_least_change(rows.jacobian[holonomic], rows.value[holonomic], root)
        step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
        for _ in range(HALVINGS):
            new_q = model.integrate(q, step)
            new = evaluate(model, constraints, new_q, model._zeros, model._zeros, 1)
            new_size = _norm(new.value)
            if new_size < size:
                break
            step *= 0.5
        else:
            break
        q, rows, size = new_q, new, new_size
    if not np.abs(rows.value).max() <= ACCEPTED:
        worst = int(np.argmax(np.abs(rows.value)))
        raise RbdError(f"projection onto the constraints of model '{model.name}' does not converge: "
                       f"{constraints.row_names[worst]} stays off by {abs(rows.value[worst]):.3g}. Start closer to a "
                       "configuration that closes them, or check their frames")
    return q, rows


def _root_of_mobility(model: RobotModel, q: Array) -> Array:
    """R (nv, nv) with R Rᵀ = M⁻¹ at q (nq,)."""
    M, one = mass_matrix(model, q), np.eye(model.nv)
    solve_mass_matrix(model, M, one[:, :0])    # raises for a singular one
    return np.asarray(np.linalg.solve(np.linalg.cholesky(M).T, one))


def _least_change(A: Array, c: Array, root: Array | None) -> Array:
    """The x (nv,) with A x = c (m,) and the least xᵀ M x, or |x| without `_root_of_mobility`."""
    if root is None:
        return np.asarray(A.T @ least_norm(A, c))
    Z = A @ root
    return np.asarray(root @ (Z.T @ least_norm(Z, c)))


def least_norm(Z: Any, c: Array) -> Array:
    """`(Z Zᵀ)⁺ c` for Z (m, n)."""
    out = np.empty(len(c))
    minimum_norm_entry.call(np.ascontiguousarray(Z), np.ascontiguousarray(-c), 0.0, out, np.empty(1))
    return out


def _norm(f: Array) -> float:
    norm = float(np.sqrt(f @ f))
    return norm if np.isfinite(norm) else np.inf

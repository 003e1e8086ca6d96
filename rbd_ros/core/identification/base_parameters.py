"""Base parameters: the identifiable combinations of inertial parameters.

The regressor of many random states has a null space: changes of parameters without effect on efforts. Its complement
has the dimension `rank`. A greedy choice of independent columns, in the order of the parameters, gives every other
column as a combination of them, `Y_d = Y_b K`, and so the base parameters `π_b + K π_d` (Gautier, Khalil 1990).
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RbdError, shown
from ..model.constraints import ConstraintSet
from ..model.inertia import read_only
from ..model.robot_model import RobotModel
from ..model.state import not_a_model
from .closed_chain import closed_states
from .regressor_columns import columns_of, full_regressor, parameter_names
from .transmission import CoupledMotors

Array = NDArray[np.float64]
NEGLIGIBLE = 1e-9     # singular values of unit columns: rounding gives 1e-14, identifiable parameters 1e-5
DEPENDENT = 1e-7      # residual of a column after projection on the others
SPEED, ACCELERATION = 3.0, 10.0    # of the random states, to balance gravity, velocities and accelerations


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The identifiable parameters of a model: `values = matrix @ θ`.

    rank: number of base parameters. names (rank,): combinations, e.g. `ixx(link_3) − iyy(link_3) + 0.05 m(link_4)`.
    matrix (rank, P): combinations as rows. parameter_names (P,): of θ, ten per body in the order of
    `inertial_parameters`, then rotors (and friction) if requested. independent (rank,): columns of the regressor that
    form the base regressor. unidentifiable: parameters without effect in any combination.
    """

    rank: int
    names: tuple[str, ...]
    matrix: Array
    parameter_names: tuple[str, ...]
    independent: NDArray[np.int64]
    unidentifiable: tuple[str, ...]

    def values(self, parameters: ArrayLike) -> Array:
        """The base parameters (rank,) of parameters θ (P,)."""
        theta = np.asarray(parameters, dtype=np.float64)
        if theta.shape != (self.matrix.shape[1],) or not np.isfinite(theta).all():
            raise RbdError(f"parameters: expected {self.matrix.shape[1]} finite numbers, got {shown(parameters)}")
        return self.matrix @ theta

    def __repr__(self) -> str:
        return f"BaseParameters: rank {self.rank} of {len(self.parameter_names)}\n  " + "\n  ".join(self.names)


def base_parameters(model: RobotModel, *, constraints: ConstraintSet | None = None, rotors: bool = False,
                    friction: bool = False) -> BaseParameters:
    """The combinations of the model's parameters that efforts depend on, for its tree, gravity and any motion.

    constraints: for motions under constraints, such as closed loops; each joint may have a motor. rotors: include
    rotor inertias. friction: include viscous and Coulomb friction and offsets. Raises `RbdError` for a model without
    joints.

        >>> model = rbd.sample("two_link")
        >>> rbd.base_parameters(model).rank
        6
    """
    if not isinstance(model, RobotModel):
        raise not_a_model(model)
    kinds = ["inertial", *(["rotor"] if rotors else []),
              *(["viscous", "coulomb", "offset"] if friction else [])]
    if not model.nv:
        raise RbdError(f"model '{model.name}' has no joints: nothing can be identified")
    chosen = np.concatenate([np.arange(len(parameter_names(model)))[columns_of(model, kind)] for kind in kinds])
    return structural_base(model, chosen, constraints)


def structural_base(model: RobotModel, chosen: NDArray[np.int64],
                    constraints: ConstraintSet | None = None, coupled: CoupledMotors | None = None) -> BaseParameters:
    """Base parameters of these columns of θ, with all others known. coupled: motors on more than one joint."""
    coupled = coupled or CoupledMotors.none(model.nv)
    if constraints is None:
        return _structural_base(model, tuple(int(i) for i in chosen), coupled.names, tuple(map(tuple, coupled.rows)))
    q, v, a, tangents = closed_states(model, constraints, max(2 * len(chosen), 20) + 10, SPEED, ACCELERATION)
    Y = _sliding_regressor(model, q, v, a, coupled)[..., chosen]
    names = parameter_names(model, coupled.names)
    return base_of(np.concatenate([N.T @ rows for N, rows in zip(tangents, Y, strict=True)]),
                   tuple(names[i] for i in chosen))


@lru_cache(maxsize=8)    # for successive recordings of one arm
def _structural_base(model: RobotModel, columns: tuple[int, ...], motors: tuple[str, ...],
                     rows: tuple[tuple[float, ...], ...]) -> BaseParameters:
    chosen = np.array(columns, dtype=np.int64)
    names = parameter_names(model, motors)
    coupled = CoupledMotors(motors, np.array(rows).reshape(-1, model.nv), np.zeros(3 * len(motors)))
    q, v, a = random_states(model, max(2 * len(chosen) // model.nv, 20) + 10)
    W = _sliding_regressor(model, q, v, a, coupled)[..., chosen].reshape(-1, len(chosen))
    return base_of(W, tuple(names[i] for i in chosen))


def _sliding_regressor(model: RobotModel, q: Array, v: Array, a: Array, coupled: CoupledMotors) -> Array:
    """Regressor with Coulomb friction smoothed enough not to be constant."""
    return full_regressor(model, q, v, a, np.tanh(2.0 * np.concatenate([v, v @ coupled.rows.T], axis=1)), coupled)


def with_columns(base: BaseParameters, names: tuple[str, ...]) -> BaseParameters:
    """The base extended by columns that are independent of all others."""
    k, (rank, p) = len(names), base.matrix.shape
    matrix = np.zeros((rank + k, p + k))
    matrix[:rank, :p], matrix[rank:, p:] = base.matrix, np.eye(k)
    return BaseParameters(rank + k, base.names + names, read_only(matrix), base.parameter_names + names,
                          np.concatenate([base.independent, p + np.arange(k)]), base.unidentifiable)


def random_states(model: RobotModel, count: int) -> tuple[Array, Array, Array]:
    """q, v, a of random states, the same in every call; limits are irrelevant for identifiability."""
    rng = np.random.default_rng(2012)
    q = np.stack([model.integrate(model.neutral(), rng.uniform(-2.0, 2.0, model.nv)) for _ in range(count)])
    return q, SPEED * rng.normal(size=(count, model.nv)), ACCELERATION * rng.normal(size=(count, model.nv))


def base_of(W: Array, names: tuple[str, ...]) -> BaseParameters:
    """Base parameters of a regressor W (rows, P) with these column names."""
    lengths = np.linalg.norm(W, axis=0)
    effective = np.flatnonzero(lengths > NEGLIGIBLE * max(float(lengths.max(initial=0.0)), 1e-300))
    scale = lengths[effective]
    _, sizes, V = np.linalg.svd(W[:, effective] / scale, full_matrices=False)
    rank = int(np.sum(sizes > NEGLIGIBLE * sizes[0])) if len(sizes) else 0
    space = V[:rank]    # rows: an orthonormal basis of the row space
    independent = _independent(space, rank)
    K = np.linalg.solve(space[:, independent], space) if rank else np.zeros((0, len(effective)))
    K[np.abs(K) < DEPENDENT] = 0.0
    matrix = np.zeros((rank, W.shape[1]))
    matrix[:, effective] = K * scale / scale[independent][:, None]
    matrix[np.abs(matrix) < 1e-12] = 0.0
    matrix[np.arange(rank), effective[independent]] = 1.0
    unseen = tuple(name for name, column in zip(names, matrix.T, strict=True) if not column.any())
    return BaseParameters(rank, tuple(_combination(row, names, int(effective[i])) for row, i in
                                      zip(matrix, independent, strict=True)),
                          read_only(matrix), names, effective[independent], unseen)


def _independent(space: Array, rank: int) -> NDArray[np.int64]:
    """The first columns independent of their predecessors; if numerically unclear, by QR with pivoting."""
    residual, chosen = space.copy(), []
    for j in range(space.shape[1]):
        size = np.linalg.norm(residual[:, j])
        if size > DEPENDENT * 10.0 and size > 1e-4 * np.linalg.norm(space[:, j]):
            direction = residual[:, j] / size
            residual -= np.outer(direction, direction @ residual)
            chosen.append(j)
    if len(chosen) != rank:
        from scipy.linalg import qr

        chosen = sorted(qr(space, pivoting=True, mode="r")[1][:rank])
    return np.array(chosen, dtype=np.int64)


def _combination(row: Array, names: tuple[str, ...], first: int) -> str:
    """`ixx(a) − iyy(a) + 0.05 m(b)`."""
    words = [names[first]]
    for j in np.flatnonzero(row):
        if j != first:
            size = abs(row[j])
            factor = "" if abs(size - 1.0) < 1e-9 else f"{size:.4g} "
            words.append(f"{'−' if row[j] < 0.0 else '+'} {factor}{names[j]}")
    return " ".join(words)

"""Partial and time derivatives of inverse and forward dynamics as requests."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core.derivatives.forward import forward_dynamics_derivatives
from ...core.derivatives.inverse import inverse_dynamics_derivatives
from ...core.derivatives.time_derivatives import forward_dynamics_time_derivatives, inverse_dynamics_time_derivatives
from ...core.dynamics.friction import Friction
from ...core.errors import RbdError
from ...core.model.inertia import Array
from ...core.model.robot_model import RobotModel
from .naming import Coordinates, check_mode

INVERSE, FORWARD = range(2)
MODES = ("INVERSE", "FORWARD")
MOST_ROWS = 32    # largest number of rows (31st time derivative), to bound memory and time


class PartialDerivatives(NamedTuple):
    """Derivatives (nv, nv) of efforts (INVERSE) or accelerations (FORWARD): rows are outputs, columns are inputs."""

    name: tuple[str, ...]
    by_position: Array
    by_velocity: Array
    by_input: Array


class TimeDerivatives(NamedTuple):
    """Efforts (INVERSE) or accelerations (FORWARD) and their time derivatives: (rows, nv), the lowest order first."""

    name: tuple[str, ...]
    rows: int
    output: Array


def partial_derivatives(model: RobotModel, coordinates: Coordinates, q: Array, v: Array, mode: int,
                        name: Sequence[str], values: ArrayLike,
                        wrenches: Mapping[str, Array] | None, friction: Friction | None) -> PartialDerivatives:
    """Partial derivatives at (q, v) and the accelerations (INVERSE) or efforts (FORWARD) of the named coordinates."""
    check_mode(mode, MODES)
    derive = (inverse_dynamics_derivatives, forward_dynamics_derivatives)[mode]
    parts = derive(model, q, v, coordinates.vector("input", name, values), wrenches or {},    # {}: one kernel for both
                   friction=friction)
    return PartialDerivatives(coordinates.names, *parts)


def time_derivatives(model: RobotModel, coordinates: Coordinates, q: Array, v: Array, mode: int,
                     name: Sequence[str], rows: int, values: ArrayLike, friction: Friction | None) -> TimeDerivatives:
    """Time derivatives at (q, v) from `rows` rows: accelerations, jerks, … (INVERSE), or efforts and their derivatives
    (FORWARD).
    """
    check_mode(mode, MODES)
    if not 1 <= rows <= MOST_ROWS:
        raise RbdError(f"rows is {rows}, expected 1 (no time derivative) to {MOST_ROWS}")
    derive = (inverse_dynamics_time_derivatives, forward_dynamics_time_derivatives)[mode]
    inputs = coordinates.rows("input", name, rows, values)
    return TimeDerivatives(coordinates.names, rows, derive(model, q, v, *inputs, friction=friction))


def warm_up(model: RobotModel, q: Array) -> None:
    """Load or compile the code of these requests."""
    zero = np.zeros(model.nv)
    inverse_dynamics_derivatives(model, q, zero, zero, {})
    forward_dynamics_derivatives(model, q, zero, zero, {})
    inverse_dynamics_time_derivatives(model, q, zero, zero, zero)
    inverse_dynamics_time_derivatives(model, q, zero, zero, zero, zero)    # a kernel of its own
    forward_dynamics_time_derivatives(model, q, zero, zero)

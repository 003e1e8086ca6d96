"""What a fit may change: bodies about those of the description, and numbers per joint within bounds."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..derivatives.regressor import PARAMETERS
from ..errors import RbdError, unknown_name
from ..model.robot_model import RobotModel
from .consistency import IDENTITY, REACH, SIZE, body_map, parameters_of_pseudo_inertia, prior_factor
from .linear_fit import Rows
from .regressor_columns import PER_JOINT, columns_of, motor_columns, parameters_of, rigid_groups
from .transmission import PER_MOTOR, CoupledMotors

Array = NDArray[np.float64]
MODES = ("full", "payload", "friction")
LOAD = 0.5               # kg: a prior of a load of which nothing is known
LOAD_SPREAD = 3.0        # how much wider than for a body of the description
SLOWEST = 0.1            # rad/s, rad/s², m/s, m/s²: slower joints show nothing
JOINT_SPREAD = 3.0       # of rotor, friction and offset, in what would make the whole effort


@dataclass(frozen=True, eq=False)
class Unknowns:
    """bodies: per body its name, its first column in θ and its prior factor; scalars: columns of the numbers per
    joint; theta (P,): the known rest, with the prior in the unknown ones. spread: how far
    bodies may be from the prior. notes: priors that were mended.
    """

    bodies: tuple[tuple[str, int, Array], ...]
    scalars: NDArray[np.int64]
    lower: Array
    start: Array
    scalar_spread: Array
    spread: float
    theta: Array
    notes: tuple[str, ...]
    load: bool = False

    @property
    def columns(self) -> NDArray[np.int64]:
        """Columns of θ that are unknown."""
        bodies = [np.arange(at, at + PARAMETERS) for _, at, _ in self.bodies]
        return np.concatenate([*bodies, self.scalars]).astype(np.int64)

    @property
    def matrix(self) -> Array:
        """The unknown part of θ, in the order of `columns`, is this times coordinates: ten per body, then scalars."""
        count = SIZE * len(self.bodies)
        out = np.eye(count + len(self.scalars))
        for k, (_, _, factor) in enumerate(self.bodies):
            out[SIZE * k:SIZE * (k + 1), SIZE * k:SIZE * (k + 1)] = body_map(factor)
        return out

    @property
    def prior(self) -> Array:
        """The unknown part of θ that the fit begins with."""
        parts = [body_map(factor) @ IDENTITY for _, _, factor in self.bodies]
        return np.concatenate([*parts, self.start])


def unknowns(model: RobotModel, rows: Rows, mode: str, body: str | None, rotors: bool, friction: bool,
             still: tuple[int, ...] = (), motors: CoupledMotors | None = None) -> Unknowns:
    """Of a mode; `RbdError` for one that is none, or a payload on no body. Of joints that stand still only the offset
    is unknown.
    """
    if mode not in MODES:
        raise unknown_name("mode", mode, MODES)
    if (mode == "payload") != (body is not None):
        raise RbdError("body: the mode \"payload\", and only this one, needs the body that carries the load")
    motors = motors or CoupledMotors.none(model.nv)
    theta = np.concatenate([parameters_of(model), motors.parameters])
    notes: list[str] = []
    bodies: list[tuple[str, int, Array]] = []
    felt = np.abs(rows.X).reshape(-1, rows.X.shape[-1]).max(axis=0) > 0.0
    if mode == "payload":
        at = PARAMETERS * model.body_index(str(body))
        if not felt[at:at + PARAMETERS].any():
            raise RbdError(f"body '{body}' does not move: a load on it is not felt")
        ball = parameters_of_pseudo_inertia(np.diag([LOAD * REACH**2 / 5.0] * 3 + [LOAD]))
        bodies = [(str(body), at, prior_factor(ball)[0])]
    elif mode == "full":
        bodies = _bodies(model, theta, felt, notes)
    wanted = [*(["rotor"] if rotors and mode == "full" else []),
              *(["viscous", "coulomb", "offset"] if friction else [])]
    moving = np.setdiff1d(np.arange(model.nv), still)
    scalars = np.concatenate([np.zeros(0, dtype=np.int64), *(
        columns_of(model, what).start + (np.arange(model.nv) if what == "offset" else moving) for what in wanted),
        *(motor_columns(model, len(motors.names), what).start + np.flatnonzero(motors.rows[:, moving].any(axis=1))
          for what in wanted if what in PER_MOTOR)]).astype(np.int64)
    size = np.sqrt(np.mean(rows.y**2, axis=0))    # of each joint's effort
    spread = []
    for what in PER_JOINT:
        column = np.sqrt(np.mean(np.stack([rows.X[:, j, columns_of(model, what).start + j] for j in range(model.nv)])
                                 ** 2, axis=1))
        spread.append(JOINT_SPREAD * np.maximum(size, 1e-9) / np.maximum(column, SLOWEST))
    for what in PER_MOTOR:
        column = rows.X[..., motor_columns(model, len(motors.names), what)]
        felt_by = np.where(motors.rows.T != 0.0, np.maximum(size, 1e-9)[:, None], 0.0).max(axis=0)
        spread.append(JOINT_SPREAD * felt_by / np.maximum(np.sqrt(np.mean(column**2, axis=0)).max(axis=0), SLOWEST))
    per_joint = np.concatenate([np.zeros(PARAMETERS * len(model.body_names)), *spread])
    offsets = columns_of(model, "offset")
    lower = np.where((scalars >= offsets.start) & (scalars < offsets.stop), -np.inf, 0.0)
    return Unknowns(tuple(bodies), scalars, lower, theta[scalars], per_joint[scalars],
                    LOAD_SPREAD if mode == "payload" else 1.0, theta, tuple(notes), mode == "payload")


def _bodies(model: RobotModel, theta: Array, felt: NDArray[np.bool_],
            notes: list[str]) -> list[tuple[str, int, Array]]:
    """Of each moving body the heaviest link, which takes the change; others fixed to it stay as they are."""
    found = []
    usual = model.total_mass / max(len(model.body_names), 1) or 1.0
    for leader, links in rigid_groups(model.description).items():
        heaviest = max(links, key=lambda name: (model.description.links[name].mass, name == leader))
        at = PARAMETERS * model.body_index(heaviest)
        own = slice(at, at + PARAMETERS)
        if not felt[own].any():
            continue
        prior = theta[own].copy()
        if not prior[0] > 0.0:
            prior = np.zeros(PARAMETERS)
            prior[0] = usual
            notes.append(f"link '{heaviest}' has no mass in the description: the fit starts from a ball of {usual:.3g} "
                         "kg")
            mended = False
            factor, _ = prior_factor(prior)
        else:
            factor, mended = prior_factor(prior)
        if mended:
            notes.append(f"link '{heaviest}' has an inertia that no body can have: the fit starts from a mended one")
        found.append((heaviest, at, factor))
    return found

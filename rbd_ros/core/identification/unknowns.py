"""Unknowns of a fit: bodies near those of the description, and bounded values per joint."""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..derivatives.regressor import PARAMETERS
from ..errors import RbdError, unknown_name
from ..model.robot_model import RobotModel
from .consistency import IDENTITY, REACH, SIZE, body_map, parameters_of_pseudo_inertia, prior_factor
from .drive_friction import KINDS, DriveTerms
from .linear_fit import Rows
from .regressor_columns import PER_JOINT, columns_of, motor_columns, parameters_of, rigid_groups
from .transmission import PER_MOTOR, CoupledMotors

Array = NDArray[np.float64]
MODES = ("full", "payload", "friction")
LOAD = 0.5               # kg: prior mass of an unknown load
LOAD_SPREAD = 3.0        # spread of its prior relative to a body of the description
SLOWEST = 0.1            # rad/s, rad/s², m/s, m/s²: slower joints give no information
JOINT_SPREAD = 3.0       # spread of rotor, friction and offset, relative to the value that explains the whole effort


@dataclass(frozen=True, eq=False)
class Unknowns:
    """bodies: per body its name, its first column in θ and its prior factor; scalars: columns of the numbers per
    joint; theta (P,): the known parameters, and the prior of the unknown ones. spread: of bodies about the prior.
    notes: corrected priors.
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
        bodies = [np.arange(first, first + PARAMETERS) for _, first, _ in self.bodies]
        return np.concatenate([*bodies, self.scalars]).astype(np.int64)

    @property
    def matrix(self) -> Array:
        """Matrix from coordinates (ten per body, then scalars) to the unknown part of θ in the order of `columns`."""
        count = SIZE * len(self.bodies)
        out = np.eye(count + len(self.scalars))
        for k, (_, _, factor) in enumerate(self.bodies):
            out[SIZE * k:SIZE * (k + 1), SIZE * k:SIZE * (k + 1)] = body_map(factor)
        return out

    @property
    def prior(self) -> Array:
        """Prior of the unknown part of θ."""
        parts = [body_map(factor) @ IDENTITY for _, _, factor in self.bodies]
        return np.concatenate([*parts, self.start])

    def with_heights(self, model: RobotModel, joints: NDArray[np.int64]) -> Unknowns:
        """The unknowns with a further column per joint: the height of friction near rest above the Coulomb level."""
        k, p = len(joints), len(self.theta)
        coulomb = columns_of(model, "coulomb").start
        spread = {int(column): value for column, value in zip(self.scalars, self.scalar_spread, strict=True)}
        return replace(self, scalars=np.concatenate([self.scalars, p + np.arange(k)]).astype(np.int64),
                       lower=np.concatenate([self.lower, np.zeros(k)]), start=np.concatenate([self.start, np.zeros(k)]),
                       scalar_spread=np.concatenate([self.scalar_spread, [spread[coulomb + int(j)] for j in joints]]),
                       theta=np.concatenate([self.theta, np.zeros(k)]))

    def with_drive_terms(self, model: RobotModel, terms: DriveTerms) -> Unknowns:
        """The unknowns with a further column per term."""
        k, p = len(terms.terms), len(self.theta)
        spread = {int(column): value for column, value in zip(self.scalars, self.scalar_spread, strict=True)}
        near = {"asymmetry": "coulomb", "viscous_asymmetry": "viscous"}
        more = [spread[columns_of(model, near[KINDS[kind]]).start + j] if KINDS[kind] in near else 1.0
                for kind, j in terms.terms]
        lower = [0.0 if KINDS[kind] == "load" else -np.inf for kind, _ in terms.terms]
        return replace(self, scalars=np.concatenate([self.scalars, p + np.arange(k)]).astype(np.int64),
                       lower=np.concatenate([self.lower, lower]), start=np.concatenate([self.start, np.zeros(k)]),
                       scalar_spread=np.concatenate([self.scalar_spread, more]),
                       theta=np.concatenate([self.theta, np.zeros(k)]))


def unknowns(model: RobotModel, rows: Rows, mode: str, body: str | None, rotors: bool, friction: bool,
             still: tuple[int, ...] = (), driven: NDArray[np.int64] | None = None,
             coupled: CoupledMotors | None = None) -> Unknowns:
    """The unknowns of a mode; raises `RbdError` for an invalid mode, or a payload without a body. Joints at rest have
    only an offset as unknown; joints without motor, not in `driven` (None: all have one), neither rotor nor offset.
    coupled: motors on more than one joint.
    """
    if mode not in MODES:
        raise unknown_name("mode", mode, MODES)
    if (mode == "payload") != (body is not None):
        raise RbdError("body: the mode \"payload\", and only this one, needs the body that carries the load")
    coupled = coupled or CoupledMotors.none(model.nv)
    theta = np.concatenate([parameters_of(model), coupled.parameters])
    notes: list[str] = []
    bodies: list[tuple[str, int, Array]] = []
    effective = np.abs(rows.X).reshape(-1, rows.X.shape[-1]).max(axis=0) > 0.0
    if mode == "payload":
        first = PARAMETERS * model.body_index(str(body))
        if not effective[first:first + PARAMETERS].any():
            raise RbdError(f"body '{body}' does not move: a load on it has no effect")
        ball = parameters_of_pseudo_inertia(np.diag([LOAD * REACH**2 / 5.0] * 3 + [LOAD]))
        bodies = [(str(body), first, prior_factor(ball)[0])]
    elif mode == "full":
        bodies = _bodies(model, theta, effective, notes)
    kinds = [*(["rotor"] if rotors and mode == "full" else []),
              *(["viscous", "coulomb", "offset"] if friction else [])]
    driven = np.arange(model.nv) if driven is None else driven
    moving = np.setdiff1d(np.arange(model.nv), still)
    joints = {"rotor": np.intersect1d(moving, driven), "viscous": moving, "coulomb": moving, "offset": driven}
    turning = np.flatnonzero(coupled.rows[:, moving].any(axis=1))
    scalars = np.concatenate([
        np.zeros(0), *(columns_of(model, kind).start + joints[kind] for kind in kinds),
        *(motor_columns(model, len(coupled.names), kind).start + turning for kind in kinds if kind in PER_MOTOR)
    ]).astype(np.int64)
    size = np.sqrt(np.mean(rows.y**2, axis=0))    # RMS of each joint's effort
    size = np.where(rows.measured.any(axis=0), size, size.max())
    spread = []
    for kind in PER_JOINT:
        column = np.sqrt(np.mean(np.stack([rows.X[:, j, columns_of(model, kind).start + j] for j in range(model.nv)])
                                 ** 2, axis=1))
        spread.append(JOINT_SPREAD * np.maximum(size, 1e-9) / np.maximum(column, SLOWEST))
    for kind in PER_MOTOR:
        column = np.sqrt(np.mean(rows.X[..., motor_columns(model, len(coupled.names), kind)] ** 2, axis=0)).max(axis=0)
        effort_size = np.where(coupled.rows.T != 0.0, np.maximum(size, 1e-9)[:, None], 0.0).max(axis=0)
        spread.append(JOINT_SPREAD * effort_size / np.maximum(column, SLOWEST))
    per_joint = np.concatenate([np.zeros(PARAMETERS * len(model.body_names)), *spread])
    offsets = columns_of(model, "offset")
    lower = np.where((scalars >= offsets.start) & (scalars < offsets.stop), -np.inf, 0.0)
    return Unknowns(tuple(bodies), scalars, lower, theta[scalars], per_joint[scalars],
                    LOAD_SPREAD if mode == "payload" else 1.0, theta, tuple(notes), mode == "payload")


def _bodies(model: RobotModel, theta: Array, effective: NDArray[np.bool_],
            notes: list[str]) -> list[tuple[str, int, Array]]:
    """The heaviest link of each moving body, the one identified; other links fixed to it are unchanged."""
    bodies = []
    mean = model.total_mass / max(len(model.body_names), 1) or 1.0
    for leader, links in rigid_groups(model.description).items():
        heaviest = max(links, key=lambda name: (model.description.links[name].mass, name == leader))
        first = PARAMETERS * model.body_index(heaviest)
        columns = slice(first, first + PARAMETERS)
        if not effective[columns].any():
            continue
        prior = theta[columns].copy()
        if not prior[0] > 0.0:
            prior = np.zeros(PARAMETERS)
            prior[0] = mean
            notes.append(f"link '{heaviest}' has no mass in the description: the fit starts from a ball of {mean:.3g} "
                         "kg")
            corrected = False
            factor, _ = prior_factor(prior)
        else:
            factor, corrected = prior_factor(prior)
        if corrected:
            notes.append(f"link '{heaviest}' has an inertia that no body can have: the fit starts from a corrected one")
        bodies.append((heaviest, first, factor))
    return bodies

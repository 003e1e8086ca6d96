"""Motors that move several joints: the coupled wrists of many industrial arms, differentials, belts over joints.

The motors' velocities are `θ̇ = R q̇`, and their torques act on the joints as `Rᵀ τ_m` (power is conserved). Rotor and
friction of a motor on more than one joint act on all its joints: with the row r of R, scaled to a largest entry of ±1,
`τ = rᵀ (I_r (r a) + d (r v) + c tanh(r v / s))`. Parameters per joint cannot represent that.
"""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics.friction import SMOOTHING, Friction
from ..errors import RbdError, shown, unknown_name
from ..model.files.yaml_text import read_yaml
from ..model.inertia import read_only
from ..model.robot_model import RobotModel
from .recorded.recording import Recording

Array = NDArray[np.float64]
PER_MOTOR = ("rotor", "viscous", "coulomb")


@dataclass(frozen=True, eq=False)
class CoupledMotors:
    """The k motors on more than one joint of a model. rows (k, nv): scaled rows of R in the model's order. parameters
    (3·k,): rotors, viscous and Coulomb friction, reflected to the joint with the entry of ±1.
    """

    names: tuple[str, ...]
    rows: Array
    parameters: Array

    @classmethod
    def none(cls, nv: int) -> CoupledMotors:
        """No motors on more than one joint."""
        return cls((), np.zeros((0, nv)), np.zeros(0))

    def regressor(self, v: Array, a: Array, slip: Array) -> Array:
        """∂τ/∂parameters, (N, nv, 3·k); slip (N, k): `tanh(r v / s)`."""
        motion = np.concatenate([a @ self.rows.T, v @ self.rows.T, slip], axis=1)
        columns: Array = motion[:, None, :] * np.tile(self.rows.T, 3)
        return columns

    def effort(self, v: Array, a: Array, smoothing: float) -> Array:
        """Effort of the motors at the joints, (N, nv)."""
        joint_effort: Array = self.regressor(
            v, a, Friction(coulomb=1.0, smoothing=smoothing).effort(v @ self.rows.T)) @ self.parameters
        return joint_effort


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Transmission:
    """Joints moved by each motor, `Transmission({"joint_1": 32, "joint_5": 45, "joint_6": {"joint_5": 32,
    "joint_6": 32}})`: per motor the ratio to the joint of the same name, or to each joint that turns it.

    A ratio is motor speed per joint speed. Unnamed motors and joints are paired one to one. matrix (m, n): R, of
    `motors` by `joints`. rotor, viscous, coulomb (m,): of motors on more than one joint, reflected to the joint with
    the largest ratio, kg m², N m s/rad, N m; zero before `identify`, and for all other motors, whose rotor and friction
    are the joint's. `RbdError` names a motor with invalid ratios.

        >>> wrist = rbd.Transmission({"joint_5": 45, "joint_6": {"joint_5": 32, "joint_6": 32}})
        >>> wrist.matrix
        array([[45.,  0.],
               [32., 32.]])
    """

    joints: tuple[str, ...]
    motors: tuple[str, ...]
    matrix: Array
    rotor: Array
    viscous: Array
    coulomb: Array

    def __init__(self, ratios: Mapping[str, float | Mapping[str, float]]) -> None:
        if not isinstance(ratios, Mapping) or not ratios:
            raise RbdError(f"transmission: expected motor → ratio, or motor → (joint → ratio), got {shown(ratios)}")
        rows = {str(motor): {str(joint): _ratio(value, str(motor)) for joint, value in
                             (given if isinstance(given, Mapping) else {motor: given}).items()}
                for motor, given in ratios.items()}
        joints = tuple(dict.fromkeys(joint for row in rows.values() for joint in row))
        matrix = np.array([[row.get(joint, 0.0) for joint in joints] for row in rows.values()])
        if not matrix.any(axis=1).all():
            raise RbdError(f"transmission: motor '{list(rows)[int(np.argmin(matrix.any(axis=1)))]}' moves no joint")
        nothing = np.zeros((3, len(rows)))
        self._set(joints, tuple(rows), matrix, nothing)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Transmission:
        """Read YAML, e.g. `joint_6: {joint_5: 32, joint_6: 32}`."""
        tree, source = read_yaml(path, "transmission")
        try:
            return cls(tree)
        except RbdError as error:
            raise RbdError(f"{source}: {error}") from None

    def _set(self, joints: tuple[str, ...], motors: tuple[str, ...], matrix: Array, values: Array) -> None:
        for name, value in (("joints", joints), ("motors", motors), ("matrix", read_only(matrix)),
                            *zip(PER_MOTOR, map(read_only, values), strict=True)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        words = [f"{motor}: " + " + ".join(f"{x:g} {joint}" for joint, x in zip(self.joints, row, strict=True) if x)
                 for motor, row in zip(self.motors, self.matrix, strict=True)]
        return f"Transmission: {', '.join(words)}"

    def with_(self, *, rotor: ArrayLike = 0.0, viscous: ArrayLike = 0.0, coulomb: ArrayLike = 0.0) -> Transmission:
        """The transmission with these values per motor, one or (m,); those of motors with one joint count as zero."""
        values = np.zeros((3, len(self.motors)))
        for k, (name, value) in enumerate(zip(PER_MOTOR, (rotor, viscous, coulomb), strict=True)):
            array = _numbers(value)
            if array.shape not in ((), (len(self.motors),)) or not (array >= 0.0).all():
                raise RbdError(f"{name} must be a number from 0, or one per motor, got {shown(value)}")
            values[k] = np.where(self._coupled, array, 0.0)
        changed = object.__new__(Transmission)
        changed._set(self.joints, self.motors, self.matrix, values)
        return changed

    @property
    def _coupled(self) -> NDArray[np.bool_]:
        return np.count_nonzero(self.matrix, axis=1) > 1

    def coupled(self, model: RobotModel) -> CoupledMotors:
        """Motors on more than one joint; raises `RbdError` for joints unknown to the model."""
        indices = [_index(joint, model) for joint in self.joints]
        rows = np.zeros((len(self.motors), model.nv))
        rows[:, indices] = self.matrix / np.abs(self.matrix).max(axis=1, keepdims=True)
        which = np.flatnonzero(self._coupled)
        return CoupledMotors(tuple(self.motors[k] for k in which), rows[which],
                             np.concatenate([getattr(self, name)[which] for name in PER_MOTOR]))

    def identified(self, parameters: Array) -> Transmission:
        """The transmission with these parameters of `coupled`."""
        values = np.zeros((3, len(self.motors)))
        values[:, self._coupled] = np.maximum(parameters.reshape(3, -1), 0.0)    # negative ones are rounding
        return self.with_(**dict(zip(PER_MOTOR, values, strict=True)))

    def effort(self, model: RobotModel, v: ArrayLike, a: ArrayLike, smoothing: float = SMOOTHING) -> Array:
        """Joint efforts by rotors and friction of motors on more than one joint, (nv,) or (N, nv)."""
        speed, acceleration = np.asarray(v, dtype=np.float64), np.asarray(a, dtype=np.float64)
        joint_effort = self.coupled(model).effort(np.atleast_2d(speed), np.atleast_2d(acceleration), smoothing)
        return joint_effort.reshape(speed.shape)

    def joint_recording(self, recording: Recording, zero: Mapping[str, float] | ArrayLike = 0.0) -> Recording:
        """Convert positions and torques of motors, in columns named as `motors` or in their order, to those of joints:
        `q = R⁻¹ θ + zero`, `τ = Rᵀ τ_m`. zero: joint positions at motor position zero, (n,) or by name.
        """
        if len(self.motors) != len(self.joints) or np.linalg.matrix_rank(self.matrix) < len(self.joints):
            raise RbdError(f"transmission: {len(self.motors)} motors do not say where {len(self.joints)} joints are: "
                           f"give each motor its ratio; motors: {', '.join(self.motors)}; joints: "
                           f"{', '.join(self.joints)}")
        names = recording.joints if recording.joints is not None else self.motors
        if len(names) != len(self.motors) or recording.q.shape[1] != len(self.motors):
            raise RbdError(f"{recording.source}: {recording.q.shape[1]} columns, the transmission has "
                           f"{len(self.motors)} motors: {', '.join(self.motors)}")
        for name in self.motors:
            if name not in names:
                raise unknown_name("motor", name, names, f"{recording.source}: no column for a motor")
        indices = [names.index(name) for name in self.motors]
        inverse = np.linalg.inv(self.matrix).T
        v, a = (None if x is None else x[:, indices] @ inverse for x in (recording.v, recording.a))
        return Recording(recording.t, recording.q[:, indices] @ inverse + self._zero(zero), v, a,
                         tau=recording.tau[:, indices] @ self.matrix, joints=self.joints, source=recording.source)

    def _zero(self, zero: Mapping[str, float] | ArrayLike) -> Array:
        if isinstance(zero, Mapping):
            for name in zero:
                if name not in self.joints:
                    raise unknown_name("joint", name, self.joints, "zero")
            zero = [zero.get(name, 0.0) for name in self.joints]
        offsets = _numbers(zero)
        if offsets.shape not in ((), (len(self.joints),)) or np.isnan(offsets).any():
            raise RbdError(f"zero must be {len(self.joints)} finite numbers, or joint → number, got {shown(zero)}")
        return offsets


def _numbers(value: object) -> Array:
    """Values as an array, with NaN for non-finite numbers and non-numbers."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.full((), np.nan)
    return np.where(np.isfinite(array), array, np.nan)


def _ratio(value: object, motor: str) -> float:
    try:
        number = float("nan") if isinstance(value, str | bool) else float(value)    # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not np.isfinite(number):
        raise RbdError(f"transmission: motor '{motor}' has the ratio {shown(value)}, expected a finite number, or "
                       "joint → number")
    return number


def _index(joint: str, model: RobotModel) -> int:
    if joint not in model.velocity_names:
        raise unknown_name("joint", joint, model.velocity_names, "transmission")
    return model.velocity_names.index(joint)

"""`Actuation`: the drive of each joint (rigid, series elastic, variable stiffness), with springs and motors.

The reduced model of Spong (1987), with the inertia of the rotors only about their own axes, and De Luca's mixed case
(1998): `M(q)q̈ + h(q, q̇) = τ`; behind a spring `τ = f(θ − q, σ) + D(θ̇ − q̇)`, `Bθ̈ + τ + τ_f(θ̇) = τ_m`, and for
variable stiffness `B_σσ̈ + ρ + τ_f(σ̇) = τ_m,σ`; at a rigid joint θ = q, so that `(M + B)` accelerates.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError, shown, unknown_name
from ..model.inertia import Array, read_only
from ..model.robot_model import RobotModel
from ..dynamics.friction import Friction
from .motor import Motor, friction_of
from .series_elastic import SeriesSpring
from .variable_stiffness import VariableSpring, check_spring

Index = NDArray[np.intp]
TOLERANCE = 1e-9    # relative tolerance of springs' ranges, for rounding


@dataclass(frozen=True)
class RigidDrive:
    """A joint driven directly by its motor; without a motor, it has the rotor inertia of the model.

        >>> rbd.RigidDrive(motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0)).motor.gear_ratio
        100.0
    """

    motor: Motor | None = None


@dataclass(frozen=True)
class SeriesDrive:
    """A spring between motor and link, with viscous damping (N m s/rad) beside it.

        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), damping=2.0, motor=rbd.Motor(1e-4, 100.0))
        >>> drive.spring.torque(np.array([0.01]))
        array([5.])
    """

    spring: SeriesSpring
    damping: float = 0.0
    motor: Motor | None = None


@dataclass(frozen=True)
class VariableDrive:
    """A spring whose stiffness is set by a second motor. stiffness: default of the desired stiffness, N m/rad.

    The motors of an antagonistic spring are equivalent: `motor` turns z₁ = θ + σ, `stiffness_motor` (by default the
    same) z₂ = θ − σ.

        >>> spring = rbd.AntagonisticQuadratic(lower=10.0, upper=200.0, max_deflection=0.5, quadratic=100.0)
        >>> rbd.VariableDrive(spring, motor=rbd.Motor(1e-4, 100.0), stiffness=50.0).stiffness
        50.0
    """

    spring: VariableSpring
    motor: Motor | None = None
    stiffness_motor: Motor | None = None
    stiffness: float | None = None


Drive = RigidDrive | SeriesDrive | VariableDrive


class Actuation:
    """The drives of `model`, one for each of its joints, by name.

    Raises `RbdError` naming the joint for a missing or unknown one, a motor without inertia behind a spring, a
    stiffness out of the spring's range, and for a robot with a floating base or joints of several coordinates, which
    have no motors.

    Motor arrays are (nm,): one motor per joint in the order of the joints, then the second motors of the joints with
    variable stiffness; `motor_names` are their names. At a rigid joint, motor position = joint position.

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> arm.motor_names
        ('shoulder', 'elbow')
    """

    def __init__(self, model: RobotModel, drives: Mapping[str, Drive]) -> None:
        for name in drives:
            if name not in model.joint_names:
                raise unknown_name("joint", name, model.joint_names)
        for joint in model.joints:
            if joint.nq != 1 or joint.nv != 1:
                raise RbdError(f"joint '{joint.name}' ({joint.type}) has {joint.nv} coordinates: only joints with one "
                               "coordinate, on a fixed base, have a motor")
            if joint.name not in drives:
                raise RbdError(f"joint '{joint.name}' is missing: every joint needs a drive (rigid, series_elastic or "
                               "variable_stiffness)")
        self.drives: dict[str, Drive] = {}
        for i, joint in enumerate(model.joints):
            try:
                self.drives[joint.name] = _checked(drives[joint.name], float(model.armature[i]))
            except RbdError as error:
                raise RbdError(f"joint '{joint.name}': {error}") from None
        listed = list(self.drives.values())
        self.rigid = _where(listed, RigidDrive)
        self.series = _where(listed, SeriesDrive)
        self.variable = _where(listed, VariableDrive)
        self.elastic: Index = np.sort(np.concatenate([self.series, self.variable]))
        self.joint_names = model.joint_names
        self.motor_names = (*model.joint_names, *(f"{model.joint_names[i]}/stiffness" for i in self.variable))
        self.nv, self.nm = model.nv, len(self.motor_names)
        second = [drive.stiffness_motor or Motor() for drive in listed if isinstance(drive, VariableDrive)]
        motors = [drive.motor or Motor() for drive in listed] + second
        self.inertia: Array = read_only(np.array([motor.inertia for motor in motors]))
        # at a rigid joint the rotor is part of the link, and its inertia part of the link's effort
        behind = np.ones(self.nm)
        behind[self.rigid] = 0.0
        self.inertia_behind_springs: Array = read_only(behind * self.inertia)
        self.friction: Friction = friction_of(motors)
        series = [drive for drive in listed if isinstance(drive, SeriesDrive)]
        self.series_spring = SeriesSpring.stacked([drive.spring for drive in series])
        self.spring_damping: Array = read_only(np.array([drive.damping for drive in series]))
        self.damped: Index = np.flatnonzero(self.spring_damping > 0.0)    # of the joints in `series`
        self.spring_reach: Array = self.series_spring.max_torque * (1.0 + TOLERANCE)
        self.quick = not self.damped.size    # all springs without internal state
        friction = self.friction
        self.motors_rub = bool(np.any(friction.damping) or np.any(friction.coulomb) or np.any(friction.breakaway)
                               or friction.by_load)
        self.groups = _groups([drive for drive in listed if isinstance(drive, VariableDrive)])
        self.ranges = self.groups    # for range checks: real, if the actuation is complex
        self.stiffness: Array = read_only(np.array([drive.stiffness for drive in listed
                                                    if isinstance(drive, VariableDrive)], dtype=float))
        # order of each joint's error dynamics under feedback linearisation: rigid 2, elastic 4, with damping 3
        self.orders: Index = np.full(self.nv, 4)
        self.orders[self.rigid] = 2
        self.orders[self.series[self.damped]] = 3
        self.of_order = {order: np.flatnonzero(self.orders == order) for order in (2, 3, 4)}
        # the links, with rigidly connected rotors
        self.model = model.with_(armature=np.where(np.isin(np.arange(self.nv), self.rigid),
                                                   self.inertia[:self.nv], 0.0))
        self.rubs = bool(model.damping.any() or model.friction.any())    # friction of joints, besides motors

    def __repr__(self) -> str:
        kinds = {RigidDrive: "rigid", SeriesDrive: "series", VariableDrive: "variable"}
        return f"Actuation({', '.join(f'{name}: {kinds[type(drive)]}' for name, drive in self.drives.items())})"

    def variable_name(self, index: int) -> str:
        """Name of the index-th joint with variable stiffness."""
        return self.joint_names[int(self.variable[index])]


def _where(drives: list[Drive], kind: type) -> Index:
    return np.array([i for i, drive in enumerate(drives) if isinstance(drive, kind)], dtype=np.intp)


def _groups(drives: list[VariableDrive]) -> tuple[tuple[Index, VariableSpring], ...]:
    """Springs of one class as one object, with their positions among the joints of variable stiffness."""
    classes = list(dict.fromkeys(type(drive.spring) for drive in drives))
    return tuple((np.array([i for i, drive in enumerate(drives) if type(drive.spring) is kind], dtype=np.intp),
                  kind.stacked([drive.spring for drive in drives if type(drive.spring) is kind])) for kind in classes)


def _checked(drive: Drive, armature: float) -> Drive:
    """The validated drive, with the model's rotor inertia by default; raises `RbdError` if it is invalid."""
    if not isinstance(drive, (RigidDrive, SeriesDrive, VariableDrive)):
        raise RbdError(f"expected a RigidDrive, SeriesDrive or VariableDrive, got {type(drive).__name__}")
    motor = drive.motor or Motor(rotor_inertia=armature)
    if isinstance(drive, RigidDrive):
        return replace(drive, motor=motor)
    if motor.inertia <= 0.0:
        raise RbdError("the motor behind the spring has no inertia: give rotor_inertia")
    if isinstance(drive, SeriesDrive):
        if not (np.isfinite(drive.damping) and drive.damping >= 0.0):
            raise RbdError(f"damping of the spring must not be negative, got {shown(drive.damping)}")
        return replace(drive, motor=motor)
    check_spring(drive.spring)
    second = drive.stiffness_motor or (motor if drive.spring.antagonistic else Motor())
    if second.inertia <= 0.0:
        raise RbdError("stiffness_motor: it has no inertia: give rotor_inertia")
    low, high = (float(x) for x in drive.spring.stiffness_range(np.zeros(())))
    stiffness = float(np.sqrt(low * high)) if drive.stiffness is None else float(drive.stiffness)
    if not low <= stiffness <= high:
        raise RbdError(f"stiffness {stiffness:g} N m/rad is out of the spring's range, {low:g} to {high:g}")
    return replace(drive, motor=motor, stiffness_motor=second, stiffness=stiffness)

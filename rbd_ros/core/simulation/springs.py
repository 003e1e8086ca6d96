"""Springs of an elastic arm, between the coordinates x = (links, rotors behind springs) of one simulated model."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..actuation.actuation import Actuation, VariableDrive
from ..actuation.variable_stiffness import AntagonisticExponential, AntagonisticQuadratic, StiffnessInput
from ..dynamics.friction import Friction
from ..errors import RbdError
from ..dynamics.spring_kernels import (
    CONSTANTS, EXPONENTIAL, KIND, LINK, MOTOR, QUADRATIC, SECOND, SERIES, STIFFNESS_INPUT, spring_efforts_entry,
    spring_stiffness_entry,
)
from ..model.inertia import Array, Inertia
from ..model.joints import JointSpec, is_length
from ..model.robot_model import RobotModel

KINDS: dict[type, tuple[int, tuple[str, ...]]] = {
    StiffnessInput: (STIFFNESS_INPUT, ("offset", "gain", "hardening")),
    AntagonisticQuadratic: (QUADRATIC, ("linear", "quadratic")),
    AntagonisticExponential: (EXPONENTIAL, ("scale", "rate")),
}


class ArmSprings:
    """Efforts, energy, stiffness and damping (nx,), (nx, nx) of all springs at x; `motors` (nm,): index in x of each
    motor of `actuation`; for a rigid joint, of the joint.
    """

    def __init__(self, actuation: Actuation) -> None:
        self.actuation = actuation
        nv, nm = actuation.nv, actuation.nm
        behind = [j for j in range(nm) if j not in actuation.rigid]
        self.motors: NDArray[np.intp] = np.arange(nm)
        self.motors[behind] = nv + np.arange(len(behind))
        self.size = nv + len(behind)
        s = actuation.series
        self._series_motor = self.motors[s]
        self.damping: Array = np.zeros((self.size, self.size))
        _add_pairs(self.damping, s, self._series_motor, actuation.spring_damping)
        self._damped = bool(actuation.damped.size)
        self._first = self.motors[actuation.variable]
        self._second = self.motors[nv:]
        self.table = self._table()

    def _table(self) -> Array:
        """Of all springs, as kernels take it (`spring_kernels`)."""
        actuation = self.actuation
        series, c = actuation.series, actuation.series_spring.coefficients
        table = np.zeros((len(series) + actuation.variable.size, CONSTANTS + max(3, c.shape[-1])))
        rows = table[:len(series)]
        rows[:, KIND], rows[:, LINK], rows[:, MOTOR], rows[:, SECOND] = SERIES, series, self._series_motor, -1
        rows[:, CONSTANTS:CONSTANTS + c.shape[-1]] = c
        for joints, spring in actuation.groups:
            rows = table[len(series):]
            kind, names = KINDS[type(spring)]
            rows[joints, KIND], rows[joints, LINK] = kind, actuation.variable[joints]
            rows[joints, MOTOR], rows[joints, SECOND] = self._first[joints], self._second[joints]
            for k, name in enumerate(names):
                rows[joints, CONSTANTS + k] = getattr(spring, name)
        return table

    def effort(self, x: Array, rate: Array | None) -> Array:
        """Efforts on all coordinates (nx,); without rates, those of damping are omitted."""
        out = np.zeros(self.size) if rate is None or not self._damped else -self.damping @ rate
        spring_efforts_entry(self.table, np.array(x), out)
        return out

    def energy(self, x: Array) -> float:
        """Potential energy of all springs, J."""
        actuation = self.actuation
        total = 0.0
        if actuation.series.size:
            total += float(np.sum(actuation.series_spring.energy(x[self._series_motor] - x[actuation.series])))
        for joints, spring in actuation.groups:
            theta, sigma = spring.from_motors(x[self._first[joints]], x[self._second[joints]])
            total += float(np.sum(spring.energy(theta - x[actuation.variable[joints]], sigma)))
        return total

    def stiffness(self, x: Array) -> Array:
        """∂²energy/∂x² (nx, nx) without negative directions, for implicit integration."""
        out = np.empty((self.size, self.size))
        spring_stiffness_entry(self.table, np.array(x), out)
        return out

    def joint_stiffness(self, x: Array) -> Array:
        """∂τ/∂φ (nv,) of the springs, N m/rad; inf at rigid joints."""
        actuation = self.actuation
        out = np.full(actuation.nv, np.inf)
        s = actuation.series
        out[s] = actuation.series_spring.stiffness(x[self._series_motor] - x[s])
        for joints, spring in actuation.groups:
            link = actuation.variable[joints]
            theta, sigma = spring.from_motors(x[self._first[joints]], x[self._second[joints]])
            out[link] = spring.partials(theta - x[link], sigma).p
        return out

    def torque(self, x: Array, rate: Array) -> Array:
        """Link-side efforts (nv,) of the springs, damping included; 0 at rigid joints."""
        return self.effort(x, rate)[:self.actuation.nv]


def _add_pairs(matrix: Array, first: NDArray[np.intp], second: NDArray[np.intp], value: Array) -> None:
    """`value (x₂ − x₁)²/2` of pairs of coordinates, as matrix of the quadratic form."""
    matrix[first, first] += value
    matrix[second, second] += value
    matrix[first, second] -= value
    matrix[second, first] -= value


def _ends(actuation: Actuation, motor: int) -> tuple[float | None, float | None]:
    """Stops of a motor: a stiffness motor has those of its range, unless it is one of an antagonistic pair."""
    if motor < actuation.nv:
        return None, None
    drive = actuation.drives[actuation.variable_name(motor - actuation.nv)]
    assert isinstance(drive, VariableDrive)
    return (None, None) if drive.spring.antagonistic else (float(drive.spring.lower), float(drive.spring.upper))


def with_rotors(actuation: Actuation) -> tuple[RobotModel, Friction]:
    """The model with coordinates x: the links, and per motor behind a spring a rotor with inertia but no mass (names as
    in `motor_names`, with `/motor`); and the friction of links and motors.
    """
    model, nv = actuation.model, actuation.nv
    description = model.description
    children = {joint.child for joint in description.joints}
    root = next(name for name in description.links if name not in children)
    links, joints = dict(description.links), list(description.joints)
    behind = [j for j in range(actuation.nm) if j not in actuation.rigid]
    for j in behind:
        name = f"{actuation.motor_names[j]}{'/motor' if j < nv else '_motor'}"
        kind = model.joints[j if j < nv else int(actuation.variable[j - nv])].type
        links[name] = Inertia.zero()
        lower, upper = _ends(actuation, j)
        joints.append(JointSpec(name, "prismatic" if is_length(kind) else "revolute", root, name, lower=lower,
                                upper=upper))
    full = RobotModel.from_description(replace(description, links=links, joints=tuple(joints)))
    motor = actuation.friction
    if motor.by_load or np.any(motor.asymmetry) or np.any(motor.viscous_asymmetry):
        raise RbdError("motor: asymmetry, viscous_asymmetry and load are not simulated with elastic joints, expected 0")
    rigid = np.isin(np.arange(nv), actuation.rigid)

    def both(link: Array, motors: Array | float) -> Array:
        """Values of links including rigidly connected motors, then of the other motors."""
        motors = np.broadcast_to(motors, actuation.nm)
        return np.concatenate([link + np.where(rigid, motors[:nv], 0.0), motors[behind]])

    full = full.with_(armature=np.concatenate([model.armature, actuation.inertia[behind]]),
                      damping=both(model.damping, motor.damping), friction=both(model.friction, motor.coulomb))
    speed = np.broadcast_to(motor.stribeck_velocity, actuation.nm)
    return full, Friction(full.damping, full.friction, both(model.friction, motor.breakaway),
                          np.concatenate([speed[:nv], speed[behind]]))

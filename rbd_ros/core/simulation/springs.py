"""Springs of an elastic arm, between the coordinates x = (links, rotors behind springs) of one simulated model."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..actuation.actuation import Actuation, VariableDrive
from ..dynamics.friction import Friction
from ..errors import RbdError
from ..actuation.spring_motion import variable_partials
from ..model.inertia import Array, Inertia
from ..model.joints import JointSpec, is_length
from ..model.robot_model import RobotModel


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

    def effort(self, x: Array, rate: Array | None) -> Array:
        """Efforts on all coordinates (nx,); without rates, those of damping are omitted."""
        actuation = self.actuation
        out = np.zeros(self.size)
        if actuation.series.size:
            s, m = actuation.series, self._series_motor
            tau = actuation.series_spring.torque(x[m] - x[s])
            if rate is not None and self._damped:
                tau = tau + actuation.spring_damping * (rate[m] - rate[s])
            out[s], out[m] = tau, -tau
        for joints, spring in actuation.groups:
            link, first, second = actuation.variable[joints], self._first[joints], self._second[joints]
            theta, sigma = spring.from_motors(x[first], x[second])
            phi = theta - x[link]
            tau = spring.partials(phi, sigma).f
            loads = spring.loads(tau, spring.reaction(phi, sigma))
            out[link], out[first], out[second] = tau, -loads[0], -loads[1]
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
        actuation = self.actuation
        out = np.zeros((self.size, self.size))
        if actuation.series.size:
            s, m = actuation.series, self._series_motor
            _add_pairs(out, s, m, actuation.series_spring.stiffness(x[m] - x[s]))
        if not actuation.groups:
            return out
        theta, sigma = np.empty((2, actuation.variable.size))
        slope = np.empty_like(theta)
        for joints, spring in actuation.groups:
            theta[joints], sigma[joints] = spring.from_motors(x[self._first[joints]], x[self._second[joints]])
            slope[joints] = spring.reaction_slope(theta[joints] - x[actuation.variable[joints]], sigma[joints])
        P = variable_partials(actuation, theta - x[actuation.variable], sigma)
        H = np.stack([np.stack([P.p, P.s], -1), np.stack([P.s, slope], -1)], -2)
        values, vectors = np.linalg.eigh(H)
        H = (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, -1, -2)
        for joints, spring in actuation.groups:
            # (φ, σ) by (q, z₁, z₂)
            J = (np.array([[-1.0, 0.5, 0.5], [0.0, 0.5, -0.5]]) if spring.antagonistic
                 else np.array([[-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
            for i in joints:
                c = [actuation.variable[i], self._first[i], self._second[i]]
                out[np.ix_(c, c)] += J.T @ H[i] @ J
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

"""Motion and gains of the demo, and a robot that differs slightly from its model."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.dynamics.inverse import inverse_dynamics
from ..core.dynamics.mass_matrix import mass_matrix
from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel

Array = NDArray[np.float64]

# M's trajectory for the iiwa: Gaz et al., Robotics and Automation Letters 2019
M_AMPLITUDE = (-1.2943753211777664, 0.7175341454355011, -0.5691380764966176, 0.5848944158627155, 1.6216297151633214,
               -0.9187855709752027, 0.4217605991935227)    # rad
M_FREQUENCY = (1.7073873117335832, 3.079992797637052, 2.1084514453622774, 3.5903916041026207, 1.4183262544423447,
               2.285625793808507, 5.927533308659986)       # rad/s

MASS_SCALE = 1.05
COULOMB = 0.02    # Coulomb friction in addition to the description's, relative to the peak torque of the motion
VISCOUS = 0.01    # viscous friction at peak speed, likewise
ROTORS = 0.5      # reflected rotor inertia relative to the inertia of the links behind the joint
BANDWIDTH = 20.0  # of the position loop, rad/s
DAMPING = 0.7     # its damping ratio


@dataclass(frozen=True)
class Cosines:
    """`q_i(t) = center_i + amplitude_i cos(frequency_i t)`, each (nv,): it starts at rest."""

    center: Array
    amplitude: Array
    frequency: Array

    def position(self, t: Array | float) -> Array:
        """(nv,) or (N, nv) at time t (s), a number or (N,)."""
        return self.center + self.amplitude * np.cos(self._phase(t))

    def velocity(self, t: Array | float) -> Array:
        return -self.amplitude * self.frequency * np.sin(self._phase(t))

    def acceleration(self, t: Array | float) -> Array:
        return -self.amplitude * self.frequency**2 * np.cos(self._phase(t))

    def derivatives(self, t: Array | float, orders: int = 5) -> Array:
        """Position, velocity, acceleration, jerk, snap, … at time t (s): (orders, nv) or (N, orders, nv)."""
        order = np.arange(orders)[:, None]
        phase = self._phase(t)[..., None, :]
        values = self.amplitude * self.frequency**order * np.cos(phase + 0.5 * np.pi * order)
        values[..., 0, :] += self.center
        return np.asarray(values)

    def _phase(self, t: Array | float) -> Array:
        return np.asarray(np.multiply.outer(np.asarray(t, dtype=float), self.frequency))


@dataclass(frozen=True)
class Scenario:
    """Scenario of the demo: motion, rotor inertias (known to both sides), PD gains, and the friction of the simulated
    robot, of which the controller knows only the description's part; each (nv,).

    Rotors matter: without them, joints with aligned axes, as of the iiwa, have almost no inertia for opposite motions,
    and no feedback at this rate is stable.
    """

    motion: Cosines
    rotors: Array
    kp: Array
    kd: Array
    damping: Array
    friction: Array
    peak_effort: Array


def published_motion() -> Cosines:
    """M's trajectory for the iiwa."""
    return Cosines(np.zeros(7), np.array(M_AMPLITUDE), np.array(M_FREQUENCY))


def random_motion(model: RobotModel, duration: float, seed: int = 0) -> Cosines:
    """Cosines within the limits of any arm: at most 40 % of the range, half the speed and 60 % of the effort."""
    rng = np.random.default_rng(seed)
    lower = np.maximum(model.position_lower, -np.pi)
    upper = np.minimum(model.position_upper, np.pi)
    center, reach = (lower + upper) / 2.0, 0.4 * (upper - lower)
    amplitude = np.minimum(reach, 0.8) * rng.uniform(0.4, 1.0, model.nv) * rng.choice([-1.0, 1.0], model.nv)
    speed = np.where(model.velocity_limit > 0.0, model.velocity_limit, np.inf)
    frequency = np.minimum(rng.uniform(1.5, 4.0, model.nv), 0.5 * speed / np.maximum(np.abs(amplitude), 1e-9))
    limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
    for _ in range(12):
        motion = Cosines(center, amplitude, frequency)
        if np.all(peak_effort(model, motion, duration) <= 0.6 * limit):
            return motion
        amplitude, frequency = 0.8 * amplitude, 0.9 * frequency
    peak = peak_effort(model, motion, duration)
    worst = int(np.argmax(peak / limit))
    raise RbdError(f"no motion found within the effort limits: joint '{model.joint_names[worst]}' needs "
                   f"{peak[worst]:.3g} of at most {limit[worst]:.3g} N m (or N) even when moving slowly about "
                   "the middle of its range")


def scenario(model: RobotModel, motion: Cosines, duration: float) -> Scenario:
    """Gains by the inertia reflected to each joint, friction by its torque."""
    t = np.linspace(0.0, duration, 501)
    inertia = np.median(np.diagonal(mass_matrix(model, motion.position(t)), axis1=1, axis2=2), axis=0)
    rotors = np.where(model.armature > 0.0, model.armature, ROTORS * inertia)
    inertia = inertia - model.armature + rotors
    peak = peak_effort(model.with_(armature=rotors), motion, duration)
    peak_speed = np.maximum(np.abs(motion.amplitude * motion.frequency), 1e-3)
    return Scenario(motion, rotors, kp=inertia * BANDWIDTH**2, kd=2.0 * DAMPING * inertia * BANDWIDTH,
                    damping=model.damping + VISCOUS * peak / peak_speed,
                    friction=model.friction + COULOMB * peak, peak_effort=peak)


def peak_effort(model: RobotModel, motion: Cosines, duration: float) -> Array:
    """Largest torque of each joint (nv,) on the motion."""
    t = np.linspace(0.0, duration, 501)
    return np.abs(inverse_dynamics(model, motion.position(t), motion.velocity(t), motion.acceleration(t))).max(axis=0)

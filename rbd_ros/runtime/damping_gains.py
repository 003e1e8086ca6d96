"""Largest stable damping gain of a control loop: kd = 0.6 rate M, with M the smallest inertia reflected to the joint.

With two cycles between state and torque, v[k+1] = v[k] - kd/(rate M) v[k-2] oscillates from 2 sin(π/10) = 0.618 on. The
rule is the same for the gains of a node and for those of a joint_trajectory_controller.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.dynamics.mass_matrix import mass_matrix
from ..core.model.robot_model import RobotModel

Array = NDArray[np.float64]
STABLE = 0.6       # kd/M over the rate
SAMPLES = 32       # poses at which the inertia is evaluated
LARGEST = 300      # degrees of freedom; the inertia of a larger robot takes seconds


class DampingGains(NamedTuple):
    """Damping gains (n,) of one parameter by joint name; inertia (n,) that each gain acts on, 0 if unknown; rotors
    (n,): whether the model has a rotor inertia at the joint.
    """

    parameter: str
    names: Sequence[str]
    kd: Array
    inertia: Array
    rotors: NDArray[np.bool_]


def felt_inertia(matrices: Array) -> Array | None:
    """Smallest inertia (nv,) reflected to each joint with all others free, over mass matrices (n, nv, nv); None if one
    of them is not positive definite.
    """
    if not np.isfinite(matrices).all() or np.linalg.eigvalsh(matrices).min() <= 0.0:
        return None
    return np.asarray(1.0 / np.diagonal(np.linalg.inv(matrices), axis1=1, axis2=2).max(axis=0))


def sampled_inertia(model: RobotModel) -> Array:
    """`felt_inertia` (nv,) of a robot over sampled poses; 0 if unknown."""
    if model.nv > LARGEST:
        return np.zeros(model.nv)
    rng = np.random.default_rng(0)
    poses = [model.neutral(), *(model.random_configuration(rng) for _ in range(SAMPLES))]
    inertia = felt_inertia(np.stack([mass_matrix(model, q) for q in poses]))
    return np.zeros(model.nv) if inertia is None else inertia


def largest_damping(inertia: Array, rate: float) -> Array:
    """Largest kd that is stable at this rate (Hz) with this inertia."""
    return STABLE * rate * inertia


def high_damping(gains: DampingGains, rate: float) -> str:
    """Warning of gains that are too high at this rate (Hz), by joint and with the remedy; "" if there are none."""
    largest = largest_damping(gains.inertia, rate)
    high = np.flatnonzero((gains.kd > largest) & (largest > 0.0)).tolist()
    if not high:
        return ""
    each = ", ".join(f"{gains.names[i]}: {gains.kd[i]:.3g}, at most {largest[i]:.2g}" for i in high)
    bare = ", ".join(gains.names[i] for i in high if not gains.rotors[i])
    remedy = (f"the model has no rotor at {bare}: if the robot has one, give its inertia ('rotor_inertia'), else lower "
              "the gain" if bare else "lower it, or have states at a higher rate")
    return (f"'{gains.parameter}' is too high for {rate:.3g} Hz and the inertia of the model, joints may oscillate: "
            f"{each}; {remedy}")

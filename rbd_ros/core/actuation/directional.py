"""Derivatives of the elastic-joint functions by any scalar p: K §2.4 extended to springs and motors.

Links as in `derivatives.directional`; springs and motors by an imaginary step of their inputs and constants. O(n) per
direction for link efforts and motors; feedback linearisation solves for accelerations, O(n³) as without derivatives.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..derivatives.directional.tangent import Tangent
from ..imaginary_step import STEP
from ..model.inertia import Array
from ..model.state import states
from .actuation import Actuation
from .elastic_tangent import VariedLinks, each, moved, varied_actuation
from .feedback_linearization import FeedbackLinearization, feedback_linearization, linearized
from .motor_reference import MotorReference, flat_motors, motor_reference, stiffness_motion
from .poles import FeedbackGains
from .spring_motion import Motion


def link_efforts_directional(actuation: Actuation, q: ArrayLike, v: ArrayLike, a: ArrayLike, jerk: ArrayLike,
                             snap: ArrayLike, tangent: Tangent | Iterable[Tangent]) -> Array:
    """∂/∂p of `link_efforts` (3, nv) or (N, 3, nv): of τ, τ̇, τ̈, without external wrenches.

    tangent: `ElasticTangent` (or `Tangent` for constant jerk and snap), or several, which adds a first axis. Includes
    all parameters of the links, joint friction, and the rotors of rigid joints. Other arguments and errors as of
    `link_efforts`.

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> rbd.link_efforts_directional(arm, [0.3, 0.5], *np.zeros((4, 2)), rbd.ElasticTangent(q=[1, 0])).shape
        (3, 2)
    """
    tangents, single = each(tangent)
    checked = states(actuation.model, positions={"q": q}, rates={"v": v, "a": a, "jerk": jerk, "snap": snap})
    names, shape = checked.names, (checked.count, actuation.nv)
    out = np.empty((len(tangents), checked.count, 3, actuation.nv))
    for result, direction in zip(out, tangents, strict=True):
        links = VariedLinks(actuation, direction)
        motion = [moved(x, direction, name, checked.batch is not None).reshape(shape)
                  for x, name in zip(checked.arrays, names, strict=True)]
        for s in range(checked.count):
            result[s] = links.efforts(*(x[s] for x in motion)).imag / STEP
    out = out[:, 0] if checked.batch is None else out
    checked.finite(derivative=out)
    return out[0] if single else out


def motor_reference_directional(actuation: Actuation, q: ArrayLike, v: ArrayLike, a: ArrayLike, efforts: ArrayLike,
                                tangent: Tangent | Iterable[Tangent], stiffness: ArrayLike | None = None,
                                deflection: ArrayLike | None = None) -> MotorReference:
    """∂/∂p of every part of `motor_reference` (of a rigid joint's stiffness: 0), by constants of springs and motors,
    and by the arguments q, v, a, efforts, stiffness, deflection.

    tangent: `ElasticTangent`, or several, which gives a first axis; ∂ of the efforts by the links' parameters is
    `link_efforts_directional`. Other arguments and errors as of `motor_reference`.

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> efforts = rbd.link_efforts(arm, [0.3, 0.5], *np.zeros((4, 2)))
        >>> turned = rbd.ElasticTangent(q=[1, 0])
        >>> rbd.motor_reference_directional(arm, [0.3, 0.5], [0, 0], [0, 0], efforts, turned).position
        array([1., 0.])
    """
    tangents, single = each(tangent)
    motor_reference(actuation, q, v, a, efforts, stiffness, deflection)    # raises for invalid arguments
    checked = states(actuation.model, positions={"q": q}, rates={"v": v, "a": a})
    lead, many = () if checked.batch is None else (checked.batch,), checked.batch is not None
    tau = np.broadcast_to(np.asarray(efforts, dtype=float), (*lead, 3, actuation.nv))
    k = np.stack(stiffness_motion(actuation, stiffness, lead), axis=-2)
    derivatives: list[Any] = []
    for direction in tangents:
        varied = varied_actuation(actuation, direction)
        force, stiffness_series = moved(tau, direction, "efforts", many), moved(k, direction, "stiffness", many)
        bend = None
        if deflection is not None:
            bend = moved(np.broadcast_to(np.asarray(deflection, dtype=float), (*lead, actuation.damped.size)),
                         direction, "deflection", many)
        result = flat_motors(varied, Motion(*(moved(x, direction, name, many) for x, name in zip(
            checked.arrays, checked.names, strict=True))), Motion(*(force[..., i, :] for i in range(3))),
            Motion(*(stiffness_series[..., i, :] for i in range(3))), bend)
        derivatives.append([np.imag(part) / STEP for part in result])
    parts = [np.array([parts[i] for parts in derivatives]) for i in range(len(MotorReference._fields))]
    checked.finite(**dict(zip(MotorReference._fields, parts, strict=True)))
    return MotorReference(*(part[0] if single else part for part in parts))


def feedback_linearization_directional(actuation: Actuation, gains: FeedbackGains, q: ArrayLike, v: ArrayLike,
                                       motor_position: ArrayLike, motor_velocity: ArrayLike, reference: ArrayLike,
                                       tangent: Tangent | Iterable[Tangent],
                                       stiffness: ArrayLike | None = None) -> FeedbackLinearization:
    """∂/∂p of every part of `feedback_linearization` (of a rigid joint's stiffness: 0) at constant gains, by parameters
    of links, springs, motors and friction, and by the measured state and the reference.

    tangent: `ElasticTangent`, or several, which gives a first axis. Other arguments and errors as of
    `feedback_linearization`. `acceleration` is that of the links in this state under these efforts.

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> gains, rest = rbd.FeedbackGains.placed(arm, 20.0), np.zeros((5, 2))
        >>> further = rbd.ElasticTangent(q=[1, 0])
        >>> rbd.feedback_linearization_directional(arm, gains, *np.zeros((4, 2)), rest, further).effort.shape
        (2,)
    """
    tangents, single = each(tangent)
    feedback_linearization(actuation, gains, q, v, motor_position, motor_velocity, reference, stiffness)
    checked = states(actuation.model, positions={"q": q}, rates={"v": v})
    k = np.stack(stiffness_motion(actuation, stiffness, ()), axis=-2)
    inputs = {"q": checked.arrays[0], "v": checked.arrays[1], "motor_position": np.asarray(motor_position, dtype=float),
              "motor_velocity": np.asarray(motor_velocity, dtype=float),
              "reference": np.asarray(reference, dtype=float)}
    derivatives: list[Any] = []
    for direction in tangents:
        stiffness_series = moved(k, direction, "stiffness")
        x, rate, z, z_rate, r = (moved(value, direction, name) for name, value in inputs.items())
        result = linearized(varied_actuation(actuation, direction), VariedLinks(actuation, direction), gains, x, rate,
                            z, z_rate, r, Motion(*stiffness_series))
        derivatives.append([np.imag(part) / STEP for part in result])
    parts = [np.array([parts[i] for parts in derivatives]) for i in range(len(FeedbackLinearization._fields))]
    checked.finite(**dict(zip(FeedbackLinearization._fields, parts, strict=True)))
    return FeedbackLinearization(*(part[0] if single else part for part in parts))

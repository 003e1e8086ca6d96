"""`ElasticTangent`: derivatives of the inputs of elastic joints, and an `Actuation` varied along them.

All functions of springs and motors accept complex numbers, so an imaginary step of 1e-30 of the constants gives
derivatives exact to rounding.
"""
from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.entry import entry
from ..derivatives.directional.friction_change import NAMES, with_breakaway
from ..derivatives.directional.tangent import Tangent, Tangents
from ..derivatives.taylor import taylor_order, taylor_start, workspace_size
from ..dynamics.friction import Friction, joint_friction
from ..errors import RbdError, unknown_name
from ..imaginary_step import STEP
from ..model.inertia import Array, finite
from .actuation import Actuation, RigidDrive, SeriesDrive, VariableDrive
from .motor import Motor
from .series_elastic import SeriesSpring

MOTOR = ("rotor_inertia", "gear_ratio", "damping", "coulomb", "breakaway", "stribeck_velocity", "smoothing",
         "asymmetry", "viscous_asymmetry", "load")
SERIES = ("coefficients", "damping")
RANGE = ("lower", "upper", "max_deflection")    # fields of springs without influence on results


@dataclass(frozen=True, eq=False)
class ElasticTangent(Tangent):
    """A `Tangent` for robots with elastic joints: ∂/∂p of the additional inputs of their functions, in the same form.

    springs {joint: {constant: number}}: of a series spring `coefficients` (m,) and `damping`; of a spring of variable
    stiffness the fields of its class (`offset`, `gain`, `hardening`; `linear`, `quadratic`; `scale`, `rate`). motors
    {name in `Actuation.motor_names`: {field of `Motor`: number}}; `coulomb` of a motor without Stribeck's effect also
    changes `breakaway`. jerk, snap (nv,); efforts (3, nv); stiffness (n,) or (3, n); deflection (nd,);
    motor_position, motor_velocity (nm,); reference (5, nv).

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> softer = rbd.ElasticTangent(springs={"elbow": {"coefficients": [-1.0]}})
        >>> efforts = rbd.link_efforts(arm, [0.3, 0.5], *np.zeros((4, 2)))
        >>> rbd.motor_reference_directional(arm, [0.3, 0.5], [0, 0], [0, 0], efforts, softer).position.round(6)
        array([0.e+00, 7.e-06])
    """

    jerk: ArrayLike | None = None
    snap: ArrayLike | None = None
    efforts: ArrayLike | None = None
    stiffness: ArrayLike | None = None
    deflection: ArrayLike | None = None
    motor_position: ArrayLike | None = None
    motor_velocity: ArrayLike | None = None
    reference: ArrayLike | None = None
    springs: Mapping[str, Mapping[str, ArrayLike]] = field(default_factory=dict)
    motors: Mapping[str, Mapping[str, ArrayLike]] = field(default_factory=dict)


def moved(value: Array, tangent: Tangent, name: str, batch: bool = False) -> Any:
    """An input with its imaginary step; complex. batch: whether there are several states, which may share one change.
    """
    change = getattr(tangent, name, None)
    out = np.asarray(value, dtype=np.complex128)
    if change is None:
        return out
    step = np.asarray(change, dtype=float)
    if name == "stiffness" and step.ndim == 1:    # k alone, k̇ = k̈ = 0
        step = np.stack([step, *np.zeros((2, step.size))])
    if step.shape not in (out.shape, out.shape[1:] if batch else out.shape) or not np.isfinite(step).all():
        raise RbdError(f"tangent.{name}: expected finite numbers of shape {out.shape}, got shape {step.shape}")
    return out + 1j * STEP * step


def each(tangent: Tangent | Iterable[Tangent]) -> tuple[tuple[Tangent, ...], bool]:
    """The tangents as a tuple, and whether a single one was passed."""
    single = isinstance(tangent, Tangent)
    tangents: Any = (tangent,) if single else tuple(tangent) if isinstance(tangent, Iterable) else (tangent,)
    for item in tangents:
        if not isinstance(item, Tangent):
            raise RbdError(f"tangent: expected an ElasticTangent or several, got {type(item).__name__}")
    return tangents, single


def varied_actuation(actuation: Actuation, tangent: Tangent) -> Actuation:
    """The actuation on complex numbers, springs and motors with an imaginary step; for functions that accept complex
    numbers.
    """
    springs: Any = getattr(tangent, "springs", {})
    out = copy.copy(actuation)
    for name in springs:
        if name not in actuation.drives:
            raise unknown_name("joint in springs", name, actuation.joint_names)
        if isinstance(actuation.drives[name], RigidDrive):
            raise RbdError(f"springs['{name}']: this joint is rigid")
    coefficients = actuation.series_spring.coefficients.astype(np.complex128)
    damping: Any = actuation.spring_damping.astype(np.complex128)
    for i, joint in enumerate(actuation.series):
        name = actuation.joint_names[joint]
        drive: Any = actuation.drives[name]
        assert isinstance(drive, SeriesDrive)
        for constant, value in springs.get(name, {}).items():
            if constant not in SERIES:
                raise unknown_name(f"constant in springs['{name}']", constant, SERIES)
            if constant == "damping":
                if not drive.damping > 0.0:
                    raise RbdError(f"springs['{name}']: a spring without damping has no derivative by it: with damping "
                                   "its deflection is a state")
                damping[i] += 1j * STEP * finite(value, (), f"springs['{name}']['damping']")
            else:
                m = drive.spring.coefficients.size
                coefficients[i, :m] += 1j * STEP * finite(np.atleast_1d(np.asarray(value)), (m,),
                                                          f"springs['{name}']['coefficients']")
    out.series_spring = _raw_spring(coefficients, actuation.series_spring.max_deflection)
    out.spring_damping = damping
    groups = []
    for indices, group in actuation.groups:
        names = [item.name for item in fields(group) if item.name not in RANGE]
        values: dict[str, Any] = {name: np.asarray(getattr(group, name), dtype=np.complex128) for name in names}
        for k, index in enumerate(indices):
            joint_name = actuation.variable_name(int(index))
            for constant, value in springs.get(joint_name, {}).items():
                if constant not in names:
                    raise unknown_name(f"constant in springs['{joint_name}']", constant, names)
                values[constant][k] += 1j * STEP * finite(value, (), f"springs['{joint_name}']['{constant}']")
        groups.append((indices, replace(group, **values)))
    out.groups = tuple(groups)
    inertia, law = varied_motors(actuation, tangent)
    behind = actuation.inertia_behind_springs != 0.0
    out.inertia, out.inertia_behind_springs, out.friction = inertia, np.where(behind, inertia, 0.0), law
    out.motors_rub = True
    return out


def varied_motors(actuation: Actuation, tangent: Tangent) -> tuple[Any, Friction]:
    """Reflected inertias (nm,) and friction of the motors, complex."""
    changes: Any = getattr(tangent, "motors", {})
    for name in changes:
        if name not in actuation.motor_names:
            raise unknown_name("motor in motors", name, actuation.motor_names)
    motors: list[Motor] = [drive.motor or Motor() for drive in actuation.drives.values()]
    motors += [drive.stiffness_motor or Motor() for drive in actuation.drives.values()
               if isinstance(drive, VariableDrive)]
    values: dict[str, Any] = {constant: np.array([getattr(motor, constant) for motor in motors], dtype=np.complex128)
                              for constant in MOTOR}
    for i, (name, motor) in enumerate(zip(actuation.motor_names, motors, strict=True)):
        step = dict(changes.get(name, {}))
        if "coulomb" in step and motor.breakaway == motor.coulomb:
            step.setdefault("breakaway", step["coulomb"])
        for constant, value in step.items():
            if constant not in MOTOR:
                raise unknown_name(f"field in motors['{name}']", constant, MOTOR)
            values[constant][i] += 1j * STEP * finite(value, (), f"motors['{name}']['{constant}']")
    return values["rotor_inertia"] * values["gear_ratio"] ** 2, Friction(*(values[constant] for constant in MOTOR[2:]))


@entry("void(complex128[::1], complex128[::1], complex128[::1], complex128[::1], int64, int64, complex128[::1])",
       nogil=True)
def varied_efforts_entry(B, q, x, wrench, orders, top, out):
    """Taylor coefficients of the efforts of one state to order `top`; x: those of v, a, … (top + 2 rows); wrench: as
    of `inverse_time_derivatives_batch`, `orders` of them.
    """
    nv = out.shape[0] // (top + 1)
    W = np.empty(workspace_size(B, top), dtype=np.complex128)
    tau = np.empty(nv, dtype=np.complex128)
    taylor_start(B, q, 0, x, top, W)
    for m in range(top + 1):
        taylor_order(B, q, 0, x, wrench, 0, orders, m, top, W, tau)
        for i in range(nv):
            out[m * nv + i] = tau[i]


class VariedLinks:
    """The link dynamics with joint friction on complex numbers, all that the tangent names with an imaginary step; not
    for a moving root.
    """

    def __init__(self, actuation: Actuation, tangent: Tangent) -> None:
        model = actuation.model
        rotors = {}    # at a rigid joint the rotor is part of the link
        inertia = varied_motors(actuation, tangent)[0].imag / STEP
        for i in actuation.rigid:
            name = actuation.joint_names[i]
            rotor = np.asarray(tangent.rotor_inertias.get(name, 0.0), dtype=float)
            if inertia[i] or name in tangent.rotor_inertias:
                rotors[name] = inertia[i] + rotor
        own = {item.name: getattr(tangent, item.name) for item in fields(Tangent)}
        kept = {name: own[name] for name in own if name not in ("q", "v", "a", "tau")}
        along = Tangents(model, Tangent(**(kept | {"rotor_inertias": {**kept["rotor_inertias"], **rotors}})))
        self.block = along.start.astype(np.complex128)
        if len(along.models):
            self.block += 1j * STEP * along.models[0]
        self.law, self.nv = joint_friction(model), model.nv
        if len(along.friction):
            changes = with_breakaway(model, self.law, along.friction[0])
            self.law = Friction(*(np.asarray(getattr(self.law, name)) + 1j * STEP * change
                                  for name, change in zip(NAMES, changes, strict=True)))

    def frictionless(self, q: Any, *rates: Any) -> Any:
        """τ, τ̇, … (len(rates) − 1, nv) of one state without friction; rates: v, a, jerk, …"""
        top, nv = len(rates) - 2, self.nv
        x = np.concatenate([np.asarray(rate, dtype=np.complex128) / factorial(i) for i, rate in enumerate(rates)])
        out = np.empty((top + 1) * nv, dtype=np.complex128)
        varied_efforts_entry.call(self.block, np.asarray(q, dtype=np.complex128), x, np.empty(0, dtype=np.complex128),
                                  0, top, out)
        return out.reshape(top + 1, nv) * np.array([[factorial(m)] for m in range(top + 1)], dtype=float)

    def mass_matrix(self, q: Any) -> Any:
        """M (nv, nv)."""
        at_rest = np.zeros(self.nv, dtype=np.complex128)
        weight = self.frictionless(q, at_rest, at_rest)[0]
        return np.transpose([self.frictionless(q, at_rest, unit)[0] - weight for unit in np.eye(self.nv)])

    def bias(self, q: Any, v: Any) -> Any:
        """h(q, q̇), with friction (nv,)."""
        return self.frictionless(q, v, 0.0 * v)[0] + self.law.effort(v)

    def efforts(self, q: Any, v: Any, a: Any, jerk: Any, snap: Any | None = None) -> Any:
        """τ, τ̇ and with the snap τ̈ (…, nv)."""
        slope, curvature = self.law.slope(v), self.law.curvature(v)
        friction = [self.law.effort(v), slope * a, slope * jerk + curvature * a * a]
        rates = (v, a, jerk) if snap is None else (v, a, jerk, snap)
        return self.frictionless(q, *rates) + np.stack(friction[:len(rates) - 1])


def _raw_spring(coefficients: Any, limit: Any) -> SeriesSpring:
    """A spring without validation of its constants, which are complex."""
    spring = object.__new__(SeriesSpring)
    object.__setattr__(spring, "coefficients", coefficients)
    object.__setattr__(spring, "max_deflection", limit)
    return spring

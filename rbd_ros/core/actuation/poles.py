"""Gains of error dynamics from their poles."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import RbdError, shown, unknown_name
from ..model.inertia import Array, read_only
from .actuation import Actuation

Poles = float | Sequence[complex]


def gains_of(poles: Poles, order: int) -> Array:
    """Gains (order,), g₀ first, of `e⁽ⁿ⁾ + … + g₁ ė + g₀ e = 0` with these poles (1/s).

    One positive number b: all poles at −b. Raises `RbdError` unless there are `order` poles with negative real part,
    complex ones in conjugate pairs.
    """
    try:
        values = np.asarray(poles, dtype=complex)
    except (TypeError, ValueError, OverflowError):
        raise RbdError(f"poles: expected a number or {order} of them, got {shown(poles)}") from None
    if values.ndim == 0:
        if not (values.imag == 0.0 and values.real > 0.0 and np.isfinite(values.real)):
            raise RbdError(f"bandwidth must be a positive number of 1/s, got {shown(poles)}")
        values = np.full(order, -values)
    if values.shape != (order,):
        raise RbdError(f"expected {order} poles, got {values.size}")
    if not (np.isfinite(values).all() and np.all(values.real < 0.0)):
        raise RbdError(f"every pole needs a negative real part, got {shown(poles)}")
    coefficients = np.poly(values)
    if np.iscomplexobj(coefficients) and np.abs(coefficients.imag).max() > 1e-9 * np.abs(coefficients).max():
        raise RbdError(f"complex poles must come in conjugate pairs, got {shown(poles)}")
    return np.ascontiguousarray(coefficients.real[:0:-1])


@dataclass(frozen=True, eq=False)
class FeedbackGains:
    """links (nv, 4): g₀ … of each joint's error dynamics, zero beyond its order; stiffness (n, 2): likewise for
    the stiffness of the joints in `Actuation.variable`.

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> rbd.FeedbackGains.placed(arm, 20.0).links[0]    # all poles at -20/s
        array([1.6e+05, 3.2e+04, 2.4e+03, 8.0e+01])
    """

    links: Array
    stiffness: Array

    @staticmethod
    def placed(actuation: Actuation, poles: Poles | Mapping[str, Poles],
               stiffness_poles: Poles | Mapping[str, Poles] = 20.0) -> FeedbackGains:
        """Gains of poles (1/s), for all joints or by joint name: a bandwidth b for all poles at −b, or a list of
        `actuation.orders` poles (2 for a stiffness). Raises `RbdError` naming the joint.
        """
        links = np.zeros((actuation.nv, 4))
        for i, (name, order) in enumerate(zip(actuation.joint_names, actuation.orders, strict=True)):
            links[i, :order] = _of(actuation.joint_names, poles, name, int(order))
        names = tuple(actuation.joint_names[i] for i in actuation.variable)
        stiffness = np.array([_of(names, stiffness_poles, name, 2) for name in names]).reshape(-1, 2)
        return FeedbackGains(read_only(links), read_only(stiffness))


def _of(names: Sequence[str], poles: Any, name: str, order: int) -> Array:
    if isinstance(poles, Mapping):
        for key in poles:
            if key not in names:
                raise unknown_name("joint in poles", key, names)
        if name not in poles:
            raise RbdError(f"poles of joint '{name}' are missing")
        poles = poles[name]
    try:
        return gains_of(poles, order)
    except RbdError as error:
        raise RbdError(f"joint '{name}': {error}") from None

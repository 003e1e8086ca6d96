"""Contact coordinates u₁, u₂, ψ: rates and accelerations from the bodies' motion, and inversely (Montana 1988).

Montana's equations hold for touching bodies. The following hold with a gap d, too: with the tangential steps
s₁ = M₁ u̇₁ and s₂ = R_ψ M₂ u̇₂ of the closest points, in the first chart's axes, K̃₂ = R_ψ K₂ R_ψ, and the twist (ω, v)
of the second body relative to the first at the second's point,

    (K₁ + K̃₂ (1 + d K₁)) s₁ = (ω_y, −ω_x) + K̃₂ (v_x, v_y),   s₂ = (1 + d K₁) s₁ − (v_x, v_y),
    ψ̇ = −ω_z + T₁ M₁ u̇₁ + T₂ M₂ u̇₂,   ḋ = v_z.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError, shown
from ...lie import se3
from ...imaginary_step import STEP
from ...model.inertia import Array, finite
from ...model.surfaces.charts import chart_forms
from ...model.surfaces.contacts import SlidingContact
from ...model.surfaces.surface import Chart, Surface
from .closest import closest_points_entry


class ContactRates(NamedTuple):
    """Derivatives of contact coordinates: `u_1`, `u_2` (2,), `psi` (rad/s) and `gap` (m/s); or second derivatives."""

    u_1: Array
    u_2: Array
    psi: Any
    gap: Any


class ContactPoint(NamedTuple):
    """Closest points of two surfaces.

    `gap` (m), positive if separated; `point_1`, `point_2` (3,) and `axes` (3, 3), in the frame of the first surface's
    link: columns x, y along the first chart and z, its outward normal; contact coordinates `u_1`, `u_2` (2,) and
    `psi`, the angle ψ about −z from the first chart's x axis to the second's; `chart_1`, `chart_2`: geometry of both
    surfaces, `index_1`, `index_2`: indices of their charts.
    """

    gap: float
    point_1: Array
    point_2: Array
    axes: Array
    u_1: Array
    u_2: Array
    psi: float
    chart_1: Chart
    chart_2: Chart
    index_1: int
    index_2: int
    first: Surface
    second: Surface


def closest_points(first: Surface, second: Surface, pose: ArrayLike, what: str = "closest_points") -> ContactPoint:
    """The closest points of two surfaces; pose (4, 4): of the second's link in the frame of the first's.

    For hollow bodies the points closest to the inner body; for overlapping bodies those of least depth. Raises
    `RbdError` without unique closest points (parallel cylinders).

        >>> plate, ball = rbd.surfaces_of(rbd.sample_path("ball_on_plate"), "plate")[4], rbd.Sphere("ball", 0.03)
        >>> touch = rbd.closest_points(plate, ball, np.eye(4))    # of their links
        >>> round(float(touch.gap), 6)
        -0.055
    """
    contact = SlidingContact(first, second)    # raises for surfaces that cannot touch
    T = se3.checked_pose("pose", pose)
    if T.shape != (4, 4):
        raise RbdError(f"pose: expected one of shape (4, 4), got {T.shape}")
    F1, F2 = np.asarray(first.frame), np.asarray(second.frame)
    X = se3.inverse(F1) @ T @ F2
    out = np.empty(6)
    pair = np.array([contact.walks, *first.shape, *second.shape, *X[:3, :3].ravel(), *X[:3, 3]])
    if not closest_points_entry.call(pair, out) or not np.isfinite(out).all():
        raise RbdError(f"{what}: the {first} and the {second} have no unique closest points here: they touch along a "
                       "line, the hollow one does not hold the other, or one is far inside the other")
    (u_1, i), (u_2, j) = first.coordinates(out[:3]), second.coordinates(out[3:])
    chart_1, chart_2 = first.chart(u_1, i), second.chart(u_2, j)
    y = X[:3, :3] @ out[3:] + X[:3, 3]
    x_2 = chart_1.axes.T @ X[:3, :3] @ chart_2.axes[:, 0]
    R, p = F1[:3, :3], F1[:3, 3]
    gap = float(chart_1.axes[:, 2] @ (y - out[:3]))
    return ContactPoint(gap, R @ out[:3] + p, R @ y + p, R @ chart_1.axes, u_1, u_2,
                        float(np.arctan2(-x_2[1], x_2[0])), chart_1, chart_2, i, j, first, second)


def contact_rates(contact: ContactPoint, twist: ArrayLike) -> ContactRates:
    """Rates of contact coordinates under the twist (6,) = (ω, v) of the second body relative to the first, in contact
    axes (rad/s, m/s), v at the second body's `point_2`. v_z is the rate of the gap.

        >>> plate, ball = rbd.surfaces_of(rbd.sample_path("ball_on_plate"), "plate")[4], rbd.Sphere("ball", 0.03)
        >>> touch = rbd.closest_points(plate, ball, np.eye(4))    # of their links
        >>> rbd.contact_rates(touch, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]).u_2.round(3)    # it rolls
        array([-1.,  0.])
    """
    return _rates(_checked(contact), contact.u_1, contact.u_2, contact.psi, contact.gap, finite(twist, (6,), "twist"))


def contact_twist(contact: ContactPoint, rates: ContactRates) -> Array:
    """Twist (6,) for given rates: the inverse of `contact_rates`.

        >>> plate, ball = rbd.surfaces_of(rbd.sample_path("ball_on_plate"), "plate")[4], rbd.Sphere("ball", 0.03)
        >>> touch = rbd.closest_points(plate, ball, np.eye(4))    # of their links
        >>> rbd.contact_twist(touch, rbd.contact_rates(touch, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])).round(6)
        array([ 1., -0.,  0.,  0.,  0.,  0.])
    """
    contact = _checked(contact)
    first, second = contact.chart_1, contact.chart_2
    turn = _turn(contact.psi)
    s1, r2 = first.metric @ finite(rates.u_1, (2,), "u_1"), second.metric @ finite(rates.u_2, (2,), "u_2")
    s2 = turn @ r2
    v = s1 + contact.gap * first.curvature @ s1 - s2
    w = first.curvature @ s1 + turn @ second.curvature @ r2
    return np.array([-w[1], w[0], -rates.psi + first.torsion @ s1 + second.torsion @ r2, *v, rates.gap])


def contact_accelerations(contact: ContactPoint, twist: ArrayLike, twist_rate: ArrayLike) -> ContactRates:
    """Second derivatives of contact coordinates; twist_rate (6,): derivative of the twist's components in contact axes.

        >>> plate, ball = rbd.surfaces_of(rbd.sample_path("ball_on_plate"), "plate")[4], rbd.Sphere("ball", 0.03)
        >>> touch = rbd.closest_points(plate, ball, np.eye(4))    # of their links
        >>> rbd.contact_accelerations(touch, [1.0, 0, 0, 0, 0, 0], np.zeros(6)).u_2.round(3) + 0.0
        array([0., 0.])
    """
    rates = contact_rates(contact, twist)
    V, V_dot = finite(twist, (6,), "twist"), finite(twist_rate, (6,), "twist_rate")
    h = 1j * STEP
    moved = _rates(contact, contact.u_1 + h * rates.u_1, contact.u_2 + h * rates.u_2, contact.psi + h * rates.psi,
                   contact.gap + h * rates.gap, V + h * V_dot)
    return ContactRates(*(np.imag(part) / STEP for part in moved))


def _checked(contact: Any) -> ContactPoint:
    if not isinstance(contact, ContactPoint):
        raise RbdError(f"contact: expected the result of closest_points, got {shown(contact)}")
    return contact


def _turn(psi: Any) -> Any:
    """R_ψ (2, 2): components of a tangent vector in one chart's axes from those in the other's."""
    return np.array([[np.cos(psi), -np.sin(psi)], [-np.sin(psi), -np.cos(psi)]])


def _rates(contact: ContactPoint, u_1: Any, u_2: Any, psi: Any, gap: Any, twist: Any) -> ContactRates:
    _, _, M1, K1, T1 = chart_forms(contact.first.shape, u_1, bool(contact.index_1))
    _, _, M2, K2, T2 = chart_forms(contact.second.shape, u_2, bool(contact.index_2))
    turn = _turn(psi)
    K2 = turn @ K2 @ turn
    apart = np.eye(2) + gap * K1
    try:
        s1 = np.linalg.solve(K1 + K2 @ apart, np.array([twist[1], -twist[0]]) + K2 @ twist[3:5])
    except np.linalg.LinAlgError:
        raise RbdError(f"the {contact.first} and the {contact.second} touch along a line: their contact coordinates "
                       "are not unique") from None
    s2 = turn @ (apart @ s1 - twist[3:5])
    return ContactRates(np.linalg.solve(M1, s1), np.linalg.solve(M2, s2), T1 @ s1 + T2 @ s2 - twist[2], twist[5])

"""G's objective `P = ∫ Σ τ_i² dt` of B-spline motions of any tree, and its gradient by the control points.

G's `∂P = 2 ∫ Σ τ_i ∂τ_i dt` with ∂τ of K Table 5 and the chain rule of `SplineMotion`: q, q̇, q̈ are B-splines times
control points. `optimize_motion` minimises this objective and others, with limits and friction, for joints with vector
positions.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..derivatives.inverse import inverse_dynamics_derivatives
from ..dynamics.inverse import inverse_dynamics
from ..errors import RbdError, shown
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.scalars import positive, whole_number
from ..model.state import not_a_model, real, states
from .optimal.node_sums import states_of
from .optimal.nodes import Nodes
from .interior_point.normal_equations import by_control_points
from .rotation_splines import RotationSplines
from .splines import basis

MOST_NODES = 10_000


class EffortEnergy(NamedTuple):
    """`value` P, in N² m² s or N² s, and its derivatives `by_control` (K, nv) and `by_duration`. Batches add an axis.
    """

    value: Any
    by_control: Array
    by_duration: Any


def effort_energy(model: RobotModel, control: ArrayLike, duration: float, *, degree: int = 5,
                  reference: ArrayLike | None = None, weights: ArrayLike | None = None, external_wrenches: Any = None,
                  nodes: int = 100) -> EffortEnergy:
    """`P = ∫ Σ w_i τ_i² dt` (G) over the motion with these control points, and its gradient: `2 ∫ Σ w_i τ_i ∂τ_i dt`.

    control (K, nv), or (B, K, nv) for a batch of motions: those of `SplineMotion`, in coordinates from `reference`
    (nq,) on, `model.neutral()` by default. Joints of all kinds: a quaternion is that of the reference rotated by exp of
    its three coordinates; a floating joint has three of rotation, then three of position, in axes of its parent.
    duration: s. weights (nv,): not negative, 1 by default. external_wrenches: as of `inverse_dynamics`, constant in
    link axes. nodes: smallest number of quadrature points (Gauss–Legendre between knots). Joint friction is neglected.
    Raises `RbdError` for malformed input.

        >>> control = np.repeat([[0.0, 0.0], [1.0, -0.5]], 6, axis=0)
        >>> rbd.effort_energy(rbd.sample("two_link"), control, 2.0).by_control.shape
        (12, 2)
    """
    if not hasattr(model, "_block"):
        raise not_a_model(model)
    points = real(control, "control", f"(K, {model.nv}) or (B, K, {model.nv})")
    if points.ndim not in (2, 3) or points.shape[-1] != model.nv or not np.isfinite(points).all():
        raise RbdError(f"control must be finite numbers of shape (K, {model.nv}) or (B, K, {model.nv}), got shape "
                       f"{points.shape}")
    T = positive(duration, "duration", "time")
    B = basis(degree, points.shape[-2])
    quadrature = Nodes.gauss(B, whole_number(nodes, "nodes", most=MOST_NODES), 3)
    start = states(model, positions={"reference": model.neutral() if reference is None else reference})
    w = np.ones(model.nv) if weights is None else real(weights, "weights", f"({model.nv},)")
    if w.shape != (model.nv,) or not ((w >= 0.0) & np.isfinite(w)).all():
        raise RbdError(f"weights must be {model.nv} numbers that are not negative, got {shown(weights)}")
    if start.batch is not None:
        raise RbdError(f"reference must be one position ({model.nq},), got {start.batch} of them")
    with np.errstate(over="ignore", invalid="ignore"):    # overflow raises an error below
        energies = [_of_motion(model, x, T, quadrature, start.arrays[0], w, external_wrenches)
                 for x in (points[None] if points.ndim == 2 else points)]
    if points.ndim == 2:
        return energies[0]
    return EffortEnergy(np.array([x.value for x in energies]),
                        np.array([x.by_control for x in energies]).reshape(points.shape),
                        np.array([x.by_duration for x in energies]))


def _of_motion(model: RobotModel, control: Array, T: float, nodes: Nodes, reference: Array, weights: Array,
               wrenches: Any) -> EffortEnergy:
    count, nv = len(nodes.s), model.nv
    in_time = np.ascontiguousarray(nodes.values / (T ** np.arange(3))[:, None])
    z = np.empty((count, 3 * nv))
    states_of(in_time, nodes.interval, np.ascontiguousarray(control), z)
    x, rate, acceleration = z.reshape(count, 3, nv).transpose(1, 0, 2)
    motion = RotationSplines(model, reference, x, rate, acceleration)
    tau = inverse_dynamics(model, motion.q, motion.v, motion.a, wrenches)
    slopes = inverse_dynamics_derivatives(model, motion.q, motion.v, motion.a, wrenches)
    share = T * nodes.weight[:, None] * weights * tau
    value = float((share * tau).sum())
    by_x, by_rate, by_acceleration = motion.gradient(*(2.0 * np.einsum("ni,nij->nj", share, D) for D in slopes))
    by_control = np.empty(control.size)
    by_control_points(np.concatenate([by_x, by_rate, by_acceleration], axis=1), in_time, nodes.interval, 0, by_control)
    by_duration = (value - (by_rate * rate).sum() - 2.0 * (by_acceleration * acceleration).sum()) / T
    if not (np.isfinite(by_control).all() and np.isfinite(value) and np.isfinite(by_duration)):
        raise RbdError("the energy of this motion is beyond what floating point numbers hold: control points up to "
                       f"{np.abs(control).max():.3g}, duration {T:.3g} s")
    return EffortEnergy(value, by_control.reshape(control.shape), float(by_duration))

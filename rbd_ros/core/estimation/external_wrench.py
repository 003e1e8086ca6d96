"""The external wrench on a body from external joint efforts: `Jᵀ w = τ_ext` by weighted least squares.

A contact has no effect on joints beyond the touched body, so the last joint with a significant effort identifies it
(Haddadin, De Luca, Albu-Schäffer 2017). Force-torque sensors between the base and the body are more rows: less the
weight and inertia of what is behind them they show the same wrench, in their own frame.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics.bodies.joint_wrenches import joint_wrenches
from ..dynamics.kinematics import forward_kinematics, jacobian
from ..errors import RbdError, shown, unknown_name
from ..lie import se3
from ..lie.coadjoint import Ad_star_inv
from ..model.inertia import Array, finite, numbers
from ..model.robot_model import RobotModel
from ..model.state import States, states

FRAMES = ("body", "world", "aligned")
LENGTH = 0.1       # m: moments count as forces at this arm
WEAKEST = 1e-3     # singular value, relative to the largest, below which a direction is unobservable
HIDDEN = 1e-6      # smallest part of a component in unobservable directions that is not rounding


@dataclass(frozen=True, eq=False)
class ExternalWrench:
    """wrench (6,) or (N, 6): on the body, moment first, N m and N; zero along directions unobservable in this pose.
    covariance (6, 6): infinite on the diagonal for components with a part in such a direction. unseen (6, 6): the
    projection onto these directions, zero if there are none. residual (nv,): efforts that no wrench on this body
    explains. A batch adds a leading axis.
    """

    wrench: Array
    covariance: Array
    unseen: Array
    residual: Array

    @property
    def line_of_action(self) -> tuple[Array, Array]:
        """Per state the point (3,) nearest to the frame's origin and the direction (3,) of the line along which a pure
        force has this wrench; NaN without a force, or if a part of the wrench is unobservable.
        """
        moment, force = self.wrench[..., :3], self.wrench[..., 3:]
        size = np.hypot.reduce(force, axis=-1, keepdims=True)    # which does not overflow
        hidden = np.abs(self.unseen).max(axis=(-1, -2), initial=0.0)[..., None] > 0.0
        size = np.where(hidden | (size == 0.0), np.nan, size)
        return np.cross(force / size, moment / size), force / size


def external_wrench(model: RobotModel, q: ArrayLike, effort: ArrayLike, body: str, *, frame: str = "body",
                    point: ArrayLike | None = None, covariance: ArrayLike | None = None,
                    sensors: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None, v: ArrayLike | None = None,
                    a: ArrayLike | None = None) -> ExternalWrench:
    """The wrench on `body` that best explains external joint efforts (nv,) or (N, nv): see `ExternalWrench`.

    effort: as of `MomentumObserver`. frame: axes and origin as of `jacobian`: "body", "world" or "aligned" (origin of
    the body, axes of the world). point (3,) in the body's frame, m: a contact without moment about this point: three
    unknowns in place of six; only with frame "body". covariance: of the efforts, (nv,) variances or (nv, nv); by
    default all the same, those of the residual. sensors: force-torque sensors at the joints above links, {link:
    (reading, covariance)}, with readings (6,) or (N, 6) as of the nodes' `wrench_joints`: of the link on the joint, in
    the frame of the link; covariance (6,) or (6, 6). The body is that link, or behind it. Weight and inertia are taken
    off, at velocity v and acceleration a (nv,) or (N, nv), at rest by default. Sensors need the covariance of the
    efforts, of which theirs is independent. Raises `RbdError` for wrong shapes, names and numbers.

        >>> model = rbd.sample("iiwa")
        >>> q, push = np.linspace(0.2, 1.0, 7), np.array([0.0, 0.5, 0.0, 10.0, 0.0, -3.0])
        >>> effort = rbd.jacobian(model, q, "link_7").T @ push
        >>> rbd.external_wrench(model, q, effort, "link_7").wrench.round(6) + 0.0
        array([ 0. ,  0.5,  0. , 10. ,  0. , -3. ])
    """
    if not sensors and not (v is None and a is None):
        raise RbdError("v, a: only with sensors, whose inertia they show")
    motion = {name: 0.0 * model.velocity_limit if value is None else value
              for name, value in (("v", v), ("a", a))} if sensors else {}
    inputs = states(model, positions={"q": q}, rates={"effort": effort, **motion})
    if frame not in FRAMES:
        raise unknown_name("frame", frame, FRAMES)
    if point is not None and frame != "body":
        raise RbdError('point: only with frame "body", in which it is given')
    root, has_covariance = whitening(covariance, model.nv)
    if point is None:
        basis = np.diag([LENGTH] * 3 + [1.0] * 3)
    else:
        x, y, z = finite(point, (3,), "point")
        basis = np.concatenate([[[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]], np.eye(3)])
    if sensors and not has_covariance:
        raise RbdError("sensors: expected with them the covariance of the efforts")
    J = jacobian(model, inputs.arrays[0], body, frame)
    rows, measured = J.reshape(-1, 6, model.nv).transpose(0, 2, 1), np.atleast_2d(inputs.arrays[1])
    with np.errstate(over="ignore", invalid="ignore"):    # results that are not finite are refused
        for link, given in (sensors or {}).items():
            X, wrenches, weights = _sensed(inputs, model, body, frame, link, given)
            rows, measured = np.concatenate([rows, X], axis=1), np.concatenate([measured, wrenches], axis=1)
            root = np.block([[root, np.zeros((len(root), 6))], [np.zeros((6, len(root))), weights]])
        parts = [_solved(A, values, basis, root, has_covariance) for A, values in zip(rows, measured, strict=True)]
        variances = np.array([part[3] @ part[3] for part in parts])
    batch = () if inputs.batch is None else (inputs.batch,)
    shapes = (6,), (6, 6), (6, 6), (len(root),)
    wrench, covariance, unseen, residual = (np.array([part[k] for part in parts]).reshape(*batch, *shape)
                                            for k, shape in enumerate(shapes))
    residual = residual[..., :model.nv]
    inputs.finite(wrench=wrench, residual=residual, covariance=variances)
    return ExternalWrench(wrench, covariance, unseen, residual)


def _sensed(inputs: States, model: RobotModel, body: str, frame: str, link: str,
            given: Any) -> tuple[Array, Array, Array]:
    """Derivatives (N, 6, 6) of a sensor's wrench, in the frame of its link, by that on the body; the wrench (N, 6) of
    the world on what is behind it; L⁻¹ of its covariance `L Lᵀ`.
    """
    index, parents = model.body_index(link), {joint.child: joint.parent for joint in model.description.joints}
    behind: str | None = body
    while behind not in (None, link):
        behind = parents.get(str(behind))
    if behind is None:
        raise RbdError(f"sensors: the sensor above link '{link}' does not carry body '{body}'")
    if not isinstance(given, tuple | list) or len(given) != 2 or given[1] is None:
        raise RbdError(f"sensors['{link}']: expected (reading, covariance), got {shown(given)}")
    root, _ = whitening(given[1], 6, f"sensors['{link}']: covariance")
    try:
        reading = np.broadcast_to(numbers(given[0]), (inputs.count, 6))
    except (TypeError, ValueError, OverflowError):
        reading = np.full((1, 6), np.nan)
    if not np.isfinite(reading).all():
        raise RbdError(f"sensors['{link}']: expected a finite reading (6,), or ({inputs.count}, 6) of all states, got "
                       f"{shown(given[0])}")
    q, _, v, a = inputs.arrays
    poses = forward_kinematics(model, q).reshape(inputs.count, -1, 4, 4)
    origin = np.array(poses[:, model.body_index(body)])
    if frame != "body":
        origin[:, :3, :3] = np.eye(3)
    if frame == "world":
        origin[:, :3, 3] = 0.0
    own = joint_wrenches(model, q, v, a).reshape(inputs.count, -1, 6)[:, index]
    return Ad_star_inv(se3.inverse(poses[:, index]) @ origin), reading + own, root


def _solved(A: Array, effort: Array, basis: Array, root: Array, scaled: bool) -> tuple[Array, Array, Array, Array]:
    """Wrench, covariance, projection onto unobservable directions and residual of `A w = effort`, with w in the range
    of `basis`, whose columns are of comparable size, and rows weighted by `root`; scaled: whether `root` is in units of
    the noise, which is otherwise estimated from the residual.
    """
    U, sizes, V = np.linalg.svd(root @ A @ basis)
    count = int(np.sum(sizes > WEAKEST * sizes.max(initial=0.0))) if sizes.any() else 0
    half = basis @ V[:count].T / sizes[:count]
    wrench = half @ (U[:, :count].T @ (root @ effort))
    residual, covariance = effort - A @ wrench, half @ half.T
    if not scaled:
        spare = len(effort) - count
        covariance = covariance * (float(residual @ residual) / spare if spare > 0 else np.nan)
    Q, _ = np.linalg.qr(basis @ V[count:].T)
    hidden = np.abs(Q).max(axis=1, initial=0.0) > HIDDEN
    covariance[hidden, :] = covariance[:, hidden] = 0.0
    covariance[hidden, hidden] = np.inf
    return wrench, covariance, Q @ Q.T, residual


def touched_body(model: RobotModel, effort: ArrayLike, threshold: ArrayLike,
                 uncertainty: ArrayLike = 0.0) -> str | None:
    """The body moved by the last joint whose external effort exceeds its threshold; None if no effort does. The contact
    is on this body, or on a body beyond it whose joint the contact does not load. effort, threshold (nv,). uncertainty
    (nv,): `MomentumObserver.friction_uncertainty`, independent of the threshold, so that their squares are added.

        >>> rbd.touched_body(rbd.sample("iiwa"), [5.0, 3.0, 0.0, 4.0, 0.1, 0.0, 0.0], 1.0)
        'link_4'
    """
    try:
        limits = {name: np.broadcast_to(np.asarray(value, dtype=np.float64), model.nv)
                  for name, value in (("threshold", threshold), ("uncertainty", uncertainty))}
    except (TypeError, ValueError):
        raise RbdError(f"threshold, uncertainty: expected a number or {model.nv} each, got {shown(threshold)}, "
                       f"{shown(uncertainty)}") from None
    external, limit, friction = states(model, rates={"effort": effort, **limits}).arrays
    if external.ndim != 1:
        raise RbdError(f"touched_body takes one state: effort has shape {external.shape}, expected ({model.nv},)")
    above = np.abs(external) > np.hypot(limit, friction)
    for joint in reversed(model.joints):
        if above[joint.idx_v:joint.idx_v + joint.nv].any():
            return joint.child
    return None


def whitening(covariance: Any, nv: int, what: str = "covariance") -> tuple[Array, bool]:
    """L⁻¹ of the covariance `L Lᵀ` (nv, nv), and whether it was given."""
    if covariance is None:
        return np.eye(nv), False
    try:
        values = np.asarray(covariance, dtype=np.float64)
        matrix = np.diag(values) if values.ndim == 1 else values
        if matrix.shape == (nv, nv) and np.isfinite(matrix).all() and np.array_equal(matrix, matrix.T):
            return np.linalg.inv(np.linalg.cholesky(matrix)), True
    except (TypeError, ValueError, np.linalg.LinAlgError):
        pass
    raise RbdError(f"{what}: expected ({nv},) positive variances or a positive definite ({nv}, {nv}), got "
                   f"{shown(covariance)}")


"""Which link is touched, from external joint efforts: Bayes' rule over points of contact on the links.

A force f at point p of a body gives `τ_ext = J_pᵀ f`. With f ~ N(0, s² 1), pressing only, and Gaussian errors of the
efforts, the evidence of each point is a Gaussian integral over a half-space; that of a body is the mean over its
points. Without restriction to the surface and to pressing forces the question has no answer, since a force whose line
passes through the axis of a link's joint is also one on the link before (Manuelli and Tedrake 2016).
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics.kinematics import jacobian
from ..errors import RbdError, shown
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.scalars import positive
from ..model.state import states
from ..motion.collision.collision_model import CollisionModel
from ..motion.collision.pairs import rigid_parts
from .contact_points import ball_points, shape_area, shape_points
from .external_wrench import whitening

POINTS = 800    # of a body: with 200, probabilities of forces of 50 N and errors of 0.04 N m are far off


@dataclass(frozen=True, eq=False)
class ContactProbabilities:
    """probability (n,): of a contact on each of `bodies`, given that it is on one of them. point (n, 3), m, and force
    (n, 3), N, in the frame of the body: the most likely ones if it is on this body, of the points compared. A batch
    adds a leading axis to all three.
    """

    bodies: tuple[str, ...]
    probability: Array
    point: Array
    force: Array

    @property
    def likeliest(self) -> str | tuple[str, ...]:
        """The body of largest probability, per state."""
        best = np.argmax(self.probability, axis=-1)
        return self.bodies[best] if best.ndim == 0 else tuple(self.bodies[k] for k in best)


def contact_probabilities(model: RobotModel, q: ArrayLike, effort: ArrayLike, covariance: ArrayLike, *,
                          collisions: CollisionModel | None = None, force: float = 30.0) -> ContactProbabilities:
    """Probabilities that a single contact is on each moving body, from external joint efforts (nv,) or (N, nv).

    effort: as of `MomentumObserver`. covariance: of its errors, (nv,) variances or (nv, nv): those of
    `contact_thresholds`, plus the square of half of `friction_uncertainty`. collisions: whose shapes of links,
    tools and loads are touched, meshes as their convex hulls; equal chances for all bodies with shapes, and for equal
    areas of one. None: anywhere in a ball about the centre of mass that has the body's mean moment of inertia, and at
    least the volume of its mass in water; bodies without mass are not touched. force: RMS of the forces to expect, N,
    before anything is felt. Raises `RbdError` for wrong shapes and numbers.

        >>> model = rbd.sample("iiwa")
        >>> q, push = np.linspace(0.2, 1.0, 7), np.array([0.0, 0.0, 0.0, 20.0, 0.0, 0.0])
        >>> effort = rbd.jacobian(model, q, "link_6").T @ push    # through the axes of joints 5 to 7
        >>> rbd.touched_body(model, effort, 0.5)
        'link_4'
        >>> rbd.contact_probabilities(model, q, effort, np.full(7, 0.01)).likeliest
        'link_6'
    """
    inputs = states(model, positions={"q": q}, rates={"effort": effort})
    if covariance is None:
        raise RbdError(f"covariance: expected ({model.nv},) variances or ({model.nv}, {model.nv}), got None")
    root, _ = whitening(covariance, model.nv)
    size = positive(force, "force", "force") / np.sqrt(3.0)
    if not isinstance(collisions, CollisionModel | None):
        raise RbdError(f"collisions: expected a CollisionModel, got {shown(collisions)}")
    if collisions is not None and collisions.model.body_names != model.body_names:
        raise RbdError(f"collisions: of another robot, '{collisions.model.name}', expected '{model.name}'")
    surface = _surface(model, collisions)
    positions, efforts = (np.atleast_2d(array) for array in inputs.arrays)
    J = np.stack([jacobian(model, positions, body) for body in surface.bodies], axis=1)
    batch, n = () if inputs.batch is None else (inputs.batch,), len(surface.bodies)
    with np.errstate(over="ignore", invalid="ignore"):    # results that are not finite are refused
        parts = [_compared(surface, root @ J[k].transpose(0, 2, 1), root @ efforts[k], size)
                 for k in range(inputs.count)]
        results = [np.array([part[k] for part in parts]).reshape(*batch, n, *shape)
                   for k, shape in enumerate(((), (3,), (3,)))]
    inputs.finite(probability=results[0], point=results[1], force=results[2])
    return ContactProbabilities(surface.bodies, *results)


class _Surface(NamedTuple):
    """Points of contact (3, P) of all bodies, outward normals (3, P), shares (P,) of their bodies, logarithmic; places
    (n + 1,) where those of each body begin; maps (6, 3, P) from forces at them to wrenches.
    """

    bodies: tuple[str, ...]
    points: Array
    normals: Array
    shares: Array
    begin: NDArray[np.intp]
    wrenches: Array


@lru_cache(maxsize=16)
def _surface(model: RobotModel, collisions: CollisionModel | None) -> _Surface:
    """Points of all bodies that move."""
    moving = {name for name, part in zip(model.body_names, rigid_parts(model), strict=True) if part >= 0}
    parts: dict[str, list[tuple[Array, Array, Array]]] = {name: [] for name in model.body_names}
    if collisions is not None:
        pieces = [(model.body_names[piece.body], piece.shape, shape_area(piece.shape)) for piece in collisions.pieces
                  if piece.body >= 0 and model.body_names[piece.body] in moving]
        for name, shape, area in pieces:
            share = area / sum(x for other, _, x in pieces if other == name)
            count = max(round(POINTS * share), 1)
            parts[name].append((*shape_points(shape, count), np.full(count, np.log(share / count))))
    else:
        for name, inertia in model.description.links.items():
            if name in moving and inertia.mass > 0.0:
                parts[name].append((*ball_points(inertia, POINTS), np.full(POINTS, -np.log(POINTS))))
    bodies = tuple(name for name, each in parts.items() if each)
    if not bodies:
        raise RbdError(f"'{model.name}': no moving link has " + ("a mass: give `collisions`" if collisions is None else
                                                                "a shape in `collisions`"))
    points, normals, shares = (np.concatenate([part[k] for name in bodies for part in parts[name]]).T for k in range(3))
    begin = np.cumsum([0, *(sum(len(part[2]) for part in parts[name]) for name in bodies)])
    wrenches = np.stack([*(np.cross(points, axis[:, None], axis=0) for axis in np.eye(3))], axis=1)
    wrenches = np.concatenate([wrenches, np.broadcast_to(np.eye(3)[:, :, None], wrenches.shape)])
    return _Surface(bodies, points, normals, shares, begin, wrenches)


def _compared(surface: _Surface, K: Array, y: Array, size: float) -> tuple[Array, Array, Array]:
    """Probabilities (n,), likeliest points (n, 3) and forces (n, 3), from efforts (nv,) and their derivatives K
    (n, nv, 6) by the bodies' wrenches, both divided by the standard deviation of efforts.
    """
    from scipy.special import log_ndtr    # local import: saves 20 MB in nodes that do not ask

    p, normals, first, counts = surface.points, surface.normals, surface.begin[:-1], np.diff(surface.begin)
    X = np.concatenate([(size**2 * A.T @ A @ surface.wrenches[:, :, begin:end].reshape(6, -1)).reshape(6, 3, -1)
                        for A, begin, end in zip(K, first, surface.begin[1:], strict=True)], axis=2)
    x = np.repeat(size * K.transpose(2, 0, 1) @ y, counts, axis=1)
    N = [X[3:, k] - np.cross(p, X[:3, k], axis=0) for k in range(3)]    # information about f / size: 1 + N
    b = x[3:] - np.cross(p, x[:3], axis=0)
    # L D Lᵀ of 1 + N, whose pivots are at least 1
    d0 = np.maximum(1.0 + N[0][0], 1.0)
    l10, l20 = N[0][1] / d0, N[0][2] / d0
    d1 = np.maximum(1.0 + N[1][1] - l10 * N[0][1], 1.0)
    l21 = (N[1][2] - l10 * N[0][2]) / d1
    d2 = np.maximum(1.0 + N[2][2] - l20 * N[0][2] - l21 * (N[1][2] - l10 * N[0][2]), 1.0)

    def solved(right: Array) -> tuple[Array, Array]:
        """x (3, P) of `(1 + N) x = right`, and its product with the right side."""
        z0, z1 = right[0], right[1] - l10 * right[0]
        z2 = right[2] - l20 * z0 - l21 * z1
        x2 = z2 / d2
        x1 = z1 / d1 - l21 * x2
        return np.stack([z0 / d0 - l10 * x1 - l20 * x2, x1, x2]), z0**2 / d0 + z1**2 / d1 + z2**2 / d2

    mean, explained = solved(b)
    along, spread = solved(normals)
    outwards = np.einsum("ip,ip->p", mean, normals)
    evidence = 0.5 * (explained - np.log(d0 * d1 * d2)) + log_ndtr(-outwards / np.sqrt(spread)) + surface.shares
    largest = np.maximum.reduceat(evidence, first)
    of_body = largest + np.log(np.add.reduceat(np.exp(evidence - np.repeat(largest, counts)), first))
    odds = np.exp(of_body - of_body.max())
    best = [begin + int(np.argmax(evidence[begin:end])) for begin, end in zip(first, surface.begin[1:], strict=True)]
    pressing = mean - np.maximum(outwards, 0.0) / spread * along
    return odds / odds.sum(), p.T[best], size * pressing.T[best]

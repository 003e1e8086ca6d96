"""Certificate that a motion hits nothing: of what kind motions are, and what is said of one that touches."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError, shown
from ...model import block
from ...model.inertia import Array
from ...model.joint_kinds import HELICAL, PRISMATIC, REVOLUTE
from ...model.robot_model import RobotModel
from ..periodic_motion import PeriodicMotion, fourier
from . import separation
from .distance_curvature import distance_curvature
from .pieces import Piece
from .sweeping import CLEAR, GAVE_UP, NEAR, near_distances, sweep_motion

CORES = {"sphere": separation.POINT, "capsule": separation.SEGMENT, "box": separation.BOX,
         "cylinder": separation.CYLINDER, "mesh": separation.HULL, "plane": separation.PLANE}
CLEARANCE = 0.01        # m, of planned motions by default
ENDLESS = 1e30          # m, radius of a plane's sphere
ROUNDING = 1e-9         # m, beyond the clearance: what touches exactly is not clear
RESOLUTION = 1e-6       # m: how far pieces move in the smallest interval
EVALUATIONS = 300_000   # of configurations, at most
SAMPLES = 200           # of a motion that touches, for the deepest place
DEGREE = 5              # of Taylor's polynomials of a periodic motion
PERIODIC_ERROR = 1e-8   # rad or m, of these
NONE = np.empty((0, 0, 0))


class Clearance(NamedTuple):
    """Whether a motion is certified to keep a clearance all along. If not: the pair of pieces, the time (s; of
    positions the index, 1.5 halfway from the second to the third), the distance there (m, negative: depth), in words.
    """

    clear: bool
    pair: tuple[str, str] | None = None
    time: float = 0.0
    distance: float = np.inf
    reason: str = ""


class Sweeper:
    """Pieces and pairs of them, packed for compiled code."""

    def __init__(self, model: RobotModel, pieces: Sequence[Piece], pairs: NDArray[np.int64]) -> None:
        self.model = model
        B = model._block
        self.supported = all(int(B[block.HEADER + block.NODE * k + block.TYPE]) in (REVOLUTE, PRISMATIC, HELICAL)
                             for k in range(int(B[block.NODES])))
        surfaces = [piece.shape.surface for piece in pieces if piece.shape.surface is not None]
        self.vertices = np.ascontiguousarray(np.concatenate([np.zeros((0, 3)), *(it.points for it in surfaces)]))
        self.edges = _edges(len(self.vertices), [it.faces for it in surfaces], [len(it.points) for it in surfaces])
        table, first = np.zeros((len(pieces), separation.PIECE)), 0
        start = int(B[block.LINK_START])
        for row, piece in zip(table, pieces, strict=True):
            pose, node = piece.shape.pose, -1
            if piece.body >= 0:
                o = start + block.LINK * piece.body
                node = int(B[o + block.LINK_NODE])
                link = np.eye(4)
                link[:3, :3] = B[o + block.LINK_ROTATION:o + block.LINK_ROTATION + 9].reshape(3, 3)
                link[:3, 3] = B[o + block.LINK_POSITION:o + block.LINK_POSITION + 3]
                pose = link @ pose
            kind, size = piece.shape.kind, np.array(piece.shape.size)
            row[separation.BODY], row[separation.CORE] = node, CORES[kind]
            row[separation.ROTATION:separation.ROTATION + 9] = pose[:3, :3].ravel()
            row[separation.POSITION:separation.POSITION + 3] = pose[:3, 3]
            row[separation.CENTRE:separation.CENTRE + 3] = pose[:3, :3] @ piece.middle + pose[:3, 3]
            row[separation.BOUND] = min(piece.radius, ENDLESS)
            if kind in ("sphere", "capsule"):
                row[separation.ROUND] = size[0]
            row[separation.SIZES:separation.SIZES + 3] = {
                "box": lambda s: 0.5 * s, "cylinder": lambda s: (s[0], s[0], 0.5 * s[1]),
                "capsule": lambda s: (0.0, 0.0, 0.5 * s[1])}.get(kind, lambda s: np.zeros(3))(size)
            if piece.shape.surface is not None:
                row[separation.FIRST], row[separation.LAST] = first, first + len(piece.shape.surface.points)
                first += len(piece.shape.surface.points)
        self.table = table.ravel()
        nodes = [self._above(int(row[separation.BODY])) for row in table]
        self.pairs = np.array([(i, j, *_counts(nodes[i], nodes[j])) for i, j in pairs.tolist()],
                              dtype=np.int64).reshape(-1, 4)

    def _above(self, node: int) -> list[int]:
        """The nodes from this one to the root."""
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = int(self.model._block[block.HEADER + block.NODE * node + block.PARENT])
        return nodes

    def check(self) -> None:
        """Raise `RbdError` for joints of which the motion between two configurations has no bound here."""
        if not self.supported:
            raise RbdError(f"collisions: '{self.model.name}' has spherical, floating or cam joints, along whose "
                           "motions nothing is certified: expected revolute and prismatic ones")

    def sweep(self, breaks: Array, powers: Array, clearance: float, resolution: float = RESOLUTION,
              evaluations: float = EVALUATIONS, error: Array | None = None) -> tuple[int, float, int]:
        """Answer of `sweep_motion`, t and the index of the pair."""
        found = np.zeros(3)
        code = sweep_motion.call(self.model._block, self.table, self.vertices, self.edges, self.pairs,
                                 breaks, powers, np.zeros(self.model.nq) if error is None else error,
                                 np.zeros((len(self.pairs), 3)),
                                 np.array([clearance + ROUNDING, resolution, evaluations]), found)
        return int(code), float(found[0]), int(found[1])

    def near(self, q: Array, within: float, pairs: NDArray[np.int64] | None = None,
             slopes: bool = False, contacts: Array = NONE) -> tuple[Array, Array]:
        """Distances (N, pairs) of these pairs, at most `within`, −inf of cores that overlap; and gradients. contacts
        (N, pairs, CONTACT): filled for `curvature`.
        """
        chosen = self.pairs if pairs is None else np.ascontiguousarray(self.pairs[pairs])
        distances = np.empty((len(q), len(chosen)))
        gradients = np.empty((len(q), len(chosen), self.model.nv)) if slopes else NONE
        near_distances.call(self.model._block, self.table, self.vertices, self.edges, chosen, q, within,
                            np.zeros((len(chosen), 3)), distances, gradients, contacts)
        return distances, gradients

    def curvature(self, q: Array, pairs: NDArray[np.int64], contacts: Array, weights: Array, squares: Array) -> Array:
        """Σ weights ∂²d + squares ∂dᵀ∂d (N, nv, nv) of these pairs, weights and squares (N, pairs), 0 of pairs that
        have no contact by `near`.
        """
        out = np.zeros((len(q), self.model.nv, self.model.nv))
        distance_curvature.call(self.model._block, self.table, np.ascontiguousarray(self.pairs[pairs]), q, contacts,
                                weights, squares, out)
        return out


def _edges(count: int, faces: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Where the neighbours of each vertex begin and end, (count + 1,), and after that these neighbours."""
    first = np.cumsum([0, *sizes])
    triangles = np.concatenate([np.zeros((0, 3), dtype=np.int64), *(f + k for f, k in zip(faces, first, strict=False))])
    directed = np.concatenate([triangles[:, [a, b]] for a in range(3) for b in range(3) if a != b])
    directed = np.unique(directed, axis=0)    # sorted by their first vertex
    begins = np.searchsorted(directed[:, 0], np.arange(count + 1))
    return np.concatenate([begins + count + 1, directed[:, 1]]).astype(np.int64)


def _counts(first: list[int], second: list[int]) -> tuple[int, int]:
    """How many of these nodes, from the tips to the root, are not common."""
    common = set(first) & set(second)
    return len(first) - len(common), len(second) - len(common)


def polynomials(model: RobotModel, motion: Any) -> tuple[Array, Array, Array | None]:
    """Breaks (K + 1,), powers (K, m, nq) of t − breaks[k], and an error (nq,), of positions (N, nq), whose straight
    connections are meant, a spline or a Fourier series. Raises `RbdError` for other motions.
    """
    motion = getattr(motion, "motion", motion)         # Excitation
    if hasattr(motion, "polynomials"):
        (breaks, powers), error = motion.polynomials(), None
    elif isinstance(motion, PeriodicMotion):
        c, count = motion.coefficients, len(motion.coefficients) // 2
        rates = (2.0 * np.pi * np.arange(1, count + 1) / motion.period) ** (DEGREE + 1)
        largest = np.repeat(rates, 2) @ np.abs(c[1:]) / np.prod(np.arange(1.0, DEGREE + 2.0))
        step = (PERIODIC_ERROR / max(float(largest.max()), 1e-300)) ** (1.0 / (DEGREE + 1))
        breaks = np.linspace(0.0, motion.period, max(2, int(np.ceil(motion.period / step)) + 1))
        factorials = np.cumprod([1.0, *range(1, DEGREE + 1)])
        powers = np.stack([fourier(breaks[:-1], count, motion.period, d) @ c / factorials[d]
                           for d in range(DEGREE + 1)], axis=1)
        error = np.full(c.shape[1], PERIODIC_ERROR)
    else:
        try:
            points = np.array(motion, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            points = np.zeros(0)
        if points.ndim != 2 or len(points) < 2 or points.shape[1] != model.nq or not np.isfinite(points).all():
            raise RbdError(f"motion: expected positions (N, {model.nq}), N at least 2, or a motion of splines or "
                           f"Fourier series, got {shown(motion)}")
        breaks, error = np.arange(float(len(points))), None
        powers = np.stack([points[:-1], np.diff(points, axis=0)], axis=1)
    if powers.shape[2] != model.nq:
        raise RbdError(f"motion: of {powers.shape[2]} joints, expected {model.nq}")
    return breaks, np.ascontiguousarray(powers), error


def values(breaks: Array, powers: Array, t: Array) -> Array:
    """Positions (N, nq) at times t (N,)."""
    k = np.clip(np.searchsorted(breaks, t, side="right") - 1, 0, len(powers) - 1)
    u = (t - breaks[k])[:, None]
    q = powers[k, -1]
    for m in range(powers.shape[1] - 2, -1, -1):
        q = q * u + powers[k, m]
    return np.ascontiguousarray(q)


def certify(collisions: Any, motion: Any, clearance: float) -> Clearance:
    """The certificate of a motion; `CollisionModel.certify`."""
    sweeper: Sweeper = collisions.sweeper
    sweeper.check()
    breaks, powers, error = polynomials(sweeper.model, motion)
    code, t, pair = sweeper.sweep(breaks, powers, clearance, error=error)
    if code == CLEAR:
        return Clearance(True)
    times = np.unique(np.concatenate([np.linspace(breaks[0], breaks[-1], SAMPLES), [t]]))
    q = values(breaks, powers, times)
    distances = collisions._near(q, np.inf)[0]
    if code == GAVE_UP:
        names = collisions.pairs[pair]
        at = int(np.searchsorted(times, t))
        return Clearance(False, names, t, float(distances[at, pair]),
                         f"'{names[0]}' and '{names[1]}' stay too near the clearance for a certificate")
    if code == NEAR:
        distances[np.searchsorted(times, t), pair] -= RESOLUTION
    s, k = np.unravel_index(int(np.argmin(distances)), distances.shape)
    return Clearance(False, collisions.pairs[k], float(times[s]), float(distances[s, k]),
                     contact(collisions.pairs[k], float(distances[s, k]), clearance))


def contact(pair: tuple[str, str], distance: float, clearance: float) -> str:
    """A pair that is too near, in words."""
    names = f"'{pair[0]}' and '{pair[1]}'"
    if distance <= 0.0:
        return f"{names} overlap by {-distance:.4g} m"
    return f"{names} are {distance:.4g} m apart, nearer than the clearance of {clearance:.4g} m"

"""Poses to identify from, for arms that should not move fast: gravity, friction at low speed, and zero offsets.

Poses are chosen among random ones by a determinant-optimal exchange (Fedorov 1972) of the static regressor. Each is
passed slowly in both directions by all joints at once, so that friction has both signs at the same positions. Between
poses the arm moves from rest to rest, in an order of small total duration (nearest neighbour and 2-opt).
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...dynamics.friction import joint_friction
from ...derivatives.inverse import inverse_dynamics_derivatives
from ...derivatives.regressor import inertial_regressor
from ...dynamics.inverse import inverse_dynamics
from ...errors import RbdError, shown
from ...model.robot_model import RobotModel
from ...model.scalars import positive
from ...model.state import not_a_model
from ...motion.collision.clearance import CLEARANCE
from ...motion.collision.collision_model import CollisionModel
from ...motion.collision.distance_rows import DistanceRows
from ...motion.collision.planned_path import search_path
from ...motion.optimal.limits import CheckedLimits, MotionLimits, checked_limits
from ...motion.places.plane_limit import PlaneLimit, Planes
from ...motion.rest_to_rest import PEAK_SPEED, RestToRestMotion
from ...motion.trajectory import Reference
from .excitation import joint_ranges, row_weights

Array = NDArray[np.float64]
FEWEST, MOST = 3, 500
CANDIDATES = 800
EXCHANGES = 3          # rounds over all poses
SWEEP = 0.05           # rad or m to both sides of a pose, at most a twentieth of the joint's range
SWEEP_SPEED = 0.05     # rad/s or m/s, peak
SPEED = 0.3            # rad/s or m/s, peak between poses
DWELL = 0.3            # s at rest at both ends of a sweep
SAMPLES = 25           # of a straight segment, for planes and effort limits
BLOCKED = 1e6          # s: cost of a transfer that a plane or an effort limit forbids
AROUND = 3.0           # assumed factor of the duration of a transfer that has to go around something
WAYS_AROUND = 5000     # random configurations for one
NEIGHBOURS = 10        # of a pose, to which straight segments are tried
NEGLIGIBLE = 1e-9      # singular values of the static regressor, relative to the largest
RIDGE = 1e-8           # of the information matrix, relative: zero offsets that gravity does not show


@dataclass(frozen=True, eq=False, repr=False)
class PoseExcitation:
    """A slow motion to record: `motion(t)` has .q, .v, .a (N, nv), rad, m and s; at rest at its ends.

    poses (count, nv), in order; condition: of the static regressor's base columns, rows divided by effort limits, unit
    columns; rank: their number. duration (s).
    """

    model: RobotModel
    motion: RestToRestMotion
    poses: Array
    condition: float
    rank: int

    @property
    def duration(self) -> float:
        return self.motion.duration

    def __call__(self, t: ArrayLike) -> Reference:
        return self.motion(t)

    def __repr__(self) -> str:
        return (f"{len(self.poses)} poses of '{self.model.name}': {self.duration:.0f} s, {self.rank} base parameters "
                f"of gravity, condition number {self.condition:.3g}")


def excitation_poses(model: RobotModel, count: int = 30, *, limits: MotionLimits | None = None,
                     planes: Iterable[PlaneLimit] = (), collisions: CollisionModel | None = None,
                     clearance: float = CLEARANCE, speed: float = SPEED, seed: int = 0,
                     progress: Callable[[str], None] | None = None) -> PoseExcitation:
    """A slow motion through `count` poses that determines gravity parameters, friction at low speed and zero offsets.

    limits: `MotionLimits`; by default those of the model. planes: `PlaneLimit`s of points. collisions: no pair of its
    pieces comes nearer than the clearance (m), certified for all times. speed (rad/s or m/s): the largest between
    poses; each pose is passed at 0.05 in both directions. seed: of the random candidates. progress: called with lines
    of text. Raises `RbdError` for joints with quaternions, and if the limits allow too few poses.

        >>> slow = rbd.excitation_poses(rbd.sample("two_link"), 6)
        >>> slow.poses.shape, bool(np.abs(slow(np.linspace(0.0, slow.duration, 999)).v).max() <= 0.3)
        ((6, 2), True)
    """
    if isinstance(count, bool) or not isinstance(count, int) or not FEWEST <= count <= MOST:
        raise RbdError(f"count must be an integer from {FEWEST} to {MOST}, got {shown(count)}")
    fastest = positive(speed, "speed", "speed")
    if not hasattr(model, "_block"):
        raise not_a_model(model)
    if not model.nv or model.nq != model.nv or model._quaternions:
        raise RbdError("excitation_poses: expected a model with joints without quaternions")
    tell = progress or (lambda line: None)
    allowed, half_spaces = checked_limits(model, limits), Planes(model, planes)
    rng = np.random.default_rng(seed)
    middle, half = joint_ranges(model, allowed)
    sweep = np.minimum(SWEEP, 0.05 * half)
    candidates = middle + rng.uniform(-1.0, 1.0, (CANDIDATES, model.nv)) * (half - sweep)
    directions = rng.choice([-1.0, 1.0], candidates.shape) * sweep
    apart = None if collisions is None else DistanceRows.of_all(model, collisions, clearance)
    begin, end = candidates - directions, candidates + directions
    free = _free(model, begin, end, allowed, half_spaces)
    free[free] = _clear(begin[free], end[free], apart)
    tell(f"{free.sum()} of {CANDIDATES} random poses are within the limits")
    if apart is not None and free.sum() > 2:
        free[free] = _connected(begin[free], apart)
        tell(f"{free.sum()} of them lead to each other")
    if free.sum() < count:
        raise RbdError(f"excitation_poses: {int(free.sum())} of {CANDIDATES} random poses are within the limits of "
                       f"position, effort, planes and distances, and lead to each other, expected at least {count}")
    candidates, directions = candidates[free], directions[free]
    columns, rank = static_columns(model, candidates, row_weights(model, allowed))
    chosen = _exchange(columns, count)
    base = columns[chosen][..., :rank].reshape(-1, rank)
    sizes = np.linalg.svd(base / np.maximum(np.linalg.norm(base, axis=0), 1e-300), compute_uv=False)
    condition = float(sizes[0] / sizes[-1]) if rank and sizes[-1] > 0.0 else float("inf")
    tell(f"{rank} base parameters of gravity, condition number {condition:.3g}")
    speeds = np.minimum(fastest, allowed.velocity)
    poses, offsets = candidates[chosen], directions[chosen]
    order, ways = _path(model, poses - offsets, speeds, allowed, half_spaces, apart)
    points, durations = [], []
    slow = PEAK_SPEED * float(np.max(2.0 * sweep / np.minimum(SWEEP_SPEED, speeds)))
    for k, i in enumerate(order):
        points += [poses[i] - offsets[i], poses[i] + offsets[i], poses[i] - offsets[i]]
        durations += [slow, slow]
        if k < count - 1:
            points += list(ways[k][1:-1])
            durations += [_seconds(a, b, speeds) for a, b in pairwise(ways[k])]
    motion = RestToRestMotion(points, durations, np.full(len(points), DWELL))
    return PoseExcitation(model, motion, poses[order], condition, rank)


def static_columns(model: RobotModel, q: Array, weights: Array) -> tuple[Array, int]:
    """Columns of efforts at rest (N, nv, …), rows times weights (nv,): independent combinations of the inertial
    parameters, then offsets of the efforts and of the positions; and the number of the combinations.
    """
    at_rest = np.zeros_like(q)
    Y = inertial_regressor(model, q, at_rest, at_rest) * weights[:, None]
    flat = Y.reshape(-1, Y.shape[-1])
    lengths = np.linalg.norm(flat, axis=0)
    _, sizes, V = np.linalg.svd(flat / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    rank = int(np.sum(sizes > NEGLIGIBLE * sizes[0])) if lengths.any() else 0
    base = (Y / np.where(lengths > 0.0, lengths, 1.0)) @ V[:rank].T
    slopes = inverse_dynamics_derivatives(model, q, at_rest, at_rest).q * weights[:, None]
    return np.concatenate([base, np.broadcast_to(np.diag(weights), slopes.shape), slopes], axis=-1), rank


def _exchange(columns: Array, count: int) -> NDArray[np.int64]:
    """Indices of `count` row blocks (N, nv, p) of large determinant: greedy, then exchanges."""
    scale = np.sqrt(np.einsum("njp,njp->p", columns, columns) / len(columns))
    X = columns / np.where(scale > 0.0, scale, 1.0)
    information = RIDGE * np.eye(X.shape[-1])
    unit = np.eye(X.shape[1])
    chosen: list[int] = []

    def best() -> int:
        half = np.linalg.inv(np.linalg.cholesky(information))
        Z = X @ half.T
        gain = np.linalg.slogdet(unit + Z @ Z.transpose(0, 2, 1))[1]
        gain[chosen] = -np.inf
        return int(np.argmax(gain))

    for _ in range(count):
        chosen.append(best())
        information += X[chosen[-1]].T @ X[chosen[-1]]
    for _ in range(EXCHANGES):
        before = sorted(chosen)
        for _ in range(count):
            first = chosen.pop(0)
            information -= X[first].T @ X[first]
            chosen.append(best())
            information += X[chosen[-1]].T @ X[chosen[-1]]
        if sorted(chosen) == before:
            break
    return np.array(chosen)


def _free(model: RobotModel, begin: Array, end: Array, limits: CheckedLimits, planes: Planes) -> NDArray[np.bool_]:
    """Whether the straight segments (N, nv) keep all planes and effort limits, at rest with friction of any sign."""
    s = np.linspace(0.0, 1.0, SAMPLES)[:, None]
    q = (begin[:, None] + s * (end - begin)[:, None]).reshape(-1, model.nv)
    at_rest = np.zeros_like(q)
    effort = np.abs(inverse_dynamics(model, q, at_rest, at_rest)) + joint_friction(model).level(at_rest)
    good = (effort <= limits.effort).all(axis=1)
    if len(planes):
        good &= (planes.values(q) >= 0.0).all(axis=1)
    return np.array(good.reshape(len(begin), SAMPLES).all(axis=1))


def _clear(begin: Array, end: Array, apart: DistanceRows | None) -> NDArray[np.bool_]:
    """Whether the straight segments (N, nv) keep all distances."""
    return np.array([apart is None or apart.clear(np.stack(ends)) for ends in zip(begin, end, strict=True)], dtype=bool)


def _connected(q: Array, apart: DistanceRows) -> NDArray[np.bool_]:
    """Mask of the largest group of positions (N, nv), N > 2, that straight segments between neighbours connect. Poses
    of an arm that is folded the other way, for example, may be in another.
    """
    from scipy.sparse import coo_array    # not at the start of every process
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import KDTree

    near = KDTree(q).query(q, min(NEIGHBOURS + 1, len(q)))[1]    # itself first
    pairs = np.unique(np.sort([(row[0], k) for row in near for k in row[1:]]), axis=0)
    first, second = pairs[_clear(q[pairs[:, 0]], q[pairs[:, 1]], apart)].T
    edges = coo_array((np.ones(len(first)), (first, second)), shape=(len(q),) * 2)
    _, group = connected_components(edges, directed=False)
    return np.asarray(group == np.bincount(group).argmax())


def _seconds(a: Array, b: Array, speeds: Array) -> float:
    """Duration of a straight transfer, s."""
    return PEAK_SPEED * float(np.max(np.abs(b - a) / speeds))


def _path(model: RobotModel, q: Array, speeds: Array, limits: CheckedLimits,
          planes: Planes, apart: DistanceRows | None) -> tuple[list[int], list[Array]]:
    """An order of small total duration through positions (N, nv), and the transfers (points, nv): straight, or around
    what they would hit.
    """
    count = len(q)
    first, second = np.triu_indices(count, 1)
    cost = np.zeros((count, count))
    kept = _free(model, q[first], q[second], limits, planes)
    straight = kept.copy()
    straight[kept] = _clear(q[first][kept], q[second][kept], apart)
    seconds = np.array([_seconds(a, b, speeds) for a, b in zip(q[first], q[second], strict=True)])
    cost[first, second] = np.where(kept, np.where(straight, seconds, AROUND * seconds), BLOCKED)
    cost += cost.T
    order = [0]
    while len(order) < count:
        remaining = [i for i in range(count) if i not in order]
        order.append(min(remaining, key=lambda i: cost[order[-1], i]))
    improved = True
    while improved:
        improved = False
        for i in range(count - 1):
            for j in range(i + 2, count + 1):    # reverse order[i:j], with open ends
                begin, end = order[i], order[j - 1]
                gain = cost[order[i - 1], begin] - cost[order[i - 1], end] if i else 0.0
                gain += cost[end, order[j]] - cost[begin, order[j]] if j < count else 0.0
                if gain > 1e-9:
                    order[i:j] = order[i:j][::-1]
                    improved = True
    ways = [q[[i, j]] if apart is None else search_path(
        apart.sweeper, q[i], q[j], apart.clearance, limits.position_lower, limits.position_upper, k, WAYS_AROUND).points
        for k, (i, j) in enumerate(pairwise(order))]
    if cost[order[:-1], order[1:]].max(initial=0.0) >= BLOCKED or not all(
            len(way) and _free(model, way[:-1], way[1:], limits, planes).all() for way in ways):
        raise RbdError("excitation_poses: no transfer between some poses keeps planes, distances and effort limits: "
                       "widen the limits, or ask for fewer poses")
    return order, ways

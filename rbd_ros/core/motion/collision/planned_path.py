"""Paths that hit nothing, by random trees from both ends (RRT-Connect; Kuffner and LaValle 2000), shortened.

Each edge is certified as in `sweeping`: what is returned is free all along, not at samples.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.scalars import at_least, whole_number
from ..optimal.arguments import end_state
from ..optimal.checked_task import check_model
from ..optimal.limits import MotionLimits, checked_limits
from .clearance import Sweeper
from .collision_model import CollisionModel
from .distance_rows import check_apart, checked_collisions
from .sweeping import CLEAR

RESOLUTION = 1e-3      # m: an edge is given up where it comes nearer to the clearance than this
EVALUATIONS = 3000     # per edge
STEP = 0.1             # of the diagonal of the ranges: longest edge of the trees
SHORTER = 0.4          # factor of a second try
SHORTCUTS, IN_VAIN = 80, 25
RANGE = np.pi          # rad or m beyond the ends, of joints with twice this range or without limits
AHEAD = 100            # random configurations at a time


@dataclass(frozen=True, eq=False)
class PlannedPath:
    """points (N, nq): straight lines between them keep the clearance; empty if none was found, which `reason` explains.

    iterations: random configurations tried. `rbd.time_optimal` takes the points, or `waypoints` of a motion.
    """

    points: Array
    reason: str
    iterations: int

    @property
    def found(self) -> bool:
        """Whether there is a path."""
        return len(self.points) > 0

    @property
    def length(self) -> float:
        """Sum of the straight lines' lengths, rad or m; infinite without a path."""
        return float(np.linalg.norm(np.diff(self.points, axis=0), axis=1).sum()) if self.found else np.inf

    def check(self) -> PlannedPath:
        """The path itself; raises `RbdError` with the reason if there is none."""
        if not self.found:
            raise RbdError(f"no path was found: {self.reason}")
        return self


def plan_path(model: RobotModel, collisions: CollisionModel, start: ArrayLike, goal: ArrayLike, *,
              clearance: float = 0.0, limits: MotionLimits | None = None, seed: int = 0,
              iterations: int = 10_000) -> PlannedPath:
    """A path from start to goal (nq,) on which no pair of pieces comes nearer than the clearance (m), as positions.

    The straight line if it is free, otherwise one of a random search, shortened; the same seed gives the same path.
    limits: of positions; the model's by default. iterations: random configurations at most. Raises `RbdError` for
    malformed input, for an end that is beyond a limit, and for one that touches, naming pair and depth.

        >>> model, post = rbd.sample("two_link"), {"shape": "sphere", "radius": 0.1, "frame": [0.0, 0.0, -0.8]}
        >>> rod = [[x, y, z] for x in (-0.02, 0.02) for y in (-0.02, 0.02) for z in (0.0, -0.5)]
        >>> collisions = rbd.CollisionModel.from_urdf(rbd.sample_path("two_link"), model, obstacles=[post],
        ...                                           pieces={"upper": [rod], "lower": [rod]})
        >>> path = rbd.plan_path(model, collisions, [-1.0, 0.0], [1.0, 0.0], clearance=0.01)
        >>> path.found, path.reason
        (True, 'random trees')
    """
    check_model(model)
    sweeper = checked_collisions(model, collisions).sweeper
    clearance = at_least(0.0, clearance, "clearance", "m")
    count = whole_number(iterations, "iterations")
    ends = [end_state(model, value, name, 1)[0] for name, value in (("start", start), ("goal", goal))]
    checked = checked_limits(model, limits)
    for name, q in zip(("start", "goal"), ends, strict=True):
        beyond = (q < checked.position_lower) | (q > checked.position_upper)
        if beyond.any():
            j = int(np.argmax(beyond))
            raise RbdError(f"{name}: the position of joint '{model.velocity_names[j]}' is {q[j]:.6g}, beyond its limit")
        check_apart(collisions, name, q, clearance)
    return search_path(sweeper, ends[0], ends[1], clearance, checked.position_lower, checked.position_upper, seed,
                       count)


def search_path(sweeper: Sweeper, start: Array, goal: Array, clearance: float, lower: Array, upper: Array,
                seed: int | tuple[int, ...], iterations: int) -> PlannedPath:
    """The path of `plan_path`, whose arguments are checked; lower, upper: limits, which may be infinite."""
    wide = upper - lower > 2.0 * RANGE
    low = np.where(wide, np.maximum(lower, np.minimum(start, goal) - RANGE), lower)
    high = np.where(wide, np.minimum(upper, np.maximum(start, goal) + RANGE), upper)
    search = _Search(sweeper, clearance, STEP * float(np.linalg.norm(high - low)))
    if search.free(start, goal):
        return PlannedPath(np.array([start, goal]), "the straight line", 0)
    rng = np.random.default_rng(seed)
    points, spent = search.path([start, goal], low, high, rng, iterations)
    if points is None:
        return PlannedPath(np.empty((0, len(start))), f"the straight line hits something, and {iterations} random "
                           "configurations led to no way around", spent)
    return PlannedPath(search.shortened(points, rng), "random trees", spent)


class _Search:
    """The trees and their edges. step: longest edge."""

    def __init__(self, sweeper: Sweeper, clearance: float, step: float) -> None:
        self.sweeper, self.clearance, self.step = sweeper, clearance, step
        self.breaks, self.powers = np.array([0.0, 1.0]), np.empty((1, 2, sweeper.model.nq))

    def free(self, a: Array, b: Array) -> bool:
        """Whether the straight line is certified."""
        self.powers[0, 0], self.powers[0, 1] = a, b - a
        return self.sweeper.sweep(self.breaks, self.powers, self.clearance, RESOLUTION, EVALUATIONS)[0] == CLEAR

    def path(self, ends: list[Array], low: Array, high: Array, rng: np.random.Generator,
             count: int) -> tuple[list[Array] | None, int]:
        """Positions from the first to the last end, and the number of iterations."""
        trees = [_Tree(q) for q in ends]
        for k in range(count):
            if k % AHEAD == 0:
                samples = rng.uniform(low, high, (AHEAD, len(low)))
            tree, other = trees if k % 2 == 0 else trees[::-1]
            reached = self._towards(tree, samples[k % AHEAD], once=True)
            if reached is None:
                continue
            target = tree.points[reached]
            met = self._towards(other, target)
            if met is not None and np.array_equal(other.points[met], target):
                way = [*tree.way(reached)[::-1], *other.way(met)[1:]]
                return (way if k % 2 == 0 else way[::-1]), k + 1
        return None, count

    def _towards(self, tree: _Tree, target: Array, once: bool = False) -> int | None:
        """Grow a tree towards a configuration, by one edge or as far as edges are free; the latest vertex, or None."""
        at, grown = tree.nearest(target), None
        while True:
            here = tree.points[at]
            way = target - here
            distance = float(np.linalg.norm(way))
            if distance == 0.0:
                return at
            there = target if distance <= self.step else here + way * (self.step / distance)
            if not self.free(here, there):
                there = here + (there - here) * SHORTER
                if not once or not self.free(here, there):
                    return grown
                once = True
            at = grown = tree.add(there, at)
            if once or there is target:
                return grown

    def shortened(self, points: list[Array], rng: np.random.Generator) -> Array:
        """The path with shortcuts between random places on it, where these are free."""
        path, in_vain = np.array(points), 0
        for _ in range(SHORTCUTS):
            if len(path) == 2 or in_vain == IN_VAIN:
                break
            lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
            low, high = np.sort(rng.uniform(0.0, lengths[-1], 2))
            i, j = (min(int(np.searchsorted(lengths, x, side="right")) - 1, len(path) - 2) for x in (low, high))
            in_vain += 1
            if i == j:
                continue
            a, b = (path[k] + (path[k + 1] - path[k]) * ((x - lengths[k]) / (lengths[k + 1] - lengths[k]))
                    for k, x in ((i, low), (j, high)))
            if self.free(a, b):
                path, in_vain = np.concatenate([path[:i + 1], [a, b], path[j + 1:]]), 0
        k = 1
        while k < len(path) - 1:    # without vertices that are not needed
            if self.free(path[k - 1], path[k + 1]):
                path = np.delete(path, k, axis=0)
            else:
                k += 1
        return path


class _Tree:
    """A tree of configurations, whose first one is an end."""

    def __init__(self, root: Array) -> None:
        self._table = np.empty((64, len(root)))
        self._table[0] = root
        self.parents = [-1]

    @property
    def points(self) -> Array:
        return self._table[:len(self.parents)]

    def nearest(self, q: Array) -> int:
        difference = self.points - q
        return int(np.argmin(np.einsum("nj,nj->n", difference, difference)))

    def add(self, q: Array, parent: int) -> int:
        if len(self.parents) == len(self._table):
            self._table = np.concatenate([self._table, np.empty_like(self._table)])
        self._table[len(self.parents)] = q
        self.parents.append(parent)
        return len(self.parents) - 1

    def way(self, k: int) -> list[Array]:
        """From vertex k to the root."""
        out = []
        while k >= 0:
            out.append(self._table[k].copy())
            k = self.parents[k]
        return out

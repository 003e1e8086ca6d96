"""Distances of pairs of pieces at given poses, by the library coal (GJK and EPA), and what it needs to be right.

Of cylinders coal's answer is where `cylinder_distance` begins.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import RbdError
from ...model.inertia import Array
from .cylinder_distance import CORE, SIZE, cylinder_distance, vertices_of, ways_of
from .pieces import Piece, geometry, load_coal

TOLERANCE, DEPTH = 1e-12, 1e-9    # m, of shapes apart, and of depths
LOOSE = 1e-6    # of depths of cylinders, which coal computes wrongly with less; of all where the first try fails
ITERATIONS = 255
TOUCHING = 1e-9    # m
APART = 1e-8, 1e-5    # m: of touching pieces, along their middles, along the normal
FARTHEST = 1e100    # m: what coal answers where it does not converge is beyond


class PairDistances:
    """Pairs of pieces (P, 2), by their places in `pieces`."""

    def __init__(self, pieces: Sequence[Piece], indices: Sequence[tuple[int, int]]) -> None:
        coal = load_coal()
        self.names = [(pieces[i].name, pieces[j].name) for i, j in indices]
        self.middles = [piece.middle for piece in pieces]
        self.transform, self.result = coal.Transform3s, coal.DistanceResult
        self.call = coal.distance    # without state: its solvers of a pair remember the pose before
        shapes = [geometry(coal, piece) for piece in pieces]
        # coal's function for spheres in cylinders is wrong (depths of some that are deep inside): one for capsules
        balls = [coal.Capsule(*piece.shape.size, 0.0) if piece.shape.kind == "sphere" else shape
                 for piece, shape in zip(pieces, shapes, strict=True)]
        kinds = [piece.shape.kind for piece in pieces]
        self.has_cylinder = ["cylinder" in (kinds[i], kinds[j]) for i, j in indices]
        # cylinders and other pieces but planes: 1 if the first is a cylinder, −1 if the second alone is; 0: none
        self.refined = [0.0 if not curved or "plane" in (kinds[i], kinds[j]) else
                        1.0 if kinds[i] == "cylinder" else -1.0
                        for (i, j), curved in zip(indices, self.has_cylinder, strict=True)]
        self.vertices, self.ways = [vertices_of(piece) for piece in pieces], [ways_of(piece) for piece in pieces]
        self.sizes = np.array([(piece.shape.size[0], 0.5 * piece.shape.size[1]) if piece.shape.kind == "cylinder"
                               else (np.linalg.norm(vertices, axis=1).max(initial=0.0), 0.0)
                               for piece, vertices in zip(pieces, self.vertices, strict=True)]).reshape(-1, 2)
        self.pairs = [(i, j, *((balls[i], balls[j]) if curved else (shapes[i], shapes[j])))
                      for (i, j), curved in zip(indices, self.has_cylinder, strict=True)]
        radii = [piece.shape.size[0] if piece.shape.kind in ("sphere", "capsule") else 0.0 for piece in pieces]
        self.swept = [radii[i] + radii[j] for i, j in indices]    # m: coal compares points and lines, and takes it off
        usual, curved, second = (_request(coal, *bounds) for bounds in (
            (TOLERANCE, DEPTH), (TOLERANCE, LOOSE), (LOOSE, LOOSE)))
        self.requests = [(curved if cylinder else usual, second) for cylinder in self.has_cylinder]


class Posed:
    """Distances of the pairs where the shapes have these poses (pieces, 4, 4) in the world."""

    def __init__(self, pairs: PairDistances, poses: Array) -> None:
        self._all, self._poses = pairs, poses
        self._cores: Any = None
        self._spare = np.empty((2, 3)), np.empty(3)
        self._transforms = [pairs.transform(pose[:3, :3], pose[:3, 3]) for pose in poses]
        self._result = pairs.result()

    def distance(self, pair: int) -> float:
        """Distance of a pair (m), negative for a depth; raises `RbdError` where coal finds none."""
        i, j, first, second = self._all.pairs[pair]
        for request in self._all.requests[pair]:
            self._result.clear()
            distance: float = self._all.call(first, self._transforms[i], second, self._transforms[j], request,
                                             self._result)
            if abs(distance) < FARTHEST:
                return distance
        raise RbdError("the distance of '{}' and '{}' is not found: coal does not converge".format(
            *self._all.names[pair]))

    def exact(self, pair: int) -> float:
        """Distance as of `closest`: beside cylinders `distance` is wrong by up to 2e-6 m."""
        if self._all.refined[pair]:
            return self.closest(pair, *self._spare)
        return self.distance(pair)

    def closest(self, pair: int, points: Array, normal: Array) -> float:
        """Distance, and into points (2, 3) and normal (3,) the nearest points and the normal."""
        distance = self.distance(pair)
        self._read(points, normal)
        apart = distance + self._all.swept[pair]    # of the cores
        if self._all.refined[pair] and (exact := self._refine(pair, points, normal)) > -np.inf:
            return exact
        if abs(apart) < TOUCHING:
            self._moved_apart(pair, points, normal)
        return distance

    def _read(self, points: Array, normal: Array) -> None:
        points[0], points[1] = self._result.getNearestPoint1(), self._result.getNearestPoint2()
        normal[:] = self._result.normal

    def _moved_apart(self, pair: int, points: Array, normal: Array) -> None:
        """Nearest points and normal where surfaces touch, or a sphere's centre is on one, so that coal's normal is a
        rounding error: the pieces are moved apart, first along their middles for the normal, then along that.
        """
        i, j, first, second = self._all.pairs[pair]
        R, p = self._poses[j, :3, :3], self._poses[j, :3, 3]
        way = R @ self._all.middles[j] + p - self._poses[i, :3, :3] @ self._all.middles[i] - self._poses[i, :3, 3]
        way /= max(float(np.linalg.norm(way)), TOUCHING)
        for apart in APART:
            self._result.clear()
            self._all.call(first, self._transforms[i], second, self._all.transform(R, p + apart * way),
                           self._all.requests[pair][0], self._result)
            self._read(points, normal)
            if not (np.isfinite(points).all() and np.isfinite(normal).all()):
                raise RbdError("the nearest points of '{}' and '{}' are not found".format(*self._all.names[pair]))
            points[1] -= apart * way
            way = normal.copy()

    def _refine(self, pair: int, points: Array, normal: Array) -> float:
        """Distance of a cylinder and another piece, and in place nearest points and normal; −inf if not found."""
        if self._cores is None:
            self._cores = np.empty((len(self._poses), CORE))
            self._cores[:, :9], self._cores[:, 9:SIZE] = self._poses[:, :3, :3].reshape(-1, 9), self._poses[:, :3, 3]
            self._cores[:, SIZE:] = self._all.sizes
        i, j, *_ = self._all.pairs[pair]
        sign = self._all.refined[pair]
        if sign < 0.0:
            i, j = j, i
        return cylinder_distance.call(self._cores[i], self._cores[j], self._all.vertices[j],    # type: ignore[no-any-return]
                                      self._all.ways[j], self._all.swept[pair], sign, points, normal)


def _request(coal: Any, tolerance: float, of_depths: float) -> Any:
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance, request.epa_tolerance = tolerance, of_depths
    request.gjk_max_iterations = request.epa_max_iterations = ITERATIONS
    return request

"""Convex slices of a mesh: hulls of what lies between parallel planes, where much of the hull of the whole is empty.

Edges are cut at the planes, so that the slices hold the whole surface; and the inside of a closed mesh, too: a line
through a point inside, parallel to the planes, meets the surface on both sides of it.
"""
from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...model.inertia import Array

LAYERS = 16     # of an axis: the planes of slices are among those between these
FINER = 4       # times as many near the planes chosen, from which the final ones are
HOLLOW = 1.4    # volume of the hull, in volumes of the mesh, from which on there are slices
SAVED = 0.06    # of the volume of the hull: what each slice more has to save
FEW = 128       # points of a layer by which slices are compared: hulls of all take a minute for finely meshed arms


class _Sliced(NamedTuple):
    """Slices across an axis: their cost, by few points of each layer, and the planes between them."""

    cost: float
    axis: int
    planes: Array


def slices(points: Array, faces: NDArray[np.int64]) -> list[Array]:
    """Points of convex slices of a mesh, points (N, 3) and faces (T, 3), across one of its three axes, with the least
    sum of volumes; one, its own points, where the hull is not `HOLLOW` or no slice saves enough.
    """
    volume = _hull(points)[1]
    a, b, c = np.moveaxis(points[faces] - points.mean(axis=0), 1, 0)
    if not HOLLOW * abs(np.einsum("ij,ij->", a, np.cross(b, c))) / 6.0 < volume < np.inf:
        return [points]
    each = SAVED * _hull(_few(points))[1]
    ends = list(zip(points.min(axis=0), points.max(axis=0), strict=True))
    coarse = min((_sliced(points, faces, axis, np.linspace(*ends[axis], LAYERS + 1), each) for axis in range(3)),
                 key=lambda sliced: sliced.cost)
    low, high = ends[coarse.axis]
    near = np.linspace(-1.0, 1.0, 2 * FINER + 1) * (high - low) / LAYERS
    planes = np.unique(np.clip([low, high, *(coarse.planes[:, None] + near).ravel()], low, high))
    fine = _sliced(points, faces, coarse.axis, planes, each)
    planes = np.array([low, *fine.planes, high])
    parts, volumes = zip(*map(_hull, _layers(points, faces, fine.axis, planes)), strict=True)
    return list(parts) if sum(volumes) + SAVED * volume * (len(parts) - 1) < volume else [points]


def _layers(points: Array, faces: NDArray[np.int64], axis: int, planes: Array) -> list[Array]:
    """Corners of the triangles in each layer between planes, cut at these."""
    heights = points[:, axis]
    low, high = heights[faces].min(axis=1), heights[faces].max(axis=1)
    # of flat triangles: the layer below those that face up, and the layer above the others
    a, b, c = np.moveaxis(points[faces], 1, 0)
    upward = np.cross(b - a, c - a)[:, axis] > 0.0
    own = np.clip(np.searchsorted(planes, low, side="left") - upward, 0, len(planes) - 2)
    layers = []
    for k, (bottom, top) in enumerate(pairwise(planes)):
        chosen = faces[np.where(low == high, own == k, (low < top) & (high > bottom))]
        corners = np.unique(chosen)
        inside = corners[(heights[corners] >= bottom) & (heights[corners] <= top)]
        edges = np.concatenate([chosen[:, [0, 1]], chosen[:, [1, 2]], chosen[:, [2, 0]]])
        layers.append(np.concatenate([points[inside], _cuts(points, edges, axis, bottom),
                                      _cuts(points, edges, axis, top)]))
    return layers


def _cuts(points: Array, edges: NDArray[np.int64], axis: int, plane: float) -> Array:
    """Where edges (E, 2) cross a plane."""
    heights = points[:, axis] - plane
    first, second = edges[heights[edges].prod(axis=1) < 0.0].T
    share = heights[first] / (heights[first] - heights[second])
    out = points[first] + share[:, None] * (points[second] - points[first])
    out[:, axis] = plane
    return out


def _sliced(points: Array, faces: NDArray[np.int64], axis: int, planes: Array, each: float) -> _Sliced:
    """Slices between some of the planes, with the least sum of volumes plus `each` for every one."""
    layers = [_few(layer) for layer in _layers(points, faces, axis, planes)]
    best = [_Sliced(0.0, axis, np.empty(0))]    # of the lowest layers, by how many
    for end in range(1, len(planes)):
        part, choices = np.empty((0, 3)), []
        for start in range(end - 1, -1, -1):
            part, volume = _hull(_few(np.concatenate([layers[start], part])))
            choices.append((best[start].cost + volume + each, start))
        cost, start = min(choices)
        cuts = best[start].planes
        best.append(_Sliced(cost, axis, np.append(cuts, planes[start]) if start else cuts))
    return best[-1]


def _few(points: Array) -> Array:
    """Of many points, those that are farthest in `FEW` directions, evenly spread (a Fibonacci lattice)."""
    if len(points) <= FEW:
        return points
    k = np.arange(FEW) + 0.5
    height, turn = 1.0 - 2.0 * k / FEW, np.pi * (1.0 + 5.0 ** 0.5) * k
    flat = np.sqrt(1.0 - height ** 2)
    ways = np.stack([flat * np.cos(turn), flat * np.sin(turn), height], axis=1)
    return points[np.unique(np.argmax(ways @ points.T, axis=1))]


def _hull(points: Array) -> tuple[Array, float]:
    """Corners of the convex hull and its volume; the points and infinity if it has none."""
    from scipy.spatial import ConvexHull, QhullError    # local import: saves 0.15 s of `rbd doctor`

    try:
        found = ConvexHull(points)
    except (QhullError, ValueError):
        return points, np.inf
    return points[found.vertices], float(found.volume)

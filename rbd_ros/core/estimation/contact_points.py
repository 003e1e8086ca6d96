"""Points where a link can be touched: on its shapes, or in a ball of its inertia; of equal areas, always the same.

Low-discrepancy sequences of the golden ratio's relatives in two and three dimensions (Roberts 2018).
"""
from __future__ import annotations

import numpy as np

from ..model.inertia import Array, Inertia
from ..model.shapes.shapes import Shape

WATER = 1000.0    # kg/m³


def _sequence(count: int, dimensions: int) -> Array:
    """(dimensions, count) numbers between 0 and 1."""
    ratio = 1.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (dimensions + 1.0))
    return (0.5 + np.arange(1, count + 1) * ratio ** -np.arange(1.0, dimensions + 1.0)[:, None]) % 1.0


def _around(share: Array) -> Array:
    """Unit vectors (…, 2) of this share of a turn."""
    return np.stack([np.cos(2.0 * np.pi * share), np.sin(2.0 * np.pi * share)], axis=-1)


def ball_points(inertia: Inertia, count: int) -> tuple[Array, Array]:
    """Points (count, 3) of a ball about the centre of mass and unit vectors (count, 3) away from it."""
    turn = 2.5 * np.trace(inertia.matrix) / 3.0 / inertia.mass
    radius = max(np.sqrt(max(turn, 0.0)), np.cbrt(0.75 * inertia.mass / (np.pi * WATER)))
    height, around, depth = _sequence(count, 3)
    z = 1.0 - 2.0 * height
    normals = np.column_stack([np.sqrt(1.0 - z**2)[:, None] * _around(around), z])
    return inertia.com + radius * np.cbrt(depth)[:, None] * normals, normals


def shape_area(shape: Shape) -> float:
    """Area of a shape other than a plane, m²."""
    if shape.kind == "cylinder":
        radius, length = shape.size
        return 2.0 * np.pi * radius * (radius + length)
    if shape.kind in ("sphere", "capsule"):
        radius, length = (*shape.size, 0.0)[:2]
        return 2.0 * np.pi * radius * (2.0 * radius + length)
    return float(0.5 * np.linalg.norm(_doubled(_corners(shape)), axis=1).sum())


def shape_points(shape: Shape, count: int) -> tuple[Array, Array]:
    """Points (count, 3) of a shape other than a plane, and outward unit normals (count, 3), in the link's frame; meshes
    are convex, with faces counterclockwise seen from outside.
    """
    share, other = _sequence(count, 2)
    if shape.kind in ("sphere", "capsule"):    # equal heights have equal areas (Archimedes)
        radius, length = (*shape.size, 0.0)[:2]
        height = (share - 0.5) * (2.0 * radius + length)
        middle = np.clip(height, -0.5 * length, 0.5 * length)
        z = (height - middle) / radius
        normals = np.column_stack([np.sqrt(1.0 - z**2)[:, None] * _around(other), z])
        points = radius * normals
        points[:, 2] += middle
    elif shape.kind == "cylinder":
        radius, length = shape.size
        side = length / (length + radius)
        ends = share >= side
        inner = np.where(ends, (share - side) / (1.0 - side), share / side)
        up = np.sign(inner - 0.5) + (inner == 0.5)
        within = np.sqrt(np.abs(2.0 * inner - 1.0))
        across, z = _around(other), np.zeros(count)
        normals = np.where(ends[:, None], np.column_stack([0.0 * across, up]), np.column_stack([across, z]))
        points = np.column_stack([radius * np.where(ends, within, 1.0)[:, None] * across,
                                  length * np.where(ends, 0.5 * up, inner - 0.5)])
    else:
        corners = _corners(shape)
        doubled = _doubled(corners)
        areas = np.linalg.norm(doubled, axis=1)
        limits = np.concatenate([[0.0], np.cumsum(areas) / areas.sum()])
        k = np.clip(np.searchsorted(limits, share, side="right") - 1, 0, len(areas) - 1)
        inner = np.sqrt((share - limits[k]) / (limits[k + 1] - limits[k]))
        weights = np.stack([1.0 - inner, inner * (1.0 - other), inner * other], axis=1)
        points = np.einsum("pi,pij->pj", weights, corners[k])
        normals = doubled[k] / areas[k, None]
    R, p = shape.pose[:3, :3], shape.pose[:3, 3]
    return points @ R.T + p, normals @ R.T


def _corners(shape: Shape) -> Array:
    """Corners (T, 3, 3) of the triangles of a box or mesh, in the shape's frame."""
    if shape.surface is not None:
        return np.asarray(shape.surface.points[shape.surface.faces])
    faces = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            u, v, w = (np.roll(np.eye(3), axis, axis=1) * shape.size) / 2.0
            a, b, c, d = (sign * u + sign * x * v + y * w for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1)))
            faces += [(a, b, c), (a, c, d)]
    return np.array(faces)


def _doubled(corners: Array) -> Array:
    """Outward normals (T, 3) of triangles, as long as twice their areas."""
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])

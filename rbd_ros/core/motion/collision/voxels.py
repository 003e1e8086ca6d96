"""Points as boxes: the cells of a grid that hold points, joined to boxes along the grid's axes."""
from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError
from ...model.inertia import Array

Cells = NDArray[np.int64]
FARTHEST = 2**19       # cells from the origin: a cell's number has 60 bits
MOST_CELLS = 50_000
MOST_BOXES = 1000      # distances take time in proportion


def occupied_cells(points: Array, size: float, what: str) -> Cells:
    """Cells (N, 3), each once, that hold finite ones of the points (P, 3): x is in cell i if size i ≤ x ≤ size (i + 1).
    Raises `RbdError`, naming `what`, for too many cells.
    """
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return np.empty((0, 3), np.int64)
    if not (farthest := float(np.abs(points).max())) < FARTHEST * size:
        raise RbdError(f"{what}: a coordinate is {farthest:.6g} m, expected at most {FARTHEST} voxels of {size:g} m")
    cells = np.floor(points / size).astype(np.int64)
    first = cells.min(axis=0)
    spans = tuple((cells.max(axis=0) - first + 1).tolist())
    numbers = np.unique(np.ravel_multi_index(tuple((cells - first).T), spans))
    if len(numbers) > MOST_CELLS:
        raise RbdError(f"{what}: {len(numbers)} voxels of {size:g} m, expected at most {MOST_CELLS}: take larger ones")
    return np.stack(np.unravel_index(numbers, spans), axis=1) + first


def joined(cells: Cells, what: str) -> tuple[Cells, Cells]:
    """First cells and those behind the last, (M, 3) each, of boxes whose cells are these (N, 3), each in one box.

    Cells are joined along one axis, then rows that are alike along another, then layers: in the order of the axes that
    leaves fewest boxes. Raises `RbdError`, naming `what`, for too many.
    """
    found = []
    for axes in permutations(range(3)):
        first, behind = cells, cells + 1
        for axis in axes:
            first, behind = _joined_along(axis, first, behind)
        found.append((first, behind))
    first, behind = min(found, key=lambda boxes: len(boxes[0]))
    if len(first) > MOST_BOXES:
        raise RbdError(f"{what}: {len(cells)} voxels make {len(first)} boxes, expected at most {MOST_BOXES}: take "
                       "larger voxels, or fewer points")
    return first, behind


def _joined_along(axis: int, first: Cells, behind: Cells) -> tuple[Cells, Cells]:
    """Boxes, joined where one ends and another of the same extent across the axis begins."""
    across = np.delete(np.concatenate([first, behind], axis=1), (axis, axis + 3), axis=1)
    order = np.lexsort([first[:, axis], *across.T])
    first, behind, across = first[order], behind[order], across[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (across[1:] != across[:-1]).any(axis=1) | (first[1:, axis] != behind[:-1, axis])
    return first[begins], behind[np.roll(begins, -1)]

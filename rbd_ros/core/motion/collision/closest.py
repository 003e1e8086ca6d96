"""`Closest`: distances with witness points, normals and gradients."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...model.inertia import Array


@dataclass(frozen=True, eq=False)
class Closest:
    """The nearest points of pairs; a batch of N configurations adds a leading axis to all arrays but `index`.

    distances (pairs,): m, negative is the depth of penetration. points (pairs, 2, 3): the nearest point of each piece,
    m, world axes. normals (pairs, 3): unit vectors from the first to the second piece, `points[1] − points[0] =
    distance · normal`. gradients (pairs, nv): ∂distance/∂q along the velocity coordinates, m/rad (m/m). pairs: names of
    the pieces; index (pairs,): places in `CollisionModel.pairs`.
    """

    distances: Array
    points: Array
    normals: Array
    gradients: Array
    pairs: tuple[tuple[str, str], ...]
    index: NDArray[np.int64]

"""Pairs of links that need no check, found by sampling."""
from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError, shown
from ...model.files.srdf_pairs import write_pairs
from ...model.scalars import whole_number
from .collision_model import CollisionModel
from .pairs import adjacent_links

CHUNK = 1000    # configurations at a time
CHECKED = ""    # reason of pairs that stay checked


@dataclass(frozen=True, eq=False)
class SampledPairs:
    """Pairs of links with relative motion, and in how many of `configurations` each touches: `counts` (pairs,).

    reasons: why a pair is not checked, "Adjacent" (neighbours), "Always" or "Never" (it touched in each configuration,
    in none), or "" if it is. collisions: the collision model without these pairs, with all obstacles, tools and loads.
    A pair that never touched does so in less than 3/`configurations` of all configurations, with 95 % confidence.
    """

    pairs: tuple[tuple[str, str], ...]
    counts: NDArray[np.int64]
    reasons: tuple[str, ...]
    configurations: int
    collisions: CollisionModel

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write an SRDF with the pairs that are not checked; `CollisionModel.from_urdf` and MoveIt read it."""
        rows = [(*pair, reason, f"touches in {count} of {self.configurations}")
                for pair, count, reason in zip(self.pairs, self.counts, self.reasons, strict=True) if reason != CHECKED]
        write_pairs(path, self.collisions.model.name, rows,
                    f"collisions of {len(self.pairs)} pairs of links in {self.configurations} random configurations")


def sampled_pairs(collisions: CollisionModel, count: int = 10_000, seed: int = 0) -> SampledPairs:
    """Which pairs of links always, never or sometimes touch, in random configurations within the position limits.

    All pairs that move relative to each other are sampled, also those that `collisions` does not compare, but no
    obstacles, tools and loads. The same seed gives the same answer.

        >>> collisions = rbd.CollisionModel.from_urdf(rbd.sample_path("ball_on_plate"), rbd.sample("ball_on_plate"))
        >>> sampled = rbd.sampled_pairs(collisions, 1000)
        >>> sampled.pairs, sampled.counts.tolist(), sampled.reasons    # rarely, but not never
        ((('plate', 'ball'),), [2], ('',))
    """
    if not isinstance(collisions, CollisionModel):
        raise RbdError(f"collisions: expected a CollisionModel, got {shown(collisions)}")
    count = whole_number(count, "count", "number of configurations")
    model = collisions.model
    own = [piece for piece in collisions.pieces if piece.own]
    full = CollisionModel(model, own, ())
    links = {piece.name: piece.link for piece in own}
    names = [(links[first], links[second]) for first, second in full.pairs]
    pairs = tuple(dict.fromkeys(tuple(sorted(pair, key=model.body_index)) for pair in names))
    column = {frozenset(pair): k for k, pair in enumerate(pairs)}
    member = np.zeros((len(names), len(pairs)), dtype=np.int64)    # of pairs of pieces in pairs of links
    member[np.arange(len(names)), [column[frozenset(pair)] for pair in names]] = 1
    counts = np.zeros(len(pairs), dtype=np.int64)
    rng = np.random.default_rng(seed)
    for first in range(0, count, CHUNK):
        q = np.array([model.random_configuration(rng) for _ in range(min(CHUNK, count - first))])
        counts += np.count_nonzero(full.touching(q).astype(np.int64) @ member, axis=0)
    adjacent = adjacent_links(model, own)
    reasons = tuple("Adjacent" if frozenset(pair) in adjacent else "Always" if touched == count else
                    "Never" if touched == 0 else CHECKED for pair, touched in zip(pairs, counts.tolist(), strict=True))
    allowed = {frozenset(pair) for pair, reason in zip(pairs, reasons, strict=True) if reason != CHECKED}
    return SampledPairs(pairs, counts, reasons, count,    # type: ignore[arg-type]
                        CollisionModel(model, collisions.pieces, allowed))

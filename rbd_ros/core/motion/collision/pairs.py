"""Which pieces are compared: what moves relative to each other, without what touches by construction."""
from __future__ import annotations

from collections.abc import Collection, Sequence

from ...model import block
from ...model.robot_model import RobotModel
from .pieces import Piece


def rigid_parts(model: RobotModel) -> list[int]:
    """The rigid part that each link belongs to: its node in the model, -1 for the fixed base."""
    start = int(model._block[block.LINK_START])
    return [int(model._block[start + block.LINK * i + block.LINK_NODE]) for i in range(len(model.body_names))]


def adjacent_links(model: RobotModel, pieces: Sequence[Piece]) -> set[frozenset[str]]:
    """Each link with shapes and the nearest link with shapes on its way to the root."""
    parents = {spec.child: spec.parent for spec in model.description.joints}
    shaped = {piece.shape.link for piece in pieces}
    adjacent = set()
    for name in shaped & set(model.body_names):
        above = parents.get(name)
        while above is not None and above not in shaped:
            above = parents.get(above)
        if above is not None:
            adjacent.add(frozenset((name, above)))
    return adjacent


def pairs_of(model: RobotModel, pieces: Sequence[Piece], allowed: Collection[frozenset[str]]) -> list[tuple[int, int]]:
    """Pairs of pieces that move relative to each other, without those of links that may touch."""
    parts = [*rigid_parts(model), -1]    # body -1: the world
    every = list(enumerate(pieces))
    moving = [(j, piece) for j, piece in every if parts[piece.body] >= 0]    # a thousand boxes have few partners
    return [(i, j) for i, first in every for j, second in (every[i + 1:] if parts[first.body] >= 0 else moving)
            if j > i and parts[first.body] != parts[second.body] and frozenset((first.link, second.link)) not in allowed
            and first.link not in second.touching and second.link not in first.touching]

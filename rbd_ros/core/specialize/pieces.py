"""A long program cut into pieces that are translated one by one: the time that takes grows faster than their length.

A number that a later piece uses waits in a slot of memory that all pieces share.
"""
from __future__ import annotations

from typing import NamedTuple

from .program import COS, LEAVES, SIN, Guard, Program

LONGEST = 1000    # operations of a piece


class Piece(NamedTuple):
    """Nodes in order; slots by node: of earlier nodes it uses, of its own that later pieces use; guards; outputs."""

    nodes: list[int]
    taken: dict[int, int]
    left: dict[int, int]
    guards: list[Guard]
    outputs: list[int]    # each once


def pieces(program: Program, longest: int = LONGEST) -> tuple[list[Piece], int]:
    """The pieces, and how many slots they share. Inputs and constants are at hand everywhere."""
    piece_of: dict[int, int] = {}
    parts: list[list[int]] = [[]]
    turned: dict[int, int] = {}    # angle to piece: its sine and cosine are made together
    for i, node in enumerate(program.nodes):
        if node.op in LEAVES:
            continue
        if len(parts[-1]) >= longest:
            parts.append([])
        at = len(parts) - 1
        if node.op in (SIN, COS):
            at = turned.setdefault(node.a, at)
        piece_of[i] = at
        parts[at].append(i)
    last = dict(piece_of)
    for i, at in piece_of.items():
        for operand in program.nodes[i].operands:
            if operand in piece_of:
                last[operand] = max(last[operand], at)
    found = [Piece(part, {}, {}, [], []) for part in parts]
    for guard in program.guards:
        found[max(piece_of.get(guard.left, 0), piece_of.get(guard.right, 0))].guards.append(guard)
    for i in dict.fromkeys(program.outputs):
        found[piece_of.get(i, 0)].outputs.append(i)
    for at, piece in enumerate(found):    # what guards compare
        for i in (i for guard in piece.guards for i in (guard.left, guard.right) if i in piece_of):
            last[i] = max(last[i], at)
    return found, _slots(program, found, piece_of, last)


def _slots(program: Program, found: list[Piece], piece_of: dict[int, int], last: dict[int, int]) -> int:
    """Give slots to what later pieces use, and take them back; how many there are."""
    free: list[int] = []
    count = 0
    slot: dict[int, int] = {}
    ends: list[list[int]] = [[] for _ in found]
    for i, at in piece_of.items():
        if last[i] > at:
            ends[last[i]].append(i)
    for at, piece in enumerate(found):
        used = {operand for i in piece.nodes for operand in program.nodes[i].operands}
        used |= {i for guard in piece.guards for i in (guard.left, guard.right)}
        piece.taken.update((i, slot[i]) for i in sorted(used) if piece_of.get(i, at) < at)
        for i in piece.nodes:
            if last[i] > at:
                if not free:
                    free.append(count)
                    count += 1
                piece.left[i] = slot[i] = free.pop()
        free += [slot[i] for i in ends[at]]    # not before: a piece leaves numbers while it reads others
    return count

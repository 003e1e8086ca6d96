"""Division of long programs into pieces for separate translation, because its time grows superlinearly with length.

Numbers for later pieces are stored in slots of shared memory.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from .program import ADD, COS, LEAVES, MUL, SIN, SUB, Guard, Node, Program

LONGEST = 1000    # operations of a piece


class Piece(NamedTuple):
    """Operations in order; slots of those `loaded` from earlier and `stored` for later pieces; guards; outputs."""

    nodes: list[int]
    loaded: dict[int, int]
    stored: dict[int, int]
    guards: list[Guard]
    outputs: list[int]    # distinct


def pieces(program: Program, longest: int = LONGEST) -> tuple[list[Piece], int]:
    """The pieces, and the number of shared slots. Inputs and constants are available to all pieces."""
    piece_of: dict[int, int] = {}
    parts: list[list[int]] = [[]]
    rotation_piece: dict[int, int] = {}    # angle → piece with its sine and cosine
    for i, node in enumerate(program.nodes):
        if node.op in LEAVES:
            continue
        if len(parts[-1]) >= longest:
            parts.append([])
        index = len(parts) - 1
        if node.op in (SIN, COS):
            index = rotation_piece.setdefault(node.a, index)
        piece_of[i] = index
        parts[index].append(i)
    last = dict(piece_of)
    for i, index in piece_of.items():
        for operand in program.nodes[i].operands:
            if operand in piece_of:
                last[operand] = max(last[operand], index)
    cut = [Piece(part, {}, {}, [], []) for part in parts]
    for guard in program.guards:
        cut[max(piece_of.get(guard.left, 0), piece_of.get(guard.right, 0))].guards.append(guard)
    for i in dict.fromkeys(program.outputs):
        cut[piece_of.get(i, 0)].outputs.append(i)
    for index, piece in enumerate(cut):    # operands of guards
        for i in (i for guard in piece.guards for i in (guard.left, guard.right) if i in piece_of):
            last[i] = max(last[i], index)
    return cut, _slots(program, cut, piece_of, last)


def fused_products(program: Program, parts: Sequence[Piece]) -> dict[int, tuple[int, Node]]:
    """By sum or difference, the operand, a product, that is fused with it into one instruction with one rounding: the
    last one that has no other use and is in the same piece. A compiler chooses by neighbouring instructions, which
    differ between code for one state and for many; this choice gives both the same bits.
    """
    uses = Counter(operand for node in program.nodes for operand in node.operands)
    uses.update(program.outputs)
    uses.update(i for guard in program.guards for i in (guard.left, guard.right))
    piece_of = {i: k for k, piece in enumerate(parts) for i in piece.nodes}
    fused = {}
    for i, k in piece_of.items():
        if program.nodes[i].op in (ADD, SUB):
            for operand in reversed(program.nodes[i].operands):
                if program.nodes[operand].op == MUL and uses[operand] == 1 and piece_of[operand] == k:
                    fused[i] = operand, program.nodes[operand]
                    break
    return fused


def _slots(program: Program, cut: list[Piece], piece_of: dict[int, int], last: dict[int, int]) -> int:
    """Allocate slots to numbers for later pieces, and release them; returns the number of slots."""
    free: list[int] = []
    count = 0
    slot: dict[int, int] = {}
    ends: list[list[int]] = [[] for _ in cut]
    for i, index in piece_of.items():
        if last[i] > index:
            ends[last[i]].append(i)
    for index, piece in enumerate(cut):
        used = {operand for i in piece.nodes for operand in program.nodes[i].operands}
        used |= {i for guard in piece.guards for i in (guard.left, guard.right)}
        piece.loaded.update((i, slot[i]) for i in sorted(used) if piece_of.get(i, index) < index)
        for i in piece.nodes:
            if last[i] > index:
                if not free:
                    free.append(count)
                    count += 1
                piece.stored[i] = slot[i] = free.pop()
        free += [slot[i] for i in ends[index]]    # after this piece: it reads and stores in any order
    return count

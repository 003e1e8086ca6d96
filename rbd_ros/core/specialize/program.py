"""Straight-line programs, traced by running kernels on symbols.

A `Scalar` is a number that depends on the state; `+ − · /` of two are a third, and equal ones are identical
(hash-consing). Constants remain numbers, with folding of 0, 1, −1 and signs. At a branch on a scalar the kernel takes
the branch of the state at which the program is recorded, and the comparison becomes a guard: states with another
outcome must be computed by the ordinary kernel.
"""
from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import RbdError

CONSTANT, INPUT, ADD, SUB, MUL, DIV, NEG, SIN, COS, SQRT, ABS = range(11)
MIN, MAX, LESS, WHERE = range(11, 15)    # recorded for printers of both branches only: a < b as 0 or 1; b if a, else 0
LEAVES = (CONSTANT, INPUT)
COMMUTE = (ADD, MUL)
GREATER, AT_LEAST, EQUAL = ">", ">=", "=="
MOST = 60_000        # translation of more takes longer than five seconds, with less gain
COUNTED = 240_000    # largest number of recorded operations, unneeded ones included
_EVALUATE: dict[int, Callable[..., float]] = {
    ADD: lambda a, b: a + b, SUB: lambda a, b: a - b, MUL: lambda a, b: a * b, DIV: lambda a, b: a / b,
    NEG: lambda a: -a, SIN: math.sin, COS: math.cos, SQRT: math.sqrt, ABS: abs,
    MIN: min, MAX: max, LESS: lambda a, b: float(a < b), WHERE: lambda a, b: b if a else 0.0}


class NoProgram(RbdError):
    """No program: the kernel is too long, does not support the robot, or uses an operation without a scalar version."""


class Node(NamedTuple):
    """An operation on operations a and b; for a constant a is its value, for an input its index."""

    op: int
    a: Any
    b: int = -1

    @property
    def operands(self) -> tuple[int, ...]:
        """Indices of its operands."""
        if self.op in LEAVES:
            return ()
        return (self.a,) if self.b < 0 else (self.a, self.b)


class Guard(NamedTuple):
    """A comparison of two operations, and its outcome."""

    left: int
    comparison: str
    right: int
    outcome: bool


class Program:
    """Operations (nodes) after their operands; guards; outputs, set by `finish`."""

    def __init__(self, inputs: Sequence[float]) -> None:
        """inputs: a regular state, which determines the branches."""
        self.nodes: list[Node] = []
        self.guards: dict[Guard, None] = {}
        self.outputs: list[int] = []
        self._values: list[float] = []
        self._found: dict[Node, int] = {}
        self._decided: bool | None = None
        self.inputs = [Scalar(self, self._node(Node(INPUT, k), float(x))) for k, x in enumerate(inputs)]

    def _node(self, node: Node, value: float) -> int:
        index = self._found.get(node)
        if index is None:
            index = self._found[node] = len(self.nodes)
            self.nodes.append(node)
            self._values.append(value)
            if index > COUNTED:
                raise NoProgram(f"more than {COUNTED:,} operations")
        return index

    def index(self, x: Any) -> int:
        """Index of the operation of a scalar or a number."""
        if isinstance(x, Scalar):
            return x.index
        value = float(x) + 0.0    # no negative zero
        return self._node(Node(CONSTANT, value), value)

    def make(self, op: int, a: int, b: int = -1) -> Scalar:
        """Scalar of the operation on a and b."""
        if op in COMMUTE and b < a:
            a, b = b, a
        operands = (self._values[a],) if b < 0 else (self._values[a], self._values[b])
        try:
            value = _EVALUATE[op](*operands)
        except (ValueError, ZeroDivisionError, OverflowError):
            value = math.nan
        return Scalar(self, self._node(Node(op, a, b), value))

    def guard(self, left: int, comparison: str, right: int) -> bool:
        """Result of the comparison, recorded as a guard; or as it is decided, without one."""
        if self._decided is not None:
            return self._decided
        a, b = self._values[left], self._values[right]
        outcome = {GREATER: a > b, AT_LEAST: a >= b, EQUAL: a == b}[comparison]
        self.guards[Guard(left, comparison, right, outcome)] = None
        return outcome

    @contextlib.contextmanager
    def deciding(self, outcome: bool) -> Iterator[None]:
        """The outcome of all comparisons inside, for one branch of a kernel."""
        self._decided = outcome
        try:
            yield
        finally:
            self._decided = None

    def finish(self, outputs: Sequence[Any]) -> None:
        """Set the outputs and drop unneeded operations; `NoProgram` if too many remain."""
        ends = [self.index(x) for x in outputs]
        needed, waiting = set(range(len(self.inputs))), ends + [i for g in self.guards for i in (g.left, g.right)]
        while waiting:
            i = waiting.pop()
            if i not in needed:
                needed.add(i)
                waiting += self.nodes[i].operands
        order = sorted(needed)
        place = {old: new for new, old in enumerate(order)}

        def renumbered(node: Node) -> Node:
            return node if node.op in LEAVES else Node(node.op, place[node.a], place.get(node.b, -1))

        self.nodes = [renumbered(self.nodes[i]) for i in order]
        self.guards = {g._replace(left=place[g.left], right=place[g.right]): None for g in self.guards}
        self.outputs = [place[i] for i in ends]
        self._values, self._found = [], {}    # the program is complete
        if self.operations > MOST:
            raise NoProgram(f"{self.operations:,} operations, more than {MOST:,}")

    @property
    def operations(self) -> int:
        """Number of arithmetic operations."""
        return sum(node.op not in LEAVES for node in self.nodes)


def _binary(op: int, forward: bool) -> Callable[[Scalar, Any], Any]:
    def operate(self: Scalar, other: Any) -> Any:
        if not isinstance(other, (Scalar, float, int, np.floating, np.integer)):
            return NotImplemented
        return _FOLD[op](self, other) if forward else _FOLD[op](other, self)
    return operate


def _comparison(comparison: str, swapped: bool) -> Callable[[Scalar, Any], bool]:
    def compare(self: Scalar, other: Any) -> bool:
        p = self.program
        left, right = (p.index(other), self.index) if swapped else (self.index, p.index(other))
        return p.guard(left, comparison, right)
    return compare


class Scalar:
    """A number that depends on the state. NumPy's functions of object arrays call its `sqrt`, `sin` and `cos`."""

    __slots__ = ("index", "program")
    __hash__ = object.__hash__
    __add__, __radd__ = _binary(ADD, True), _binary(ADD, False)
    __sub__, __rsub__ = _binary(SUB, True), _binary(SUB, False)
    __mul__, __rmul__ = _binary(MUL, True), _binary(MUL, False)
    __truediv__, __rtruediv__ = _binary(DIV, True), _binary(DIV, False)
    __gt__, __lt__ = _comparison(GREATER, False), _comparison(GREATER, True)
    __ge__, __le__ = _comparison(AT_LEAST, False), _comparison(AT_LEAST, True)
    __eq__ = _comparison(EQUAL, False)    # type: ignore[assignment]
    imag = 0.0

    def __init__(self, program: Program, index: int) -> None:
        self.program, self.index = program, index

    @property
    def real(self) -> Scalar:
        return self

    @property
    def node(self) -> Node:
        return self.program.nodes[self.index]

    def __neg__(self) -> Any:
        op, a, b = self.node
        if op == NEG:
            return Scalar(self.program, a)
        return self.program.make(SUB, b, a) if op == SUB else self.program.make(NEG, self.index)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        return self.program.make(ABS, self.index)

    def __pow__(self, power: int) -> Any:
        if not isinstance(power, int) or power < 1:
            return NotImplemented
        return self if power == 1 else self * self ** (power - 1)

    def sqrt(self) -> Scalar:
        return self.program.make(SQRT, self.index)

    def sin(self) -> Scalar:
        return self.program.make(SIN, self.index)

    def cos(self) -> Scalar:
        return self.program.make(COS, self.index)


def sincos(x: Any) -> tuple[Any, Any]:
    """(sin x, cos x) of a scalar or a number."""
    return (x.sin(), x.cos()) if isinstance(x, Scalar) else (math.sin(x), math.cos(x))


def _negated(x: Any) -> Any:
    """−x if x has a negative sign; None otherwise."""
    return Scalar(x.program, x.node.a) if isinstance(x, Scalar) and x.node.op == NEG else None


def _add(a: Any, b: Any) -> Any:
    for x, y in ((a, b), (b, a)):
        if not isinstance(x, Scalar) and x == 0.0:
            return y
        if (z := _negated(x)) is not None:
            return y - z
    return _operation(ADD, a, b)


def _sub(a: Any, b: Any) -> Any:
    if not isinstance(b, Scalar) and b == 0.0:
        return a
    if not isinstance(a, Scalar) and a == 0.0:
        return -b
    if isinstance(a, Scalar) and isinstance(b, Scalar) and a.index == b.index:
        return 0.0
    if (z := _negated(b)) is not None:
        return a + z
    if (z := _negated(a)) is not None:
        return -(z + b)
    return _operation(SUB, a, b)


def _mul(a: Any, b: Any) -> Any:
    for x, y in ((a, b), (b, a)):
        if not isinstance(x, Scalar):
            if x == 0.0:
                return 0.0
            if x == 1.0:
                return y
            if x == -1.0:
                return -y
        if (z := _negated(x)) is not None:
            return -(z * y)
    return _operation(MUL, a, b)


def _div(a: Any, b: Any) -> Any:
    if not isinstance(a, Scalar) and a == 0.0:
        return 0.0
    if not isinstance(b, Scalar) and b in (1.0, -1.0):
        return a if b == 1.0 else -a
    if (z := _negated(a)) is not None:
        return -(z / b)
    return _operation(DIV, a, b)


def _operation(op: int, a: Any, b: Any) -> Scalar:
    program = a.program if isinstance(a, Scalar) else b.program
    result: Scalar = program.make(op, program.index(a), program.index(b))
    return result


_FOLD = {ADD: _add, SUB: _sub, MUL: _mul, DIV: _div}


class Symbols(np.ndarray[Any, np.dtype[Any]]):
    """An array of scalars and numbers. Views of another type, as scratch memory of kernels, are separate arrays."""

    def view(self, *arguments: Any, **keywords: Any) -> Any:
        if arguments and arguments[0] in (np.bool_, np.int64):
            return np.zeros(self.shape, arguments[0])
        return super().view(*arguments, **keywords)


def symbols(values: Any) -> Symbols:
    """An array of scalars and numbers."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.view(Symbols)

"""A program as LLVM code for `WIDTH` states at once: `void f(double* in, double* out)`, arrays [row][lane].

Row `GOOD` of `out` is 1 where all guards hold and inputs and results are finite, 0 where the ordinary kernel is to
compute the state; row `NOTHING` is 0 and left alone; then come the results, each once, of which `rows_of` makes rows by
state. Multiplications and additions may be contracted, as in the kernels. Sine and cosine are those of `lie.sincos`,
without branches. The code is a function for each of `pieces`, called one after another.
"""
from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from ..lie import sincos as reference
from . import program as p
from .pieces import Piece, pieces
from .program import Node, Program
from .rows import transposition

WIDTH = 8          # states at once
TYPE, TRUTH = f"<{WIDTH} x double>", f"<{WIDTH} x i1>"
ALL = "<" + ", ".join(["i1 true"] * WIDTH) + ">"
SUMS = 8
ZERO = Node(p.CONSTANT, 0.0)
GOOD, NOTHING, FIRST = 0, 1, 2    # rows of `out`: whether states are good, zeros, the first of the results
_ROUND = 6755399441055744.0    # 1.5 · 2^52: adding and taking it away rounds to a whole number
_BINARY = {p.ADD: "fadd contract", p.SUB: "fsub contract", p.MUL: "fmul contract", p.DIV: "fdiv"}
_COMPARE = {p.GREATER: "ogt", p.AT_LEAST: "oge", p.EQUAL: "oeq"}


def _bits(x: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class _Printer:
    """Lines of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def constant(self, x: float) -> str:
        return "<" + ", ".join([f"double {_bits(x)}"] * WIDTH) + ">"

    def put(self, text: str) -> str:
        """A line that gives a value; its name."""
        name = f"%x{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def do(self, operation: str, a: str, b: str) -> str:
        return self.put(f"{operation} {TYPE} {a}, {b}")

    def call(self, function: str, a: str) -> str:
        return self.put(f"call {TYPE} @llvm.{function}.v{WIDTH}f64({TYPE} {a})")

    def compare(self, how: str, a: str, b: str) -> str:
        return self.put(f"fcmp {how} {TYPE} {a}, {b}")

    def both(self, a: str, b: str) -> str:
        return self.put(f"and {TRUTH} {a}, {b}")

    def select(self, condition: str, a: str, b: str) -> str:
        return self.put(f"select {TRUTH} {condition}, {TYPE} {a}, {TYPE} {b}")

    def finite(self, values: Sequence[str]) -> list[str]:
        """Conditions that hold where all of these are finite: sums of 0 · x, several, as each waits for its last."""
        sums = [self.constant(0.0)] * min(SUMS, len(values))
        for k, x in enumerate(values):
            nothing = self.do("fmul contract", x, self.constant(0.0))
            sums[k % SUMS] = self.do("fadd contract", sums[k % SUMS], nothing)
        return [self.compare("oeq", each, self.constant(0.0)) for each in sums]

    def at(self, array: str, k: int) -> str:
        """Where number k of an array begins."""
        return self.put(f"getelementptr inbounds double, ptr {array}, i64 {k * WIDTH}")

    def load(self, array: str, k: int) -> str:
        place = self.at(array, k)
        return self.put(f"load {TYPE}, ptr {place}, align 8")

    def store(self, value: str, array: str, k: int) -> None:
        place = self.at(array, k)
        self.lines.append(f"store {TYPE} {value}, ptr {place}, align 8")


def sine_and_cosine(f: _Printer, x: str) -> tuple[str, str, str]:
    """Names of sin x, cos x, and of whether x is within what they are exact for: `lie.sincos.sincos`, line by line."""
    c = f.constant

    def add(a: str, b: str) -> str:
        return f.do("fadd contract", a, b)

    def sub(a: str, b: str) -> str:
        return f.do("fsub contract", a, b)

    def mul(a: str, b: str) -> str:
        return f.do("fmul contract", a, b)

    def polynomial(z: str, coefficients: tuple[float, ...]) -> str:
        total = c(coefficients[-1])
        for k in coefficients[-2::-1]:
            total = add(c(k), mul(z, total))
        return total

    def whole(y: str) -> str:
        return f.do("fsub", f.do("fadd", y, c(_ROUND)), c(_ROUND))

    count = whole(f.do("fmul", x, c(reference.QUADRANTS)))
    most = f.do("fsub", x, f.do("fmul", c(reference.FIRST), count))
    rest = f.do("fmul", c(reference.SECOND), count)
    y = f.do("fsub", most, rest)
    near = f.do("fmul", c(reference.NEAR), f.call("fabs", count))
    good = f.both(f.compare("olt", f.call("fabs", x), c(reference.LIMIT)), f.compare("oge", f.call("fabs", y), near))
    tail = f.do("fsub", f.do("fsub", most, y), rest)
    z = mul(y, y)
    cube = mul(z, y)
    half = mul(c(0.5), z)
    sine = polynomial(z, (reference.S2, reference.S3, reference.S4, reference.S5, reference.S6))
    s = sub(y, sub(sub(mul(z, sub(mul(c(0.5), tail), mul(cube, sine))), tail), mul(cube, c(reference.S1))))
    w = f.do("fsub", c(1.0), half)
    lost = f.do("fsub", f.do("fsub", c(1.0), w), half)
    cosine = polynomial(z, (reference.C1, reference.C2, reference.C3, reference.C4, reference.C5, reference.C6))
    o = add(w, add(lost, sub(mul(mul(z, z), cosine), mul(y, tail))))
    # the quadrant, 0 to 3, as a number: count − 4 ⌊count/4⌋
    quarter = whole(f.do("fsub", f.do("fmul", count, c(0.25)), c(0.375)))
    quadrant = f.do("fsub", count, f.do("fmul", c(4.0), quarter))
    one, two, three = (f.compare("oeq", quadrant, c(k)) for k in (1.0, 2.0, 3.0))
    odd, back = f.put(f"or {TRUTH} {one}, {three}"), f.put(f"or {TRUTH} {two}, {three}")
    negative = f.put(f"or {TRUTH} {one}, {two}")
    found = []
    for value, other, sign in ((s, o, back), (o, s, negative)):
        size = f.select(odd, other, value)
        found.append(f.select(sign, f.put(f"fneg {TYPE} {size}"), size))
    return found[0], found[1], good


def printed(program: Program) -> str:
    """The text of a module: the function `f`; `rows_of` and `rows_past` for what it gives out; `take`, which counts up
    for all threads; in `rows` and `operations` how many rows `out` takes, those that pieces share last, and how many
    operations it has.
    """
    parts, slots = pieces(program)
    given = (i for i in dict.fromkeys(program.outputs) if program.nodes[i] != ZERO)
    place = {i: FIRST + k for k, i in enumerate(given)}
    rows = FIRST + len(place)
    texts = ["\n".join(_piece(program, piece, k, place, rows)) for k, piece in enumerate(parts)]
    called = [f"  call void @piece{k}(ptr %in, ptr %out)" for k in range(len(parts))]
    return "\n".join([*(f"declare {TYPE} @llvm.{each}.v{WIDTH}f64({TYPE})" for each in ("fabs", "sqrt")),
                      f"@rows = constant i64 {rows + slots}", f"@operations = constant i64 {program.operations}",
                      *texts, "define void @f(ptr noalias %in, ptr noalias %out) {", *called, "  ret void", "}",
                      "define void @take(ptr %in, ptr %out) {    ; counts up, whichever thread asks",
                      "  %k = atomicrmw add ptr %in, i64 1 seq_cst", "  store i64 %k, ptr %out", "  ret void", "}",
                      *transposition([place.get(i, NOTHING) for i in program.outputs], WIDTH, NOTHING)])


def _piece(program: Program, piece: Piece, k: int, place: Mapping[int, int], slots: int) -> list[str]:
    """The lines of piece k: what it takes, computes, leaves and gives out; whether all that it saw was good.

    place: rows of outputs by node; slots: the first row of what pieces share.
    """
    f, nodes = _Printer(), program.nodes
    value: dict[int, str] = {}
    angles: dict[int, tuple[str, str]] = {}
    good: list[str] = []

    def at(i: int) -> str:
        """The value of a node; those of other pieces are loaded where they are first used."""
        if i not in value:
            op, a, _ = nodes[i]
            value[i] = (f.constant(a) if op == p.CONSTANT else f.load("%in", a) if op == p.INPUT
                        else f.load("%out", slots + piece.taken[i]))
        return value[i]

    for i in piece.taken:
        at(i)
    for i in piece.nodes:
        op, a, b = nodes[i]
        if op in _BINARY:
            value[i] = f.do(_BINARY[op], at(a), at(b))
        elif op == p.NEG:
            value[i] = f.put(f"fneg {TYPE} {at(a)}")
        elif op in (p.SQRT, p.ABS):
            value[i] = f.call("sqrt" if op == p.SQRT else "fabs", at(a))
        else:
            if a not in angles:
                sine, cosine, exact = sine_and_cosine(f, at(a))
                angles[a] = sine, cosine
                good.append(exact)
            value[i] = angles[a][op == p.COS]
    for guard in piece.guards:
        held = f.compare(_COMPARE[guard.comparison], at(guard.left), at(guard.right))
        good.append(held if guard.outcome else f.put(f"xor {TRUTH} {held}, {ALL}"))
    seen = [at(i) for i in piece.outputs if nodes[i].op != p.CONSTANT]
    good += f.finite([*seen, *(at(x.index) for x in program.inputs)] if k == 0 else seen)
    for i, slot in piece.left.items():
        f.store(value[i], "%out", slots + slot)
    for i in piece.outputs:
        if i in place:
            f.store(at(i), "%out", place[i])
    ok = f.constant(1.0) if k == 0 else f.load("%out", GOOD)
    for condition in good:
        ok = f.select(condition, ok, f.constant(0.0))
    f.store(ok, "%out", GOOD)
    return [f"define internal void @piece{k}(ptr noalias %in, ptr noalias %out) noinline {{",
            *(f"  {line}" for line in f.lines), "  ret void", "}"]

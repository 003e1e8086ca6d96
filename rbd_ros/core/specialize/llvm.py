"""A program as LLVM code for `WIDTH` states at once: `void f(double* in, double* out)`, arrays [row][lane].

Rows of `out`: `GOOD`, 1 if all guards hold and inputs and results are finite, else 0: the ordinary kernel must compute
the state; `NOTHING`, constant 0; then the distinct results, which `rows_of` copies to rows by state. A product and a
sum are one instruction where the processor has it, as `fused_products` says. Sine and cosine are those of `lie.sincos`,
without branches. The code is a function for each of `pieces`, called in turn.
"""
from __future__ import annotations

import struct
from collections.abc import Mapping

from ..lie import sincos as reference
from . import program as p
from .pieces import Piece, fused_products, pieces
from .program import Node, Program
from .rows import transposition

WIDTH = 8          # states per block
GROUP = 8          # largest number of blocks per group
NEAR = 60_000      # numbers of a group's rows that fit in the second-level cache together with the code
ZERO = Node(p.CONSTANT, 0.0)
GOOD, NOTHING, FIRST = 0, 1, 2    # rows of `out`: validity, zeros, first result
_ROUND = 6755399441055744.0    # 1.5 · 2^52: its addition and subtraction round to an integer
_BINARY = {p.ADD: "fadd", p.SUB: "fsub", p.MUL: "fmul", p.DIV: "fdiv"}
_COMPARE = {p.GREATER: "ogt", p.AT_LEAST: "oge", p.EQUAL: "oeq"}


def _bits(x: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class Printer:
    """Lines of one function for `width` states at once."""

    def __init__(self, width: int = WIDTH) -> None:
        self.width, self.lines = width, list[str]()
        self.type, self.truth = (f"<{width} x double>", f"<{width} x i1>") if width > 1 else ("double", "i1")
        self.good: list[str] = []    # conditions of the code's domain
        self._angles: dict[int, tuple[str, str]] = {}

    def each(self, x: str) -> str:
        """A constant in every lane."""
        return "<" + ", ".join([x] * self.width) + ">" if self.width > 1 else x.split()[1]

    def constant(self, x: float) -> str:
        return self.each(f"double {_bits(x)}")

    def put(self, text: str) -> str:
        """Append a line with a value; returns the value's name."""
        name = f"%x{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def do(self, operation: str, a: str, b: str) -> str:
        return self.put(f"{operation} {self.type} {a}, {b}")

    def call(self, function: str, *arguments: str) -> str:
        kind = f"v{self.width}f64" if self.width > 1 else "f64"
        given = ", ".join(f"{self.type} {x}" for x in arguments)
        return self.put(f"call {self.type} @llvm.{function}.{kind}({given})")

    def negative(self, a: str) -> str:
        return self.put(f"fneg {self.type} {a}")

    def add_product(self, x: str, a: str, b: str) -> str:
        """x + a b."""
        return self.call("fmuladd", a, b, x)

    def sub_product(self, x: str, a: str, b: str) -> str:
        """x − a b."""
        return self.call("fmuladd", self.negative(a), b, x)

    def compare(self, how: str, a: str, b: str) -> str:
        return self.put(f"fcmp {how} {self.type} {a}, {b}")

    def both(self, a: str, b: str) -> str:
        return self.put(f"and {self.truth} {a}, {b}")

    def select(self, condition: str, a: str, b: str) -> str:
        return self.put(f"select {self.truth} {condition}, {self.type} {a}, {self.type} {b}")

    def finite(self, total: str, x: str) -> str:
        """total + 0 · x: a sum from 0 on that remains 0 while all x are finite."""
        return self.add_product(total, x, self.constant(0.0))

    def at(self, array: str, k: int) -> str:
        """Address of number k of an array."""
        return self.put(f"getelementptr inbounds double, ptr {array}, i64 {k * self.width}")

    def load(self, array: str, k: int) -> str:
        place = self.at(array, k)
        return self.put(f"load {self.type}, ptr {place}, align 8")

    def store(self, value: str, array: str, k: int) -> None:
        place = self.at(array, k)
        self.lines.append(f"store {self.type} {value}, ptr {place}, align 8")

    def operation(self, node: p.Node, value: Mapping[int, str], product: tuple[int, p.Node] | None = None) -> str:
        """Append the operation of a node on values of other nodes; returns the value's name. product: the operand
        that is fused with it, of `fused_products`.
        """
        if product is not None:
            i, factors = product
            a, b = value[factors.a], value[factors.b]
            if i != node.a:
                return (self.add_product if node.op == p.ADD else self.sub_product)(value[node.a], a, b)
            other = value[node.b]
            return self.add_product(other if node.op == p.ADD else self.negative(other), a, b)
        if node.op == p.CONSTANT:
            return self.constant(node.a)
        if node.op in _BINARY:
            return self.do(_BINARY[node.op], value[node.a], value[node.b])
        if node.op == p.NEG:
            return self.negative(value[node.a])
        if node.op in (p.SQRT, p.ABS):
            return self.call("sqrt" if node.op == p.SQRT else "fabs", value[node.a])
        if node.a not in self._angles:
            sine, cosine, exact = sine_and_cosine(self, value[node.a])
            self._angles[node.a] = sine, cosine
            self.good.append(exact)
        return self._angles[node.a][node.op == p.COS]

    def guard(self, guard: p.Guard, value: Mapping[int, str]) -> None:
        """Restrict the code's domain to states with this outcome of the comparison."""
        holds = self.compare(_COMPARE[guard.comparison], value[guard.left], value[guard.right])
        self.good.append(holds if guard.outcome else self.put(f"xor {self.truth} {holds}, {self.each('i1 true')}"))

    def declared(self) -> list[str]:
        """Declarations of the called functions of LLVM."""
        called = sorted({line.split(" @")[1].split("(")[0] for line in self.lines if " @llvm." in line})
        return [f"declare {self.type} @{name}({', '.join([self.type] * (3 if 'fmuladd' in name else 1))})"
                for name in called]


def sine_and_cosine(f: Printer, x: str) -> tuple[str, str, str]:
    """Names of sin x, cos x, and of whether x is in their domain: `lie.sincos.sincos`, line by line."""
    c = f.constant

    def mul(a: str, b: str) -> str:
        return f.do("fmul", a, b)

    def polynomial(z: str, coefficients: tuple[float, ...]) -> str:
        total = c(coefficients[-1])
        for k in coefficients[-2::-1]:
            total = f.add_product(c(k), z, total)
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
    s = f.sub_product(mul(c(0.5), tail), cube, sine)
    s = f.do("fsub", y, f.sub_product(f.add_product(f.negative(tail), z, s), cube, c(reference.S1)))
    w = f.do("fsub", c(1.0), half)
    lost = f.do("fsub", f.do("fsub", c(1.0), w), half)
    cosine = polynomial(z, (reference.C1, reference.C2, reference.C3, reference.C4, reference.C5, reference.C6))
    o = f.do("fadd", w, f.do("fadd", lost, f.sub_product(mul(mul(z, z), cosine), y, tail)))
    # the quadrant, 0 to 3, as a number: count − 4 ⌊count/4⌋
    quarter = whole(f.do("fsub", f.do("fmul", count, c(0.25)), c(0.375)))
    quadrant = f.do("fsub", count, f.do("fmul", c(4.0), quarter))
    one, two, three = (f.compare("oeq", quadrant, c(k)) for k in (1.0, 2.0, 3.0))
    odd, back = f.put(f"or {f.truth} {one}, {three}"), f.put(f"or {f.truth} {two}, {three}")
    negative = f.put(f"or {f.truth} {one}, {two}")
    found = []
    for value, other, sign in ((s, o, back), (o, s, negative)):
        size = f.select(odd, other, value)
        found.append(f.select(sign, f.negative(size), size))
    return found[0], found[1], good


def printed(program: Program) -> str:
    """Text of a module: functions `f`; `group`, for several blocks; `rows_of` and `rows_past`, for the results of `f`;
    numbers `blocks` of a group, `rows` of `out` (slots shared by pieces last), `operations`.
    """
    parts, slots = pieces(program)
    fused = fused_products(program, parts)
    results = (i for i in dict.fromkeys(program.outputs) if program.nodes[i] != ZERO)
    place = {i: FIRST + k for k, i in enumerate(results)}
    rows = FIRST + len(place)
    texts = [_piece(program, piece, k, fused, place, rows) for k, piece in enumerate(parts)]
    called = [f"  call void @piece{k}(ptr %in, ptr %out)" for k in range(len(parts))]
    room = rows + slots
    blocks = min(GROUP, max(1, NEAR // (room * WIDTH)))
    declared = sorted({line for _, declarations in texts for line in declarations})
    return "\n".join([*declared, f"@rows = constant i64 {room}", f"@blocks = constant i64 {blocks}",
                      f"@operations = constant i64 {program.operations}", *(text for text, _ in texts),
                      "define void @f(ptr noalias %in, ptr noalias %out) {", *called, "  ret void", "}",
                      *_group(len(parts), len(program.inputs), room, blocks),
                      *transposition([place.get(i, NOTHING) for i in program.outputs], WIDTH, NOTHING)])


def _group(pieces: int, inputs: int, rows: int, blocks: int) -> list[str]:
    """The function `group`: each piece for all `blocks`, then the next piece. The first-level cache has room for about
    one piece: reloading code is the bottleneck of long programs.
    """
    lines, before = ["define void @group(ptr noalias %in, ptr noalias %out) {", "start:"], "start"
    for k in range(pieces):
        lines += [f"  br label %piece{k}", f"piece{k}:", f"  %b{k} = phi i64 [0, %{before}], [%n{k}, %piece{k}]",
                  f"  %i{k} = mul i64 %b{k}, {inputs * WIDTH}", f"  %o{k} = mul i64 %b{k}, {rows * WIDTH}",
                  f"  %in{k} = getelementptr inbounds double, ptr %in, i64 %i{k}",
                  f"  %out{k} = getelementptr inbounds double, ptr %out, i64 %o{k}",
                  f"  call void @piece{k}(ptr %in{k}, ptr %out{k})", f"  %n{k} = add i64 %b{k}, 1",
                  f"  %more{k} = icmp ult i64 %n{k}, {blocks}", f"  br i1 %more{k}, label %piece{k}, label %end{k}",
                  f"end{k}:"]
        before = f"end{k}"
    return [*lines, "  ret void", "}"]


class _Values(dict[int, str]):
    """Names of values by node. Inputs and slots of other pieces are loaded at their first use."""

    def __init__(self, f: Printer, program: Program, slots: Mapping[int, int]) -> None:
        super().__init__()
        self._f, self._nodes, self._slots = f, program.nodes, slots

    def __missing__(self, i: int) -> str:
        node = self._nodes[i]
        self[i] = (self._f.operation(node, self) if node.op == p.CONSTANT else self._f.load("%in", node.a)
                   if node.op == p.INPUT else self._f.load("%out", self._slots[i]))
        return self[i]


def _piece(program: Program, piece: Piece, k: int, fused: Mapping[int, tuple[int, Node]], place: Mapping[int, int],
           slots: int) -> tuple[str, list[str]]:
    """Function of piece k, with loads, operations, stores and validity; and its declarations.

    fused: of `fused_products`; place: rows of outputs by node; slots: the first row of shared slots.
    """
    f, nodes = Printer(), program.nodes
    value = _Values(f, program, {i: slots + slot for i, slot in piece.loaded.items()})
    total = f.constant(0.0)    # 0 while all inputs and outputs are finite
    for x in program.inputs if k == 0 else ():
        total = f.finite(total, value[x.index])
    outputs, done = set(piece.outputs), {i for i, _ in fused.values()}
    for i in [*piece.nodes, *(i for i in piece.outputs if nodes[i].op in p.LEAVES)]:
        if i in done:
            continue
        if nodes[i].op not in p.LEAVES:
            value[i] = f.operation(nodes[i], value, fused.get(i))
        # store immediately, to free the register
        if i in piece.stored:
            f.store(value[i], "%out", slots + piece.stored[i])
        if i in outputs and nodes[i] != ZERO:
            f.store(value[i], "%out", place[i])
            total = f.finite(total, value[i])
    for guard in piece.guards:
        f.guard(guard, value)
    f.good.append(f.compare("oeq", total, f.constant(0.0)))
    ok = f.constant(1.0) if k == 0 else f.load("%out", GOOD)
    for condition in f.good:
        ok = f.select(condition, ok, f.constant(0.0))
    f.store(ok, "%out", GOOD)
    lines = [f"define internal void @piece{k}(ptr noalias %in, ptr noalias %out) noinline {{",
             *(f"  {line}" for line in f.lines), "  ret void", "}"]
    return "\n".join(lines), f.declared()

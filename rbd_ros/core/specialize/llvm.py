"""A program as LLVM code for `WIDTH` states at once: `void f(double* in, double* out)`, arrays [number][lane].

The last number out is 1 where all guards hold, 0 where the ordinary kernel is to compute the state. Multiplications and
additions may be contracted, as in the kernels. Sine and cosine are those of `lie.sincos`, without branches.
"""
from __future__ import annotations

import struct
from ..lie import sincos as reference
from . import program as p
from .program import Program

WIDTH = 8          # states at once
TYPE, TRUTH = f"<{WIDTH} x double>", f"<{WIDTH} x i1>"
ALL = "<" + ", ".join(["i1 true"] * WIDTH) + ">"
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

    def name(self) -> str:
        return f"%x{len(self.lines)}"

    def put(self, text: str) -> str:
        """A line that gives a value; its name."""
        name = self.name()
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


def printed(program: Program, name: str) -> str:
    """The text of a module with this one function."""
    f = _Printer()
    value: dict[int, str] = {}
    angles: dict[int, tuple[str, str]] = {}
    good: list[str] = []
    for k in range(len(program.inputs)):
        value[program.inputs[k].index] = f.load("%in", k)
    for i, node in enumerate(program.nodes):
        if node.op == p.CONSTANT:
            value[i] = f.constant(node.a)
        elif node.op in _BINARY:
            value[i] = f.do(_BINARY[node.op], value[node.a], value[node.b])
        elif node.op == p.NEG:
            value[i] = f.put(f"fneg {TYPE} {value[node.a]}")
        elif node.op in (p.SQRT, p.ABS):
            value[i] = f.call("sqrt" if node.op == p.SQRT else "fabs", value[node.a])
        elif node.op in (p.SIN, p.COS):
            if node.a not in angles:
                sine, cosine, exact = sine_and_cosine(f, value[node.a])
                angles[node.a] = sine, cosine
                good.append(exact)
            value[i] = angles[node.a][node.op == p.COS]
    for guard in program.guards:
        how = _COMPARE[guard.comparison]
        held = f.compare(how, value[guard.left], value[guard.right])
        good.append(held if guard.outcome else f.put(f"xor {TRUTH} {held}, {ALL}"))
    for k, i in enumerate(program.outputs):
        f.store(value[i], "%out", k)
    ok = f.constant(1.0)
    for condition in good:
        ok = f.select(condition, ok, f.constant(0.0))
    f.store(ok, "%out", len(program.outputs))
    declared = sorted({line.split(" @")[1].split("(")[0] for line in f.lines if " @llvm." in line})
    heads = [f"declare {TYPE} @{each}({TYPE})" for each in declared]
    return "\n".join([*heads, f"define void @{name}(ptr noalias %in, ptr noalias %out) {{",
                      *("  " + line for line in f.lines), "  ret void", "}"])

"""Specialized code for one state, called through `compiled/door` as the ordinary entries."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiled.callee import answer_at
from ..compiled.entry import EXTENSION
from ..compiled.kernel import kernel
from . import program as p
from .llvm import Printer
from .machine import call_of
from .pieces import fused_products, pieces
from .program import NoProgram, Program

Shape = tuple[int, ...]
LONGEST = 15_000    # operations: translation of more takes minutes


def printed_for_one(program: Program, sizes: Sequence[int], shapes: Sequence[Shape]) -> str:
    """Text of a module with the function `call` for `_door`: its words are the addresses of inputs and outputs.

    sizes: of the inputs; shapes: of the outputs.
    """
    f = Printer(1)
    value: dict[int, str] = {}
    places: dict[int, list[tuple[str, int]]] = {}
    outputs = iter(program.outputs)
    for array, shape in enumerate(shapes):
        for k in range(math.prod(shape)):
            places.setdefault(next(outputs), []).append((f"%out{array}", k))
    k = 0
    for array, size in enumerate(sizes):
        for j in range(size):
            value[program.inputs[k].index] = f.put(f"load double, ptr {f.at(f'%in{array}', j)}")
            k += 1
    total = f.constant(0.0)    # finite if all inputs and results are
    fused = fused_products(program, pieces(program)[0])
    done = {i for i, _ in fused.values()}
    for i, node in enumerate(program.nodes):
        if i in done:
            continue
        if node.op != p.INPUT:
            value[i] = f.operation(node, value, fused.get(i))
        for place in places.get(i, ()):    # store immediately, to free the register
            f.store(value[i], *place)
        if node.op == p.INPUT or (i in places and node.op != p.CONSTANT):
            total = f.do("fadd", total, value[i])
    for guard in program.guards:
        f.guard(guard, value)
    f.good.append(f.compare("oeq", f.do("fsub", total, total), f.constant(0.0)))
    ok = f.good[0]
    for condition in f.good[1:]:
        ok = f.both(ok, condition)
    arrays = [*(f"in{k}" for k in range(len(sizes))), *(f"out{k}" for k in range(len(shapes)))]
    loads = [line for k, name in enumerate(arrays, 1) for line in (
        f"  %at.{name} = getelementptr i64, ptr %words, i64 {k}", f"  %{name} = load ptr, ptr %at.{name}")]
    return "\n".join([f"@operations = constant i64 {program.operations}", *f.declared(),
                      f"define internal i1 @one({', '.join(f'ptr noalias %{name}' for name in arrays)}) {{",
                      *("  " + line for line in f.lines), f"  ret i1 {ok}", "}",
                      "define i64 @call(ptr %words) {", *loads,
                      f"  %accepted = call i1 @one({', '.join(f'ptr %{name}' for name in arrays)})",
                      "  store i64 1, ptr %words", "  %answer = zext i1 %accepted to i64", "  ret i64 %answer", "}"])


def way_of(key: str, program: Callable[[], Program], sizes: Sequence[int], shapes: Sequence[Shape], result: Any
           ) -> tuple[Callable[..., Any], int, int]:
    """Direct call of the code for inputs of these sizes, its address, and number of operations. key: of all
    dependencies of the code; shapes: of the outputs, () for a number; result: class of the tuple of several outputs.
    Raises `NoProgram`.
    """
    if EXTENSION is None:
        raise NoProgram("code of its own for one state needs the extension `_door`, which was not built")
    address, operations = call_of(key, lambda: printed_for_one(program(), sizes, shapes))
    count = 1 + len(sizes)
    words = [0] * (count + len(shapes))
    inputs = tuple((1 + k, 0, "d", size) for k, size in enumerate(sizes))
    outputs = tuple((count + k, shape) for k, shape in enumerate(shapes))
    if shapes == ((),):
        number = np.zeros(1)
        words[-1] = number.ctypes.data
        way = EXTENSION.Way(address, tuple(words), inputs, (), -1, None, (number,), words[-1], ())
    else:
        way = EXTENSION.Way(address, tuple(words), inputs, outputs, -1, result if len(shapes) > 1 else None, ())
    return way, address, operations


@kernel
def forward_dynamics_at(code, q, v, tau, a):
    """a: forward dynamics by the code at address code[0]; whether it accepts the state. code (6,) int64: address and
    words of `printed_for_one`.
    """
    code[2] = q.ctypes.data
    code[3] = v.ctypes.data
    code[4] = tau.ctypes.data
    code[5] = a.ctypes.data
    return answer_at(code[0], code.ctypes.data + 8) == 1

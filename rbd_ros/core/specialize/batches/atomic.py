"""Atomic operations and waiting for threads without the interpreter's lock, as functions within kernels.

Numbers are int64 at addresses. No compiler moves other reads and writes past these functions.
"""
from __future__ import annotations

import os
import platform
from collections.abc import Callable
from typing import Any

from ...compiled.numba_import import numba    # first: it imports numba lightly
from llvmlite import ir
from numba.extending import intrinsic

types: Any = numba.types
_ORDER = "seq_cst"
_NUMBER = ir.IntType(64)


def _place(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _NUMBER.as_pointer())


@intrinsic    # type: ignore[untyped-decorator]
def number_at(typing_context: Any, address: Any) -> Any:
    """The number there now."""
    return types.int64(types.int64), lambda context, builder, signature, arguments: (
        builder.load_atomic(_place(builder, arguments[0]), _ORDER, 8))


@intrinsic    # type: ignore[untyped-decorator]
def count_up(typing_context: Any, address: Any) -> Any:
    """Add 1; what was there before."""
    return types.int64(types.int64), lambda context, builder, signature, arguments: (
        builder.atomic_rmw("add", _place(builder, arguments[0]), _NUMBER(1), _ORDER))


@intrinsic    # type: ignore[untyped-decorator]
def swapped(typing_context: Any, address: Any, expected: Any, new: Any) -> Any:
    """Whether the expected number was there; then the new one is now."""
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, expected, new = arguments
        return builder.extract_value(builder.cmpxchg(_place(builder, address), expected, new, _ORDER, _ORDER), 1)

    return types.boolean(types.int64, types.int64, types.int64), generate


@intrinsic    # type: ignore[untyped-decorator]
def doubles_at(typing_context: Any, address: Any) -> Any:
    """A pointer to float64, for `numba.carray`."""
    return types.CPointer(types.float64)(types.int64), lambda context, builder, signature, arguments: (
        builder.inttoptr(arguments[0], ir.DoubleType().as_pointer()))


def _call(builder: Any, result: Any, name: str, *numbers: int) -> None:
    kinds = [ir.IntType(32)] * len(numbers)
    function = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(result, kinds), name)
    builder.call(function, [kind(number) for kind, number in zip(kinds, numbers, strict=True)])


@intrinsic    # type: ignore[untyped-decorator]
def pause(typing_context: Any) -> Any:
    """For some ten nanoseconds leave what the processor has to the other thread of its core."""
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        machine = platform.machine().lower()
        if machine in ("x86_64", "amd64"):
            _call(builder, ir.VoidType(), "llvm.x86.sse2.pause")
        elif machine in ("aarch64", "arm64"):
            _call(builder, ir.VoidType(), "llvm.aarch64.hint", 1)    # yield
        return context.get_dummy_value()

    return types.void(), generate


def _asked(name: str, *numbers: int) -> Callable[..., Any]:
    """What generates a call of the system's function of this name, where it is one with such calls."""
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if hasattr(os, "sched_yield"):
            _call(builder, ir.IntType(32), name, *numbers)
        return context.get_dummy_value()
    return generate


@intrinsic    # type: ignore[untyped-decorator]
def give_way(typing_context: Any) -> Any:
    """Let another thread of the machine run, if one of this priority waits for the processor."""
    return types.void(), _asked("sched_yield")


@intrinsic    # type: ignore[untyped-decorator]
def doze(typing_context: Any) -> Any:
    """Let any other thread run for 50 µs or some more, one of lower priority, too."""
    return types.void(), _asked("usleep", 50)


carray = numba.carray

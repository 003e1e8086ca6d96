"""What kernels call, declared without importing numba, which is needed when the first of them is compiled.

Uses internals of numba: see the table of `linking`.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Callee:
    """A function for compiled callers: optimised as by numba, but machine code is generated in its callers only.

    For calls from Python it is compiled separately, at the first one.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self._options = function, options
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return self._called(*arguments)

    @functools.cached_property
    def _called(self) -> Any:
        from . import linking
        return linking.compiled(self.py_func, self._options)

    @functools.cached_property
    def _linked(self) -> Any:
        from . import linking
        return linking.linked(self.py_func, self._options) if linking.KNOWN else self._called

    @property
    def _numba_type_(self) -> Any:    # the type for compiled callers
        from numba.core import types
        return types.Dispatcher(self._linked)


class Intrinsic:
    """`numba.extending.intrinsic` of a function, for kernels."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"{self._function.__name__}: for compiled callers only")

    @functools.cached_property
    def _numba_type_(self) -> Any:
        from . import linking
        return linking.intrinsic_type(self._function)


@Intrinsic
def call_at(typing_context: Any, address: Any, inputs: Any, out: Any) -> Any:
    """Within kernels: call `void f(double*, double*)` at this address with two arrays' addresses."""
    from llvmlite import ir
    from numba.core import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        function = builder.inttoptr(arguments[0], ir.FunctionType(ir.VoidType(), [pointer, pointer]).as_pointer())
        builder.call(function, [builder.inttoptr(argument, pointer) for argument in arguments[1:]])
        return context.get_dummy_value()

    return types.void(types.int64, types.uintp, types.uintp), generate


@Intrinsic
def answer_at(typing_context: Any, address: Any, words: Any) -> Any:
    """Within kernels: the result of `int64 f(int64*)` at this address, for an array's address."""
    from llvmlite import ir
    from numba.core import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        function = builder.inttoptr(arguments[0], ir.FunctionType(number, [number.as_pointer()]).as_pointer())
        return builder.call(function, [builder.inttoptr(arguments[1], number.as_pointer())])

    return types.int64(types.int64, types.uintp), generate

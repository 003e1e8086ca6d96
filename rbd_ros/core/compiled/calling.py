"""Machine code of entries, as an address for the extension `_door`, or as numba's dispatcher.

Uses internals of numba like `numba_inside`, whose table continues here. Tested with numba 0.68.1.

| here | in numba | without it |
|---|---|---|
| `_reader` | `numba.extending.intrinsic`, which is public; `make_array`, `make_tuple` of its context and `populate_array` of `numba.np.arrayobj`, which `numba.carray` uses | `numba.cfunc` functions by hand, one for each number of arguments |
| `code_at_address` | `CFunc` of `numba.core.ccallback`, which `numba.cfunc` makes, for the folder of its cache | the same code is compiled in each process |
"""    # noqa: E501
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from . import linking, numba_inside
from .numba_import import numba    # first: import of numba without optional packages
from llvmlite import ir
from numba.core import ccallback, sigutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

types: Any = numba.types

CODES = {"float64": "d", "int64": "l", "int32": "i", "boolean": "?", "complex128": "D", "void": "v"}    # of `_door`
AT_ADDRESS = "_at_address"    # suffix of names of code for `_door`
SLOW = numba.NumbaPerformanceWarning
_WORDS = types.CPointer(types.int64)
_WORD = ir.IntType(64)


def _reader(kinds: tuple[Any, ...]) -> Any:
    """A function for kernels: arguments of these types from the words of `_door`."""
    @intrinsic    # type: ignore[untyped-decorator]
    def arguments(typing_context: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            words, = values
            place = iter(range(1, 1000))

            def word() -> Any:
                return builder.load(builder.gep(words, [ir.Constant(_WORD, next(place))]))

            return context.make_tuple(builder, signature.return_type,
                                      [_argument(context, builder, kind, word) for kind in kinds])

        return types.Tuple(kinds)(_WORDS), generate

    return arguments


def _argument(context: Any, builder: Any, kind: Any, word: Callable[[], Any]) -> Any:
    if isinstance(kind, types.Array):
        data = builder.inttoptr(word(), context.get_data_type(kind.dtype).as_pointer())
        shape = [word() for _ in range(kind.ndim)]
        size = ir.Constant(_WORD, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        strides = [size] if kind.layout == "C" else [word() for _ in range(kind.ndim)]
        while len(strides) < kind.ndim:
            strides.insert(0, builder.mul(strides[0], shape[-len(strides)]))
        array = context.make_array(kind)(context, builder)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()
    if kind is types.float64:
        return builder.bitcast(word(), ir.DoubleType())
    return builder.icmp_signed("!=", word(), ir.Constant(_WORD, 0)) if kind is types.boolean else word()


# Templates: `function` and `arguments` are globals of copies of them. (numba's cache would pickle variables of an
# enclosing function, differently in each process.)
function: Any = None
arguments: Any = None


def _with_result(words: Any) -> Any:
    result = function(*arguments(words))
    words[0] = 1
    return result


def _without_result(words: Any) -> Any:
    function(*arguments(words))
    words[0] = 1
    return 0


def code_at_address(python: Callable[..., Any], signature: str, options: dict[str, Any], folder: Path | None) -> Any:
    """The compiled function as an object with `address`: `int64_t f(int64_t *words)`, `double f(…)` for a float64."""
    kinds, result = sigutils.normalize_signature(signature)
    template = _without_result if result is types.void else _with_result
    name = python.__name__ + AT_ADDRESS
    body = FunctionType(template.__code__, {
        "function": linking.Callee(python, options), "arguments": _reader(kinds)}, name)
    body.__qualname__, body.__module__ = python.__qualname__ + AT_ADDRESS, python.__module__    # of the cache's files
    returned = types.float64 if result is types.float64 else types.int64
    code: Any = ccallback.CFunc(body, ((_WORDS,), returned), {}, {"nopython": True, **_without_lock(options)},
                           **linking.ENTRY_PIPELINE)
    if folder is not None:
        code._cache = numba_inside.cache_in(body, folder)
    code.compile()
    return code


def _without_lock(options: dict[str, Any]) -> dict[str, Any]:
    """The options without `nogil`: the extension handles the interpreter's lock."""
    return {name: value for name, value in options.items() if name != "nogil"}


def dispatcher(python: Callable[..., Any], signature: str, options: dict[str, Any], folder: Path | None) -> Any:
    """The compiled function as numba's dispatcher, for calls from Python."""
    compiled = numba.njit(**linking.ENTRY, **options)(python)
    if folder is not None:
        compiled._cache = numba_inside.cache_in(python, folder)
    compiled.compile(signature)
    compiled.disable_compile()
    return compiled

"""Machine code of entries, as an address for the extension `_door`, or as numba's dispatcher.

Uses internals of numba like `numba_inside`, whose table continues here. Tested with numba 0.68.1.

| here | in numba | without it |
|---|---|---|
| `_reader` | `numba.extending.intrinsic`, which is public; `make_array`, `make_tuple` of its context and `populate_array` of `numba.np.arrayobj`, which `numba.carray` uses | `numba.cfunc` functions by hand, one for each number of arguments |
| `code_at_address` | `CFunc` of `numba.core.ccallback`, which `numba.cfunc` makes, and `serialize_using_object_code` of its library | `numba.cfunc`, and code is compiled in each process |
| `_symbols` | `cpu_target` of `numba.core.registry` and `rtsys` of `numba.core.runtime`, which tell llvmlite the functions that code calls | by numba's own cache, loading takes four times as long: 20 ms per entry |
"""    # noqa: E501
from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from . import linking, numba_inside, object_code
from .numba_import import numba    # first: import of numba without optional packages
from llvmlite import ir
from numba.core import ccallback, registry, sigutils
from numba.core.runtime import rtsys
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

types: Any = numba.types

CODES = {"float64": "d", "int64": "l", "int32": "i", "boolean": "?", "complex128": "D", "void": "v"}    # of `_door`
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


# Templates: `function` and `arguments` are globals of copies of them.
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


class Code(NamedTuple):
    """Machine code `int64_t f(int64_t *words)`, or `double f(…)` for a float64. loaded: from the cache."""

    address: int
    owner: Any
    loaded: bool


def file_of(python: Callable[..., Any], signature: str) -> str:
    """Name of the file of an entry's code, in the folder of its module; "" for closures, whose code is not kept."""
    code = python.__code__
    if python.__closure__:
        return ""
    key = f"{python.__qualname__} {code.co_firstlineno} {signature} {code.co_code.hex()}"
    return f"{python.__name__}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.o"


def code_at_address(python: Callable[..., Any], signature: str, options: dict[str, Any], folder: Path | None) -> Code:
    """The compiled function, loaded from a folder of the cache, or kept there."""
    path = folder / name if folder is not None and (name := file_of(python, signature)) else None
    kept = None if path is None else object_code.read(path)
    if kept is not None:
        symbol, code = kept.split(b"\n", 1)
        _symbols()
        engine = object_code.engine_of(code)
        return Code(engine.get_function_address(symbol.decode()), engine, True)
    kinds, result = sigutils.normalize_signature(signature)
    template = _without_result if result is types.void else _with_result
    body = FunctionType(template.__code__, {
        "function": linking.Callee(python, options), "arguments": _reader(kinds)}, python.__name__)
    body.__qualname__, body.__module__ = f"{python.__qualname__}_at_address", python.__module__
    returned = types.float64 if result is types.float64 else types.int64
    made: Any = ccallback.CFunc(body, ((_WORDS,), returned), {}, {"nopython": True, **_without_lock(options)},
                                **linking.ENTRY_PIPELINE)
    made.compile()
    if path is not None:
        _, _, (code, _) = made._library.serialize_using_object_code()
        object_code.write(path, made.native_name.encode() + b"\n" + code)
    return Code(made.address, made, False)


@functools.cache
def _symbols() -> None:
    """Register with llvmlite the functions of numba that machine code calls: for arrays, and for errors."""
    rtsys.initialize(registry.cpu_target.target_context)    # the context registers those for errors


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

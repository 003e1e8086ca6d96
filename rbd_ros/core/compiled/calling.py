"""Compilation of entries, to functions at addresses for the extension `_door`, or to numba's dispatchers.

Uses internals of numba like `linking`, whose table continues here. Tested with numba 0.68.1; `cache_in` with 0.59 and
later.

| here | in numba | without it |
|---|---|---|
| `_reader` | `numba.extending.intrinsic`, which is public; `make_array`, `make_tuple` of its context and `populate_array` of `numba.np.arrayobj`, which `numba.carray` uses | `numba.cfunc` functions by hand, one for each number of arguments |
| `at_address` | `CFunc` of `numba.core.ccallback`, which `numba.cfunc` makes, and `serialize_using_object_code` and `_final_module` of its library | `numba.cfunc`, and code is compiled in each process |
| `cache_in` | `FunctionCache`, `CompileResultCacheImpl`, `_CacheLocator` of `numba.core.caching`, `_cache` of dispatchers, for calls without the extension | machine code is cached by the path of the source file, and a change in a callee of another file goes unnoticed |
| `numba_import` | that `coverage_support` imports coverage, and `arraymath` scipy.linalg by `ensure_blas` of `numba.np.linalg`, only to test whether they are installed | the first result of a process that compiles takes 0.2 s longer |
"""    # noqa: E501
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from . import linking, object_code
from .callee import Callee
from .numba_import import numba    # first: import of numba without optional packages
from llvmlite import ir
from numba.core import ccallback, sigutils
from numba.core.caching import FunctionCache
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

types: Any = numba.types

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


def at_address(python: Callable[..., Any], signature: str, options: dict[str, Any], folder: Path | None
               ) -> object_code.Code:
    """The function compiled as `int64_t f(int64_t *words)`, or `double f(…)` for a float64, and kept in a folder of
    the cache.
    """
    kinds, result = sigutils.normalize_signature(signature)
    template = _without_result if result is types.void else _with_result
    body = FunctionType(template.__code__, {
        "function": Callee(python, options), "arguments": _reader(kinds)}, python.__name__)
    body.__qualname__, body.__module__ = f"{python.__qualname__}_at_address", python.__module__
    returned = types.float64 if result is types.float64 else types.int64
    options = {name: value for name, value in options.items() if name != "nogil"}    # the extension's task
    made: Any = ccallback.CFunc(body, ((_WORDS,), returned), {}, {"nopython": True, **linking.supported(options)},
                                **linking.ENTRY_PIPELINE)
    made.compile()
    if folder is not None and (name := object_code.file_of(python, signature)):
        _, _, (code, _) = made._library.serialize_using_object_code()
        called = [each.name for each in made._library._final_module.functions if each.is_declaration]
        object_code.keep(folder / name, made.native_name, [x for x in called if not x.startswith("llvm.")], code)
    return object_code.Code(made.address, made, False)


def dispatcher(python: Callable[..., Any], signature: str, options: dict[str, Any], folder: Path | None) -> Any:
    """The compiled function as numba's dispatcher, for calls from Python."""
    compiled = numba.njit(**linking.ENTRY, **linking.supported(options))(python)
    if folder is not None:
        compiled._cache = cache_in(python, folder)
    compiled.compile(signature)
    compiled.disable_compile()
    return compiled


def cache_in(function: Callable[..., Any], folder: Path) -> Any:
    """A cache of numba that stores the machine code of a function in a folder.

    The folder's name identifies the sources: see `cache`. If numba lacks these classes, its own cache is used.
    """
    try:
        from numba.core.caching import CompileResultCacheImpl, _CacheLocator
    except ImportError:
        return FunctionCache(function)

    class Locator(_CacheLocator):    # type: ignore[misc]
        def __init__(self, py_file: str) -> None:
            self._py_file = py_file

        def get_cache_path(self) -> str:
            return str(folder)

        def get_source_stamp(self) -> str:    # part of the folder's name
            return "content"

        def get_disambiguator(self) -> str:
            return "entry"

        @classmethod
        def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
            locator = cls(py_file)
            try:
                locator.ensure_cache_path()
            except OSError:
                return None
            return locator

    class Implementation(CompileResultCacheImpl):    # type: ignore[misc]
        _locator_classes = [Locator]    # noqa: RUF012

    class Cache(FunctionCache):    # type: ignore[misc]
        _impl_class = Implementation

    return Cache(function)

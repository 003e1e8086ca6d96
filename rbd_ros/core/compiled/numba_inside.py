"""Uses of numba internals without a public interface: each with its reason and its fallback.

Here calls, types and the cache; in `linking` the linking of compiled functions. Tested with numba 0.68.1 and 0.61.2;
`cache_in` with 0.59 and later. Other versions must be checked.

| here | in numba | without it |
|---|---|---|
| `BARE` | the option `_nrt` of `njit` | kernels count references to arrays, which costs as much as their arithmetic |
| `cache_in` | `FunctionCache`, `CompileResultCacheImpl`, `_CacheLocator` of `numba.core.caching`, `_cache` of dispatchers, for calls without the extension | machine code is cached by the path of the source file, and a change in a callee of another file goes unnoticed |
| `numba_import` | that `coverage_support` imports coverage, and `arraymath` scipy.linalg by `ensure_blas` of `numba.np.linalg`, only to test whether they are installed | the first result of a process takes 0.2 s longer |
| `call_at`, `answer_at` | `numba.extending.intrinsic`, which is public, and the code builder of llvmlite | no specialised models |
"""    # noqa: E501
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .numba_import import numba    # first: it imports numba lightly
from llvmlite import ir
from numba.core import cpu, types
from numba.extending import intrinsic

# Such code may neither allocate nor return an array (test/test_kernels.py).
BARE: dict[str, Any] = {"_nrt": False} if hasattr(cpu.CPUTargetOptions, "_nrt") else {}


def cache_in(function: Callable[..., Any], folder: Path) -> Any:
    """A cache of numba that stores the machine code of a function in a folder.

    The folder's name identifies the sources: see `cache`. If numba lacks these classes, its own cache is used.
    """
    try:
        from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
    except ImportError:
        from numba.core.caching import FunctionCache
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


def version() -> str:
    """The version of numba, and its target: processor and features."""
    from llvmlite import binding
    features = sorted(name for name, present in binding.get_host_cpu_features().items() if present)
    return f"{numba.__version__} {binding.get_host_cpu_name()} {features}"


@intrinsic    # type: ignore[untyped-decorator]
def call_at(typing_context: Any, address: Any, inputs: Any, out: Any) -> Any:
    """Within kernels: call `void f(double*, double*)` at this address with two arrays' addresses."""
    signature = types.void(types.int64, types.uintp, types.uintp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        function = builder.inttoptr(arguments[0], ir.FunctionType(ir.VoidType(), [pointer, pointer]).as_pointer())
        builder.call(function, [builder.inttoptr(argument, pointer) for argument in arguments[1:]])
        return context.get_dummy_value()

    return signature, generate


@intrinsic    # type: ignore[untyped-decorator]
def answer_at(typing_context: Any, address: Any, words: Any) -> Any:
    """Within kernels: the result of `int64 f(int64*)` at this address, for an array's address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        function = builder.inttoptr(arguments[0], ir.FunctionType(number, [number.as_pointer()]).as_pointer())
        return builder.call(function, [builder.inttoptr(arguments[1], number.as_pointer())])

    return types.int64(types.int64, types.uintp), generate

"""All that leans on the inside of numba, where it has no public way: what, why, and what happens without it.

Seen in numba 0.68.1; `keep` in 0.59 and later; without `Callee` and `ENTRY` in 0.61.2. Another version has to be looked at.

| here | in numba | without it |
|---|---|---|
| `BARE` | the option `_nrt` of `njit` | kernels count references to arrays, which costs as much as their arithmetic |
| `_Joined._optimize_…` | `_optimize_functions`, `_optimize_final_module`, `CPUCodegen._module_pass_manager`, `_data_layout` | code is optimised function by function, then cheaply to find references that are not needed, then in full: compilation takes a tenth longer, for kernels that are no faster |
| `refuse_at_once` | `Dispatcher._search_new_conversions`, `_explain_matching_error` | a call with a list or with integers spends 60 µs on a message that nobody reads before it is looked at |
| `keep` | `FunctionCache`, `CompileResultCacheImpl`, `_CacheLocator` of `numba.core.caching`, `Dispatcher._cache` | machine code is cached by the path of the source file, and a change in a callee of another file goes unnoticed |
| `Cache.load_overload` | that of `FunctionCache`, its `_load_overload`, and `rtsys.initialize` | the first kernel that a process loads takes 0.15 s longer: numba prepares for compiling |
| `tell_arrays_apart` | the fingerprints of `_typeof.cpp`, which say nothing of the order of bytes | after an array that is not aligned, one in the other order of bytes is taken as if it were in this one: wrong numbers |
| `is_kept` | names of that cache's files, `….NAME-….nbc` | nodes and `rbd doctor` do not know whether they have to compile |
| `Callee` | `pipeline_class` of `njit` and `_numba_type_`; `Compiler.define_pipelines`, `JITCodeLibrary` of `numba.core.codegen`; `Dispatcher.get_call_template` | machine code, and two wrappers for Python, are made of every function of every kernel, and thrown away, and functions are compiled twice where one caller names the number 0: compilation takes two to three times as long |
| `ENTRY` | the same of entries, and `_linking_libraries`, `_get_module_for_linking`, `link_in` | routines are optimised again in each of their callers, callers of callers and entries: compilation takes longer, by a third of one process where all is compiled in it |
| `numba_import` | that `coverage_support` imports coverage, and `arraymath` scipy.linalg by `ensure_blas` of `numba.np.linalg`, only to see whether they are there | the first result of a process takes 0.2 s longer |
| `call_at` | `numba.extending.intrinsic`, which is public, and the code builder of llvmlite | no specialised models |
| `UNTYPED` | `numba.core.errors.NumbaError`, raised for arguments that numba has no type for, such as an empty list | an error of numba instead of one that names the input |
"""    # noqa: E501
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from .numba_import import numba    # first: it imports numba lightly
import numpy as np
from llvmlite import ir
from numba.core import codegen, compiler, cpu, errors, types
from numba.core.types import IntegerLiteral, NamedTuple, Tuple, UniTuple, unliteral    # type: ignore[attr-defined]
from numba.extending import intrinsic

UNTYPED: type[Exception] = errors.NumbaError
# Such code may neither allocate nor return an array (test/test_kernels.py).
BARE: dict[str, Any] = {"_nrt": False} if hasattr(cpu.CPUTargetOptions, "_nrt") else {}


# What `Callee` changes is there; otherwise kernels are compiled as numba does, which takes twice as long.
KNOWN = tuple(map(int, numba.__version__.split(".")[:2])) >= (0, 63) and all(
    hasattr(there, name) for there, names in (
        (compiler.Compiler, ("define_pipelines",)),
        (codegen.CPUCodegen, ("_module_pass_manager",)),
        (codegen.JITCodeLibrary, (
            "finalize", "_finalize_final_module", "_finalize_dynamic_globals", "_ensure_finalized",
            "_get_module_for_linking", "get_pointer_to_function", "_optimize_functions", "_optimize_final_module")),
    ) for name in names)


class Callee:
    """A function for compiled callers: optimised as numba does, but only what these contain of it becomes machine code.

    Called from Python it is compiled for that, at its first call.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self._options = function, options
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return self._called(*arguments)

    @functools.cached_property
    def _called(self) -> Any:
        return numba.njit(**self._options)(self.py_func)

    @functools.cached_property
    def _linked(self) -> Any:
        if not KNOWN:
            return self._called
        options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **self._options}
        dispatcher = numba.njit(pipeline_class=_WithoutMachineCode, **options)(self.py_func)
        _take_any_place(dispatcher)
        return dispatcher

    @property
    def _numba_type_(self) -> Any:    # what compiled callers see
        return types.Dispatcher(self._linked)


_LONG = 400    # bytes of Python's code: some ten lines


def _take_any_place(dispatcher: Any) -> None:
    """Let `f(q, 0)` and `f(q, k)` share what is compiled for any k.

    numba compiles for each number that a caller names. In long functions most are 0, the place of the only state, which
    makes no faster code. Other numbers, strides and orders, do (by a quarter), as does 0 in short functions (the
    number of nodes is `integer(B, 0)`); and where types depend on one, as of `x[k]` of a tuple of several types, there
    is no other way.
    """
    if len(dispatcher.py_func.__code__.co_code) < _LONG:
        return
    original = dispatcher.get_call_template
    refused: set[Any] = set()

    def get_call_template(arguments: Any, keywords: Any) -> Any:
        general = tuple(map(_any_place, arguments))
        if general != tuple(arguments) and general not in refused:
            try:
                return original(general, keywords)
            except errors.NumbaError:
                refused.add(general)
        return original(arguments, keywords)

    dispatcher.get_call_template = get_call_template


def _any_place(kind: Any) -> Any:
    """The type of all integers for that of the number 0; of tuples for their items."""
    if isinstance(kind, NamedTuple):
        return NamedTuple([_any_place(item) for item in kind.types], kind.instance_class)
    if isinstance(kind, (Tuple, UniTuple)):
        return Tuple([_any_place(item) for item in kind.types])    # which is a `UniTuple` where all are alike
    return unliteral(kind) if isinstance(kind, IntegerLiteral) and kind.literal_value == 0 else kind


class _Joined(codegen.JITCodeLibrary):    # type: ignore[misc]
    """Code into which its kernels are linked before it is optimised, and its routines after, optimised by themselves.

    So each routine is optimised once per process, not once more in each of its callers, callers of callers and entries.
    """

    _linking_libraries: list[Any]
    routines: dict[_Linked, None]    # those of its kernels and of routines, too; each after all that it calls

    def finalize(self) -> None:
        self.routines = {}
        callees = list(dict.fromkeys(x for x in self._linking_libraries if isinstance(x, _Linked)))
        self._linking_libraries = [x for x in self._linking_libraries if not isinstance(x, _Linked)]
        for library in callees:
            self._reload_init.update(library._reload_init)
            self.routines.update(library.routines)
            if library.inlined:
                self._final_module.link_in(library.without_routines(), preserve=True)
            else:
                self.routines[library] = None
        super().finalize()

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout    # as there: all that remains is for the end

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._link_routines(self._final_module)
        super()._finalize_final_module()

    def _link_routines(self, module: Any) -> None:
        for library in reversed(self.routines):    # callers first: what nobody calls yet is left out
            module.link_in(library.without_routines(), preserve=True)


class _Linked(_Joined):
    """Optimised code that is there for other libraries to link: the processor never sees it."""

    inlined: bool

    def without_routines(self) -> Any:
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:    # for callers that are not compiled here
        module = self.without_routines().clone()
        self._link_routines(module)
        return module

    @property
    def codegen(self) -> Any:    # nobody can set the environment of what is nowhere in memory
        return SimpleNamespace(set_env=lambda name, environment: None)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class _WithoutMachineCode(compiler.Compiler):    # type: ignore[misc]
    def define_pipelines(self) -> Any:
        if self.state.library is None:
            self.state.library = _Linked(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            self.state.library.inlined = self.state.flags.forceinline
        return super().define_pipelines()


class _WithMachineCode(compiler.Compiler):    # type: ignore[misc]
    def define_pipelines(self) -> Any:
        if self.state.library is None:
            self.state.library = _Joined(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            self.state.library.enable_object_caching()
        return super().define_pipelines()


ENTRY: dict[str, Any] = {"pipeline_class": _WithMachineCode, "no_cfunc_wrapper": True} if KNOWN else {}


def refuse_at_once(dispatcher: Any, refuse: Callable[..., NoReturn]) -> None:
    """Let a dispatcher that compiles nothing any more call `refuse` for other argument types, and do nothing else."""
    dispatcher._search_new_conversions = lambda *arguments, **keywords: False
    dispatcher._explain_matching_error = refuse


_apart: list[bool] = []    # of this process


def tell_arrays_apart(dispatcher: Any, count: int) -> None:
    """Let numba see arrays with bytes in the other order before any whose numbers are not aligned, once per process.

    It finds the type of such arguments once, and again by a fingerprint that does not have the order of bytes. After an
    array that is not aligned, which it takes, it would take one in the other order, and compute nonsense. After one in
    the other order, for which it has no type, it refuses both. count: of the dispatcher's arguments.
    """
    if _apart:
        return
    _apart.append(True)
    for kind, axes, writable, step in itertools.product((np.float64, np.int64), (1, 2, 3), (True, False), (1, -1)):
        for order in ("C", "F"):
            array = np.zeros((2,) * axes, np.dtype(kind).newbyteorder(), order=order)[::step]
            array.flags.writeable = writable
            with suppress(TypeError, UNTYPED):
                dispatcher(*(array,) * count)


def is_kept(name: str, folder: Path) -> bool:
    """Whether machine code of a function of this name lies in the folder."""
    return any(folder.glob(f"*.{name}-*.nbc"))


def keep(dispatcher: Any, folder: Path) -> None:
    """Let a dispatcher find and leave its machine code in a folder, if that is writable.

    The folder stands for the sources: see `kernel_cache`. A numba without these classes uses a cache of its own.
    """
    try:
        from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
        from numba.core.runtime import rtsys
    except ImportError:
        dispatcher.enable_caching()
        return
    known = hasattr(rtsys, "initialize") and all(
        hasattr(FunctionCache, name) for name in ("_load_overload", "_guard_against_spurious_io_errors"))

    class Locator(_CacheLocator):    # type: ignore[misc]
        def __init__(self, py_file: str) -> None:
            self._py_file = py_file

        def get_cache_path(self) -> str:
            return str(folder)

        def get_source_stamp(self) -> str:    # the folder's name has it
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

        def load_overload(self, signature: Any, context: Any) -> Any:
            """Machine code needs the counting of references, and nothing else that compiling needs."""
            if not known:
                return super().load_overload(signature, context)
            rtsys.initialize(context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(signature, context)

    dispatcher._cache = Cache(dispatcher.py_func)


def version() -> str:
    """numba's, and what it compiles for: the processor and its features."""
    from llvmlite import binding
    features = sorted(name for name, present in binding.get_host_cpu_features().items() if present)
    return f"{numba.__version__} {binding.get_host_cpu_name()} {features}"


@intrinsic    # type: ignore[untyped-decorator]
def call_at(typing_context: Any, address: Any, given: Any, out: Any) -> Any:
    """Within kernels: call `void f(double*, double*)` at this address with two arrays' addresses."""
    signature = types.void(types.int64, types.uintp, types.uintp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        function = builder.inttoptr(arguments[0], ir.FunctionType(ir.VoidType(), [pointer, pointer]).as_pointer())
        builder.call(function, [builder.inttoptr(argument, pointer) for argument in arguments[1:]])
        return context.get_dummy_value()

    return signature, generate

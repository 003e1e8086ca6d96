"""Linking of compiled functions: each once, short ones optimised with their callers, others separately.

Uses internals of numba without a public interface, each with its reason and its fallback; the table continues in
`calling` and `object_code`. Tested with numba 0.68.1; other versions must be checked. Before 0.63, or without the
attributes that `KNOWN` requires, kernels are compiled and linked by numba itself.

| here | in numba | without it |
|---|---|---|
| `linked`, `Callee` | `pipeline_class` of `njit` and `_numba_type_`; `Compiler.define_pipelines`, `JITCodeLibrary` of `numba.core.codegen`; `Dispatcher.get_call_template` | machine code and two wrappers for Python are generated for every function of every kernel and discarded, and functions are compiled again for callers with the literals 0, True and False: compilation takes two to three times as long |
| `supported` | the option `_nrt` of `njit` | kernels count references to arrays, which costs as much as their arithmetic |
| `intrinsic_type`, `Intrinsic` | `_numba_type_`, and the typing context of `cpu_target` of `numba.core.registry` | numba is imported with the package: a quarter of a second more at each start |
| `add_functions` | `cpu_target` of `numba.core.registry` and `rtsys` of `numba.core.runtime` | functions of others that numba may use are not found, so that code is compiled in each process |
| `ENTRY` | the same of entries, and `_linking_libraries`, `_get_module_for_linking`, `link_in` | routines are optimised again in each of their callers, callers of callers and entries: compilation in one process takes a third longer |
| `_Joined._optimize_…` | `_optimize_functions`, `_optimize_final_module`, `CPUCodegen._module_pass_manager`, `_data_layout` | code is optimised function by function, then cheaply to find unneeded references, then fully: compilation takes a tenth longer, for kernels that are no faster |
"""    # noqa: E501
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from .numba_import import numba    # first: it imports numba lightly
from numba.core import codegen, compiler, cpu, errors, registry
from numba.core.types import (    # type: ignore[attr-defined]
    BooleanLiteral, IntegerLiteral, NamedTuple, Tuple, UniTuple, unliteral,
)
from numba.core.runtime import rtsys
from numba.extending import intrinsic

# Whether this numba has all internals that are overridden here.
KNOWN = tuple(map(int, numba.__version__.split(".")[:2])) >= (0, 63) and all(
    hasattr(owner, name) for owner, names in (
        (compiler.Compiler, ("define_pipelines",)),
        (codegen.CPUCodegen, ("_module_pass_manager",)),
        (codegen.JITCodeLibrary, (
            "finalize", "_finalize_final_module", "_finalize_dynamic_globals", "_ensure_finalized",
            "_get_module_for_linking", "get_pointer_to_function", "_optimize_functions", "_optimize_final_module")),
    ) for name in names)


def compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """numba's dispatcher of a function."""
    return numba.njit(**supported(options))(function)


def linked(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """The dispatcher of a function for compiled callers, without machine code of its own."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **supported(options)}
    dispatcher = numba.njit(pipeline_class=_WithoutMachineCode, **options)(function)
    _share_literals(dispatcher)
    return dispatcher


def supported(options: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that this numba has: `_nrt` is private."""
    return {name: value for name, value in options.items() if name != "_nrt" or hasattr(cpu.CPUTargetOptions, name)}


def add_functions() -> None:
    """Register with llvmlite the functions of numba that machine code calls."""
    rtsys.initialize(registry.cpu_target.target_context)    # the context registers those that are not for memory


def intrinsic_type(function: Callable[..., Any]) -> Any:
    """The type, for callers, of an intrinsic of this function."""
    made, context = intrinsic(function), registry.cpu_target.typing_context
    context.refresh()    # intrinsics declare themselves as built-in functions
    return context.resolve_value_type(made)


_LONG = 400    # bytes of Python's code: some ten lines


def _share_literals(dispatcher: Any) -> None:
    """Let `f(q, 0)` and `f(q, k)` share the code compiled for any k, and `f(q, True)` that for any boolean.

    numba compiles a variant for each literal argument. In long functions most of these are 0, the offset of a single
    state, or a boolean, without faster code. Other literals (strides, orders) give faster code, by a quarter, as do 0
    and booleans in short functions (the number of nodes is `integer(B, 0)`); and literals are required where types
    depend on them, as for `x[k]` of a heterogeneous tuple.
    """
    if len(dispatcher.py_func.__code__.co_code) < _LONG:
        return
    original = dispatcher.get_call_template
    refused: set[Any] = set()

    def get_call_template(arguments: Any, keywords: Any) -> Any:
        general = tuple(map(_without_literals, arguments))
        if general != tuple(arguments) and general not in refused:
            try:
                return original(general, keywords)
            except errors.NumbaError:
                refused.add(general)
        return original(arguments, keywords)

    dispatcher.get_call_template = get_call_template


def _without_literals(kind: Any) -> Any:
    """The type, with literal 0 and booleans replaced by the general types, in tuples too."""
    if isinstance(kind, NamedTuple):
        return NamedTuple([_without_literals(item) for item in kind.types], kind.instance_class)
    if isinstance(kind, (Tuple, UniTuple)):
        return Tuple([_without_literals(item) for item in kind.types])    # a `UniTuple` if all are equal
    shared = isinstance(kind, BooleanLiteral) or (isinstance(kind, IntegerLiteral) and kind.literal_value == 0)
    return unliteral(kind) if shared else kind


class _Joined(codegen.JITCodeLibrary):    # type: ignore[misc]
    """Library whose kernels are linked before optimisation, and whose routines, optimised separately, after it.

    So each routine is optimised once per process, not again in each of its callers, callers of callers and entries.
    """

    _linking_libraries: list[Any]
    routines: dict[_Linked, None]    # direct and indirect; each after all that it calls

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
        module.data_layout = self._codegen._data_layout    # as in the base class; optimisation follows at the end

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._link_routines(self._final_module)
        super()._finalize_final_module()

    def _link_routines(self, module: Any) -> None:
        for library in reversed(self.routines):    # callers first: linking omits functions without callers
            module.link_in(library.without_routines(), preserve=True)


class _Linked(_Joined):
    """Optimised code for other libraries to link, never executed itself."""

    inlined: bool

    def without_routines(self) -> Any:
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:    # for callers compiled by numba itself
        module = self.without_routines().clone()
        self._link_routines(module)
        return module

    @property
    def codegen(self) -> Any:    # code that is not in memory has no environment to set
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


ENTRY_PIPELINE: dict[str, Any] = {"pipeline_class": _WithMachineCode} if KNOWN else {}
ENTRY: dict[str, Any] = {**ENTRY_PIPELINE, "no_cfunc_wrapper": True} if KNOWN else {}

"""Kernels in plain Python, with functions substituted for others, for tracing on symbols."""
from __future__ import annotations

import threading
import types
from collections.abc import Callable, Mapping
from typing import Any

from ..compiled.entry import Entry

_ROOT = __package__.rpartition(".")[0]    # the core


class Plain:
    """Plain versions of kernels; `instead`: name → substitute for the kernel of this name."""

    def __init__(self, instead: Mapping[str, Callable[..., Any]]) -> None:
        self._instead = dict(instead)
        self._globals: dict[int, dict[str, Any]] = {}    # by id of the kernels' globals
        self._functions: dict[Any, Any] = {}
        self._lock = threading.RLock()    # other threads must see complete globals

    def __call__(self, value: Any) -> Any:
        """Plain version of a kernel, or of a module with kernels; other values unchanged."""
        if isinstance(value, types.ModuleType) and value.__name__.startswith(_ROOT):
            return _Namespace(self, value)
        function = value.python if isinstance(value, Entry) else getattr(value, "py_func", value)
        if not isinstance(function, types.FunctionType) or not function.__module__.startswith(_ROOT):
            return value
        if function.__name__ in self._instead:
            return self._instead[function.__name__]
        with self._lock:
            plain = self._functions.get(function)
            if plain is None:
                plain = self._functions[function] = types.FunctionType(
                    function.__code__, self._globals_of(function), function.__name__, function.__defaults__,
                    function.__closure__)
        return plain

    def _globals_of(self, function: types.FunctionType) -> dict[str, Any]:
        names = self._globals.get(id(function.__globals__))
        if names is None:
            names = self._globals[id(function.__globals__)] = {"__name__": function.__module__}
            names.update({name: self(value) for name, value in function.__globals__.items()
                          if not name.startswith("__")} | {"__builtins__": function.__globals__["__builtins__"]})
        return names


class _Namespace:
    """A module with plain functions."""

    def __init__(self, plain: Plain, module: types.ModuleType) -> None:
        self._plain, self._module = plain, module

    def __getattr__(self, name: str) -> Any:
        return self._plain(getattr(self._module, name))

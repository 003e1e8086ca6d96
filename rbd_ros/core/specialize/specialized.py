"""`rbd.specialize`: a model whose functions run code made for that robot alone."""
from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compile import COMPILED
from ..errors import RbdError, unknown_name
from ..kernel_cache import key_of_core
from ..model.robot_model import RobotModel
from ..model.scalars import step_count
from ..model.state import not_a_model
from ..trying import AT_ONCE
from .functions import FUNCTIONS, PUBLIC, recorded
from .lanes import many_states
from .llvm import printed
from .machine import address_of
from .one_state import function_of
from .program import NoProgram, Program

Array = NDArray[np.float64]


class SpecializedModel(RobotModel):
    """A robot model for which functions of `FUNCTIONS` have code of their own, made or loaded at their first call."""

    _specialized: OwnCode

    @property
    def threads(self) -> int:
        """Over which batches are spread."""
        return self._specialized.threads

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.description, self.threads)

    def has_code(self, name: str) -> bool:
        """Whether the function has code of its own by now."""
        own = self._specialized
        return not isinstance(own.single[name], partial) or isinstance(own.batch[name], _Calls)


class OwnCode:
    """What the public functions of a specialised model try, by their names: `single` at once, `batch` next (`trying`).

    They take the function's arguments but the model, and return its result, or None where others have to look at them.
    """

    __slots__ = ("_model", "batch", "single", "threads")

    def __init__(self, model: SpecializedModel, threads: int) -> None:
        self._model, self.threads = model, threads
        self.single: dict[str, Callable[..., Any]] = {name: partial(call, model) for name, call in AT_ONCE.items()}
        self.single |= {name: partial(self._first_state, name) for name in FUNCTIONS}
        self.batch: dict[str, Callable[..., Any]] = {name: partial(self._first_batch, name) for name in FUNCTIONS}

    def make(self, name: str) -> None:
        """Make or load the code of a function for one state and for batches, from one program."""
        program = cache(partial(recorded, self._model, name))
        self._make_single(name, program)
        self._make_batch(name, program)

    def _first_state(self, name: str, *inputs: Any) -> Any:
        if getattr(inputs[0], "ndim", 0) != 1:
            return None
        self._make_single(name, partial(recorded, self._model, name))
        return self.single[name](*inputs)

    def _first_batch(self, name: str, *inputs: Any) -> Any:
        if getattr(inputs[0], "ndim", 0) != 2:
            return None
        self._make_batch(name, partial(recorded, self._model, name))
        return self.batch[name](*inputs)

    def _make_single(self, name: str, program: Callable[[], Program]) -> None:
        model, function = self._model, FUNCTIONS[name]
        sizes = [model.nq if kind == "q" else model.nv for kind in function.inputs]
        try:
            made = function_of(f"{_key(model, name)} single", program, sizes, function.shapes(model), function.result)
        except NoProgram:
            self.single[name] = partial(AT_ONCE[name], model)
            return
        spread = "higher" in signature(AT_ONCE[name]).parameters
        self.single[name] = (lambda *inputs: made(*inputs[:-1], *inputs[-1])) if spread else made

    def _make_batch(self, name: str, program: Callable[[], Program]) -> None:
        try:
            self.batch[name] = _Calls(self._model, name, program)
        except NoProgram:
            self.batch[name] = lambda *inputs: None


def _key(model: RobotModel, name: str) -> str:
    """Of all that the code of a function depends on."""
    return f"{key_of_core()} {name} {hashlib.sha256(model._block.tobytes()).hexdigest()}"


class _Calls:
    """The code of one function for batches, called with its inputs."""

    def __init__(self, model: SpecializedModel, name: str, program: Callable[[], Program]) -> None:
        self._model, self._name, self._function = model, name, FUNCTIONS[name]
        self._shapes = self._function.shapes(model)
        self._sizes = [int(np.prod(shape)) for shape in self._shapes]
        self._columns = [model.nq if kind == "q" else model.nv for kind in self._function.inputs]
        self._address = address_of("f", _key(model, name), lambda: printed(program(), "f"))

    def __call__(self, *inputs: Any) -> Any:
        if isinstance(inputs[-1], tuple):    # of higher derivatives
            inputs = (*inputs[:-1], *inputs[-1])
        if len(inputs) != len(self._columns) or any(getattr(x, "dtype", None) != np.float64 for x in inputs):
            return None
        count = len(inputs[0]) if inputs[0].ndim else 0
        if any(x.shape != (count, columns) for x, columns in zip(inputs, self._columns, strict=True)):
            return None
        given = [np.ascontiguousarray(x) for x in inputs]
        out = np.empty((count, sum(self._sizes)))
        good = many_states(self._address, given, out, self._model.threads)
        if not good.all():    # by the ordinary kernels; what they refuse they name, of the whole batch
            try:
                rest = PUBLIC[self._name](RobotModel.from_description(self._model.description),
                                          *(x[~good] for x in given))
            except RbdError:
                return None
            parts = rest if isinstance(rest, tuple) else (rest,)
            out[~good] = np.concatenate([np.reshape(part, (len(part), -1)) for part in parts], axis=1)
        arrays = np.split(out, np.cumsum(self._sizes)[:-1], axis=1)
        return self._function.result(*(x.reshape(count, *shape) for x, shape in zip(arrays, self._shapes, strict=True)))


def specialize(model: RobotModel, functions: Sequence[str] = (), threads: int = 1) -> SpecializedModel:
    """The same robot with code of its own: every function takes it as it takes `model`. Calls of one state take about
    half the time, batches a fraction.

    functions: names of those whose code is made at once, of `FUNCTIONS`; the others' is made when they are first
    called, in 0.1 to some s, and kept on disk. threads: over which batches are spread. Where a state is beyond what the
    code is for (angles above 8e5, the neighbourhood of singular pivots), or a function has none, the ordinary kernels
    compute, and errors are theirs. `RbdError` for what is no model, unknown names, and without numba.
    """
    if not isinstance(model, RobotModel):
        raise not_a_model(model)
    if not COMPILED:
        raise RbdError("specialize needs numba, which is not installed or switched off")
    made: SpecializedModel = object.__new__(SpecializedModel)
    for field in dataclasses.fields(RobotModel):    # to touch `__dict__` would slow down each look at `model` (`kept`)
        object.__setattr__(made, field.name, getattr(model, field.name))
    object.__setattr__(made, "_work", made._new_work())
    object.__setattr__(made, "_specialized", OwnCode(made, step_count(threads)))
    for name in functions:
        if name not in FUNCTIONS:
            raise unknown_name("function", name, FUNCTIONS)
        made._specialized.make(name)
    return made


def _again(description: Any, threads: int) -> SpecializedModel:
    return specialize(RobotModel.from_description(description), threads=threads)

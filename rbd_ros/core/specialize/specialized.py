"""`rbd.specialize`: a model whose functions run code made for that robot alone."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compile import COMPILED
from ..errors import RbdError, RbdWarning
from ..kernel_cache import key_of_core
from ..model.robot_model import RobotModel
from ..model.scalars import step_count
from ..model.state import not_a_model
from .families import FAMILIES, Parameters, asked, label
from .functions import FUNCTIONS, PUBLIC, Function, recorded
from .lanes import many_states
from .llvm import printed
from .machine import code_of
from .program import NoProgram

Array = NDArray[np.float64]
SLOW = 10_000     # operations: to translate more takes about a second
VARIANTS = 100    # of one function, by its parameters


class SpecializedModel(RobotModel):
    """A robot model for which functions of `FUNCTIONS` and `FAMILIES` have code of their own, made or loaded at their
    first batch.
    """

    threads: int
    _ordinary: RobotModel    # without code of its own

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.description, self.threads)

    @property
    def functions(self) -> dict[str, int | str]:
        """By name, of the functions called so far: the operations of their code, or why the ordinary kernels run."""
        return {label(self, name, parameters): code if isinstance(code, str) else code.operations
                for name, calls in self._specialized.items() for parameters, code in calls.codes.items()}

    def has_code(self, name: str) -> bool:
        """Whether the function has code of its own by now, for parameters of some kind."""
        return any(isinstance(code, _Code) for code in self._specialized[name].codes.values())


class _Code:
    """The code of one function and how it is called."""

    def __init__(self, model: RobotModel, name: str, parameters: Parameters, function: Function) -> None:
        self._shapes = function.shapes(model)
        self._sizes = [int(np.prod(shape)) for shape in self._shapes]
        self._result = function.result
        what = label(model, name, parameters)

        def text() -> str:
            program = recorded(model, what, function=function)
            if program.operations > SLOW and sys.stderr is not None and sys.stderr.isatty():
                print(f"rbd_ros: making code of {what} for '{model.name}' (once): {program.operations:,} operations …",
                      file=sys.stderr, flush=True)
            return printed(program)

        self._code = code_of(f"{key_of_core()} {what} {model._block.tobytes().hex()}", text)
        self.operations = self._code.operations

    def __call__(self, arrays: Sequence[Array], threads: int, ordinary: Any) -> Any:
        """The result; of states for which it is not made by `ordinary` of their arrays; None where that refuses one."""
        given = [np.require(x, requirements=["C", "W"]) for x in arrays]    # kernels take what one can write to
        count = len(given[0])
        out, good = many_states(self._code, given, self._sizes, threads)
        if not good.all():
            try:
                rest = ordinary([x[~good] for x in given])
            except RbdError:    # which it names, of the whole batch
                return None
            parts = rest if isinstance(rest, tuple) else (rest,)
            out[~good] = np.concatenate([np.reshape(part, (len(part), -1)) for part in parts], axis=1)
        results = np.split(out, np.cumsum(self._sizes)[:-1], axis=1)
        return self._result(*(x.reshape(count, *shape) for x, shape in zip(results, self._shapes, strict=True)))


class _Calls:
    """Calls of one function: what it returns, None where the ordinary kernels have to look at the call."""

    def __init__(self, model: SpecializedModel, name: str) -> None:
        self._model, self._name = model, name
        self.codes: dict[Parameters, _Code | str] = {}    # by parameters; or why there is none

    def __call__(self, *inputs: Any) -> Any:
        arrays, parameters, family = inputs, (), FAMILIES.get(self._name)
        if getattr(inputs[0], "ndim", 0) != 2:
            return None
        if family is not None:
            try:
                arrays, parameters = family.of_call(self._model, *inputs)
                hash(parameters)
            except (RbdError, TypeError):
                return None
        if not self._batch(arrays):
            return None
        code = self.codes.get(parameters)
        if code is None:
            try:
                code = self.make(parameters, FUNCTIONS[self._name] if family is None
                                 else family.function(self._model, parameters), 4)
            except RbdError:    # of the parameters
                return None
        if isinstance(code, str):
            return None
        return code(arrays, self._model.threads, lambda x: (
            PUBLIC[self._name](self._model._ordinary, *x) if family is None
            else family.call(self._model._ordinary, x, parameters)))

    def _batch(self, arrays: Sequence[Any]) -> bool:
        """Whether these are many states of the model, as many in each, in numbers that the code takes."""
        columns = [self._model.nq, *[self._model.nv] * (len(arrays) - 1)]
        return all(isinstance(x, np.ndarray) and x.dtype == np.float64 and x.shape == (len(arrays[0]), size)
                   for x, size in zip(arrays, columns, strict=True))

    def make(self, parameters: Parameters, function: Function, below: int) -> _Code | str:
        """Make or load the code; without a program, which is said once, the ordinary kernels compute.

        below: how far the user's call is below this one, for the warning.
        """
        if len(self.codes) >= VARIANTS:
            return "too many variants"
        try:
            self.codes[parameters] = _Code(self._model, self._name, parameters, function)
        except NoProgram as reason:
            self.codes[parameters] = str(reason)
            if self._model.nv:
                warnings.warn(f"model '{self._model.name}': {reason}; the ordinary kernels compute it", RbdWarning,
                              stacklevel=below + 1)
        return self.codes[parameters]


def specialize(model: RobotModel, functions: Sequence[str] = (), threads: int = 1) -> SpecializedModel:
    """The same robot with code of its own for batches, which is several times as fast: every function takes it as it
    takes `model`. Single states run the ordinary kernels, as to call these takes longer than the code would save.

    functions: names of those whose code is made at once, of `FUNCTIONS`, or of `FAMILIES` with parameters
    ("jacobian:tool0:world", "hybrid_dynamics:joint1,joint3", "inverse_dynamics_time_derivatives:3"); the others' is
    made when they are first called, in 0.1 to some s, and kept on disk. threads: over which batches are spread. Where a
    state is beyond what the code is for (angles above 8e5, the neighbourhood of singular pivots), or a function has
    none (`SpecializedModel.functions` says why, as a warning does), the ordinary kernels compute, and errors are
    theirs. `RbdError` for what is no model, unknown names, and without numba.
    """
    if not isinstance(model, RobotModel):
        raise not_a_model(model)
    if not COMPILED:
        raise RbdError("specialize needs numba, which is not installed or switched off")
    made: SpecializedModel = object.__new__(SpecializedModel)
    made.__dict__.update(model.__dict__)
    ordinary = model._ordinary if isinstance(model, SpecializedModel) else model
    calls = {name: _Calls(made, name) for name in (*FUNCTIONS, *FAMILIES)}
    made.__dict__.update(threads=step_count(threads), _specialized=calls, _ordinary=ordinary, _work=made._new_work())
    for each in [functions] if isinstance(functions, str) else functions:
        name, parameters, function = asked(made, each)
        calls[name].make(parameters, function, 2)
    return made


def _again(description: Any, threads: int) -> SpecializedModel:
    return specialize(RobotModel.from_description(description), threads=threads)

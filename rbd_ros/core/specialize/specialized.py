"""`rbd.specialize`: a model whose functions run code made for that robot alone."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compile import COMPILED
from ..errors import RbdError, unknown_name
from ..kernel_cache import key_of_core
from ..model.robot_model import RobotModel
from ..model.scalars import step_count
from ..model.state import not_a_model
from ..trying import by_own_code
from .functions import FUNCTIONS, PUBLIC, recorded
from .lanes import many_states
from .llvm import printed
from .machine import address_of
from .program import NoProgram

Array = NDArray[np.float64]


class SpecializedModel(RobotModel):
    """A robot model for which functions of `FUNCTIONS` have code of their own, made or loaded at their first batch."""

    threads: int

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.description, self.threads)

    def has_code(self, name: str) -> bool:
        """Whether the function has code of its own by now."""
        return isinstance(self._specialized[name], _Calls)

    def _first_call(self, name: str, *inputs: Any) -> Any:
        self._make(name)
        return by_own_code(name, self, *inputs)

    def _make(self, name: str) -> None:
        """Make or load the code of a function; without a program the ordinary kernels compute it."""
        try:
            self._specialized[name] = _Calls(self, name)
        except NoProgram:
            self._specialized[name] = None


class _Calls:
    """The code of one function, called with its inputs: what the function returns, None where the ordinary kernels have
    to look at it.
    """

    def __init__(self, model: SpecializedModel, name: str) -> None:
        self._model, self._name, self._function = model, name, FUNCTIONS[name]
        self._shapes = self._function.shapes(model)
        self._sizes = [int(np.prod(shape)) for shape in self._shapes]
        self._columns = [model.nq if kind == "q" else model.nv for kind in self._function.inputs]
        key = f"{key_of_core()} {name} {model._block.tobytes().hex()}"
        self._address = address_of("f", key, lambda: printed(recorded(model, name), "f"))

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
    """The same robot with code of its own for batches, which is several times as fast: every function takes it as it
    takes `model`. Single states run the ordinary kernels, as to call these takes longer than the code would save.

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
    made.__dict__.update(model.__dict__)
    first = {name: partial(made._first_call, name) for name in FUNCTIONS}
    made.__dict__.update(threads=step_count(threads), _specialized=first, _work=made._new_work())
    for name in functions:
        if name not in FUNCTIONS:
            raise unknown_name("function", name, FUNCTIONS)
        made._make(name)
    return made


def _again(description: Any, threads: int) -> SpecializedModel:
    return specialize(RobotModel.from_description(description), threads=threads)

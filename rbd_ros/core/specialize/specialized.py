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
from .functions import FUNCTIONS, recorded
from .lanes import Lanes
from .llvm import WIDTH, printed
from .machine import address_of
from .program import NoProgram, Program

Array = NDArray[np.float64]


class SpecializedModel(RobotModel):
    """A robot model for which functions of `FUNCTIONS` have code of their own, made or loaded when first called."""

    threads: int
    _codes: dict[str, Lanes | None]

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.description, self.threads)

    def _specialized(self, name: str, inputs: tuple[Any, ...]) -> Any:
        """What the function returns; None where the ordinary kernels have to look at it."""
        function = FUNCTIONS.get(name)
        if function is None:
            return None
        code = self._codes[name] if name in self._codes else self._made(name)
        if name == "inverse_dynamics_time_derivatives":
            inputs = (*inputs[:3], *inputs[3])
        if code is None or len(inputs) != len(function.inputs):
            return None
        shapes = function.shapes(self)
        if getattr(inputs[0], "ndim", 0) == 2:
            return self._many(name, code, inputs, shapes)
        if len(shapes) == 1:
            out = np.empty(shapes[0])
            return out if code.one(inputs, out.reshape(-1)) else None
        stacked = np.empty((len(shapes), *shapes[0]))
        return function.result(*stacked) if code.one(inputs, stacked.reshape(-1)) else None

    def _many(self, name: str, code: Lanes, inputs: tuple[Any, ...], shapes: Sequence[tuple[int, ...]]) -> Any:
        function = FUNCTIONS[name]
        given = [np.ascontiguousarray(x, dtype=np.float64) for x in inputs]
        count = len(given[0])
        for x, kind in zip(given, function.inputs, strict=True):
            if x.shape != (count, self.nq if kind == "q" else self.nv):
                return None
        sizes = [int(np.prod(shape)) for shape in shapes]
        out = np.empty((count, sum(sizes)))
        good = code.many(tuple(given), out, self.threads)
        if not good.all():    # by the ordinary kernels; what they refuse they name, of the whole batch
            try:
                rest = self._ordinary(name, [x[~good] for x in given])
            except RbdError:
                return None
            parts = rest if isinstance(rest, tuple) else (rest,)
            out[~good] = np.concatenate([np.reshape(part, (len(part), -1)) for part in parts], axis=1)
        ends = np.cumsum(sizes)[:-1]
        arrays = [part.reshape(count, *shape) for part, shape in zip(np.split(out, ends, axis=1), shapes, strict=True)]
        return function.result(*arrays)

    def _ordinary(self, name: str, inputs: Sequence[Array]) -> Any:
        import rbd_ros

        model = RobotModel.from_description(self.description)
        return getattr(rbd_ros, name)(model, *inputs)

    def _made(self, name: str) -> Lanes | None:
        """The code of a function; None where it has no program."""
        key = f"{key_of_core()} {name} {self._block.tobytes().hex()}"
        function = FUNCTIONS[name]
        sizes = tuple(self.nq if kind == "q" else self.nv for kind in function.inputs)
        count = sum(int(np.prod(shape)) for shape in function.shapes(self))
        programs: list[Program] = []

        def text(lanes: int) -> str:
            if not programs:
                programs.append(recorded(self, name))
            return printed(programs[0], "f", lanes)

        try:
            addresses = [address_of("f", f"{key} {lanes}", partial(text, lanes)) for lanes in (1, WIDTH)]
        except NoProgram:
            self._codes[name] = None
            return None
        found = self._codes[name] = Lanes(addresses[0], addresses[1], sizes, count)
        return found


def specialize(model: RobotModel, functions: Sequence[str] = (), threads: int = 1) -> SpecializedModel:
    """The same robot with code of its own: every function takes it as it takes `model`, and is faster for one state, a
    multiple for batches.

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
    made.__dict__.update(threads=step_count(threads), _codes={}, _work=made._new_work())
    for name in functions:
        if name not in FUNCTIONS:
            raise unknown_name("function", name, FUNCTIONS)
        made._made(name)
    return made


def _again(description: Any, threads: int) -> SpecializedModel:
    return specialize(RobotModel.from_description(description), threads=threads)

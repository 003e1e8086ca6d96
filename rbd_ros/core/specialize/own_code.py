"""Code of a specialized model, made or loaded at the first call of a function, for one state and for batches."""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiled.entry import UNSUITED
from ..dynamics.singular import SingularMassMatrix
from ..errors import RbdError, warn
from ..compiled.cache import key_of_core
from ..model.robot_model import RobotModel
from ..compiled.door import DOORS, NUMBERS
from .families import FAMILIES, Parameters, function_of, label
from .functions import FUNCTIONS, PUBLIC, Function, recorded
from .llvm import printed
from .machine import Code, code_of, is_kept
from .many_states import many_states
from .one_state import LONGEST, way_of
from .program import NoProgram, Program

Array = NDArray[np.float64]
SLOW = 10_000     # operations whose translation takes about a second
VARIANTS = 100    # largest number of parameter sets per function
REFUSED: tuple[type[Exception], ...] = (RbdError, *UNSUITED)    # raised for invalid parameters


class OwnCode:
    """Calls of a specialized model by function name: in `model._ways`, before those of the ordinary model."""

    __slots__ = ("batch", "model", "ordinary", "threads")

    def __init__(self, model: RobotModel, ordinary: RobotModel, threads: int) -> None:
        """ordinary: the same robot without specialized code."""
        self.model, self.ordinary, self.threads = model, ordinary, threads
        self.batch = {name: Calls(self, name) for name in (*FUNCTIONS, *FAMILIES)}
        model._ways.extend([None] * len(NUMBERS))
        for name in FUNCTIONS:
            self.put(name, self.batch[name].first_state)
        for name in FAMILIES:
            self.put(name, self.batch[name].one_state())

    def put(self, name: str, single: Callable[..., Any]) -> None:
        """Register the calls of a function: `single` for one state, then that of batches, then the ordinary one."""
        self.model._ways[NUMBERS[name]] = single, self.batch[name], partial(DOORS[name], self.ordinary)

    def is_kept(self, name: str) -> bool:
        """Whether the code of this function, without parameters, for batches, is loaded or on disk."""
        return is_kept(self.batch[name]._key(()))

    def code(self, name: str) -> Code | None:
        """The code for batches of a function without parameters; None if it has none."""
        batch = self.batch[name].batch(())
        return None if batch is None else batch.code

    def address(self, name: str) -> int:
        """Of the code for one state of a function without parameters (`one_state.printed_for_one`); 0 if none."""
        return self.batch[name].address()

    def make(self, text: str) -> None:
        """Make or load the code of `"name"` or `"name:parameters"`, for one state and for batches, from one program."""
        name, parameters, function = function_of(self.model, text)
        calls = self.batch[name]
        program = cache(partial(calls.program, parameters, function))
        calls.make_single(parameters, function, program)
        calls.make_batch(parameters, function, program)


class _Batch:
    """The code of one function for many states and how it is called."""

    def __init__(self, model: RobotModel, key: str, function: Function, program: Callable[[], Program]) -> None:
        self._shapes = function.shapes(model)
        self._sizes = [int(np.prod(shape)) for shape in self._shapes]
        self._result = function.result
        self.code = code_of(key, lambda: printed(program()))
        self.operations = self.code.operations

    def __call__(self, arrays: Sequence[Array], threads: int, ordinary: Any) -> Any:
        """The result, with `ordinary` for states outside the code's domain; None if it rejects one."""
        # kernels require writable arrays
        contiguous = [x if x.flags.c_contiguous and x.flags.behaved else np.require(x, requirements=["C", "A", "W"])
                 for x in arrays]
        out, good = many_states(self.code, contiguous, self._sizes, threads)
        if not good.all():
            rejected = np.flatnonzero(~good)
            try:
                self._put(out, rejected, ordinary([x[rejected] for x in contiguous]))
            except SingularMassMatrix as error:
                self._put(out, rejected, error.result)
                raise error.of_rows(rejected, self._made(out)) from None
            except RbdError:    # raised again, with the state's number, by the call of the whole batch
                return None
        return self._made(out)

    def _put(self, out: Array, rows: NDArray[np.int64], result: Any) -> None:
        parts = result if isinstance(result, tuple) else (result,)
        out[rows] = np.concatenate([np.reshape(part, (len(part), -1)) for part in parts], axis=1)

    def _made(self, out: Array) -> Any:
        results, begin = [], 0
        for size, shape in zip(self._sizes, self._shapes, strict=True):
            results.append(out[:, begin:begin + size].reshape(len(out), *shape))
            begin += size
        return self._result(*results)


class Calls:
    """Calls of one function: its result, or None if the ordinary kernels must compute it."""

    def __init__(self, own: OwnCode, name: str) -> None:
        self._own, self._name, self._family = own, name, FAMILIES.get(name)
        self._singles: dict[Parameters, Callable[..., Any]] = {}
        self._addresses: dict[Parameters, int] = {}
        self._batches: dict[Parameters, _Batch | None] = {}
        self._said: set[str] = set()
        self.made: dict[Parameters, int | str] = {}    # operations by parameters; or why there is no code

    def first_state(self, *inputs: Any) -> Any:
        """The first call of one state, of a function without parameters."""
        return self._first_state(inputs, ())

    def one_state(self) -> Callable[..., Any]:
        """The call for one state of a function with parameters."""
        singles, of_call, model = self._singles, FAMILIES[self._name].of_call, self._own.model

        def call(*inputs: Any) -> Any:
            try:
                arrays, parameters = of_call(model, *inputs)
                code = singles.get(parameters)
            except REFUSED:    # invalid parameters
                return None
            return self._first_state(arrays, parameters) if code is None else code(*arrays)

        return call

    def _first_state(self, arrays: tuple[Any, ...], parameters: Parameters) -> Any:
        if getattr(arrays[0], "ndim", 0) != 1:
            return None
        try:
            function = self._function(parameters)
        except RbdError:    # invalid parameters
            return None
        return self.make_single(parameters, function, partial(self.program, parameters, function))(*arrays)

    def __call__(self, *inputs: Any) -> Any:
        """A call of a batch."""
        if getattr(inputs[0], "ndim", 0) != 2:
            return None
        parted = self._parted(inputs)
        if parted is None or not self._many(parted[0]):
            return None
        arrays, parameters = parted
        try:
            code = self.batch(parameters)
        except RbdError:    # invalid parameters
            return None
        ordinary = self._own.ordinary
        return None if code is None else code(arrays, self._own.threads, lambda x: (
            PUBLIC[self._name](ordinary, *x) if self._family is None else self._family.call(ordinary, x, parameters)))

    def batch(self, parameters: Parameters) -> _Batch | None:
        """The code for batches, made or loaded if necessary, as by `make_batch`. Raises `RbdError` for invalid
        parameters.
        """
        if parameters in self._batches:
            return self._batches[parameters]
        function = self._function(parameters)
        return self.make_batch(parameters, function, partial(self.program, parameters, function))

    def address(self) -> int:
        """Of the code for one state, made or loaded if necessary, without parameters; 0 if none."""
        if () not in self._singles:
            function = self._function(())
            self.make_single((), function, partial(self.program, (), function))
        return self._addresses.get((), 0)

    def _parted(self, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], Parameters] | None:
        """Arrays and parameters of a call; None if invalid."""
        if self._family is None:
            return inputs, ()
        try:
            arrays, parameters = self._family.of_call(self._own.model, *inputs)
            hash(parameters)
        except REFUSED:
            return None
        return arrays, parameters

    def _function(self, parameters: Parameters) -> Function:
        family = self._family
        return FUNCTIONS[self._name] if family is None else family.function(self._own.model, parameters)

    def _many(self, arrays: Sequence[Any]) -> bool:
        """Whether the inputs are a batch of states of the model, of equal size and supported types."""
        columns = [self._own.model.nq, *[self._own.model.nv] * (len(arrays) - 1)]
        return all(isinstance(x, np.ndarray) and x.dtype == np.float64 and x.shape == (len(arrays[0]), size)
                   for x, size in zip(arrays, columns, strict=True))

    def program(self, parameters: Parameters, function: Function) -> Program:
        """The program of the code."""
        model, name = self._own.model, label(self._own.model, self._name, parameters)
        program = recorded(model, name, function)
        if program.operations > SLOW and sys.stderr is not None and sys.stderr.isatty():
            print(f"rbd_ros: making code of {name} for '{model.name}' (once): {program.operations:,} operations …",
                  file=sys.stderr, flush=True)
        return program

    def make_single(self, parameters: Parameters, function: Function, program: Callable[[], Program]
                    ) -> Callable[..., Any]:
        """Make or load the code for one state, a function of its arrays; if there is no program, as `make_batch`."""
        model = self._own.model

        def short() -> Program:
            made = program()
            if made.operations > LONGEST:
                raise NoProgram(f"{label(model, self._name, parameters)}: {made.operations:,} operations, for one "
                                f"state more than {LONGEST:,}")
            return made

        sizes = [model.nq if kind == "q" else model.nv for kind in function.inputs]
        call: Callable[..., Any] = _nothing
        if len(self._singles) < VARIANTS:
            try:
                call, self._addresses[parameters], self.made[parameters] = way_of(
                    f"{self._key(parameters)} single", short, sizes, function.shapes(model), function.result)
            except NoProgram as reason:
                self._without(parameters, str(reason))
            self._singles[parameters] = call
        if self._family is None:
            self._own.put(self._name, call)
        return call

    def make_batch(self, parameters: Parameters, function: Function, program: Callable[[], Program]
                   ) -> _Batch | None:
        """Make or load the code for batches. If there is no program, warn once, and return None: the ordinary kernels
        compute the function.
        """
        if len(self._batches) >= VARIANTS:
            return None
        code = None
        try:
            code = _Batch(self._own.model, self._key(parameters), function, program)
            self.made[parameters] = code.operations
        except NoProgram as reason:
            self._without(parameters, str(reason))
        self._batches[parameters] = code
        return code

    def _key(self, parameters: Parameters) -> str:
        """Key of all dependencies of the code. Parameters are included as values, because their text may be ambiguous
        (a joint named "a,b"), with the names of the links to which they refer.
        """
        model = self._own.model
        names = model.body_names if self._family else ()
        return f"{key_of_core()} {self._name} {parameters} {names} {model._block.tobytes().hex()}"

    def _without(self, parameters: Parameters, reason: str) -> None:
        self.made.setdefault(parameters, reason)
        if self._own.model.nv and reason not in self._said:
            self._said.add(reason)
            warn(f"model '{self._own.model.name}': {reason}; the ordinary kernels compute it")


def _nothing(*_: Any) -> None:
    """The call of functions without code for one state."""

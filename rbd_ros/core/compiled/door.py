"""`door`: direct call of compiled code by a public function for one state.

    _door = door("mass_matrix", Call(mass_matrix_entry, "B q W >", lambda model: [(model.nv, model.nv)]))

    def mass_matrix(model, q):
        if (H := _door(model, q)) is not None:
            return H
        …    # lists, batches, and errors

A door takes unvalidated inputs. It returns None unless each is a float64 array of one state and the code accepts it:
checks of types and shapes in Python would take several times as long as inverse dynamics. Its *way*, the callable for
one model, is stored in `model._ways` by the number of the door: a call of the ordinary entry, or for a specialized
model a tuple of calls, each tried if the one before returns None. Doors and ways are objects of the extension `_door`
(C); without it, calls for one state take some microseconds longer.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .entry import EXTENSION, UNSUITED, Entry

Shape = tuple[int, ...]
Way = Callable[..., Any]       # (*inputs) → result or None
DOORS: dict[str, Way] = {}     # by name of the public function
NUMBERS: dict[str, int] = {}


class Call:
    """How an entry computes the result of a public function for one state.

    arguments: of the entry, in order: `B` the model's block, `W` its scratch memory, `0` zeros (nv,), `=3` a number,
    `>` an output, the name of a constant, or the name of an input: (nq,) if it begins with q, a mask (nv,) if it is
    `prescribed`, else (nv,). shapes(model): of the outputs; result: class of the tuple of several outputs. part: offset
    and shape, () for a number, of the result in the only output. constants: name → function of the model that returns
    an array.
    """

    def __init__(self, entry: Entry, arguments: str, shapes: Callable[[Any], Sequence[Shape]], result: Any = None, *,
                 part: tuple[int, Shape] | None = None, constants: Mapping[str, Callable[[Any], Any]] | None = None
                 ) -> None:
        self._entry, self._shapes, self._result, self._part = entry, shapes, result, part
        self._constants = {"B": lambda model: model._block, "W": lambda model: model._work,
                           "0": lambda model: model._zeros, **(constants or {})}
        self._arguments = [(name, axes) for name, (_, axes, _) in zip(arguments.split(), entry.arguments, strict=True)]
        self._inputs = list(dict.fromkeys(name for name, _ in self._arguments
                                          if name not in self._constants and name[0] not in ">="))
        self._good = 0 if entry.result == "int64" else -1    # result for accepted states; -1: any but 0

    def way(self, model: Any) -> Way:
        """The callable for a model."""
        return (self._in_c if EXTENSION else self._in_python)(model)

    def _kinds(self, model: Any) -> list[tuple[str, int]]:
        """Type code of `_door` and length of each input."""
        return [("?" if name == "prescribed" else "d", model.nq if name[0] == "q" else model.nv)
                for name in self._inputs]

    def _in_c(self, model: Any) -> Way:
        words: list[int] = [0]
        places: dict[str, list[int]] = {name: [] for name in self._inputs}
        kinds = dict(zip(self._inputs, self._kinds(model), strict=True))
        shapes = iter(self._shapes(model))
        outputs: list[tuple[int, Shape]] = []
        owners: list[Any] = [self._entry]
        part, part_shape = self._part or (0, None)
        for name, axes in self._arguments:
            place = len(words)
            if name in places:
                places[name].append(place)
                words += [0, kinds[name][1]]
            elif name[0] == "=":
                words += [int(name[1:])]
            elif name == ">":
                shape = next(shapes)
                words += [0, *_with_axes(shape, axes)]
                if self._part is None:
                    outputs.append((place, shape))
                else:
                    owners.append(np.zeros(shape))
                    words[place] = owners[-1].ctypes.data
                    part = words[place] + 8 * part
            else:
                owners.append(self._constants[name](model))
                words += [owners[-1].ctypes.data, *owners[-1].shape]
        inputs = tuple((*[*places[name], 0][:2], *kinds[name]) for name in self._inputs)
        return EXTENSION.Way(self._entry.address, tuple(words), inputs, tuple(outputs),    # type: ignore[no-any-return]
                             self._good, self._result, tuple(owners), part, part_shape)

    def _in_python(self, model: Any) -> Way:
        kinds = [(bool if kind == "?" else np.float64, (length,)) for kind, length in self._kinds(model)]

        def way(*inputs: Any) -> Any:
            if len(inputs) != len(kinds) or not all(
                    type(x) is np.ndarray and x.dtype == kind and x.shape == shape and x.flags.carray
                    for x, (kind, shape) in zip(inputs, kinds, strict=True)):
                return None
            named = dict(zip(self._inputs, inputs, strict=True))
            outputs = [np.empty(shape) for shape in self._shapes(model)]
            left = iter(outputs)
            arguments: list[Any] = []
            for name, axes in self._arguments:
                if name == ">":
                    output = next(left)
                    arguments.append(output.reshape(_with_axes(output.shape, axes)))
                elif name[0] == "=":
                    arguments.append(int(name[1:]))
                else:
                    arguments.append(named[name] if name in named else self._constants[name](model))
            answer = self._entry.call(*arguments)
            if not answer if self._good else answer != 0:
                return None
            if self._part is not None:
                first, shape = self._part
                flat = outputs[0].reshape(-1)[first:]
                return flat[:int(np.prod(shape))].reshape(shape) if shape else flat[0]
            return outputs[0] if self._result is None else tuple.__new__(self._result, outputs)

        return way


def _with_axes(shape: Shape, axes: int) -> Shape:
    """The shape for an entry's argument of `axes` axes: unchanged, flat, or with a leading axis of one state."""
    if axes == len(shape):
        return shape
    return (int(np.prod(shape)),) if axes == 1 else (1, *shape)


def door(name: str, of_model: Call | Callable[[Any], Way | Mapping[str, Any]]) -> Way:
    """A callable (model, *inputs) → result of the public function `name` for one state, or None.

    of_model: a `Call`, or a function that returns the callable for a model; where names follow the first input, a
    dictionary of callables by name, or of such dictionaries.
    """
    number = NUMBERS.setdefault(name, len(NUMBERS))
    make = of_model.way if isinstance(of_model, Call) else of_model

    def made(model: Any) -> Way | Mapping[str, Any]:
        ways = model._ways
        ways.extend([None] * (len(NUMBERS) - len(ways)))
        ways[number] = way = make(model)
        return way

    def call(model: Any, *inputs: Any) -> Any:
        ways = getattr(model, "_ways", None)
        if not isinstance(ways, list):    # not a model
            return None
        way = ways[number] if number < len(ways) else None
        if way is None:
            way = made(model)
        while isinstance(way, dict):
            try:
                way, inputs = way[inputs[1]], (inputs[0], *inputs[2:])
            except (LookupError, TypeError):    # too few names, unknown ones, or what cannot be a key
                return None
        for candidate in way if isinstance(way, tuple) else (way,):
            if (result := candidate(*inputs)) is not None:
                return result
        return None

    DOORS[name] = EXTENSION.Door(number, made) if EXTENSION else call
    return DOORS[name]


def where_suited(call: Callable[..., Any], *inputs: Any) -> Any:
    """Result of `call` for unvalidated inputs; None if unsuited."""
    try:
        return call(*inputs)
    except UNSUITED:
        return None

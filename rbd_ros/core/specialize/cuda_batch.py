"""A robot's functions for many states on a CUDA device: arrays of CuPy, PyTorch, JAX, … by DLPack."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import RbdError, shown, unknown_name
from ..model.robot_model import RobotModel
from .c_source import c_source, wanted_of
from .cuda_source import BLOCK, OPTIONS
from .model_inputs import model_inputs

DEVICES = (2, 13)    # of DLPack: CUDA, CUDA managed
DTYPES = {"double": "float64", "float": "float32"}


class _Layout(NamedTuple):
    """Number of states of an array, None if all states share it; the array and its strides, of states and entries."""

    states: int | None
    arguments: tuple[Any, np.int64, np.int64]


class CudaBatch:
    """A function of a robot for many states on a CUDA device, made by `cuda_batch`.

    Called with arrays in device memory in the order of `arguments`, or by these names: (N, n) each, or (n, N) with
    `axis` −1, any strides; a vector (n,) holds for all states. Results are arrays of the first one's library, (N, …) or
    (…, N), as the function with this name returns them, NaN for states with a singular mass matrix. The kernel runs on
    CuPy's current stream; libraries order their streams before and after it by DLPack, so nothing waits for the device.
    Raises `RbdError` for arrays of other devices, types or shapes.
    """

    def __init__(self, model: RobotModel, function: str, precision: str, axis: int, inertias: Sequence[str],
                 payload: str, gravity: bool) -> None:
        self.source = c_source(model, [function], "robot", precision, target="cuda", inertias=inertias,
                               payload=payload, gravity=gravity)
        if axis not in (0, -1):
            raise RbdError(f"cuda_batch: axis of the states is {shown(axis)}, expected 0, (N, n), or -1, (n, N)")
        wanted = wanted_of(model, function)
        self.function, self.axis, self.precision = wanted.label, axis, precision
        self._sizes = wanted.inputs(model, model_inputs(model, inertias, payload, gravity))
        self._shapes, self._result = wanted.function.shapes(model), wanted.function.result
        self._running: list[tuple[Any, Any]] = []
        self._cupy = _cupy()
        self._kernel = self._cupy.RawKernel(self.source, f"robot_{wanted.name}", OPTIONS)
        try:
            self._kernel.compile()
        except Exception as error:    # of many types: no NVRTC, its messages, the driver's
            raise RbdError(f"cuda_batch: {self.function} does not compile: {error}") from error

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments."""
        return tuple(self._sizes)

    def __repr__(self) -> str:
        return f"CudaBatch {self.function}({', '.join(self._sizes)}), {self.precision}, states on axis {self.axis}"

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        given = self._given(arrays, named)
        device = self._device(given)
        with self._cupy.cuda.Device(device):
            layouts = {name: self._layout(name, array) for name, array in given.items()}
            states = self._states(layouts)
            results = [self._empty(states, shape) for shape in self._shapes]
            if states:
                outputs = [result.reshape((states, -1) if self.axis == 0 else (-1, states)) for result in results]
                self._kernel((-(-states // BLOCK),), (BLOCK,), (np.int64(states), *(
                    x for name in given for x in layouts[name].arguments), *(
                    x for output in outputs for x in self._address(output))))
                self._hold(layouts)
            return self._result(*(_of_library(next(iter(given.values())), result) for result in results))

    def _given(self, arrays: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name, in order."""
        names = ", ".join(self._sizes)
        if len(arrays) > len(self._sizes):
            raise RbdError(f"{self.function}: expected {len(self._sizes)} arrays ({names}), got {len(arrays)}")
        given = dict(zip(self._sizes, arrays, strict=False))
        for name in named:
            if name not in self._sizes:
                raise unknown_name("argument", name, self._sizes)
            if name in given:
                raise RbdError(f"{self.function}: {name} is given twice")
        given |= named
        if missing := [name for name in self._sizes if name not in given]:
            raise RbdError(f"{self.function}: expected {names}; missing: {', '.join(missing)}")
        return {name: given[name] for name in self._sizes}

    def _device(self, given: dict[str, Any]) -> int:
        """The device of all arrays."""
        found = {}
        for name, array in given.items():
            place = getattr(array, "__dlpack_device__", None)
            if place is None:
                raise RbdError(f"{name}: expected an array on a CUDA device (CuPy, PyTorch, JAX: DLPack), got "
                               f"{type(array).__name__}")
            kind, found[name] = place()
            if kind not in DEVICES:
                raise RbdError(f"{name}: expected an array on a CUDA device, got {type(array).__name__} in other "
                               f"memory (DLPack device {int(kind)})")
        if len(set(found.values())) > 1:
            raise RbdError(f"{self.function}: expected arrays on one device, got "
                           f"{', '.join(f'{name} on {device}' for name, device in found.items())}")
        return int(next(iter(found.values())))

    def _layout(self, name: str, given: Any) -> _Layout:
        size, dtype = self._sizes[name], DTYPES[self.precision]
        try:
            array = self._cupy.from_dlpack(given)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:    # as of tensors with gradients
            raise RbdError(f"{name}: {type(given).__name__} does not export its memory: {error}") from error
        if str(array.dtype) != dtype:
            raise RbdError(f"{name}: expected {dtype}, of precision '{self.precision}', got {array.dtype}")
        if array.shape == (size,):
            return _Layout(None, (array, np.int64(0), np.int64(array.strides[0] // array.itemsize)))
        if array.ndim != 2 or array.shape[-1 - self.axis] != size:
            raise RbdError(f"{name}: expected shape {f'(N, {size})' if self.axis == 0 else f'({size}, N)'}, or "
                           f"({size},) for all states, got {array.shape}")
        return _Layout(array.shape[self.axis], self._address(array))

    def _address(self, array: Any) -> tuple[Any, np.int64, np.int64]:
        """The array, and its strides between states and between entries."""
        state, entry = array.strides[self.axis], array.strides[-1 - self.axis]
        return array, np.int64(state // array.itemsize), np.int64(entry // array.itemsize)

    def _states(self, layouts: dict[str, _Layout]) -> int:
        counts = {name: layout.states for name, layout in layouts.items() if layout.states is not None}
        if not counts:
            raise RbdError(f"{self.function}: one of {', '.join(layouts)} must be an array of states")
        if len(set(counts.values())) > 1:
            raise RbdError(f"{self.function}: numbers of states differ: "
                           f"{', '.join(f'{count} of {name}' for name, count in counts.items())}")
        return next(iter(counts.values()))

    def _hold(self, layouts: dict[str, _Layout]) -> None:
        """Keep arguments in memory until the kernel has read them: their libraries do not know of it."""
        self._running = [(event, held) for event, held in self._running if not event.done]
        self._running.append((self._cupy.cuda.get_current_stream().record(), layouts))

    def _empty(self, states: int, shape: tuple[int, ...]) -> Any:
        return self._cupy.empty((states, *shape) if self.axis == 0 else (*shape, states), DTYPES[self.precision])


def cuda_batch(model: RobotModel, function: str, *, precision: str = "double", axis: int = 0,
               inertias: Sequence[str] = (), payload: str = "", gravity: bool = False) -> CudaBatch:
    """A function of a robot for many states on a CUDA device: `cuda_batch(model, "inverse_dynamics")(q, v, a)`.

    function: a name of `c_source`, with parameters for some ("jacobian:tool0:world"). precision: "double" or "float",
    of arrays and computation. axis: of the states, 0 for arrays (N, n), −1 for (n, N), which GPUs read fastest.
    inertias, payload, gravity: further arguments as of `c_source`, one vector for all states or one per state. The
    kernel is compiled now, for the current device, by CuPy, which keeps it on disk. Raises `RbdError` without CuPy or a
    CUDA device, and as `c_source`.

        >>> import cupy
        >>> dynamics = rbd.cuda_batch(rbd.sample("two_link"), "forward_dynamics", precision="float", axis=-1)
        >>> dynamics(*cupy.zeros((3, 2, 1000), dtype="float32")).shape    # or of PyTorch, or JAX
        (2, 1000)
    """
    return CudaBatch(model, function, precision, axis, inertias, payload, gravity)


def _cupy() -> Any:
    try:
        import cupy
    except ImportError:
        raise RbdError("cuda_batch needs the package cupy (`pip install cupy-cuda12x`)") from None
    try:
        devices, reason = cupy.cuda.runtime.getDeviceCount(), ""
    except RuntimeError as error:
        devices, reason = 0, f": {error}"
    if not devices:
        raise RbdError(f"cuda_batch: there is no CUDA device{reason}")
    return cupy


def _of_library(like: Any, result: Any) -> Any:
    """The result as an array of the library of `like`, if that imports DLPack."""
    library = sys.modules.get(type(like).__module__.partition(".")[0])
    if hasattr(like, "__array_namespace__"):
        library = like.__array_namespace__()
    convert = getattr(library, "from_dlpack", None)
    return result if convert is None or type(like) is type(result) else convert(result)

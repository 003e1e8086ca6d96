"""Validation of states for all public functions: shapes, finiteness, names, single or batch."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..compiled.entry import entry, quick_entry
from ..errors import BeyondNumbers, RbdError, unknown_name
from ..lie.spatial import add, cross, rotate
from . import block
from .coordinates import Joint
from .inertia import Array, numbers


class Model(Protocol):
    """The attributes of `RobotModel` that the checks use."""

    @property
    def name(self) -> str: ...
    @property
    def nq(self) -> int: ...
    @property
    def nv(self) -> int: ...
    @property
    def joints(self) -> Sequence[Joint]: ...
    @property
    def joint_names(self) -> tuple[str, ...]: ...
    @property
    def body_names(self) -> tuple[str, ...]: ...
    @property
    def _block(self) -> Array: ...
    @property
    def _quaternions(self) -> Sequence[int]: ...
    @property
    def _body_by_name(self) -> Mapping[str, int]: ...
    def body_index(self, name: str) -> int: ...


@dataclass(frozen=True)
class States:
    """Inputs by name, positions first: C-contiguous float64 arrays of one batch size (None: a single state)."""

    model: Model
    names: tuple[str, ...]
    arrays: tuple[Array, ...]
    positions: int    # number of positions among `arrays`
    batch: int | None

    @property
    def count(self) -> int:
        return 1 if self.batch is None else self.batch

    @property
    def flat(self) -> tuple[Array, ...]:
        return tuple(array.reshape(-1) for array in self.arrays)

    def empty(self, *shape: int) -> Array:
        """An uninitialised result, with the batch axis for a batch."""
        return np.empty(shape if self.batch is None else (self.batch, *shape))

    def check_values(self) -> None:
        """Raise `RbdError` naming the first non-finite number or unnormalised quaternion."""
        for i, (name, array) in enumerate(zip(self.names, self.arrays, strict=True)):
            _check_values(self.model, name, array, i < self.positions)

    def refuse(self, **results: Array) -> None:
        """Raise `RbdError` after a kernel refused its inputs: for an invalid number, or a result that is not finite."""
        self.check_values()
        self.finite(**results)

    def finite(self, **results: Array) -> tuple[Array, ...]:
        """The results; `RbdError` naming the first that is not finite, and its state in a batch."""
        for name, array in results.items():
            if not finite_entry.call(np.ascontiguousarray(array).reshape(-1)):
                raise self._beyond(name, array)
        return tuple(results.values())

    def beyond_numbers(self) -> RbdError | None:
        """Error for inputs so large that results overflow; None otherwise."""
        largest = max((np.abs(array).max(initial=0.0) for array in self.arrays), default=0.0)
        return self._beyond("result", np.array(np.nan)) if largest > REASONABLE else None

    def _beyond(self, name: str, array: Array) -> RbdError:
        position = np.argwhere(~np.isfinite(array))[0].tolist()
        single = self.batch is None or not position
        inputs = self.arrays if single else tuple(values[position[0]] for values in self.arrays)
        sizes = ", ".join(f"{input_name} up to {np.abs(values).max(initial=0.0):.3g}"
                          for input_name, values in zip(self.names, inputs, strict=True))
        index = position if single else position[1:]
        where = f"{name}[{', '.join(map(str, index))}]" if index else name
        if len(index) == 1 and array.shape[-1] == self.model.nv:
            where += f" of joint '{_owner(self.model, index[0], False)}'"
        suffix = "" if single else f" of state {position[0]}"
        if max((np.abs(values).max(initial=0.0) for values in inputs), default=0.0) > MODERATE:
            return BeyondNumbers(f"{where}{suffix} would not be finite: the state is too large, beyond what floating "
                                 f"point numbers hold ({sizes})")
        return BeyondNumbers(f"{where}{suffix} would not be finite, though the state is not large ({sizes}): external "
                             "wrenches or numbers of the model are, or joint_kinds.py lacks a branch for a kind")


REASONABLE = 1e50    # of any input; squares of products of such numbers overflow
MODERATE = 1e10    # of all inputs: a robot's sums and products of such numbers do not overflow


_NONE: Mapping[str, Any] = {}


def states(model: Model, positions: Mapping[str, Any] = _NONE, rates: Mapping[str, Any] = _NONE) -> States:
    """Checked inputs by name: positions have nq numbers, rates (velocities, accelerations, efforts, …) nv.

    A single state in a batch is repeated. Raises `RbdError` naming the input, what it was and what was expected.
    """
    inputs = shaped(model, positions, rates)
    inputs.check_values()
    return inputs


def numbered(higher: Sequence[Any]) -> dict[str, Any]:
    """Names of the arguments `*higher`, for messages."""
    return {f"higher[{i}]": x for i, x in enumerate(higher)}


def not_a_model(model: object) -> RbdError:
    """Error for an argument that is not a `RobotModel`."""
    return RbdError(f"model: expected a RobotModel, as load_urdf returns it, got {type(model).__name__}")


def shaped(model: Model, positions: Mapping[str, Any] = _NONE, rates: Mapping[str, Any] = _NONE) -> States:
    """As `states`, without the check of values, for kernels that do it."""
    if not hasattr(model, "_block"):
        raise not_a_model(model)
    arrays = {name: _shaped(model, name, value, True) for name, value in positions.items()}
    arrays |= {name: _shaped(model, name, value, False) for name, value in rates.items()}
    sizes = {name: len(array) for name, array in arrays.items() if array.ndim == 2}
    if not sizes:
        return States(model, tuple(arrays), tuple(arrays.values()), len(positions), None)
    if len(set(sizes.values())) > 1:
        raise RbdError("batches of different length: " + ", ".join(f"{name} has {n}" for name, n in sizes.items()))
    count = next(iter(sizes.values()))
    full = (array if array.ndim == 2 else np.array(np.broadcast_to(array, (count, len(array))), order="C")
            for array in arrays.values())
    return States(model, tuple(arrays), tuple(full), len(positions), count)


def _shaped(model: Model, name: str, value: Any, position: bool) -> Array:
    """One input as a contiguous float64 array (size,) or (N, size)."""
    size = model.nq if position else model.nv
    array = real(value, name, f"({size},) or (N, {size})")
    if array.ndim not in (1, 2) or array.shape[-1] != size:
        raise RbdError(f"{name} has shape {np.shape(value)}, expected ({size},) or (N, {size}): model '{model.name}' "
                       f"has {size} {'position' if position else 'velocity'} coordinates, joints "
                       f"{_shown(model.joint_names)}")
    return array


def real(value: Any, name: str, expected: str) -> Array:
    """Real numbers as a contiguous float64 array; `RbdError` names the `expected` shape."""
    try:
        array = np.ascontiguousarray(numbers(value))
        return array if array.flags.behaved else array.copy()    # kernels are compiled for writable arrays
    except (TypeError, ValueError, OverflowError) as error:
        raise RbdError(f"{name}: expected real numbers of shape {expected}, got {type(value).__name__} "
                       f"({error})") from None


def _check_values(model: Model, name: str, array: Array, position: bool) -> None:
    is_finite = np.isfinite(array)
    if not is_finite.all():
        index = np.argwhere(~is_finite)[0]
        where = f"{name}[{', '.join(map(str, index))}]"
        raise RbdError(f"{where} is {array[tuple(index)]} (joint '{_owner(model, int(index[-1]), position)}'): "
                       "inputs must be finite")
    if position:
        for start in model._quaternions:
            norms = np.linalg.norm(array[..., start:start + 4], axis=-1).reshape(-1)
            if norms.size and np.abs(norms - 1.0).max() > 1e-2:
                raise RbdError(f"{name}[{start}:{start + 4}] (joint '{_owner(model, start, True)}') is not a unit "
                               f"quaternion x, y, z, w: its norm is {norms[np.argmax(np.abs(norms - 1.0))]:g}")


def _owner(model: Model, index: int, position: bool) -> str:
    for joint in model.joints:
        start, count = (joint.idx_q, joint.nq) if position else (joint.idx_v, joint.nv)
        if start <= index < start + count:
            return joint.name
    return "?"


def _shown(names: tuple[str, ...]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def node_wrenches(model: Model, wrenches: Any, batch: int | None) -> Array:
    """External wrenches `{body: (6,)}` or (nb, 6) (a batch adds a leading axis) in URDF link frames, angular first,
    summed per node about the node's origin: flat, N·nodes·6, or empty without wrenches.
    """
    if wrenches is None:
        return np.empty(0)
    count = 1 if batch is None else batch
    nb = len(model.body_names)
    if isinstance(wrenches, Mapping):
        full = np.zeros((count, nb, 6))
        for name, value in wrenches.items():
            if name not in model._body_by_name:
                raise unknown_name("body in external_wrenches", name, model.body_names)
            array = real(value, f"external_wrenches['{name}']", "(6,)")
            if array.shape not in ((6,), (count, 6)):
                raise RbdError(f"external_wrenches['{name}'] has shape {array.shape}, expected (6,)"
                               + ("" if batch is None else f" or ({count}, 6)") + ": moment, then force")
            full[:, model.body_index(name)] += array
    else:
        array = real(wrenches, "external_wrenches", f"({nb}, 6)")
        if array.shape not in ((nb, 6), (count, nb, 6)):
            raise RbdError(f"external_wrenches has shape {array.shape}, expected {{body: (6,)}} or ({nb}, 6)"
                           + ("" if batch is None else f" or ({count}, {nb}, 6)"))
        full = np.array(np.broadcast_to(array, (count, nb, 6)))
    if not np.isfinite(full).all():
        raise RbdError(f"external_wrenches: wrench on body '{model.body_names[np.argwhere(~np.isfinite(full))[0][1]]}' "
                       "is not finite")
    out = np.zeros(count * int(model._block[block.NODES]) * 6)
    gather_wrenches.call(model._block, np.ascontiguousarray(full).reshape(-1), out)
    return out


@quick_entry("boolean(float64[::1])")
def finite_entry(x):
    """Whether all numbers are finite; ten times as fast as `np.isfinite(x).all()`."""
    return block.all_finite(x)


@entry("void(float64[::1], float64[::1], float64[::1])")
def gather_wrenches(B, wrenches, out):
    """Sum link wrenches into their nodes: `F_node = Ad*_{T⁻¹} F_link`."""
    links = int(B[block.LINKS])
    nodes = int(B[block.NODES])
    start = int(B[block.LINK_START])
    for s in range(wrenches.shape[0] // (6 * links)):
        for i in range(links):
            o = start + block.LINK * i
            n = int(B[o + block.LINK_NODE])
            if n >= 0:
                R = block.matrix(B, o + block.LINK_ROTATION)
                p = block.vector(B, o + block.LINK_POSITION)
                k = 6 * (s * links + i)
                f = rotate(R, block.vector(wrenches, k + 3))
                j = 6 * (s * nodes + n)
                block.put_add(out, j, add(rotate(R, block.vector(wrenches, k)), cross(p, f)))
                block.put_add(out, j + 3, f)

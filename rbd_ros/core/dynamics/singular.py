"""Error for a singular mass matrix; for a batch it contains the results of the regular states."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BeyondNumbers, RbdError
from ..model.block import IV, node
from ..model.inertia import Array
from ..model.state import Model, States

INDEFINITE = -2    # status of kernels that factorise the whole mass matrix


class SingularMassMatrix(RbdError):
    """The mass matrix is singular: efforts do not determine accelerations.

    `joint`: name of the joint that moves no inertia; None if several together do. For a batch, else None: `row`, the
    first singular state; `rows` (k,), all states without a result; `result`, the function's result (of `Forward` the
    accelerations, of `…_directional` the result without `bodies`) with NaN in those rows.
    """

    def __init__(self, model: str, joint: str | None = None, row: int | None = None,
                 rows: NDArray[np.intp] | None = None, result: Any = None) -> None:
        self.model, self.joint, self.row, self.rows, self.result = model, joint, row, rows, result
        state = "" if row is None else f" in state {row}"
        super().__init__(
            f"model '{model}': the mass matrix is singular or indefinite{state}; a body without inertia or with a "
            "broken one moves freely (`rbd doctor` names it)" if joint is None else
            f"model '{model}': the mass matrix is singular at joint '{joint}'{state}: nothing behind it has inertia "
            "about or along its axis. Give its links an <inertial>, a rotor inertia, or lock the joint")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self.joint, self.row, self.rows, self.result)

    def of_rows(self, rows: NDArray[np.intp], result: Any) -> SingularMassMatrix:
        """This error of a part of a batch, for the whole batch: rows (n,) of the part, result of the batch."""
        if self.row is None or self.rows is None:
            raise TypeError("an error of one state")
        return SingularMassMatrix(self.model, self.joint, int(rows[self.row]), rows[self.rows], result)


def singular(model: Model, node_index: int) -> SingularMassMatrix:
    """Error for the node whose joint moves no inertia."""
    return singular_coordinate(model, int(model._block[node(node_index) + IV]))


def singular_coordinate(model: Model, index: int) -> SingularMassMatrix:
    """Error for the joint of a velocity coordinate."""
    name = next((joint.name for joint in model.joints if joint.idx_v <= index < joint.idx_v + joint.nv), "?")
    return SingularMassMatrix(model.name, name)


def solved(status: int, inputs: States, error: Callable[[Model, int], SingularMassMatrix] | None = None,
           rows: tuple[Any, Callable[[int], Any]] | None = None, **results: Array) -> None:
    """Raise `RbdError` unless the kernel's status is 0: singular node + 1, `INDEFINITE`, or −1 for invalid input.

    rows: arguments `result` and `row_result` of `by_rows`, for batches with singular states.
    """
    if status > 0 or status == INDEFINITE:
        if rows is not None and inputs.batch is not None:
            by_rows(inputs, *rows)
        raise inputs.beyond_numbers() or (SingularMassMatrix(inputs.model.name) if status == INDEFINITE else
                                          (error or singular)(inputs.model, status - 1))
    if status < 0:
        inputs.refuse(**results)


def by_rows(inputs: States, result: Any, row_result: Callable[[int], Any]) -> None:
    """Raise `SingularMassMatrix` if rows of a batch are singular, with all other rows of `result` filled.

    row_result(row): result of this state alone, or its error.
    """
    first: SingularMassMatrix | None = None
    number = 0
    failed = []
    parts = _parts(result)
    for row in range(inputs.count):
        try:
            row_parts = _parts(row_result(row))
        except (SingularMassMatrix, BeyondNumbers) as error:    # an overflow alone: the caller raises it for the batch
            if first is None and isinstance(error, SingularMassMatrix):
                first = error
                number = row
            failed.append(row)
            row_parts = (np.nan,) * len(parts)
        for part, x in zip(parts, row_parts, strict=True):
            part[row] = x
    if first is not None:
        raise SingularMassMatrix(first.model, first.joint, number, np.array(failed, dtype=np.intp), result) from None


def dense(inputs: States, result: Any, row_result: Callable[[int], Any], solve: Callable[[], Any]) -> Any:
    """Result of `solve`; raises by `by_rows` for a batch with a singular state."""
    try:
        return solve()
    except SingularMassMatrix:
        if inputs.batch is not None:
            by_rows(inputs, result, row_result)
        raise


def completed(compute: Callable[[], Any], complete: Callable[[Any], Any]) -> Any:
    """`complete(compute())`, applied also to the results in the error of a batch."""
    try:
        return complete(compute())
    except SingularMassMatrix as error:
        if error.result is not None:
            error.result = complete(error.result)
        raise


def _parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def wrenches_of(wrenches: Any, row: int) -> Any:
    """`external_wrenches` of one state of a batch."""
    if isinstance(wrenches, Mapping):
        return {name: np.asarray(value)[row] if np.ndim(value) == 2 else value for name, value in wrenches.items()}
    return np.asarray(wrenches)[row] if np.ndim(wrenches) == 3 else wrenches

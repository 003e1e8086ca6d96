"""Error for states with a singular mass matrix; for a batch it holds the results of all other states."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BeyondNumbers, RbdError
from ..model.block import IV, node
from ..model.inertia import Array
from ..model.state import Model, States

SINGULAR = 1e-14   # smallest pivot relative to its upper bound
INDEFINITE = -2    # of kernels that solve with the whole mass matrix


class SingularMassMatrix(RbdError):
    """The mass matrix is singular: no accelerations follow from the efforts.

    `joint`: the joint that moves no inertia; None if the matrix is singular by several. Of a batch, else None: `row`,
    the first such state; `rows` (k,), all states without a result; `result`, that of the function (of `Forward` its
    accelerations, of `…_directional` that without `bodies`), NaN in those rows and valid in all others.
    """

    def __init__(self, model: str, joint: str | None = None, row: int | None = None,
                 rows: NDArray[np.intp] | None = None, result: Any = None) -> None:
        self.model, self.joint, self.row, self.rows, self.result = model, joint, row, rows, result
        at = "" if row is None else f" in state {row}"
        super().__init__(
            f"model '{model}': the mass matrix is singular or indefinite{at}; a body without inertia or with a broken "
            "one moves freely (`rbd doctor` names it)" if joint is None else
            f"model '{model}': the mass matrix is singular at joint '{joint}'{at}: nothing behind it has inertia about "
            "or along its axis. Give its links an <inertial>, a rotor inertia, or lock the joint")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self.joint, self.row, self.rows, self.result)

    def of_rows(self, rows: NDArray[np.intp], result: Any) -> SingularMassMatrix:
        """The same error in terms of the whole batch, of which these rows were computed separately, with its result."""
        if self.row is None or self.rows is None:
            raise TypeError("an error of one state")
        return SingularMassMatrix(self.model, self.joint, int(rows[self.row]), rows[self.rows], result)


def singular(model: Model, node_index: int) -> SingularMassMatrix:
    """The error for a node whose joint moves no inertia."""
    return singular_coordinate(model, int(model._block[node(node_index) + IV]))


def singular_coordinate(model: Model, index: int) -> SingularMassMatrix:
    """The same for the joint of a velocity coordinate."""
    name = next((joint.name for joint in model.joints if joint.idx_v <= index < joint.idx_v + joint.nv), "?")
    return SingularMassMatrix(model.name, name)


def solved(status: int, inputs: States, error: Callable[[Model, int], SingularMassMatrix] | None = None,
           rows: tuple[Any, Callable[[int], Any]] | None = None, **results: Array) -> None:
    """Raise `RbdError` unless the kernel's status is 0: the singular node + 1, `INDEFINITE`, or −1 for invalid input.

    rows: the result, and a function for that of one row, for `by_rows`.
    """
    if status > 0 or status == INDEFINITE:
        if rows is not None and inputs.batch is not None:
            by_rows(inputs, *rows)
        raise inputs.beyond_numbers() or (SingularMassMatrix(inputs.model.name) if status == INDEFINITE else
                                         (error or singular)(inputs.model, status - 1))
    if status < 0:
        inputs.refuse(**results)


def by_rows(inputs: States, result: Any, of_row: Callable[[int], Any]) -> None:
    """Raise `SingularMassMatrix` for the singular rows of a batch, and fill all other rows of the result.

    of_row(row): returns the result of that state, or raises its error.
    """
    first: SingularMassMatrix | None = None
    number = 0
    without = []
    parts = _parts(result)
    for row in range(inputs.count):
        try:
            row_result = _parts(of_row(row))
        except (SingularMassMatrix, BeyondNumbers) as error:    # if only `BeyondNumbers`, the caller raises its own
            if first is None and isinstance(error, SingularMassMatrix):
                first = error
                number = row
            without.append(row)
            row_result = (np.nan,) * len(parts)
        for part, x in zip(parts, row_result, strict=True):
            part[row] = x
    if first is not None:
        raise SingularMassMatrix(first.model, first.joint, number, np.array(without, dtype=np.intp), result) from None


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

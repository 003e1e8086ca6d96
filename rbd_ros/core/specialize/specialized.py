"""`rbd.specialize`: a model with code generated for one robot."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..compiled.kernel import COMPILED
from ..errors import RbdError
from ..model.robot_model import RobotModel
from ..model.scalars import step_count
from ..model.state import not_a_model
from .families import label
from .own_code import OwnCode


class SpecializedModel(RobotModel):
    """A robot model with specialized code of `FUNCTIONS` and `FAMILIES`, compiled or loaded at the first call of a
    function with one state, and with a batch.
    """

    _specialized: OwnCode

    @property
    def threads(self) -> int:
        """Number of threads for batches."""
        return self._specialized.threads

    @property
    def functions(self) -> dict[str, int | str]:
        """Functions called so far, by name: number of operations, or the reason why the ordinary kernels run."""
        return {label(self, name, parameters): operations
                for name, calls in self._specialized.batch.items() for parameters, operations in calls.made.items()}

    def __repr__(self) -> str:
        made = self.functions
        return (f"SpecializedModel '{self.name}': nq {self.nq}, nv {self.nv}; code of its own for "
                f"{', '.join(name for name, made_of in made.items() if isinstance(made_of, int)) or 'nothing yet'}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.description, self.threads)

    def has_code(self, name: str) -> bool:
        """Whether the function has specialized code now, for any parameters."""
        return any(isinstance(operations, int) for operations in self._specialized.batch[name].made.values())


def specialize(model: RobotModel, functions: Sequence[str] = (), threads: int = 1) -> SpecializedModel:
    """A specialized copy of the model for every function in place of `model`. Calls with one state take about half the
    time, batches a fraction.

    functions: to compile now, names of `FUNCTIONS`, or of `FAMILIES` with parameters ("jacobian:tool0:world",
    "hybrid_dynamics:joint1,joint3", "inverse_dynamics_time_derivatives:3"); others are compiled at their first call, in
    0.1 to some s, and cached on disk. threads: for batches. The ordinary kernels compute, and raise errors, for states
    outside the code's domain (angles above 8e5 rad, nearly singular pivots) and functions without code (reason in
    `SpecializedModel.functions` and a warning). Raises `RbdError` without a model, for unknown names, and without
    numba.

        >>> model = rbd.sample("two_link")
        >>> rbd.specialize(model).name
        'two_link'
    """
    if not isinstance(model, RobotModel):
        raise not_a_model(model)
    if not COMPILED:
        raise RbdError("specialize needs numba, which is not installed or switched off")
    copy: SpecializedModel = object.__new__(SpecializedModel)
    for field in dataclasses.fields(RobotModel):    # access to `__dict__` would slow down attribute access
        object.__setattr__(copy, field.name, getattr(model, field.name))
    object.__setattr__(copy, "_work", copy._new_work())
    object.__setattr__(copy, "_ways", [])
    ordinary = model._specialized.ordinary if isinstance(model, SpecializedModel) else model
    object.__setattr__(copy, "_specialized", OwnCode(copy, ordinary, step_count(threads)))
    for function in [functions] if isinstance(functions, str) else functions:
        copy._specialized.make(function)
    return copy


def _again(description: Any, threads: int) -> SpecializedModel:
    return specialize(RobotModel.from_description(description), threads=threads)

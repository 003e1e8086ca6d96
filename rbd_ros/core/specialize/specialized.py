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
    """A robot model for which functions of `FUNCTIONS` and `FAMILIES` have code of their own, made or loaded at their
    first call with one state, and with a batch.
    """

    _specialized: OwnCode

    @property
    def threads(self) -> int:
        """Number of threads for batches."""
        return self._specialized.threads

    @property
    def functions(self) -> dict[str, int | str]:
        """By name, of the functions called so far: the operations of their code, or why the ordinary kernels run."""
        return {label(self, name, parameters): operations
                for name, calls in self._specialized.batch.items() for parameters, operations in calls.made.items()}

    def __repr__(self) -> str:
        made = self.functions
        return (f"SpecializedModel '{self.name}': nq {self.nq}, nv {self.nv}; code of its own for "
                f"{', '.join(name for name, made_of in made.items() if isinstance(made_of, int)) or 'nothing yet'}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.description, self.threads)

    def has_code(self, name: str) -> bool:
        """Whether the function has code of its own by now, for parameters of some kind."""
        return any(isinstance(operations, int) for operations in self._specialized.batch[name].made.values())


def specialize(model: RobotModel, functions: Sequence[str] = (), threads: int = 1) -> SpecializedModel:
    """A specialized copy of the model, accepted by every function in place of `model`. Calls of one state take about
    half the time, batches a fraction.

    functions: names of those whose code is made at once, of `FUNCTIONS`, or of `FAMILIES` with parameters
    ("jacobian:tool0:world", "hybrid_dynamics:joint1,joint3", "inverse_dynamics_time_derivatives:3"); the others' is
    made when they are first called, in 0.1 to some s, and kept on disk. threads: over which batches are spread. Where a
    state is beyond what the code is for (angles above 8e5, the neighbourhood of singular pivots), or a function has
    none (`SpecializedModel.functions` says why, as a warning does), the ordinary kernels compute, and errors are
    theirs. `RbdError` for what is no model, unknown names, and without numba.

        >>> model = rbd.sample("two_link")
        >>> rbd.specialize(model).name
        'two_link'
    """
    if not isinstance(model, RobotModel):
        raise not_a_model(model)
    if not COMPILED:
        raise RbdError("specialize needs numba, which is not installed or switched off")
    made: SpecializedModel = object.__new__(SpecializedModel)
    for field in dataclasses.fields(RobotModel):    # to touch `__dict__` would slow down each look at `model` (`kept`)
        object.__setattr__(made, field.name, getattr(model, field.name))
    object.__setattr__(made, "_work", made._new_work())
    object.__setattr__(made, "_ways", [])
    ordinary = model._specialized.ordinary if isinstance(model, SpecializedModel) else model
    object.__setattr__(made, "_specialized", OwnCode(made, ordinary, step_count(threads)))
    for each in [functions] if isinstance(functions, str) else functions:
        made._specialized.make(each)
    return made


def _again(description: Any, threads: int) -> SpecializedModel:
    return specialize(RobotModel.from_description(description), threads=threads)

"""Friction terms in use: parameters `friction.*`, common to all nodes with a model."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.dynamics.friction import Friction, joint_friction
from ..core.model.robot_model import RobotModel
from .parameters import Parameter, Table, per_joint

Array = NDArray[np.float64]


class FrictionTerms(NamedTuple):
    """Whether viscous and Coulomb friction are used, and the speed s (rad/s or m/s) of tanh(v/s), which replaces
    sign(v). Of nodes with `drive_friction_rows` also half the differences by direction, N m or N and N m s/rad or
    N s/m, and the share of the load, numbers or (nv,): parts of Coulomb and viscous friction, used where these are.
    """

    damping: bool = True
    coulomb: bool = True
    smoothing: float = 0.01
    asymmetry: Array | float = 0.0
    viscous_asymmetry: Array | float = 0.0
    load: Array | float = 0.0

    @staticmethod
    def from_values(values: Mapping[str, Any], order: NDArray[np.intp] | None = None) -> FrictionTerms:
        """Friction terms of validated parameters. order: of the joints, see `per_joint`, for `drive_friction_rows`."""
        terms = {name: values[f"friction.{name}"] for name in FrictionTerms._fields[:3]}
        if order is not None:
            terms |= {name: per_joint(f"friction.{name}", values[f"friction.{name}"], order)
                      for name in FrictionTerms._fields[3:]}
        return FrictionTerms(**terms)

    @property
    def plain(self) -> bool:
        """Whether no friction depends on direction or load."""
        return not (np.any(self.asymmetry) or np.any(self.viscous_asymmetry) or np.any(self.load))

    def of(self, model: RobotModel) -> RobotModel | None:
        """The model with only these friction terms; None if no friction remains."""
        damping, friction = model.damping * self.damping, model.friction * self.coulomb
        return model.with_(damping=damping, friction=friction) if damping.any() or friction.any() else None

    def law(self, model: RobotModel) -> Friction | None:
        """The law with only these friction terms, None if none remains; raises `RbdError` if friction would drive."""
        if not (self.damping or self.coulomb):
            return None
        rubbing = model.with_(damping=model.damping * self.damping, friction=model.friction * self.coulomb)
        law = joint_friction(rubbing, self.smoothing, asymmetry=self.asymmetry * np.float64(self.coulomb),
                             viscous_asymmetry=self.viscous_asymmetry * np.float64(self.damping),
                             load=self.load * np.float64(self.coulomb))
        return law if rubbing.damping.any() or rubbing.friction.any() or law.by_load else None


ALL_FRICTION = FrictionTerms()


def friction_rows(what: str, smoothing: float = 0.01, where: str = "", beware: str = "") -> Table:
    """Parameter rows. what: verb of the descriptions, "Compensate"; where: condition appended to them."""
    return (
        Parameter("friction.damping", "bool", True, f"{what} viscous friction (<dynamics damping>){where}."),
        Parameter("friction.coulomb", "bool", True, f"{what} Coulomb friction (<dynamics friction>)"
                  f"{', likewise' if where else ''}."),
        smoothing_row(smoothing, beware),
    )


def smoothing_row(smoothing: float = 0.01, beware: str = "") -> Parameter:
    """The row of `FrictionTerms.smoothing`."""
    return Parameter("friction.smoothing", "number", smoothing, "Velocity s in tanh(v/s), which replaces the sign of "
                     f"v; rad/s or m/s.{beware}", lower=1e-6, upper=100.0)


def drive_friction_rows() -> Table:
    """Parameter rows of friction by direction and by load, as found by `rbd identify`, missing in descriptions."""
    return (
        Parameter("friction.asymmetry", "numbers", (0.0,), "Half of what Coulomb friction is more forwards than "
                  "backwards, N m or N; at most <dynamics friction>.", lower=-1e9, upper=1e9),
        Parameter("friction.viscous_asymmetry", "numbers", (0.0,), "Half of what viscous friction is more forwards "
                  "than backwards, N m s/rad or N s/m; at most <dynamics damping>.", lower=-1e9, upper=1e9),
        Parameter("friction.load", "numbers", (0.0,), "Share of what a joint carries (its effort without friction) "
                  "that is added to the Coulomb friction, as in gears.", lower=0.0, upper=0.99),
    )

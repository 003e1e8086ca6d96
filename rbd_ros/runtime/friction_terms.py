"""Friction terms in use: parameters `friction.*`, common to all nodes with a model."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.model.robot_model import RobotModel
from .parameters import Parameter, Table


class FrictionTerms(NamedTuple):
    """Whether viscous and Coulomb friction are used, and the speed s (rad/s or m/s) of tanh(v/s), which replaces
    sign(v).
    """

    damping: bool = True
    coulomb: bool = True
    smoothing: float = 0.01

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> FrictionTerms:
        """Friction terms of validated parameters."""
        return FrictionTerms(*(values[f"friction.{name}"] for name in FrictionTerms._fields))

    def of(self, model: RobotModel) -> RobotModel | None:
        """The model with only these friction terms; None if no friction remains."""
        damping, friction = model.damping * self.damping, model.friction * self.coulomb
        return model.with_(damping=damping, friction=friction) if damping.any() or friction.any() else None


ALL_FRICTION = FrictionTerms()


def friction_rows(what: str, smoothing: float = 0.01, where: str = "", beware: str = "") -> Table:
    """Parameter rows. what: verb of the descriptions, "Compensate"; where: condition appended to them."""
    return (
        Parameter("friction.damping", "bool", True, f"{what} viscous friction (<dynamics damping>){where}."),
        Parameter("friction.coulomb", "bool", True, f"{what} Coulomb friction (<dynamics friction>)"
                  f"{', likewise' if where else ''}."),
        Parameter("friction.smoothing", "number", smoothing, "Velocity s in tanh(v/s), which replaces the sign of v; "
                  f"rad/s or m/s.{beware}", lower=1e-6, upper=100.0),
    )

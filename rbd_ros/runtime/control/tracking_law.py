"""Tracking of a reference by feed-forward and feedback: the torque, before anything limits it.

With e = q_ref ⊖ q, ė = v_ref − v, ID the inverse dynamics and g the gravity torque:

| feedforward       | torque                                                                |
|-------------------|-----------------------------------------------------------------------|
| `none`            | Kp e + Kd ė                                                           |
| `gravity`         | g(q) + Kp e + Kd ė                                                    |
| `full`            | ID(q_ref, v_ref, a_ref) + friction(v_ref) + Kp e + Kd ė               |
| `computed_torque` | ID(q, v, a_ref + Kp e + Kd ė) + friction(v_ref), gains in 1/s², 1/s   |

External wrenches enter g and ID. What the robot's own controller already adds is subtracted from every law that
contains it: g(q), C(q, v) v, friction.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import friction_effort
from ...core.dynamics.inverse import bias_effort, gravity_effort, inverse_dynamics
from ...core.errors import unknown_name
from ...core.model.robot_model import RobotModel
from ...core.motion.trajectory import Reference
from ..friction_terms import ALL_FRICTION, FrictionTerms

Array = NDArray[np.float64]

FEEDFORWARD = ("none", "gravity", "full", "computed_torque")
COMPENSATES = ("gravity", "coriolis", "friction")


@dataclass(frozen=True, kw_only=True)
class TrackingLawSettings:
    """Which torque. `kp`, `kd` (nv,): N m/rad and N m s/rad, or 1/s² and 1/s with `computed_torque`.

    `friction`: what of the model's is compensated. `compensates`: what the robot does by itself, of `COMPENSATES`.
    """

    kp: Array
    kd: Array
    feedforward: str = "full"
    friction: FrictionTerms = ALL_FRICTION
    compensates: tuple[str, ...] = ()


class TrackingLaw:
    """The law of `settings` for one robot."""

    def __init__(self, model: RobotModel, settings: TrackingLawSettings) -> None:
        if settings.feedforward not in FEEDFORWARD:
            raise unknown_name("feedforward", settings.feedforward, FEEDFORWARD)
        self.model, self.settings = model, settings
        self._zero = np.zeros(model.nv)
        self._feedback = bool(settings.kp.any() or settings.kd.any())
        kind = settings.feedforward
        self.only_feedback = self._feedback and kind == "none"
        self.needs_reference = self._feedback or kind in ("full", "computed_torque")
        self._subtract_gravity = "gravity" in settings.compensates and kind in ("full", "computed_torque")
        self._subtract_coriolis = "coriolis" in settings.compensates and kind in ("full", "computed_torque")
        self._friction = None
        if kind in ("full", "computed_torque") and "friction" not in settings.compensates:
            self._friction = settings.friction.of(model)

    def effort(self, q: Array, v: Array, reference: Reference | None, wrenches: Any = None,
               share: float = 1.0) -> Array:
        """Torque (nv,) in the state q, v. `reference` may be None only if not `needs_reference`. share: of the
        feedback, unless there is nothing else.
        """
        s, model = self.settings, self.model
        feedback = None
        if self._feedback and share > 0.0:
            assert reference is not None
            feedback = s.kp * model.difference(q, reference.q) + s.kd * (reference.v - v)
            if share < 1.0 and not self.only_feedback:
                feedback *= share
        if s.feedforward == "none":
            return self._zero.copy() if feedback is None else feedback
        if s.feedforward == "gravity":
            effort = self.gravity(q, wrenches)
            return effort if feedback is None else effort + feedback
        assert reference is not None
        if s.feedforward == "full":
            effort = inverse_dynamics(model, reference.q, reference.v, reference.a, wrenches)
            if feedback is not None:
                effort = effort + feedback
        else:
            acceleration = reference.a if feedback is None else reference.a + feedback
            effort = inverse_dynamics(model, q, v, acceleration, wrenches)
        if self._friction is not None:
            effort = effort + friction_effort(self._friction, reference.v, s.friction.smoothing)
        return self._without_own(effort, q, v)

    def _without_own(self, effort: Array, q: Array, v: Array) -> Array:
        if self._subtract_gravity:
            effort = effort - gravity_effort(self.model, q)
        if self._subtract_coriolis:
            effort = effort - bias_effort(self.model, q, v) + gravity_effort(self.model, q)
        return effort

    def gravity(self, q: Array, wrenches: Any = None) -> Array:
        """Torque that holds the robot at rest at q, less what it does by itself."""
        own = "gravity" in self.settings.compensates
        if own and wrenches is None:
            return self._zero.copy()
        effort = inverse_dynamics(self.model, q, self._zero, self._zero, wrenches)
        return effort - gravity_effort(self.model, q) if own else effort

"""Contacts in a step of `Simulator`, for each integrator, and their states after it."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import RbdError
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.surfaces.unilateral import UnilateralContact
from ..bounds import Bounds
from ..constrained_motion import ConstrainedMotion
from ..variational import Variational
from .cones import Unsolved
from .events import CLOSED, EffortLaw, Events
from .records import ContactState
from .stepping import Flight, Stepping
from .touching import Touching

RESTS = 1e-7      # m/s: slip below which the state is "sticking"


class SimulatedContacts:
    """Contacts of one simulator. joints: dry friction (`joint_data`); level: the same (nv,) at velocities. flying:
    integrator of flights, with time stepping of contacts (`stepping`), or None: RK4 with events (`events`), and time
    stepping as fallback for too many events.
    """

    def __init__(self, model: RobotModel, contacts: Sequence[UnilateralContact], bounds: Bounds,
                 joints: Array, level: Callable[[Array], Array], constrained: ConstrainedMotion | None,
                 flying: Variational | None) -> None:
        self._touching = Touching(model, contacts, bounds, None if constrained is None else constrained.constraints)
        self._flying = flying or Variational(model, joints, None, constrained)
        self._stepping = Stepping(self._touching, joints, constrained, self._flying)
        self._events = Events(self._touching, joints, level, constrained) if flying is None else None
        self._model = model

    def start(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Initial state, with small overlaps removed."""
        self._by_events = self._events is not None
        if self._events is not None:
            self._events.forget()
        self._stepping.forget()
        q = self._touching.start(q, v)
        gaps = self._touching.at(q, v)
        self._closed = (gaps.gap < CLOSED) & (gaps.margin > 0.0)
        self._stepping.slip = gaps.slip(v)
        self._at = q
        return q, v

    def advance(self, q: Array, v: Array, t: float, h: float, effort: EffortLaw, wrenches: Any,
                fly: Flight | None) -> tuple[Array, Array]:
        """The state h (s) after t. effort: (q, v, t) to efforts (nv,) without friction and damping; fly: see
        `Stepping.advance`.
        """
        events, stepping = self._events, self._stepping
        if events is not None:
            damping = self._model.damping
            state = events.advance(q, v, t, h, lambda q, v, t: effort(q, v, t) - damping * v, wrenches)
            self._by_events = state is not None
            if state is not None and events.taken is not None:
                self._closed, self._at = events.taken.holds, events.taken.q
                return state
        try:
            end = stepping.advance(q, v, t, h, effort, wrenches, fly)
        except Unsolved:
            names = ", ".join(self._touching.names[:20])
            raise RbdError(f"simulation: at {t:g} s no forces of the contacts ({names}) satisfy the laws of contact "
                           "and friction; a smaller step or less friction may help") from None
        self._closed, self._at = stepping.force[:, 0] + stepping.impulse[:, 0] > 0.0, end[0]
        return end

    @property
    def compiled(self) -> bool:
        """Whether `many` may be called."""
        return (self._events or self._stepping).compiled

    def many(self, q: Array, v: Array, h: float, efforts: Array, wrench: Array, steps: int) -> int:
        """See `Stepping.many` and `Events.many`."""
        events, stepping = self._events, self._stepping
        if events is not None:
            if done := events.many(q, v, h, efforts, wrench, steps):
                assert events.taken is not None
                self._by_events, self._closed, self._at = True, events.taken.holds, events.taken.q
                return done
            if not (events.pause and stepping.compiled):
                return 0
            if self._by_events:
                self._flying.forget()
            steps = min(steps, events.pause)
        done = stepping.many(q, v, h, efforts, wrench, steps)
        if done:
            self._by_events, self._closed, self._at = False, stepping.force[:, 0] + stepping.impulse[:, 0] > 0.0, q
            if events is not None:
                events.pause -= done
        return done

    def states(self, q: Array, v: Array) -> tuple[ContactState, ...]:
        """Contact states after the last step, which ended at q, v."""
        touching, events = self._touching, self._events
        slip = touching.at(q, v).slip(v) if self._by_events else self._stepping.slip
        rests = (slip < RESTS) & (touching.friction > 0.0)
        result = []
        for i, name in enumerate(touching.names):
            point, axes, gap = touching.place(i, q)
            if self._by_events and events is not None:
                force = np.zeros(3) if events.taken is None else self._at_the_end(i, events.taken.force[i], axes[:, 2])
                impulse = sum((self._turned(i, position, p) for position, p in events.impulses), np.zeros(3))
            else:
                force, impulse = (self._turned(i, self._at, x) for x in (self._stepping.force, self._stepping.impulse))
            state = "open" if not self._closed[i] else "sticking" if rests[i] else "sliding"
            result.append(ContactState(name, state, point, axes[:, 2].copy(), force, impulse, gap))
        return tuple(result)

    def _at_the_end(self, i: int, force: Array, normal: Array) -> Array:
        """The force (3,) of contact i in the last evaluation, in world axes, with its components along the normal and
        in the tangent plane at the end of the step, which is a little beside that evaluation.
        """
        friction = self._touching.place(i, self._at)[1][:, :2] @ force[1:] if force.any() else np.zeros(3)
        turned: Array = force[0] * normal + friction - friction @ normal * normal
        return turned

    def _turned(self, i: int, q: Array, force: Array) -> Array:
        """A force of contact i at q in world axes."""
        return self._touching.place(i, q)[1] @ force[i, [1, 2, 0]] if force[i].any() else np.zeros(3)

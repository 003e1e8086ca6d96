"""What a torque node does when something touches the robot, seen by the momentum observer in its own cycle.

| reaction  | on a contact                                                                                          |
|-----------|-------------------------------------------------------------------------------------------------------|
| `off`     | nothing is observed                                                                                   |
| `report`  | it is told                                                                                            |
| `stop`    | an emergency stop, released by `~/reset`                                                              |
| `yield`   | gravity torque and damping alone until the contact has ended and the arm rests; then back to the place   |
|           | on the path where it was interrupted, and on                                                           |
| `retract` | back along the followed trajectory by `contact.retract` s of its motion, and rest there; another      |
|           | contact on the way is an emergency stop. Without a trajectory as `yield`                              |

The state that shows a contact is answered before it is looked at; the next answer is that of the reaction.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import Friction
from ...core.errors import RbdError
from ...core.estimation.momentum_observer import MomentumObserver
from ...core.model.robot_model import RobotModel
from ..estimation.contacts import Contact, ContactDetector
from ..parameters import parameter

Array = NDArray[np.float64]
REACTIONS = ("off", "report", "stop", "yield", "retract")
SOURCES = ("command", "joint_states")
LONGEST = 0.1    # s between two states, after which the observer begins anew


@dataclass(frozen=True, kw_only=True)
class ContactSettings:
    """Validated parameters."""

    reaction: str = parameter("off", "What a contact does: report (on ~/contact), stop (as the emergency stop), yield "
                              "(gravity torque and damping until it has ended, then the motion goes on), retract (back "
                              "along the trajectory), or off.", name="contact.reaction", choices=REACTIONS)
    effort: str = parameter("command", "The effort that acted: command (what this node sent, held to the next state) "
                            "or joint_states (field effort, the mean of both ends of an interval).",
                            name="contact.effort", choices=SOURCES)
    gain: float = parameter(50.0, "K of the filter K/(s + K) through which external efforts are seen, 1/s.",
                            name="contact.gain", lower=0.1, upper=1e4)
    threshold: Array = parameter((0.0,), "External effort above which a joint feels a contact, N m or N (rbd "
                                 "thresholds finds them); 0: never.", name="contact.threshold", lower=0.0)
    release: float = parameter(0.3, "Time for which all external efforts must be below 0.7 of their thresholds until a "
                               "contact has ended, s.", name="contact.release", lower=0.0, upper=60.0)
    retract: float = parameter(0.5, "How far retract goes back, in s of the motion.", name="contact.retract",
                               lower=0.0, upper=10.0)


class ContactReaction:
    """The observer of a controller: call `observe` after each answered state. Arrays are in model order."""

    def __init__(self, model: RobotModel, settings: ContactSettings, friction: Friction | None) -> None:
        self.settings = settings
        self.watches = settings.reaction != "off"
        self._observer = MomentumObserver(model, settings.gain, friction)
        self._detector = ContactDetector(model, settings.threshold, settings.release)
        self.external = np.zeros(model.nv)
        self.forget()

    def forget(self) -> None:
        """Begin anew with the next state."""
        self._last: tuple[float, int] | None = None    # time of reception (s) and stamp (ns) of the last state
        self._before: Array | None = None              # what was sent, or measured, at it

    @property
    def body(self) -> str | None:
        """The touched link."""
        return self._detector.body

    def observe(self, now: float, time_ns: int, q: Array, v: Array, sent: Array | None, measured: Array | None,
                known: Array | None) -> Contact | None:
        """What changed at the state received at `now`; None for nothing.

        sent (nv,): the answer to it. measured (nv,): with it. known (nv,): effort of known external wrenches.
        """
        last, self._last = self._last, (now, time_ns)
        before, self._before = self._before, sent if self.settings.effort == "command" else measured
        applied = before
        if self.settings.effort == "joint_states" and applied is not None and measured is not None:
            applied = 0.5 * (applied + measured)
        interval = math.inf if last is None else (time_ns - last[1]) * 1e-9 if time_ns else now - last[0]
        try:
            if applied is None or self._before is None or not 0.0 < interval <= LONGEST:
                self._observer.reset(q, v)
                self.external = np.zeros(len(v))
                return None
            self.external = self._observer.update(interval, q, v, applied if known is None else applied + known)
            return self._detector.update(time_ns, q, self.external)
        except RbdError:    # numbers that overflow: nothing is known of this interval
            self.forget()
            return None

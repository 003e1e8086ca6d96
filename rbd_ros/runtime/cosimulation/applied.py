"""Detection from the motion of the command that acted: the newest, the one before (joint by joint), or an older one.

Gazebo tells no efforts, and takes a topic per joint through ros_gz_bridge, so that a step may begin with the new torque
of some joints only. Over a step h of its scheme, as of any that takes the acceleration at the beginning,

    τ = ID(q_0, v_0, (v_1 − v_0)/h) + friction(v_0)

is exact. A joint is judged where two commands differ by `CLEAR` times what none of them explains on average. The older
one is that which acted when a command was judged for the last time: a receiver that no longer takes any holds it.
"""
from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import friction_effort
from ...core.dynamics.inverse import inverse_dynamics
from ...core.model.robot_model import RobotModel

Array = NDArray[np.float64]
CLEAR = 20.0      # what differs by so many times the noise
NEAR = 0.1        # of the difference: so close is the torque to the one of the command before
MEMORY = 100      # commands, of the noise


class AppliedCommands:
    """Counters of commands that were judged: `commands_judged`; `commands_late`, which acted later in all joints that
    tell; `commands_split`, which did in some of them only; `commands_held`, with which still an older one acted than
    the one before. held: how many of these there were in a row.
    """

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.counts = Counter({"commands_judged": 0, "commands_late": 0, "commands_split": 0, "commands_held": 0})
        self.held = 0
        self._noise = np.full(model.nv, np.inf)
        self._known = 0
        self._acting: Array | None = None

    def judge(self, interval: float, q: Array, v: Array, v_end: Array, before: Array, command: Array) -> None:
        """The motion over `interval` (s), which begins as `command` (nv,) should begin to act instead of `before`."""
        acted = inverse_dynamics(self.model, q, v, (v_end - v) / interval) + friction_effort(self.model, v, 1e-2)
        acting = before if self._acting is None else self._acting
        new, old, older = (np.abs(acted - effort) for effort in (command, before, acting))
        unexplained = np.minimum(np.minimum(old, new), older)
        self._known += 1
        weight = 1.0 / min(self._known, MEMORY)
        noise = np.where(np.isfinite(self._noise), self._noise, unexplained)
        clear, late = _late(command, before, old, self._noise)
        clear_older, held = _late(command, acting, older, self._noise)
        self._noise = noise + weight * (unexplained - noise)
        if held.any() and (held == clear_older).all() and not (clear & (old <= older)).any():
            self.counts["commands_judged"] += 1
            self.counts["commands_held"] += 1
            self.held += 1
            return
        self.held = 0
        self._acting = before if late.any() else command
        if not clear.any():
            return
        self.counts["commands_judged"] += 1
        if late.any():
            self.counts["commands_late" if (late == clear).all() else "commands_split"] += 1


def _late(command: Array, earlier: Array, distance: Array, noise: Array) -> tuple[Any, Any]:
    """Joints (nv,) that distinguish the command from an earlier one, and those in which the earlier one acted."""
    change = np.abs(command - earlier)
    clear = change > CLEAR * noise
    return clear, clear & (distance < NEAR * change)

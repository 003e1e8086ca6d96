"""Detection of the acting command from the motion: the newest, the previous (joint by joint), or an older one.

Gazebo reports no efforts, and ros_gz_bridge has one topic per joint, so a step may start with the new torque of some
joints only. Over a step h of Gazebo's integrator, and of any that uses the acceleration at the start of the step,

    τ = ID(q_0, v_0, (v_1 − v_0)/h) + friction(v_0)

is exact. A joint is judged if two commands differ by more than `CLEAR` times the mean unexplained torque. The older
command is the one that acted at the last judgement: a receiver that takes no more commands holds it.
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
CLEAR = 20.0      # ratio of a difference to the noise above which commands are distinguished
NEAR = 0.1        # share of the difference within which the torque counts as that of the earlier command
MEMORY = 100      # commands over which the noise is averaged


class AppliedCommands:
    """Counters of judged commands: `commands_judged`; `commands_late`: delayed in all distinguishing joints;
    `commands_split`: delayed in some of them; `commands_held`: an older command than the previous one still acted.
    held: number of consecutive `commands_held`.
    """

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.counts = Counter({"commands_judged": 0, "commands_late": 0, "commands_split": 0, "commands_held": 0})
        self.held = 0
        self._noise = np.full(model.nv, np.inf)
        self._known = 0
        self._acting: Array | None = None

    def judge(self, interval: float, q: Array, v: Array, v_end: Array, before: Array, command: Array) -> None:
        """Judge the motion over `interval` (s), at whose start `command` (nv,) should replace `before`."""
        acted = inverse_dynamics(self.model, q, v, (v_end - v) / interval) + friction_effort(self.model, v, 1e-2)
        acting = before if self._acting is None else self._acting
        new, old, older = (np.abs(acted - effort) for effort in (command, before, acting))
        unexplained = np.minimum(np.minimum(old, new), older)
        self._known += 1
        weight = 1.0 / min(self._known, MEMORY)
        noise = np.where(np.isfinite(self._noise), self._noise, unexplained)
        clear, late = _late(command, before, old, self._noise)
        clear_older, still = _late(command, acting, older, self._noise)
        self._noise = noise + weight * (unexplained - noise)
        if still.any() and (still == clear_older).all() and not (clear & (old <= older)).any():
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

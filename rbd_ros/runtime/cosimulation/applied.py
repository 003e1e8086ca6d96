"""Which torque acted, judged from the motion: that of the newest command or, joint by joint, of the one before.

Gazebo tells no efforts, and takes a topic per joint through ros_gz_bridge, so that a step may begin with the new torque
of some joints only. Over a step h of its scheme, as of any that takes the acceleration at the beginning,

    τ = ID(q_0, v_0, (v_1 − v_0)/h) + friction(v_0)

is exact. A joint is judged where the two commands differ by `CLEAR` times what neither explains on average.
"""
from __future__ import annotations

from collections import Counter

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
    tell; `commands_split`, which did in some of them only.
    """

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.counts = Counter({"commands_judged": 0, "commands_late": 0, "commands_split": 0})
        self._noise = np.full(model.nv, np.inf)
        self._known = 0

    def judge(self, interval: float, q: Array, v: Array, v_end: Array, before: Array, command: Array) -> None:
        """The motion over `interval` (s), which begins as `command` (nv,) should begin to act instead of `before`."""
        acted = inverse_dynamics(self.model, q, v, (v_end - v) / interval) + friction_effort(self.model, v, 1e-2)
        old, new = np.abs(acted - before), np.abs(acted - command)
        unexplained = np.minimum(old, new)
        change = np.abs(command - before)
        self._known += 1
        weight = 1.0 / min(self._known, MEMORY)
        clear = change > CLEAR * self._noise
        noise = np.where(np.isfinite(self._noise), self._noise, unexplained)
        self._noise = noise + weight * (unexplained - noise)
        if not clear.any():
            return
        late = clear & (old < NEAR * change)
        self.counts["commands_judged"] += 1
        if late.any():
            self.counts["commands_late" if (late == clear).all() else "commands_split"] += 1

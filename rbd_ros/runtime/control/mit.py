"""Commands for motors that close a loop themselves ("MIT mode"): position, velocity, gains and torque in one message.

At the state q, v such a motor applies

    τ(q, v) = τ_ff + kp (q_d − q) + kd (v_d − v),

where q_d, v_d and τ_ff count only by their sum τ_ff + kp q_d + kd v_d. For the effort u of the node in the joint state
q_k, v_k, the message has q_d = q_k, v_d = v_k, τ_ff = u:

    τ(q, v) = u + kp (q_k − q) + kd (v_k − v)

- In the answered state the motor applies u, whatever u is: a command, a ramp, the safe effort. Nothing acts twice.
- If u has the feedback kp (q_r − q_k) + kd (v_r − v_k), with the same gains, q_k and v_k cancel: the motor follows the
  reference by its own, prompt measurements.
- |τ| ≤ |u| + kp Δq + kd Δv in all states within Δq, Δv of q_k, v_k. `within` lowers the limit of u by that.
- A state that is farther than Δq, Δv from the last set point moves that by no more, until `AGREEING` states agree:
  motors are not sent to an outlier that passes all checks, to old states after a stall, or to the zeros with which a
  driver begins.
- A message that stays, because the node is late or dead, is a spring about q_k + (u + kd v_k) / kp: at rest, where
  g = u, about q_k. Hence kp > 0.

When joint states cease, the set point comes to rest within `BRAKING`, and stays with the last effort, for ever.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ..parameters import parameter, taken
from .following import BRAKING
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]
AGREEING = 4    # consecutive joint states; drivers may send two old ones after a stall
Point = tuple[Array, Array]    # position and velocity (nv,)
S = TypeVar("S", bound=TorqueSettings)


@dataclass(frozen=True, kw_only=True)
class MitSettings:
    """Gains of the motors' loops, and what is known of their torque; arrays (nv,) in model order."""

    kp: Array = parameter((0.0,), "Proportional gain of the motors' own loops, in true torque, N m/rad or N/m, above "
                          "0. As gains.kp, if that is of the same unit: what differs acts late.", name="mit.kp",
                          lower=0.0, upper=1e6, read_only=True)
    kd: Array = parameter((0.0,), "Derivative gain of the motors' own loops, in true torque, N m s/rad or N s/m.",
                          name="mit.kd", lower=0.0, upper=1e6, read_only=True)
    torque_scale: Array = parameter((1.0,), "True torque over commanded torque of the motors: effort, kp and kd are "
                                    "divided by it.", name="mit.torque_scale", lower=0.01, upper=100.0,
                                    read_only=True)
    position_change: Array = parameter((0.05,), "Largest change of a position between a joint state and the last "
                                       "moment at which its answer acts, rad or m: so much of the effort limits is "
                                       "kept for kp.", name="mit.position_change", lower=0.0, upper=10.0,
                                       read_only=True)
    velocity_change: Array = parameter((0.5,), "Largest change of a velocity meanwhile, rad/s or m/s: so much of the "
                                       "effort limits is kept for kd.", name="mit.velocity_change", lower=0.0,
                                       upper=1e3, read_only=True)

    @staticmethod
    def from_values(values: Mapping[str, Any], node: TorqueSettings) -> MitSettings:
        """From validated parameters by name, and the settings of the node; raises `RbdError`."""
        model = node.model
        settings = MitSettings(**taken(MitSettings, values, np.argsort(node.output)))
        loose = [model.joint_names[i] for i in np.flatnonzero(settings.kp <= 0.0)]
        if loose:
            raise RbdError(f"adapter 'mit' needs 'mit.kp' above 0, which is 0 for {', '.join(loose)}: without a gain "
                           "on the position, nothing holds such a joint if this node ends")
        if any(joint.nq != 1 or joint.nv != 1 for joint in model.joints):
            raise RbdError("adapter 'mit' is for robots whose joints all have one coordinate")
        return settings

    @property
    def reserve(self) -> Array:
        """Effort (nv,) of the motors' loops after these changes of the answered state."""
        return self.kp * self.position_change + self.kd * self.velocity_change


def within(settings: S, mit: MitSettings) -> S:
    """The settings of a torque node for such motors: effort limits without their `reserve`, and no fallback, because
    what stays in the motors holds the robot.
    """
    safety = settings.safety
    limit = safety.effort_limit - mit.reserve
    small = np.flatnonzero(limit <= 0.0)
    if small.size:
        i = int(small[0])
        raise RbdError(f"joint '{settings.model.joint_names[i]}' has an effort limit of {safety.effort_limit[i]:.3g}, "
                       f"but mit.kp mit.position_change + mit.kd mit.velocity_change is {mit.reserve[i]:.3g} (N m or "
                       "N), which leaves nothing: lower one of these four, or raise 'effort_limits.maximum'")
    limit.setflags(write=False)
    return replace(settings, safety=replace(safety, effort_limit=limit, hold=math.inf), motor_damping=mit.kd)


class MitLaw:
    """Makes commands (5, nv), rows as `MIT_INTERFACES`. Call `begin` before the first one, and whenever earlier ones no
    longer act.
    """

    def __init__(self, model: RobotModel, settings: MitSettings) -> None:
        self.settings = settings
        self._lower, self._upper = model.position_lower, model.position_upper
        self.begin()

    def begin(self) -> None:
        """Start at the next joint states."""
        self._measured: Point | None = None    # the last joint state
        self._agree = 0                        # how many states, with the last one, are each near the one before
        self._known: Point | None = None       # the set point of the last fresh joint state
        self._sent: Point | None = None        # the last set point

    def command(self, q: Array, v: Array, effort: Array, lost: float = 0.0, again: bool = False) -> Array | None:
        """The command with which the motors apply `effort` in the last joint state q, v; None until the first states
        agree. lost: s since it became stale, up to 0 while it is fresh. again: whether it was answered before.
        """
        s = self.settings
        if lost > 0.0:
            self._measured = None
            self._sent = None if self._known is None else self._braked(*self._known, min(lost / BRAKING, 1.0))
        elif not again:
            self._sent = self._known = self._follow((q.copy(), v.copy()))
        if self._sent is None:
            return None
        return np.stack([*self._sent, effort / s.torque_scale, s.kp / s.torque_scale, s.kd / s.torque_scale])

    def _follow(self, measured: Point) -> Point | None:
        """The measured state if `AGREEING` agree, else as near the last set point as may be, None without one."""
        before, last, self._measured = self._measured, self._sent, measured
        most = self.settings.position_change, self.settings.velocity_change
        near = before is not None and all((np.abs(new - old) <= limit).all() for new, old, limit in zip(
            measured, before, most, strict=True))
        self._agree = self._agree + 1 if near else 1
        if self._agree >= AGREEING or last is None:
            return measured if self._agree >= AGREEING else None
        q, v = (np.clip(new, point - limit, point + limit) for new, point, limit in zip(
            measured, last, most, strict=True))
        return q, v

    def _braked(self, q: Array, v: Array, progress: float) -> Point:
        """The set point on its way to rest, within the limits of the joints."""
        ahead = q + BRAKING * (progress - 0.5 * progress * progress) * v
        return np.clip(ahead, np.minimum(q, self._lower), np.maximum(q, self._upper)), (1.0 - progress) * v

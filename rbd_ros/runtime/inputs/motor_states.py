"""Validation of motor states of a robot with elastic joints, by name; rejected ones are counted."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.actuation.actuation import Actuation
from ...core.motion.velocity_limits import velocity_limits
from .finite import worst
from .joint_state_bytes import Layout
from .joint_map import Turns, as_array, picked
from .plausibility import Implausible, Plausibility
from .quick_states import QuickStates
from .rejections import TAKEN, Rejected, Rejections, Verdict

Array = NDArray[np.float64]
_EMPTY = np.zeros(0)
ACROSS = 0.01    # s in which a second motor may cross its range


class MotorInput:
    """The last valid motor state (nm,) in the order of `Actuation.motor_names`, and steady time of reception (s).

    Motors may come in any order, with others between them. The motor of a rigid joint is the joint: it may be missing,
    and is ignored. Implausible successors of the last valid state are rejected, as for joint states, by the velocity
    limits of the motors' joints (`plausible`: their factor (nv,)). The velocity limit of a second motor, of variable
    stiffness, crosses its range within ACROSS, which is its unit of motion for drivers that repeat themselves.
    """

    def __init__(self, actuation: Actuation, rejections: Rejections, timeout: float,
                 plausible: Array | float = math.inf) -> None:
        self._wanted = actuation.motor_names
        # of the required motors: the elastic joints, then the second motors
        self._needed = np.concatenate([actuation.elastic, np.arange(actuation.nv, actuation.nm)]).astype(np.intp)
        self._rigid = actuation.rigid
        self._turns = Turns(actuation.model)
        self._joints = actuation.nv
        # the joint of each of these motors
        self._joint = np.concatenate([np.arange(actuation.nv), actuation.variable]).astype(np.intp)[self._needed]
        ranges = np.zeros(actuation.nm - actuation.nv)
        for joints, spring in actuation.groups:
            ranges[joints] = np.asarray(spring.upper) - np.asarray(spring.lower)
        limit, turn = velocity_limits(actuation.model)[self._joint], self._turns.turn[self._joint]
        second = self._needed >= actuation.nv
        unit = np.ones(len(self._needed))
        limit[second], turn[second], unit[second] = ranges / ACROSS, 0.0, ranges
        self._check = Plausibility([self._wanted[i] for i in self._needed], limit, math.inf, turn, unit)
        self._quick = QuickStates(self._check, len(self._needed))
        self.allow(plausible)
        self._rejections = rejections
        self.timeout = timeout
        self._names: Sequence[str] | None = None
        self._indices: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.motion = np.zeros((2, actuation.nm))
        self.stamp_ns, self.received = 0, -math.inf

    @property
    def position(self) -> Array:
        return self.motion[0]

    @property
    def velocity(self) -> Array:
        return self.motion[1]

    def live_in(self, motion: Array) -> None:
        """Store position and velocity in the array `motion` (2, nm) from now on."""
        motion[:] = self.motion
        self.motion = motion

    def allow(self, plausible: Array | float) -> None:
        """Change the factor of the velocity limits, one or (nv,)."""
        self._check.allow(np.broadcast_to(plausible, self._joints)[self._joint])

    def fresh(self, now: float) -> bool:
        """Whether there is a state within the timeout; always true without elastic joints."""
        return now - self.received < self.timeout or not self._needed.size

    def accept_bytes(self, now: float, data: bytes) -> bool:
        """`accept` for the bytes of an ordinary message; False, without a change, for any other."""
        state = self._quick.accept(now, data, self.timeout)
        if state is None:
            return False
        self.position[self._needed], self.velocity[self._needed] = state.q, state.v
        self.stamp_ns, self.received = state.time_ns, now
        return True

    def prepare(self, layout_of: Callable[[bytes], Layout | None], data: bytes) -> None:
        """Prepare `accept_bytes` for messages like this one, which `accept` has taken."""
        last = self._check.last
        if last is None or last.now != self.received:
            return
        layout = layout_of(data)
        if layout is not None and layout.complete and layout.names == self._names:
            self._quick.prepare(layout, data, self._indices)

    def clear(self) -> None:
        """Forget the state: on activation, and after a reset of the clock."""
        self.stamp_ns, self.received = 0, -math.inf
        self._check.forget()

    def accept(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
               velocity: ArrayLike) -> Verdict:
        """Take a motor state."""
        try:
            if names != self._names:
                self._map(list(names))
            q, v = self._gather("position", position), self._gather("velocity", velocity)
            time_ns = stamp_ns or self.stamp_ns    # without a stamp, only the time of reception is used
            try:
                meaning = self._check.admit(now, time_ns, q, v, self.timeout)
            except Implausible as error:
                raise Rejected(error.kind, f"motor state: {error}") from None
        except Rejected as error:
            return self._rejections.add(error)
        self._check.keep(now, time_ns, q, v, meaning)
        self.position[self._needed], self.velocity[self._needed] = q, v
        self.stamp_ns, self.received = time_ns, now
        return TAKEN

    def measured(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Positions and velocities (nm,) of the motors; those of rigid joints from q, v (nv,)."""
        self.position[self._rigid], self.velocity[self._rigid] = q[self._rigid], v[self._rigid]
        self.position[:len(q)] = self._turns.nearest(self.position[:len(q)], q)
        return self.position, self.velocity

    def _map(self, names: list[str]) -> None:
        if len(set(names)) != len(names):
            raise Rejected("duplicate_joint", f"motor named twice in {names}")
        missing = [self._wanted[i] for i in self._needed if self._wanted[i] not in names]
        if missing:
            raise Rejected("missing_joint", f"motor '{missing[0]}' is missing in {names}")
        self._indices = np.array([names.index(self._wanted[i]) for i in self._needed], dtype=np.intp)
        self._names = names

    def _gather(self, what: str, values: ArrayLike) -> Array:
        listed = as_array(values)
        if self._names is None or listed.shape != (len(self._names),):
            raise Rejected("wrong_size", f"{what} of the motor state has {listed.size} numbers for "
                                         f"{len(self._names or ())} names; position and velocity are needed")
        picked_values, finite = picked(listed, self._indices, _EMPTY, _EMPTY)
        if not finite:
            motor = self._wanted[self._needed[worst(picked_values)]]
            raise Rejected("non_finite", f"{what} of motor '{motor}' is not finite")
        return picked_values

"""Validation of joint states."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.model.robot_model import RobotModel
from ...core.motion.velocity_limits import velocity_limits
from .finite import HUGE
from .joint_map import JointMap, Turns
from .plausibility import CLOCK, ELSEWHERE, Implausible, Known, Plausibility
from .joint_state_bytes import Layout
from .quick_states import QuickStates
from .rejections import IGNORED, TAKEN, Rejected, Rejections, Verdict

Array = NDArray[np.float64]
UNSTAMPED, UNSTAMPED_PERIOD = 8, 0.2    # consecutive states of stamp 0, at intervals (s) up to this: unstamped driver


class StateInput:
    """The last valid joint state in model order, its stamp (ns) and steady time of reception (s).

    A missing or NaN velocity is computed as difference of positions over difference of stamps, with a first-order
    low-pass of cut-off `cutoff` Hz (0: none). Implausible successors of the last valid state are rejected
    (`plausibility`; `plausible`: factor of the velocity limits, one or (nv,), inf: no check), as are decreasing or
    missing stamps while that state is fresh. Implausible states that are confirmed count as restarts:
    `clock_restarts` of a simulation, a driver, a bag; `position_restarts` of a robot in another position.
    """

    def __init__(self, model: RobotModel, rejections: Rejections, timeout: float, cutoff: float,
                 plausible: Array | float = math.inf) -> None:
        self._model = model
        self._map = JointMap(model, extra=True)
        self._turns = Turns(model)
        self._rejections = rejections
        self._check = Plausibility(model.velocity_names, velocity_limits(model), plausible, self._turns.turn)
        self._quick = QuickStates(self._check, model.nv)
        self.clock = self._check.clock
        self.timeout, self.cutoff = timeout, cutoff
        self.q, self.v = model.neutral(), np.zeros(model.nv)
        self.measured_effort: Array | None = None
        self.stamp_ns, self.received = 0, -math.inf
        self.time_ns = 0                    # stamp; for unstamped states the time since their detection
        self._unstamped = 0                 # consecutive states with stamp 0
        self._unstamped_since: float | None = None
        self.clock_restarts = self.position_restarts = 0
        self.refused = ""                   # why the last state with joints of the model was rejected
        self.foreign: Sequence[str] = ()    # names of the last state without the model's joints

    @property
    def unstamped(self) -> bool:
        """Whether states have no stamps."""
        return self._unstamped_since is not None

    @property
    def restarts(self) -> int:
        """Number of restarts; each invalidates earlier references and commands."""
        return self.clock_restarts + self.position_restarts

    @property
    def stuck(self) -> bool:
        """Whether another state in motion with the last positions will be rejected as repeated."""
        return self._check.stuck

    def allow(self, plausible: Array | float) -> None:
        """Change the factor of the velocity limits."""
        self._check.allow(plausible)

    def forget(self) -> None:
        """Reset: the next state is the first one."""
        self._check.forget()
        self.stamp_ns, self.time_ns, self.received = 0, 0, -math.inf

    def age(self, now: float) -> float:
        """Age (s) of the last valid state; infinite before the first one."""
        return now - self.received

    def accept(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
               velocity: ArrayLike = (), effort: ArrayLike = ()) -> Verdict:
        """Take a joint state; a message without joints of the model is ignored."""
        try:
            return self._accept(now, stamp_ns, names, position, velocity, effort)
        except Rejected as error:
            self.refused = str(error)
            return self._rejections.add(error)

    def accept_stamped(self, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike = (),
                       effort: ArrayLike = ()) -> Verdict:
        """`accept` at the time of the stamp, which may go back: a reset simulation. Without effort that is unknown."""
        self.measured_effort = None
        if stamp_ns < self.stamp_ns:
            self.forget()
        return self.accept(stamp_ns * 1e-9, stamp_ns, names, position, velocity, effort)

    def _accept(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike,
                effort: ArrayLike) -> Verdict:
        joints = self._map
        if not joints.update(names):
            self.foreign = names
            return IGNORED
        q = joints.positions("position", position)
        v, measured_all = None, False
        if len(velocity):    # type: ignore[arg-type]
            v, measured_all = joints.raw_rates("velocity", velocity)
        measured = joints.raw_rates("effort", effort)[0] if len(effort) else self.measured_effort    # type: ignore[arg-type]
        time_ns = stamp_ns or (0 if self._unstamped_since is None else round((now - self._unstamped_since) * 1e9))
        if v is not None and not measured_all:
            v = np.where(np.isfinite(v), v, np.nan)
        try:
            meaning = self._check.admit(now, time_ns, q, v, self.timeout)
        except Implausible as error:
            raise Rejected(error.kind, f"joint state: {error}") from None
        # The state is valid.
        judged = v
        if v is None or not measured_all:
            passed = (time_ns - self.time_ns) * 1e-9 if stamp_ns else now - self.received
            estimate = self._estimate(q, passed) if now - self.received < self.timeout else np.zeros(self._model.nv)
            v = estimate if v is None else np.where(np.abs(v) < HUGE, v, estimate)
            judged = self._check.within(v)    # clipped, so as not to widen the velocity bound
        self._check.keep(now, time_ns, q, v if judged is None else judged, meaning)
        self.clock_restarts += meaning == CLOCK
        self.position_restarts += meaning == ELSEWHERE
        self._count_unstamped(now, stamp_ns)
        self.q, self.v, self.measured_effort = q, v, measured
        self.stamp_ns, self.time_ns, self.received = stamp_ns, time_ns, now
        self.refused, self.foreign = "", ()
        return TAKEN

    @property
    def follows(self) -> Known | None:
        """The last state, if the next one is judged by it alone, i.e. if it had a stamp and all velocities."""
        last = self._check.last
        same = (last is not None and last.q is self.q and last.v is self.v
                and last.time_ns == self.time_ns == self.stamp_ns != 0 and last.now == self.received)
        return last if same else None

    @property
    def bounds(self) -> tuple[Array, Array, Array]:
        """Arrays of `core.motion.continuity`: bound, usual and turn."""
        return self._check.bounds

    def indices(self, names: Sequence[str]) -> NDArray[np.intp] | None:
        """Indices of the joints in messages with these names; None if more than a permutation is needed."""
        return self._map.indices if names == self._map.names and self._map.plain else None

    def keep(self, state: Known, measured: Array | None) -> None:
        """Store a valid successor of the last state, after the clock was advanced."""
        self._check.settle(state)
        self._store(state, measured)

    def _store(self, state: Known, measured: Array | None) -> None:
        self.q, self.v, self.measured_effort = state.q, state.v, measured
        self.stamp_ns = self.time_ns = state.time_ns
        self.received, self.refused, self.foreign = state.now, "", ()

    def accept_bytes(self, now: float, data: bytes) -> bool:
        """`accept` for the bytes of an ordinary message; False, without a change, for any other."""
        state = self._quick.accept(now, data, self.timeout)
        if state is not None:    # settled by `_quick`
            self._store(state, self.measured_effort)
        return state is not None

    def prepare(self, layout_of: Callable[[bytes], Layout | None], data: bytes) -> None:
        """Prepare `accept_bytes` for messages like this one, which `accept` has taken."""
        if self.follows is None:
            return
        layout = layout_of(data)
        indices = None if layout is None else self.indices(layout.names)
        if layout is not None and indices is not None and layout.complete and not layout.places()[2]:
            self._quick.prepare(layout, data, indices)

    def _count_unstamped(self, now: float, stamp_ns: int) -> None:
        """Distinguish unstamped states from those of a simulation paused at time 0."""
        if stamp_ns:
            self._unstamped, self._unstamped_since = 0, None
            return
        self._unstamped = self._unstamped + 1 if now - self.received < UNSTAMPED_PERIOD else 1
        if self._unstamped >= UNSTAMPED and self._unstamped_since is None:
            self._unstamped_since = now

    def _estimate(self, q: Array, passed: float) -> Array:
        if passed <= 0.0:
            return self.v
        elapsed = max(passed, self._check.clock.least)    # nearly equal stamps give no velocity
        difference = self._model.difference(self.q, self._turns.nearest(q, self.q)) / elapsed
        if self.cutoff <= 0.0:
            return difference
        weight = 1.0 - math.exp(-2.0 * math.pi * self.cutoff * elapsed)
        return self.v + weight * (difference - self.v)

"""Bounds on the arm's motion (docs/safety.md: the second table)."""
from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

import rbd_ros as rbd

Array = np.ndarray

SPEED = 1.5        # rad/s above what was planned, or the arm had before, and where the last torque stayed meanwhile:
THROWN = 2.5       # rad/s, kd times `state_timeout` being about 2
ENERGY = 0.02      # s: kinetic energy above what was planned or had before, by the largest power of all joints
EXCURSION = 0.2    # rad from where it was stopped, beyond its braking distance, its error of tracking and the sag
CARRIED = 0.2      # rad/s of an arm at rest whose joint states get lost for less than commands outlive them
PATH = 0.2         # rad that an arm in mode `running` is from its reference beyond `tracking_tolerance`
BRAKING = 0.35     # s: of that way, at the speed at which it was stopped
REST = 3.0         # s until a stopped arm is slower than STILL
STILL = 0.15       # rad/s
AT_REST = 0.01     # rad/s
WINDOW = 0.06      # s: shortest time with states, before they get lost, after which an arm is carried as before
ENDED = 0.07       # rad/s of an arm whose node ends
MEMORY = 1.5       # s: so long an event counts for what follows
TOLD = 0.1         # s within which a line says that a motion was dropped, or that the effort is a safe one, unless
RECENT = 1.0       # s ago there was one
MISLEADING = {"node_stall", "outlier", "old", "elsewhere"}    # states, so long:
MISLED = 0.3       # s
UNSEEN = 0.05      # s: tolerance of the time for which a node that ends waits for states
LASTING = {"blind", "node_stall", "driver_stall", "elsewhere"}    # events during which the last torque stays
ORDINARY = {"motion", "stop", "rejected"}    # events: the largest quantities are those of an event beside these alone
AT_WORK = ("ramp_in", "running")
SAFE = ("stale", "waiting")


class Judge:
    """Judge of an episode: call `event` with each event and its end, and `look` after each cycle."""

    def __init__(self, rig: Any) -> None:
        self._rig = rig
        self.violations: list[str] = []
        self.most: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))    # per event and quantity
        model = rig.case.model
        self._power = float(np.sum(model.effort_limit * model.velocity_limit))    # W
        self._events: list[tuple[float, str]] = []    # (until, name) that may still act
        self._base = np.zeros(2)   # rad/s, J: what the arm had, and what was planned
        self._external = 0.0       # until then something has the arm that is not the node
        self._stopped_at = -1.0    # s: since when it is meant to rest, −1: it is not
        self._anchor: Array | None = None
        self._before: tuple[Any, bool, str] = None, False, ""    # controller, whether it followed anything, its mode
        self._blind = -np.inf      # s: when states were last lost
        self._carried = False      # whether the last event is that states of an arm at rest get lost
        self._restarts = 0    # of states, that another robot might have
        self._fast = -np.inf  # s: when a joint was last faster than its limit, and its states not plausible
        self._holds = 1       # places at which the arm was held since it is meant to rest
        self._lines, self._told, self._owed = 0, -np.inf, np.inf    # of the log, when; until when one has to come

    def event(self, name: str, until: float = 0.0) -> None:
        rig = self._rig
        self._events.append((max(until, rig.now) + MEMORY, name))
        self._external = max(self._external, until)
        if rig.elsewhere is not None:    # the node cannot see a release while states are lost
            self._external = max(self._external, rig.blind_until)
        self._base = np.maximum(self._base, self._has)
        self._carried = (name == "blind" and self._stopped_at >= 0.0 and rig.elsewhere is None
                         and self._has[0] < AT_REST and rig.now > self._blind + WINDOW)
        if name in ("stop", "emergency_stop", "restart"):
            if self._stopped_at < 0.0:
                self._stopped_at, self._anchor, self._holds = max(rig.now, self._external), None, 1
        elif name in ("motion", "stream", "release"):
            self._stopped_at = -1.0
        elif self._stopped_at >= 0.0:    # moves an arm at rest
            self._stopped_at = max(self._stopped_at, rig.now, until)
            if name in ("load", "gains"):    # with them the sag is another
                self._anchor = None

    @property
    def _has(self) -> Array:
        """Speed and kinetic energy of the arm."""
        plant = self._rig.plant
        return np.array([np.abs(plant.v).max(), plant.kinetic_energy])

    @property
    def _reference(self) -> Any:
        controller = self._rig.controller
        if controller.state.received < 0.0:
            return None
        return controller.reference.at(self._rig.now, controller.state.time_ns)

    @property
    def _planned(self) -> Array:
        rig, reference = self._rig, self._reference
        if reference is None:
            return np.zeros(2)
        planned = np.array([np.abs(reference.v).max(), rbd.kinetic_energy(rig.plant.model, reference.q, reference.v)])
        gains = rig.controller.safety.laws.newest.hold_gains(rig.plant.q)
        if rig.elsewhere is not None and gains is not None:
            e = reference.q - rig.plant.q
            spring = gains.kp * e if gains.mass is None else gains.mass @ (gains.kp * e)
            planned += self._released(spring, 0.5 * e @ spring)
        return planned

    def _released(self, effort: Array, energy: float) -> Array:
        """Speed and kinetic energy that springs with this effort (nv,) and energy (J) give an arm that another
        controller has held, critically damped.
        """
        M = rbd.mass_matrix(self._rig.plant.model, self._rig.plant.q)
        along = np.linalg.solve(M, effort)
        size, most = np.sqrt(along @ M @ along), np.sqrt(2.0 * energy) / np.e
        return np.array([np.abs(along).max() * most / max(size, 1e-9), 0.5 * most**2])

    @property
    def _follows(self) -> bool:
        """Whether there is a motion, which does not end silently."""
        return self._rig.controller.reference.followed is not None

    @property
    def _place(self) -> Array:
        """What a stop holds."""
        return np.array(self._rig.plant.q)

    @property
    def _error(self) -> float:
        """Of tracking."""
        reference = self._reference
        return 0.0 if reference is None else float(np.abs(reference.q - self._rig.plant.q).max())

    def _away(self) -> float:
        """How far the arm is from its motion, beyond what is tolerated."""
        rig, reference = self._rig, self._reference
        return 0.0 if reference is None else float(np.max(
            np.abs(reference.q - rig.plant.q) - rig.controller.safety.laws.newest.tolerance))

    def _sag(self) -> float:
        """Error of the model's gravity torque, which feedback carries by a position error."""
        rig = self._rig
        gains = rig.controller.safety.laws.newest.hold_gains(rig.plant.q)
        if gains is None or "gravity" in rig.case.compensates:
            return 0.0
        lacks = rbd.gravity_effort(rig.plant.model, rig.plant.q) - rbd.gravity_effort(rig.case.model, rig.plant.q)
        asked = lacks if gains.mass is None else np.linalg.solve(gains.mass, lacks)
        return float(np.max(np.abs(asked) / np.maximum(gains.kp, 1e-9)))

    def look(self) -> None:
        rig, has = self._rig, self._has
        now, speed = rig.now, float(has[0])
        self._blind = now if now <= rig.blind_until else self._blind
        self._events = [each for each in self._events if each[0] > now]
        if now < self._external:
            self._base = np.maximum(self._base, has)
            if self._stopped_at >= 0.0:
                self._stopped_at, self._anchor = max(self._stopped_at, self._external), None
        elif not self._events:
            self._base = np.zeros(2)
        self._base = np.maximum(self._base, self._planned)
        safety = rig.controller.safety
        followed = safety.mode == "running" and not safety.laws.fading and now >= self._external
        if followed:
            self._note("path", self._away(), PATH)
        over = has - self._base
        lasted = any(name in LASTING for _, name in self._events)
        self._note("speed", float(over[0]), THROWN if lasted else SPEED)
        self._note("energy", float(over[1]) / self._power, ENERGY)
        blind = now - rig.controller.state.received > rig.controller.safety.patience - UNSEEN
        self._note("end", 0.0 if blind else rig.left_at_speed, ENDED)    # without states it knows of no motion
        rig.left_at_speed = 0.0
        self._listen()
        self._carried &= now <= rig.blind_until
        if self._carried and now >= self._external:
            self._note("carried", speed, CARRIED)
        if self._stopped_at >= 0.0 and now >= self._stopped_at:
            if self._anchor is None:
                self._anchor, self._way = self._place, BRAKING * speed + self._error
            away = float(np.abs(self._place - self._anchor).max()) - self._way
            if away > EXCURSION:    # where a motion is dropped, the arm is held in its place, and sags from there
                away -= self._holds * self._sag()
            self._note("excursion", away, EXCURSION)
            if now > self._stopped_at + REST:
                self._note("rest", speed, STILL)

    def _listen(self) -> None:
        """Check that every end of a motion, and every switch to the safe effort, is logged."""
        rig = self._rig
        controller = rig.controller
        mode, lines = controller.safety.mode, len(rig.lines)
        known, followed, was = self._before
        self._before = controller, self._follows, mode
        self._holds += followed and not self._before[1]
        if lines > self._lines or mode == "inactive":
            self._lines, self._told, self._owed = lines, rig.now, np.inf
        elif rig.now > self._told + RECENT and known is controller and (
                (followed and not self._before[1]) or (was in AT_WORK and mode in SAFE)):
            self._owed = rig.now + TOLD
        self._note("silence", float(rig.now > self._owed), 0.0)
        restarts, self._restarts = self._restarts, controller.state.restarts
        misleads = any(name in MISLEADING and until > rig.now + MEMORY - MISLED for until, name in self._events)
        if (np.abs(rig.plant.v) > rig.case.model.velocity_limit).any():
            self._fast = rig.now
        misleads |= rig.now < self._fast + MISLED
        if known is controller and not misleads:
            self._note("restarts", float(self._restarts - restarts), 0.0)    # the arm is where it was

    def _note(self, what: str, value: float, bound: float) -> None:
        names = {name for _, name in self._events} - ORDINARY
        if len(names) <= 1:
            name = names.pop() if names else "quiet"
            self.most[name][what] = max(self.most[name][what], value)
        if value > bound and len(self.violations) < 5:
            names = ", ".join(name for _, name in self._events)
            self.violations.append(f"t = {self._rig.now:.4f} s, {what}: {value:.3g}, at most {bound:g}; after {names}")

"""Reaction of a torque node to contacts, which the momentum observer detects in the node's own cycle.

| reaction  | on a contact                                                                                             |
|-----------|----------------------------------------------------------------------------------------------------------|
| `off`     | no observation                                                                                           |
| `report`  | only published                                                                                           |
| `stop`    | emergency stop, released by `~/reset`                                                                    |
| `yield`   | gravity torque, damping, and springs that slip at the thresholds, until the contact has ended and the    |
|           | arm rests; then a straight return to the point where the motion was interrupted, which is resumed        |
| `retract` | brake, move back along the followed trajectory by `contact.retract` s of its motion, and rest there; an  |
|           | effort against this motion, or a new contact, is an emergency stop. Without a trajectory as `yield`      |

States: watching → yielding → returning → watching, and watching → braking → retracting → watching. Emergency stops: a
contact that lasts longer than `contact.patience`, a contact while the arm retracts, and a contact that would start a
retraction during a fade between laws. Deactivation, a halt, changed contact parameters, another robot and lost states
end the reaction and drop the rest of the motion: the arm is held.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import Friction, same_friction
from ...core.dynamics.inverse import gravity_effort, inverse_dynamics
from ...core.errors import RbdError
from ...core.estimation.momentum_observer import MomentumObserver
from ...core.model.robot_model import RobotModel
from ...core.motion.rest_to_rest import PEAK_SPEED
from ...core.motion.retimed import Retimed
from ...core.motion.trajectory import Interpolation, Reference, Trajectory, Waypoint
from ...core.motion.velocity_limits import velocity_limits
from ..estimation.contacts import Contact, ContactDetector, Touch, wrench_and_point
from ..inputs.joint_map import Turns
from ..parameters import parameter
from ..safety.hold import HoldGains
from .following import FollowingController

Array = NDArray[np.float64]
REACTIONS = ("off", "report", "stop", "yield", "retract")
SOURCES = ("command", "joint_states")
LONGEST, LATE = 0.1, 3.0    # s, and periods: longest interval between states; longer ones reset the observer
BRAKE = 0.15        # s in which a motion comes to rest on its path, and in which it is resumed
RETURN = 0.25       # share of the velocity limits for the return to the path
SOFT = 0.25         # share of the hold's damping while the arm yields
SETTLING = 5.0      # time constants of the observer in which no contact begins or ends, after a gap, and after a
STEP = 0.2          # drop of the command's share in the output by more than this, because steps of the effort act late
BLIND = 1.0         # s without an estimate until a notice
MOST_CHANGES = 100  # kept for publication


@dataclass(frozen=True, kw_only=True)
class ContactSettings:
    """Validated parameters."""

    reaction: str = parameter("off", "What a contact does: report (on ~/contact), stop (as the emergency stop), yield "
                              "(until it has ended, then the motion goes on), retract (back along the trajectory), or "
                              "off.", name="contact.reaction", choices=REACTIONS)
    effort: str = parameter("command", "The effort that acted: command (what this node sent, held to the next state) "
                            "or joint_states (field effort, the mean of both ends of an interval).",
                            name="contact.effort", choices=SOURCES)
    gain: float = parameter(50.0, "K of the filter K/(s + K) through which external efforts are seen, 1/s.",
                            name="contact.gain", lower=0.1, upper=1e4)
    threshold: Array = parameter((0.0,), "External effort above which a joint feels a contact, N m or N (rbd "
                                 "thresholds finds them); 0: never.", name="contact.threshold", lower=0.0)
    release: float = parameter(0.3, "Time for which all external efforts must be below 0.7 of their thresholds until a "
                               "contact has ended, s.", name="contact.release", lower=0.0, upper=60.0)
    patience: float = parameter(10.0, "Longest time to yield to one contact, s; then an emergency stop holds the arm: "
                                "an unknown load is a contact without end.", name="contact.patience", lower=0.1,
                                upper=3600.0)
    retract: float = parameter(0.5, "How far retract goes back, in s of the motion.", name="contact.retract",
                               lower=0.0, upper=10.0)

    def same_as(self, other: ContactSettings) -> bool:
        return all(np.array_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))


class ContactReaction:
    """Observer and reaction of one controller: `prepare` before each ordinary answer, `observe` after each answer."""

    def __init__(self, controller: FollowingController[Any], settings: ContactSettings, friction: Friction | None,
                 ) -> None:
        self._controller = controller
        self.counts = {"contacts": 0, "contact_estimates": 0, "contact_gaps": 0}
        self.state = "watching"
        self._changes: list[Contact] = []
        self._turns = Turns(controller.model)
        self._told = -math.inf
        self._interrupted: tuple[Interpolation, float] | None = None    # trajectory, and the time on it
        self._braked = 0.0                                              # the time on it where the arm has braked
        self._following: Any = None                                     # motion that the reaction follows at present
        self._until_ns = 0                                              # its end
        self._began = 0.0                                               # when it began to yield, s
        self._seen_at = math.inf                                        # time of the last estimate, s
        self._settles_until = -math.inf                                 # time until which estimates settle, s
        self._share = 0.0                                               # of the command in the last output
        self._configure(settings, controller.model, friction)

    def _configure(self, settings: ContactSettings, model: RobotModel, friction: Friction | None) -> None:
        self.settings, self._model, self._friction = settings, model, friction
        self.watches = settings.reaction != "off"
        self._observer = MomentumObserver(model, settings.gain, friction) if self.watches else None
        self._detector = ContactDetector(model, settings.threshold, settings.release)
        self.external = np.zeros(model.nv)
        self.forget()

    def apply(self, settings: ContactSettings, model: RobotModel, friction: Friction | None) -> None:
        """Use these settings from now on. If they differ, the present reaction ends."""
        same_model = np.array_equal(model._block, self._model._block)    # a new object for the same payload
        if not (settings.same_as(self.settings) and same_model and same_friction(friction, self._friction)):
            self.drop("other parameters")
            self._configure(settings, model, friction)
            self.warm_up()

    def forget(self) -> None:
        """Restart the observation with the next state; a contact continues."""
        self._last: tuple[float, int] | None = None    # time of reception (s) and stamp (ns) of the last state
        self._before: Array | None = None              # effort sent, or measured, at it
        self._measured: Array | None = None

    def begin(self) -> None:
        """Restart without contact and reaction: after activation, a reset, or a change of robot or clock."""
        self.forget()
        self._detector.body, self._seen_at = None, math.inf
        self._watch()

    def lose(self) -> None:
        """Handle missing joint states: the effort until the next state is not the last answer. A contact at the next
        state counts as a new one.
        """
        self.forget()
        self._detector.body = None
        self.drop("joint states ceased")

    def _watch(self) -> None:
        self.state, self._interrupted, self._following = "watching", None, None

    def drop(self, cause: str) -> None:
        """End the reaction; the arm is held, and the rest of the motion is dropped."""
        if self.state == "watching":
            return
        self._watch()
        self._controller.let_go()
        self._controller.notice(f"the rest of the motion was dropped, and the robot is held: {cause} after a contact")

    @property
    def body(self) -> str | None:
        """The touched link."""
        return self._detector.body

    @property
    def contact(self) -> Touch | None:
        """The present contact; None without one."""
        return self._detector.contact(self._controller.state.q, self.external)

    @property
    def yields(self) -> bool:
        """Whether the arm yields to a contact."""
        return self.state == "yielding"

    def soft(self, gains: HoldGains) -> HoldGains:
        """The hold of a yielding arm: springs that slip at the thresholds, and less damping."""
        stiffness = gains.kp if gains.mass is None else gains.kp * np.diag(gains.mass)
        slips = np.divide(self._detector.threshold, stiffness, out=np.full(len(stiffness), np.inf),
                          where=stiffness > 0.0)
        return gains._replace(kd=SOFT * gains.kd, most=np.minimum(gains.most, slips))

    def take_changes(self) -> list[Contact]:
        """Changes of contacts since the last call, to be published."""
        changes, self._changes = self._changes, []
        return changes

    # ---- the next answer

    def prepare(self, now: float) -> None:
        """Continue the reaction, before an answer is computed."""
        controller = self._controller
        if self.state == "watching":
            return
        if controller.safety.latched:    # the arm is held
            self._watch()
        elif self.state == "yielding":
            rests = controller.rests()
            if now - self._began > self.settings.patience:
                self._stop(f"the contact lasts for more than {self.settings.patience:g} s ('contact.patience')")
            elif (np.abs(controller.state.v) > velocity_limits(self._model)).any():
                self._stop("the robot is led faster than its velocity limits")
            elif self.body is None and rests:
                self._return()
        elif controller.reference.followed is not self._following:    # a new trajectory or stream
            self._watch()
        elif controller.state.time_ns >= self._until_ns:
            self._next()

    def _next(self) -> None:
        """Enter the next state after the present motion has ended."""
        if self.state == "retracting" or self._interrupted is None:
            self._watch()
            return
        motion, time = self._interrupted
        if self.state == "returning":
            self._follow(Retimed(motion, time, 0.0, time + BRAKE, 1.0, 2.0 * BRAKE), 0.0)
            self._watch()
        else:
            end = max(time - self.settings.retract, 0.0)
            duration = PEAK_SPEED * (self._braked - end) + BRAKE
            self._follow(Retimed(motion, self._braked, 0.0, end, 0.0, duration), duration)
            self.state = "retracting"

    def _follow(self, motion: Interpolation, duration: float) -> None:
        controller = self._controller
        controller.reference.replace(controller.reference_ns, motion)
        self._following, self._until_ns = motion, controller.state.time_ns + round(duration * 1e9)

    def _return(self) -> None:
        """Return straight to the point where the motion was interrupted, unless there is a new reference."""
        controller, interrupted = self._controller, self._interrupted
        if interrupted is None or controller.reference.followed is not None:
            self._watch()
            return
        motion, time = interrupted
        present = np.array(controller.state.q)
        goal = self._turns.nearest(motion.sample(time).q, present)
        share = float(np.max(np.abs(goal - present) / (RETURN * velocity_limits(self._model)), initial=0.0))
        duration = max(PEAK_SPEED * share, controller.settings.safety.ramp_in, 2.0 * BRAKE)
        zero = np.zeros(self._model.nv)
        self._follow(Trajectory([Waypoint(duration, goal, zero, zero)], Reference.rest(present)), duration)
        self.state = "returning"

    # ---- after an answer

    def observe(self, now: float) -> None:
        """Update the observer with the answered state, and react to changes."""
        if self._observer is None:
            return
        controller, state = self._controller, self._controller.state
        share = controller.safety.modes.share
        if share < self._share - STEP:
            self._settles_until = now + SETTLING / self.settings.gain
        self._share = share
        change = self._observed(now, state.time_ns, state.q, state.v, controller.safety.output, state.measured_effort)
        if change is not None:
            self._changes = [*self._changes[1 - MOST_CHANGES:], change]
            if change.begins:
                self.counts["contacts"] += 1
                self._react(now, change.body)
        if self.state == "retracting" and not controller.safety.latched:
            reference = controller.reference.sample(now, controller.reference_ns)
            opposes = self.external * (0.0 if reference is None else reference.v) < 0.0
            if (opposes & (np.abs(self.external) > self._detector.limit(self._observer.friction_uncertainty))).any():
                self._stop("something opposes the way back")

    def _observed(self, now: float, time_ns: int, q: Array, v: Array, sent: Array | None, measured: Array | None
                  ) -> Contact | None:
        """The change of contacts, or None. sent, measured (nv,): the answer to this state, and its effort field."""
        controller = self._controller
        fresh = None if measured is self._measured else measured    # the same object is that of an earlier state
        self._measured = measured
        last, self._last = self._last, (now, time_ns)
        before, self._before = self._before, sent if self.settings.effort == "command" else fresh
        applied = before
        if self.settings.effort == "joint_states":
            applied = None if before is None or fresh is None else 0.5 * (before + fresh)
        interval = math.inf if last is None else (time_ns - last[1]) * 1e-9 if time_ns else now - last[0]
        assert self._observer is not None
        try:
            period = controller.statistics.period
            if applied is None or not 0.0 < interval <= (min(LATE * period, LONGEST) if period > 0.0 else LONGEST):
                self.counts["contact_gaps"] += last is not None
                self._observer.reset(q, v)
                self._settles_until = now + SETTLING / self.settings.gain
                self.external = np.zeros(len(v))
                self._tell_blindness(now)
                return None
            self.external = self._observer.update(interval, q, v, applied + self._known(now, q))
        except RbdError:    # overflow: no estimate for this interval
            self.forget()
            self._detector.restart(time_ns)
            return None
        self.counts["contact_estimates"] += 1
        self._seen_at = now
        if now < self._settles_until:
            self._detector.restart(time_ns)
            return None
        return self._detector.update(time_ns, q, self.external, self._observer.friction_uncertainty)

    def _known(self, now: float, q: Array) -> Array | float:
        """Effort (nv,) of the external wrenches in use."""
        wrenches = self._controller.fresh_wrenches(now) if self._controller.wrenched else None
        if wrenches is None:
            return 0.0
        zero = np.zeros(self._model.nv)
        known: Array = gravity_effort(self._model, q) - inverse_dynamics(self._model, q, zero, zero, wrenches)
        return known

    def _tell_blindness(self, now: float) -> None:
        if self._seen_at == math.inf:
            self._seen_at = now
        elif self._seen_at >= 0.0 and now - self._seen_at > BLIND:
            self._seen_at = -math.inf    # once
            reason = ("joint states have no efforts" if self.settings.effort == "joint_states" else
                   f"joint states come less than once per {LONGEST:g} s")
            self._controller.notice(f"contacts are not felt: {reason}")

    def _react(self, now: float, body: str) -> None:
        """Start the reaction of `contact.reaction` with the next answer."""
        controller, reaction = self._controller, self.settings.reaction
        if reaction == "report" or self.state == "yielding" or controller.safety.mode not in (
                "waiting", "ramp_in", "running"):
            return
        place = controller.reference.place(controller.reference_ns) if controller.safety.modes.share > 0.0 else None
        if reaction == "stop":
            self._stop(f"contact at '{body}'")
        elif self.state in ("braking", "retracting"):
            self._stop(f"contact at '{body}' on the way back")
        elif reaction == "yield" or place is None:
            if self.state != "returning":
                self._interrupted = None if place is None else place[:2]
            waits = "; the trajectory that waits is dropped" if controller.reference.waits else ""
            self.state, self._following, self._began = "yielding", None, now
            controller.let_go()
            self._say(now, f"contact at '{body}': yielding until it ends{waits}")
        elif controller.safety.laws.fading or self.state == "returning":
            self._stop(f"contact at '{body}' while the torque fades between two laws")
        else:
            motion, time, rate = place
            start = min(max(time, 0.0), motion.duration)
            rate = rate if start == time else 0.0
            self._interrupted, self._braked = (motion, start), start + 0.5 * rate * BRAKE
            self._follow(Retimed(motion, start, rate, self._braked, 0.0, BRAKE), BRAKE)
            self.state = "braking"
            self._say(now, f"contact at '{body}': going back along the trajectory, whose rest is dropped")

    def _stop(self, reason: str) -> None:
        self._controller.safety.stop()
        self._controller.notice(f"emergency stop, until ~/reset: {reason}")

    def _say(self, now: float, text: str) -> None:
        if now - self._told >= 1.0:
            self._told = now
            self._controller.notice(text)

    def warm_up(self) -> None:
        """Load or compile the code of an estimate and of a contact, without changing this object."""
        if not self.watches:
            return
        model, zero = self._model, np.zeros(self._model.nv)
        observer, q = MomentumObserver(model, 1.0, self._friction), model.neutral()
        for _ in range(2):
            observer.update(0.01, q, zero, zero)
        contact = ContactDetector(model, zero + 1.0, 0.0).update(1, q, zero + 2.0, zero)
        if contact is not None:
            wrench_and_point(model, contact)

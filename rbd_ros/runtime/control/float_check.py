"""The float test on the arm: hold poses, release one joint at a time, and judge how far it sinks or climbs.

Every joint is held by `g(q) + w (Kp (q_ref − q) − Kd v)` with its own weight w. Per pose and joint:

1. Sweep: the reference of the joint moves slowly, a little to both sides. The mean efforts sent in both directions are
   the required torque ± friction, so the torque missing in the model is known before the joint is released.
2. Release: w falls from 1 to 0 within `fade`, without a step of the effort, and the joint is observed for `time`.
3. Catch: w rises again, with the present position as reference. If the joint leaves `window` or becomes faster than
   `fastest`, the gains return immediately, and hold it in place with the missing torque of the sweep.

The test ends, and all joints are held in place, as soon as the mode is no longer `running`.
"""
from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.mass_matrix import mass_matrix
from ...core.errors import RbdError, shown, unknown_name
from ...core.model.robot_model import RobotModel
from ...core.motion.rest_to_rest import PEAK_SPEED, RestToRestMotion
from ..damping_gains import DampingGains, sampled_inertia
from ..inputs.joint_map import Turns
from ..parameters import Table, parameter, table_of, validate
from ..robot import joint_order
from ..safety import NOTHING, Command, NoCommand, SafetySettings
from ..safety.hold import HoldGains
from .float_verdict import FloatReport, Released, Sweep, report_of
from .torque_controller import STILL, Controller, Laws
from .torque_settings import TORQUE_TABLE, TorqueSettings

Array = NDArray[np.float64]
T = TypeVar("T")
Steps = Generator[None, None, T]    # of the test, one per state
SETTLE = 0.5          # s at rest before a sweep and before a release
SHORTEST = 1e-3       # s, of a move
SWEEPS = 2.0          # amplitudes per second of a sweep
PATIENCE = 5.0        # s beyond the expected duration of a part of a sweep
FEWEST = 5            # samples of a way of a sweep
MARGIN = 1.5          # windows between a pose and the limits of its joints


@dataclass(frozen=True, kw_only=True)
class FloatSettings(TorqueSettings):
    """Validated parameters of the float test. places (n, nv): poses in model order; tested: indices of joints."""

    kp: Array = parameter((0.0,), "Proportional gain that holds the poses, N m/rad or N/m.", name="gains.kp", lower=0.0,
                          upper=1e9)
    kd: Array = parameter((0.0,), "Derivative gain, N m s/rad or N s/m.", name="gains.kd", lower=0.0, upper=1e9)
    poses: tuple[str, ...] = parameter((), "Poses of the test, each a text of one number per joint, rad or m, in the "
                                       "order of `joints`; approached in straight lines of the joint space, which must "
                                       "be free. Empty: the pose in which the test is started.")
    joints_tested: tuple[str, ...] = parameter((), "Joints that are released, in this order; empty: all.",
                                               name="tested_joints")
    window: Array = parameter((0.035,), "Largest accepted drift of a released joint, rad or m; where it "
                              "is left, the gains return at once.", lower=1e-4, upper=1.0)
    fastest: Array = parameter((0.2,), "Speed at which the gains of a released joint return at once, rad/s or m/s.",
                               lower=1e-3)
    time: float = parameter(2.0, "How long a released joint is observed, s.", lower=0.01, upper=60.0)
    fade: float = parameter(0.5, "Time within which the gains of a joint are faded out and in, s.", lower=0.0,
                            upper=10.0)
    free_damping: float = parameter(0.0, "Share of gains.kd that a released joint keeps; slows what is to be seen.",
                                    lower=0.0, upper=1.0)
    sweep: Array = parameter((0.01,), "Amplitude of the slow motion both ways that tells gravity from friction before "
                             "a release, rad or m; 0: none, and drifts without causes.", lower=0.0, upper=0.2)
    speed: float = parameter(0.1, "Largest speed between poses, rad/s or m/s.", lower=1e-3, upper=2.0)
    tolerance: Array = parameter((0.1,), "Largest distance of a held joint from its reference, rad or m; beyond it the "
                                 "test ends, and the arm is held where it is.", lower=1e-3)
    uncertainty: Array = parameter((-1.0,), "Uncertainty of the model's gravity torque, N m or N: a joint that drifts "
                                   "farther than this and the friction of the description explain fails, also within "
                                   "the window. -1: unknown.", lower=-1.0)
    places: Array
    tested: tuple[int, ...]

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> FloatSettings:
        """Validate parameter values by name; missing ones get their defaults. Raises `RbdError`."""
        values = validate(FLOAT_TABLE, values)
        if model.nq != model.nv:
            raise RbdError("the float test needs joints of one coordinate each")
        order = joint_order(values["joints"], model)[2]
        places = np.array([_pose(text, model, order) for text in values["poses"]]).reshape(-1, model.nv)
        names = values["tested_joints"] or model.velocity_names
        for name in names:
            if name not in model.velocity_names:
                raise unknown_name("joint in parameter 'tested_joints':", name, model.velocity_names)
        tested = tuple(model.velocity_names.index(name) for name in names)
        settings = FloatSettings(places=places, tested=tested, **FloatSettings.fields_from(values, model))
        for text, place in zip(values["poses"], places, strict=True):
            if problem := settings.near_a_limit(place):
                raise RbdError(f"parameter 'poses', '{text}': {problem}")
        return settings

    def near_a_limit(self, q: Array) -> str:
        """Tested joint that might meet a limit when it is released at q, "" if none."""
        model, reach = self.model, MARGIN * self.window + self.sweep
        for j in self.tested:
            low, high = model.position_lower[j] + reach[j], model.position_upper[j] - reach[j]
            if not low <= q[j] <= high:
                return (f"'{model.velocity_names[j]}' is at {q[j]:.3g}; to be released it has to be within {low:.3g} "
                        f"and {high:.3g} (rad or m): its limits less {MARGIN:g} windows and a sweep")
        return ""

    def damping_gains(self) -> DampingGains | None:
        model = self.model
        return DampingGains("gains.kd", model.joint_names, self.kd, sampled_inertia(model),
                            model.armature > 0.0) if self.kd.any() else None


FLOAT_TABLE: Table = (*TORQUE_TABLE, *table_of(FloatSettings, SafetySettings))


def _pose(text: str, model: RobotModel, order: NDArray[np.intp]) -> Array:
    try:
        numbers = np.array([float(word) for word in text.replace(",", " ").split()])
    except ValueError:
        numbers = np.zeros(0)
    if len(numbers) != model.nv or not np.isfinite(numbers).all():
        raise RbdError(f"parameter 'poses': expected texts of {model.nv} numbers, one per joint, got {shown(text)}")
    return numbers[order]


class Held(NamedTuple):
    """How the joints are held: reference q, v and weights of the gains (nv,)."""

    q: Array
    v: Array
    weight: Array

    @staticmethod
    def at(q: Array) -> Held:
        """At rest at q, with all gains."""
        return Held(np.array(q), np.zeros(len(q)), np.ones(len(q)))

    def with_joint(self, j: int, q: float, v: float = 0.0, weight: float = 1.0) -> Held:
        """A copy with this reference and weight of joint j."""
        changed = [np.array(each) for each in self]
        for array, value in zip(changed, (q, v, weight), strict=True):
            array[j] = value
        return Held(*changed)


class FloatLaws(Laws):
    """g(q) + w (Kp (q_ref − q) + Kd (v_ref − v)), without g if the robot compensates gravity itself."""

    settings: FloatSettings

    def __init__(self, settings: FloatSettings) -> None:
        super().__init__(settings)
        self._hold_gains = self.bounded(settings.kp, settings.kd, settings.safety.effort_limit)

    def hold_gains(self, q: Array) -> HoldGains | None:
        return self._hold_gains

    def own(self, q: Array) -> Array:
        """The sent gravity torque (nv,)."""
        return self._zero if "gravity" in self.settings.compensates else self.gravity(q)

    def effort(self, q: Array, v: Array, held: Held, share: float) -> Array:
        """The effort (nv,); share: factor of the feedback."""
        s = self.settings
        damped = held.weight + (1.0 - held.weight) * s.free_damping
        feedback: Array = held.weight * s.kp * (held.q - q) + damped * s.kd * (held.v - v)
        return self.own(q) + share * feedback


class FloatCheck(Controller[FloatLaws]):
    """Holds the pose of its activation; `start` begins the test, whose result `take_report` returns once."""

    settings: FloatSettings

    def __init__(self, model: RobotModel, settings: FloatSettings) -> None:
        super().__init__(model, settings)
        self._turns = Turns(model)
        self._held: Held | None = None
        self._before: Held | None = None    # of the cycle before
        self._procedure: Steps[None] | None = None
        self._report: FloatReport | None = None
        self._verdict = ""
        self.phase = ""                     # present step of the test, "" without one

    # ---- the controller

    def make_laws(self, settings: FloatSettings) -> FloatLaws:
        return FloatLaws(settings)

    def apply(self, settings: TorqueSettings) -> None:
        self._abort("parameters were changed")
        super().apply(settings)

    def clear(self) -> None:
        self._abort("joint states began anew")
        self._held = None

    def deactivate(self) -> None:
        self._abort("the node was deactivated")
        super().deactivate()

    def prepare(self, now: float) -> None:
        mode, self._before = self.safety.mode, self._held
        if self._held is None or mode not in ("ramp_in", "running", "ramp_out"):
            self._abort(f"the torque is that of mode '{mode}'" + (f": {self._problem}" if self._problem else ""))
            self._held = Held.at(self.state.q)
        elif self._procedure is None:
            return
        elif self.loop.share < 1.0:
            self._abort("joint states are too old for feedback")
        elif mode == "running" and next(self._procedure, self) is self:
            self._procedure, self.phase = None, ""

    def command(self, now: float, laws: FloatLaws) -> Command | NoCommand:
        held = self._near(self._held)
        if held is None:
            return NOTHING
        if self.safety.mode != "ramp_out" and (problem := self._astray(held)):
            self._held = None
            self._abort(problem)
            return NoCommand(problem)
        return Command(laws.effort(self.state.q, self.state.v, held, self.loop.share))

    def again(self, laws: FloatLaws) -> tuple[Array, ...] | None:
        held = self._near(self._before)
        return None if held is None else (laws.effort(self.state.q, self.state.v, held, self.loop.share),)

    def warm_up(self) -> None:
        super().warm_up()
        q = self.model.neutral()
        mass_matrix(self.model, q)
        self.safety.laws.newest.effort(q, self._zero, Held.at(q), 1.0)

    def report(self) -> dict[str, Any]:
        return super().report() | {"float_phase": self.phase, "float_verdict": self._verdict}

    def _near(self, held: Held | None) -> Held | None:
        """The references, with those of continuous joints within half a turn of the state."""
        return held if held is None or not self._turns.any else held._replace(
            q=self._turns.nearest(held.q, self.state.q))

    def _astray(self, held: Held) -> str:
        """Joint with full gains that is farther from its reference than the tolerance, "" if none."""
        distance = np.where(held.weight >= 1.0, np.abs(held.q - self.state.q), 0.0)
        over = distance / self.settings.tolerance
        j = int(np.argmax(over))
        return "" if over[j] <= 1.0 else (
            f"joint '{self.model.velocity_names[j]}' is {distance[j]:.3g} (rad or m) from its reference, at most "
            f"{self.settings.tolerance[j]:.3g} ('tolerance'): larger 'gains.kp', or a model nearer to the robot")

    # ---- the test

    def start(self) -> str:
        """Begin the test; returns the reason if it cannot begin, else ""."""
        settings = self.settings
        held = self._held
        if self._procedure is not None:
            return f"the test runs already: {self.phase}"
        if self.safety.mode != "running" or held is None:
            return f"the arm is not held yet: mode '{self.safety.mode}', expected 'running'"
        if not (settings.kp > 0.0).all():
            return "parameter 'gains.kp' is 0 for a joint: gains hold the joints that are not released"
        if np.abs(self.state.v).max() > STILL:
            return "the arm moves"
        if not len(settings.places) and (problem := settings.near_a_limit(self.state.q)):
            return problem
        self._report, self._verdict, self.phase = None, "", "begins"
        self._procedure = self._test()
        return ""

    def take_report(self) -> FloatReport | None:
        """The report of a test that has ended since the last call."""
        report, self._report = self._report, None
        return report

    def _abort(self, reason: str) -> None:
        """End a test, and hold the joints where they are."""
        if self._procedure is None:
            return
        self._procedure, self.phase = None, ""
        self._finish(FloatReport((), (), {}, None, reason))
        if self._held is not None:
            for j in np.flatnonzero(self._held.weight < 1.0):
                self._catch(int(j))
            self._held = self._held._replace(v=self._zero)

    def _finish(self, report: FloatReport) -> None:
        self._report, self._verdict = report, report.text

    @property
    def _time(self) -> float:
        """Time of the robot, s."""
        return self.state.time_ns * 1e-9

    @property
    def _hold(self) -> Held:
        held = self._near(self._held)
        assert held is not None
        return held

    def _test(self) -> Steps[None]:
        """The test, step by step: one per joint state."""
        settings = self.settings
        released: list[Released] = []
        places = settings.places if len(settings.places) else [np.array(self._hold.q)]
        for k, place in enumerate(places):
            for j in settings.tested:
                step = f"pose {k + 1} of {len(places)}, {self.model.velocity_names[j]}"
                self.phase = f"{step}: approach"
                yield from self._move(place)
                self.phase = f"{step}: sweep"
                sweep = None
                if settings.sweep[j] > 0.0:
                    sweep = yield from self._sweep(j)
                    yield from self._move(place)
                self.phase = f"{step}: release"
                released.append((yield from self._release(j, sweep)))
        self.phase = "return"
        yield from self._move(places[-1])
        self._finish(report_of(self.model, released, settings.window, settings.uncertainty))

    def _move(self, goal: Array) -> Steps[None]:
        """Move to the goal (nv,) from rest to rest, and rest there."""
        begin, start = self._time, self._hold.q
        end = self._turns.nearest(goal, start)
        duration = PEAK_SPEED * float(np.abs(end - start).max()) / self.settings.speed
        motion = RestToRestMotion([start, end], [max(duration, SHORTEST)], [0.0, SETTLE])
        while (passed := self._time - begin) < motion.duration:
            now = motion(passed)
            self._held = Held(now.q, now.v, np.ones(len(end)))
            yield
        self._held = Held.at(end)

    def _missing(self, j: int) -> float:
        """The last effort sent to joint j, minus the sent gravity torque."""
        output = self.safety.output
        assert output is not None
        return float(output[j] - self.safety.laws.newest.own(self.state.q)[j])

    def _sweep(self, j: int) -> Steps[Sweep | None]:
        """Move joint j slowly a sweep to both sides; returns a `Sweep`, None if the joint does not follow."""
        amplitude, slack = float(self.settings.sweep[j]), 0.5 * float(self.settings.tolerance[j])
        centre, begin, reference = float(self.state.q[j]), self._time, float(self._hold.q[j])
        speed, samples = SWEEPS * amplitude, []
        for direction, goal, counts in ((1.0, amplitude, False), (-1.0, -amplitude, True), (1.0, amplitude, True)):
            direction_samples: list[float] = []
            begin = last = self._time
            while direction * (self.state.q[j] - centre - goal) < 0.0:
                now = self._time
                reference, last = reference + direction * speed * (now - last), now
                ahead = direction * (reference - self.state.q[j])
                if ahead > slack or now - begin > 2.0 * (amplitude + slack) / speed + PATIENCE:
                    return None
                self._held = self._hold.with_joint(j, reference)
                yield
                if abs(self.state.q[j] - centre) < 0.5 * amplitude and direction * self.state.v[j] > 0.25 * speed:
                    direction_samples.append(self._missing(j))
            if counts:
                samples.append(np.array(direction_samples))
        self._held = self._hold.with_joint(j, reference)
        if min(map(len, samples)) < FEWEST:
            return None
        down, up = (float(values.mean()) for values in samples)
        deviation = 0.5 * math.hypot(*(float(values.std()) for values in samples))
        return Sweep(0.5 * (up + down), deviation, max(0.5 * (up - down), 0.0))

    def _release(self, j: int, sweep: Sweep | None) -> Steps[Released]:
        """Fade out the gains of joint j, observe it, and catch it."""
        settings = self.settings
        gravity = float(self.safety.laws.newest.gravity(self.state.q)[j])
        pose, begin, exceeded = np.array(self.state.q), self._time, ""
        while (passed := self._time - begin) < settings.fade + settings.time:
            weight = max(1.0 - passed / settings.fade, 0.0) if settings.fade > 0.0 else 0.0
            self._held = self._hold.with_joint(j, self._hold.q[j], weight=weight)
            yield
            if abs(self.state.q[j] - pose[j]) > settings.window[j]:
                exceeded = "window"
            elif abs(self.state.v[j]) > settings.fastest[j]:
                exceeded = "speed"
            if exceeded:
                break
        passed = self._time - begin
        displacement = float(self.state.q[j] - pose[j])
        if exceeded:
            self._catch(j, None if sweep is None else sweep.missing)
        else:
            yield from self._fade_in(j)
        observed = max(passed - settings.fade, 0.0)
        return Released(j, pose, gravity, sweep, displacement, observed, passed - observed, exceeded)

    def _catch(self, j: int, missing: float | None = None) -> None:
        """Restore all gains of joint j immediately, with the feedback torque `missing`, by default the present one."""
        held, q, kp = self._hold, float(self.state.q[j]), float(self.settings.kp[j])
        ahead = held.weight[j] * (held.q[j] - q) if missing is None or kp <= 0.0 else missing / kp
        bound = 0.5 * float(self.settings.tolerance[j])
        self._held = held.with_joint(j, q + min(max(float(ahead), -bound), bound))

    def _fade_in(self, j: int) -> Steps[None]:
        """Fade in the gains of joint j, with its present position as reference."""
        begin, place = self._time, float(self.state.q[j])
        while (passed := self._time - begin) < self.settings.fade:
            self._held = self._hold.with_joint(j, place, weight=passed / self.settings.fade)
            yield
        self._held = self._hold.with_joint(j, place)

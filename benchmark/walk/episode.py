"""One episode: a controller from activation through random events to a quiet time, each output of it judged."""
from __future__ import annotations

from collections import Counter, deque
from typing import Any

import numpy as np

from rbd_ros.core.errors import RbdError
from rbd_ros.runtime.inputs.references import Point
from rbd_ros.runtime.inputs.rejections import TAKEN, Verdict
from rbd_ros.runtime.safety import Command

from .arms import LONGEST, Arm, arm
from .judge import Judge
from .motion import Array, Motion
from .recorder import Recorder

BEGIN = 1000 * 1_000_000_000    # ns
# N m/s of undisturbed torques, at most
SMOOTH = {"feedforward": 2500.0, "flatness": 500.0, "elastic": 2500.0, "series": 2500.0}
QUIET, COMPARED = 1.2, 20       # s until a disturbed controller is as a fresh one; cycles that are compared then
STEPS = 800                     # cycles with events, usually
EVENTS = {"outlier": 5, "gap": 3, "long_gap": 2, "stamp": 2, "pause": 3, "elsewhere": 3, "jump": 2, "trajectory": 2,
          "wrench": 2, "parameters": 10, "stop": 1, "leave": 2, "malformed": 2, "bare": 2, "plain": 1, "old": 2}
ODDS = np.cumsum(list(EVENTS.values())) / sum(EVENTS.values())
OFTEN = 0.03                    # events per cycle


class Episode:
    """`run` walks `steps` cycles with events, then the quiet time. `violations` tell what was wrong, and when."""

    def __init__(self, name: str, seed: int, number: int) -> None:
        self._arm: Arm = arm(name)
        self._rng = np.random.default_rng([seed, number, len(name)])
        self._values = self._arm.values | {"plausible_velocity": [float(self._rng.choice([2.0, np.inf]))]}
        self._controller = self._arm.controller(self._arm.settings(self._values))
        self._judge = Judge(self._controller, Recorder(self._controller), SMOOTH[name])
        self._recorder = self._judge.recorder
        self._names = list(self._arm.model.joint_names)
        self._motion = Motion(len(self._names), self._rng)
        self._now, self._shift = 1.0, 0            # s; ns that stamps are off
        self._silent_until = self._pause_until = self._stopped_until = self._away_until = 0.0
        self._plain_until = 0.0                    # references without jerk and snap until then
        self._bare_until = 0.0                     # states without velocities
        self._old_until = 0.0                      # states that are too old, some of them
        self._streamed_at = self._begun_at = -np.inf
        self._trajectory, self._streamed = False, self._motion.offset    # what is followed, and from where
        self._moving_until = 0.0                   # torques move by themselves until then
        self._error: Array | None = None           # of the next state
        self._answer: Command | Verdict = TAKEN    # the last one
        self.steps = 0
        self.history: deque[str] = deque(maxlen=12)    # events, with their times

    @property
    def violations(self) -> list[str]:
        return self._judge.violations

    @property
    def seen(self) -> Counter[str]:
        return self._judge.seen

    def run(self, steps: int = STEPS) -> None:
        self._activate()
        for _ in range(steps):
            self._now += float(self._rng.choice([1e-3, 2e-3, 4e-3]))
            if self._rng.random() < OFTEN:
                event = [*EVENTS][int(np.searchsorted(ODDS, self._rng.random()))]
                self.history.append(f"{self._now:.4f} {event}")
                getattr(self, f"_on_{event}")()
            self._go_on()
            if self.violations:
                return
        self._rest()

    # ---- a cycle

    def _go_on(self) -> None:
        now, judge, controller = self._now, self._judge, self._controller
        if judge.stopped and now > self._stopped_until:
            judge.reset(now)
            controller.reset(now)
        if judge.leaving and now > self._away_until and (controller.finished or now > self._away_until + 1.0):
            self._finish()
        if not judge.active and now > self._away_until + 0.02:
            self._activate()
        self._recorder.clear()
        judge.watched(now, _efforts(controller.watchdog(now)))
        self._stream(controller)
        if now < self._silent_until:
            return
        self._recorder.clear()
        self._answer = taken = self._state(controller)
        self.steps += 1
        if not judge.active:
            if isinstance(taken, Command):
                judge.violations.append(f"t = {now:.4f} s: output {taken} of an inactive controller")
        elif isinstance(taken, Command):
            judge.updated(now, list(taken.efforts))

    def _state(self, controller: Any) -> Command | Verdict:
        now, motors = self._now, self._arm.motors
        q, v = self._motion.measured(now)
        if self._error is not None:
            q, v, self._error = q + self._error[0], v + self._error[1], None
            self._judge.jumped(now)
        if now < self._moving_until:
            self._judge.jumped(now)
        stamp = BEGIN + round(now * 1e9) + self._shift
        if motors:
            second = np.full(len(motors) - len(q), 300.0)
            controller.on_motor_state(now, stamp, motors, np.concatenate([q + 0.002, second]),
                                      np.concatenate([v, 0.0 * second]))
        age = float(self._rng.uniform(0.0, 0.03)) if now < self._old_until else 0.0
        found: Command | Verdict = controller.on_state(now, stamp, self._names, q,
                                                       () if now < self._bare_until else v, (), age)
        return found

    def _stream(self, controller: Any, judged: bool = True) -> None:
        now = self._now
        timeout = controller.settings.reference_timeout
        if self._streamed_at > -np.inf and 0.0 <= now - self._streamed_at - timeout < 5e-3:
            self._judge.jumped(now)    # the robot is to stand still at once
        if now < self._pause_until:
            return
        begins = self._trajectory or now - self._streamed_at > timeout
        rows: list[Any] = [*self._motion(now)]
        if now < self._plain_until:
            rows = rows[:3]
        taken = controller.on_reference(now, 0, self._names, *rows)
        if not (taken and judged):
            return
        if not begins and (now - self._streamed_at > 0.01 or not np.array_equal(self._motion.offset, self._streamed)):
            self._judge.jumped(now)
        self._streamed = self._motion.offset
        if begins:    # once more while the last one still fades in: as if it had jumped
            (self._judge.jumped if now - self._begun_at < 2.0 * LONGEST + 0.1 else self._judge.soft)(now)
            self._judge.soft(now)
            self._begun_at = now
        self._streamed_at, self._trajectory = now, False

    # ---- events

    def _on_outlier(self) -> None:
        """One state, position or velocity, of one joint or all."""
        size = float(self._rng.choice([0.1, 1.0, 10.0, 1e3, 1e6, 1e80]))
        self._error = self._rng.normal(scale=size, size=(2, len(self._names)))
        self._error[int(self._rng.integers(3)) % 2] = 0.0
        self._judge.jumped(self._now)

    def _on_gap(self) -> None:
        self._silent_until = self._now + float(self._rng.uniform(0.0, 0.03))

    def _on_long_gap(self) -> None:
        self._silent_until = self._now + float(self._rng.uniform(0.03, 0.4))

    def _on_stamp(self) -> None:
        """From here on stamps are others: backwards, ahead by less than counts as a leap, or by more."""
        self._shift += round(float(self._rng.choice([0.9, -0.9, 5.0, -5.0, 1e6, -1e-3])) * 1e9)
        self._judge.jumped(self._now)

    def _on_pause(self) -> None:
        """Of the stream of references, which may end before it counts as one."""
        self._pause_until = self._now + float(self._rng.uniform(0.0, 0.3))

    def _on_elsewhere(self) -> None:
        """The stream ends and begins elsewhere."""
        self._pause_until = self._now + LONGEST
        self._motion.offset = self._rng.uniform(-0.7, 0.7, len(self._names))

    def _on_jump(self) -> None:
        self._motion.offset = self._rng.uniform(-0.7, 0.7, len(self._names))
        self._judge.jumped(self._now)

    def _on_trajectory(self) -> None:
        """For some time, then the stream begins anew."""
        now, count = self._now, int(self._rng.integers(1, 4))
        goal = self._motion(now)[0]
        points = []
        for k in range(count):
            goal = goal + self._rng.uniform(-0.1, 0.1, len(goal))
            points.append(Point(0.3 * (k + 1), goal, () if self._rng.random() < 0.5 else 0.0 * goal))
        if self._controller.on_trajectory(now, 0, self._names, points):
            self._trajectory = True
            self._judge.soft(now)
        self._judge.jumped(now)
        self._pause_until = now + float(self._rng.uniform(0.0, 0.5))
        self._moving_until = max(self._pause_until, now + 0.3 * count) + 0.05

    def _on_wrench(self) -> None:
        body = self._arm.model.body_names[-1]
        self._controller.on_wrenches(self._now, [(body, self._rng.normal(scale=3.0, size=6))])
        self._moving_until = max(self._moving_until, self._now + 0.15)    # until it has timed out

    def _on_parameters(self) -> None:
        others, changed = self._arm.others, dict(self._values)
        for i in self._rng.integers(len(others), size=int(self._rng.integers(1, 5))):
            name, values = others[int(i)]
            changed[name] = values[int(self._rng.integers(len(values)))]
        try:
            settings = self._arm.settings(changed)
        except RbdError:    # what does not go together
            return
        self.history.append(f"  {({name: to for name, to in changed.items() if self._values.get(name) != to})}")
        if changed.get("reference_timeout") != self._values.get("reference_timeout"):
            self._judge.jumped(self._now)    # the stream may have been silent for longer than the new one
        self._values = changed
        self._controller.apply(settings)
        self._judge.changed(self._now)
        # linearizing feedback with fast poles answers any error with all that the limits let through
        if changed.get("mode") == "feedback_linearization":
            self._judge.smooth = np.inf

    def _on_stop(self) -> None:
        self._controller.safety.stop()
        self._judge.stop()
        self._stopped_until = self._now + float(self._rng.uniform(0.0, 0.2))

    def _on_leave(self) -> None:
        if self._judge.active and not self._judge.leaving:
            self._controller.deactivate()
            self._judge.deactivate(self._now)
            self._away_until = self._now + float(self._rng.uniform(0.0, 0.2))

    def _on_malformed(self) -> None:
        """Nothing of it counts."""
        q, bad = self._motion(self._now)[0], float(self._rng.choice([np.nan, np.inf, -np.inf, 1e200]))
        wrong = np.where(np.arange(len(q)) == self._rng.integers(len(q)), bad, q)
        taken = [self._controller.on_reference(self._now, 0, self._names, wrong),
                 self._controller.on_reference(self._now, 0, self._names[1:], q[1:]),
                 self._controller.on_trajectory(self._now, 0, self._names, [Point(0.1, q), Point(0.1, q)]),
                 self._controller.on_wrenches(self._now, [("nothing", np.zeros(6))]),
                 self._controller.state.accept(self._now, 0, self._names, wrong)]
        if any(taken):
            self._judge.violations.append(f"t = {self._now:.4f} s: took what is malformed: {taken}")

    def _on_bare(self) -> None:
        """States without velocities."""
        self._bare_until = self._now + float(self._rng.uniform(0.0, 0.1))
        self._moving_until = max(self._moving_until, self._bare_until)

    def _on_old(self) -> None:
        """States that were under way for long: feedback goes, and comes back within the ramp."""
        self._old_until = self._now + float(self._rng.uniform(0.0, 0.1))
        self._moving_until = max(self._moving_until, self._old_until + LONGEST + 0.02)

    def _on_plain(self) -> None:
        """References without jerk and snap."""
        self._plain_until = self._now + float(self._rng.uniform(0.0, 0.1))

    # ---- life

    def _activate(self) -> None:
        self._controller.activate(self._now)
        self._judge.activate(self._now)
        self._streamed_at = -np.inf

    def _finish(self) -> None:
        self._recorder.clear()
        self._judge.finished(self._now, _efforts(self._controller.finish(self._now)))
        self._away_until = self._now

    def _rest(self) -> None:
        """No events: after `QUIET` the answers are those of a controller that knows nothing of what was before."""
        judge = self._judge
        self._stopped_until = self._away_until = self._silent_until = self._pause_until = 0.0
        self._plain_until = self._bare_until = self._old_until = 0.0
        if judge.leaving:
            self._finish()
        if not judge.active:
            self._activate()
        fresh = self._arm.controller(self._arm.settings(self._values))
        fresh.activate(self._now)
        end = self._now + QUIET
        compared = 0
        while compared < COMPARED and not self.violations:
            self._now += 4e-3
            self._go_on()
            self._stream(fresh, judged=False)
            answer = self._state(fresh)
            if self._now > end:
                compared += 1
                self._compare(fresh, answer)

    def _compare(self, fresh: Any, wanted: Command | Verdict) -> None:
        answer, modes = self._answer, (self._controller.safety.mode, fresh.safety.mode)
        if modes == ("waiting", "waiting"):    # the springs of the hold remember where they slipped
            return
        if not (answer and wanted) or modes[0] != modes[1] or not all(map(np.array_equal, *(
                [np.zeros(0) if each is None else each for each in command[:3]] for command in (answer, wanted)))):
            self._judge.violations.append(f"t = {self._now:.4f} s: {modes[0]} {answer}, a fresh controller is "
                                          f"{modes[1]} {wanted}")
        self._judge.seen["as fresh"] += 1


def _efforts(command: Command | None) -> list[Array] | None:
    return None if command is None else list(command.efforts)

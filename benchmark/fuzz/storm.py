"""The storm: bursts of good and hostile messages, pauses, stops, other parameters and transitions, from one seed."""
from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import GetState
from std_msgs.msg import Bool

from .exam import Exam
from .hostile import Hostile
from .peer import Peer, Violation
from .targets import LONGEST, RAMP, Process, Target
from .verdict import Ledger

CHAPTER = 12000   # messages between two checks of counters and answers
STARTS = 600.0    # s: with kernels to be compiled
STEP = 2e-3       # rad by which the arm's phase advances per message


def mixed(states: float, motors: float, references: float, trajectories: float, wrenches: float) -> dict[str, float]:
    """Weights of topics; node cartesian has others than references."""
    return {"state": states, "motors": motors, "reference": references, "trajectory": trajectories,
            "wrenches": wrenches, **dict.fromkeys(("goal", "twist", "course", "push", "pushed"), 0.3 * references)}


class Storm:
    """Attacks one node with a number of messages. `run` returns a row of figures; violations are in the peer's list."""

    def __init__(self, target: Target, folder: Path, seed: int, show: Callable[[str], None]) -> None:
        self._target, self._show = target, show
        self._process = Process(target, folder)
        self._peer = Peer(target, self._process, folder, seed)
        self._rng = np.random.default_rng([seed, sum(target.name.encode())])
        self._make = Hostile(target, self._rng)
        self._exam = Exam(self._peer)
        self._before: dict[str, int] = {}    # counters of the last look
        self._efforts = 0                    # heard before the last configuration
        self._rejected = self._hurled = 0
        self._acts = {self._stream: 6, self._hostile: 6, self._burst: 2, self._pause: 1, self._stop: 1,
                      self._parameters: 2, self._life: 1}
        if target.executable == "cartesian":
            self._acts[self._guide] = 1

    def run(self, messages: int) -> dict[str, Any]:
        begin, peer = time.monotonic(), self._peer
        try:
            with contextlib.suppress(Violation):
                self._attack(messages)
            self._rejected += int(peer.diagnostics.get("rejected_total", 0))
        finally:    # of the node, then of the middleware, whatever went wrong here
            code = self._process.end()
            peer.spin(0.1)
            peer.close()
        if code != 0:
            peer.offend(f"exit code {code} after SIGINT")
        self._check_log()
        return {"node": self._target.name, "messages": self._hurled, "sent": peer.sent, "states": peer.states,
                "efforts": peer.outputs.efforts, "rejected": self._rejected, "seconds": time.monotonic() - begin,
                "exams": len(self._exam.tries), "tries": sum(self._exam.tries), "violations": list(peer.violations)}

    def _attack(self, messages: int) -> None:
        peer = self._peer
        self._begin()
        self._exam.learn()
        chapters = max(round(messages / CHAPTER), 2)
        for chapter in range(chapters):
            until = messages * (chapter + 1) // chapters
            while self._hurled < until and len(peer.violations) < 10:
                act = self._rng.choice(len(self._acts), p=np.array([*self._acts.values()]) / sum(self._acts.values()))
                [*self._acts][act]()
                self._show(f"{self._target.name}: {self._hurled} of {messages} messages"
                           f", {peer.outputs.efforts} efforts, {len(peer.violations)} violations")
            self._calm()
            self._look()
            # node cartesian goes on holding where the last goal was
            self._exam.compare(anew=bool(chapter % 2) or self._target.executable == "cartesian")
            self._look()
            if chapter % 4 == 3:
                self._configure_anew()

    # ---- acts

    def _batch(self, count: int, hostile: float, topics: dict[str, float]) -> None:
        """Messages at once; then a good state is answered, which shows that they have been dealt with."""
        keys = [key for key in topics if key in self._peer.topics]
        weights = np.array([topics[key] for key in keys])
        self._hurled += count
        for _ in range(count):
            self._make.phase += STEP
            topic = keys[self._rng.choice(len(keys), p=weights / weights.sum())]
            self._peer.send(self._make.sent(topic, self._peer.stamp(), bool(self._rng.random() < hostile)))
        if self._peer.looks:
            self._peer.answer(self._make)
        else:
            self._peer.spin(2e-3)

    def _stream(self) -> None:
        """Mostly good ones, in small batches, as on a robot."""
        for _ in range(int(self._rng.integers(5, 40))):
            self._batch(int(self._rng.integers(2, 8)), 0.1, mixed(4.0, 3.0, 3.0, 0.1, 0.3))

    def _hostile(self) -> None:
        for _ in range(int(self._rng.integers(2, 10))):
            self._batch(int(self._rng.integers(5, 50)), 0.8, mixed(3.0, 2.0, 2.0, 0.7, 1.0))

    def _burst(self) -> None:
        """Of one kind."""
        self._batch(int(self._rng.integers(100, 400)), 0.5,
                    {str(self._rng.choice(self._peer.topics, p=None)): 1.0})

    def _pause(self) -> None:
        """Longer than the timeouts: all of them, or those of states alone."""
        seconds = float(self._rng.uniform(0.1, 0.4))
        self._peer.note(f"pause of {seconds:.3f} s")
        self._peer.spin(seconds)

    def _stop(self) -> None:
        """An emergency stop, its release by a message, which releases nothing, and by the service."""
        for data in self._rng.random(int(self._rng.integers(1, 5))) < 0.7:
            self._peer.note(f"emergency stop {data}")
            self._peer.stops.publish(Bool(data=bool(data)))
            self._hurled += 1
        self._batch(int(self._rng.integers(5, 60)), 0.3, mixed(3.0, 3.0, 2.0, 0.5, 0.5))
        self._peer.reset()

    def _parameters(self) -> None:
        """Some others, good and bad, while states come; most are taken back soon."""
        for _ in range(int(self._rng.integers(1, 6))):
            good = self._rng.random() < 0.7
            among = self._target.valid if good else self._target.invalid
            changes = dict(among[i] for i in self._rng.integers(len(among), size=int(self._rng.integers(1, 4))))
            results = self._peer.set(changes)
            if not good and any(result.successful for result in results):
                self._peer.offend(f"accepted parameters without sense: {changes}")
            self._batch(int(self._rng.integers(5, 40)), 0.3, mixed(4.0, 3.0, 3.0, 0.3, 0.3))
        if self._rng.random() < 0.8:
            self._restore()

    def _guide(self) -> None:
        """Hand guiding, whatever comes meanwhile."""
        for on in (True, False):
            self._peer.guide(on)
            self._batch(int(self._rng.integers(5, 60)), 0.3, mixed(4.0, 0.0, 1.0, 0.0, 0.0))

    def _life(self) -> None:
        """Transitions, possible and impossible ones, while messages go on."""
        def goes_on() -> None:
            stamp = self._peer.stamp()
            self._peer.send(self._make.sent("state", stamp, False))

        for _ in range(int(self._rng.integers(1, 4))):
            transition = int(self._rng.choice([
                Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVATE, Transition.TRANSITION_CONFIGURE, 99]))
            self._peer.change(transition, goes_on)
            self._batch(int(self._rng.integers(1, 30)), 0.5, mixed(3.0, 1.0, 2.0, 0.3, 0.3))
        if not self._peer.looks and not self._peer.change(Transition.TRANSITION_ACTIVATE, goes_on):
            self._peer.offend("activation failed")

    # ---- between them

    def _begin(self) -> None:
        """All are connected, and the outputs begin together."""
        peer = self._peer
        peer.until(lambda: peer.call(GetState, GetState.Request(), patience=STARTS).current_state.id ==
                   State.PRIMARY_STATE_ACTIVE, "activation", patience=STARTS)
        self._connect()

    def _connect(self) -> None:
        peer = self._peer
        peer.until(lambda: all(p.get_subscription_count() for p in peer.publishers.values()), "subscriptions")
        peer.looks = True
        peer.until(lambda: peer.outputs.connected, "outputs",
                   lambda: peer.send(self._make.sent("state", peer.stamp(), False)))
        peer.change(Transition.TRANSITION_DEACTIVATE)
        peer.spin(0.1)
        peer.outputs.restart()
        peer.change(Transition.TRANSITION_ACTIVATE)
        peer.answer(self._make)

    def _restore(self) -> None:
        """The parameters as they were."""
        names = {name for name, _ in self._target.valid}
        wanted = {name: self._target.parameters.get(name) for name in names}
        first = {name: value for name, value in wanted.items() if value is not None and name != "payload.body"}
        for result in [*self._peer.set(first), *self._peer.set({"payload.body": ""})]:
            if not result.successful:
                self._peer.offend(f"parameters cannot be taken back: {result.reason}")

    def _calm(self) -> None:
        self._restore()
        self._peer.reset()
        self._peer.spin(2.0 * (LONGEST + RAMP))

    def _look(self) -> None:
        """Compare the counters with what was sent, and the outputs with each other."""
        peer = self._peer
        heard, end = peer.heard, time.monotonic() + 15.0
        while time.monotonic() < end:
            heard = peer.heard
            peer.until(lambda heard=heard: peer.heard > heard, "diagnostics",
                       lambda: peer.send(self._make.sent("state", peer.stamp(), False)))
            if peer.ledger.complete(self._counts()):
                break
        counts = self._counts()
        for wrong in peer.ledger.contradictions(counts)[:3]:
            peer.offend(f"counters do not add up: {wrong}; {dict(peer.ledger.certain)}, {peer.ledger.possible} others")
        if sum(counts.values()) != int(peer.diagnostics["rejected_total"]):
            peer.offend("rejected_total is not the sum of its kinds")
        cycles, efforts = int(peer.diagnostics["cycles"]), peer.outputs.efforts - self._efforts
        if cycles > efforts:
            peer.offend(f"{cycles} cycles, but {efforts} efforts")
        numbers = {key: int(value) for key, value in peer.diagnostics.items() if value.isdigit() and not key.endswith(
            ("_us", "_hz", "hidden_directions", "bounded_damping"))}
        for key, value in numbers.items():
            if value < self._before.get(key, 0):
                peer.offend(f"counter {key} went back from {self._before[key]} to {value}")
        self._before = numbers
        end = time.monotonic() + 5.0
        while peer.outputs.lag() and time.monotonic() < end:
            peer.spin(2e-3)
        if lag := peer.outputs.lag():
            peer.offend(f"outputs lag behind: {lag}")
        self._check_log()

    def _counts(self) -> dict[str, int]:
        return {key.removeprefix("rejected_"): int(value) for key, value in self._peer.diagnostics.items()
                if key.startswith("rejected_") and key != "rejected_total"}

    def _check_log(self) -> None:
        if "Traceback" in (log := self._process.log()):
            where = log.index("Traceback")
            self._peer.offend(f"traceback in the log: {log[where:where + 3000].strip()}")

    def _configure_anew(self) -> None:
        """Cleanup and configuration: the counters begin again."""
        peer = self._peer
        self._rejected += int(peer.diagnostics["rejected_total"])
        peer.change(Transition.TRANSITION_DEACTIVATE)
        peer.change(Transition.TRANSITION_CLEANUP)
        publishers = peer.publishers.values()
        peer.until(lambda: not any(p.get_subscription_count() for p in publishers), "end of subscriptions")
        peer.spin(0.1)
        self._efforts, self._before, peer.ledger = peer.outputs.efforts, {}, Ledger()
        peer.outputs.restart()
        if not (peer.change(Transition.TRANSITION_CONFIGURE) and peer.change(Transition.TRANSITION_ACTIVATE)):
            peer.offend("configuration failed")
        self._connect()

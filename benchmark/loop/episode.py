"""One episode of the closed-loop walk: an arm in motion under random events."""
from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace
from typing import Any

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.model.payload import payload, with_payloads
from rbd_ros.runtime.inputs.references import Point

from .cases import Case, case
from .judge import Judge
from .rig import Rig

EVENTS = {"stop": 4, "motion": 4, "node_stall": 3, "driver_stall": 3, "repeated": 2, "outlier": 3, "old": 2,
          "emergency_stop": 2, "elsewhere": 2, "gains": 2, "load": 1, "limits": 1, "wrench": 2, "restart": 1,
          "stream": 1, "blind": 2}
NAMES = list(EVENTS)
ODDS = np.array(list(EVENTS.values())) / sum(EVENTS.values())
OF_REAL_TIME = ("node_stall", "driver_stall", "old", "blind")
LEAST, MOST = 0.05, 0.9    # s between events
BRIEF = 0.1                # s: a stall of the driver after which the arm is no farther than it may be
STRONGEST = 500.0          # N: `wrench_limits.force`, above which a wrench is rejected and excuses nothing
LOOK = 3                   # cycles between looks of the judge


def _touchy(made: Case, rng: np.random.Generator) -> Case:
    """The case, in half of all episodes with a reaction to contacts, which errors of the model may seem."""
    if made.springs is not None or made.compensates or made.link or rng.random() < 0.5:
        return made
    share = rng.uniform(0.05, 0.3)
    return replace(made, values={
        **made.values, "contact.reaction": str(rng.choice(["report", "stop", "yield", "retract"])),
        "contact.threshold": float(share * np.min(made.model.effort_limit))})


class Episode:
    """`run` goes through so many events. `violations` say what was wrong, `history` what happened before."""

    def __init__(self, name: str, seed: int, number: int) -> None:
        self._rng = np.random.default_rng([seed, number, sum(map(ord, name))])
        self.case = _touchy(case(name), np.random.default_rng([seed, number, 7]))
        self.rig = Rig(self.case, self._rng)
        self.judge = self.make_judge()
        self.history: deque[str] = deque(maxlen=12)
        self.seen: Counter[str] = Counter()
        self._later: list[tuple[float, Any]] = []    # what ends at a time
        self._streams = None

    def make_judge(self) -> Judge:
        return Judge(self.rig)

    @property
    def violations(self) -> list[str]:
        return self.judge.violations

    def run(self, events: int) -> None:
        self._go_on(0.1)
        self._on_motion()
        self._go_on(self._rng.uniform(0.2, 1.0))
        for _ in range(events):
            event = NAMES[self._rng.choice(len(NAMES), p=ODDS)]
            if (self.case.simulated and event in OF_REAL_TIME) or (self.case.link and event == "wrench"):
                continue
            self.seen[event] += 1
            self.history.append(f"{self.rig.now:.4f} {event}")
            getattr(self, f"_on_{event}")()
            self._go_on(self._rng.uniform(LEAST, MOST))
            if self.violations:
                return
        self._go_on(2.0)

    def _go_on(self, duration: float) -> None:
        rig, end = self.rig, self.rig.now + duration
        while rig.now < end and not self.violations:
            for entry in [each for each in self._later if each[0] <= rig.now]:
                self._later.remove(entry)
                entry[1]()
            if self._streams is not None:
                self._streams()
            rig.cycle()
            contacts = getattr(rig.controller, "contacts", None)
            if contacts is not None and contacts.state != "watching":    # no matter why, it is led away
                self.judge.event("contact")
            if rig.cycles % LOOK == 0:
                self.judge.look()

    def _at(self, delay: float, call: Any) -> None:
        self._later.append((self.rig.now + delay, call))

    # ---- commands

    def _trajectory(self, points: list[Point]) -> bool:
        rig = self.rig
        if rig.now < rig.node_until or rig.controller.safety.mode == "inactive":
            return False
        verdict = rig.controller.on_trajectory(rig.now, 0, self.case.model.joint_names, points)
        if not verdict:
            rig.lines.append(verdict.text)
        return bool(verdict)

    def _on_motion(self) -> None:
        """A new trajectory, also in motion."""
        self._streams = None
        low, high = self.case.poses
        start = self.rig.plant.q
        goal = self._rng.uniform(low, high)
        goal = start + np.clip(goal - start, -0.8, 0.8)
        speed = 0.4 * np.minimum(self.case.model.velocity_limit, 2.0) * self._rng.uniform(0.2, 1.0)
        duration = float(np.max(np.abs(goal - start) / speed)) + 0.3
        zero = np.zeros(len(goal))
        taken = self._trajectory([Point(duration, goal, zero, zero)])
        self.judge.event("motion" if taken else "rejected")

    def _on_stop(self) -> None:
        self._streams = None
        self.judge.event("stop" if self._trajectory([]) else "rejected")

    def _on_stream(self) -> None:
        """A stream of references that swings about where the arm is."""
        rig, rng = self.rig, self._rng
        reference = rig.controller.reference.sample(rig.now, rig.controller.state.time_ns)
        q0 = rig.plant.q.copy() if reference is None else reference.q
        amplitude, w = rng.uniform(0.0, 0.2, len(q0)), rng.uniform(1.0, 3.0)
        begin, names = rig.now, self.case.model.joint_names

        def send() -> None:
            if rig.now < rig.node_until or rig.controller.safety.mode == "inactive":
                return
            t = rig.now - begin
            s, c = np.sin(w * t), np.cos(w * t)
            rig.controller.on_reference(rig.now, 0, names, q0 + amplitude * (1.0 - c), amplitude * w * s,
                                        amplitude * w * w * c)

        self._streams = send
        self.judge.event("stream")

    # ---- events

    def _on_node_stall(self) -> None:
        self.rig.node_until = self.rig.now + self._rng.uniform(0.005, 0.5)
        self.judge.event("node_stall", self.rig.node_until)

    def _on_driver_stall(self) -> None:
        """Stall of the controller manager, followed by two old positions."""
        duration = self._rng.uniform(0.005, 0.5)
        self.rig.driver_until = self.rig.now + duration
        self.rig.errors["repeat"] = int(self._rng.integers(0, 3))
        self.judge.event("driver_stall" if duration > BRIEF else "brief_stall", self.rig.driver_until)

    def _on_blind(self) -> None:
        """Joint states get lost, while commands pass."""
        self.rig.blind_until = self.rig.now + self._rng.uniform(0.005, 0.5)
        self.judge.event("blind")

    def _on_repeated(self) -> None:
        self.rig.errors["repeat"] = int(self._rng.integers(1, 5))
        self.judge.event("repeated", self.rig.now + 0.02)

    def _on_outlier(self) -> None:
        n, rng = len(self.rig.plant.q), self._rng
        if rng.random() < 0.3:
            q, v = -self.rig.plant.q, -self.rig.plant.v    # all zeros
        else:
            q, v = np.zeros((2, n))
            (q if rng.random() < 0.6 else v)[rng.integers(n)] = rng.choice([-1, 1]) * 10.0 ** rng.uniform(-2, 1.5)
        self.rig.errors["outlier"] = q, v
        self.judge.event("outlier")

    def _on_old(self) -> None:
        self.rig.errors["old_until"] = self.rig.now + self._rng.uniform(0.01, 0.2)
        self.rig.errors["old_age"] = self._rng.uniform(0.002, 0.04)
        self.judge.event("old", self.rig.errors["old_until"])

    def _on_emergency_stop(self) -> None:
        self._streams = None
        controller = self.rig.controller
        controller.safety.stop()
        self.judge.event("emergency_stop")
        self._at(self._rng.uniform(0.1, 1.5), lambda: self._release(controller))

    def _release(self, controller: Any) -> None:
        if controller is self.rig.controller and self.rig.now >= self.rig.node_until:
            controller.reset(self.rig.now)
            self.judge.event("release")
            if self._rng.random() < 0.5:
                self._on_motion()

    def _on_elsewhere(self) -> None:
        """Another controller has the arm: joint_trajectory_controller with effort, holding."""
        plant, settings = self.rig.plant, self.case.settings()
        law = settings if self.case.link else settings.law
        q0, tau0 = plant.motors[0].copy(), plant.tau.copy()
        inertial = getattr(law, "feedforward", "") == "computed_torque"
        # all of it: decoupled gains throw an arm whose joints are nearly aligned
        M = rbd.mass_matrix(plant.model, q0) if inertial else np.eye(len(q0))
        if "gravity" in self.case.compensates:
            tau0 = tau0 - rbd.gravity_effort(plant.model, q0)
        self.rig.elsewhere = lambda q, v: tau0 + M @ (law.kp * (q0 - q) - law.kd * v)
        duration = self._rng.uniform(0.05, 1.0)
        self.judge.event("elsewhere", self.rig.now + duration)

        def back() -> None:
            self.rig.elsewhere = None

        self._at(duration, back)

    def _on_gains(self) -> None:
        values = self.case.values
        factor = self._rng.uniform(0.5, 1.3)
        self._apply({name: [factor * x for x in values[name]] for name in self.case.gains})
        self.judge.event("gains")

    def _on_limits(self) -> None:
        limit = self.case.settings().safety.effort_limit
        order = [float(x) for x in limit * self._rng.uniform(0.8, 1.0)]
        names = list(self.case.settings().joints)
        model = self.case.model
        self._apply({"effort_limits.maximum": [order[model.joint_names.index(name)] for name in names]})
        self.judge.event("limits")

    def _apply(self, changed: dict[str, Any]) -> None:
        if self.rig.now >= self.rig.node_until:
            self.rig.settings = self.case.settings(**changed)
            self.rig.controller.apply(self.rig.settings)

    def _on_load(self) -> None:
        """The arm takes something, or lets it go, and the node does not know."""
        rig = self.rig
        body = self.case.model.body_names[-1]
        mass = float(self._rng.uniform(0.0, 0.5))
        load = payload(mass, (0.0, 0.0, 0.05), 1e-4 * np.eye(3))
        rig.plant.become(with_payloads(rig.arm, {body: load}))
        self.judge.event("load")

    def _on_wrench(self) -> None:
        rig, rng = self.rig, self._rng
        body = self.case.model.body_names[-1]
        moment, force = rng.uniform(-1.0, 1.0, 3), rng.uniform(-10.0, 10.0, 3)
        if rng.random() < 0.2:
            force = force * 10.0 ** rng.uniform(0.0, 8.0)
        if rig.now >= rig.node_until:
            verdict = rig.controller.on_wrenches(rig.now, [(body, np.concatenate([moment, force]))])
            if not verdict:
                rig.lines.append(verdict.text)
        self.judge.event("wrench", rig.now + (0.15 if np.linalg.norm(force) <= STRONGEST else 0.0))

    def _on_restart(self) -> None:
        """The node ends, and another one begins. An arm without brakes falls meanwhile, whatever the last torque."""
        rig = self.rig
        if not rig.has_brakes:
            return
        self._streams = None
        if rig.now < rig.node_until or rig.controller.safety.mode == "inactive":
            return
        rig.controller.deactivate()
        rig.leaving = True
        self.judge.event("restart", rig.now + 3.0)
        self._at(self._rng.uniform(1.2, 2.0), self._begin)

    def _begin(self) -> None:
        rig = self.rig
        if rig.controller.safety.mode != "inactive":
            rig.finish()
        rig.start()

"""A random walk of states, references, faults and changes, through the node's logic and the generated one alike."""
from __future__ import annotations

import contextlib
from collections import Counter

import numpy as np

import rbd_ros as rbd

LAWS = ("none", "gravity", "full", "computed_torque")
BODIES = ("link_2", "link_5", "link_7")
COUNTED = ("rejected_implausible", "rejected_repeated", "position_restarts", "timeouts", "non_finite_command",
           "not_following", "slow_loops", "saturated", "rate_limited")
FAULTS = ("nan", "jump", "fast", "no velocity", "frozen", "fading", "wobble", "step", "runaway")


class Walk:
    """One walk. `differences`: what differed; `worst`: largest difference of an effort, N m."""

    def __init__(self, logic, seed, model):
        self.logic, self.model, self.rng = logic, model, np.random.default_rng(seed)
        self.law = LAWS[seed % 4]
        rng = self.rng
        self.node = rbd.TorqueController(model, **self.gains(), **{
            "feedforward": self.law, "friction.asymmetry": [0.2], "friction.viscous_asymmetry": [0.1],
            "friction.load": [0.05], "robot_compensates": [str(x) for x in rng.choice(
                ["gravity", "coriolis", "friction"], size=rng.integers(0, 3) if rng.random() < 0.3 else 0,
                replace=False)], "effort_limits.rate": [float(rng.choice([np.inf, 500.0]))],
            "ramp_in": float(rng.choice([0.0, 0.1, 0.3])), "safe_output.hold": 0.1,
            "safe_output.fallback_ramp": float(rng.choice([0.0, 0.2])), "state_rate": float(rng.choice([0.0, 500.0])),
            "velocity_cutoff": float(rng.choice([0.0, 30.0])), "plausible_velocity": [float(rng.choice([1.0, 2.0]))],
            "safe_output.hold_position": float(rng.choice([0.0, 0.1, 0.1])), "gravity_check": False})
        logic.configure(self.node.parameters)
        self.q, self.v, self.pull = rng.uniform(-1.0, 1.0, model.nv), np.zeros(model.nv), np.zeros(model.nv)
        self.modes, self.events, self.worst = Counter(), Counter(), 0.0
        self.center, self.phase, self.pace = self.q.copy(), 0.0, 1.0
        self.streams, self.obeys = False, seed % 2 == 0
        self.fault, self.left, self.last = "", 0, None
        self.ns, self.begun, self.rests = 1_000_000_000, False, False
        self.closes, self.hasty = False, 0    # whether it comes to rest before its end; references that were too fast

    def gains(self):
        kp = 400.0 if self.law == "computed_torque" else float(self.rng.choice([0.0, 300.0, 800.0]))
        return {"gains.kp": [kp], "gains.kd": [0.1 * kp]}

    def state(self):
        """The next state, as the hardware shows it."""
        rng = self.rng
        if self.obeys and self.streams:
            wanted = self.reference()
            self.q, self.v = wanted[0] + 1e-4 * rng.normal(size=self.model.nv), wanted[1]
        else:
            if rng.random() < 0.01:
                self.rests = not self.rests
            self.rests = self.rests or self.closes
            self.pull = 0.98 * self.pull + 0.3 * rng.normal(size=self.model.nv)
            if self.rests:    # as if it stood still: v below 0.05 rad/s
                self.pull = 0.3 * rng.normal(size=self.model.nv)
                self.v = rng.uniform(-1.0, 1.0, self.model.nv) * rng.choice([0.01, 0.04])
            self.v = 0.995 * (self.v + 0.002 * self.pull)
            self.q = self.q + 0.002 * self.v
        q, v = self.q.copy(), self.v.copy()
        self.left -= self.left > 0
        begins = not self.left and not self.closes and rng.random() < 0.01
        if begins:
            self.left, self.fault = int(rng.choice([1, 3, 20, 60, 400])), str(rng.choice(FAULTS))
        if self.left:
            self.events[self.fault] += 1
            if self.fault == "frozen" and self.last is not None:
                q, v = self.last
            elif self.fault == "fading" and self.last is not None:    # at rest, by velocities through a low-pass
                q, v = self.last[0], 0.97 * self.last[1]
                v[2] = 0.5 if begins else v[2]
            elif self.fault == "jump":
                q[2] += 0.7
            elif self.fault == "fast":
                v[1] = 40.0
            elif self.fault == "wobble":    # near the bounds of what is believed
                v[1] += rng.uniform(0.5, 4.0) * rng.choice([-1.0, 1.0])
            elif self.fault == "step":
                q[4] += rng.uniform(0.0, 0.15)
            elif self.fault == "runaway":    # a joint that is faster than its limits, with or without moving
                v[5] = 7.0
                q[5] += 0.002 * 7.0 * self.left * rng.choice([0.0, -1.0, -1.0, -1.0])
            elif self.fault not in ("frozen", "fading"):
                (q if self.fault == "nan" else v)[3] = np.nan
        self.last = q, v
        return q, v

    def reference(self):
        n, phase, pace = np.arange(self.model.nv), self.phase, self.pace
        return (self.center + 0.1 * np.sin(phase + n), 0.1 * pace * np.cos(phase + n),
                -0.1 * pace**2 * np.sin(phase + n))

    def cycle(self):
        """The difference of the cycle, "" if there is none."""
        self.ns += 2_000_000 if self.rng.random() > 0.003 else int(self.rng.choice([10, 60, 300])) * 1_000_000
        now, (q, v) = self.ns * 1e-9, self.state()
        if not self.begun:
            self.logic.call("activate", now)
            self.begun = True
        node = self.node.update(now, q, v)
        effort, mode = self.logic.update(now, q, v)
        self.modes[mode] += 1
        if mode != node.mode:
            return f"mode {mode}, the node's {node.mode} ({node.reason})"
        if self.logic.library.has_output():
            self.worst = max(self.worst, float(np.abs(effort - node.effort).max()))
            if not np.allclose(effort, node.effort, rtol=0.0, atol=1e-9):
                return f"effort in mode {mode} differs by {np.abs(effort - node.effort).max():.3g}"
        return self.inputs(now)

    def inputs(self, now):
        """References, stops and changes after the cycle."""
        rng = self.rng
        if rng.random() < 0.005:
            self.streams, self.center = not self.closes and not self.streams, (
                self.q + rng.choice([0.02, 0.1]) * rng.normal(size=self.model.nv))
            self.pace = float(rng.choice([1.0, 8.0]))
        if self.streams:
            self.phase += 0.002 * self.pace
            wanted = list(self.reference())
            if rng.random() < 0.01:
                wanted[0] = wanted[0] + rng.choice([0.02, 0.3, np.nan])
            if rng.random() < 0.01:    # rates near the bounds of what is believed
                j, part = rng.integers(self.model.nv), rng.integers(1, 3)
                bound = self.model.velocity_limit[j] * (2.0 if part == 1 else 200.0)
                wanted[part][j] = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.5) * bound
                self.hasty += bool(abs(wanted[part][j]) > bound and np.isfinite(wanted[0]).all())
            if self.both(lambda: self.node.follow(rbd.Reference(*wanted)), "follow", now, *wanted):
                return "one of them refused a reference"
        chance = rng.random()
        if chance < 0.003:
            self.streams = False
            self.events["stop here"] += 1
            if self.both(lambda: self.node.follow([]), "stop_here", now):
                return "one of them refused to stop here"
        elif chance < 0.005:
            self.events["emergency stop"] += 1
            self.node.stop()
            self.logic.library.stop()
        elif chance < 0.012:
            self.node.reset()
            self.logic.call("reset", now)
        elif chance < 0.017:
            self.events["change"] += 1
            self.node.set(**self.gains(), **{
                "feedforward": str(rng.choice(LAWS)) if rng.random() < 0.3 else self.law,
                "payload.body": str(rng.choice(BODIES)), "payload.mass": float(rng.uniform(0.0, 3.0)),
                "payload.com": rng.uniform(-0.1, 0.1, 3).tolist(),
                "payload.inertia": [0.01, 0.012, 0.011, 0.001, 0.0, 0.0],
                "effort_limits.maximum": [float(rng.choice([np.inf, 30.0, 100.0]))],
                "safe_output.damping": float(rng.choice([2.0, 5.0])),
                "safe_output.fallback": [float(rng.choice([0.0, 3.0]))]})
            self.logic.use(self.node.parameters)
        return ""

    def both(self, ask, name, *arguments):
        """Whether the answers differ."""
        taken = False
        with contextlib.suppress(rbd.RbdError):
            ask()
            taken = True
        return bool(self.logic.call(name, *arguments)) != taken

    def end(self):
        """The difference of the effort that is left behind at the deactivation, "" if there is none."""
        logic = self.node._logic
        node, effort = logic.finish(self.ns * 1e-9).effort, self.logic.finish()
        self.events["carried"] += logic._kept is not None
        self.worst = max(self.worst, float(np.abs(effort - node).max()))
        return "" if np.allclose(effort, node, rtol=0.0, atol=1e-9) else (
            f"the last effort differs by {np.abs(effort - node).max():.3g}")

    def differences(self, cycles):
        closing = cycles - (60 if self.rng.random() < 0.7 else 0)
        for k in range(cycles):
            if k == closing:
                self.closes, self.streams, self.left = True, False, 0
            if difference := self.cycle():
                return f"cycle {k}: {difference}"
        if difference := self.end():
            return difference
        counts, report = self.logic.counts(), self.node.report()
        report["rejected_implausible"] -= self.hasty    # counted as `rejected_references`
        self.events += Counter({"too fast": self.hasty, "repeated": counts["rejected_repeated"]})
        return ", ".join(f"{name} is {counts[name]}, the node's {report.get(name, 0)}" for name in COUNTED
                         if counts[name] != report.get(name, 0))

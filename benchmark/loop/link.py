"""Episodes of the closed-loop walk under node `cartesian`: goals, twists, trajectories, laws; judged on the link."""
from __future__ import annotations

from typing import Any

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.lie import so3
from rbd_ros.runtime.inputs.pose_points import PosePoint

from .episode import Episode
from .judge import Array, Judge

PERIOD = 0.02    # s between twists, on average


class LinkJudge(Judge):
    """Judges the place of the link (m) in place of joints, as the posture moves below it."""

    def __init__(self, rig: Any) -> None:
        super().__init__(rig)
        self._link = rig.case.model.body_index(rig.settings.body)
        self._dropped = 0

    @property
    def _follows(self) -> bool:
        dropped, self._dropped = self._dropped, self._rig.controller.report()["goals_dropped"]
        return self._dropped <= dropped    # a node that begins anew has dropped none

    @property
    def _place(self) -> Array:
        return rbd.forward_kinematics(self._rig.plant.model, self._rig.plant.q)[self._link][:3, 3]

    @property
    def _error(self) -> float:
        aim = self._rig.controller._aim
        return 0.0 if aim is None else float(np.linalg.norm(aim.target[9:12] - self._place))

    def _away(self) -> float:
        """Beyond the length of the leash, in m."""
        return 0.0 if self._rig.controller.settings.law == "joint" else self._error - 0.15

    @property
    def _planned(self) -> Array:
        """Speed of joints and kinetic energy with which the arm moves at best as the target does."""
        rig, aim = self._rig, self._rig.controller._aim
        if aim is None:
            return np.zeros(2)
        model, q = rig.plant.model, rig.plant.q
        J, M = rbd.jacobian(model, q, rig.settings.body, "aligned"), rbd.mass_matrix(model, q)
        A = J @ np.linalg.solve(M, J.T)
        v = np.linalg.solve(M, J.T @ np.linalg.solve(A + 1e-2 * np.eye(6), aim.target[12:18]))
        planned = np.array([np.abs(v).max(), 0.5 * v @ M @ v])
        if rig.elsewhere is not None:
            law = rig.controller.safety.laws.newest.law
            effort = law.effort(q, 0.0 * q, np.append(aim.target[:12], np.zeros(12)), q)
            planned += self._released(effort, law.seen.energy)
        return planned

    def _sag(self) -> float:
        lacks = rbd.gravity_effort(self._rig.plant.model, self._rig.plant.q) - rbd.gravity_effort(
            self._rig.case.model, self._rig.plant.q)
        J = rbd.jacobian(self._rig.plant.model, self._rig.plant.q, self._rig.settings.body, "aligned")
        force = np.linalg.lstsq(J.T, lacks, rcond=1e-2)[0][3:]
        return super()._sag() + float(np.abs(force).max() / self._rig.settings.translation.min())


class LinkEpisode(Episode):
    """`run` as of an episode."""

    def make_judge(self) -> Judge:
        return LinkJudge(self.rig)

    def _sent(self, verdict: Any, name: str) -> None:
        if not verdict:
            self.rig.lines.append(verdict.text)
        self.judge.event(name if verdict else "rejected")

    @property
    def _takes(self) -> bool:
        return self.rig.now >= self.rig.node_until and self.rig.controller.safety.mode != "inactive"

    def _on_motion(self) -> None:
        """A goal, or a trajectory through some poses."""
        self._streams = None
        rig, rng = self.rig, self._rng
        if not self._takes or rig.controller.state.received < 0.0:
            return
        T, frame = rig.controller.pose, ""
        if rng.random() < 0.6:
            R, p = so3.exp(0.5 * rng.normal(size=3)) @ T[:3, :3], T[:3, 3] + 0.2 * rng.normal(size=3)
            if rng.random() < 0.2:    # far away, not a rotation, or elsewhere
                p, frame = p * 10.0 ** rng.uniform(0.0, 8.0), str(rng.choice(["", "map"]))
            self._sent(rig.controller.on_goal(rig.now, frame, p, so3.to_quaternion(R)), "motion")
            return
        points, t, p, R = [], 0.0, T[:3, 3], T[:3, :3]
        for _ in range(int(rng.integers(1, 6))):
            way, turn = 0.1 * rng.normal(size=3), 0.3 * rng.normal(size=3)
            t += 3.0 * max(float(np.linalg.norm(way)) / 0.25, float(np.linalg.norm(turn)) / 1.0) + 0.5
            p, R = p + way, so3.exp(turn) @ R
            points.append(PosePoint(t, [[*p, *so3.to_quaternion(R)]]))
        self._sent(rig.controller.on_trajectory(rig.now, 0, "", [rig.settings.body], points), "motion")

    def _on_stop(self) -> None:
        self._streams = None
        if self._takes:
            self._sent(self.rig.controller.on_trajectory(self.rig.now, 0, "", [], []), "stop")

    def _on_stream(self) -> None:
        """Twists, with jitter, that end some time."""
        rig, rng = self.rig, self._rng
        linear, angular, due = 0.2 * rng.normal(size=3), 0.7 * rng.normal(size=3), [rig.now]
        frame, end = str(rng.choice(["", rig.settings.body])), rig.now + rng.uniform(0.2, 2.0)

        def send() -> None:
            if not self._takes or rig.now < due[0]:
                return
            due[0] = rig.now + PERIOD * rng.uniform(0.2, 3.0)
            if rig.now < end:
                rig.controller.on_twist(rig.now, frame, linear, angular)

        self._streams = send
        self.judge.event("stream")

    def _on_limits(self) -> None:
        """Limits, or another law."""
        if self._rng.random() < 0.5:
            super()._on_limits()
            return
        self._apply({"law": str(self._rng.choice(["cartesian", "joint"]))})
        self.judge.event("limits")

"""A plant, node feedforward and node lockstep in processes of their own, and what the robot did."""
from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from nodes.harness import RELIABLE, NodeProcess, Peer, QoSProfile
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort
from rbd_ros.cli import demo_motion

DEEP = QoSProfile(depth=20000)
SECOND = 1_000_000_000
QOS = {"qos_overrides./joint_states.subscription.reliability": "reliable",
       "qos_overrides./joint_states.subscription.depth": 10}


class Episode(NamedTuple):
    """Stamps (N,) in ns; q, v, effort (N, nv) of the joint states; the reference (N, nv); reports of the nodes."""

    stamp: Any
    q: Any
    v: Any
    effort: Any
    reference: Any
    reports: dict[str, dict[str, str]]
    residual_stamp: Any    # (M,) in ns
    residual: Any          # (M, nv)

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean((self.q - self.reference) ** 2)))


class Director(Peer):
    """Sends the trajectory, wakes the lockstep node, listens."""

    def __init__(self) -> None:
        super().__init__("lockstep")
        self.states: list[JointState] = []
        self.residuals: list[JointEffort] = []
        self.reports: dict[str, dict[str, str]] = {}
        self.trajectories = self.node.create_publisher(JointTrajectory, "feedforward/joint_trajectory", RELIABLE)
        self.node.create_subscription(JointState, "joint_states", self.states.append, DEEP)
        self.node.create_subscription(JointEffort, "residual/residual", self.residuals.append, DEEP)

    def _on_diagnostics(self, message: Any) -> None:
        super()._on_diagnostics(message)
        for status in message.status:
            self.reports[status.name] = {item.key: item.value for item in status.values} | {"": status.message}

    def change(self, node: str, transition: int) -> None:
        from lifecycle_msgs.msg import Transition
        from lifecycle_msgs.srv import ChangeState

        request = ChangeState.Request(transition=Transition(id=transition))
        assert self.call(ChangeState, f"{node}/change_state", request).success


def perform(folder: Path, plant: str, duration: float, *, period: float = 0.002, step: float = 0.001,
            residual: bool = False, lockstep: dict[str, Any] | None = None, **parameters: Any) -> Episode:
    """The iiwa follows M's trajectory for `duration` s; `plant`: the node that simulates it, with `parameters`."""
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import GetState

    model = rbd.sample("iiwa")
    scenario = demo_motion.scenario(model, demo_motion.published_motion(), 5.0)
    common = {"robot_description_file": str(rbd.sample_path("iiwa")), "rotor_inertia": scenario.rotors.tolist()}
    friction = {"friction__damping": scenario.damping.tolist(), "friction__coulomb": scenario.friction.tolist(),
                "mass_scale": demo_motion.MASS_SCALE}
    processes = []

    def start(name: str, **values: Any) -> None:
        options = {key: value for key, value in values.items() if "." not in key}
        arguments = [item for key, value in values.items() if "." in key for item in ("-p", f"{key}:={value}")]
        processes.append(NodeProcess(folder, name, arguments, **options))

    try:
        start(plant, **(common | friction | {
            "initial_position": scenario.motion.position(0.0).tolist(), "paused": True, "publish_clock": True,
            "publish_rate": 1.0 / period, "step": step, "command_timeout": 0.0,
            "qos_overrides./joint_states.publisher.depth": DEEP.depth} | parameters))
        start("feedforward", **common, gains__kp=scenario.kp.tolist(), gains__kd=scenario.kd.tolist(),
              feedback__max_age=float("inf"), state_timeout=10, ramp_in=0, ramp_out=0, **QOS)
        start("lockstep", autostart=False, plant=plant, step=step, steps=round(period / step),
              controller=plant, **(lockstep or {}))
        if residual:
            start("residual", **common)
        with Director() as director:
            director.spin_until(lambda: director.reports.get("/feedforward", {}).get("", "").startswith("active")
                                and director.reports.get(f"/{plant}", {}).get("", "").startswith("active")
                                and "/lockstep" in director.reports
                                and (not residual or "/residual" in director.reports), "nodes")
            director.spin_until(director.trajectories.get_subscription_count, "subscription")
            t = np.linspace(0.0, duration, round(100.0 * duration) + 1)
            director.trajectories.publish(_message(model.joint_names, t, scenario.motion))
            assert director.trajectories.wait_for_all_acked(Duration(seconds=60))
            # an executor has taken the messages that are there before it answers a request
            director.call(GetState, "feedforward/get_state", GetState.Request())
            director.change("lockstep", Transition.TRANSITION_CONFIGURE)
            director.change("lockstep", Transition.TRANSITION_ACTIVATE)
            director.spin_until(lambda: director.states and _stamp(director.states[-1]) >= duration * SECOND - 500,
                                "end of the motion", patience=60.0 + 20.0 * duration)
            director.change("lockstep", Transition.TRANSITION_DEACTIVATE)
            director.reports.clear()
            nodes = {"/lockstep", f"/{plant}", "/feedforward", *(["/residual"] if residual else [])}
            director.spin_until(lambda: nodes <= set(director.reports), "reports")
            states, residuals = director.states, director.residuals
        assert [process.end() for process in reversed(processes)] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()
    # The first states may come twice: the robot is shown once more when the turns begin.
    last = {_stamp(state): state for state in states if _stamp(state) <= duration * SECOND + 500}
    stamps = np.array(sorted(last))
    q, v, effort = (np.array([getattr(last[stamp], field) for stamp in stamps])
                    for field in ("position", "velocity", "effort"))
    found = [message for message in residuals if _stamp(message) in last]
    return Episode(stamps, q, v, effort, scenario.motion.position(stamps / SECOND), director.reports,
                   np.array([_stamp(message) for message in found]), np.array([message.effort for message in found]))


def _stamp(message: Any) -> int:
    return message.header.stamp.sec * SECOND + message.header.stamp.nanosec


def _message(names: Any, t: Any, motion: Any) -> JointTrajectory:
    message = JointTrajectory(joint_names=list(names))
    message.header.stamp.nanosec = 1    # time zero; a stamp of 0 would mean: now
    for at, q, v, a in zip(t.tolist(), motion.position(t), motion.velocity(t), motion.acceleration(t), strict=True):
        point = JointTrajectoryPoint(positions=q.tolist(), velocities=v.tolist(), accelerations=a.tolist())
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(at * SECOND), SECOND)
        message.points.append(point)
    return message

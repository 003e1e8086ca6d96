"""What those parameters do that only a node reads: in this process, without anything that spins or is sent."""
from __future__ import annotations

import importlib
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from parameters.case import Case, Values
from parameters.node_maker import Nodes, parameter_file
from support.arm import NAMES

import rbd_ros as rbd
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.security.rights import rights_of

URDF = rbd.sample_path("two_link")
ROBOT = {"robot_description_file": str(URDF)}
BY_TIMER = {"control_loop": "executor"}    # of a simulator: its thread needs none
DRIVES = str(Path(__file__).parents[2] / "config" / "sea_example.actuation.yaml")
MS = 1_000_000
LONGEST_DESCRIPTION = 2**22    # bytes


def status(program: str, values: Values) -> Any:
    with Nodes(program).started(values) as node:
        return node._status if program == "lockstep" else node.status


def robot(program: str, values: Values) -> Any:
    with Nodes(program).started(values) as node:
        return "" if node.model is None else node.model.name


def executor(program: str, values: Values) -> Any:
    """The one that the program is run with."""
    spin = pytest.importorskip("rbd_ros.nodes.base.spin",
                               reason="rclpy is not importable: source ROS 2 or use scripts/test")
    pytest.importorskip("rbd_interfaces.msg", reason="rbd_interfaces is not built: scripts/setup does it")
    asked = []

    def refuse(name: str) -> Any:
        asked.append(name)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, parameter_file(values) as arguments:
        patch.setattr(spin, "make_executor", refuse)
        patch.setattr(spin, "_catch_signals", lambda stopped, idle: None)
        patch.setattr(spin, "ignore_signals", lambda: None)    # of this process, for ever
        spin.run(Nodes(program).make, arguments)
    return asked[0]


def control_loop(program: str, values: Values) -> Any:
    """Its kind, and how long it waits actively, s."""
    with Nodes(program).started(values) as node:
        loop = node._states.loop
        return type(loop).__name__, getattr(loop, "active", 0.0)


def threads(program: str, values: Values) -> Any:
    """Whether there is one for the loop."""
    with Nodes(program).started(values):
        return any(thread.name == "control" for thread in threading.enumerate())


def scheduling(program: str, values: Values) -> Any:
    """What the control thread asks of the system."""
    with pytest.MonkeyPatch.context() as patch, Nodes(program).started({}) as node:
        asked: list[Any] = []
        patch.setattr(os, "sched_setscheduler", lambda thread, kind, given: asked.append((kind, given.sched_priority)))
        patch.setattr(os, "sched_setaffinity", lambda thread, processors: asked.append(tuple(processors)))
        module = importlib.import_module("rbd_ros.nodes.loop.scheduling")
        patch.setattr(module, "_lock_memory", lambda: asked.append("locked"))
        module.Scheduling(validate(node.table, values)).apply_to_thread(lambda text: None)
        return tuple(asked)


def periods(program: str, values: Values) -> Any:
    """Of all timers, in ms, and of the control loop."""
    with Nodes(program).started(values) as node:
        loop = getattr(getattr(node, "_states", None), "loop", None)
        return tuple(sorted([timer.timer_period_ns / MS for timer in node.timers]
                            + ([] if loop is None else [1e3 * loop.watch_period])))


def published(program: str, values: Values) -> Any:
    """Topics."""
    with Nodes(program).started(values) as node:
        return tuple(sorted(publisher.topic_name for publisher in node.publishers))


def subscribed(program: str, values: Values) -> Any:
    """Topics."""
    with Nodes(program).started(values) as node:
        return tuple(sorted(subscription.topic_name for subscription in node.subscriptions))


def mounted(program: str, values: Values) -> Any:
    """Where the node looks for transforms, and what it waits for."""
    asked: list[str] = []

    class Transforms:    # a stand-in: there is no tf2_msgs everywhere
        def __init__(self, node: Any, world: str) -> None:
            asked.append("/tf_static")
            self.received, self.problem, self.world = False, "", world

        def forget(self) -> None:
            """The configuration has ended."""

    module = pytest.importorskip("rbd_ros.nodes.world.mounting",
                                 reason="rclpy is not importable: source ROS 2 or use scripts/test")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Mounting", Transforms)
        with Nodes(program).started(values) as node:
            return tuple(asked), node.status


def mode(program: str, values: Values) -> Any:
    with Nodes(program).started(values) as node:
        return node.report()["mode"]


def waits(program: str, values: Values) -> Any:
    """Whether a state waits for the answer to the one before, once there was a command."""
    with Nodes(program).started({**values, "real_time_factor": 0.0, **BY_TIMER}) as node:
        [tick] = [timer.callback for timer in node.timers if timer.timer_period_ns == 0]
        node.on_commands([0.0, 0.0])
        tick()
        tick()
        return node.report()["waits"]


def passed_on(values: Values) -> Any:
    """By lockstep, of an effort."""
    nodes = Nodes("lockstep")
    with nodes.started({**values, "stepper": "none"}) as node:
        from rclpy.serialization import serialize_message

        from rbd_interfaces.msg import JointEffort
        [take] = [subscription.callback for subscription in node.subscriptions
                  if subscription.topic_name == "/feedforward/effort"]
        take(serialize_message(JointEffort(name=NAMES, effort=[1.0, 2.0])), None)
        sent = nodes.sent["/effort_controller/commands"]
        return tuple(sent[0].data) if sent else None


def forwarded(program: str, values: Values) -> Any:
    """To a forward_command_controller, in answer to a joint state."""
    nodes = Nodes(program)
    with nodes.started(values) as node:
        from rclpy.serialization import serialize_message
        from sensor_msgs.msg import JointState
        [take] = [subscription.callback for subscription in node.subscriptions
                  if subscription.topic_name == "/joint_states"]
        take(serialize_message(JointState(name=NAMES, position=[0.3, -0.5], velocity=[0.0, 0.0])),
             {"source_timestamp": 0, "received_timestamp": 0})
        [message] = nodes.sent["/effort_controller/commands"]
        return tuple(message.data)


def added(*names: str) -> Any:
    return lambda was: tuple(sorted((*was, *names)))


def renamed(old: str, *new: str) -> Any:
    return lambda was: tuple(sorted((*(name for name in was if name != old), *new)))


def shared(program: str) -> dict[str, Case]:
    """What all nodes have."""
    given = {} if program == "lockstep" else ROBOT
    found = {"autostart": Case(False, partial(status, program), "not configured", given)}
    if program != "motion_planner":    # which has several threads
        found["executor"] = Case("events", partial(executor, program), "events", {"autostart": False})
    if program == "lockstep":
        return found
    return {**found, "robot_description": Case(URDF.read_text(), partial(robot, program), "two_link"),
            "robot_description_file": Case(str(URDF), partial(robot, program), "two_link"),
            "package_folders": Case([str(URDF.parent)], partial(robot, program), "two_link",
                                    {"robot_description_file": f"package://{URDF.parent.name}/{URDF.name}"}),
            "mounting.frame": Case("world", partial(mounted, program), (
                ("/tf_static",), "waiting for the transform of the mounting"), given),
            "input_limits.bytes": Case(2048, partial(limits, program), lambda was: tuple(sorted(
                most if most == LONGEST_DESCRIPTION else most - 65536 + 2048 for most in was)), ROBOT),
            **({"input_limits.points": Case(100, partial(limited, program), 65536 + 100 * (8 * 4 * 3 + 8), ROBOT)}
               if program in ("feedforward", "flatness", "effort_annotator") else {})}


def surrounded(program: str) -> dict[str, Case]:
    """What nodes with obstacles have; test_obstacle_messages.py and test_point_cloud_topic.py have them
    with these messages."""
    def granted(values: Values) -> tuple[str, ...]:
        return tuple(sorted(rights_of(program, values).subscribe | rights_of(program, values).publish))

    return {"collisions.marker_topic": Case("things", granted, added("things")),
            "collisions.scene_topic": Case("/monitored_planning_scene", granted, added("/monitored_planning_scene")),
            "collisions.cloud_topic": Case("points", granted, added("points")),
            "collisions.show": Case(True, granted, added("~/collision_markers"))}


def limits(program: str, values: Values) -> tuple[int, ...]:
    """Of the sizes of messages."""
    with Nodes(program).started(values) as node:
        return tuple(sorted({each.most for each in node.subscriptions if hasattr(each, "most")}))


def limited(program: str, values: Values) -> int:
    """The largest size of a message that is not a robot description."""
    return max(set(limits(program, values)) - {LONGEST_DESCRIPTION})


def torque(program: str) -> dict[str, Case]:
    topics, asks = partial(published, program), partial(scheduling, program)
    return {
        **shared(program),
        "watchdog_rate": Case(50.0, partial(periods, program), (20.0, 1000.0), ROBOT),
        "control_loop": Case("executor", partial(control_loop, program), ("ExecutorLoop", 0.0), ROBOT),
        "active_wait": Case(1e-4, partial(control_loop, program), ("DirectLoop", 1e-4), ROBOT),
        "thread_priority": Case(7, asks, ((os.SCHED_FIFO, 7),)),
        "scheduling_policy": Case("rr", asks, ((os.SCHED_RR, 7),), {"thread_priority": 7}),
        "cpu_affinity": Case([0], asks, ((0,),)),
        "lock_memory": Case(True, asks, ("locked",)),
        "adapters": Case(["forward_command"], topics, added("/effort_controller/commands"), ROBOT),
        "forward_command.controller": Case(
            "arm", topics, renamed("/effort_controller/commands", "/arm/commands"),
            {**ROBOT, "adapters": ["forward_command"]}),
        "forward_command.joints": Case(NAMES[::-1], partial(forwarded, program), lambda was: was[::-1],
                                       {**ROBOT, "adapters": ["forward_command"], "state_timeout": 10.0}),
        "joint_state.topic": Case("efforts", topics, renamed(f"/{program}/effort_commands", "/efforts"),
                                  {**ROBOT, "adapters": ["joint_state"]}),
    }


def following(program: str) -> dict[str, Case]:
    return {**torque(program), "payload.topic": Case("payload", partial(subscribed, program), added("/payload"), ROBOT)}


def plant(program: str) -> dict[str, Case]:
    timers, clock = partial(periods, program), program == "mujoco_plant"
    return {
        **shared(program),
        "control_loop": Case("executor", partial(threads, program), False, ROBOT),
        "publish_rate": Case(100.0, timers, (10.0, 1000.0), ROBOT | BY_TIMER),
        "real_time_factor": Case(0.5, timers, (4.0, 1000.0), ROBOT | BY_TIMER),
        "publish_clock": Case(not clock, partial(published, program), renamed("/clock") if clock else added("/clock"),
                              ROBOT),
        "paused": Case(True, partial(mode, program), "paused", ROBOT),
        "wait_for_command": Case(60.0, partial(waits, program), 1, ROBOT),
    }


def cases() -> dict[str, dict[str, Case]]:
    """By program and name of the parameter."""
    motors = ("motor_commands", "motor_effort", "motor_reference")
    forces = [f"/model/arm/joint/{name}/cmd_force" for name in NAMES]
    commands = "/effort_controller/commands"
    return {
        "feedforward": following("feedforward"),
        "flatness": {**following("flatness"), "actuation_file": Case(
            DRIVES, partial(published, "flatness"), added(*(f"/flatness/{name}" for name in motors)), ROBOT)},
        "float_check": torque("float_check"),
        "cartesian": {**torque("cartesian"), "force.topic": Case(
            "wrench", partial(subscribed, "cartesian"), added("/wrench"), ROBOT)},
        "effort_annotator": {**shared("effort_annotator"), **surrounded("effort_annotator"), "action.controller": Case(
            "arm", lambda values: tuple(rights_of("effort_annotator", values).call),
            ("arm/follow_joint_trajectory",))},
        "dynamics_server": shared("dynamics_server"),
        "motion_planner": {**shared("motion_planner"), **surrounded("motion_planner")},
        "simulator": {**plant("simulator"), "actuation_file": Case(
            DRIVES, partial(published, "simulator"), added("/motor_states"), ROBOT),
            "controller": Case("arm", partial(subscribed, "simulator"), added("/arm/commands"), ROBOT)},
        "mujoco_plant": {
            **plant("mujoco_plant"),
            "controller": Case("arm", partial(subscribed, "mujoco_plant"), renamed(commands, "/arm/commands"), ROBOT),
            "bridge_model": Case("arm", partial(subscribed, "mujoco_plant"), added(*forces), ROBOT)},
        "lockstep": {
            **shared("lockstep"),
            "control_loop": Case("executor", partial(threads, "lockstep"), False),
            "joints": Case(NAMES[::-1], passed_on, (2.0, 1.0)),
            "effort_topic": Case("efforts", partial(subscribed, "lockstep"),
                                 renamed("/feedforward/effort", "/efforts")),
            "controller": Case("arm", partial(published, "lockstep"), renamed(commands, "/arm/commands")),
            "bridge_model": Case("arm", partial(published, "lockstep"), added(*forces), {"joints": NAMES}),
            "receivers": Case(["arm"], passed_on, None),
            "activity_topic": Case("active", partial(subscribed, "lockstep"), added("/active")),
            "settle": Case(0.25, partial(periods, "lockstep"), (100.0, 250.0, 1000.0)),
            "input_limits.bytes": Case(2048, partial(limits, "lockstep"), (2048,))},
        "observer": {
            **shared("observer"),
            "effort_topic": Case("efforts", partial(subscribed, "observer"),
                                 renamed("/feedforward/effort", "/efforts"), {**ROBOT, "effort_source": "effort"})},
        "residual": {
            **shared("residual"),
            "effort_topic": Case("efforts", partial(subscribed, "residual"),
                                 renamed("/feedforward/effort", "/efforts"), ROBOT)},
    }

"""What the parameters of the motion planner do, in its logic without ROS."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from parameters.case import Case, Values, begun, seconds_until_refused, split
from parameters.other_cases import MOON, MS
from support.obstacle_messages import cloud, marker, markers
from support.arm import JOINT, LINK, NAMES, TILT, TILTED, arm, arm_urdf, shaped_arm_urdf

import rbd_ros as rbd
from rbd_ros.core.model.payload import payload, with_payloads
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.planning.motion_planner import MotionPlanner, Plan
from rbd_ros.runtime.planning.motion_request import MotionRequest, MotionWaypoint
from rbd_ros.runtime.planning.planner_settings import PLANNER_TABLE, PlannerSettings
from rbd_ros.runtime.planning.robot_collisions import considered
from rbd_ros.runtime.robot import load_model

START, GOAL = np.array([-0.5, 0.4]), np.array([0.6, -0.3])
SHAPES = '<collision><geometry><sphere radius="0.02"/></geometry></collision></link>'
FINGER = (LINK.format(name="finger", mass=0.1).replace("</link>", SHAPES) + JOINT.format(
    name="wrist", kind="revolute", parent="lower", child="finger", x=0.4, effort=5, extra="") + "</robot>")
SRDF = '<robot name="arm"><disable_collisions link1="upper" link2="finger" reason="User"/></robot>'
FLOOR = "obstacles:\n- {name: floor, shape: plane, frame: [0.0, 0.0, -2.0]}\n"
LOAD = {"payload.body": "lower", "payload.mass": 2.0}


def planner(values: Values, urdf: str = "") -> MotionPlanner:
    model, _ = load_model(validate(PLANNER_TABLE, values), urdf or arm_urdf())
    return begun(MotionPlanner, PlannerSettings, PLANNER_TABLE, model, values)


def plan(values: Values, urdf: str = "", **fields: Any) -> Plan:
    made = planner(values, urdf)
    n = len(made.coordinates.names)
    return made.search(made.prepare(MotionRequest(**{"name": NAMES[:n], "start": START[:n], "goal": GOAL[:n],
                                                     "duration": 1.5, "objective": ["effort"]} | fields), 0.0))


def unexplained(model: rbd.RobotModel, smoothing: float = 0.01, **more: Any) -> Any:
    """What an observed plan's efforts are beyond those of this model, where they differ most."""
    def observe(values: Values) -> float:
        points = plan(values).points
        assert points is not None
        n = model.nv
        expected = rbd.joint_friction(model, smoothing, **more).add(points.v[:, :n], rbd.inverse_dynamics(
            model, *(x[:, :n] for x in points[1:4])))
        return float(np.abs(points.effort - expected).max()) if points.effort.shape == expected.shape else np.inf

    return observe


def model_case(value: Any, model: rbd.RobotModel, given: Values = {}, smoothing: float = 0.01) -> Case:    # noqa: B006
    """The efforts are those of this model with the value, and not without."""
    return Case(value, unexplained(model, smoothing), 0.0, given)


def largest(kind: str, value: Any, **fields: Any) -> Any:
    """Whether the largest of each joint's points are within these values."""
    def observe(values: Values) -> bool:
        points = plan(values, **fields).points
        assert points is not None
        return bool(np.all(np.abs(getattr(points, kind)).max(axis=0) <= np.array(value) * (1.0 + 1e-9)))

    return observe


def jerk(values: Values) -> bool:
    motion = plan(values).motion
    return bool(np.all(np.abs(motion(np.linspace(0.0, 1.5, 300)).jerk) <= 25.0))


def zero_override(values: Values) -> Any:
    return plan(values, arm_urdf(shoulder_effort=0.0)).good


def period(values: Values) -> float:
    points = plan(values).points
    assert points is not None
    return float(points.time[1])


def without_motors(values: Values) -> bool:
    """Whether the elbow, which gravity turns, cannot rest where it should start."""
    try:
        return bool(plan(values).good is None)
    except rbd.RbdError as error:
        return "joint 'elbow' has no motor, and needs an effort" in str(error)


def searched(values: Values) -> bool:
    """Whether the search ended for lack of time, which 10 ms are."""
    return "time limit" in plan(values).motion.ended


def searched_again(values: Values) -> bool:
    """Whether it takes more iterations than one first guess does."""
    return bool(plan(values).motion.iterations > plan({}).motion.iterations)


def waypoints(values: Values) -> bool:
    """Whether a request with three is read."""
    points = [MotionWaypoint(0.25 * k, START) for k in (1, 2, 3)]
    try:
        planner(values).prepare(MotionRequest(NAMES, GOAL, START, points), 0.0)
    except rbd.RbdError as error:
        assert "waypoints has 3 entries, expected at most 2 (parameter 'waypoint_limit')" in str(error)
        return False
    return True


def known_for(values: Values) -> float:
    """Seconds until the last joint state is too old."""
    made = planner(values)
    assert made.states.latest.accept(0.0, MS, NAMES, START, np.zeros(2))
    return seconds_until_refused(partial(made.prepare, MotionRequest(NAMES, GOAL)))


def starts_while_moving(values: Values) -> bool:
    made = planner(values)
    assert made.states.latest.accept(0.0, MS, NAMES, START, np.array([0.1, 0.0]))
    made.prepare(MotionRequest(NAMES, GOAL), 0.0)
    return True


def estimated(values: Values) -> Any:
    states = planner(values).states
    for k in (0, 1):
        assert states.latest.accept(0.01 * k, (1 + 10 * k) * MS, NAMES, np.full(2, 0.01 * k))
    return np.array(states.present(0.01, "start")[1])


def kept_apart(values: Values) -> tuple[str, ...]:
    """Names of the pairs, of an arm whose finger may touch its upper link."""
    pytest.importorskip("coal")
    urdf = shaped_arm_urdf().replace("</robot>", FINGER)
    model = rbd.load_urdf(urdf)
    found = considered(PlannerSettings.from_values(split(PLANNER_TABLE, values)[0], model), urdf, model)
    return () if found.collisions is None else tuple(" – ".join(pair) for pair in found.collisions.pairs)


def voxels(values: Values) -> list[tuple[float, ...]]:
    """Sizes of what a cloud of two points, 0.15 m apart, makes."""
    pytest.importorskip("coal")
    urdf = shaped_arm_urdf()
    model = rbd.load_urdf(urdf)
    settings = PlannerSettings.from_values(split(PLANNER_TABLE, values)[0], model)
    made = MotionPlanner(model, settings, considered(settings, urdf, model).collisions)
    assert made.surroundings.take_cloud(cloud([[0.02, 2.02, 0.02], [0.02, 2.17, 0.02]]))
    assert made.surroundings.collisions is not None
    return [piece.shape.size for piece in made.surroundings.collisions.pieces if not piece.own]


def framed(values: Values) -> bool:
    """Whether markers in frame "world" are taken."""
    pytest.importorskip("coal")
    urdf = shaped_arm_urdf()
    model = rbd.load_urdf(urdf)
    settings = PlannerSettings.from_values(split(PLANNER_TABLE, values)[0], model)
    made = MotionPlanner(model, settings, considered(settings, urdf, model).collisions)
    return bool(made.surroundings.take_markers(markers(marker(frame="world"))))


def clearance(values: Values) -> float:
    """Of the task of a request."""
    return planner(values).prepare(MotionRequest(NAMES, GOAL, START), 0.0).clearance


def planner_cases() -> dict[str, Case]:
    model = arm()
    loaded = with_payloads(model, {"lower": payload(2.0, np.zeros(3), np.zeros((3, 3)))})
    away = with_payloads(model, {"lower": payload(2.0, np.array([0.1, 0.0, 0.0]), np.zeros((3, 3)))})
    wide = with_payloads(model, {"lower": payload(2.0, np.zeros(3), 0.1 * np.eye(3))})
    return {
        "gravity": model_case(list(MOON), model.with_(gravity=MOON)),
        "mounting.rpy": model_case(list(TILT), model.with_(gravity=TILTED)),
        "rotor_inertia": model_case([0.3, 0.1], model.with_(armature=[0.3, 0.1])),
        "locked.joints": model_case(["elbow"], rbd.load_urdf(arm_urdf(), locked={"elbow": 0.0})),
        "locked.positions": model_case(0.5, rbd.load_urdf(arm_urdf(), locked={"elbow": 0.5}),
                                       {"locked.joints": ["elbow"]}),
        "joints": model_case(NAMES[::-1], model.with_(armature=[0.1, 0.3]), {"rotor_inertia": [0.3, 0.1]}),
        "payload.body": Case("lower", unexplained(loaded), 0.0, {"payload.mass": 2.0}),
        "payload.mass": Case(2.0, unexplained(loaded), 0.0, {"payload.body": "lower"}),
        "payload.com": Case([0.1, 0.0, 0.0], unexplained(away), 0.0, LOAD),
        "payload.inertia": Case([0.1, 0.1, 0.1, 0.0, 0.0, 0.0], unexplained(wide), 0.0, LOAD),
        "friction.damping": Case(False, unexplained(model.with_(damping=0.0)), 0.0),
        "friction.coulomb": Case(False, unexplained(model.with_(friction=0.0)), 0.0),
        "friction.smoothing": Case(0.5, unexplained(model, 0.5), 0.0),
        "friction.asymmetry": Case([0.05, 0.0], unexplained(model, asymmetry=[0.05, 0.0]), 0.0),
        "friction.viscous_asymmetry": Case([0.05, 0.0], unexplained(model, viscous_asymmetry=[0.05, 0.0]), 0.0),
        "friction.load": Case([0.1, 0.2], unexplained(model, load=[0.1, 0.2]), 0.0),
        "effort_limits.maximum": Case(12.0, largest("effort", 12.0, duration=0.7), True),
        "effort_limits.override_zero": Case(50.0, zero_override, True),
        "effort_limits.scaling": Case(0.12, largest("effort", [12.0, 6.0], duration=0.7), True),
        "velocity_limits.scaling": Case(0.4, largest("v", 0.4 * model.velocity_limit), True),
        "acceleration_limits": Case(3.0, largest("a", 3.0), True),
        "jerk_limits": Case(25.0, jerk, True),
        "passive_joints": Case(["elbow"], without_motors, True),
        "sample_period": Case(0.005, period, 0.005),
        "time_limit": Case(0.01, searched, True),
        "starts": Case(3, searched_again, True),
        "memory_limit": Case(100.0, lambda values: planner(values).prepare(
            MotionRequest(NAMES, GOAL, START), 0.0).memory_limit, 100.0),
        "waypoint_limit": Case(2, waypoints, False),
        "state_timeout": Case(0.305, known_for, 0.31),
        "rest_velocity": Case(0.2, starts_while_moving, True),
        "collisions.use": Case("never", kept_apart, ()),
        "collisions.srdf": Case(SRDF, kept_apart, ("upper – lower", "lower – finger")),
        "collisions.obstacles": Case(FLOOR, kept_apart, lambda was: (
            *was, "upper – floor", "lower – floor", "finger – floor")),
        "collisions.frame": Case("world", framed, True),
        "collisions.voxel_size": Case(0.2, voxels, [(0.2, 0.2, 0.2)]),
        "collisions.clearance": Case(0.05, clearance, 0.05),
        "velocity_cutoff": Case(0.0, estimated, np.ones(2)),
    }

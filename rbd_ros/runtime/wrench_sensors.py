"""Force-torque sensors at joints, fixed ones included: names and readings.

A reading is the wrench of the child link on the parent link, in the frame of the child link about its origin, as by
default in Gazebo and for real sensors at a wrist: at rest, the weight of the links behind; with contact, its force.
"""
from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.dynamics.bodies.joint_wrenches import joint_wrenches
from ..core.errors import RbdError, unknown_name
from ..core.model.robot_model import RobotModel
from .parameters import Parameter

Array = NDArray[np.float64]

WRENCH_JOINTS = Parameter(
    "wrench_joints", "strings", (), "Joints, fixed ones too, with a force-torque sensor: what the child link exerts on "
    "the parent link is published on ~/wrench/<joint>, gravity and inertia included.", read_only=True)


class WrenchSensor(NamedTuple):
    """A sensor at a joint: name of its topic, link of its frame, and index of that link in `body_names` (`link`)."""

    joint: str
    topic: str
    frame: str
    link: int


def sensor_topic(joint: str) -> str:
    """Topic of the sensor at a joint. Characters invalid in topics become underscores."""
    return "~/wrench/" + re.sub(r"_+", "_", re.sub(r"\W|^(?=\d)", "_", joint, flags=re.ASCII))


def wrench_sensors(names: tuple[str, ...], model: RobotModel) -> tuple[WrenchSensor, ...]:
    """The sensors of parameter `wrench_joints`; raises `RbdError`."""
    children = {joint.name: joint.child for joint in model.description.joints}
    sensors: dict[str, WrenchSensor] = {}
    for name in names:
        if name not in children:
            raise unknown_name("joint in parameter 'wrench_joints':", name, children)
        topic = sensor_topic(name)
        if topic in sensors:
            raise RbdError(f"parameter 'wrench_joints': joints '{sensors[topic].joint}' and '{name}' would share the "
                           f"topic {topic}")
        sensors[topic] = WrenchSensor(name, topic, children[name], model.body_index(children[name]))
    return tuple(sensors.values())


def readings(model: RobotModel, sensors: tuple[WrenchSensor, ...], q: Array, v: Array, a: Array,
             wrenches: Any) -> Array | None:
    """Readings of the sensors (n, 6), moment first, under external wrenches; None if non-finite."""
    try:
        return -joint_wrenches(model, q, v, a, wrenches)[[sensor.link for sensor in sensors]]
    except RbdError:
        return None

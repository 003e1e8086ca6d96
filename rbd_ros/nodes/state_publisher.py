"""State publishers of the simulator, and the states in its service requests."""
from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos_overriding_options import QoSOverridingOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from rbd_interfaces.msg import ConstraintForces

from ..core.errors import RbdError
from ..runtime.plant.elastic_plant import ElasticPlant
from ..runtime.plant.plant import Plant
from ..runtime.plant.simulator_settings import SimulatorSettings
from .outputs.contacts import ContactPublisher
from .outputs.message_bytes import MessageBytes
from .outputs.wrenches import WrenchPublishers

Array = NDArray[np.float64]
STATE = ("position", "velocity", "effort")


class StatePublisher:
    """Publishes `joint_states` in the order of parameter `joints`; before it `/clock`, if configured, and
    `motor_states`, if there are motors with their own coordinates; after it `~/constraint_forces`, `~/contact_forces`
    and the readings of force-torque sensors, if there are any.
    """

    def __init__(self, node: Node, settings: SimulatorSettings, motors: Sequence[str] = ()) -> None:
        self._node = node
        self._message = MessageBytes(JointState(name=list(settings.joints)), dict.fromkeys(STATE, len(settings.joints)),
                                     stamped=True)
        self._states = node.create_publisher(JointState, "joint_states", 10, qos_overriding_options=(
            QoSOverridingOptions.with_default_policies()))
        self._clock = node.create_publisher(Clock, "/clock", 10) if settings.publish_clock else None
        self._motors = MessageBytes(JointState(name=list(motors)), dict.fromkeys(STATE, len(motors)), stamped=True)
        self._motor_states = node.create_publisher(JointState, "motor_states", 10, qos_overriding_options=(
            QoSOverridingOptions.with_default_policies())) if motors else None
        self._forces = ConstraintForces(name=list(settings.constraints.labels))
        self._constraints = node.create_publisher(
            ConstraintForces, "~/constraint_forces", 10, qos_overriding_options=(
                QoSOverridingOptions.with_default_policies())) if settings.constraints.size else None
        self._contacts = ContactPublisher(node, settings.contacts, settings.plant.body_names[0])
        self._sensors = WrenchPublishers(node, settings.sensors)

    def publish(self, stamp: Any, plant: Plant) -> None:
        """Publish the present state of the plant, stamped with a builtin_interfaces/Time."""
        robot = plant.simulator
        if self._clock is not None:
            self._clock.publish(Clock(clock=stamp))
        if self._motor_states is not None and isinstance(plant, ElasticPlant):
            elastic = plant.simulator
            _send(self._motors, self._motor_states, stamp, plant.motor_output,
                  (elastic.motor_position, elastic.motor_velocity, plant.effort))
        _send(self._message, self._states, stamp, plant.settings.output, (robot.q, robot.v, plant.joint_effort))
        if self._constraints is not None:
            self._publish_forces(stamp, plant)
        self._contacts.send(stamp, plant.contact_forces())
        self._sensors.send((stamp.sec, stamp.nanosec), plant.sensed())

    def _publish_forces(self, stamp: Any, plant: Plant) -> None:
        forces = plant.constraint_forces()
        if forces is not None and self._constraints is not None:
            self._forces.header.stamp = stamp
            self._forces.force, self._forces.residual = array("d", forces.force), array("d", forces.residual)
            self._constraints.publish(self._forces)

    def destroy(self) -> None:
        self._node.destroy_publisher(self._states)
        self._sensors.destroy()
        self._contacts.destroy()
        for publisher in (self._clock, self._constraints, self._motor_states):
            if publisher is not None:
                self._node.destroy_publisher(publisher)


def _send(message: MessageBytes, publisher: Any, stamp: Any, order: Any, values: Sequence[Array]) -> None:
    for field, value in zip(STATE, values, strict=True):
        message.numbers[field][:] = value[order]
    message.send(publisher, stamp.sec, stamp.nanosec)


def in_model_order(state: Any, names: Sequence[str]) -> tuple[Array, Array]:
    """Positions and velocities (nv,) of an rbd_interfaces/RobotState in the order of `names`; raises `RbdError`."""
    if sorted(state.name) != sorted(names):
        raise RbdError(f"the state must list every joint once: {', '.join(names)}; got {', '.join(state.name)}")
    if len(state.position) != len(names) or len(state.velocity) not in (0, len(names)):
        raise RbdError(f"the state has {len(state.position)} positions and {len(state.velocity)} velocities for "
                       f"{len(names)} joints")
    order = [list(state.name).index(name) for name in names]
    velocity = np.array(state.velocity)[order] if len(state.velocity) else np.zeros(len(names))
    return np.array(state.position)[order], velocity

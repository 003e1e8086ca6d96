"""Outputs of node `flatness` for the motors of elastic joints."""
from __future__ import annotations

from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rbd_interfaces.msg import ElasticJointReference

from ...runtime.control.elastic_settings import ElasticSettings
from ...runtime.safety import Command
from .output import Array, Output, shared

SECOND = ("position", "velocity", "acceleration", "effort")    # of both motors, as the fields end


class MotorReferenceOutput(Output):
    """`~/motor_reference`, rbd_interfaces/ElasticJointReference: the elastic joints in the order of parameter
    `joints`, while there is a command.
    """

    def __init__(self, node: Node, settings: ElasticSettings) -> None:
        actuation = settings.actuation
        listed = [int(i) for i in settings.output if i in actuation.elastic]
        message = ElasticJointReference(name=[actuation.joint_names[i] for i in listed])
        count = len(listed)
        self._first = {field: shared(message, f"motor_{field}", count) for field in SECOND}
        self._stiffness = shared(message, "stiffness", count)
        variable = list(actuation.variable)
        self._at = np.array([at for at, i in enumerate(listed) if i in variable], dtype=np.intp)
        self._seconds = np.array([actuation.nv + variable.index(listed[at]) for at in self._at], dtype=np.intp)
        self._second: dict[str, Array] = {}
        if variable:
            self._second = {field: shared(message, f"stiffness_motor_{field}", count) for field in SECOND}
            for values in self._second.values():
                values[:] = np.nan
        super().__init__(node, message, "~/motor_reference", np.array(listed, dtype=np.intp))

    def publish(self, stamp: Any, q: Array, v: Array, command: Command) -> None:
        motors = command.motors
        if motors is None:
            return
        for field, values in self._first.items():
            values[:] = getattr(motors, field)[self._indices]
        for field, values in self._second.items():
            values[self._at] = getattr(motors, field)[self._seconds]
        self._stiffness[:] = motors.stiffness[self._indices]
        self._message.header.stamp = stamp
        self._publisher.publish(self._message)


class MotorEffortOutput(Output):
    """The effort of all motors: `~/motor_effort`, sensor_msgs/JointState by name, and `~/motor_commands`,
    std_msgs/Float64MultiArray in the order of its names.
    """

    def __init__(self, node: Node, settings: ElasticSettings) -> None:
        indices = settings.motor_output
        message = JointState(name=list(settings.motor_names))
        self._effort = shared(message, "effort", len(indices))
        super().__init__(node, message, "~/motor_effort", indices)
        self._array = Float64MultiArray()
        self._data = shared(self._array, "data", len(indices))
        self._commands = node.create_publisher(Float64MultiArray, "~/motor_commands", QoSProfile(depth=1),
                                               qos_overriding_options=QoSOverridingOptions.with_default_policies())

    def publish(self, stamp: Any, q: Array, v: Array, command: Command) -> None:
        if command.motor_effort is None:
            return
        self._effort[:] = self._data[:] = command.motor_effort[self._indices]
        self._message.header.stamp = stamp
        self._publisher.publish(self._message)
        self._commands.publish(self._array)

    @property
    def topics(self) -> list[str]:
        return [*super().topics, self._commands.topic_name]

    def destroy(self) -> None:
        super().destroy()
        self._node.destroy_publisher(self._commands)

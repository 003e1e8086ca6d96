"""Outputs of node `flatness` for the motors of elastic joints."""
from __future__ import annotations

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rbd_interfaces.msg import ElasticJointReference

from ...runtime.control.elastic_settings import ElasticSettings
from ...runtime.safety import Command
from .message_bytes import MessageBytes
from .output import Array, Output, Stamp

FIELDS = ("position", "velocity", "acceleration", "effort")    # of both motors: suffixes of the message's fields


class MotorReferenceOutput(Output):
    """`~/motor_reference`, rbd_interfaces/ElasticJointReference: the elastic joints in the order of parameter
    `joints`, while there is a command.
    """

    def __init__(self, node: Node, settings: ElasticSettings) -> None:
        actuation = settings.actuation
        listed = [int(i) for i in settings.output if i in actuation.elastic]
        variable = list(actuation.variable)
        self._at = np.array([at for at, i in enumerate(listed) if i in variable], dtype=np.intp)
        self._seconds = np.array([actuation.nv + variable.index(listed[at]) for at in self._at], dtype=np.intp)
        first = [f"motor_{field}" for field in FIELDS]
        second = [f"stiffness_motor_{field}" for field in FIELDS] if variable else []
        super().__init__(node, ElasticJointReference(name=[actuation.joint_names[i] for i in listed]),
                         "~/motor_reference", np.array(listed, dtype=np.intp),
                         dict.fromkeys((*first, "stiffness", *second), len(listed)), stamped=True)
        self._first = [(field, self.numbers[name]) for field, name in zip(FIELDS, first, strict=True)]
        self._second = [(field, self.numbers[name]) for field, name in zip(FIELDS, second, strict=False)]
        for _, values in self._second:
            values[:] = np.nan

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        motors = command.motors
        if motors is None:
            return
        for field, values in self._first:
            values[:] = getattr(motors, field)[self._indices]
        for field, values in self._second:
            values[self._at] = getattr(motors, field)[self._seconds]
        self.numbers["stiffness"][:] = motors.stiffness[self._indices]
        self.send(stamp)


class MotorEffortOutput(Output):
    """The effort of all motors: `~/motor_effort`, sensor_msgs/JointState by name, and `~/motor_commands`,
    std_msgs/Float64MultiArray in the order of its names.
    """

    def __init__(self, node: Node, settings: ElasticSettings) -> None:
        indices = settings.motor_output
        super().__init__(node, JointState(name=list(settings.motor_names)), "~/motor_effort", indices,
                         {"effort": len(indices)}, stamped=True)
        self._data = MessageBytes(Float64MultiArray(), {"data": len(indices)}, stamped=False)
        self._commands = node.create_publisher(Float64MultiArray, "~/motor_commands", QoSProfile(depth=1),
                                               qos_overriding_options=QoSOverridingOptions.with_default_policies())

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        if command.motor_effort is None:
            return
        self.numbers["effort"][:] = self._data.numbers["data"][:] = command.motor_effort[self._indices]
        self.send(stamp)
        self._data.send(self._commands)

    @property
    def topics(self) -> list[str]:
        return [*super().topics, self._commands.topic_name]

    def destroy(self) -> None:
        super().destroy()
        self._node.destroy_publisher(self._commands)

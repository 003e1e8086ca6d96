"""Declaration tables (`runtime.parameters`) as ROS parameters."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from ...core.errors import RbdError
from ...runtime.parameters import Parameter, Table, misspelt
from .rclpy_inside import guard_service, overrides

EXECUTORS = ("single_threaded", "events")
EXECUTOR = Parameter("executor", "string", "single_threaded", "rclpy executor. With 'events', Python wheels of ROS "
                     "deliver nothing; ordinary installations are faster.", choices=EXECUTORS, read_only=True)
INPUT_BYTES = Parameter("input_limits.bytes", "number", 65536.0, "Size of a message above which it is rejected unread, "
                        "bytes; trajectories and robot descriptions have other limits.", lower=1024.0, upper=1e9,
                        read_only=True)
MODEL_NODE_TABLE: Table = (
    Parameter("autostart", "bool", True, "Configure and activate as soon as there is a robot description.",
              read_only=True),
    EXECUTOR,
    Parameter("robot_description", "string", "", "URDF text. Empty: from robot_description_file, else from the topic "
              "robot_description.", read_only=True),
    Parameter("robot_description_file", "string", "", "Path of a URDF file, or of a xacro file followed by its "
              "arguments (arm.xacro name:=value), used if robot_description is empty.", read_only=True),
    Parameter("package_folders", "strings", (), "Folders of ROS packages, or that hold some, looked at first for "
              "package://NAME/… and $(find NAME) of robot_description_file. Empty: sourced workspaces, "
              "ROS_PACKAGE_PATH, and around the file.", read_only=True),
    Parameter("mounting.frame", "string", "", "Frame whose z axis points up, from which topic tf_static leads to the "
              "root link: gravity acts accordingly. Needs package tf2_msgs. Empty: mounting.rpy counts.",
              read_only=True),
    INPUT_BYTES,
)


def declare(node: Node, table: Table) -> None:
    """Declare all rows. Types are checked by the table, which accepts `5`, `5.0` and `[5.0, 5.0]` alike."""
    _refuse_unknown_types(node)
    for row in table:
        if not node.has_parameter(row.name):
            node.declare_parameter(row.name, _ros_value(row), ParameterDescriptor(
                description=row.description, additional_constraints=row.constraints, read_only=row.read_only,
                dynamic_typing=True))
    for note in misspelt(overrides(node), table):
        node.get_logger().warning(note)


def read(node: Node, table: Table) -> dict[str, Any]:
    """The present values, unvalidated."""
    return {row.name: node.get_parameter(row.name).value for row in table}


def on_change(node: Node, table: Table, check: Callable[[Mapping[str, Any]], Any], apply: Callable[[], None]) -> None:
    """Call `check` with all values before a change, which its `RbdError` rejects; then call `apply`."""
    names = {row.name for row in table}

    def before(changes: list[RosParameter]) -> SetParametersResult:
        accepted = {change.name: change.value for change in changes if change.name in names}
        if accepted:
            try:
                check(read(node, table) | accepted)
            except RbdError as error:
                return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def after(changes: list[RosParameter]) -> None:
        if any(change.name in names for change in changes):
            apply()

    node.add_on_set_parameters_callback(before)
    node.add_post_set_parameters_callback(after)


def _refuse_unknown_types(node: Node) -> None:
    """Reject parameters of types unknown to ROS; rclpy raises an error for them, which ends the process."""
    guard_service(node, (SetParameters, SetParametersAtomically), _refusing)


def _refusing(change: Callable[..., Any]) -> Callable[..., Any]:
    types = {kind.value for kind in RosParameter.Type}

    def answer(request: Any, response: Any) -> Any:
        wrong = [item for item in request.parameters if item.value.type not in types]
        if not wrong:
            return change(request, response)
        result = SetParametersResult(successful=False, reason=f"parameter '{wrong[0].name}' is of type "
                                     f"{wrong[0].value.type}, which is not a ROS type; nothing was changed")
        if isinstance(response, SetParametersAtomically.Response):
            response.result = result
        else:
            response.results = [result] * len(request.parameters)
        return response

    return answer


def _ros_value(row: Parameter) -> Any:
    if row.kind == "numbers":
        return list(row.default) if len(row.default) > 1 else row.default[0]
    if row.kind == "strings":
        return list(row.default) or [""]
    return row.default

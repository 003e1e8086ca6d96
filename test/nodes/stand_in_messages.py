"""Message packages that cannot be installed everywhere, made from their published definitions.

Only the Python classes are made, by ROS' own generator, so that fields, types and sizes are checked as in the real
package. Without the C part nothing can be sent: what would be published is caught before the middleware.
"""
from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import pytest

# control_msgs of Jazzy and, with JointCommand, of April 2026 and later. The fields of JointCommand are those which
# joint_command_topic_hardware_interface fills; their order in the message does not matter here.
CONTROL_MSGS = {
    "MultiDOFCommand": "string[] dof_names\nfloat64[] values\nfloat64[] values_dot\n",
    "JointCommand": "std_msgs/Header header\nstring[] joint_names\nstring interface_name\nfloat64[] values\n",
}
LBR_FRI_IDL = {    # lbr_fri_idl 2; of LBRState only what is read
    "LBRTorqueCommand": "float64[7] joint_position\nfloat64[7] torque\n",
    "LBRState": "int8 session_state\nfloat64[7] measured_joint_position\n",
}
LFC_MSGS = {    # linear_feedback_controller_msgs
    "Contact": "bool active\nstring name\ngeometry_msgs/Wrench wrench\ngeometry_msgs/Pose pose\n",
    "Sensor": "std_msgs/Header header\ngeometry_msgs/Pose base_pose\ngeometry_msgs/Twist base_twist\n"
              "sensor_msgs/JointState joint_state\nContact[] contacts\n",
    "Control": "std_msgs/Header header\nstd_msgs/Float64MultiArray feedback_gain\n"
               "std_msgs/Float64MultiArray feedforward\nSensor initial_state\n",
}


def generate(folder: Path, package: str, definitions: dict[str, str]) -> None:
    """Make `<package>.msg` importable from `folder`, which must be on sys.path."""
    adapter = pytest.importorskip("rosidl_adapter.msg", reason="rosidl_adapter is not installed")
    generator = pytest.importorskip("rosidl_generator_py", reason="rosidl_generator_py is not installed")
    source, made = folder / f"{package}_source", folder / package
    (source / "msg").mkdir(parents=True)
    with contextlib.redirect_stdout(io.StringIO()):
        for name, text in definitions.items():
            (source / "msg" / f"{name}.msg").write_text(text)
            adapter.convert_msg_to_idl(source, package, Path("msg") / f"{name}.msg", source / "msg")
        arguments = folder / f"{package}.json"
        arguments.write_text(json.dumps({
            "package_name": package, "output_dir": str(made), "template_dir": str(_templates()),
            "idl_tuples": [f"{source}:msg/{name}.idl" for name in definitions], "target_dependencies": []}))
        generator.generate_py(str(arguments), [])
    (made / "__init__.py").touch()
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        del sys.modules[name]


def _templates() -> Path:
    from ament_index_python.packages import get_package_share_directory
    return Path(get_package_share_directory("rosidl_generator_py")) / "resource"

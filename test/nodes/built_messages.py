"""Builds message packages that cannot be installed everywhere, so that they go through the middleware."""
from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CMAKE = """cmake_minimum_required(VERSION 3.14)
project({package})
foreach(needed ament_cmake rosidl_default_generators {dependencies})
  find_package(${{needed}} REQUIRED)
endforeach()
rosidl_generate_interfaces(${{PROJECT_NAME}} {files} DEPENDENCIES {dependencies})
ament_package()
"""
XML = """<package format="3"><name>{package}</name><version>0.0.0</version><description>as published</description>
  <maintainer email="nobody@example.com">a</maintainer><license>Apache-2.0</license>
  <buildtool_depend>ament_cmake</buildtool_depend><buildtool_depend>rosidl_default_generators</buildtool_depend>
  {depends}<member_of_group>rosidl_interface_packages</member_of_group>
  <export><build_type>ament_cmake</build_type></export></package>
"""
# The action of joint_trajectory_controller, with the fields of control_msgs in Jazzy.
TOLERANCE = "string {}name\nfloat64 position\nfloat64 velocity\nfloat64 acceleration\n"
CONTROL_MSGS = {
    "msg/JointTolerance.msg": TOLERANCE.format(""),
    "msg/JointComponentTolerance.msg": "string joint_name\nuint16 component\nfloat64 position\nfloat64 velocity\n"
                                       "float64 acceleration\n",
    "action/FollowJointTrajectory.action":
        "trajectory_msgs/JointTrajectory trajectory\ntrajectory_msgs/MultiDOFJointTrajectory multi_dof_trajectory\n"
        "JointTolerance[] path_tolerance\nJointComponentTolerance[] component_path_tolerance\n"
        "JointTolerance[] goal_tolerance\nJointComponentTolerance[] component_goal_tolerance\n"
        "builtin_interfaces/Duration goal_time_tolerance\n---\nint32 error_code\nint32 SUCCESSFUL = 0\n"
        "int32 INVALID_GOAL = -1\nint32 INVALID_JOINTS = -2\nint32 OLD_HEADER_TIMESTAMP = -3\n"
        "int32 PATH_TOLERANCE_VIOLATED = -4\nint32 GOAL_TOLERANCE_VIOLATED = -5\nstring error_string\n---\n"
        "std_msgs/Header header\nstring[] joint_names\ntrajectory_msgs/JointTrajectoryPoint desired\n"
        "trajectory_msgs/JointTrajectoryPoint actual\ntrajectory_msgs/JointTrajectoryPoint error\nint32 index\n"
        "string[] multi_dof_joint_names\ntrajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_desired\n"
        "trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_actual\n"
        "trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_error\nint32 multi_dof_index\n"}


def build(folder: Path, package: str, definitions: dict[str, str], dependencies: tuple[str, ...]) -> None:
    """Make a package importable here and in child processes, unless it is installed: some ten seconds."""
    try:
        importlib.import_module(package)
        return
    except ImportError:
        pass
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed, which builds messages")
    source, prefix = folder / "source", folder / "install"
    for name, text in definitions.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    (source / "CMakeLists.txt").write_text(CMAKE.format(
        package=package, files=" ".join(definitions), dependencies=" ".join(dependencies)))
    (source / "package.xml").write_text(XML.format(package=package, depends="".join(
        f"<depend>{name}</depend>" for name in dependencies)))
    options = [f"-DCMAKE_INSTALL_PREFIX={prefix}", f"-DCMAKE_INSTALL_RPATH={prefix / 'lib'}", "-DBUILD_TESTING=OFF",
               "-DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON", f"-DPython3_EXECUTABLE={sys.executable}"]
    for command in (["cmake", "-S", source, "-B", folder / "build", *options],
                    ["cmake", "--build", folder / "build", "--target", "install", "-j2"]):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    [site] = {path.parent for path in prefix.rglob(f"{package}/__init__.py")}
    for name, path in (("PYTHONPATH", site.parent), ("LD_LIBRARY_PATH", prefix / "lib"), ("AMENT_PREFIX_PATH", prefix)):
        os.environ[name] = os.pathsep.join([str(path), *filter(None, [os.getenv(name)])])
    sys.path.insert(0, str(site.parent))
    for library in (prefix / "lib").glob(f"lib{package}*.so"):    # found by name later: the path of this process is old
        ctypes.CDLL(str(library))

"""Builds message packages that cannot be installed everywhere, so that they go through the middleware.

They are kept in the environment. Run as a program (by `scripts/setup --peers`), it builds those of the default run.
"""
from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from support import forks

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

# What obstacles come as, with the fields of Jazzy; of moveit_msgs what a PlanningScene has.
VISUALIZATION_MSGS = {
    "msg/UVCoordinate.msg": "float32 u\nfloat32 v\n", "msg/MeshFile.msg": "string filename\nuint8[] data\n",
    "msg/Marker.msg":
        "int32 ARROW=0\nint32 CUBE=1\nint32 SPHERE=2\nint32 CYLINDER=3\nint32 LINE_STRIP=4\nint32 LINE_LIST=5\n"
        "int32 CUBE_LIST=6\nint32 SPHERE_LIST=7\nint32 POINTS=8\nint32 TEXT_VIEW_FACING=9\nint32 MESH_RESOURCE=10\n"
        "int32 TRIANGLE_LIST=11\nint32 ARROW_STRIP=12\nint32 ADD=0\nint32 MODIFY=0\nint32 DELETE=2\n"
        "int32 DELETEALL=3\nstd_msgs/Header header\nstring ns\nint32 id\nint32 type\nint32 action\n"
        "geometry_msgs/Pose pose\ngeometry_msgs/Vector3 scale\nstd_msgs/ColorRGBA color\n"
        "builtin_interfaces/Duration lifetime\nbool frame_locked\ngeometry_msgs/Point[] points\n"
        "std_msgs/ColorRGBA[] colors\nstring texture_resource\nsensor_msgs/CompressedImage texture\n"
        "UVCoordinate[] uv_coordinates\nstring text\nstring mesh_resource\nMeshFile mesh_file\n"
        "bool mesh_use_embedded_materials\n",
    "msg/MarkerArray.msg": "Marker[] markers\n"}
SHAPE_MSGS = {
    "msg/SolidPrimitive.msg":
        "uint8 BOX=1\nuint8 SPHERE=2\nuint8 CYLINDER=3\nuint8 CONE=4\nuint8 PRISM=5\nuint8 type\n"
        "float64[<=3] dimensions\ngeometry_msgs/Polygon polygon\n",
    "msg/MeshTriangle.msg": "uint32[3] vertex_indices\n",
    "msg/Mesh.msg": "MeshTriangle[] triangles\ngeometry_msgs/Point[] vertices\n",
    "msg/Plane.msg": "float64[4] coef\n"}
OBJECT_RECOGNITION_MSGS = {"msg/ObjectType.msg": "string key\nstring db\n"}
OCTOMAP_MSGS = {
    "msg/Octomap.msg": "std_msgs/Header header\nbool binary\nstring id\nfloat64 resolution\nint8[] data\n",
    "msg/OctomapWithPose.msg": "std_msgs/Header header\ngeometry_msgs/Pose origin\nOctomap octomap\n"}
MOVEIT_MSGS = {
    "msg/CollisionObject.msg":
        "std_msgs/Header header\ngeometry_msgs/Pose pose\nstring id\nobject_recognition_msgs/ObjectType type\n"
        "shape_msgs/SolidPrimitive[] primitives\ngeometry_msgs/Pose[] primitive_poses\nshape_msgs/Mesh[] meshes\n"
        "geometry_msgs/Pose[] mesh_poses\nshape_msgs/Plane[] planes\ngeometry_msgs/Pose[] plane_poses\n"
        "string[] subframe_names\ngeometry_msgs/Pose[] subframe_poses\nbyte ADD=0\nbyte REMOVE=1\nbyte APPEND=2\n"
        "byte MOVE=3\nbyte operation\n",
    "msg/AttachedCollisionObject.msg":
        "string link_name\nCollisionObject object\nstring[] touch_links\n"
        "trajectory_msgs/JointTrajectory detach_posture\nfloat64 weight\n",
    "msg/RobotState.msg":
        "sensor_msgs/JointState joint_state\nsensor_msgs/MultiDOFJointState multi_dof_joint_state\n"
        "AttachedCollisionObject[] attached_collision_objects\nbool is_diff\n",
    "msg/PlanningSceneWorld.msg": "CollisionObject[] collision_objects\noctomap_msgs/OctomapWithPose octomap\n",
    "msg/AllowedCollisionEntry.msg": "bool[] enabled\n",
    "msg/AllowedCollisionMatrix.msg":
        "string[] entry_names\nAllowedCollisionEntry[] entry_values\nstring[] default_entry_names\n"
        "bool[] default_entry_values\n",
    "msg/LinkPadding.msg": "string link_name\nfloat64 padding\n",
    "msg/LinkScale.msg": "string link_name\nfloat64 scale\n",
    "msg/ObjectColor.msg": "string id\nstd_msgs/ColorRGBA color\n",
    "msg/PlanningScene.msg":
        "string name\nRobotState robot_state\nstring robot_model_name\n"
        "geometry_msgs/TransformStamped[] fixed_frame_transforms\nAllowedCollisionMatrix allowed_collision_matrix\n"
        "LinkPadding[] link_padding\nLinkScale[] link_scale\nObjectColor[] object_colors\n"
        "PlanningSceneWorld world\nbool is_diff\n"}
OF_SCENES = (    # package, definitions, dependencies: in this order
    ("visualization_msgs", VISUALIZATION_MSGS, ("builtin_interfaces", "std_msgs", "geometry_msgs", "sensor_msgs")),
    ("shape_msgs", SHAPE_MSGS, ("geometry_msgs",)),
    ("object_recognition_msgs", OBJECT_RECOGNITION_MSGS, ()),
    ("octomap_msgs", OCTOMAP_MSGS, ("std_msgs", "geometry_msgs")),
    ("moveit_msgs", MOVEIT_MSGS, ("std_msgs", "geometry_msgs", "sensor_msgs", "trajectory_msgs", "shape_msgs",
                                  "object_recognition_msgs", "octomap_msgs")))
OF_TRAJECTORIES = (
    ("control_msgs", CONTROL_MSGS, ("action_msgs", "builtin_interfaces", "std_msgs", "trajectory_msgs")),)
FOLDER = Path(sys.prefix) / "messages"
_LOADED: set[str] = set()    # packages, by this process


@contextlib.contextmanager
def built(packages: Iterable[tuple[str, dict[str, str], tuple[str, ...]]]) -> Iterator[None]:
    """Packages, as above, which this process and its children can import until the end."""
    with pytest.MonkeyPatch.context() as patch:
        for package, definitions, dependencies in packages:
            if package not in _LOADED and importlib.util.find_spec(package):    # it is installed
                continue
            prefix = _prefix(package, definitions, dependencies)
            for name, path in (("PYTHONPATH", _site(prefix, package)), ("LD_LIBRARY_PATH", prefix / "lib"),
                               ("AMENT_PREFIX_PATH", prefix), ("CMAKE_PREFIX_PATH", prefix)):
                patch.setenv(name, str(path), prepend=os.pathsep)
            if package not in _LOADED:
                _LOADED.add(package)
                sys.path.insert(0, str(_site(prefix, package)))
                for library in (prefix / "lib").glob(f"lib{package}*.so"):    # found by name later, by another path
                    ctypes.CDLL(str(library))
        forks.renew()
        yield
    forks.renew()


def _prefix(package: str, definitions: dict[str, str], dependencies: tuple[str, ...]) -> Path:
    """Where a package is installed, after it was built if needed: some ten seconds."""
    text = repr((definitions, dependencies, CMAKE, sys.version, os.environ.get("ROS_DISTRO")))
    folder = FOLDER / f"{package}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        pytest.skip(f"{FOLDER}, where messages are built, is not writable")
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _build(folder, package, definitions, dependencies)
            (folder / "complete").touch()
    return folder / "install"


def _site(prefix: Path, package: str) -> Path:
    [module] = prefix.rglob(f"{package}/__init__.py")
    return module.parent.parent


def _build(folder: Path, package: str, definitions: dict[str, str], dependencies: tuple[str, ...]) -> None:
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


if __name__ == "__main__":
    with built(OF_TRAJECTORIES):
        pass

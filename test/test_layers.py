"""The architecture as imports show it: three wings, no layer reaches up, and only the nodes know ROS."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest
from support.imports import imports

PACKAGE = Path(__file__).parents[1] / "rbd_ros"
LAYERS = ("errors", "text_table", "compiled", "lie", "model", "imaginary_step", "batch", "dynamics", "derivatives",
          "specialize", "actuation", "motion", "steady", "simulation", "learning", "feedback", "identification",
          "estimation")
WINGS = ("core", "runtime", "view", "nodes", "cli")    # each knows those before it; streams and signals know nothing
FOUNDATIONS = ("signals", "streams")
ROS = {"rclpy", "ament_index_python", "launch", "launch_ros", "rbd_interfaces", "builtin_interfaces", "rcl_interfaces",
       "rosidl_runtime_py", "tf2_ros"}


@functools.cache
def imported(path, package=PACKAGE):
    """(absolute module name, line) of every import anywhere in a file; each name of a `from … import` too."""
    found = []
    parts = ("rbd_ros", *path.relative_to(package).with_suffix("").parts)
    for node, _ in imports(path):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = parts[:-node.level] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            found += [(f"{module}.{alias.name}", node.lineno) for alias in node.names]
    return found


def layer(name):
    """Position in LAYERS of a module of the core; None for any other module."""
    parts = name.split(".")
    if parts[:2] != ["rbd_ros", "core"] or len(parts) < 3:
        return None
    return LAYERS.index(parts[2]) if parts[2] in LAYERS else None


def upward(path, package=PACKAGE):
    """What is wrong with the imports of a file of the core."""
    own = LAYERS.index(path.relative_to(package / "core").with_suffix("").parts[0])
    wrong = []
    for name, line in imported(path, package):
        if name.split(".")[0] != "rbd_ros":
            continue
        other = layer(name)
        if other is None:
            wrong.append(f"{path.name}:{line} imports {name}, which is outside the core's layers")
        elif other > own:
            wrong.append(f"{path.name}:{line}: {LAYERS[own]} imports {name}, a layer above")
    return wrong


def is_ros(name):
    root = name.split(".")[0]
    return root in ROS or root.endswith(("_msgs", "_srvs")) or name.startswith("rbd_ros.nodes")


CORE = sorted(path for path in (PACKAGE / "core").rglob("*.py") if path != PACKAGE / "core" / "__init__.py")
LIBRARY = sorted(path for path in PACKAGE.rglob("*.py") if "nodes" not in path.relative_to(PACKAGE).parts)
ROOMS = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


def wing(name):
    """Position in WINGS of a module; -1 of what is not in a wing."""
    parts = name.split(".")
    return WINGS.index(parts[1]) if parts[0] == "rbd_ros" and len(parts) > 1 and parts[1] in WINGS else -1


def named(path):
    return path.relative_to(PACKAGE).as_posix()


def test_no_layer_of_the_core_reaches_up():
    layers = {path.relative_to(PACKAGE / "core").with_suffix("").parts[0] for path in CORE}
    assert layers <= set(LAYERS), "a new layer: give it its place here"
    assert [line for path in CORE for line in upward(path)] == []


def test_all_of_the_core_is_below_its_front_door():
    """`rbd_ros/core/__init__.py` imports nothing: a layer can be imported without the others."""
    assert imported(PACKAGE / "core" / "__init__.py") == []


def test_no_wing_knows_the_one_above():
    assert {path.relative_to(PACKAGE).parts[0] for path in ROOMS} <= set(WINGS), "a new wing: give it its place here"
    found = [f"{named(path)}:{line}: {name}" for path in ROOMS for name, line in imported(path)
             if wing(name) > WINGS.index(path.relative_to(PACKAGE).parts[0])]
    assert found == []


def test_no_circle_of_imports():
    """Not even one that only type checkers see."""
    files = {".".join(("rbd_ros", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
             for path in ROOMS}
    edges = {name: {target for found, _ in imported(path) for target in (found, found.rpartition(".")[0])
                    if target in files and target != name and files[target].name != "__init__.py"}
             for name, path in files.items()}
    while free := {name for name, targets in edges.items() if not targets}:
        edges = {name: targets - free for name, targets in edges.items() if name not in free}
    assert not edges, "in circles, or above one: " + ", ".join(sorted(edges))


def test_only_nodes_know_ros():
    found = [f"{named(path)}:{line}: {name}" for path in LIBRARY for name, line in imported(path) if is_ros(name)
             # starts nodes, by importing them when asked to
             and not (path.relative_to(PACKAGE).parts[0] == "cli" and "rbd_ros.nodes" in name)]
    assert found == []


def test_importing_the_library_loads_no_ros():
    code = "import rbd_ros, sys; print({'rclpy', 'launch', 'rbd_interfaces'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, check=True, text=True,
                            stdout=subprocess.PIPE)
    assert result.stdout.strip() == "set()"


@pytest.mark.parametrize("line, word", [
    ("from ..dynamics.inverse import inverse_dynamics", "layer above"),
    ("from ..dynamics import inverse", "layer above"),
    ("from .. import simulation", "layer above"), ("import rbd_ros.runtime.control.tracking_law", "outside"),
    ("def f():\n    from ..motion import splines", "layer above"), ("from ... import load_urdf", "outside"),
    ("from ...nodes import torque_node", "outside")])
def test_a_file_that_reaches_up_is_found(tmp_path, line, word):
    file = tmp_path / "core" / "model" / "wrong.py"
    file.parent.mkdir(parents=True)
    file.write_text(line + "\n")
    assert len(upward(file, tmp_path)) == 1 and word in upward(file, tmp_path)[0]
    imported.cache_clear()
    file.write_text("import numpy\nfrom ..lie.so3 import exp\nfrom .block import node\nfrom ..errors import RbdError\n")
    assert upward(file, tmp_path) == []


@pytest.mark.parametrize("name", ["rclpy.node", "sensor_msgs.msg.JointState", "std_srvs.srv", "rbd_ros.nodes.x"])
def test_a_ros_import_is_recognised(name):
    assert is_ros(name) and not is_ros("rbd_ros.core.dynamics") and not is_ros("numpy")

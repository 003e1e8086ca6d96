"""package.xml names what the code imports: rosdep installs nothing else."""

import ast
import re
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
KEYS = {"numpy": "python3-numpy", "scipy": "python3-scipy", "numba": "python3-numba", "yaml": "python3-yaml",
        "matplotlib": "python3-matplotlib", "urdf_parser_py": "urdfdom_py",
        "llvmlite": "python3-numba"}    # which brings it
OPTIONAL = {"control_msgs", "controller_manager_msgs", "lbr_fri_idl", "mujoco", "ros_gz_interfaces", "rosbags",
            "simulation_interfaces", "clarabel", "trimesh", "viser", "websockets"}    # the last one comes with viser


def imported(path):
    """(module, whether it is imported at the top level of a file) of every absolute import."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        else:
            continue
        for name in names:
            yield name.split(".")[0], node in tree.body


FILES = sorted([*(CHECKOUT / "rbd_ros").rglob("*.py"), *(CHECKOUT / "launch").glob("*.py")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_what_is_imported_is_a_dependency(path):
    declared = set(re.findall(r"<exec_depend>(.+?)</exec_depend>", (CHECKOUT / "package.xml").read_text()))
    for module, first in imported(path):
        if module == "rbd_ros" or module in sys.stdlib_module_names:
            continue
        if module in OPTIONAL and not first:
            continue
        assert KEYS.get(module, module) in declared, f"{path.name} imports {module}"

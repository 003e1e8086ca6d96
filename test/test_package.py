"""package.xml names what the code imports: rosdep installs nothing else."""

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.imports import imports

CHECKOUT = Path(__file__).parents[1]
KEYS = {"numpy": "python3-numpy", "scipy": "python3-scipy", "numba": "python3-numba", "yaml": "python3-yaml",
        "matplotlib": "python3-matplotlib", "urdf_parser_py": "urdfdom_py",
        "llvmlite": "python3-numba"}    # which brings it
OPTIONAL = {"control_msgs", "controller_manager_msgs", "lbr_fri_idl", "mujoco", "ros_gz_interfaces", "rosbags",
            "simulation_interfaces", "casadi", "clarabel", "coal", "crocoddyl", "cupy", "jax", "pinocchio", "torch",
            "trimesh", "viser", "websockets", "msgspec"}    # these two come with viser


def imported(path):
    """(module, whether it is imported at the top level of a file) of every absolute import."""
    for node, first in imports(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            names = [] if node.level else [node.module]
        for name in names:
            yield name.split(".")[0], first


FILES = sorted([*(CHECKOUT / "rbd_ros").rglob("*.py"), *(CHECKOUT / "launch").glob("*.py")])


def test_what_is_imported_is_a_dependency():
    declared = set(re.findall(r"<exec_depend>(.+?)</exec_depend>", (CHECKOUT / "package.xml").read_text()))
    missing = [f"{path.relative_to(CHECKOUT)} imports {module}" for path in FILES for module, first in imported(path)
               if module != "rbd_ros" and module not in sys.stdlib_module_names
               and not (module in OPTIONAL and not first) and KEYS.get(module, module) not in declared]
    assert missing == []


def test_an_editable_install_is_a_path_in_which_types_are_found(tmp_path):
    """A finder that maps names to folders, which setuptools makes otherwise, is no place where mypy looks."""
    pytest.importorskip("setuptools")
    copy = tmp_path / "rbd_ros"
    shutil.copytree(CHECKOUT, copy, ignore=shutil.ignore_patterns(".*", "test", "docs", "output", "build"))
    code = "import sys; from setuptools.build_meta import build_editable; build_editable(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=copy, check=True, capture_output=True)
    wheel, = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        link, = (name for name in archive.namelist() if name.endswith((".pth", ".py")))
        assert archive.read(link).decode().strip() == str(copy) and (copy / "rbd_ros/py.typed").is_file()
        names, = (archive.read(name).decode() for name in archive.namelist() if name.endswith("entry_points.txt"))
    assert "rbd = rbd_executables:rbd" in names

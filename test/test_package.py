"""package.xml names what the code imports: rosdep installs nothing else."""

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
KEYS = {"numpy": "python3-numpy", "scipy": "python3-scipy", "numba": "python3-numba", "yaml": "python3-yaml",
        "matplotlib": "python3-matplotlib", "urdf_parser_py": "urdfdom_py",
        "llvmlite": "python3-numba"}    # which brings it
OPTIONAL = {"control_msgs", "controller_manager_msgs", "lbr_fri_idl", "mujoco", "ros_gz_interfaces", "rosbags",
            "simulation_interfaces", "clarabel", "trimesh", "viser",
            "websockets", "msgspec"}    # these two come with viser


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

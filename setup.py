"""Install rbd_ros, as an ament_python package (colcon) or with pip."""

from pathlib import Path
from xml.etree import ElementTree

from setuptools import Extension, find_packages, setup

NAME = "rbd_ros"
SHARE = f"share/{NAME}"


def tree(folder: str) -> list[tuple[str, list[str]]]:
    """The files of a folder and of those below it, as data files that keep this structure."""
    files: dict[str, list[str]] = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            files.setdefault(f"{SHARE}/{path.parent.as_posix()}", []).append(str(path))
    return list(files.items())


def door() -> list[Extension]:
    """The extension that calls compiled code; without a C compiler or NumPy's headers all works, more slowly."""
    try:
        import numpy
    except ImportError:
        return []
    return [Extension(f"{NAME}.core.compiled._door", [f"{NAME}/core/compiled/_door.c"], optional=True,
                      include_dirs=[numpy.get_include()], extra_compile_args=["-O2"])]


setup(
    name=NAME,
    version=ElementTree.parse("package.xml").findtext("version"),    # the one place where it stands
    description="Rigid-body dynamics for feed-forward control, and the ROS 2 nodes that use it",
    license="Apache-2.0",
    maintainer="rbd_ros developers",
    maintainer_email="rbd_ros@example.com",
    python_requires=">=3.10",
    package_dir={"": "."},    # an editable install is then a path, in which checkers of types find py.typed
    py_modules=["rbd_executables"],
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed", "**/*.urdf", "**/*.yaml", "**/*.in"]},
    ext_modules=door(),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (SHARE, ["package.xml"]),
        *tree("launch"),
        *tree("config"),
    ],
    install_requires=["setuptools", "numpy", "scipy", "numba", "pyyaml", "urdf-parser-py"],
    extras_require={"test": ["pytest", "hypothesis"], "mujoco": ["mujoco>=3.2"], "bags": ["rosbags>=0.10"],
                    "semidefinite": ["clarabel>=0.9"], "collision": ["coal>=3.0"],
                    "casadi": ["casadi>=3.6"], "torch": ["torch>=2.6"], "jax": ["jax>=0.5"],
                    "cuda": ["cupy-cuda12x>=13"], "xacro": ["xacro>=2.0"],
                    "view": ["viser>=1.1", "trimesh>=4"]},
    zip_safe=False,
    entry_points={
        "console_scripts": [
            "rbd = rbd_executables:rbd",
            "cartesian = rbd_executables:cartesian",
            "diagnostics_view = rbd_executables:diagnostics_view",
            "dynamics_server = rbd_executables:dynamics_server",
            "effort_annotator = rbd_executables:effort_annotator",
            "feedforward = rbd_executables:feedforward",
            "flatness = rbd_executables:flatness",
            "float_check = rbd_executables:float_check",
            "lockstep = rbd_executables:lockstep",
            "motion_planner = rbd_executables:motion_planner",
            "mujoco_plant = rbd_executables:mujoco_plant",
            "observer = rbd_executables:observer",
            "residual = rbd_executables:residual",
            "simulator = rbd_executables:simulator",
        ],
    },
)

"""The generated package: its texts, its plugins and its own tests, against stand-ins for ros2_control."""
from __future__ import annotations

import ctypes
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.generated_controller import HAS_COMPILER, STAND_INS, STRICT, includes, run, write_package
from support.trees import random_tree

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.cli.ros2_control.package import TEMPLATES, filled, package_files
from rbd_ros.core.derivatives.variable_inertias import node_of
from rbd_ros.core.specialize.model_inputs import lumped
from rbd_ros.runtime.control.feedforward import FEEDFORWARD_TABLE

PACKAGE = "iiwa_effort_controller"
EIGEN = next((path for path in ("/usr/include/eigen3", "/usr/local/include/eigen3") if Path(path).is_dir()), None)
needs_compiler = pytest.mark.skipif(not HAS_COMPILER, reason="no C++ compiler: g++, gcc")


def tree(files):
    return yaml.safe_load(files["src/parameters.yaml"])[PACKAGE]


def rows(entries, path=()):
    """(name, entry) of all parameters."""
    for name, entry in entries.items():
        if "type" in entry and "description" in entry:
            yield ".".join((*path, name)), entry
        else:
            yield from rows(entry, (*path, name))


@pytest.fixture(scope="module")
def model():
    return rbd.sample("iiwa").with_(damping=0.4, friction=1.2, armature=0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    """The package, with its C compiled."""
    if not HAS_COMPILER:
        pytest.skip("no C++ compiler: g++, gcc")
    folder = tmp_path_factory.mktemp("package")
    write_package(folder, model)
    return folder


def compiled(folder, name, *sources, optimize="-O0"):
    run("g++", *STRICT, optimize, f"-DPACKAGE={PACKAGE}", *includes(folder), *sources, folder / "arm.o", "-o",
        folder / name)
    return folder / name


def passes(program, least):
    result = subprocess.run([program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert result.stdout.count("ok ") >= least and "FAILED" not in result.stdout


@needs_compiler
def test_its_tests_of_the_logic_pass(folder):
    passes(compiled(folder, "logic", folder / "test" / "test_torque_controller.cpp", optimize="-O1"), 11)


@needs_compiler
@pytest.mark.thorough
def test_its_tests_of_the_plugin_pass_without_an_allocation(folder):
    passes(compiled(folder, "hardware", folder / "test" / "test_effort_controller.cpp",
                    folder / "src" / "effort_controller.cpp"), 2)


@needs_compiler
@pytest.mark.thorough
def test_the_plugin_at_its_interfaces_and_topics(folder):
    passes(compiled(folder, "plugin", STAND_INS / "plugin.cpp", folder / "src" / "effort_controller.cpp"), 15)


@needs_compiler
@pytest.mark.thorough
@pytest.mark.skipif(EIGEN is None, reason="no Eigen")
def test_the_solver(folder, model):
    """Against the functions of the library, with a load on a link."""
    library_path = folder / "solver.so"
    run("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-O0", "-fPIC", "-shared", f"-DPACKAGE={PACKAGE}",
        "-isystem", EIGEN, *includes(folder), STAND_INS / "solver.cpp", folder / "arm.o", "-o", library_path)
    library = ctypes.CDLL(str(library_path))

    def pointer(x):
        return x.ctypes.data_as(ctypes.c_void_p)

    rng, out = np.random.default_rng(1), np.empty(7)
    q, v, a = rng.normal(size=(3, 7))
    assert library.torques(7, pointer(q), pointer(v), pointer(a), pointer(out)) == 1    # not initialized
    centre = np.array([0.01, 0.02, 0.05])
    for link, mass, count, code in (("hand", 2.0, 3, 2), ("", 2.0, 3, 2), ("link_5", -2.0, 3, 2), ("link_5", 2.0, 2, 2),
                                    ("link_5", 2.0, 3, 0)):
        assert library.initialize(link.encode(), ctypes.c_double(mass), pointer(centre), count) == code
    model = model.with_payload("link_5", rbd.Inertia(2.0, centre, np.zeros((3, 3))))
    assert library.torques(6, pointer(q), pointer(v), pointer(a), pointer(out)) == 2
    assert library.torques(7, pointer(q), pointer(v), pointer(a), pointer(out)) == 0
    np.testing.assert_allclose(out, rbd.inverse_dynamics(model, q, v, a), rtol=0.0, atol=1e-11)
    mass, coriolis, gravity, friction = np.empty((7, 7)), np.empty(7), np.empty(7), np.empty(7)
    library.parts(7, *map(pointer, (q, v, mass, coriolis, gravity, friction)))
    np.testing.assert_allclose(mass, rbd.mass_matrix(model, q), rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(coriolis, rbd.coriolis_matrix(model, q, v) @ v, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(gravity, rbd.gravity_effort(model, q), rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(friction, rbd.friction_effort(model, v), rtol=1e-12)


def test_parameters_are_those_of_the_node(model):
    """Names, defaults and bounds, but for its own; descriptions as generate_parameter_library copies them into C++."""
    known = {row.name: row for row in FEEDFORWARD_TABLE}
    changed = {"joints": list(model.joint_names), "gravity": list(model.description.gravity)}
    for name, entry in rows(tree(package_files(model))):
        assert entry["description"].isascii() and '"' not in entry["description"], name
        if name == "state_interfaces" or name.startswith("dynamics."):
            continue
        row = known[name]
        default = row.convert(changed.get(name, row.default))
        assert entry["default_value"] == (list(default) if isinstance(default, tuple) else default), name
        bounds = [x for check, numbers in entry.get("validation", {}).items() if "bounds" in check for x in numbers]
        assert bounds == [x for x in (row.lower, row.upper) if np.isfinite(x)], name


def test_parameters_are_taken_by_generate_parameter_library(model, tmp_path):
    module = pytest.importorskip("generate_parameter_library_py.generate_cpp_header", reason="no "
                                 "generate_parameter_library: it is of a ROS installation, not of the wheels")
    (tmp_path / "parameters.yaml").write_text(package_files(model)["src/parameters.yaml"])
    module.run(str(tmp_path / "parameters.hpp"), str(tmp_path / "parameters.yaml"))
    assert f"namespace {PACKAGE}" in (tmp_path / "parameters.hpp").read_text()


def test_the_numbers_in_its_yaml_are_those_of_the_model(model):
    files = package_files(model, name="arm")
    numbers = yaml.safe_load(files["config/arm_dynamics.yaml"])["/**"]["ros__parameters"]
    tens = np.reshape(numbers["dynamics"]["inertias"], (7, 10))
    np.testing.assert_array_equal(tens, model.inertial_parameters.reshape(-1, 10)[1:])
    for field, values in (("rotor_inertia", model.armature), ("damping", model.damping), ("coulomb", model.friction)):
        np.testing.assert_array_equal(numbers["dynamics"][field], values)
    allowed = dict(rows(yaml.safe_load(files["src/parameters.yaml"])["arm_effort_controller"]))
    assert all(f"{group}.{name}" in allowed for group, values in numbers.items() for name in values)


@pytest.mark.parametrize("seed", range(8))
def test_lumped_links_move_alike(seed):
    model = random_tree(seed, ["revolute", "prismatic", "fixed", "fixed", "continuous"])
    one, rng = lumped(model), np.random.default_rng(seed)
    q, v, a = rng.normal(size=(3, model.nv))
    np.testing.assert_allclose(rbd.inverse_dynamics(one, q, v, a), rbd.inverse_dynamics(model, q, v, a), rtol=1e-11,
                               atol=1e-11)
    moving = {joint.child for joint in model.joints}
    carried = {spec.child for spec in model.description.joints if spec.type == "fixed"} - moving
    assert carried
    assert not any(one.description.links[link].mass for link in carried if _moves(model, link))


def _moves(model, link):
    return node_of(model, link)[0] >= 0


def test_texts_are_well_formed(model):
    files = package_files(model, name="arm", package="my_arm")
    for name, text in files.items():
        assert "@" not in text.replace("you@example.com", ""), name
        assert max(map(len, text.splitlines())) <= 120 or name.startswith(("arm/", "config/")) or name in (
            "src/arm.hpp", "README.md"), name
        if name.endswith((".xml", "package.xml")):
            ElementTree.fromstring(text)
        elif name.endswith(".yaml"):
            assert yaml.safe_load(text)
        elif name.endswith(".py"):
            compile(text, name, "exec")
    assert files["package.xml"].count("my_arm") == 1 and "project(my_arm C CXX)" in files["CMakeLists.txt"]
    controllers = yaml.safe_load(files["config/controllers.yaml"])
    assert controllers["controller_manager"]["ros__parameters"]["torque"]["type"] == "my_arm/EffortController"
    known = dict(rows(yaml.safe_load(files["src/parameters.yaml"])["my_arm"]))
    assert all(name in known for name in controllers["torque"]["ros__parameters"])
    depends = {each.text for each in ElementTree.fromstring(files["package.xml"]) if "depend" in each.tag}
    assert all(word in files["CMakeLists.txt"] for word in depends if "controller" not in word and word not in (
        "robot_state_publisher", "joint_state_broadcaster", "launch", "launch_ros", "ament_index_python"))


def test_names_are_escaped(tmp_path):
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    model = rbd.load_urdf(
        f'<robot name="A &amp; &quot;B&quot; --"><link name="l&lt;0"/><link name="l1">{body}</link>'
        '<joint name="j&amp;1" type="revolute"><parent link="l&lt;0"/><child link="l1"/><axis xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>')
    files = package_files(model, name="arm")
    texts = [text for name, text in files.items() if name.endswith(".xml")]
    assert len(texts) == 4
    for text in texts:
        ElementTree.fromstring(text)
    assert ElementTree.fromstring(files["urdf/arm.ros2_control.xml"]).find("joint").get("name") == "j&1"
    assert 'JOINTS = {"j&1"}' in files["src/arm.hpp"] and '"l<0"' in files["src/arm.hpp"]
    assert yaml.safe_load(files["config/controllers.yaml"])["trajectory"]["ros__parameters"]["joints"] == ["j&1"]


def test_the_command(tmp_path, capsys):
    assert main(["generate", "two_link", "--ros2-control", str(tmp_path / "package"), "--package", "my_arm"]) == 0
    assert "24 files" in capsys.readouterr().out
    assert (tmp_path / "package" / "arm" / "two_link.c").exists()
    edited = tmp_path / "package" / "config" / "controllers.yaml"
    edited.write_text("mine")
    assert main(["generate", "two_link", "--ros2-control", str(tmp_path / "package"), "--package", "my_arm"]) == 0
    assert f"{edited} is kept" in capsys.readouterr().out and edited.read_text() == "mine"


@pytest.mark.parametrize(("arguments", "what"), [
    (["{urdf}"], "mimics another one"), (["two_link", "--root", "floating"], "fixed base"),
    (["two_link", "--package", "My Arm"], "expected a name of lower case"),
    (["two_link", "--lock", "elbow=x"], "--lock"), (["two_link", "--name", "7 arm"], "identifier of C")])
def test_what_is_refused(arguments, what, tmp_path, capsys):
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    joint = ('<joint name="j{0}" type="revolute"><parent link="l{1}"/><child link="l{0}"/><axis xyz="0 0 1"/>'
             '<limit lower="-1" upper="1" effort="1" velocity="1"/>{2}</joint>')
    (tmp_path / "arm.urdf").write_text(
        f'<robot name="r"><link name="l0"/><link name="l1">{body}</link><link name="l2">{body}</link>'
        + joint.format(1, 0, "") + joint.format(2, 1, '<mimic joint="j1"/>') + "</robot>")
    arguments = [word.format(urdf=tmp_path / "arm.urdf") for word in arguments]
    assert main(["generate", *arguments, "--ros2-control", str(tmp_path / "package")]) == 1
    assert what in capsys.readouterr().err and not (tmp_path / "package").exists()


def test_locked_joints_are_links(tmp_path):
    assert main(["generate", "two_link", "--lock", "elbow=0.5", "--ros2-control", str(tmp_path)]) == 0
    assert "#define TWO_LINK_NV 1" in (tmp_path / "arm" / "two_link.h").read_text()


def test_a_template_with_an_unknown_name_is_an_error():
    with pytest.raises(rbd.RbdError, match="unknown name @NOTHING@"):
        filled("a @NOTHING@", {}, "x")


def test_wheels_have_the_templates():
    setup = (Path(__file__).parents[2] / "setup.py").read_text()
    assert '"**/*.in"' in setup and all(path.suffix == ".in" for path in TEMPLATES.rglob("*") if path.is_file())

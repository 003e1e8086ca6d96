"""xacro files: the robot they make, and where what is wrong with it stands."""
from __future__ import annotations

import json
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.core.model.files import xacro_text
from rbd_ros.core.model.files.packages import package_folders
from rbd_ros.core.model.files.xml_tree import parse_xml, read_text
from rbd_ros.core.model.shapes.meshes import find_mesh

pytest.importorskip("xacro")

ROBOT = """<?xml version="1.0"?>
<robot name="pair" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="left_mass" default="2.0"/>
  <xacro:arg name="tool" default="false"/>
  <xacro:include filename="link.xacro"/>
  <link name="base"/>
  <xacro:arm prefix="left_" parent="base" mass="$(arg left_mass)"/>
  <xacro:arm prefix="right_" parent="base" mass="${mass_of_right}"/>
  <xacro:if value="$(arg tool)">
    <joint name="flange" type="fixed">
      <parent link="left_rod"/>
      <child link="tool"/>
    </joint>
    <link name="tool">
      <xacro:body mass="$(arg tool_mass)"/>
    </link>
  </xacro:if>
</robot>
"""
MACROS = """<robot xmlns:xacro="http://ros.org/wiki/xacro">
  <xacro:property name="mass_of_right" value="${1.5 * 2}"/>
  <xacro:macro name="body" params="mass">
    <inertial>
      <origin xyz="0 0 0.1"/>
      <mass value="${mass}"/>
      <inertia ixx="${mass * 0.02}" iyy="${mass * 0.02}" izz="${mass * 0.01}" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </xacro:macro>

  <xacro:macro name="arm" params="prefix parent mass">
    <joint name="${prefix}hinge" type="revolute">
      <parent link="${parent}"/>
      <child link="${prefix}rod"/>
      <axis xyz="0 1 0"/>
      <limit lower="${radians(-90)}" upper="${pi/2}" velocity="2" effort="10"/>
    </joint>
    <link name="${prefix}rod">
      <xacro:body mass="${mass}"/>
    </link>
  </xacro:macro>
</robot>
"""


@pytest.fixture
def robot(tmp_path):
    """Path of a robot of two files."""
    path = tmp_path / "two arms.urdf.xacro"
    path.write_text(ROBOT)
    (tmp_path / "link.xacro").write_text(MACROS)
    return path


def alike(a, b):
    rng = np.random.default_rng(0)
    q, v, acceleration = a.random_configuration(rng), rng.normal(size=a.nv), rng.normal(size=a.nv)
    assert a.joint_names == b.joint_names and a.name == b.name
    np.testing.assert_array_equal(rbd.inverse_dynamics(a, q, v, acceleration),
                                  rbd.inverse_dynamics(b, q, v, acceleration))


@pytest.mark.parametrize("arguments", ["", "left_mass:=2.5", "tool:=true tool_mass:=0.5",
                                       "left_mass:='2.0'  tool:=false"])
def test_it_is_the_robot_that_the_command_xacro_makes(robot, arguments):
    words = [word.replace("'", "") for word in re.findall(r"\S+:='[^']*'|\S+", arguments)]
    made = subprocess.run([sys.executable, "-c", "import xacro; xacro.main()", str(robot), *words],
                          capture_output=True, text=True, check=True).stdout
    model = rbd.load_urdf(f"{robot} {arguments}")
    alike(model, rbd.load_urdf(made))
    assert model.total_mass == pytest.approx(5.5 if "5" in arguments else 5.0)
    assert xacro_text.MARK not in read_text(f"{robot} {arguments}")[0]


@pytest.mark.parametrize("name", ["left-mass", "left.mass", "masse_à_gauche"])
@pytest.mark.parametrize("declaration", ['name="{}" default="2.0"', "default='2.0' name = '{}'",
                                         'default="2.0" doc="more > less" name="{}"', ""])
def test_arguments_have_any_name_that_xacro_takes(robot, name, declaration):
    declared = f"<xacro:arg {declaration.format(name)}/>" if declaration else ""
    robot.write_text(ROBOT.replace('<xacro:arg name="left_mass" default="2.0"/>', declared).replace(
        "$(arg left_mass)", f"$(arg {name})"), encoding="utf-8")
    assert rbd.load_urdf(f"{robot} {name}:=7.0").total_mass == pytest.approx(10.0)
    with pytest.raises(rbd.RbdError, match="unknown xacro argument 'nothing'"):
        rbd.load_urdf(f"{robot} {name}:=7.0 nothing:=1")


def test_a_path_needs_no_arguments(robot):
    alike(rbd.load_urdf(robot), rbd.load_urdf(str(robot)))


def test_every_element_knows_its_file_and_line(robot):
    tree = parse_xml(*read_text(f"{robot} tool:=true tool_mass:=1"))
    lines = {"'two arms.urdf.xacro'": ROBOT.splitlines(), "'link.xacro'": MACROS.splitlines()}
    seen = 0
    for element in tree.iter():
        number, file = re.fullmatch(r"(\d+) of (.*)", element.line).groups()
        assert f"<{element.tag}" in lines[file][int(number) - 1]
        seen += 1
    assert seen == 1 + 1 + 2 * (5 + 5) + 3 + 5


def test_errors_name_the_line_of_the_macro(robot, tmp_path):
    (tmp_path / "link.xacro").write_text(MACROS.replace('value="${mass}"', 'value="${mass}kg"'))
    with pytest.raises(rbd.RbdError, match=r"two arms.urdf.xacro', line 6 of 'link.xacro'.*left_rod"):
        rbd.load_urdf(robot)


def test_the_doctor_names_the_line_and_takes_arguments(robot, tmp_path, capsys):
    (tmp_path / "link.xacro").write_text(MACROS.replace('effort="10"', 'effort="0"').replace("mass * 0.01", "9"))
    assert main(["doctor", str(robot), "tool:=true", "tool_mass:=0.5", "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {entry["line"] for entry in found if entry["subject"] == "left_hinge"} == {"12 of 'link.xacro'"}
    assert "12 of 'two arms.urdf.xacro'" not in {entry["line"] for entry in found}
    assert {entry["line"] for entry in found if entry["subject"] == "tool"} == {"14 of 'two arms.urdf.xacro'"}
    main(["doctor", str(robot)])
    assert "right_rod (line 18 of 'link.xacro')" in " ".join(capsys.readouterr().out.split())


def test_the_doctor_names_the_line_of_a_urdf_file(tmp_path, capsys):
    path = tmp_path / "arm.urdf"
    path.write_text('<robot name="r">\n<link name="base"/>\n<link name="rod"/>\n<joint name="hinge" type="continuous">'
                    '<parent link="base"/><child link="rod"/></joint></robot>')
    main(["doctor", str(path)])
    assert "hinge (line 4)" in capsys.readouterr().out


@pytest.mark.parametrize(("change", "arguments", "words"), [
    (("", ""), "tool:=true tol_mass:=1", ("Undefined substitution argument", "tool_mass", "no argument 'tol_mass'")),
    (("", ""), "tol:=true", ("unknown xacro argument 'tol'", "did you mean 'tool'")),
    (("", ""), "tool", ("two arms.urdf.xacro tool", "No such file")),
    (("", ""), "a:=b tool", ("NAME:=VALUE", "'tool'")),
    (("", ""), "tool:='", ("No closing quotation",)),
    (("link.xacro", "nowhere.xacro"), "", ("cannot read", "nowhere.xacro", "No such file")),
    (("${mass_of_right}", "${mass_of_wrong}"), "", ("mass_of_wrong",)),
    (("<link name=\"base\"/>", "<link name=\"base\">"), "", ("cannot expand", "mismatched tag")),
    ((" mass=\"$(arg left_mass)\"", ""), "", ("mass", "macro 'arm'")),
    (("link.xacro", "two arms.urdf.xacro"), "", ("contain themselves",)),
])
def test_what_cannot_be_expanded_is_named(robot, change, arguments, words):
    robot.write_text(ROBOT.replace(*change) if change[0] else ROBOT)
    with pytest.raises(rbd.RbdError) as error:
        rbd.load_urdf(f"{robot} {arguments}" if arguments else robot)
    for word in words:
        assert word in str(error.value)


def test_a_file_that_fails_leaves_nothing_behind(robot):
    before = rbd.load_urdf(robot)
    with pytest.raises(rbd.RbdError):
        rbd.load_urdf(f"{robot} tool:=true")    # tool_mass is missing
    alike(before, rbd.load_urdf(robot))


def test_several_threads_at_once(robot):
    found = []

    def load(i):
        found.append((i, rbd.load_urdf(f"{robot} tool:=true tool_mass:={i}").total_mass))

    threads = [threading.Thread(target=load, args=(i,)) for i in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(i, pytest.approx(5.0 + i)) for i in range(1, 9)]


def test_packages_are_found_in_the_environment(robot, tmp_path, monkeypatch):
    index = tmp_path / "prefix/share/ament_index/resource_index/packages"
    index.mkdir(parents=True)
    (index / "arms").touch()
    (tmp_path / "prefix/share/arms").symlink_to(tmp_path)
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path / 'prefix'}")
    alike(rbd.load_urdf("package://arms/two arms.urdf.xacro left_mass:=3"), rbd.load_urdf(f"{robot} left_mass:=3"))
    with pytest.raises(rbd.RbdError, match="no package 'legs'"):
        rbd.load_urdf("package://legs/robot.urdf")


@pytest.fixture
def found(robot, monkeypatch):
    """A robot whose macros are in `$(find arm_parts)`, and the folder of that package, which is to be made."""
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    robot.write_text(ROBOT.replace("link.xacro", "$(find arm_parts)/macros/link.xacro"))

    def make(folder, name="arm_parts"):
        (folder / "macros").mkdir(parents=True)
        (folder / "macros/link.xacro").write_text(MACROS)
        (folder / "package.xml").write_text(f"<package format='3'>\n<name>{name}</name></package>")

    return robot, make


@pytest.mark.parametrize("folder", ["arm_parts", "Repository_of_arms", "far/sources/arms"])
def test_a_package_is_found_around_the_description_as_meshes_are(folder, found, tmp_path, monkeypatch):
    """A folder above it, beside one of these, one that ROS_PACKAGE_PATH holds: by its name, or by its package.xml."""
    robot, make = found
    with pytest.raises(rbd.RbdError, match=r"no package 'arm_parts' in the env.*clone it beside.*ROS_PACKAGE_PATH"):
        rbd.load_urdf(robot)
    make(tmp_path / folder)
    if "far" in folder:
        monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{tmp_path / folder / '..'}")
    assert rbd.load_urdf(f"{robot} left_mass:=2.5").total_mass == pytest.approx(5.5)
    path = robot.parent / "own/urdf/arm.urdf.xacro"
    path.parent.mkdir(parents=True)
    path.write_text(robot.read_text())
    assert rbd.load_urdf(path).total_mass == pytest.approx(5.0)
    assert find_mesh("package://arm_parts/macros/link.xacro", path).samefile(tmp_path / folder / "macros/link.xacro")


def test_a_package_is_found_in_folders_that_are_given(found, tmp_path, monkeypatch, capsys):
    """To a function of Python, or by option of the commands, which pass them on to other processes."""
    robot, make = found
    make(tmp_path / "far/sources/arms")
    for folder in ("far/sources", "far/sources/arms"):
        with package_folders([str(tmp_path / folder)]):
            assert rbd.load_urdf(robot).total_mass == pytest.approx(5.0)
        assert main(["doctor", str(robot), "--package-folder", str(tmp_path), "--package-folder",
                     str(tmp_path / folder)]) == 0
        monkeypatch.chdir(tmp_path / "far")
        assert main(["doctor", "--package-folder", "sources", str(robot), "left_mass:=2.5"]) == 0
    capsys.readouterr()
    assert main(["doctor", str(robot)]) == 1 and "no package 'arm_parts'" in capsys.readouterr().err
    assert main(["doctor", str(robot), "--package-folder", "nowhere"]) == 1
    assert "nowhere: there is no such folder" in capsys.readouterr().err


def test_the_package_that_holds_the_description_is_known_by_its_manifest(found, tmp_path):
    """As in a clone of Universal_Robots_ROS2_Description, which is package ur_description."""
    robot, make = found
    make(tmp_path / "Clone")
    (tmp_path / "Clone/urdf").mkdir()
    robot.rename(tmp_path / "Clone/urdf/arm.urdf.xacro")
    assert rbd.load_urdf(tmp_path / "Clone/urdf/arm.urdf.xacro").total_mass == pytest.approx(5.0)


def test_beside_a_folder_that_all_may_write_to_there_is_nothing(found, tmp_path):
    """Somebody else could lay a package there, and xacro runs what is in it."""
    robot, make = found
    make(tmp_path / "Other")
    tmp_path.chmod(0o1777)
    with pytest.raises(rbd.RbdError, match="no package 'arm_parts'"):
        rbd.load_urdf(robot)
    tmp_path.chmod(0o755)
    assert rbd.load_urdf(robot).total_mass == pytest.approx(5.0)


def test_without_the_package_it_says_so(robot, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(rbd.RbdError, match=r"package xacro is not installed.*> robot.urdf"):
        rbd.load_urdf(robot)

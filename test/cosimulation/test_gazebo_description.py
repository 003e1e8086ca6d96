"""Descriptions for Gazebo: what it would drop or refuse, and that nothing of it is left in what `rbd gazebo` writes."""
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.core.model.files.urdf import describe
from rbd_ros.core.model.files.xml_tree import parse_xml
from rbd_ros.runtime.cosimulation.gazebo_description import driven_joints, gazebo_description, nearest_valid, refusals
from rbd_ros.runtime.cosimulation.gazebo_files import bridge_entries, write_files

SAMPLES = ("iiwa", "two_link")
INERTIA = "<inertial><mass value='1'/><inertia ixx='.1' iyy='.1' izz='.1' ixy='0' ixz='0' iyz='0'/></inertial>"
LIMIT = "<limit lower='-1' upper='1' effort='5' velocity='2'/>"


def description(text):
    return describe(parse_xml(text, "text"), "text")[0]


def chain(*links, kinds=None, limit=LIMIT):
    """A chain of links (name, inertial) at joints of the given kinds."""
    parts = [f"<link name='{name}'>{inertial}</link>" for name, inertial in links]
    for i, kind in enumerate(kinds or ["revolute"] * (len(links) - 1)):
        parts.append(f"<joint name='j{i}' type='{kind}'><parent link='{links[i][0]}'/><child link='{links[i + 1][0]}'/>"
                     f"{limit}</joint>")
    return f"<robot name='r'>{''.join(parts)}</robot>"


def test_the_rules_name_what_goes_wrong_with_the_samples():
    said = dict(refusals(description(rbd.sample_path("iiwa").read_text())))
    assert set(said) == {"link_0", "link_4", "link_7"}
    assert "with the 7 links behind it" in said["link_0"] and "refused" in said["link_4"]
    # The real parser drops the root of both, and with it all the rest.
    assert set(dict(refusals(description(rbd.sample_path("two_link").read_text())))) == {"base"}


@pytest.mark.parametrize(("links", "kinds", "dropped"), [
    ([("a", INERTIA), ("b", ""), ("c", INERTIA)], None, {"b"}),
    ([("a", INERTIA), ("b", ""), ("c", INERTIA)], ["revolute", "fixed"], set()),    # one body
    ([("a", ""), ("b", INERTIA)], ["fixed"], set()),
    ([("world", ""), ("b", ""), ("c", INERTIA)], ["fixed", "revolute"], {"b"}),     # not lumped into the world
    ([("world", ""), ("b", INERTIA), ("c", INERTIA)], ["fixed", "revolute"], set()),
    ([("a", INERTIA), ("b", INERTIA), ("tool", "")], ["revolute", "fixed"], set())])
def test_links_without_mass_are_dropped_unless_they_are_lumped(links, kinds, dropped):
    text = chain(*links, kinds=kinds)
    assert {name for name, said in refusals(description(text)) if "left out" in said} == dropped
    assert refusals(description(gazebo_description(text, "text", "bridge")[0])) == []


@pytest.mark.parametrize("moments", [(1.0, 1.0, 2.5), (-0.1, 1.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (1, 2, 2.9)])
def test_the_nearest_inertia_is_one(moments):
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    matrix = (axes * moments) @ axes.T
    d = np.linalg.eigvalsh(nearest_valid(matrix))
    assert d[0] > 0.0 and d[0] + d[1] > d[2]
    if moments == (1, 2, 2.9):
        np.testing.assert_allclose(nearest_valid(matrix), matrix, rtol=0, atol=1e-12)


@pytest.mark.parametrize("interface", ["ros2_control", "bridge"])
@pytest.mark.parametrize("name", SAMPLES)
def test_twins_of_the_samples_are_taken_and_move_alike(tmp_path, name, interface):
    made = write_files(rbd.sample_path(name), tmp_path, interface, world="lab")
    text = made.description.read_text()
    assert refusals(description(text)) == []
    model, twin = rbd.sample(name), rbd.load_urdf(made.description)
    assert made.joints == twin.joint_names == model.joint_names
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v, a = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
        expected = rbd.inverse_dynamics(model, q, v, a)
        # inertias of links 4 and 7 of the iiwa differ by 0.3 %
        np.testing.assert_allclose(rbd.inverse_dynamics(twin, q, v, a), expected, rtol=0, atol=2e-3)
    plugins = [plugin.get("name").split("::")[-1] for plugin in ElementTree.fromstring(text).iter("plugin")
               if plugin.get("name")]
    assert plugins == (["GazeboSimROS2ControlPlugin"] if interface == "ros2_control" else
                       ["JointStatePublisher"] + ["ApplyJointForce"] * model.nv)


@pytest.mark.parametrize(("interface", "states"), [("bridge", False), ("ros2_control", True)])
def test_gazebo_tells_the_states_of_the_robots_joints_alone(interface, states):
    """Not of the one to the world, nor of others that are fixed; where it is not told which, it tells all."""
    text = chain(("a", INERTIA), ("b", INERTIA), ("c", INERTIA), ("d", INERTIA),
                 kinds=["revolute", "fixed", "prismatic"]).replace(
        "</robot>", f"<link name='e'>{INERTIA}</link><joint name='m' type='revolute'><parent link='d'/>"
                    f"<child link='e'/>{LIMIT}<mimic joint='j0'/></joint></robot>")
    made, _ = gazebo_description(text, "text", interface, controllers="/c.yaml", states=states)
    plugin = ElementTree.fromstring(made).find("gazebo/plugin[@name='gz::sim::systems::JointStatePublisher']")
    assert [joint.text for joint in plugin.findall("joint_name")] == ["j0", "j2", "m"]
    assert "world_joint" in made and made.count(">world_joint<") == 0


def test_a_link_may_be_called_as_a_joint_is():
    text = chain(("a", INERTIA), ("j0", INERTIA), ("c", INERTIA))    # as in so100 and the z1's gripper
    assert any("same name" in said for name, said in refusals(description(text)) if name == "j0")
    made = description(gazebo_description(text, "text", "bridge")[0])
    assert refusals(made) == [] and "j0_link" in made.links and driven_joints(made) == ["j0", "j1"]


def test_the_doctor_says_it_when_asked(capsys):
    assert main(["doctor", str(rbd.sample_path("two_link"))]) == 0
    assert "Gazebo" not in capsys.readouterr().out
    assert main(["doctor", "--gazebo", str(rbd.sample_path("two_link"))]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "base (line 4): is left out, as it has no mass, with the 3 links behind it" in said and "rbd gazebo" in said


def test_the_files_agree(tmp_path):
    assert main(["gazebo", str(rbd.sample_path("two_link")), "--output", str(tmp_path), "--model", "arm"]) == 0
    tree = ElementTree.parse(tmp_path / "arm.urdf")
    assert tree.findtext("gazebo/plugin/parameters") == str(tmp_path / "arm_controllers.yaml")
    values = yaml.safe_load((tmp_path / "arm_controllers.yaml").read_text())
    assert values["controller_manager"]["ros__parameters"]["update_rate"] == 1000
    own = values["effort_controller"]["ros__parameters"]
    joints = [joint.get("name") for joint in tree.findall("ros2_control/joint")]
    assert own["joints"] == joints == ["shoulder", "elbow"] and own["interface_name"] == "effort"
    assert [entry["ros_topic_name"] for entry in yaml.safe_load((tmp_path / "arm_bridge.yaml").read_text())] == [
        "/clock"]


def test_the_bridge_carries_clock_states_and_a_force_per_joint():
    entries = bridge_entries("lab", "arm", ["a", "b"], "bridge")
    # From ros_gz_bridge: the keys of its YAML files, and the pairs of types that it converts.
    pairs = {"rosgraph_msgs/msg/Clock": "gz.msgs.Clock", "sensor_msgs/msg/JointState": "gz.msgs.Model",
             "std_msgs/msg/Float64": "gz.msgs.Double"}
    for entry in entries:
        assert set(entry) == {"ros_topic_name", "gz_topic_name", "ros_type_name", "gz_type_name", "direction"}
        assert pairs[entry["ros_type_name"]] == entry["gz_type_name"]
        assert entry["direction"] == ("ROS_TO_GZ" if "cmd_force" in str(entry) else "GZ_TO_ROS")
    assert [entry["ros_topic_name"] for entry in entries] == [
        "/clock", "/joint_states", "/model/arm/joint/a/cmd_force", "/model/arm/joint/b/cmd_force"]
    assert entries[1]["gz_topic_name"] == "/world/lab/model/arm/joint_state"


def test_for_turns_gazebo_itself_tells_the_states(tmp_path):
    (tmp_path / "in.urdf").write_text(chain(("a", INERTIA), ("b", INERTIA)))
    made = write_files(tmp_path / "in.urdf", tmp_path / "out", "ros2_control", world="lab", states=True)
    text = made.description.read_text()
    assert "JointStatePublisher" in text and "GazeboSimROS2ControlPlugin" in text and "ApplyJointForce" not in text
    topics = [entry["ros_topic_name"] for entry in yaml.safe_load(made.bridge.read_text())]
    assert topics == ["/clock", "/joint_states"]
    broadcaster = yaml.safe_load(made.controllers.read_text())["joint_state_broadcaster"]["ros__parameters"]
    assert broadcaster["use_local_topics"]    # /joint_states has one publisher


def test_plugins_of_others_are_taken_out_and_the_rest_stays():
    text = chain(("a", INERTIA), ("b", INERTIA)).replace("</robot>", """
        <ros2_control name="real" type="system"><hardware><plugin>ur/Hardware</plugin></hardware></ros2_control>
        <gazebo><plugin filename="libgazebo_ros_control.so" name="old"/></gazebo>
        <gazebo><plugin filename="gz-sim-joint-state-publisher-system" name="gz::sim::systems::JointStatePublisher"/>
        <static>false</static></gazebo><gazebo reference="b"><mu1>0.2</mu1></gazebo></robot>""")
    made = gazebo_description(text, "text", "ros2_control", controllers="/c.yaml")[0]
    assert "ur/Hardware" not in made and "libgazebo" not in made and "JointStatePublisher" not in made
    assert "<static>false</static>" in made and "<mu1>0.2</mu1>" in made
    again = gazebo_description(made, "text", "ros2_control", controllers="/c.yaml")
    assert again[1] == [] and ElementTree.canonicalize(again[0], strip_text=True) == ElementTree.canonicalize(
        made, strip_text=True)


@pytest.mark.parametrize(("text", "message"), [
    (chain(("a", INERTIA), ("world", INERTIA)), "'world' is not the root"),
    (chain(("a", INERTIA), ("b", INERTIA), limit=""), "has no <limit>"),
    (chain(("a", INERTIA), ("b", INERTIA), limit=LIMIT.replace("'5'", "'0'")), "effort limit of 0"),
    (chain(("a", INERTIA), ("b", INERTIA), kinds=["floating"]), "is floating"),
    (chain(("a", INERTIA), ("b", INERTIA), kinds=["fixed"]), "no joint that moves")])
def test_what_cannot_work_is_refused(tmp_path, text, message):
    (tmp_path / "in.urdf").write_text(text)
    with pytest.raises(rbd.RbdError, match=message):
        write_files(tmp_path / "in.urdf", tmp_path / "out", "bridge", world="w")


def test_no_file_is_overwritten_by_its_twin(tmp_path):
    (tmp_path / "r.urdf").write_text(chain(("a", INERTIA), ("b", INERTIA)))
    with pytest.raises(rbd.RbdError, match="would be overwritten"):
        write_files(tmp_path / "r.urdf", tmp_path, "bridge", world="w")


def arms():
    """Descriptions of example-robot-data, if it is installed."""
    try:
        return sorted(Path(str(file.locate())) for file in files("example_robot_data") or () if file.suffix == ".urdf")
    except PackageNotFoundError:
        return []


ARMS = ("asr", "kinova", "panda", "so_arm", "ur", "xarm", "z1")


@pytest.mark.parametrize("path", [path for path in arms() if path.parents[1].name in {
    f"{name}_description" for name in ARMS} and path.stem != "ur3"], ids=lambda path: path.stem)
def test_arms_become_descriptions_without_refusals(path, tmp_path):
    made = write_files(path, tmp_path, "bridge", world="w")
    read = description(made.description.read_text())
    assert refusals(read) == [] and tuple(driven_joints(read)) == made.joints

"""A description with new numbers: the rest of the file as it was, loaded alike here, by Pinocchio and by MuJoCo."""
from __future__ import annotations

import difflib
import re

import numpy as np
import pytest
from support.recordings import perturbed
from support.robots import urdf_paths

import rbd_ros as rbd
from rbd_ros.cli.doctor import examine
from rbd_ros.core.identification.written.urdf_writer import rewritten

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
ROBOT = """<?xml version="1.0" encoding="utf-8"?>
<!-- made by hand: Jürgen -->
<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <link name="base"/>
  <link name='upper'>  <!-- the first > one -->
    <visual><geometry><box size="1 1 1"/></geometry></visual>
    <inertial>
      <!-- from CAD -->
      <origin xyz="0 0 0.1" rpy="0.1 0 0"/><mass value="2"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/>
    </inertial>
  </link>
  <link name="lower"/>
  <link name="tip"></link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="3"/>
    <dynamics damping="0.1" friction="0"/>
  </joint>
  <joint name="elbow" type="revolute">
    <origin xyz="0 0 0.5"/><parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="3"/>
  </joint>
  <joint name="flange" type="fixed"><parent link="lower"/><child link="tip"/></joint>
  <transmission name="t1"><joint name="shoulder"/>
    <actuator name="m1"><drake:rotor_inertia value="1e-4"/> <drake:gear_ratio value="-100"/></actuator>
  </transmission>
  <gazebo reference="upper"><mu>0.2</mu></gazebo>
</robot>
"""


def changed(model):
    inertia = rbd.Inertia(1.5, np.array([0.01, -0.02, 0.2]), np.diag([0.03, 0.04, 0.02]) + 1e-3)
    links = {"upper": inertia, "lower": inertia, "tip": inertia}
    for name, new in links.items():
        model = model.with_body(name, mass=new.mass, com=new.com, inertia=new.matrix)
    return model.with_(damping=[0.7, 0.3], friction=[0.2, 0.4], armature=[2.0, 0.05])


def same(a, b, bound=1e-8):
    for name in ("inertial_parameters", "damping", "friction", "armature"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=bound, atol=1e-9)


def test_only_what_changed_is_written_anew():
    model = rbd.load_urdf(ROBOT)
    new = changed(model)
    text = rewritten(ROBOT, model, new)
    same(rbd.load_urdf(text), new)
    lost = [line[2:] for line in difflib.ndiff(ROBOT.splitlines(), text.splitlines()) if line.startswith("- ")]
    own = r"inertia|origin xyz=\"0 0 0.1|CAD|dynamics|link name=\"(lower|tip)|robot name|joint name=\"elbow|rotor"
    assert all(re.search(own, line) for line in lost), lost
    for kept in ("<!-- made by hand: Jürgen -->", "<!-- the first > one -->", "<mu>0.2</mu>", "xmlns:xacro"):
        assert kept in text
    assert text.count("<dynamics") == 2 and text.count("drake:rotor_inertia") == 2
    assert rewritten(text, new, new) == text and rewritten(ROBOT, model, model) == ROBOT
    same(rbd.load_urdf(rewritten(text, rbd.load_urdf(text), model)), model)    # and back


@pytest.mark.parametrize("change", [lambda text: text.replace("\n", "\r\n"), lambda text: "\ufeff" + text,
                                    lambda text: text.replace("\n", " ").replace("<!-- from CAD -->", ""),
                                    lambda text: text.replace("drake:rotor_inertia", "other")],
                         ids=["crlf", "mark", "one line", "no rotor"])
def test_files_of_every_kind(change, tmp_path):
    path = tmp_path / "a.urdf"
    path.write_text(change(ROBOT), encoding="utf-8", newline="")
    model = rbd.load_urdf(path)
    new = changed(model)
    same(rbd.load_urdf(rewritten(path, model, new)), new)


def test_files_of_another_robot_or_text_are_refused(tmp_path):
    model = rbd.load_urdf(ROBOT)
    with pytest.raises(rbd.RbdError, match="no link"):
        rewritten(ROBOT.replace("upper", "other"), model, changed(model))
    with pytest.raises(rbd.RbdError, match="UTF-8"):
        path = tmp_path / "old.urdf"
        path.write_bytes(ROBOT.replace('encoding="utf-8"', 'encoding="latin-1"').encode("latin-1"))
        rewritten(path, model, changed(model))


NAMES = ["panda_description/panda", "ur_description/ur5_robot", "kinova_description/kinova", "xarm_description/xarm7"]


@pytest.mark.parametrize("name", [name for name in NAMES if name in urdf_paths()])
def test_robots_load_alike_in_pinocchio_and_pass_the_doctor(name, tmp_path):
    pin = pytest.importorskip("pinocchio")
    source = urdf_paths()[name]
    model = rbd.load_urdf(source)
    new = perturbed(model, 2)
    path = tmp_path / "new.urdf"
    path.write_text(rewritten(source, model, new), encoding="utf-8")
    same(rbd.load_urdf(path), new)
    peer = pin.buildModelFromUrdf(str(path), mimic=True) if model.mimics else pin.buildModelFromUrdf(str(path))
    before = [finding for finding in examine(source).findings if finding.severity == "error"]
    after = [finding for finding in examine(path).findings if finding.severity == "error"]
    assert len(after) <= len(before), after
    if not model.mimics:
        q = pin.randomConfiguration(peer) if peer.nq == model.nq else pin.neutral(peer)
        q = model.random_configuration(0)
        order = [peer.joints[peer.getJointId(joint)].idx_v for joint in model.joint_names]
        if peer.nq == model.nq:
            there = np.zeros(peer.nq)
            there[order] = q
            found = pin.rnea(peer, peer.createData(), there, np.zeros(peer.nv), np.zeros(peer.nv))[order]
            np.testing.assert_allclose(found, rbd.gravity_effort(new, q), atol=1e-6)


def test_the_new_file_moves_alike_in_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    source = rbd.sample_path("iiwa")
    model = rbd.sample("iiwa")
    new = perturbed(model, 2, rotors=False, friction=False)
    text = re.sub(r"<(visual|collision)\b.*?</\1>", "", rewritten(source, model, new), flags=re.DOTALL)
    text = text.replace("</robot>", '<mujoco><compiler fusestatic="false" balanceinertia="false"/></mujoco></robot>')
    peer = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    rng = np.random.default_rng(0)
    q, v = model.random_configuration(rng), rng.normal(size=7)
    data.qpos[:], data.qvel[:], data.qacc[:] = q, v, v
    mujoco.mj_inverse(peer, data)
    passive = data.qfrc_passive.copy()
    np.testing.assert_allclose(data.qfrc_inverse + passive, rbd.inverse_dynamics(new, q, v, v), atol=1e-6)


def test_a_joint_with_several_numbers_is_refused():
    text = ROBOT.replace('name="elbow" type="revolute"', 'name="elbow" type="planar"')
    model = rbd.load_urdf(text)
    friction = np.zeros(model.nv)
    friction[-3:] = [0.1, 0.2, 0.3]
    with pytest.raises(rbd.RbdError, match=r"joint 'elbow' has friction .* one number"):
        rewritten(text, model, model.with_(friction=friction))


@pytest.mark.parametrize("ratios", [(1.0, 10.0), (0.0, 10.0), (0.0, 0.0)], ids=["both", "second", "none"])
@pytest.mark.parametrize("apart", [True, False], ids=["two transmissions", "two actuators"])
def test_rotors_that_add_up_are_the_new_one_together(ratios, apart):
    between = '</transmission><transmission name="t2"><joint name="shoulder"/>' if apart else ""
    first, second = (f'<actuator name="a{k}"><drake:rotor_inertia value="0.1"/><drake:gear_ratio value="{ratio}"/>'
                     "</actuator>" for k, ratio in enumerate(ratios))
    text = re.sub(r"<actuator.*</actuator>", first + between + second, ROBOT, flags=re.DOTALL)
    model = rbd.load_urdf(text)
    assert model.armature[0] == pytest.approx(0.1 * np.sum(np.square(ratios)))
    for new in (changed(model), model.with_(armature=[0.0, 0.3])):
        same(rbd.load_urdf(rewritten(text, model, new)), new)

"""Rotor inertias in descriptions: Drake's tags in URDF, Pinocchio's <rotor_params> in SRDF, ours above both."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from support.robots import urdf_paths

import rbd_ros as rbd
from rbd_ros.cli.doctor import examine


def arm(*transmissions):
    """Two hinges, `one` and `two`, and a fixed joint `flange`."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    links = "".join(f'<link name="l{i}">{inertial}</link>' for i in range(4))
    joints = "".join(
        f'<joint name="{name}" type="{kind}"><parent link="l{i}"/><child link="l{i + 1}"/><axis xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" velocity="2" effort="3"/></joint>'
        for i, (name, kind) in enumerate([("one", "revolute"), ("two", "prismatic"), ("flange", "fixed")]))
    return f'<robot name="r">{links}{joints}{"".join(transmissions)}</robot>'


def drive(inertia='<drake:rotor_inertia value="2e-3"/>', ratio='<drake:gear_ratio value="10"/>',
          joint='<joint name="one"/>'):
    return f'<transmission name="t"><type>x</type>{joint}<actuator name="a">{inertia}{ratio}</actuator></transmission>'


def srdf(*joints):
    return f'<robot name="r"><group name="g"/><rotor_params>{"".join(joints)}</rotor_params></robot>'


def noted(text, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = rbd.load_urdf(text, **options)
    return model, [str(warning.message) for warning in caught]


@pytest.mark.parametrize(("transmissions", "expected"), [
    ([], [0.0, 0.0]),
    ([drive()], [0.2, 0.0]),
    ([drive(ratio="")], [2e-3, 0.0]),
    ([drive(inertia="")], [0.0, 0.0]),
    ([drive(), drive()], [0.4, 0.0]),
    ([drive(), drive(joint='<joint name="two"/>', ratio='<drake:gear_ratio value="-5"/>')], [0.2, 0.05]),
    ([drive(joint='<joint name="flange"/>')], [0.0, 0.0]),
])
def test_tags_of_transmissions_are_felt_behind_the_gear(transmissions, expected):
    model, notes = noted(arm(*transmissions))
    assert notes == []
    np.testing.assert_allclose(model.armature, expected, rtol=1e-15)
    plain = rbd.load_urdf(arm())
    np.testing.assert_allclose(rbd.mass_matrix(model, [0.0, 0.0]) - rbd.mass_matrix(plain, [0.0, 0.0]),
                               np.diag(expected), atol=1e-15)


@pytest.mark.parametrize(("tags", "words"), [
    (drive('<drake:rotor_inertia/>'), ["'t'", "'one'", "drake:rotor_inertia"]),
    (drive('<drake:rotor_inertia value="much"/>'), ["'one'", "number"]),
    (drive('<drake:rotor_inertia value="-1"/>'), ["'one'", "not negative"]),
    (drive('<drake:rotor_inertia value="1e-3"/>', '<drake:gear_ratio value="nan"/>'), ["'one'", "drake:gear_ratio"]),
    (drive('<drake:rotor_inertia value="1e300"/>', '<drake:gear_ratio value="1e300"/>'), ["'one'"]),
    (drive(joint='<joint name="onne"/>'), ["'onne'; did you mean 'one'"]),
    (drive(joint='<joint name="one"/><joint name="two"/>'), ["'t'", "2 joints, expected 1"]),
    (drive(joint=""), ["'t'", "0 joints, expected 1"]),
])
def test_what_cannot_be_understood_is_left_out_and_named(tags, words, tmp_path):
    model, notes = noted(arm(tags))
    assert model.armature.tolist() == [0.0, 0.0]
    assert len(notes) == 1 and all(word in notes[0] for word in words), notes
    path = Path(tmp_path, "robot.urdf")
    path.write_text(arm(tags))
    assert [f"{f.subject}: {f.message}" for f in examine(path).findings if f.topic == "not read"] == notes


def test_rotor_params_of_an_srdf_go_before_drakes_tags_and_the_argument_before_both(tmp_path):
    text = srdf('<joint name="one" mass="1e-5" gear_ratio="100."/>', '<joint name="two" mass="3" gear_ratio="0.0"/>',
                '<joint name="flange" mass="1" gear_ratio="1"/>')
    robot = arm(drive(), drive(joint='<joint name="two"/>'))
    model, notes = noted(robot, srdf=text)
    assert notes == []
    np.testing.assert_allclose(model.armature, [0.1, 0.0], rtol=1e-14)
    path = Path(tmp_path, "robot.srdf")
    path.write_text(text)
    np.testing.assert_allclose(noted(robot, srdf=path, rotor_inertia={"two": 0.7})[0].armature, [0.1, 0.7], rtol=1e-14)


def test_an_srdf_that_does_not_fit_is_named():
    model, notes = noted(arm(), srdf=srdf(
        '<joint name="one" mass="-1" gear_ratio="1"/>', '<joint name="two" mass="1"/>',
        '<joint name="wrist" mass="1" gear_ratio="1"/>'))
    assert model.armature.tolist() == [0.0, 0.0]
    assert len(notes) == 3
    assert "'one'" in notes[0] and "'two'" in notes[1] and "wrist" in notes[2]


@pytest.mark.parametrize(("wrong", "word"), [
    ("<group/>", "<robot>"), ("", "SRDF"), ("nowhere.srdf", "nowhere.srdf"), ("<robot", "SRDF"), (3, "int")])
def test_what_is_no_srdf_is_refused(wrong, word):
    with pytest.raises(rbd.RbdError, match=word):
        rbd.load_urdf(arm(), srdf=wrong)


def test_the_rotors_of_talos_are_those_that_pinocchio_reads():
    pin = pytest.importorskip("pinocchio")
    urdf = urdf_paths().get("talos_data/talos_full_v2")
    if urdf is None:
        pytest.skip("example-robot-data is not installed")
    file = urdf.parents[1] / "srdf" / "talos.srdf"
    theirs = pin.buildModelFromUrdf(str(urdf))
    pin.loadRotorParameters(theirs, str(file))
    ours, _ = noted(urdf, srdf=file)
    assert np.count_nonzero(ours.armature) > 20
    for joint in ours.joints:
        k = theirs.joints[theirs.getJointId(joint.name)].idx_v
        assert ours.armature[joint.idx_v] == pytest.approx(theirs.armature[k], rel=1e-12)

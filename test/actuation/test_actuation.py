"""Drives from YAML and mappings: what is wrong is named, with its joint."""

import numpy as np
import pytest
import yaml
from actuation.drives import MIXED, iiwa, mixed
from support.robots import chain

import rbd_ros as rbd
from rbd_ros.core.actuation import actuation_yaml

SERIES = {"type": "series_elastic", "stiffness": 1e4, "motor": {"rotor_inertia": 1.0}}
VARIABLE = MIXED["joint_7"]


def changed(entry, **options):
    """An entry with other keys; None takes one away."""
    return {key: value for key, value in (entry | options).items() if value is not None}


def test_names_and_kinds():
    actuation = mixed()
    assert actuation.motor_names == (*MIXED, "joint_4/stiffness", "joint_5/stiffness", "joint_6/stiffness",
                                     "joint_7/stiffness")
    assert actuation.nm == 11 and repr(actuation).startswith("Actuation(joint_1: rigid, joint_2: series")
    assert actuation.rigid.tolist() == [0] and actuation.series.tolist() == [1, 2]
    assert actuation.variable.tolist() == [3, 4, 5, 6] and actuation.elastic.tolist() == [1, 2, 3, 4, 5, 6]


def test_a_file_a_text_and_a_mapping_are_the_same(tmp_path):
    text = yaml.safe_dump({"actuation": MIXED})
    (tmp_path / "arm.yaml").write_text(text)
    q = np.linspace(0.1, 0.7, 7)
    tau = np.ones((3, 7))
    expected = rbd.motor_reference(mixed(), q, q, q, tau)
    for source in (text, tmp_path / "arm.yaml", str(tmp_path / "arm.yaml")):
        for got, value in zip(rbd.motor_reference(rbd.load_actuation(source, iiwa()), q, q, q, tau), expected,
                              strict=True):
            np.testing.assert_array_equal(got, value)


def test_the_format_in_the_docstring_is_the_format():
    example = actuation_yaml.__doc__.split("\n\n")[1]
    assert rbd.load_actuation(f"{example}\n      joint_7: {{type: rigid}}", iiwa().with_(armature=0.5)).nm == 9


def test_numbers_that_yaml_takes_for_text():
    text = yaml.safe_dump({"actuation": MIXED | {"joint_2": SERIES}}).replace("10000.0", "1e4")
    actuation = rbd.load_actuation(text, iiwa())
    assert actuation.series_spring.coefficients[0, 0] == 1e4


def test_the_second_motor_of_antagonistic_springs_is_like_the_first():
    drive = mixed().drives["joint_5"]
    assert drive.stiffness_motor == drive.motor
    assert mixed().drives["joint_6"].stiffness_motor.rotor_inertia == 0.4


def test_the_default_stiffness_is_in_the_middle_of_the_range():
    actuation = mixed(joint_7=changed(VARIABLE, stiffness=None))
    assert actuation.stiffness[-1] == pytest.approx(np.sqrt(50.0 * 2000.0))


@pytest.mark.parametrize(("joint", "entry", "words"), [
    ("joint_8", SERIES, "unknown joint 'joint_8'; did you mean"), ("joint_2", None, "'joint_2' is missing"),
    ("joint_2", "rigid", "'joint_2': expected keys and values"), ("joint_2", {}, "unknown type 'None'"),
    ("joint_2", {"type": "elastic"}, "'joint_2': unknown type"),
    ("joint_2", {"type": ["rigid"]}, "'joint_2': unknown type"),
    ("joint_7", changed(VARIABLE, spring={"linear": 1}), "'joint_7': unknown spring"),
    ("joint_2", changed(SERIES, stiffness=0.0), "'joint_2': stiffness must be positive"),
    ("joint_2", changed(SERIES, stiffness=-1.0), "'joint_2': stiffness must be positive"),
    ("joint_2", changed(SERIES, stiffness="stiff"), "'joint_2': stiffness: expected a number, got 'stiff'"),
    ("joint_2", changed(SERIES, stiffness=True), "stiffness: expected a number"),
    ("joint_2", changed(SERIES, stiffness=None), "'joint_2': stiffness: missing"),
    ("joint_2", changed(SERIES, stiffnes=1.0), "'joint_2': unknown key 'stiffnes'; did you mean 'stiffness'"),
    ("joint_2", changed(SERIES, stiffness=float("inf")), "'joint_2': spring: expected at least one finite"),
    ("joint_2", changed(SERIES, hardening=-1e6), "'joint_2': coefficients .* smaller max_deflection"),
    ("joint_2", changed(SERIES, max_deflection=-1.0), "'joint_2': max_deflection must be positive"),
    ("joint_2", changed(SERIES, damping=-1.0), "'joint_2': damping of the spring must not be negative"),
    ("joint_2", changed(SERIES, motor=None), "'joint_2': the motor behind the spring has no inertia"),
    ("joint_2", changed(SERIES, motor={"rotor_inertia": -1.0}), "'joint_2': motor: rotor_inertia must not be"),
    ("joint_2", changed(SERIES, motor={"rotor_inertia": 0.0}), "'joint_2': the motor behind the spring has no"),
    ("joint_2", changed(SERIES, motor={"rotor_inertia": 1, "gear_ratio": 0}), "'joint_2': motor: gear_ratio must be"),
    ("joint_2", changed(SERIES, motor={"rotor_inertia": 1, "inertia": 0}), "'joint_2': unknown key of motor 'inertia'"),
    ("joint_2", changed(SERIES, motor={"gear_ratio": 100}), "'joint_2': motor: rotor_inertia is missing"),
    ("joint_2", changed(SERIES, motor=3.0), "'joint_2': motor: expected keys and values"),
    ("joint_2", changed(SERIES, motor={"rotor_inertia": 1, "coulomb": 2, "breakaway": 1}), "breakaway 1 is less"),
    ("joint_2", {"type": "series_elastic", "coefficients": 3.0}, "'joint_2': coefficients: expected a list"),
    ("joint_2", changed(SERIES, coefficients=[1.0]), "unknown key 'stiffness'"),
    ("joint_7", changed(VARIABLE, spring="rubber"), "'joint_7': unknown spring 'rubber'"),
    ("joint_7", changed(VARIABLE, range=[0.0, 100.0]), "'joint_7': stiffness must be positive over the whole range"),
    ("joint_7", changed(VARIABLE, range=[100.0]), "'joint_7': range: expected a list of 2 numbers"),
    ("joint_7", changed(VARIABLE, stiffness=3000.0), "'joint_7': stiffness 3000 .* spring's range, 50 to 2000"),
    ("joint_7", changed(VARIABLE, stiffness_motor=None), "'joint_7': stiffness_motor: missing"),
    ("joint_7", changed(VARIABLE, stiffness_motor={"rotor_inertia": 0.0}), "'joint_7': stiffness_motor: it has no"),
    ("joint_7", changed(VARIABLE, damping=1.0), "'joint_7': damping: springs of variable stiffness have none"),
    ("joint_5", changed(MIXED["joint_5"], motor=None), "'joint_5': the motor behind the spring has no inertia"),
    ("joint_6", changed(MIXED["joint_6"], scale=0.0), "'joint_6': scale must be positive"),
    ("joint_6", changed(MIXED["joint_6"], rate=None), "'joint_6': rate: missing"),
], ids=range(37))
def test_wrong_entries_are_named(joint, entry, words):
    with pytest.raises(rbd.RbdError, match=words):
        rbd.load_actuation(changed(MIXED, **{joint: entry}), iiwa())


@pytest.mark.parametrize("name", ["gear_ratio", "rotor_inertia", "damping", "stribeck_velocity"])
@pytest.mark.parametrize("value", [1e155, 1e308, 10**400, -1e155, float("nan")])
def test_absurd_motors_are_refused(name, value):
    """Squares of them would be beyond numbers."""
    motor = {"rotor_inertia": 1e-4, name: value}
    with pytest.raises(rbd.RbdError, match=f"motor: {name} must|{name}: expected a number"):
        rbd.load_actuation(changed(MIXED, joint_1={"type": "rigid", "motor": motor}), iiwa())
    with pytest.raises(rbd.RbdError, match=f"motor: {name} must"):
        rbd.Motor(**motor)


@pytest.mark.parametrize(("text", "words"), [
    ("joints: {}", "actuation text: expected the key 'actuation'"), ("actuation: [1]", "expected the key 'actuation'"),
    ("actuation: {joint_1: {type: rigid}}\nmotors: {}", "unknown key 'motors'"), ("actuation: {", "is not YAML"),
    ("actuation:\n  joint_1: {type: rigid}\n  joint_1: {type: series_elastic}",
     "actuation text, line 3: 'joint_1' is given twice, first on line 2"),
    ("/no/such/file.yaml", "cannot read actuation"), ("actuation: {joint_1: {type: rigid}}", "'joint_2' is missing")])
def test_wrong_files_are_named(text, words):
    with pytest.raises(rbd.RbdError, match=words):
        rbd.load_actuation(text, iiwa())
    with pytest.raises(rbd.RbdError, match="expected a YAML file's path or its text, got int"):
        rbd.load_actuation(3, iiwa())


def test_joints_of_several_coordinates_have_no_motor():
    model = chain("revolute", "spherical")
    with pytest.raises(rbd.RbdError, match=r"joint 'j1' \(spherical\) has 3 coordinates"):
        rbd.Actuation(model, dict.fromkeys(model.joint_names, rbd.RigidDrive()))
    with pytest.raises(rbd.RbdError, match="root_joint"):
        rbd.Actuation(rbd.sample("two_link", root="floating"), {})


def test_something_else_than_a_drive_is_refused():
    with pytest.raises(rbd.RbdError, match=r"joint 'shoulder': expected a RigidDrive, .* got float"):
        rbd.Actuation(rbd.sample("two_link"), {"shoulder": 3.0, "elbow": rbd.RigidDrive()})

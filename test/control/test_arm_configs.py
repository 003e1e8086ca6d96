"""The configuration of each arm fits the parameter tables, a model of the arm, and the controller beside it."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from support.robots import urdf_paths
from support.tables import TABLES

import rbd_ros as rbd
from rbd_ros.runtime.control.effort_annotator import ANNOTATOR_TABLE, AnnotatorSettings
from rbd_ros.runtime.control.feedforward import FEEDFORWARD_TABLE, FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.parameters import select, validate
from rbd_ros.runtime.robot import load_model

CONFIG = Path(__file__).parents[2] / "config"
LBR = {f"lbr_A{i + 1}": name for i, name in enumerate(rbd.sample("iiwa").joint_names)}
# configuration, description (of example-robot-data, or a sample), renamings that docs/arms.md asks for or that stand
# for another model of the same arm
ARMS = [("franka", "panda_description/panda", {"fr3_": "panda_"}), ("iiwa_lbr", "iiwa", LBR),
        ("ur", "ur_description/ur5_robot", {}), ("ur", "ur_description/ur10_robot", {}),
        ("openarm", "xarm_description/xarm7", {"[openarm_finger_joint1]": '[""]', "openarm_joint": "joint"}),
        ("big_yam", "z1_description/z1", {"gripper_joint": "jointGripper"}), ("z1", "z1_description/z1", {}),
        *((name, "z1_description/z1", {'locked.joints: [""]': "locked.joints: [jointGripper]"})
          for name in ("generic_effort", "generic_jtc", "generic_annotator", "generic_mit"))]
TRAJECTORIES = ("generic_jtc", "generic_annotator")    # joint_trajectory_controller behind the node
ANNOTATED = "generic_annotator"    # its node is effort_annotator, not feedforward
each_arm = pytest.mark.parametrize(("arm", "description", "names"), ARMS,
                                   ids=[f"{arm}-{description.split('/')[-1]}" for arm, description, _ in ARMS])


def read(path, names=()):
    text = path.read_text()
    for old, new in dict(names).items():
        text = text.replace(old, new)
    return yaml.safe_load(text)


def path_of(description):
    if "/" not in description:
        return rbd.sample_path(description)
    if description not in urdf_paths():
        pytest.skip("example-robot-data is not installed: scripts/setup --peers")
    return urdf_paths()[description]


@pytest.fixture
def loaded(arm, description, names):
    """(values, model)"""
    given = read(CONFIG / f"{arm}.yaml", names)["/**"]["ros__parameters"]
    values = validate(TABLES["effort_annotator" if arm == ANNOTATED else "feedforward"], given)
    model, _ = load_model(values, str(path_of(description)))
    return values, model


def test_every_configuration_of_an_arm_is_tested():
    tested = {arm for arm, *_ in ARMS}
    for path in CONFIG.glob("*.yaml"):
        if (CONFIG / "controllers" / path.name).exists():
            assert path.stem in tested, path
    assert tested <= {path.stem for path in (CONFIG / "controllers").glob("*.yaml")}


@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
@each_arm
def test_the_node_can_be_configured_and_holds_the_arm(arm, loaded):
    values, model = loaded
    if arm == ANNOTATED:
        AnnotatorSettings.from_values(select(ANNOTATOR_TABLE, values), model)
        return
    settings = FeedforwardSettings.from_values(select(FEEDFORWARD_TABLE, values), model)
    assert set(values["joints"]) == set(model.joint_names)
    assert np.isfinite(settings.safety.effort_limit).all()
    assert (settings.safety.effort_limit <= model.effort_limit).all()
    made = FeedforwardController(model, settings)
    made.activate(0.0)
    q, zero = model.neutral(), np.zeros(model.nv)
    made.on_reference(0.0, 0, model.joint_names, q)
    rate = values["state_rate"] or 500.0
    for i in range(round(1.5 * rate)):
        now = i / rate
        effort = made.on_state(now, 10**9 + round(now * 1e9), model.joint_names, q, zero).effort
    assert made.safety.mode == "running"
    expected = 0.0 if "gravity" in values["robot_compensates"] else rbd.gravity_effort(model, q)
    limit = settings.safety.effort_limit
    np.testing.assert_allclose(effort, np.clip(expected, -limit, limit), rtol=0, atol=1e-9)


@each_arm
def test_the_controller_has_the_same_joints_in_the_same_order(arm, description, names):
    node = read(CONFIG / f"{arm}.yaml")["/**"]["ros__parameters"]
    files = {key.split("/")[-1]: value["ros__parameters"]
             for key, value in read(CONFIG / "controllers" / f"{arm}.yaml").items()}
    manager = files.pop("controller_manager")
    types = {name: value["type"] for name, value in manager.items() if isinstance(value, dict)}
    assert set(files) <= set(types) and "joint_state_broadcaster" in types
    assert manager["update_rate"] == node.get("state_rate", manager["update_rate"])
    if arm in TRAJECTORIES:
        return
    if "forward_command" in node["adapters"]:
        name = node["forward_command.controller"]
        assert types[name] == "forward_command_controller/ForwardCommandController"
        assert files[name] == {"interface_name": "effort", "joints": node["joints"]}
    elif node["adapters"] == ["mit"]:
        assert types.items() >= {node["mit.controller"].replace("{}", interface):
                                 "forward_command_controller/ForwardCommandController"
                                 for interface in node["mit.interfaces"]}.items()
        for interface in node["mit.interfaces"]:
            assert files[node["mit.controller"].replace("{}", interface)] == {
                "interface_name": interface, "joints": node["joints"]}
        assert node["mit.kp"] == node["gains.kp"] and node["mit.kd"] == node["gains.kd"]
    else:
        assert node["adapters"] == ["lbr"]
        prefix = files["lbr_torque_command_controller"]["robot_name"]
        assert node["joints"] == [f"{prefix}_A{i}" for i in range(1, 8)]
        assert types["lbr_torque_command_controller"] == "lbr_ros2_control/LBRTorqueCommandController"


@pytest.mark.parametrize("arm", TRAJECTORIES)
def test_the_trajectory_controller_takes_effort_and_holds_the_arm(arm):
    """With cmd_timeout it sets the effort to 0 after every trajectory; the arm sags then, and falls without gains."""
    node = read(CONFIG / f"{arm}.yaml")["/**"]["ros__parameters"]
    files = read(CONFIG / "controllers" / f"{arm}.yaml")
    own = files["effort_trajectory_controller"]["ros__parameters"]
    holds(own, node["joints"])
    assert own["cmd_timeout"] == 0.0
    if arm == "generic_jtc":
        assert node["adapters"] == ["jtc"] and node["jtc.controller"] in files
        assert own["allow_nonzero_velocity_at_trajectory_end"]    # else it rejects all but an arm at rest


def test_the_controller_that_takes_over_is_there_and_holds_the_arm():
    node = read(CONFIG / "generic_effort.yaml")["/**"]["ros__parameters"]
    files = read(CONFIG / "controllers" / "generic_effort.yaml")
    assert node["handover.deactivate"] == [node["forward_command.controller"]]
    [name] = node["handover.activate"]
    assert "jtc" in node["adapters"] and node["jtc.controller"] == name    # it gets the torque from the node then
    own = files[name]["ros__parameters"]
    holds(own, node["joints"])
    assert own["allow_nonzero_velocity_at_trajectory_end"] and own["cmd_timeout"] == 0.0
    for gains in own["gains"].values():    # where nobody sends it efforts, only the integral takes the weight
        assert gains["i"] > 0.0 and 0.0 < gains["i_clamp_max"] == -gains["i_clamp_min"]


def holds(own, joints):
    """A joint_trajectory_controller of ros2_controllers 4 to 6 with gains of its own for every joint."""
    assert own["joints"] == joints
    assert own["command_interfaces"] == ["effort"] and own["state_interfaces"] == ["position", "velocity"]
    assert set(own["gains"]) == set(joints)
    for gains in own["gains"].values():
        assert gains["p"] > 0.0 and gains["d"] > 0.0
        # 4 has "legacy" by default, which it deprecates, as `i_clamp`; 5 has neither
        assert gains["antiwindup_strategy"] == "none" and "i_clamp" not in gains


def test_a_ur_is_handed_back_to_the_controller_that_holds_it():
    """Of those that the driver starts with; the page says how to do it by hand."""
    given = read(CONFIG / "ur.yaml")["/**"]["ros__parameters"]
    page = (CONFIG.parent / "docs/arms.md").read_text(encoding="utf-8")
    assert given["handover.controller_manager"] == "/controller_manager"
    assert given["handover.activate"] == ["scaled_joint_trajectory_controller"]
    assert given["handover.deactivate"] == [given["forward_command.controller"]]
    back = " ".join(page.split())
    assert ("ros2 control switch_controllers --strict --deactivate forward_effort_controller "
            "--activate scaled_joint_trajectory_controller") in back
    for word in ("ur_calibration", "kinematics_params_file:=", "rosdep install", "--gains estimate", "rotor_inertia"):
        assert word in page, word

"""SROS2 policies against running nodes: each topic and service of a node, and nothing else, is granted."""
from __future__ import annotations

import os
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter

import pytest
from harness import rclpy
from parameters.node_cases import DRIVES, ROBOT
from parameters.node_maker import Nodes
from rclpy.executors import SingleThreadedExecutor
from support.arm import NAMES
from support.tables import TABLES
from test_adapters import make, stand_ins    # noqa: F401

import rbd_ros as rbd
from rbd_ros.cli import main as cli
from rbd_ros.nodes.outputs import ADAPTERS, ADAPTERS_TABLE
from rbd_ros.nodes.world.mounting import TOPIC
from rbd_ros.runtime.control.adapter_topics import ADAPTER_TOPICS
from rbd_ros.runtime.security import rights
from rbd_ros.runtime.security.policy import bringup
from rbd_ros.runtime.security.rights import TABLE, rights_of

TORQUE = {"adapters": ["forward_command", "jtc", "joint_state"], "forward_command.controller": "arm/torque",
          "jtc.controller": "holder", "joint_state.topic": "bridge/effort"}
BRIDGE = {"bridge_model": "arm", "joints": NAMES}
FIVE_BAR = {"robot_description_file": str(rbd.sample_path("five_bar")), "constraints_file": "five_bar"}
FULL = {    # with all outputs, and all inputs that need no further package
    "feedforward": {**TORQUE, "wrench_joints": ["elbow"], "use_sim_time": True}, "flatness": {
        **TORQUE, "actuation_file": DRIVES},
    "simulator": {**FIVE_BAR, "publish_clock": True, "wrench_joints": ["tip"]},
    "mujoco_plant": {**BRIDGE, "controller": "", "publish_clock": False},
    "lockstep": {**BRIDGE, "controller": "", "plant": "arm", "effort_topic": "torque", "activity_topic": "active",
                 "receivers": ["bridge"]},
    "residual": {"effort_topic": "torque"}, "observer": {"effort_source": "effort", "effort_topic": "torque"}}
CASES = [(program, {}) for program in TABLES] + list(FULL.items()) + [("simulator", {"actuation_file": DRIVES})]


def expanded(node, granted):
    """Full names of rights by kind; an action is its topics and services (as sros2 has it)."""
    topics, services = node.resolve_topic_name, node.resolve_service_name
    actions = [services(name) + "/_action/" for name in granted.execute]
    return {"publish": {*map(topics, granted.publish), *(a + part for a in actions for part in ("feedback", "status"))},
            "subscribe": set(map(topics, granted.subscribe)),
            "reply": {*map(services, granted.reply),
                      *(a + part for a in actions for part in ("send_goal", "cancel_goal", "get_result"))},
            "request": set(map(services, granted.request))}


def seen(node, watcher):
    """The same as another participant sees it in the graph."""
    own = node.get_name(), node.get_namespace()
    return {kind: {name for name, _ in look(*own)} for kind, look in (
        ("publish", watcher.get_publisher_names_and_types_by_node),
        ("subscribe", watcher.get_subscriber_names_and_types_by_node),
        ("reply", watcher.get_service_names_and_types_by_node),
        ("request", watcher.get_client_names_and_types_by_node))}


@pytest.fixture(scope="module")
def watcher(private_domain):
    context = rclpy.context.Context()
    rclpy.init(context=context, domain_id=int(os.environ["ROS_DOMAIN_ID"]))
    node, executor = rclpy.create_node("watcher", context=context), SingleThreadedExecutor(context=context)
    executor.add_node(node)
    node.wait = lambda: executor.spin_once(timeout_sec=0.02)
    yield node
    rclpy.shutdown(context=context)


@pytest.mark.parametrize(("program", "values"), CASES, ids=[f"{name}{'-full' if v else ''}" for name, v in CASES])
def test_a_node_has_what_its_policy_grants_and_nothing_else(program, values, watcher):
    robot = {} if program == "lockstep" else ROBOT
    with Nodes(program).started({**robot, **values}) as node:
        assert program == "lockstep" or node.active, node.status
        expected, deadline, found = expanded(node, rights_of(program, values)), time.monotonic() + 60.0, None

        def missing():
            nonlocal found
            try:
                found = seen(node, watcher)
            except Exception:    # not yet known to the watcher
                return True
            return found != expected

        while missing() and time.monotonic() < deadline:
            watcher.wait()
        assert found == expected


def test_every_adapter_and_every_node_has_rights():
    assert set(ADAPTER_TOPICS) == set(ADAPTERS), "rbd_ros/runtime/control/adapter_topics.py: an entry per adapter"
    assert set(TABLE) == set(TABLES)
    assert rights_of("feedforward", {"mounting.frame": "world", "odometry": "odom"}).subscribe - rights_of(
        "feedforward", {}).subscribe == {TOPIC, "odom"}
    assert rights_of("dynamics_server", {"odometry": "odom"}).subscribe >= {"odom"}
    assert rights_of("feedforward", {"handover.controller_manager": "/cm"}).request == {"/cm/switch_controller"}
    for stepper, service in (("gazebo", "/world/lab/control"), ("simulation_interfaces", "/gz/step_simulation")):
        assert rights_of("lockstep", {"stepper": stepper, "world": "lab", "plant": "/gz"}).request == {service}
    with pytest.raises(rbd.RbdError, match="jct"):
        rights_of("feedforward", {"adapters": ["jct"]})
    with pytest.raises(rbd.RbdError, match="'joints'"):
        rights_of("lockstep", {"bridge_model": "arm"})


@pytest.mark.parametrize(("text", "topics"), [
    ("contacts: [{name: ground}]", {"~/contact_forces"}), ("constraints: []\ncontacts: [{}]", {"~/contact_forces"}),
    ("constraints: [{}]\ncontacts: [{}]", {"~/constraint_forces", "~/contact_forces"}), ("constraints: []", set())])
def test_what_a_simulator_publishes_follows_the_file_of_constraints(tmp_path, text, topics):
    file = tmp_path / "loops.yaml"
    file.write_text(text)
    assert {topic for topic in rights_of("simulator", {"constraints_file": str(file)}).publish
            if topic.endswith("_forces")} == topics


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_every_adapter_has_the_topics_of_its_policy(adapter, stand_ins):    # noqa: F811
    """Those of packages that are not everywhere, too: by a node that only notes what it is asked for."""
    rows = [row.name for row in ADAPTERS_TABLE if row.name.startswith(f"{adapter}.")
            and row.name.rpartition(".")[2].endswith(("controller", "topic"))]
    assert rows
    for values in ({}, {name: f"other/{name.replace('.', '_')}" for name in rows}):
        node, _ = make(adapter, rbd.sample("iiwa"), **{"mit.kp": 50.0}, **values)
        found = rights.adapter_rights(adapter, values)
        assert set(node.topics) == found.publish
        assert set(getattr(node, "callbacks", ())) == found.subscribe


# ---- who may do what

def granted(text, kind):
    """{name: enclaves that may do this} of a policy."""
    found: dict[str, set[str]] = {}
    for enclave in ElementTree.fromstring(text).iter("enclave"):
        for outer in enclave.iter():
            if kind in outer.attrib:
                assert outer.attrib == {kind: "ALLOW"}
                for item in outer:
                    found.setdefault(item.text, set()).add(enclave.get("path").removeprefix("/rbd_ros/"))
    return found


@pytest.mark.parametrize("program", ["feedforward", "flatness"])
def test_one_role_each_may_move_stop_release_and_tune_the_arm(program):
    text = bringup(program, {"adapters": ["forward_command"]})
    publish, subscribe, request = (granted(text, kind) for kind in ("publish", "subscribe", "request"))
    for topic, role in (("~/reference", "motion"), ("~/joint_trajectory", "motion"), ("~/external_wrenches", "sensing"),
                        ("~/emergency_stop", "stop"), ("joint_states", "robot"), ("robot_description", "robot")):
        assert publish[topic] == {f"{program}_{role}"}, topic
    for topic in ("~/effort", "effort_controller/commands", "/diagnostics"):
        assert publish[topic] == {program}
    assert subscribe["effort_controller/commands"] == {f"{program}_robot"}
    assert request["~/reset"] == {f"{program}_reset"}
    for service in ("~/set_parameters", "~/set_parameters_atomically", "~/change_state"):
        assert request[service] == {f"{program}_tuning"}
    assert request["~/get_parameters"] == {f"{program}_tuning", f"{program}_watching"}
    assert "*" not in text and "DENY" not in text


@pytest.mark.parametrize(("program", "values"), [
    ("feedforward", {"odometry": "base/odom"}), ("feedforward", {"mounting.frame": "world", "adapters": ["lbr"]}),
    ("flatness", {"mounting.frame": "world", "actuation_file": DRIVES, "adapters": ["lbr"]})])
def test_what_a_torque_node_hears_somebody_may_say(program, values):
    publish = granted(bringup(program, values), "publish")
    for topic in rights_of(program, values).subscribe:
        assert len(publish.get(topic, ())) == 1, topic
    for topic in {"base/odom", "/tf_static", "state"} & rights_of(program, values).subscribe:
        assert publish[topic] == {f"{program}_robot"}


def test_goals_of_a_link_are_of_the_role_of_motion():
    publish = granted(bringup("cartesian", {}), "publish")
    assert all(publish[f"~/target_{name}"] == {"cartesian_motion"} for name in ("pose", "twist", "trajectory"))
    assert publish["~/effort"] == {"cartesian"}


def test_loads_are_set_by_who_tunes_and_dynamics_asked_by_all_programs_of_motion():
    request = granted(bringup("dynamics_server", {}), "request")
    assert request["~/set_payload"] == {"dynamics_server_tuning"}
    assert request["~/inverse_dynamics"] == request["~/get_model_info"] == {"dynamics_server_motion"}
    assert granted(bringup("motion_planner", {}), "call") == {"~/plan_motion": {"motion_planner_motion"}}


def test_obstacles_are_of_the_role_of_sensing_where_they_are_heard():
    assert granted(bringup("motion_planner", {}), "publish")["~/obstacles"] == {"motion_planner_sensing"}
    assert "~/obstacles" not in granted(bringup("motion_planner", {"collisions.use": "never"}), "publish")


def test_a_program_of_a_role_can_be_a_node():
    """It has its own parameter services, under the name of the role, and no role has those of the node itself."""
    for enclave in ElementTree.fromstring(bringup("feedforward", {})).iter("enclave"):
        profiles = {profile.get("node"): profile for profile in enclave.iter("profile")}
        name = enclave.get("path").rpartition("/")[2]
        replies = Counter(node for node, profile in profiles.items() for each in profile.iter("services")
                          if "reply" in each.attrib and any(item.text == "~/set_parameters" for item in each))
        assert replies == {name: 1} and set(profiles) == {name, "feedforward"}


# ---- the command

def test_the_command_reads_what_the_node_reads(tmp_path, capsys):
    file = tmp_path / "arm.yaml"
    file.write_text("/**:\n  ros__parameters: {adapters: [jtc]}\n/left/feedforward:\n  ros__parameters:\n"
                    "    jtc: {controller: hold}\nflatness:\n  ros__parameters: {adapters: [joint_state]}\n")
    assert cli.main(["secure", "feedforward", "--params-file", str(file), "--namespace", "left", "--enclave", "/cell",
                     "--set", "wrench_joints:=[wrist]", "--remap", "joint_states:=/left/states"]) == 0
    text = capsys.readouterr().out
    publish = granted(text, "publish")
    assert publish["hold/joint_trajectory"] == {"/cell/feedforward"} == publish["~/wrench/wrist"]
    assert publish["/left/states"] == {"/cell/feedforward_robot"} and "joint_states" not in publish
    assert 'ns="/left"' in text and granted(text, "subscribe")["/left/states"] == {"/cell/feedforward"}
    assert cli.main(["secure", "feedforward", "--set", "adapters"]) == 1
    assert "expected NAME:=VALUE" in capsys.readouterr().err
    assert cli.main(["secure", "feedforward", "--params-file", str(tmp_path / "none.yaml")]) == 1


def test_keys_are_made_by_ros2_security_where_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    store = tmp_path / "keys"
    assert cli.main(["secure", "feedforward", "--keystore", str(store)]) == 1
    said = capsys.readouterr().err
    assert "no command ros2 here" in said and f"ros2 security generate_artifacts -k {store} -p" in said
    fake = tmp_path / "bin" / "ros2"
    fake.parent.mkdir()
    fake.write_text(f"#!{sys.executable}\nimport sys\nsys.exit(2)\n")
    fake.chmod(0o755)
    assert cli.main(["secure", "feedforward", "--keystore", str(store)]) == 1
    assert "no package sros2 here" in capsys.readouterr().err
    log = tmp_path / "log"
    fake.write_text(f"#!{sys.executable}\nimport sys\nopen({str(log)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n")
    assert cli.main(["secure", "feedforward", "--keystore", str(store)]) == 0
    assert log.read_text().splitlines() == [
        "security --help", f"security generate_artifacts -k {store} -p {store}/feedforward.policy.xml"]
    assert (store / "feedforward.policy.xml").read_text() == bringup("feedforward", {})
    assert f"ROS_SECURITY_KEYSTORE={store.resolve()}" in capsys.readouterr().out

"""`rbd layouts`: every curve is one that the programs make of what the nodes publish; and the configuration of RViz.

The programs themselves are not available as packages here: names follow the sources of PlotJuggler's and Foxglove's
readers, written down once more below.
"""
from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest
import yaml
from sensor_msgs.msg import JointState

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort
from rbd_ros.cli.main import main
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings

RVIZ = Path(__file__).parents[2] / "config" / "rbd_ros.rviz"
ROBOTS = ("iiwa", "two_link", "gripper")
TOPICS = {"/feedforward/effort": JointEffort, "/residual/residual": JointEffort, "/joint_states": JointState}


@pytest.fixture(params=ROBOTS)
def robot(request, tmp_path, capsys):
    """A model, PlotJuggler's layout and Foxglove's."""
    with warnings.catch_warnings():    # about the iiwa's published inertias
        warnings.simplefilter("ignore", rbd.RbdWarning)
        assert main(["layouts", request.param, "-o", str(tmp_path)]) == 0
        model = rbd.sample(request.param)
    juggler, foxglove = (tmp_path / f"{model.name}_{end}" for end in ("plotjuggler.xml", "foxglove.json"))
    assert capsys.readouterr().out.split() == [str(juggler), str(foxglove)]
    return model, xml.parse(juggler).getroot(), json.loads(foxglove.read_text())


def plotjuggler_series(model):
    """All that PlotJuggler would list: joint states by name, other arrays by index, diagnostics by key."""
    found = {f"/joint_states/{joint}/{field}" for joint in model.joint_names
             for field in ("position", "velocity", "effort")}
    for topic, kind in TOPICS.items():
        if kind is JointEffort:
            found |= {f"{topic}/{field}[{i}]" for i in range(len(model.joint_names))
                      for field, type_ in kind.get_fields_and_field_types().items() if type_ == "sequence<double>"}
    controller = FeedforwardController(model, FeedforwardSettings.from_values({}, model))
    return found | {f"/diagnostics//feedforward/{key}" for key in controller.report()}


def test_plotjuggler_draws_what_is_published(robot):
    model, root, _ = robot
    made = {item.get("name"): item for item in root.iter("snippet")}
    series = plotjuggler_series(model)
    curves = [curve.get("name") for curve in root.iter("curve")]
    assert set(curves) <= series | set(made) and set(made) <= set(curves)
    for joint, limit in zip(model.joint_names, model.effort_limit, strict=True):
        if limit < float("inf"):
            assert float(made[f"limits/effort {joint}/upper"].findtext("function").split()[1]) == pytest.approx(limit)
            assert float(made[f"limits/effort {joint}/lower"].findtext("function").split()[1]) == pytest.approx(-limit)
    assert all(item.findtext("linked_source") in series for item in made.values())
    [topics] = [item.get("value").split(";") for item in root.iter("selected_topics")]
    assert sorted(topics) == sorted([*TOPICS, "/diagnostics"])
    for splitter in root.iter("DockSplitter"):    # the reader trusts the counts
        assert int(splitter.get("count")) == len(splitter) == len(splitter.get("sizes").split(";"))
        assert sum(map(float, splitter.get("sizes").split(";"))) == pytest.approx(1.0, abs=1e-4)


def test_foxglove_draws_what_is_published(robot):
    model, _, whole = robot
    panels = whole["configById"]
    used = [*leaves(whole["layout"]), *(leaf for tab in panels["Tab!pages"]["tabs"] for leaf in leaves(tab["layout"]))]
    assert sorted(used) == sorted(panels)    # each once
    numbers = set()
    for name, panel in panels.items():
        if not name.startswith("Plot!"):
            continue
        for line in panel["paths"]:
            if re.fullmatch(r"-?[\d.e+]+", line["value"]):
                numbers.add(float(line["value"]))
                continue
            topic, field, index = re.fullmatch(r"(/[\w/]+)\.(\w+)\[(\d+)\]", line["value"]).groups()
            assert TOPICS[topic].get_fields_and_field_types()[field] == "sequence<double>"
            assert line["label"].startswith(model.joint_names[int(index)])
    assert numbers == {float(f"{sign * limit:.9g}") for limit in model.effort_limit if limit < float("inf")
                       for sign in (1, -1)}


def leaves(tree):
    if isinstance(tree, str):
        yield tree
    else:
        yield from leaves(tree["first"])
        yield from leaves(tree["second"])


def test_order_of_joints_and_topics_are_those_given(tmp_path, capsys):
    assert main(["layouts", "two_link", "-o", str(tmp_path), "--joints", "elbow", "shoulder", "--node", "arm/flatness",
                 "--joint-states", "/robot/joint_states"]) == 0
    text = (tmp_path / "two_link_plotjuggler.xml").read_text()
    assert text.index("/robot/joint_states/elbow/effort") < text.index("/arm/flatness/effort/effort[0]") < text.index(
        "/robot/joint_states/shoulder/effort") < text.index("/arm/flatness/effort/effort[1]")
    assert "/diagnostics//arm/flatness/latency_p99_us" in text
    assert main(["layouts", "two_link", "-o", str(tmp_path), "--joints", "wrist"]) == 1
    assert "wrist" in capsys.readouterr().err


def test_rviz_shows_topics_that_exist():
    """Displays by the names of rviz_default_plugins, topics by those of the nodes with their defaults."""
    whole = yaml.safe_load(RVIZ.read_text())["Visualization Manager"]
    displays = {item["Name"]: item for item in whole["Displays"]}
    assert {item["Class"] for item in displays.values()} == {
        f"rviz_default_plugins/{name}" for name in ("Grid", "RobotModel", "Effort")}
    assert displays["Measured effort"]["Topic"]["Value"] == "/joint_states"
    assert displays["Commanded effort"]["Topic"]["Value"] == "/feedforward/effort_commands"
    assert displays["Robot"]["Description Topic"]["Value"] == "/robot_description"

"""Parameters whose names are misspelt are named, those of other nodes in a shared file are not."""
from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml
from support.tables import TABLES

from rbd_ros.nodes.base import parameters

CONFIG = Path(__file__).parents[2] / "config"


@pytest.mark.parametrize(("name", "meant"), [("feedfoward", "feedforward"), ("effort_limits.maximun",
                                              "effort_limits.maximum"), ("robot_compensate", "robot_compensates")])
def test_a_misspelt_name_is_named(name, meant):
    (note,) = parameters.misspelt([name, meant, "use_sim_time"], TABLES["feedforward"])
    assert f"'{name}'" in note and f"did you mean '{meant}'" in note


@cache
def shipped():
    """All names in the files of this package."""
    files = [content for path in CONFIG.glob("*.yaml") if isinstance(content := yaml.safe_load(path.read_text()), dict)]
    return {name for content in files for section in content.values() for name in section.get("ros__parameters", {})}


@pytest.mark.parametrize("node", TABLES)
def test_no_name_in_the_files_of_this_package_is_taken_for_a_misspelt_one(node):
    given = shipped()
    assert len(given) > 50
    assert not parameters.misspelt(given, TABLES[node])


def test_a_node_warns(capfd):
    import rclpy
    from rclpy.context import Context

    context = Context()
    rclpy.init(args=[], context=context)
    try:
        node = rclpy.create_node("misspelt", context=context, cli_args=["--ros-args", "-p", "feedfoward:=gravity"])
        parameters.declare(node, TABLES["feedforward"])
        assert node.get_parameter("feedforward").value == "full"
    finally:
        rclpy.shutdown(context=context)
    assert "'feedfoward' has no effect; did you mean 'feedforward'" in capfd.readouterr().err

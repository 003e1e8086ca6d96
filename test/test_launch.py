"""Launch files load, describe every argument and start what they say; only where launch_ros is installed."""
from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("launch_ros", reason="launch_ros is not importable: it comes with a ROS 2 installation only")
FILES = sorted((Path(__file__).parents[1] / "launch").glob("*.launch.py"))


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_launch_file(path):
    from launch.actions import DeclareLaunchArgument
    from launch_ros.actions import Node

    spec = importlib.util.spec_from_file_location(path.name.split(".")[0], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    entities = module.generate_launch_description().entities
    assert all(entity.description for entity in entities if isinstance(entity, DeclareLaunchArgument))
    assert any(isinstance(entity, Node) for entity in entities)

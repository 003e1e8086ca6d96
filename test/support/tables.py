"""The parameters of every node: its own and those of its logic."""
from __future__ import annotations

import importlib

import pytest

from rbd_ros.runtime.parameters import Table

pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")
pytest.importorskip("rbd_interfaces.msg", reason="rbd_interfaces is not built: scripts/setup does it")

CLASSES = {"feedforward": "FeedforwardNode", "flatness": "FlatnessNode", "float_check": "FloatCheckNode",
           "cartesian": "CartesianNode", "effort_annotator": "EffortAnnotatorNode",
           "dynamics_server": "DynamicsServerNode", "simulator": "SimulatorNode", "mujoco_plant": "MujocoPlantNode",
           "lockstep": "LockstepNode", "residual": "ResidualNode", "observer": "ObserverNode",
           "motion_planner": "MotionPlannerNode"}
TABLES: dict[str, Table] = {name: getattr(importlib.import_module(f"rbd_ros.nodes.{name}"), kind).table
                            for name, kind in CLASSES.items()}

"""Outputs of torque nodes: one file per receiver, with its `TABLE` of parameters and its `make`.

To add an output: add its topics to `ADAPTER_TOPICS`, write its file, and add a line to `ADAPTERS`.
"""
from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from ...core.model.robot_model import RobotModel
from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.parameters import Parameter, Table
from . import forward_command, joint_command, joint_state, jtc, lbr, linear_feedback, mit, multi_dof
from .output import Output

ADAPTERS: dict[str, ModuleType] = {
    "forward_command": forward_command, "joint_state": joint_state, "jtc": jtc, "multi_dof": multi_dof,
    "joint_command": joint_command, "linear_feedback": linear_feedback, "lbr": lbr, "mit": mit}

ADAPTERS_TABLE: Table = (
    Parameter("adapters", "strings", (), "Outputs beside ~/effort.", choices=tuple(ADAPTERS), read_only=True),
    *(row for adapter in ADAPTERS.values() for row in adapter.TABLE),
)


def restricted(settings: Any, values: Mapping[str, Any]) -> Any:
    """The settings of a torque node as its adapters allow them; raises `RbdError` if they are incompatible."""
    return mit.restrict(settings, values) if "mit" in values["adapters"] else settings


def make_outputs(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> list[Output]:
    """The outputs of parameter `adapters`; raises `RbdError` if one cannot be created."""
    return [ADAPTERS[name].make(node, model, settings, values) for name in dict.fromkeys(values["adapters"])]

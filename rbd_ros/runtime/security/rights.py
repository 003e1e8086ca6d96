"""Topics, services and actions that each node publishes, subscribes to, offers and calls with given parameters.

Names as in the code of the node: relative, `~/…` or absolute. A test compares this table with running nodes.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ...core.errors import RbdError, unknown_name
from ...core.model.files.yaml_text import read_yaml
from ...core.model.samples import sample_names
from ..cosimulation.lockstep import receipt_services
from ..wrench_sensors import sensor_topic

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Rights:
    """Topics to publish and subscribe to, services to reply to and to request, actions to execute and to call."""

    publish: frozenset[str] = frozenset()
    subscribe: frozenset[str] = frozenset()
    reply: frozenset[str] = frozenset()
    request: frozenset[str] = frozenset()
    execute: frozenset[str] = frozenset()
    call: frozenset[str] = frozenset()

    def __or__(self, other: Rights) -> Rights:
        return Rights(*(getattr(self, field.name) | getattr(other, field.name) for field in fields(Rights)))

    def renamed(self, names: Mapping[str, str]) -> Rights:
        """The rights with topics and services remapped as by a node's arguments."""
        return Rights(*(frozenset(names.get(name, name) for name in getattr(self, field.name))
                        for field in fields(Rights)))


def rights(**names: Any) -> Rights:
    """Rights of lists of names."""
    return Rights(**{kind: frozenset(given) for kind, given in names.items()})


PARAMETERS = ("~/describe_parameters", "~/get_parameter_types", "~/get_parameters", "~/list_parameters",
              "~/set_parameters", "~/set_parameters_atomically")
LIFE_CYCLE = ("~/change_state", "~/get_state", "~/get_available_states", "~/get_available_transitions",
              "~/get_transition_graph")
# Offered by every node; the policies of others say who may call them (`roles.py`).
NODE = rights(publish=["/rosout", "/parameter_events", "/diagnostics", "~/transition_event"],
              reply=[*PARAMETERS, *LIFE_CYCLE, "~/get_type_description"])
MODEL = NODE | rights(subscribe=["robot_description"])
SERVICES = tuple(f"~/{name}" for name in (
    "inverse_dynamics", "forward_dynamics", "hybrid_dynamics", "constrained_dynamics", "dynamics_terms",
    "dynamics_derivatives", "time_derivatives", "trajectory_inverse_dynamics", "set_payload", "get_model_info"))
REFERENCES = ("~/reference", "~/joint_trajectory")
SURROUNDINGS = ("~/external_wrenches",)
STOP = "~/emergency_stop"


def _of(values: Values, name: str, default: Any) -> Any:
    return values.get(name, default)


def _many(values: Values, name: str) -> list[str]:
    """A list of strings, without empty ones."""
    listed = values.get(name, ())
    return [item for item in ([listed] if isinstance(listed, str) else listed) if item]


def _topic(values: Values, name: str) -> list[str]:
    return [values[name]] if values.get(name) else []


def _sensors(values: Values) -> list[str]:
    return [sensor_topic(joint) for joint in _many(values, "wrench_joints")]


ADAPTERS: dict[str, Callable[[Values], Rights]] = {
    "forward_command": lambda v: rights(publish=[f"{_of(v, 'forward_command.controller', 'effort_controller')}"
                                                 "/commands"]),
    "jtc": lambda v: rights(publish=[f"{_of(v, 'jtc.controller', 'joint_trajectory_controller')}/joint_trajectory"]),
    "joint_state": lambda v: rights(publish=[_of(v, "joint_state.topic", "~/effort_commands")]),
    "multi_dof": lambda v: rights(publish=[f"{_of(v, 'multi_dof.controller', 'pid_controller')}/reference"]),
    "joint_command": lambda v: rights(publish=[_of(v, "joint_command.topic", "robot_joint_commands/effort")]),
    "lbr": lambda v: rights(publish=[_of(v, "lbr.command_topic", "command/torque")],
                            subscribe=[_of(v, "lbr.state_topic", "state")]),
}


def _torque(values: Values) -> Rights:
    granted = MODEL | rights(publish=["~/effort"], subscribe=["joint_states", *REFERENCES, *SURROUNDINGS, STOP],
                           reply=["~/reset"])
    for adapter in _many(values, "adapters"):
        if adapter not in ADAPTERS:
            raise unknown_name("adapter", adapter, ADAPTERS)
        granted |= ADAPTERS[adapter](values)
    manager = values.get("handover.controller_manager")
    return granted | (rights(request=[f"{manager}/switch_controller"]) if manager else Rights())


def _feedforward(values: Values) -> Rights:
    return _torque(values) | rights(publish=_sensors(values), subscribe=_topic(values, "odometry"))


def _flatness(values: Values) -> Rights:
    elastic = rights(publish=["~/motor_reference", "~/motor_effort", "~/motor_commands"], subscribe=["motor_states"])
    return _torque(values) | (elastic if values.get("actuation_file") else Rights())


def _exerted(values: Values) -> list[str]:
    """Topics for forces of the file's constraints and contacts."""
    source = values.get("constraints_file")
    if not source:
        return []
    tree = {"constraints": True} if source in sample_names() else read_yaml(Path(source), "constraints")[0]
    return [topic for section, topic in (("constraints", "~/constraint_forces"), ("contacts", "~/contact_forces"))
            if isinstance(tree, Mapping) and tree.get(section)]


def _plant(values: Values, clock: bool = False) -> Rights:
    return MODEL | rights(
        publish=["joint_states", *(["/clock"] if _of(values, "publish_clock", clock) else []), *_sensors(values),
                 *_exerted(values), *(["motor_states"] if values.get("actuation_file") else [])],
        subscribe=["~/commands", "~/effort_commands", *SURROUNDINGS, *_received(values, "")],
        reply=["~/reset", "~/pause", "~/step"])


def _forces(values: Values) -> list[str]:
    """Topics of a bridge to Gazebo."""
    model = values.get("bridge_model")
    if model and not _many(values, "joints"):
        raise RbdError("parameter 'bridge_model' makes a topic per joint: list them in parameter 'joints'")
    return [f"/model/{model}/joint/{name}/cmd_force" for name in _many(values, "joints")] if model else []


def _received(values: Values, default: str) -> list[str]:
    """Topic of a forward_command_controller."""
    controller = _of(values, "controller", default)
    return [f"{controller}/commands"] if controller else []


def _commands(values: Values) -> list[str]:
    return _forces(values) + _received(values, "effort_controller")


def _mujoco_plant(values: Values) -> Rights:
    return _plant(values, clock=True) | rights(subscribe=_commands(values))


def _lockstep(values: Values) -> Rights:
    plant, world = _of(values, "plant", "mujoco_plant"), _of(values, "world", "default")
    steppers = {"rbd": [f"{plant}/step", f"{plant}/reset"], "gazebo": [f"/world/{world}/control"],
                "simulation_interfaces": [f"{plant}/step_simulation"], "none": []}
    stepper = _of(values, "stepper", "rbd")
    receipts = () if stepper == "none" else receipt_services(
        _of(values, "controller", "effort_controller"), _many(values, "receivers"))
    return NODE | rights(
        publish=["~/effort", *_commands(values)], request=[*steppers[stepper], *receipts],
        subscribe=["joint_states", _of(values, "effort_topic", "feedforward/effort"),
                   *_topic(values, "activity_topic")])


TABLE: dict[str, Callable[[Values], Rights]] = {
    "feedforward": _feedforward,
    "flatness": _flatness,
    "effort_annotator": lambda values: MODEL | rights(publish=["~/joint_trajectory"],
                                                      subscribe=["~/joint_trajectory_in"]),
    "motion_planner": lambda values: MODEL | rights(subscribe=["joint_states"], reply=["~/plan_motion"],
                                                    execute=["~/plan_motion"]),
    "dynamics_server": lambda values: MODEL | rights(subscribe=["joint_states", *_topic(values, "odometry")],
                                                     reply=SERVICES),
    "simulator": _plant,
    "mujoco_plant": _mujoco_plant,
    "lockstep": _lockstep,
    "residual": lambda values: MODEL | rights(publish=["~/residual"], subscribe=[
        "joint_states", _of(values, "effort_topic", "feedforward/effort")]),
}


def rights_of(node: str, values: Values) -> Rights:
    """The rights needed by this node with these parameters; missing ones have their defaults."""
    if node not in TABLE:
        raise unknown_name("node", node, TABLE)
    further = [name for name, wanted in (("/tf_static", values.get("mounting.frame")),
                                         ("/clock", values.get("use_sim_time"))) if wanted]
    return TABLE[node](values) | rights(subscribe=further)

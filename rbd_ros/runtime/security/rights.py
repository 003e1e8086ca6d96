"""Topics, services and actions that each node publishes, subscribes to, offers and calls with given parameters.

Names as in the code of the node: relative, `~/…` or absolute. A test compares this table with running nodes.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from ...core.errors import RbdError, unknown_name
from ...core.model.files.yaml_text import read_yaml
from ...core.model.samples import sample_names
from ..control.adapter_topics import ADAPTER_TOPICS, list_of
from ..cosimulation.lockstep import LOCKSTEP_TABLE, receipt_services
from ..cosimulation.mujoco_settings import MUJOCO_TABLE
from ..cosimulation.residual import RESIDUAL_TABLE
from ..estimation.contact_observer import OBSERVER_TABLE
from ..parameters import Table, select, validate
from ..plant.simulator_settings import SIMULATOR_TABLE
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
GOALS = ("~/target_pose", "~/target_twist", "~/target_trajectory", "~/target_wrench")
OBSTACLES = "~/obstacles"
STOP = "~/emergency_stop"


def _topic(values: Values, name: str) -> list[str]:
    return [values[name]] if values.get(name) else []


def _sensors(values: Values) -> list[str]:
    return [sensor_topic(joint) for joint in list_of(values, "wrench_joints")]


def adapter_rights(adapter: str, values: Values) -> Rights:
    """Rights of an output adapter; raises `RbdError` for an unknown one."""
    if adapter not in ADAPTER_TOPICS:
        raise unknown_name("adapter", adapter, ADAPTER_TOPICS)
    topics = ADAPTER_TOPICS[adapter]
    return rights(publish=[name for topic in topics if not topic.subscribed for name in topic.names(values)],
                  subscribe=[name for topic in topics if topic.subscribed for name in topic.names(values)])


def _torque(values: Values) -> Rights:
    granted = MODEL | rights(publish=["~/effort"], subscribe=["joint_states", STOP], reply=["~/reset"])
    for adapter in list_of(values, "adapters"):
        granted |= adapter_rights(adapter, values)
    manager = values.get("handover.controller_manager")
    return granted | (rights(request=[f"{manager}/switch_controller"]) if manager else Rights())


def _following(values: Values) -> Rights:
    loads = _topic(values, "payload.topic")
    return _torque(values) | rights(subscribe=[*REFERENCES, *SURROUNDINGS, *loads],
                                    reply=["~/adopt_payload"] if loads else [])


def _feedforward(values: Values) -> Rights:
    return _following(values) | rights(publish=["~/contact", *_sensors(values)], subscribe=_topic(values, "odometry"))


def _flatness(values: Values) -> Rights:
    elastic = rights(publish=["~/motor_reference", "~/motor_effort", "~/motor_commands"], subscribe=["motor_states"])
    return _following(values) | (elastic if values.get("actuation_file") else Rights())


def _annotating(values: Values) -> Rights:
    actions = [f"{controller}/follow_joint_trajectory" for controller in _topic(values, "action.controller")]
    return _surrounded(values) | rights(
        publish=["~/joint_trajectory"], subscribe=["~/joint_trajectory_in"], call=actions,
        execute=["~/follow_joint_trajectory"] if actions else [])


def _surrounded(values: Values) -> Rights:
    """Rights of obstacles and collision markers."""
    if values.get("collisions.use") == "never":
        return Rights()
    return rights(publish=["~/collision_markers"] if values.get("collisions.show") else [], subscribe=[
        OBSTACLES, *(name for kind in ("marker", "scene", "cloud") for name in _topic(
            values, f"collisions.{kind}_topic"))])


def _exerted(values: Values) -> list[str]:
    """Topics for forces of the file's constraints and contacts."""
    source = values.get("constraints_file")
    if not source:
        return []
    tree = {"constraints": True} if source in sample_names() else read_yaml(Path(source), "constraints")[0]
    return [topic for section, topic in (("constraints", "~/constraint_forces"), ("contacts", "~/contact_forces"))
            if isinstance(tree, Mapping) and tree.get(section)]


def _plant(table: Table, values: Values) -> Rights:
    values = validate(table, select(table, values))
    return MODEL | rights(
        publish=["joint_states", *(["/clock"] if values["publish_clock"] else []), *_sensors(values),
                 *_exerted(values), *(["motor_states"] if values.get("actuation_file") else [])],
        subscribe=["~/commands", "~/effort_commands", *SURROUNDINGS, *_commands(values)],
        reply=["~/reset", "~/pause", "~/step"])


def _commands(values: Values) -> list[str]:
    """Topics of a forward_command_controller and of a bridge to Gazebo."""
    model, controller = values.get("bridge_model"), values["controller"]
    if model and not values["joints"]:
        raise RbdError("parameter 'bridge_model' makes a topic per joint: list them in parameter 'joints'")
    return ([f"{controller}/commands"] if controller else []) + (
        [f"/model/{model}/joint/{name}/cmd_force" for name in values["joints"]] if model else [])


def _lockstep(values: Values) -> Rights:
    values = validate(LOCKSTEP_TABLE, select(LOCKSTEP_TABLE, values))
    plant, stepper = values["plant"], values["stepper"]
    steppers = {"rbd": [f"{plant}/step", f"{plant}/reset"], "gazebo": [f"/world/{values['world']}/control"],
                "simulation_interfaces": [f"{plant}/step_simulation"], "none": []}
    receipts = () if stepper == "none" else receipt_services(values["controller"], values["receivers"])
    return NODE | rights(
        publish=["~/effort", *_commands(values)], request=[*steppers[stepper], *receipts],
        subscribe=["joint_states", values["effort_topic"], *_topic(values, "activity_topic")])


def _observer(values: Values) -> Rights:
    values = validate(OBSERVER_TABLE, select(OBSERVER_TABLE, values))
    commands = [values["effort_topic"]] if values["effort_source"] == "effort" else []
    return MODEL | rights(publish=[f"~/{name}" for name in (
        "external_effort", "external_wrench", "external_wrench_with_covariance", "contact", "payload")],
                          subscribe=["joint_states", *commands], reply=["~/adopt_payload"])


TABLE: dict[str, Callable[[Values], Rights]] = {
    "feedforward": _feedforward,
    "flatness": _flatness,
    "float_check": lambda values: _torque(values) | rights(publish=["~/result"], reply=["~/start"]),
    "cartesian": lambda values: _torque(values) | rights(
        publish=["~/target"], subscribe=[*GOALS, *_topic(values, "force.topic")], reply=["~/guide", "~/teach"]),
    "effort_annotator": lambda values: MODEL | _annotating(values),
    "motion_planner": lambda values: MODEL | _surrounded(values) | rights(
        subscribe=["joint_states"], reply=["~/plan_motion"], execute=["~/plan_motion"]),
    "dynamics_server": lambda values: MODEL | rights(subscribe=["joint_states", *_topic(values, "odometry")],
                                                     reply=SERVICES),
    "observer": _observer,
    "simulator": partial(_plant, SIMULATOR_TABLE),
    "mujoco_plant": partial(_plant, MUJOCO_TABLE),
    "lockstep": _lockstep,
    "residual": lambda values: MODEL | rights(publish=["~/residual"], subscribe=[
        "joint_states", validate(RESIDUAL_TABLE, select(RESIDUAL_TABLE, values))["effort_topic"]]),
}


def rights_of(node: str, values: Values) -> Rights:
    """The rights needed by this node with these parameters; missing ones have their defaults."""
    if node not in TABLE:
        raise unknown_name("node", node, TABLE)
    further = [name for name, wanted in (("/tf_static", values.get("mounting.frame")),
                                         ("/clock", values.get("use_sim_time"))) if wanted]
    return TABLE[node](values) | rights(subscribe=further)

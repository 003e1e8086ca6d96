"""Parameters of the controller: rows of node feedforward and its own, as generate_parameter_library takes them."""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml

from ...core.model.robot_model import RobotModel
from ...runtime.control.feedforward import FEEDFORWARD_TABLE
from ...runtime.parameters import Parameter, Table

HEADER = ("# Parameters of the controller (generate_parameter_library): of node feedforward of rbd_ros, and its own.\n"
          "# Numbers per joint: one for all, or as many as `joints`, in that order.\n")
LAWS = ("none", "gravity", "impedance", "full", "computed_torque")
SHARED = (
    "joints", "feedforward", "gains.kp", "gains.kd", "robot_compensates", "gravity", "mounting.rpy", "rotor_inertia",
    "payload.body", "payload.mass", "payload.com", "payload.inertia", "friction.damping", "friction.coulomb",
    "friction.smoothing", "friction.asymmetry", "friction.viscous_asymmetry", "friction.load", "effort_limits.maximum",
    "effort_limits.override_zero", "effort_limits.rate", "ramp_in", "state_timeout", "state_rate", "feedback.min_rate",
    "reference_timeout", "tracking_tolerance", "velocity_cutoff", "plausible_velocity", "safe_output.damping",
    "safe_output.hold_position", "safe_output.hold", "safe_output.fallback_ramp", "safe_output.fallback")
READ_ONLY = ("joints", "state_rate")    # of SHARED
TEXTS = {
    "joints": "Order of all lists with one entry per joint, and of the points on ~/reference.",
    "feedforward": "Model torque that is added to the feedback: none; gravity of the measured position; impedance, "
                   "which is gravity with gains; full, the inverse dynamics of the reference; computed_torque, the "
                   "inverse dynamics of the measured state with the feedback as acceleration.",
    "rotor_inertia": "Rotor inertia reflected through the gears, kg m^2 or kg; -1: that of dynamics.rotor_inertia.",
    "state_timeout": "Time without a valid state, or without an update, after which the safe output begins, s.",
    "state_rate": "Expected rate of updates, Hz; 0: measured.",
    "feedback.min_rate": "Slowest accepted loop, as a fraction of state_rate; a slower one gets the safe output. 0: no "
                         "limit.",
    "plausible_velocity": "States are refused where a joint is faster, or has moved faster, than this multiple of its "
                          "velocity limit (10 rad/s or 2 m/s if that is 0 or missing), or where its velocity jumps by "
                          "more than half of that limit while positions do not; inf: every state is accepted."}
DESCRIBED = "In the order of the description."
OWN: Table = (
    Parameter("state_interfaces", "strings", ("position", "velocity"), "Of each joint. Without velocity it is "
              "estimated (velocity_cutoff).", choices=("position", "velocity"), read_only=True),
    Parameter("dynamics.joints", "strings", (), "Names of the joints that the lists dynamics.* are of, in their order: "
              "numbers of another arm are refused. Empty: not compared."),
    Parameter("dynamics.inertias", "numbers", (), "Ten inertial parameters per joint, of all that moves with its link: "
              "mass, mass * centre (3), moments about the origin xx, xy, yy, xz, yz, zz, in the frame of the link. "
              f"Empty: as generated. rbd identify writes them. {DESCRIBED}"),
    Parameter("dynamics.rotor_inertia", "numbers", (), "Rotor inertia behind the gears, kg m^2 or kg. Empty: as "
              f"generated. {DESCRIBED}", lower=0.0),
    Parameter("dynamics.damping", "numbers", (), "Viscous friction, N m s/rad or N s/m. Empty: as generated. "
              f"{DESCRIBED}", lower=0.0),
    Parameter("dynamics.coulomb", "numbers", (), f"Coulomb friction, N m or N. Empty: as generated. {DESCRIBED}",
              lower=0.0),
    *(Parameter(f"dynamics.{name}", "numbers", (), f"In place of friction.{name}. Empty: that one. {DESCRIBED}")
      for name in ("asymmetry", "viscous_asymmetry", "load")),
    Parameter("dynamics.torque_scale", "numbers", (), "True torque over commanded torque of the motors: what is "
              f"written is divided by it. Empty: 1. {DESCRIBED}", lower=0.01, upper=100.0, read_only=True))
TYPES = {"bool": "bool", "string": "string", "strings": "string_array", "number": "double", "numbers": "double_array"}


def parameters_of(model: RobotModel) -> Table:
    """The rows of a controller of this arm."""
    known = {row.name: row for row in FEEDFORWARD_TABLE}
    own: dict[str, dict[str, Any]] = {"joints": {"default": model.joint_names}, "feedforward": {"choices": LAWS},
                                      "gravity": {"default": tuple(map(float, model.description.gravity))}}
    return (*(replace(known[name], read_only=name in READ_ONLY, description=TEXTS.get(
        name, known[name].description.replace("²", "^2")), **own.get(name, {})) for name in SHARED), *OWN)


def parameters_text(table: Table, package: str) -> str:
    """The parameters as YAML for generate_parameter_library."""
    tree: dict[str, Any] = {}
    for row in table:
        *groups, name = row.name.split(".")
        group = tree
        for each in groups:
            group = group.setdefault(each, {})
        group[name] = dict(_entry(row))
    return HEADER + yaml.dump({package: tree}, Dumper=_Dumper, sort_keys=False, width=100)


def _entry(row: Parameter) -> Iterator[tuple[str, Any]]:
    yield "type", TYPES[row.kind]
    yield "default_value", list(row.default) if isinstance(row.default, tuple) else row.default
    if row.read_only:
        yield "read_only", True
    yield "description", row.description
    if validation := dict(_validation(row)):
        yield "validation", validation


def _validation(row: Parameter) -> Iterator[tuple[str, list[Any]]]:
    if row.choices:
        yield "one_of<>" if row.kind == "string" else "subset_of<>", [list(row.choices)]
    if row.count:
        yield "fixed_size<>", [row.count]
    bounds = "element_bounds<>" if row.kind == "numbers" else "bounds<>"
    if row.upper < math.inf:
        yield bounds, [row.lower, row.upper]
    elif row.lower > -math.inf:
        yield f"lower_{bounds}", [row.lower]


class _Dumper(yaml.SafeDumper):
    """Lists in one line."""


_Dumper.add_representer(list, lambda dumper, items: dumper.represent_sequence(
    "tag:yaml.org,2002:seq", items, flow_style=True))

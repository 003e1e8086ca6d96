"""Every parameter of every node changes what the node does: a new one needs a case here, or this fails."""
from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
from parameters import (
    cartesian_cases, collision_cases, cosimulation_cases, elastic_cases, float_cases, node_cases, observer_cases,
    other_cases, planner_cases, plant_cases, torque_cases,
)
from parameters.case import Case, check, while_running
from support.tables import TABLES

from rbd_ros.runtime.parameters import Parameter

TESTS = Path(__file__).parents[1]
LOGIC: dict[str, Callable[[], dict[str, Case]]] = {
    "feedforward": partial(torque_cases.cases, "feedforward"),
    "flatness": lambda: {**torque_cases.cases("flatness"), **elastic_cases.cases()},
    "float_check": float_cases.cases, "cartesian": cartesian_cases.cases,
    "effort_annotator": lambda: {**other_cases.annotator_cases(), **collision_cases.annotator_cases()},
    "dynamics_server": other_cases.server_cases,
    "simulator": plant_cases.simulator_cases, "mujoco_plant": plant_cases.mujoco_cases,
    "lockstep": cosimulation_cases.lockstep_cases, "residual": cosimulation_cases.residual_cases,
    "observer": observer_cases.observer_cases,
    "motion_planner": planner_cases.planner_cases}
WHERE = {"feedforward": "torque_cases", "flatness": "elastic_cases, or torque_cases",
         "float_check": "float_cases, or held_cases", "cartesian": "cartesian_cases, or held_cases",
         "simulator": "plant_cases",
         "mujoco_plant": "plant_cases", "motion_planner": "planner_cases", "lockstep": "cosimulation_cases",
         "residual": "cosimulation_cases",
         "observer": "observer_cases", "effort_annotator": "collision_cases, or other_cases",
         "dynamics_server": "other_cases"}
NODES = node_cases.cases()
# What is not shown here, and the test that fails if the parameter is ignored. The outputs of feedforward and flatness
# are made by the class that both derive from; case `adapters` shows that each of them makes them.
ADAPTERS = "nodes/test_adapters.py"
OUTPUTS = {
    **{f"jtc.{name}": f"{ADAPTERS}::test_jtc_parameters" for name in (
        "controller", "joints", "time_from_start", "velocities")},
    **{f"multi_dof.{name}": f"{ADAPTERS}::test_multi_dof" for name in ("controller", "joints")},
    **{f"joint_command.{name}": f"{ADAPTERS}::test_joint_command" for name in ("topic", "joints")},
    **{f"linear_feedback.{name}": f"{ADAPTERS}::test_linear_feedback_parameters" for name in (
        "topic", "joints", "hold")},
    **{f"lbr.{name}": f"{ADAPTERS}::test_lbr_parameters" for name in ("command_topic", "state_topic", "joints")},
    **{f"mit.{name}": f"{ADAPTERS}::test_mit_parameters" for name in (
        "controller", "topic_per", "interfaces", "joints", "torque_scale")},
    **{f"mit.{name}": "control/test_mit.py::test_limits_hold_for_what_the_motors_apply" for name in (
        "kp", "kd", "position_change", "velocity_change")},
    **{f"handover.{name}": "nodes/test_handover.py::test_handover_parameters" for name in (
        "controller_manager", "activate", "deactivate", "timeout")},
}
ELSEWHERE: dict[str, dict[str, str]] = dict.fromkeys(("feedforward", "flatness", "float_check", "cartesian"), OUTPUTS)
SHOWN_HERE = [(program, row) for program in TABLES for row in TABLES[program]
              if row.name not in ELSEWHERE.get(program, {})]


@cache
def logic(program: str) -> dict[str, Case]:
    """Made when they are needed: what they expect takes dynamics."""
    return LOGIC[program]()


def shown(program: str, name: str) -> None:
    case = logic(program).get(name) or NODES[program].get(name)
    assert case is not None, (f"nothing shows what parameter '{name}' of {program} does: it needs a case in "
                              f"{WHERE[program]}, or in node_cases; of an output, a line in OUTPUTS here")
    check(TABLES[program], name, case)


@pytest.mark.parametrize(("program", "name"), [(program, row.name) for program, row in SHOWN_HERE])
def test_it_changes_what_is_observed(program, name):
    shown(program, name)


@pytest.mark.parametrize(("program", "name"), [(program, row.name) for program, row in SHOWN_HERE if not row.read_only])
def test_it_does_so_when_it_is_set_while_the_program_runs(program, name):
    with while_running():
        shown(program, name)


@pytest.mark.parametrize("program", TABLES)
def test_no_parameter_is_left_out(program):
    names = [*logic(program), *NODES[program], *ELSEWHERE.get(program, {})]
    known = {row.name for row in TABLES[program]}
    assert set(names) == known, (f"not shown: {sorted(known - set(names))}; shown, but no parameters: "
                                 f"{sorted(set(names) - known)}")
    assert len(names) == len(known), f"shown twice: {sorted(name for name in known if names.count(name) > 1)}"


@pytest.mark.parametrize("test", sorted({test for tests in ELSEWHERE.values() for test in tests.values()}))
def test_what_is_said_to_be_shown_elsewhere_is(test):
    """The test is there, and names the parameters that it is said to show, as it passes them (`a__b` for a.b)."""
    file, function = test.split("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    found = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function), None)
    assert found is not None, f"there is no {test}"
    passed = {word.arg.replace("__", ".") for node in ast.walk(found) if isinstance(node, ast.Call)
              for word in node.keywords if word.arg}
    named = {name for tests in ELSEWHERE.values() for name, where in tests.items() if where == test}
    assert named <= passed, (f"{test} does not pass " + ", ".join(
        f"{name.replace('.', '__')}=…" for name in sorted(named - passed)) + " to any call")


def test_a_parameter_that_is_ignored_or_misread_is_found():
    table = (Parameter("gain", "number", 1.0, ""),)
    check(table, "gain", Case(2.0, lambda values: 3.0 * values.get("gain", 1.0), 6.0))
    for observe, words in ((lambda values: 3.0, "'gain' changes nothing"),
                           (lambda values: 5.0 * values.get("gain", 1.0), "expected 6")):
        with pytest.raises(AssertionError, match=words):
            check(table, "gain", Case(2.0, observe, 6.0))
    with pytest.raises(AssertionError, match="no other value"):
        check(table, "gain", Case(1, lambda values: 3.0 * values.get("gain", 1.0), 3.0))

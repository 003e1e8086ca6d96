"""Nonsense for a parameter is refused by its name, with what was expected, and changes nothing."""
from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from parameters.node_cases import ROBOT
from support.tables import TABLES

import rbd_ros as rbd
from rbd_ros.runtime.parameters import Parameter, validate


def nonsense(row: Parameter) -> list[Any]:
    """Nothing, a wrong type, out of range, none of the choices, not a number, too many."""
    if row.kind == "bool":
        return [None, "yes", 1, [True]]
    if row.kind in ("string", "strings"):
        return [None, 5, True, [1.5]] + (["nonsense"] if row.choices else [])
    found: list[Any] = ["much", True, math.nan, [1.0, math.nan] if row.kind == "numbers" else [1.0]]
    found += [row.lower - 1.0] if row.lower > -math.inf else []
    found += [row.upper * 2.0, math.inf] if row.upper < math.inf else []
    if row.count:    # one number is too few
        found = [[value] * row.count if type(value) is float else value for value in found]
        found += [0.0, [0.0] * (row.count + 1)]
    return [None, *found]


@pytest.mark.parametrize(("program", "name"), [(program, row.name) for program in TABLES for row in TABLES[program]])
def test_each_table_refuses_it(program, name):
    [row] = [row for row in TABLES[program] if row.name == name]
    for value in nonsense(row):
        with pytest.raises(rbd.RbdError) as refusal:
            validate(TABLES[program], {name: value})
        assert f"parameter '{name}' is {value!r}, expected {row.constraints}" in str(refusal.value)


def test_what_is_expected_is_said_in_full():
    assert Parameter("p", "numbers", (0.0,) * 3, "", lower=-1.0, upper=2.0, count=3).constraints == (
        "3 numbers, from -1 to 2")
    assert Parameter("p", "numbers", (0.0,), "", lower=0.0, per="motor").constraints == (
        "a number, or a list with one per motor, from 0 to inf")
    assert Parameter("p", "strings", (), "", choices=("a", "b")).constraints == "list of text: 'a', 'b'"


@pytest.mark.parametrize("program", TABLES)
def test_each_node_refuses_it_while_it_runs(program, tmp_path, private_domain):
    """All at once, as `ros2 param set` does one by one; what may not change at all is refused as such."""
    pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")
    if program == "mujoco_plant":
        pytest.importorskip("mujoco", reason="MuJoCo is not installed: scripts/setup --peers")
    from nodes.harness import NodeProcess, Peer
    table = TABLES[program]
    attempts = [(row, value) for row in table if not row.read_only for value in nonsense(row)]
    fixed = [(row, row.default or "other") for row in table if row.read_only]
    process = NodeProcess(tmp_path, program, **({} if program == "lockstep" else ROBOT))
    try:
        with Peer(program) as peer:
            peer.spin_until(lambda: peer.status.startswith("active"), "active node")
            before = peer.get_parameters([row.name for row in table])
            results = peer.set_parameters([(row.name, value) for row, value in attempts])
            for (row, value), result in itertools.zip_longest(attempts, results):
                assert not result.successful, (row.name, value)
                assert f"'{row.name}'" in result.reason and f"expected {row.constraints}" in result.reason
            for (row, _), result in itertools.zip_longest(fixed, peer.set_parameters(
                    [(row.name, _list(value)) for row, value in fixed])):
                assert not result.successful and "read-only" in result.reason.replace("read only", "read-only")
                assert row.name in result.reason
            assert peer.get_parameters([row.name for row in table]) == before
        assert process.end() == 0
    finally:
        process.kill()


def _list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value

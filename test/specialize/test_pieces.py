"""A program in pieces computes what it does as a whole: whatever their length, with guards, constants and angles."""
from __future__ import annotations

import math

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.specialize import program as p
from rbd_ros.core.specialize.functions import FUNCTIONS, recorded
from rbd_ros.core.specialize.pieces import pieces
from rbd_ros.core.specialize.program import NoProgram, Program, Scalar

DO = {p.ADD: lambda a, b: a + b, p.SUB: lambda a, b: a - b, p.MUL: lambda a, b: a * b, p.DIV: lambda a, b: a / b,
      p.NEG: lambda a, _: -a, p.SIN: lambda a, _: math.sin(a), p.COS: lambda a, _: math.cos(a),
      p.SQRT: lambda a, _: math.sqrt(a), p.ABS: lambda a, _: abs(a)}


def random_program(seed, count=200):
    """Its values, as numbers compute them, are those of its outputs."""
    rng = np.random.default_rng(seed)
    made = Program(rng.uniform(0.5, 1.5, size=4).tolist())
    values = list(made.inputs)
    for _ in range(count):
        a, b = (values[i] for i in rng.integers(max(0, len(values) - 40), len(values), 2))
        if not isinstance(a, Scalar):
            a, b = b, a
        new = [lambda a, b: a + b, lambda a, b: 0.5 * a, lambda a, b: a * (b * 0.3), lambda a, b: a - b,
               lambda a, b: np.sin(a), lambda a, b: np.cos(a), lambda a, b: abs(a),
               lambda a, b: -a][rng.integers(8)](a, b)
        if isinstance(new, Scalar):
            values.append(new)
            if rng.random() < 0.1:
                assert (new > b) in (True, False)    # a guard
    made.finish([*(values[i] for i in rng.integers(0, len(values), 10)), 0.0, 2.5, values[0]])
    return made


def whole(made, inputs):
    """All values, one after another."""
    found = []
    for node in made.nodes:
        found.append(node.a if node.op == p.CONSTANT else inputs[node.a] if node.op == p.INPUT
                     else DO[node.op](found[node.a], found[node.b] if node.b >= 0 else 0.0))
    return found


@pytest.mark.parametrize("longest", [1, 3, 10, 64, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_pieces_compute_what_the_whole_does(seed, longest):
    made = random_program(seed)
    inputs = np.random.default_rng(seed + 100).uniform(0.5, 1.5, size=4).tolist()
    expected = whole(made, inputs)
    parts, count = pieces(made, longest)
    slots, outputs, guards = [math.nan] * count, {}, []
    for part in parts:
        assert set(part.loaded.values()).isdisjoint(part.stored.values())    # a store may come before a load
        at = {i: slots[k] for i, k in part.loaded.items()}
        at |= {i: node.a if node.op == p.CONSTANT else inputs[node.a] for i, node in enumerate(made.nodes)
               if node.op in p.LEAVES}
        for i in part.nodes:
            node = made.nodes[i]
            at[i] = DO[node.op](at[node.a], at[node.b] if node.b >= 0 else 0.0)
        guards += [(guard, at[guard.left], at[guard.right]) for guard in part.guards]
        outputs |= {i: at[i] for i in part.outputs}
        for i, k in part.stored.items():
            slots[k] = at[i]
    assert outputs == {i: expected[i] for i in made.outputs}
    assert {guard for guard, _, _ in guards} == set(made.guards) and len(guards) == len(made.guards)
    assert all((left, right) == (expected[guard.left], expected[guard.right]) for guard, left, right in guards)
    assert sum(len(part.nodes) for part in parts) == made.operations


def test_slots_are_taken_back():
    """A long sum needs few, however many pieces it has."""
    made = Program([1.0, 2.0])
    total, x = made.inputs
    for k in range(500):
        total = total * x + float(k)
    made.finish([total])
    parts, count = pieces(made, 10)
    assert len(parts) >= 100 and count <= 2


def test_what_is_too_long_says_how_long(monkeypatch):
    monkeypatch.setattr(p, "MOST", 100)
    with pytest.raises(NoProgram, match=r"\d{3} operations, more than 100"):
        random_program(0, 2000)
    monkeypatch.setattr(p, "COUNTED", 50)
    with pytest.raises(NoProgram, match="more than 50 operations"):
        random_program(0)


QUARTER = """<robot name="quarters"><link name="base"/>
<link name="one"><inertial><mass value="1"/><inertia ixx="1" iyy="2" izz="2" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="two"><inertial><mass value="1"/><inertia ixx="1" iyy="2" izz="2" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="a" type="continuous"><parent link="base"/><child link="one"/><axis xyz="0 0 1"/>
  <origin rpy="{a} 0 {b}" xyz="0 0 1"/></joint>
<joint name="b" type="continuous"><parent link="one"/><child link="two"/><axis xyz="0 0 1"/>
  <origin rpy="{a} {b} 0" xyz="1 0 0"/></joint></robot>"""


def test_quarter_turns_leave_no_rounding_in_the_code():
    """cos(pi/2) is 6e-17: it cost up to a third of all operations. What is given as 1.5708 stays as it is."""
    def constants(a, b):
        model = rbd.load_urdf(QUARTER.format(a=a, b=b))
        found = recorded(model, "forward_kinematics", FUNCTIONS["forward_kinematics"])
        return [node.a for node in found.nodes if node.op == p.CONSTANT]

    for a, b in ((np.pi / 2, -np.pi), (-np.pi / 2, np.pi / 2), (np.pi, 0.0)):
        assert all(x in (-1.0, 0.0, 1.0) for x in constants(a, b)), (a, b)
    assert any(0.0 < abs(x) < 1e-5 for x in constants(1.5708, 0.0))

"""Constraints declared in Python and in YAML: names, frames, and what is wrong with them."""

import inspect

import numpy as np
import pytest
from support.closed import closed

import rbd_ros as rbd

GOOD = """
constraints:
  - name: closure
    type: loop
    predecessor: right_lower
    successor: tool
    predecessor_frame: {xyz: [-0.25, 0, 0.3122498999]}
    axes: [x, ry, z]
  - {name: gear, type: coupling, terms: {left_shoulder: 1, right_shoulder: [1.0, 0.5]}, constant: 0.2}
  - {type: contact, link: tool, kind: point, frame: {rpy: [0, 0, 1]}, world: {xyz: [0, 0, 1]}}
"""


def test_yaml(tmp_path):
    model = rbd.sample("five_bar")
    got = rbd.load_constraints(GOOD, model)
    assert got.names == ("closure", "gear", "contact_2")
    assert got.row_names == ("closure/ry", "closure/x", "closure/z", "gear/coupling", "contact_2/x", "contact_2/y",
                             "contact_2/z")
    assert got.rows["gear"] == slice(3, 4)
    (tmp_path / "a.yaml").write_text(GOOD)
    same = rbd.load_constraints(tmp_path / "a.yaml", model)
    q = np.linspace(0.1, 0.5, 5)
    expected = rbd.ConstraintSet([
        rbd.LoopClosure("right_lower", "tool", ["ry", "x", "z"], [-0.25, 0, 0.3122498999]),
        rbd.JointCoupling({"left_shoulder": 1.0, "right_shoulder": [1.0, 0.5]}, 0.2),
        rbd.FixedContact("tool", (np.zeros(3), [0, 0, 1]), "point", [0, 0, 1])])
    for constraints in (got, same):
        np.testing.assert_array_equal(rbd.constraint_values(model, constraints, q),
                                      rbd.constraint_values(model, expected, q))


@pytest.mark.parametrize("old, new, message", [
    ("successor: tool", "successor: tol",
     r"constraint 'closure': unknown successor link 'tol'; did you mean 'tool'.*base"),
    ("right_lower\n", "rigth_lower\n", "unknown predecessor link.*right_lower"),
    ("left_shoulder: 1", "left_sholder: 1", "'gear'.*unknown joint coordinate 'left_sholder'; did you mean"),
    ("[x, ry, z]", "[x, ry, pitch]", r"constraint 0 \('closure'\).*constrained axis 'pitch'.*rx, ry, rz, x, y, z"),
    ("[x, ry, z]", "[x, x]", "each once"),
    ("[x, ry, z]", "[]", "expected some of"),
    ("[x, ry, z]", "hinge", "cut joint 'hinge'.*revolute"),
    ("[x, ry, z]", "3", "axes: expected a list"),
    ("type: loop", "type: lop", "unknown type 'lop'; did you mean 'loop'. Valid names: loop, coupling, contact"),
    ("type: loop", "kind: loop", "unknown type 'None'"),
    ("predecessor_frame", "frame", "unknown key 'frame'.*predecessor_frame"),
    ("{xyz: [-0.25, 0, 0.3122498999]}", "{xzy: [0, 0, 0]}", "key of predecessor_frame 'xzy'; did you mean 'xyz'"),
    ("{xyz: [-0.25, 0, 0.3122498999]}", "{xyz: [0, 0]}", "predecessor_frame of 'closure'.*xyz"),
    ("{xyz: [-0.25, 0, 0.3122498999]}", "{xyz: [0, 0, zero]}", "predecessor_frame of 'closure'"),
    ("{xyz: [-0.25, 0, 0.3122498999]}", "[0, 0, 0]", "predecessor_frame: expected"),
    ("    successor: tool\n", "", "a loop needs successor"),
    ("constant: 0.2", "constant: .nan", "constant"),
    ("[1.0, 0.5]", "[1.0, fast]", "'right_shoulder' expects"),
    ("terms: {left_shoulder: 1, right_shoulder: [1.0, 0.5]}", "terms: 3", "terms of a joint coupling"),
    ("name: gear", "name: closure", "duplicate constraint name 'closure'"),
    ("name: gear", "name: 3", "name: expected a name"),
    ("kind: point", "kind: line", "kind of contact 'line'.*point, surface"),
    ("link: tool", "link: base", "constraint 'contact_2'.*one rigid body"),
    ("constraints:", "constraint:", "expected the key 'constraints'"),
    ("constraints:", "version: 2\nconstraints:", "unknown key 'version'"),
    ("  - name", "  - 3\n  - name", "constraint 0: expected keys and values"),
    ("constraints:", "constraints: [", "is not YAML"),
    ("type: coupling", "type: [coupling]", "unknown type.*coupling"),
    ("left_shoulder: 1,", "left_shoulder: 1, left_shoulder: 2,",
     "line 9: 'left_shoulder' is given twice, first on line 9"),
])
def test_yaml_errors(old, new, message):
    assert old in GOOD
    with pytest.raises(rbd.RbdError, match=f"(?s){message}"):
        rbd.load_constraints(GOOD.replace(old, new, 1), rbd.sample("five_bar"))


@pytest.mark.parametrize("source, message", [
    ("missing.yaml", "cannot read constraints 'missing.yaml'"), (3, "got int")])
def test_yaml_sources(source, message):
    with pytest.raises(rbd.RbdError, match=message):
        rbd.load_constraints(source, rbd.sample("five_bar"))


@pytest.mark.parametrize("make, message", [
    (lambda: rbd.ConstraintSet([3]), "constraint 0 is int, expected one of LoopClosure"),
    (lambda: rbd.LoopClosure("a", "b", predecessor_frame=np.diag([1.0, 1.0, -1.0, 1.0])), "rotation matrix"),
    (lambda: rbd.FixedContact("a", [np.nan, 0.0, 0.0]), "frame of 'a'"),
    (lambda: rbd.JointCoupling({}), "terms"),
    (lambda: rbd.UserConstraint(1, 2, 3), "must be functions"),
    (lambda: rbd.UserConstraint(abs, abs, abs, 0), "size is 0"),
    (lambda: rbd.ConstraintSet()["loop"], "unknown constraint 'loop'"),
])
def test_wrong_declarations(make, message):
    with pytest.raises(rbd.RbdError, match=message):
        make()


@pytest.mark.parametrize("part, message", [
    ("f", r"'own': f\(q\) gave shape \(3,\), expected finite numbers of shape \(1,\)"), ("A", r"A\(q\).*\(1, 5\)"),
    ("gamma", "gamma")])
def test_user_constraints_that_return_something_else(part, message):
    model, _, q = closed("five_bar")
    functions = {"f": lambda q: 0.0, "A": lambda q: np.ones(5), "gamma": lambda q, v: [0.0]}
    good = rbd.ConstraintSet([rbd.UserConstraint(**functions, name="own")])
    assert rbd.constraint_jacobian(model, good, q).tolist() == [[1.0] * 5]
    functions[part] = lambda *_: np.zeros(3)
    bad = rbd.ConstraintSet([rbd.UserConstraint(**functions, name="own")])
    with pytest.raises(rbd.RbdError, match=message):
        rbd.constrained_forward_dynamics(model, bad, q, np.zeros(5), np.zeros(5))


def test_a_set_serves_several_models():
    model, constraints, q = closed("five_bar")
    heavy = model.with_scaled_masses(2.0)
    tau = np.ones(5)
    first = rbd.constrained_forward_dynamics(model, constraints, q, np.zeros(5), tau)
    second = rbd.constrained_forward_dynamics(heavy, constraints, q, np.zeros(5), 2.0 * tau)
    np.testing.assert_allclose(first.acceleration, second.acceleration, rtol=1e-10)
    with pytest.raises(rbd.RbdError, match="constraint 'closure': unknown predecessor link 'right_lower'"):
        rbd.constrained_forward_dynamics(rbd.sample("two_link"), constraints, np.zeros(2), np.zeros(2), np.zeros(2))
    assert constraints["closure"].successor == "tool"
    assert repr(constraints) == "ConstraintSet(closure: 3 rows)"


@pytest.mark.parametrize("wrong", [None, "five_bar", 3, [rbd.LoopClosure("right_lower", "tool")]],
                         ids=lambda wrong: type(wrong).__name__)
@pytest.mark.parametrize("name", [name for name in rbd.__all__
                                  if "constraints" in getattr(getattr(rbd, name), "__annotations__", ())])
def test_something_else_than_a_set_is_refused_by_what_is_expected(name, wrong):
    model = rbd.sample("five_bar")
    parameters = inspect.signature(getattr(rbd, name)).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty or (p.name == "constraints" and wrong is not None)]
    if "constraints" not in needed:
        pytest.skip("None means without loops")
    given = {"model": model, "robot": model, "function": "constrained_forward_dynamics", "constraints": wrong,
             "actuated": model.joint_names, "prescribed": model.joint_names}
    with pytest.raises(rbd.RbdError, match=f"ConstraintSet.*{type(wrong).__name__}"):
        getattr(rbd, name)(**{need: given.get(need, np.zeros(5)) for need in needed})


def test_a_set_is_made_from_a_list():
    with pytest.raises(rbd.RbdError, match="a list of them, got LoopClosure"):
        rbd.ConstraintSet(rbd.LoopClosure("right_lower", "tool"))

"""Own code for functions with parameters: Jacobians of links, dynamics for masks, time derivatives to an order."""
from __future__ import annotations

import dataclasses


import numpy as np
import pytest
from support.own_code import check_equal, states
from support.robots import build
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.compiled.entry import EXTENSION
from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.core.specialize import own_code
from rbd_ros.core.specialize.families import FAMILIES, function_of, label
from rbd_ros.core.specialize.one_state import LONGEST

pytestmark = [pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning"),
              pytest.mark.skipif(not COMPILED, reason="needs numba")]
MODELS = {"iiwa": lambda: rbd.sample("iiwa"), "biped": lambda: rbd.sample("biped", root="floating"),
          "mimic": mimic_tree, "tree": lambda: random_tree(5, [kind for kind in TYPES if "spherical" not in kind])}


def mask_of(model):
    return np.arange(model.nv) % 3 == 1


CALLS = {**{f"jacobian {frame}": ("q", lambda m, x, frame=frame: rbd.jacobian(m, *x, m.body_names[-1], frame))
            for frame in ("body", "world", "aligned")},
         "hybrid_dynamics": ("qvvv", lambda m, x: rbd.hybrid_dynamics(m, *x, mask_of(m))),
         "hybrid_dynamics_derivatives": ("qvvv", lambda m, x: rbd.hybrid_dynamics_derivatives(m, *x, mask_of(m))),
         **{f"inverse_dynamics_time_derivatives {k}": (
             "qv" + "v" * (k + 1), lambda m, x: rbd.inverse_dynamics_time_derivatives(m, *x)) for k in range(4)},
         **{f"forward_dynamics_time_derivatives {k}": (
             "qvv" + "v" * k, lambda m, x: rbd.forward_dynamics_time_derivatives(m, *x)) for k in (0, 2)}}
# bodies that share coordinates, or what refuses them on either way
REFUSED = {("hybrid_dynamics_derivatives", "mimic"), ("hybrid_dynamics", "mimic")}
LONG = {(name, kind) for name in ("hybrid_dynamics_derivatives", "inverse_dynamics_time_derivatives 3",
                                  "forward_dynamics_time_derivatives 2") for kind in ("biped", "tree")}
CASES = [(name, kind) for name in CALLS for kind in MODELS if (name, kind) not in REFUSED | LONG]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_equals_the_ordinary_kernels(name, kind):
    model = MODELS[kind]()
    fast = rbd.specialize(model)
    inputs, call = CALLS[name]
    condition = max(1.0, 1e-1 * np.linalg.cond(rbd.mass_matrix(model, states(model, "q", None)[0])))
    tolerance = 1e-12 * (1.0 if name.startswith(("jacobian", "inverse")) else condition)
    for count in (None, 0, 1, 7, 8, 9, 33):
        given = states(model, inputs, count, seed=1)
        check_equal(call(model, given), call(fast, given), tolerance)
    calls = fast._specialized.batch[name.split()[0]]
    assert all(code is not None for code in calls._batches.values()) and fast.has_code(name.split()[0])
    short = all(operations <= LONGEST for operations in fast.functions.values())
    assert [isinstance(code, EXTENSION.Way) for code in calls._singles.values()] == [short]
    if short:    # the public function would hide that others computed it
        code, = calls._singles.values()
        given = states(model, inputs, None, seed=1)
        check_equal(call(model, given), code(*given), tolerance)
    assert all(isinstance(operations, int) for operations in fast.functions.values())


def test_each_parameter_has_code_of_its_own():
    model = rbd.sample("iiwa")
    fast = rbd.specialize(model, ["jacobian:link_7:world", "hybrid_dynamics:joint_1,joint_3"])
    assert set(fast.functions) == {"jacobian:link_7:world", "hybrid_dynamics:joint_1,joint_3"}
    q, v, a, tau = states(model, "qvvv", 9)
    for frame in ("body", "world"):
        for link in ("link_3", "link_7"):
            check_equal(rbd.jacobian(model, q, link, frame), rbd.jacobian(fast, q, link, frame), 1e-12)
    for mask in (["joint_1", "joint_3"], ["joint_2"], mask_of(model), []):
        expected = rbd.hybrid_dynamics(model, q, v, a, tau, mask)
        check_equal(expected, rbd.hybrid_dynamics(fast, q, v, a, tau, mask), 1e-11)
    names = set(fast.functions)
    assert {"jacobian:link_3:body", "jacobian:link_3:world", "jacobian:link_7:body", "jacobian:link_7:world",
            "hybrid_dynamics:joint_2", "hybrid_dynamics:", "hybrid_dynamics:joint_2,joint_5"} < names
    for name in names:
        found = function_of(model, name)
        assert label(model, *found[:2]) == name


def test_a_name_is_that_of_this_model():
    """Links of another order in a robot that is otherwise the same: its code is not taken for that of the first."""
    models = [build([rbd.JointSpec("j0", "revolute", "base", first), rbd.JointSpec("j1", "revolute", first, second,
                                                                                   axis=(1.0, 0.0, 0.0))])
              for first, second in (("l1", "l2"), ("l2", "l1"))]
    for model in models:
        fast = rbd.specialize(model, ["jacobian:l1:world"])
        for count in (None, 9):
            q, = states(model, "q", count)
            check_equal(rbd.jacobian(model, q, "l1", "world"), rbd.jacobian(fast, q, "l1", "world"), 1e-12)


def test_masks_whose_names_read_alike_have_code_of_their_own():
    """The joints a and b, and the joint "a,b"."""
    description = rbd.sample("iiwa").description
    new = dict(zip(rbd.sample("iiwa").joint_names, ["a", "b", "a,b"], strict=False))
    model = rbd.RobotModel.from_description(dataclasses.replace(description, joints=tuple(
        dataclasses.replace(joint, name=new.get(joint.name, joint.name)) for joint in description.joints)))
    fast = rbd.specialize(model)
    for count in (None, 9):
        for mask in (["a", "b"], ["a,b"]):
            given = states(model, "qvvv", count)
            check_equal(rbd.hybrid_dynamics(model, *given, mask), rbd.hybrid_dynamics(fast, *given, mask), 1e-10)


def test_one_state_of_other_kinds():
    """Lists, names, other numbers of arguments: as by the ordinary kernels."""
    model = rbd.sample("iiwa")
    fast = rbd.specialize(model)
    q, v, a, tau = states(model, "qvvv", None)
    mask = mask_of(model)
    for given in (mask, mask.tolist(), np.repeat(mask, 2)[::2], [], "joint_2", ["joint_2", "joint_5"],
                  np.array(["joint_2", "joint_5"])):
        expected = rbd.hybrid_dynamics(model, q, v, a, tau, given)
        for x in (q, q.tolist()):
            check_equal(expected, rbd.hybrid_dynamics(fast, x, v, a, tau, given), 1e-11)
    assert set(fast.functions) == {"hybrid_dynamics:joint_2,joint_5", "hybrid_dynamics:", "hybrid_dynamics:joint_2"}
    for higher in ((), (a,), (a.tolist(), tau)):
        check_equal(rbd.inverse_dynamics_time_derivatives(model, q, v, a, *higher),
                    rbd.inverse_dynamics_time_derivatives(fast, q, v, a, *higher), 1e-12)


@pytest.mark.parametrize("outside", [None, {"link_7": np.arange(6.0)}])
@pytest.mark.parametrize("count", [None, 9])
def test_joint_wrenches_and_wrenches_from_outside(count, outside):
    """The wrenches of the joints by the ordinary kernels, from what the own code computes."""
    model = rbd.sample("iiwa")
    fast = rbd.specialize(model)
    q, v, a, tau = states(model, "qvvv", count)
    held = rbd.ConstraintSet([rbd.JointCoupling({"joint_1": 1.0, "joint_3": -1.0})])
    for call in (lambda m: rbd.forward_dynamics(m, q, v, tau, outside, joint_wrenches=True),
                 lambda m: rbd.forward_dynamics(m, q, v, tau, outside, joint_wrenches=False),
                 lambda m: rbd.hybrid_dynamics(m, q, v, a, tau, mask_of(m), outside, joint_wrenches=True),
                 lambda m: rbd.constrained_forward_dynamics(m, held, q, v, tau, external_wrenches=outside,
                                                            joint_wrenches=True),
                 lambda m: rbd.joint_wrenches(m, q, v, a, outside)):
        expected, found = call(model), call(fast)
        check_equal(getattr(expected, "acceleration", expected), getattr(found, "acceleration", found), 1e-10)
        if hasattr(expected, "joint_wrenches"):
            check_equal(expected.joint_wrenches, found.joint_wrenches, 1e-10)
    with pytest.raises(rbd.RbdError, match="ask for them with joint_wrenches=True"):
        _ = rbd.hybrid_dynamics(fast, q, v, a, tau, mask_of(fast)).joint_wrenches


def test_forward_dynamics_of_mimic_joints_has_code():
    model = mimic_tree()
    fast = rbd.specialize(model)
    given = states(model, "qvv", 9)
    check_equal(rbd.forward_dynamics(model, *given), rbd.forward_dynamics(fast, *given), 1e-11)
    assert fast.has_code("forward_dynamics")


def same_error(call, model, fast):
    said = []
    for each in (model, fast):
        with pytest.raises(rbd.RbdError) as error:
            call(each)
        said.append(str(error.value))
    assert said[0] == said[1]
    return said[0]


@pytest.mark.parametrize("at", [0, 8, 20])
@pytest.mark.parametrize("name", ["jacobian world", "hybrid_dynamics", "inverse_dynamics_time_derivatives 3",
                                  "forward_dynamics_time_derivatives 2"])
def test_a_number_that_is_none_names_its_row(name, at):
    model = rbd.sample("iiwa")
    inputs, call = CALLS[name]
    fast = rbd.specialize(model)
    for argument in range(len(inputs)):
        given = states(model, inputs, 21)
        given[argument][at, 3] = np.nan
        assert f"[{at}, 3]" in same_error(lambda m, given=given: call(m, given), model, fast)


@pytest.mark.parametrize("call", [
    lambda m, q: rbd.jacobian(m, q, "no link"), lambda m, q: rbd.jacobian(m, q, None),
    lambda m, q: rbd.jacobian(m, q, m.body_names[-1], "tool"),
    lambda m, q: rbd.hybrid_dynamics(m, q, q, q, q, ["no joint"]), lambda m, q: rbd.hybrid_dynamics(m, q, q, q, q, 1.5),
    lambda m, q: rbd.hybrid_dynamics(m, q, q, q, q, np.ones(3, dtype=bool)),
    lambda m, q: rbd.inverse_dynamics_time_derivatives(m, q, q, q, "jerk"),
    lambda m, q: rbd.forward_dynamics_time_derivatives(m, q, q, q, q[:3])])
def test_wrong_parameters_have_the_same_error(call):
    model = rbd.sample("iiwa")
    q = states(model, "q", 9)[0]
    same_error(lambda m: call(m, q), model, rbd.specialize(model))


def test_a_singular_joint_is_named():
    model = build([rbd.JointSpec("j0", "revolute", "l0", "l1"), rbd.JointSpec("j1", "revolute", "l1", "l2")],
                  links={"l2": rbd.Inertia.zero()})
    q, v, a, tau = states(model, "qvvv", 9)
    fast = rbd.specialize(model)
    for call in (lambda m: rbd.hybrid_dynamics(m, q, v, a, tau, ["j0"]),
                 lambda m: rbd.forward_dynamics_time_derivatives(m, q, v, tau, tau)):
        assert "j1" in same_error(call, model, fast)


@pytest.mark.parametrize(("name", "what"), [
    ("jacobian", "Valid names: .*link_7"), ("jacobian:link_9", "link_9"), ("jacobian:link_7:tool", "link_7:tool"),
    ("hybrid_dynamics:joint_9", "joint_9"), ("inverse_dynamics_time_derivatives:x", "order.*'x'"),
    ("inverse_dynamics:3", "unknown function"), ("constrained_forward_dynamics", "unknown function")])
def test_what_cannot_be_asked_for(name, what):
    with pytest.raises(rbd.RbdError, match=what):
        rbd.specialize(rbd.sample("iiwa"), [name])


def test_there_are_not_more_codes_than_is_good(monkeypatch):
    monkeypatch.setattr(own_code, "VARIANTS", 2)
    model = rbd.sample("iiwa")
    fast = rbd.specialize(model)
    q = states(model, "q", 9)[0]
    for link in ("link_5", "link_6", "link_7"):
        check_equal(rbd.jacobian(model, q, link), rbd.jacobian(fast, q, link), 1e-12)
    assert set(fast.functions) == {"jacobian:link_5:body", "jacobian:link_6:body"}


def test_all_families_are_public():
    assert all(callable(getattr(rbd, name)) for name in FAMILIES)

"""Own code for functions with parameters: Jacobians of links, dynamics for masks, time derivatives to an order."""
from __future__ import annotations

import numpy as np
import pytest
from support.own_code import check_equal, states
from support.robots import build
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.compile import COMPILED
from rbd_ros.core.specialize.families import FAMILIES, asked, label

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
    for count in (0, 1, 7, 8, 9, 33):
        given = states(model, inputs, count, seed=1)
        check_equal(call(model, given), call(fast, given), tolerance)
    assert fast.has_code(name.split()[0])
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
        found = asked(model, name)
        assert label(model, *found[:2]) == name


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
    from rbd_ros.core.specialize import specialized
    monkeypatch.setattr(specialized, "VARIANTS", 2)
    model = rbd.sample("iiwa")
    fast = rbd.specialize(model)
    q = states(model, "q", 9)[0]
    for link in ("link_5", "link_6", "link_7"):
        check_equal(rbd.jacobian(model, q, link), rbd.jacobian(fast, q, link), 1e-12)
    assert set(fast.functions) == {"jacobian:link_5:body", "jacobian:link_6:body"}


def test_all_families_are_public():
    assert all(callable(getattr(rbd, name)) for name in FAMILIES)

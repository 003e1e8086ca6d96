"""A specialised model beside the ordinary kernels: the same numbers, errors and shapes, in every lane."""
from __future__ import annotations

import pickle

import numpy as np
import pytest
from support import pinocchio_peer
from support.own_code import check_equal, states
from support.robots import build, chain, load
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.core.dynamics import inverse
from rbd_ros.core.specialize import machine, many_states
from rbd_ros.core.specialize.functions import FUNCTIONS

pytestmark = [pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning"),
              pytest.mark.skipif(not COMPILED, reason="needs numba")]
MODELS = {"iiwa": lambda: rbd.sample("iiwa"), "biped": lambda: rbd.sample("biped", root="floating"),
          "mimic": mimic_tree, "single": lambda: chain("revolute"), "every joint": lambda: random_tree(4, TYPES)}
KINDS_OF_JOINTS = {kind: lambda kind=kind: random_tree(3, [kind, "revolute", kind]) for kind in TYPES}
CASES = [(name, kind) for kind in MODELS for name in FUNCTIONS] + [
    (name, kind) for kind in KINDS_OF_JOINTS for name in ("inverse_dynamics", "forward_dynamics")]
ROBOTS = pinocchio_peer.loadable()
WITHOUT = {("forward_dynamics_derivatives", "every joint")}    # too long
SIZES = (0, 1, 7, 8, 9, 101)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_equals_the_ordinary_kernels(name, kind):
    model = (MODELS | KINDS_OF_JOINTS)[kind]()
    fast, function = rbd.specialize(model), getattr(rbd, name)
    # what solves for accelerations loses the digits that the condition of M(q) costs, on either way
    condition = max(1.0, 1e-2 * np.linalg.cond(rbd.mass_matrix(model, states(model, "q", None)[0])))
    tolerance = 1e-12 * (condition if name.startswith("forward_dynamics") else 1.0)
    for count in (None, *SIZES):
        given = states(model, FUNCTIONS[name].inputs, count, seed=1)
        check_equal(function(model, *given), function(fast, *given), tolerance)
    assert fast.has_code(name) != ((name, kind) in WITHOUT)


@pytest.mark.parametrize(("name", "root"), [(name, ("fixed", "floating")[i % 2]) for i, name in enumerate(ROBOTS)])
def test_robots(name, root):
    """All functions of all of them on both roots: `python -m benchmark specialize`."""
    model = load(name, root=root, mimic="independent")
    fast = rbd.specialize(model)
    for count in (None, 9):
        given = states(model, "qvv", count)
        check_equal(rbd.inverse_dynamics(model, *given), rbd.inverse_dynamics(fast, *given), 1e-12)


def test_the_code_computes_it(monkeypatch):
    """None of the states above is computed by the ordinary kernels."""
    fast = rbd.specialize(rbd.sample("iiwa"))
    monkeypatch.setattr(inverse.inverse_dynamics_batch, "call", lambda *_: pytest.fail("the ordinary kernel"))
    rbd.inverse_dynamics(fast, *states(fast, "qvv", 20))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads(threads):
    model = rbd.sample("iiwa")
    given = states(model, "qvv", 3001)
    check_equal(rbd.forward_dynamics(model, *given),
                rbd.forward_dynamics(rbd.specialize(model, threads=threads), *given), 1e-11)


@pytest.mark.parametrize("at", [0, 5, 8, 20])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("argument", [0, 1, 2])
def test_a_number_that_is_none_names_its_row(argument, wrong, at):
    model = rbd.sample("iiwa")
    given = states(model, "qvv", 21)
    given[argument][at, 3] = wrong
    said = []
    for each in (model, rbd.specialize(model)):
        with pytest.raises(rbd.RbdError) as error:
            rbd.inverse_dynamics(each, *given)
        said.append(str(error.value))
    assert said[0] == said[1]
    with pytest.raises(rbd.RbdError):
        rbd.inverse_dynamics(rbd.specialize(model), *(x[at].copy() for x in given))


def test_angles_beyond_the_code():
    """By the ordinary kernels, and only these states."""
    model = rbd.sample("iiwa")
    given = states(model, "qvv", 21)
    given[0][4, 2], given[0][17, 0] = 1e9, np.pi / 2.0
    check_equal(rbd.inverse_dynamics(model, *given), rbd.inverse_dynamics(rbd.specialize(model), *given), 1e-12)


def test_small_rotations_take_the_ordinary_way():
    model = random_tree(3, ["spherical", "revolute", "spherical"])
    given = states(model, "qvv", 21)
    given[0][3] = model.neutral()
    check_equal(rbd.forward_dynamics(model, *given), rbd.forward_dynamics(rbd.specialize(model), *given), 1e-10)


def test_a_singular_joint_is_named():
    massless = {"l2": rbd.Inertia.zero()}
    model = build([rbd.JointSpec("j0", "revolute", "l0", "l1"), rbd.JointSpec("j1", "revolute", "l1", "l2")],
                  links=massless)
    fast = rbd.specialize(model)
    for given in (states(model, "qvv", None), states(model, "qvv", 9)):
        said = []
        for each in (model, fast):
            with pytest.raises(rbd.RbdError) as error:
                rbd.forward_dynamics(each, *given)
            said.append(str(error.value))
        assert said[0] == said[1] and "j1" in said[0]


@pytest.mark.parametrize("wrong", [lambda q: q[:, :-1], lambda q: q[:-1], lambda q: q.tolist(), lambda q: q[0],
                                   lambda q: None, lambda q: "q"])
def test_wrong_input_has_the_same_error_or_result(wrong):
    model = rbd.sample("iiwa")
    q, v, a = states(model, "qvv", 9)
    said = []
    for each in (model, rbd.specialize(model)):
        try:
            said.append(rbd.inverse_dynamics(each, wrong(q), v, a).tolist())
        except rbd.RbdError as error:
            said.append(str(error))
    if isinstance(said[0], str):
        assert said[0] == said[1]
    else:
        np.testing.assert_allclose(said[1], said[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wrong", [lambda v: "text", lambda v: v.astype(complex), lambda v: v.astype(object),
                                   lambda v: v.astype(str), lambda v: [v[0], v[1, :2]], lambda v: None,
                                   lambda v: v.astype(int), lambda v: v[:, ::-1], lambda v: v[..., None],
                                   lambda v: np.broadcast_to(v[0], v.shape), lambda v: v[::-1],
                                   lambda v: np.frombuffer(v.tobytes()).reshape(v.shape)])
def test_other_kinds_of_batches_have_the_same_error_or_result(wrong):
    model = rbd.sample("iiwa")
    q, v, a = states(model, "qvv", 9)
    said = []
    for each in (model, rbd.specialize(model)):
        try:
            said.append(rbd.inverse_dynamics(each, q, wrong(v), a))
        except rbd.RbdError as error:
            said.append(str(error))
    if isinstance(said[0], str):
        assert said[0] == said[1]
    else:
        np.testing.assert_allclose(said[1], said[0], rtol=0.0, atol=1e-12 * np.abs(said[0]).max())


def test_a_robot_without_joints():
    model = build([rbd.JointSpec("j", "fixed", "l0", "l1")])
    fast = rbd.specialize(model, list(FUNCTIONS))
    for name in FUNCTIONS.keys() - {"center_of_mass"}:    # nothing that moves has one
        given = states(model, FUNCTIONS[name].inputs, 3)
        check_equal(getattr(rbd, name)(model, *given), getattr(rbd, name)(fast, *given), 0.0)


def test_the_code_of_a_robot_is_loaded_once():
    before = None
    for _ in range(3):
        rbd.specialize(rbd.sample("iiwa"), ["inverse_dynamics"])
        before = before or len(machine._engines)
    assert len(machine._engines) == before


def test_all_else_works_as_with_the_model():
    model = rbd.sample("iiwa")
    fast = rbd.specialize(model)
    q, v, a = states(model, "qvv", None)
    assert isinstance(fast, rbd.RobotModel) and fast.joint_names == model.joint_names
    wrench = {model.body_names[-1]: np.ones(6)}
    for call in (lambda m: rbd.gravity_effort(m, q), lambda m: rbd.bias_effort(m, q, v),
                 lambda m: rbd.inverse_dynamics(m, q, v, a, wrench), lambda m: rbd.kinetic_energy(m, q, v),
                 lambda m: rbd.jacobian(m, q, m.body_names[-1]), lambda m: m.difference(q, q + 0.1),
                 lambda m: rbd.hybrid_dynamics(m, q, v, a, a, m.joint_names[:2]).effort,
                 lambda m: rbd.inverse_dynamics(m.with_(gravity=(0.0, 0.0, -1.0)), q, v, a)):
        np.testing.assert_allclose(call(fast), call(model), rtol=1e-12, atol=1e-12)
    again = pickle.loads(pickle.dumps(fast))
    assert isinstance(again, rbd.SpecializedModel)
    np.testing.assert_array_equal(rbd.inverse_dynamics(again, q, v, a), rbd.inverse_dynamics(fast, q, v, a))


def test_what_is_too_long_runs_the_ordinary_kernels(monkeypatch):
    from rbd_ros.core.specialize import program
    monkeypatch.setattr(program, "MOST", 500)
    model = random_tree(11, ["revolute"] * 5)    # a model that no other test has kept code of
    fast = rbd.specialize(model)
    given = states(model, "qvv", 9)
    with pytest.warns(rbd.RbdWarning, match=r"forward_dynamics: [\d,]+ operations, more than 500; the") as said:
        for _ in range(3):
            np.testing.assert_array_equal(rbd.forward_dynamics(model, *given), rbd.forward_dynamics(fast, *given))
    with pytest.warns(rbd.RbdWarning, match="the ordinary kernels") as asked:
        rbd.specialize(model, ["forward_dynamics"])
    assert {each.filename for each in (*said, *asked)} == {__file__}
    assert len(said) == 1 and not fast.has_code("forward_dynamics")
    assert "operations, more than 500" in fast.functions["forward_dynamics"]
    fast = rbd.specialize(model)    # from disk
    rbd.forward_dynamics(fast, *given)
    assert "operations, more than 500" in fast.functions["forward_dynamics"]


def test_the_table_of_functions_says_how_long_they_are():
    model = rbd.sample("iiwa")
    fast = rbd.specialize(model, ["mass_matrix"])
    assert set(fast.functions) == {"mass_matrix"} and 100 < fast.functions["mass_matrix"] < 2000
    rbd.inverse_dynamics(fast, *states(model, "qvv", None))    # one state
    assert set(fast.functions) == {"mass_matrix", "inverse_dynamics"}
    rbd.forward_kinematics(fast, states(model, "q", 2)[0])
    assert set(fast.functions) == {"mass_matrix", "inverse_dynamics", "forward_kinematics"}
    before = fast.functions["mass_matrix"]
    assert rbd.specialize(model, ["mass_matrix"]).functions["mass_matrix"] == before    # loaded


@pytest.mark.parametrize("name", ["inverse_dynamics", "inverse_dynamics_derivatives", "mass_matrix"])
@pytest.mark.parametrize("threads", [1, 2])
def test_large_batches(name, threads, monkeypatch):
    """Also those written past the caches: 10,001 states."""
    model = rbd.sample("iiwa")
    given = states(model, FUNCTIONS[name].inputs, 10_001)
    call = getattr(rbd, name)
    fast = rbd.specialize(model, threads=threads)
    expected, found = call(model, *given), call(fast, *given)
    check_equal(expected, found, 1e-12)
    monkeypatch.setattr(many_states, "LARGE", 10)    # small ones too, and the other way round
    for count in (1, 7, 8, 9, 33):
        check_equal(call(model, *(x[:count] for x in given)), call(fast, *(x[:count] for x in given)), 1e-12)
    monkeypatch.setattr(many_states, "LARGE", 10 ** 9)
    check_equal(expected, call(fast, *given), 1e-12)


def test_unknown_functions_and_no_models_are_refused():
    with pytest.raises(rbd.RbdError, match=r"unknown function 'inverse_dynamic'.*inverse_dynamics"):
        rbd.specialize(rbd.sample("iiwa"), ["inverse_dynamic"])
    with pytest.raises(rbd.RbdError, match="model"):
        rbd.specialize("iiwa")
    with pytest.raises(rbd.RbdError, match=r"step|number|threads"):
        rbd.specialize(rbd.sample("iiwa"), threads=0)

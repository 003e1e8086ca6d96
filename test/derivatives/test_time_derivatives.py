"""τ, τ̇, τ̈, … against plain inverse dynamics along the motion at complex instants, and a, jerk, … as their inverse."""

import numpy as np
import pinocchio as pin
import pytest
from support.analytic import effort_derivatives
from support.pinocchio_peer import peer
from support.robots import assert_close, build, chain, inertia, load, random_state, random_states
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd

ORDER = 6


def rates(model, seed, count=ORDER):
    """q, v, a and `count` higher derivatives."""
    return *random_state(model, seed), np.random.default_rng((seed, 7)).normal(size=(count, model.nv))


MODELS = {
    "chain": lambda: chain(*["revolute"] * 7), "mixed chain": lambda: chain("prismatic", "revolute", "prismatic"),
    "all types": lambda: random_tree(3, TYPES), "all types, free": lambda: random_tree(4, TYPES, root="floating"),
    "branched": lambda: random_tree(5, count=9), "free": lambda: random_tree(6, count=5, root="floating"),
    "mimic": mimic_tree, "panda": lambda: load("panda_description/panda"),
    **{kind: lambda kind=kind: random_tree(11, [kind, "revolute", kind]) for kind in (
        "revolute", "prismatic", "helical", "spherical", "spherical_exponential", "universal", "planar",
        "spherical_euler", "floating", "composite")},
}


@pytest.mark.parametrize("name", MODELS)
def test_every_order_is_the_derivative_of_the_plain_effort(name):
    model = MODELS[name]()
    q, v, a, higher = rates(model, 1)
    expected = effort_derivatives(model, q, [v, a, *higher], ORDER)
    for count in range(ORDER + 1):
        found = rbd.inverse_dynamics_time_derivatives(model, q, v, a, *higher[:count])
        assert found.shape == (count + 1, model.nv)
        for k in range(count + 1):
            assert_close(found[k], expected[k], 1e-12, f"order {k} of {count}")


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e-8, 1e-3, 1.0, 1.99, 2.01, 3.14159, 3.99, 4.01, 6.28, 7.5, 9.99,
                                  10.01, 12.0, 30.0, 1e2])
def test_exponential_coordinates_of_any_size(size):
    model = random_tree(2, ["spherical_exponential", "revolute"])
    q, v, a, higher = rates(model, 3)
    q[:3] *= size / np.linalg.norm(q[:3])
    expected = effort_derivatives(model, q, [v, a, *higher], ORDER)
    found = rbd.inverse_dynamics_time_derivatives(model, q, v, a, *higher)
    for k in range(ORDER + 1):
        assert_close(found[k], expected[k], 1e-11, f"order {k}")


@pytest.mark.parametrize("size", [9.99, 10.01, 1e2, 1e3, 1e4, 1e6, 1e9])
def test_many_turns_in_exponential_coordinates_cost_no_digits(size):
    """By the chain rule through the partial derivatives; the oracle above loses digits where angles are large."""
    model = random_tree(2, ["spherical_exponential", "revolute"])
    q, v, a, higher = rates(model, 3)
    q[:3] *= size / np.linalg.norm(q[:3])
    jerk, snap = higher[:2]
    D, E = rbd.inverse_dynamics_derivatives(model, q, v, a), rbd.inverse_dynamics_second_derivatives(model, q, v, a)
    second = (E.qq @ v @ v + 2.0 * E.qv @ a @ v + 2.0 * E.aq @ v @ jerk + E.vv @ a @ a
              + D.q @ a + D.v @ jerk + D.a @ snap)
    found = rbd.inverse_dynamics_time_derivatives(model, q, v, a, jerk, snap)
    assert_close(found[1], D.q @ v + D.v @ a + D.a @ jerk, 1e-13)
    assert_close(found[2], second, 1e-12)


def test_a_high_order():
    model = random_tree(8, ["revolute", "spherical_exponential", "spherical", "planar"])
    q, v, a, higher = rates(model, 5, 14)
    found = rbd.inverse_dynamics_time_derivatives(model, q, v, a, *higher)
    expected = effort_derivatives(model, q, [v, a, *higher], 14, radius=1.0)
    for k in range(15):
        assert_close(found[k], expected[k], 1e-11, f"order {k}")


@pytest.mark.parametrize("orders", [1, 2, 3, 5])
def test_external_wrenches_and_their_derivatives(orders):
    model = random_tree(9, ["revolute", "spherical_exponential", "universal", "prismatic"], root="floating")
    q, v, a, higher = rates(model, 6, 3)
    W = np.random.default_rng(1).normal(scale=20.0, size=(orders, len(model.body_names), 6))
    expected = effort_derivatives(model, q, [v, a, *higher], 3, wrenches=W)
    found = rbd.inverse_dynamics_time_derivatives(model, q, v, a, *higher, external_wrenches=tuple(W))
    assert_close(found, expected, 1e-12)
    assert_close(found[0], rbd.inverse_dynamics(model, q, v, a, W[0]), 1e-13)
    back = rbd.forward_dynamics_time_derivatives(model, q, v, *found, external_wrenches=list(W))
    assert_close(back, [a, *higher], 1e-9)


def test_a_wrench_alone_is_constant_in_the_axes_of_the_body():
    model = random_tree(9, ["revolute", "spherical", "prismatic"])
    q, v, a, higher = rates(model, 6, 2)
    W = np.arange(6.0)

    def call(w):
        return rbd.inverse_dynamics_time_derivatives(model, q, v, a, *higher, external_wrenches=w)

    expected = effort_derivatives(model, q, [v, a, *higher], 2, wrenches=[{"link2": W}])
    for wrenches in ({"link2": W}, ({"link2": W},), [{"link2": W}, None, {"link1": np.zeros(6)}]):
        assert_close(call(wrenches), expected, 1e-13)
    later, none = call((None, {"link2": W})), call(None)
    assert_close(later[0], none[0], 1e-13)
    assert np.abs(later - none)[1].max() > 0.1
    assert_close(call(()), none, 1e-13)
    with pytest.raises(rbd.RbdError, match="link9"):
        call(({"link2": W}, {"link9": W}))


@pytest.mark.parametrize("name", ["chain", "all types", "all types, free", "branched", "mimic", "panda"])
def test_forward_is_the_inverse_of_inverse(name):
    model = MODELS[name]()
    q, v, a, higher = rates(model, 2, 4)
    motion = np.array([a, *higher])
    tau = rbd.inverse_dynamics_time_derivatives(model, q, v, a, *higher)
    condition = np.linalg.cond(rbd.mass_matrix(model, q))
    for count in range(1, 6):
        found = rbd.forward_dynamics_time_derivatives(model, q, v, *tau[:count])
        assert found.shape == (count, model.nv)
        for k in range(count):    # errors of τ⁽ᵏ⁾ grow by the condition of M
            assert_close(found[k], motion[k], max(1e-14 * condition * np.abs(tau[k]).max(), 1e-11), f"order {k}")
    assert_close(found[0], rbd.forward_dynamics(model, q, v, tau[0]), 1e-11)


def test_forward_against_the_analytic_effort():
    """Not through our inverse: efforts by Cauchy's integral."""
    model = random_tree(13, ["revolute", "spherical", "universal", "prismatic"])
    q, v, a, higher = rates(model, 4, 3)
    tau = effort_derivatives(model, q, [v, a, *higher], 3)
    assert_close(rbd.forward_dynamics_time_derivatives(model, q, v, *tau), [a, *higher], 1e-10)


@pytest.mark.parametrize(("name", "root"), [("panda_description/panda", "fixed"), ("ur_description/ur5_robot", "fixed"),
                                            ("talos_data/talos_reduced", "floating"), ("anymal_b_simple_description/"
                                            "anymal", "floating")])
def test_first_derivative_against_pinocchio(name, root):
    """τ̇ = ∂τ/∂q v + ∂τ/∂v a + M jerk with Pinocchio's derivatives."""
    p = peer(name, root)
    model = p.model
    q, v, a, higher = rates(model, 8, 1)
    P = p.rates(q)
    pin.computeRNEADerivatives(p.pin, p.data, p.q(q), P @ v, P @ a)
    by_a = np.triu(p.data.M) + np.triu(p.data.M, 1).T
    expected = P.T @ (p.data.dtau_dq @ P @ v + p.data.dtau_dv @ P @ a + by_a @ P @ higher[0])
    assert_close(rbd.inverse_dynamics_time_derivatives(model, q, v, a, *higher)[1], expected, 1e-11)


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_batches_are_their_states_one_by_one(count):
    for model in (random_tree(21, TYPES), chain(*["revolute"] * 4)):
        q, v, a = random_states(model, 3, 1)
        higher = np.random.default_rng(1).normal(size=(count, 3, model.nv))
        W = np.random.default_rng(2).normal(size=(2, 3, len(model.body_names), 6))
        for function, first in ((rbd.inverse_dynamics_time_derivatives, a), (rbd.forward_dynamics_time_derivatives, v)):
            for wrenches in (None, tuple(W), (W[0], W[1][0])):
                batch = function(model, q, v, first, *higher, external_wrenches=wrenches)
                assert batch.shape == (3, count + 1, model.nv)
                for k in range(3):
                    each = None if wrenches is None else [w[k] if w.ndim == 3 else w for w in wrenches]
                    one = function(model, q[k], v[k], first[k], *higher[:, k], external_wrenches=each)
                    assert_close(batch[k], one, 1e-10)
        mixed = rbd.inverse_dynamics_time_derivatives(model, q, v[0], a, *higher[:, 0])
        assert_close(mixed[1], rbd.inverse_dynamics_time_derivatives(model, q[1], v[0], a[1], *higher[:, 0]), 1e-11)


def test_wrong_higher_derivatives_are_named():
    model = chain("revolute", "spherical", "prismatic")
    q, v, a, higher = rates(model, 1, 2)
    for function in (rbd.inverse_dynamics_time_derivatives, rbd.forward_dynamics_time_derivatives):
        for wrong in (np.zeros(4), np.full(5, np.nan), "x", None, np.zeros(5, complex), np.zeros((2, 2, 5))):
            with pytest.raises(rbd.RbdError, match=r"higher\[1\]"):
                function(model, q, v, a, higher[0], wrong)
        with pytest.raises(rbd.RbdError, match="different length"):
            function(model, np.stack([q] * 3), v, a, np.zeros((2, 5)))
    lists = rbd.inverse_dynamics_time_derivatives(model, list(q), tuple(v), a[::-1].copy()[::-1], *map(list, higher))
    assert_close(lists, rbd.inverse_dynamics_time_derivatives(model, q, v, a, *higher), 1e-13)


def test_a_joint_that_moves_nothing():
    empty = build([rbd.JointSpec("a", "revolute", "l0", "l1"), rbd.JointSpec("b", "revolute", "l1", "l2")],
                  links={"l1": inertia(), "l2": rbd.Inertia.zero()})
    with pytest.raises(rbd.RbdError, match="'b'"):
        rbd.forward_dynamics_time_derivatives(empty, np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2))


def test_a_robot_that_cannot_move():
    model = rbd.sample("two_link", locked={"shoulder": 0.1, "elbow": 0.2})
    none = np.zeros(0)
    for count in (0, 1, 2, 3):
        for function in (rbd.inverse_dynamics_time_derivatives, rbd.forward_dynamics_time_derivatives):
            assert function(model, none, none, none, *[none] * count).shape == (count + 1, 0)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_one_state_to_the_second_order_takes_the_quick_way(count, monkeypatch):
    """Ten times as quick; what is not given does not matter."""
    from rbd_ros.core.derivatives import time_derivatives
    model = MODELS["branched"]()
    q, v, a, higher = rates(model, 8)
    expected = rbd.inverse_dynamics_time_derivatives(model, q[None], v[None], a[None], *higher[:count, None])[0]
    monkeypatch.setattr(time_derivatives.inverse_time_derivatives_batch, "call", lambda *_: pytest.fail("the slow way"))
    found = rbd.inverse_dynamics_time_derivatives(model, q, v, a, *higher[:count].copy())
    assert found.shape == (1 + count, model.nv) and found.flags.c_contiguous
    assert_close(found, expected, 1e-13)

"""States that do not meet their constraints are said, once per set, with the gap."""

import warnings

import numpy as np
import pytest

import rbd_ros as rbd


def five_bar():
    model = rbd.sample("five_bar")
    return model, rbd.sample_constraints("five_bar", model)


def calls(model, constraints, q):
    zero = np.zeros(model.nv)
    motors = [model.joint_names[0]]
    return {"forward": lambda: rbd.constrained_forward_dynamics(model, constraints, q, np.zeros(np.shape(q)), zero),
            "hybrid": lambda: rbd.constrained_hybrid_dynamics(model, constraints, q, zero, zero, zero, motors),
            "inverse": lambda: rbd.constrained_inverse_dynamics(model, constraints, q, zero, zero, model.joint_names)}


@pytest.mark.parametrize("name", ["forward", "hybrid", "inverse"])
def test_an_open_loop_is_said_once(name):
    model, constraints = five_bar()
    q = np.random.default_rng(0).uniform(-1.0, 1.0, model.nq)
    gap = np.abs(rbd.constraint_values(model, constraints, q)).max()
    with pytest.warns(rbd.RbdWarning, match=rf"does not meet them: .* is off by {gap:.3g} .*project") as said:
        calls(model, constraints, q)[name]()
        calls(model, constraints, q)[name]()
    assert len(said) == 1


def test_a_batch_names_its_state():
    model, constraints = five_bar()
    closed = rbd.project(model, constraints, model.neutral()).q
    q = np.stack([closed, closed, closed + 0.1 * np.arange(model.nq)])
    with pytest.warns(rbd.RbdWarning, match="state 2: the state does not meet them"):
        calls(model, constraints, q)["forward"]()


def test_nothing_is_said_of_closed_loops_and_of_those_that_are_being_closed():
    model, constraints = five_bar()
    closed = rbd.project(model, constraints, model.neutral()).q
    zero = np.zeros(model.nv)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in calls(model, constraints, closed).values():
            call()
        rbd.constrained_forward_dynamics(model, constraints, closed + 0.1, zero, zero, baumgarte=0.1)

"""Public functions try a compiled entry with what they were given, and look at it only where that refuses."""
from __future__ import annotations

import inspect
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.trees import random_tree

import rbd_ros as rbd
from rbd_ros.core.trying import trying

MODEL = rbd.sample("two_link")
CORE = Path(__file__).parents[1] / "rbd_ros" / "core"
TRYING = [function for function in vars(rbd).values() if "<trying " in getattr(
    getattr(function, "__code__", None), "co_filename", "")]


def test_what_decides_is_written_once():
    found = {path.name for path in CORE.rglob("*.py") if "except UNSUITED" in path.read_text(encoding="utf-8")}
    assert found == {"trying.py"}
    assert {function.__name__ for function in TRYING} >= {
        "inverse_dynamics", "forward_dynamics", "hybrid_dynamics", "mass_matrix", "jacobian", "forward_kinematics",
        "constrained_forward_dynamics", "inverse_dynamics_time_derivatives"}


@pytest.mark.parametrize("function", TRYING, ids=lambda function: function.__name__)
def test_signature_and_name_are_those_of_the_decorated_function(function):
    inner = inspect.unwrap(function)
    assert inspect.signature(function) == inspect.signature(inner)
    assert function.__doc__ == inner.__doc__ and inspect.getsource(function) == inspect.getsource(inner)
    generated = inspect.signature(function, follow_wrapped=False)
    assert [(p.name, p.kind, p.default) for p in generated.parameters.values()] == [
        (p.name, p.kind, p.default) for p in inspect.signature(inner).parameters.values()]
    assert pickle.loads(pickle.dumps(function)) is function


def example():
    calls = []

    def at_once(model, x, y):
        calls.append("at once")
        return x + y if isinstance(x, float) else [][x]

    @trying(at_once)
    def total(model, x, y=1.0, *more, extra=None, scale=2.0):
        """Adds."""
        calls.append("closely")
        return x, y, more, extra, scale

    return partial(total, MODEL), calls


def test_what_is_tried_first():
    total, calls = example()
    assert total(1.0) == 2.0 and total(x=1.0, y=3.0) == 4.0 and total(1.0, scale=5.0) == 3.0 - 1.0
    assert calls == ["at once"] * 3


def test_what_is_looked_at():
    total, calls = example()
    assert total("1", 2.0, 3.0, scale=7.0) == ("1", 2.0, (3.0,), None, 7.0)    # a TypeError in at_once
    assert total(1.0, extra=4) == (1.0, 1.0, (), 4, 2.0)    # which at_once does not have
    assert calls == ["at once", "closely", "closely"]


def test_another_error_is_not_hidden():
    total, _ = example()
    with pytest.raises(IndexError):
        total(0)


def test_positions_are_told_and_not_guessed():
    model = random_tree(1, ["revolute"], root="floating")
    assert model.nq != model.nv
    with pytest.raises(rbd.RbdError, match=rf"^tangent\.q has shape .*expected \({model.nv},\)"):
        rbd.inverse_dynamics_directional(model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv),
                                         rbd.Tangent(q=model.neutral()))
    with pytest.raises(rbd.RbdError, match=rf"^q1 has shape .*expected \({model.nq},\)"):
        model.difference(model.neutral(), np.zeros(model.nv))

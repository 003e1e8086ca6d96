"""What the field `friction` of requests and the parameter of that name mean: the library's dynamics with friction."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support import service_requests as req
from support.service_calls import ask, service
from support.service_requests import LOOP, NAMES, RUBS, SERVICES, TAU, A, Q, V

import rbd_ros as rbd
from rbd_ros.runtime.service.robot_state import StateRequest

RNG = np.random.default_rng(2)
ROUGH = req.FIVE_BAR.with_(damping=RNG.uniform(0.1, 1.0, 5), friction=RNG.uniform(0.1, 1.0, 5))
SMOOTHING = 0.5
LAW = rbd.joint_friction(ROUGH, SMOOTHING)
ROWS = np.reshape(req.ROWS, (3, 5))
DRIVES = ["left_shoulder", "right_shoulder"]
EXPECTED = {
    "inverse": lambda law: rbd.inverse_dynamics(ROUGH, Q, V, A, friction=law),
    "forward": lambda law: rbd.forward_dynamics(ROUGH, Q, V, TAU, friction=law),
    "hybrid": lambda law: rbd.hybrid_dynamics(ROUGH, Q, V, A, TAU, np.array(req.FLAGS), friction=law),
    "constrained": lambda law: rbd.constrained_inverse_dynamics(
        ROUGH, LOOP, Q, V, req.MOTION.acceleration, DRIVES, friction=law).effort,
    "constrained forward": lambda law: rbd.constrained_forward_dynamics(ROUGH, LOOP, Q, V, TAU, friction=law)[:2],
    "constrained hybrid": lambda law: rbd.constrained_hybrid_dynamics(
        ROUGH, LOOP, Q, V, A, TAU, np.array(req.FLAGS), friction=law)[:2],
    "derivatives": lambda law: rbd.inverse_dynamics_derivatives(ROUGH, Q, V, A, friction=law),
    "derivatives forward": lambda law: rbd.forward_dynamics_derivatives(ROUGH, Q, V, A, friction=law),
    "time_derivatives": lambda law: rbd.inverse_dynamics_time_derivatives(ROUGH, Q, V, *ROWS, friction=law),
    "time_derivatives forward": lambda law: rbd.forward_dynamics_time_derivatives(ROUGH, Q, V, *ROWS, friction=law),
    "trajectory": lambda law: [rbd.inverse_dynamics(ROUGH, *(point[key] for key in (
        "position", "velocity", "acceleration")), friction=law) for point in req.TRAJECTORY_GOOD["points"]],
}


def test_friction_of_drives():
    """In the order of parameter `joints`; none of a floating base."""
    given = {"asymmetry": RNG.uniform(-0.1, 0.1, 5), "viscous_asymmetry": RNG.uniform(-0.1, 0.1, 5),
             "load": RNG.uniform(0.1, 0.5, 5)}
    values = {f"friction__{name}": list(value[::-1]) for name, value in given.items()}
    values |= {"friction": True, "friction__smoothing": SMOOTHING, "joints": list(NAMES[::-1])}
    law = rbd.joint_friction(ROUGH, SMOOTHING, **given)
    made = service(ROUGH, constraints_file="five_bar", **values)
    for kind in RUBS:
        np.testing.assert_allclose(flat(numbers(kind, ask(made, kind, SERVICES[kind][0]))), flat(EXPECTED[kind](law)),
                                   rtol=1e-9, atol=1e-9)
    floating = rbd.RobotModel.from_description(dataclasses.replace(ROUGH.description, root="floating"))
    damping, friction = np.concatenate([np.zeros((2, 6)), [ROUGH.damping, ROUGH.friction]], axis=1)
    floating = floating.with_(damping=damping, friction=friction)
    law = rbd.Friction(damping, friction, smoothing=SMOOTHING, **{
        name: np.concatenate([np.zeros(6), value]) for name, value in given.items()})
    q, (v, a) = floating.random_configuration(1), RNG.normal(size=(2, 11))
    made = service(floating, **values)
    np.testing.assert_allclose(rbd.inverse_dynamics(floating, q, v, a, friction=made._friction(1)),
                               law.add(v, rbd.inverse_dynamics(floating, q, v, a)), rtol=1e-9)


def test_friction_that_would_drive_is_refused():
    with pytest.raises(rbd.RbdError, match=r"friction\.asymmetry must not be larger"):
        service(ROUGH, friction__asymmetry=[5.0])


def flat(arrays):
    return np.concatenate([np.ravel(array) for array in arrays])


def numbers(kind, answer):
    """Those of an answer that `EXPECTED` has."""
    fields = {"inverse": ["effort"], "forward": ["acceleration"], "hybrid": ["acceleration", "effort"],
              "constrained": ["effort"], "constrained forward": ["acceleration", "multiplier"],
              "constrained hybrid": ["acceleration", "effort"]}.get(kind)
    if kind == "trajectory":
        return answer
    if fields is None:
        return answer.output if kind.startswith("time") else answer[1:]
    return [getattr(answer, field) for field in fields]


@pytest.mark.parametrize("kind", RUBS)
def test_the_field_and_the_parameter(kind):
    assert set(EXPECTED) == set(RUBS)
    without, with_friction = (flat(EXPECTED[kind](law)) for law in (None, LAW))
    scale = np.abs(with_friction).max()
    assert np.abs(with_friction - without).max() > 1e-2
    for configured in (False, True):
        made = service(ROUGH, friction=configured, friction__smoothing=SMOOTHING, constraints_file="five_bar")
        assert made.model_info().friction is configured
        for field, rubs in ((0, configured), (1, True), (2, False)):
            found = numbers(kind, ask(made, kind, SERVICES[kind][0] | {"friction": field}))
            np.testing.assert_allclose(flat(found), with_friction if rubs else without, rtol=1e-9,
                                       atol=1e-11 * scale)


def test_a_request_without_the_field_is_as_configured_and_states_by_name():
    made = service(ROUGH, friction=True, friction__smoothing=SMOOTHING)
    state = StateRequest(NAMES[::-1], Q[::-1], V[::-1])
    np.testing.assert_allclose(made.inverse(state, NAMES, A).effort, EXPECTED["inverse"](LAW), rtol=1e-12)
    without = service(ROUGH).terms(state)
    assert all(np.array_equal(one, other) for one, other in zip(made.terms(state)[1:], without[1:], strict=True))

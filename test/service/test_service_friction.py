"""What the field `friction` of requests and the parameter of that name mean: the library's dynamics with friction."""
from __future__ import annotations

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

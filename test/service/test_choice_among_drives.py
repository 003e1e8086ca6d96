"""Which of all efforts of redundant drives the service of constrained dynamics answers."""
from __future__ import annotations

import math

import numpy as np
import pytest
from support import service_requests as req
from support.service_calls import service
from support.service_requests import FIVE_BAR, LOOP, NAMES, Q, V

import rbd_ros as rbd
from rbd_ros.runtime.service.constrained import ConstrainedRequest
from rbd_ros.runtime.service.robot_state import StateRequest

ORDER = [3, 0, 4, 2, 1]
NOW = StateRequest(NAMES, Q, V)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.fixture(scope="module")
def made():
    return service()


WISHES = {"preferred_effort": [0.5, -1.0, 0.2, 3.0, 0.1], "effort_limit": [0.4, math.inf, 4.0, 1.0, 4.0],
          "weight": [1.0, 2.0, 0.5, 3.0, 1.0]}


@pytest.mark.parametrize("wishes", [[], ["preferred_effort"], ["effort_limit"], ["weight"], list(WISHES)])
def test_the_choice_among_redundant_drives(made, wishes):
    """All drives, in any order of names."""
    chosen = {wish: WISHES[wish] for wish in wishes}
    arguments = {"weights" if wish == "weight" else wish: np.array(value) for wish, value in chosen.items()}
    a = req.MOTION.acceleration
    shuffled = {wish: [value[i] for i in ORDER] for wish, value in chosen.items()}
    inverse = made.constrained(NOW, ConstrainedRequest(0, [NAMES[i] for i in ORDER], acceleration=a[ORDER], minimize=1,
                                                       **shuffled))
    expected = rbd.constrained_inverse_dynamics(FIVE_BAR, LOOP, Q, V, a, NAMES, "effort", **arguments)
    close(inverse.effort, expected.effort)
    close(inverse.multiplier, expected.multipliers)
    left = rbd.mass_matrix(FIVE_BAR, Q) @ a + rbd.bias_effort(FIVE_BAR, Q, V)
    np.testing.assert_allclose(left, inverse.effort + rbd.constraint_jacobian(FIVE_BAR, LOOP, Q).T @ inverse.multiplier,
                               atol=1e-9)
    everything = np.ones(5, dtype=bool)
    hybrid = made.constrained(NOW, ConstrainedRequest(2, NAMES, everything.tolist(), a, minimize=1, **chosen))
    close(hybrid.effort, inverse.effort)
    if "effort_limit" in chosen:
        least = rbd.constrained_inverse_dynamics(FIVE_BAR, LOOP, Q, V, a, NAMES, "effort", **{
            key: value for key, value in arguments.items() if key != "effort_limit"})
        limit = np.array(chosen["effort_limit"])
        assert (np.abs(inverse.effort) <= limit * (1 + 1e-9)).all() and (np.abs(least.effort) > limit).any()
    some = made.constrained(NOW, ConstrainedRequest(2, NAMES, everything.tolist(), a, minimize=1, weight=[1.0] * 5,
                                                    preferred_effort=[0.0] * 5, effort_limit=[math.inf] * 5))
    close(some.effort, rbd.constrained_inverse_dynamics(FIVE_BAR, LOOP, Q, V, a, NAMES, "effort").effort)


def test_what_is_not_named_has_no_wish():
    still = service()
    free = rbd.constrained_inverse_dynamics(FIVE_BAR, LOOP, Q, np.zeros(5), np.zeros(5), NAMES, "effort",
                                            preferred_effort=[0, 0, 1.0, 0, 0], effort_limit=[math.inf] * 5)
    answer = still.constrained(StateRequest(NAMES, Q), ConstrainedRequest(
        0, ["tip"], minimize=1, preferred_effort=[1.0], effort_limit=[math.inf], weight=[1.0]))
    close(answer.effort, free.effort)

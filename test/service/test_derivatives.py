"""Derivatives as the server answers them: the library's, by name, and what the server's own dynamics change by."""
from __future__ import annotations

import numpy as np
import pytest
from support import service_requests as req
from support.service_calls import service
from support.service_requests import FIVE_BAR, NAMES, TAU, A, Q, V

import rbd_ros as rbd
from rbd_ros.runtime.service.robot_state import StateRequest

ORDER = [3, 0, 4, 2, 1]
SHUFFLED = [NAMES[i] for i in ORDER]
MODES = {req.INVERSE: (A, rbd.inverse_dynamics_derivatives, rbd.inverse_dynamics_time_derivatives),
         req.FORWARD: (TAU, rbd.forward_dynamics_derivatives, rbd.forward_dynamics_time_derivatives)}
PUSH = {"tool": np.array([0.1, 0.2, 0.3, 4.0, 5.0, 6.0]), "left_lower": np.array([0.0, -1.0, 0.0, 2.0, 0.0, -3.0])}
PUSHED = [(body, half) for body, wrench in PUSH.items() for half in (0.25 * wrench, 0.75 * wrench)]


def mixed(values):
    return [values[i] for i in ORDER]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(expected).max()))


NOW = StateRequest(SHUFFLED, mixed(Q), mixed(V))


@pytest.fixture(scope="module")
def made():
    return service()


@pytest.mark.parametrize("mode", MODES)
def test_partial_derivatives_are_the_librarys(made, mode):
    values, derive, _ = MODES[mode]
    for given, wrenches in (([], None), (PUSHED, PUSH)):
        answer = made.derivatives(NOW, mode, SHUFFLED, mixed(values), given)
        assert list(answer.name) == NAMES
        for actual, expected in zip(answer[1:], derive(FIVE_BAR, Q, V, values, wrenches), strict=True):
            close(actual, expected)
    for actual, expected in zip(made.derivatives(NOW, mode)[1:], derive(FIVE_BAR, Q, V, np.zeros(5)), strict=True):
        close(actual, expected)
    tip = made.derivatives(NOW, mode, ["tip"], [0.5])
    close(tip.by_position, derive(FIVE_BAR, Q, V, [0, 0, 0.5, 0, 0]).q)


@pytest.mark.parametrize("mode", MODES)
def test_rows_and_columns_are_those_that_are_named(made, mode):
    """Column j: what the server's own inverse or forward dynamics change by, if coordinate j changes."""
    values, *_ = MODES[mode]
    answer, h = made.derivatives(NOW, mode, SHUFFLED, mixed(values), PUSHED), 1e-5

    def ask(q, v, x):
        state = StateRequest(NAMES, q, v)
        return (made.forward if mode else made.inverse)(state, NAMES, x, PUSHED)[1]

    point = [np.array(Q), np.array(V), np.array(values)]
    for k, matrix in enumerate(answer[1:]):
        for j in range(5):
            step = [h * np.eye(5)[j] * (i == k) for i in range(3)]
            change = (ask(*np.add(point, step)) - ask(*np.subtract(point, step))) / (2.0 * h)
            np.testing.assert_allclose(matrix[:, j], change, rtol=1e-6, atol=1e-6 * np.abs(matrix).max())


def test_by_input_is_the_mass_matrix_and_its_inverse(made):
    M = made.derivatives(NOW, req.INVERSE).by_input
    close(M, made.terms(NOW).mass_matrix)
    np.testing.assert_allclose(M @ made.derivatives(NOW, req.FORWARD).by_input, np.eye(5), atol=1e-11)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 32])
def test_time_derivatives_are_the_librarys(made, mode, rows):
    derive = MODES[mode][2]
    x = np.random.default_rng(rows).normal(size=(rows, 5))
    answer = made.time_derivatives(NOW, mode, SHUFFLED, rows, x[:, ORDER].ravel())
    assert list(answer.name) == NAMES and answer.rows == rows
    close(answer.output, derive(FIVE_BAR, Q, V, *x))
    two = made.time_derivatives(NOW, mode, ["tip", "left_elbow"], rows, x[:, [2, 1]].ravel())
    close(two.output, derive(FIVE_BAR, Q, V, *(x * [0, 1, 1, 0, 0])))
    for nothing in ([], NAMES):
        close(made.time_derivatives(NOW, mode, nothing, rows).output, derive(FIVE_BAR, Q, V, *(0 * x)))


def test_one_row_is_dynamics_without_derivatives_and_forward_undoes_inverse(made):
    close(made.time_derivatives(NOW, 0, SHUFFLED, 1, mixed(A)).output, [made.inverse(NOW, NAMES, A).effort])
    close(made.time_derivatives(NOW, 1, SHUFFLED, 1, mixed(TAU)).output, [made.forward(NOW, NAMES, TAU).acceleration])
    there = made.time_derivatives(NOW, 0, NAMES, 3, req.ROWS).output
    back = made.time_derivatives(NOW, 1, NAMES, 3, there.ravel())
    np.testing.assert_allclose(back.output.ravel(), req.ROWS, rtol=1e-7, atol=1e-7)


def test_a_load_acts_in_both():
    made = service()
    before = [made.derivatives(NOW, 0).by_position, made.time_derivatives(NOW, 0).output]
    made.set_payload(**req.PAYLOAD_GOOD)
    model = made.robot.model
    close(made.derivatives(NOW, 0).by_position, rbd.inverse_dynamics_derivatives(model, Q, V, np.zeros(5)).q)
    close(made.time_derivatives(NOW, 0).output, [rbd.bias_effort(model, Q, V)])
    for old, new in zip(before, (made.derivatives(NOW, 0).by_position, made.time_derivatives(NOW, 0).output),
                        strict=True):
        assert np.abs(new - old).max() > 0.1


@pytest.mark.parametrize("mode", MODES)
def test_a_tree_on_a_floating_base(mode):
    model = rbd.load_urdf(rbd.sample_path("five_bar"), root="floating")
    made, rng, h = service(model, root="floating"), np.random.default_rng(8), 1e-5
    names = [f"base/{axis}" for axis in ("wx", "wy", "wz", "vx", "vy", "vz")] + NAMES
    q, v, x = model.random_configuration(rng), *rng.normal(size=(2, 11))

    def state(q, v):
        return StateRequest(SHUFFLED, q[7:][ORDER], v[6:][ORDER], q[:3], q[3:7], v[:6])

    def ask(q):
        return (made.forward if mode else made.inverse)(state(q, v), names, x, PUSHED)[1]

    mix = rng.permutation(11)
    some = [names[i] for i in mix]
    answer = made.derivatives(state(q, v), mode, some, x[mix], PUSHED)
    assert list(answer.name) == names
    for actual, expected in zip(answer[1:], MODES[mode][1](model, q, v, x, PUSH), strict=True):
        close(actual, expected)
    for j in range(11):    # the base by a small twist in its own axes
        step = h * np.eye(11)[j]
        change = (ask(model.integrate(q, step)) - ask(model.integrate(q, -step))) / (2.0 * h)
        np.testing.assert_allclose(answer.by_position[:, j], change, rtol=1e-6,
                                   atol=1e-6 * np.abs(answer.by_position).max())
    rows = rng.normal(size=(4, 11))
    found = made.time_derivatives(state(q, v), mode, some, 4, rows[:, mix].ravel())
    assert list(found.name) == names and found.output.shape == (4, 11)
    close(found.output, MODES[mode][2](model, q, v, *rows))

"""Springs with damping: the internal dynamics `Dφ̇ + f(φ) = τ` against closed forms and a fine integration."""

import numpy as np
import pytest
from actuation.drives import STIFFNESS, Cosines, iiwa, series
from scipy.integrate import solve_ivp

import rbd_ros as rbd
from rbd_ros.core.actuation.damped_deflection import hermite

K = np.array(STIFFNESS)


def efforts(tau, t):
    return np.stack(tau.motion(t))


@pytest.mark.parametrize("time_constant", [1e-6, 1e-4, 2e-3, 0.1, 10.0])
def test_it_is_exact_for_polynomial_torques_whatever_the_period(time_constant):
    """Against the closed form for τ = polynomial of degree five: φ = p(t) + e^(−Kt/D) (φ₀ − p(0))."""
    actuation = series(damping=time_constant)
    rng = np.random.default_rng(1)
    c = rng.normal(size=(6, 7)) * 20.0

    def derivative(t, order):
        return np.array([np.polyval(np.polyder(c[::-1, i], order), t) for i in range(7)])

    def tau(t):
        return np.stack([derivative(t, order) for order in range(3)])

    def steady(t):
        return sum((-time_constant)**j * derivative(t, j) for j in range(6)) / K

    start = 0.01 * rng.normal(size=7)
    h = 0.004
    run = rbd.DampedDeflection(actuation, h, tau(0.0), start)
    for n in range(1, 26):
        found = run.advance(tau(n * h))
    expected = steady(25 * h) + np.exp(-25 * h / time_constant) * (start - steady(0.0))
    # the closed form itself loses digits where the time constant is long
    bound = 1e-13 * max(1.0, np.abs(steady(0.0)).max())
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=bound)


def test_weights_are_continuous_where_the_series_ends():
    actuation = series(damping=1.0)
    c = np.random.default_rng(0).normal(size=(3, 7))
    found = [rbd.DampedDeflection(series(damping=h / z), h, c, np.zeros(7)).advance(2.0 * c)
             for h in (0.01,) for z in (2.0 - 1e-13, 2.0 + 1e-13)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-11)
    assert actuation.damped.size == 7


def test_hermite_meets_both_ends():
    rng = np.random.default_rng(2)
    first, last = rng.normal(size=(2, 3, 4))
    c = hermite(first, last, 0.3)
    for t, end in ((0.0, first), (0.3, last)):
        for order in range(3):
            got = [np.polyval(np.polyder(c[::-1, i], order), t) for i in range(4)]
            np.testing.assert_allclose(got, end[order], rtol=1e-10, atol=1e-10)


def run_along(actuation, tau, h, duration):
    state = rbd.DampedDeflection(actuation, h, efforts(tau, 0.0))
    for n in range(1, round(duration / h) + 1):
        state.advance(efforts(tau, n * h))
    return state.value


def nonlinear():
    return rbd.load_actuation({name: {"type": "series_elastic", "stiffness": k, "hardening": 1e7, "damping": 30.0,
                                      "motor": {"rotor_inertia": 1.0}}
                               for name, k in zip(iiwa().joint_names, STIFFNESS, strict=True)}, iiwa())


def test_nonlinear_springs_at_order_two():
    actuation, tau = nonlinear(), Cosines(np.random.default_rng(4), 7, 300.0)
    begin = rbd.DampedDeflection(actuation, 1.0, efforts(tau, 0.0)).value
    spring = actuation.series_spring
    exact = solve_ivp(lambda t, x: (tau(t) - spring.torque(x)) / 30.0, (0.0, 0.4), begin, method="Radau", rtol=1e-12,
                      atol=1e-15).y[:, -1]
    error = [np.abs(run_along(actuation, tau, h, 0.4) - exact).max() for h in (0.004, 0.002, 0.001)]
    assert error[0] / error[1] > 3.5 and error[1] / error[2] > 3.5
    assert error[2] < 1e-6 * np.abs(exact).max()


def test_velocity_and_acceleration_along_a_motion():
    """φ, φ̇, φ̈ of `motor_reference` belong together: differences of φ over a short period."""
    actuation, tau, q = nonlinear(), Cosines(np.random.default_rng(5), 7, 100.0), Cosines(np.random.default_rng(6), 7)
    h = 1e-4
    run = rbd.DampedDeflection(actuation, h, efforts(tau, 0.0))
    found = []
    for n in range(1, 604):
        value = run.advance(efforts(tau, n * h))
        if n > 600:
            found.append(rbd.motor_reference(actuation, *q.motion(n * h), efforts(tau, n * h), deflection=value))
    before, now, after = found
    np.testing.assert_allclose(now.velocity, (after.position - before.position) / (2 * h), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(now.acceleration, (after.velocity - before.velocity) / (2 * h), rtol=1e-6, atol=1e-5)
    # the link feels spring and damper together
    phi = now.position - q(602 * h)
    np.testing.assert_allclose(actuation.series_spring.torque(phi) + 30.0 * (now.velocity - q(602 * h, 1)),
                               now.torque, rtol=1e-12)


def test_the_steady_motion_is_exact_for_quadratic_torques():
    actuation = series(damping=3e-3)
    rng = np.random.default_rng(7)
    q, v, a = rng.normal(size=(3, 7))
    tau = 10.0 * rng.normal(size=(3, 7))
    found = rbd.motor_reference(actuation, q, v, a, tau)
    phi, rate, acceleration = (got - link for got, link in zip(found, (q, v, a), strict=False))
    D = actuation.spring_damping
    np.testing.assert_allclose(D * rate + K * phi, tau[0], rtol=1e-12)
    np.testing.assert_allclose(D * acceleration + K * rate, tau[1], rtol=1e-10)
    np.testing.assert_allclose(K * acceleration, tau[2], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("arguments", "words"), [
    ((0.0, np.zeros((3, 7))), "period must be a positive time"), ((1e-3, np.zeros((2, 7))), "efforts has shape"),
    ((1e-3, np.full((3, 7), np.nan)), "efforts must be finite"),
    ((1e-3, np.zeros((3, 7)), np.zeros(6)), "start has shape")])
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(rbd.RbdError, match=words):
        rbd.DampedDeflection(series(damping=1e-3), *arguments)

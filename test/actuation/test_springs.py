"""Springs: every derivative against a complex step, inverses, ranges, and what is no spring."""

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.actuation.series_elastic import SeriesSpring
from rbd_ros.core.actuation.variable_stiffness import (
    AntagonisticExponential,
    AntagonisticQuadratic,
    StiffnessInput,
    check_spring,
)

STEP = 1e-30
SERIES = {
    "linear": ([900.0], np.inf), "hardening": ([900.0, 4e4], np.inf), "softening": ([900.0, -4e4], 0.07),
    "wavy": ([900.0, -4e4, 2e6], 0.3), "very hard": ([1e-3, 0.0, 5e9], np.inf)}
VARIABLE = {
    "linear": StiffnessInput(50.0, 900.0, np.inf), "linear, short": StiffnessInput(0.1, 2.0, 0.2, 10.0, 300.0),
    "cubic": StiffnessInput(100.0, 3000.0, 0.1, 5.0, 1.0, 4e3),
    "faintly cubic": StiffnessInput(9.0, 90.0, 0.5, 0.0, 1.0, 1e-9),
    "quadratic": AntagonisticQuadratic(0.1, 1.0, np.inf, 20.0, 100.0),
    "quadratic, slack": AntagonisticQuadratic(0.0, 1.0, 0.4, 20.0, 100.0),
    "exponential": AntagonisticExponential(0.05, 0.6, np.inf, 5.0, 6.0),
    "exponential, short": AntagonisticExponential(0.0, 0.6, 0.1, 5.0, 6.0)}


def deflections(spring, count=300):
    """(φ, σ) inside the range of a spring; of two states with the same (τ, k), the one that unloads less deflected."""
    rng = np.random.default_rng(3)
    sigma = rng.uniform(spring.lower, spring.upper, count)
    reach = np.minimum(sigma if spring.antagonistic else 0.5 + 0.0 * sigma, spring.max_deflection)
    if isinstance(spring, StiffnessInput) and spring.hardening > 0.0:
        reach = np.minimum(reach, np.sqrt((spring.offset + spring.gain * sigma) / (3.0 * spring.hardening)))
    phi = rng.uniform(-1.0, 1.0, count) * reach
    phi[:3] = 0.0, reach[1], -reach[2]
    return phi, sigma


@pytest.mark.parametrize("kind", SERIES)
def test_series_springs(kind):
    coefficients, limit = SERIES[kind]
    spring = SeriesSpring(np.array(coefficients), limit)
    phi = np.random.default_rng(1).uniform(-1.0, 1.0, 200) * min(limit, 0.5)
    phi[:2] = 0.0, 1e-9
    c = np.array(coefficients)
    np.testing.assert_allclose(spring.torque(phi), sum(x * phi**(2 * j + 1) for j, x in enumerate(c)), rtol=1e-13)
    for function, derivative in ((spring.energy, spring.torque), (spring.torque, spring.stiffness),
                                 (spring.stiffness, spring.stiffness_slope)):
        np.testing.assert_allclose(function(phi + 1j * STEP).imag / STEP, derivative(phi), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(spring.deflection(spring.torque(phi)), phi, rtol=2e-13)
    slope = spring.deflection(spring.torque(phi) + 1j * STEP).imag / STEP
    np.testing.assert_allclose(slope * spring.stiffness(phi), 1.0, rtol=1e-12)


def test_series_springs_of_an_arm_are_computed_together():
    each = [SeriesSpring(np.array(c), limit) for c, limit in SERIES.values()]
    together = SeriesSpring.stacked(each)
    phi = np.random.default_rng(2).uniform(-0.06, 0.06, (4, 5))
    for name in ("torque", "stiffness", "stiffness_slope", "energy", "deflection"):
        found = getattr(together, name)(phi)
        for i, spring in enumerate(each):
            np.testing.assert_allclose(found[:, i], getattr(spring, name)(phi[:, i]), rtol=1e-12)
    np.testing.assert_allclose(together.max_torque, [s.max_torque for s in each])


@pytest.mark.parametrize("kind", VARIABLE)
def test_partial_derivatives_of_variable_springs(kind):
    spring = VARIABLE[kind]
    check_spring(spring)
    phi, sigma = deflections(spring)

    def by_phi(name):
        return getattr(spring.partials(phi + 1j * STEP, sigma), name).imag / STEP

    def by_sigma(name):
        return getattr(spring.partials(phi, sigma + 1j * STEP), name).imag / STEP

    P = spring.partials(phi, sigma)
    for got, expected in ((P.p, by_phi("f")), (P.s, by_sigma("f")), (P.pp, by_phi("p")), (P.ps, by_sigma("p")),
                          (P.ss, by_sigma("s")), (P.ppp, by_phi("pp")), (P.pps, by_phi("ps")), (P.pss, by_sigma("ps")),
                          (P.f, spring.energy(phi + 1j * STEP, sigma).imag / STEP),
                          (spring.reaction(phi, sigma), spring.energy(phi, sigma + 1j * STEP).imag / STEP),
                          (spring.reaction_slope(phi, sigma), spring.reaction(phi, sigma + 1j * STEP).imag / STEP)):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-11 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("kind", ["quadratic", "exponential"])
def test_antagonistic_springs_are_two_tendons(kind):
    spring = VARIABLE[kind]
    if kind == "quadratic":
        def tension(x):
            return spring.linear * x + spring.quadratic * x * x
    else:
        def tension(x):
            return spring.scale * (np.exp(spring.rate * x) - 1.0)
    rng = np.random.default_rng(4)
    q, z1, z2 = rng.uniform(-0.2, 0.2, (3, 50))
    z1 += 0.6 + q
    z2 += q - 0.6
    theta, sigma = spring.from_motors(z1, z2)
    P = spring.partials(theta - q, sigma)
    np.testing.assert_allclose(P.f, tension(z1 - q) - tension(q - z2), rtol=1e-11)
    first, second = spring.loads(P.f, spring.reaction(theta - q, sigma))
    np.testing.assert_allclose(first, tension(z1 - q), rtol=1e-12)
    np.testing.assert_allclose(second, -tension(q - z2), rtol=1e-12)
    np.testing.assert_allclose(spring.to_motors(theta, sigma), (z1, z2), rtol=1e-14)


@pytest.mark.parametrize("kind", VARIABLE)
def test_torque_and_stiffness_give_back_the_deflections(kind):
    spring = VARIABLE[kind]
    phi, sigma = deflections(spring)
    P = spring.partials(phi, sigma)
    low, high = spring.stiffness_range(P.f)
    assert np.all(P.p >= low * (1.0 - 1e-12)) and np.all(P.p <= high * (1.0 + 1e-12))
    inside = np.abs(P.p / low - 1.0) > 1e-3    # at the fold of a cubic spring the inverse has a vertical tangent
    for got, expected in zip(spring.invert(P.f, P.p), (phi, sigma), strict=True):
        np.testing.assert_allclose(got[inside], expected[inside], rtol=1e-10, atol=1e-13)
    x, y = spring.invert(P.f[inside] + 1j * STEP, P.p[inside])
    one = spring.partials(phi[inside], sigma[inside])
    np.testing.assert_allclose(one.p * x.imag / STEP + one.s * y.imag / STEP, 1.0, rtol=1e-7)
    np.testing.assert_allclose(one.pp * x.imag / STEP + one.ps * y.imag / STEP, 0.0,
                               atol=1e-7 * np.abs(one.pp * x.imag / STEP).max() + 1e-12)


@pytest.mark.parametrize("kind", VARIABLE)
def test_the_ends_of_the_range_are_reached_and_no_more(kind):
    """At both ends the inverse lies within the limits; a little beyond, outside of at least one of them."""
    spring = VARIABLE[kind]
    phi, sigma = deflections(spring, 60)
    tau = spring.partials(phi, sigma).f[spring.partials(phi, sigma).f != 0.0]

    def allowed(k, slack):
        with np.errstate(invalid="ignore"):
            x, s = spring.invert(tau, k)
        tendon = s if spring.antagonistic else np.inf
        folded = isinstance(spring, StiffnessInput) and (
            spring.offset + spring.gain * s < 3.0 * spring.hardening * x * x * (1.0 - slack))
        return ((s >= spring.lower - slack * np.abs(spring.upper)) & (s <= spring.upper + slack * np.abs(spring.upper))
                & (np.abs(x) <= np.minimum(tendon, spring.max_deflection) + slack) & ~np.asarray(folded))

    low, high = spring.stiffness_range(tau)
    assert np.all(allowed(low * (1.0 + 1e-9), 1e-6)) and np.all(allowed(high, 1e-6))
    assert not np.any(allowed(low * (1.0 - 1e-4), 1e-9)) and not np.any(allowed(high * (1.0 + 1e-6), 1e-9))


def test_no_torque_beyond_what_any_stiffness_transmits():
    for kind, tau in (("linear, short", 200.0), ("cubic", 1000.0), ("quadratic, slack", 1e4),
                      ("exponential", 1e6), ("exponential, short", 500.0)):
        low, high = VARIABLE[kind].stiffness_range(np.array([tau, -tau]))
        assert np.all(low > high), kind


@pytest.mark.parametrize(("make", "words"), [
    (lambda: SeriesSpring(np.array([0.0])), "stiffness must be positive"),
    (lambda: SeriesSpring(np.array([-5.0])), "stiffness must be positive"),
    (lambda: SeriesSpring(np.array([])), "at least one"),
    (lambda: SeriesSpring(np.array([np.nan])), "finite"),
    (lambda: SeriesSpring(np.array([900.0]), -1.0), "max_deflection must be positive"),
    (lambda: SeriesSpring(np.array([900.0, -4e4])), "not positive beyond a deflection of 0.0866"),
    (lambda: SeriesSpring(np.array([900.0, -4e4]), 0.09), "smaller max_deflection"),
    (lambda: SeriesSpring(np.array([900.0, -1e5, 2e6])), "not positive beyond"),
    (lambda: check_spring(StiffnessInput(0.0, 1.0, np.inf)), "stiffness must be positive over"),
    (lambda: check_spring(StiffnessInput(2.0, 1.0, np.inf)), "lower 2 is not below upper 1"),
    (lambda: check_spring(StiffnessInput(1.0, np.nan, np.inf)), "upper must be finite"),
    (lambda: check_spring(StiffnessInput(1.0, 2.0, 0.0)), "max_deflection must be positive"),
    (lambda: check_spring(StiffnessInput(1.0, 2.0, np.inf, gain=-1.0)), "gain must be positive"),
    (lambda: check_spring(StiffnessInput(1.0, 2.0, np.inf, hardening=-1.0)), "hardening must not be negative"),
    (lambda: check_spring(AntagonisticQuadratic(-0.1, 1.0, np.inf, 20.0, 1.0)), "slack"),
    (lambda: check_spring(AntagonisticExponential(0.0, 1.0, np.inf, 0.0, 1.0)), "scale must be positive"),
], ids=range(16))
def test_what_is_no_spring_is_refused(make, words):
    with pytest.raises(rbd.RbdError, match=words):
        make()

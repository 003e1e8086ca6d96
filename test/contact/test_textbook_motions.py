"""Rolling bodies whose motion textbooks know, each to 1e-6."""

import numpy as np
import pytest
from support.robots import build

import rbd_ros as rbd
from rbd_ros.core.simulation.integrators import INTEGRATORS

MASS, RADIUS, G = 0.7, 0.12, 9.81
FLAT = rbd.Plane("base")


def body(moments, *, gravity=(0.0, 0.0, -G), extra=(), mass=MASS):
    """A body that moves freely, with the centre of mass at its origin; v = [ω, v] in its axes."""
    return build([*extra, rbd.JointSpec("free", "floating", "base", "body")],
                 {"body": rbd.Inertia(mass, np.zeros(3), np.diag(moments))}, gravity=gravity)


def ball(**options):
    return body([0.4 * MASS * RADIUS**2] * 3, **options)


def inclined(angle):
    return (G * np.sin(angle), 0.0, -G * np.cos(angle))


def turned(q):
    """Rotation of a free body."""
    x, y, z, w = q[-4:]
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


@pytest.mark.parametrize("share, ratio", [(0.4, 5 / 7), (2 / 3, 3 / 5)], ids=["ball", "hollow ball"])
def test_a_ball_on_an_incline(share, ratio):
    """5/7 g sin α; the normal force is m g cos α, the friction what is missing."""
    for angle in (0.1, 0.7, 1.4):
        model = body([share * MASS * RADIUS**2] * 3, gravity=inclined(angle))
        constraints = rbd.ConstraintSet([rbd.RollingContact(FLAT, rbd.Sphere("body", RADIUS), name="c")])
        simulator = rbd.Simulator(model, q=[0, 0, RADIUS, 0, 0, 0, 1], constraints=constraints, integrator="rk4",
                                  step=0.004)
        found = rbd.constrained_forward_dynamics(model, constraints, simulator.q, np.zeros(6), np.zeros(6))
        down = ratio * G * np.sin(angle)
        assert found.acceleration[3] == pytest.approx(down, rel=1e-12)
        np.testing.assert_allclose(found.multipliers, MASS * np.array([
            G * np.cos(angle), -(1 - ratio) * G * np.sin(angle), 0.0]), atol=1e-12)
        simulator.step(n=125)
        assert simulator.q[0] == pytest.approx(0.5 * down * 0.5**2, rel=1e-6)


def test_a_cylinder_on_an_incline():
    """2/3 g sin α, along a line: its axis is kept parallel to the plane by a row of a loop."""
    spin = 0.5 * MASS * RADIUS**2
    model = body([0.03, spin, 0.03], gravity=inclined(0.3))
    roller = rbd.Cylinder("body", RADIUS, [[0.0, 0.0, 0.0], [np.pi / 2, 0.0, 0.0]])
    constraints = rbd.ConstraintSet([rbd.RollingContact(FLAT, roller, spin=False),
                                     rbd.LoopClosure("base", "body", ["ry"], None, [[0, 0, 0], [0, 0, np.pi / 2]])])
    simulator = rbd.Simulator(model, q=[0, 0, RADIUS, 0, 0, 0, 1], constraints=constraints, integrator="rk4",
                              step=0.004)
    found = rbd.constrained_forward_dynamics(model, constraints, simulator.q, np.zeros(6), np.zeros(6))
    assert found.rank == 5
    assert found.acceleration[3] == pytest.approx(2 / 3 * G * np.sin(0.3), rel=1e-12)
    simulator.step(n=125)
    assert simulator.q[0] == pytest.approx(2 / 3 * G * np.sin(0.3) * 0.5**3, rel=1e-6)


def test_a_ball_on_a_turntable_circles_at_two_sevenths():
    """The centre's acceleration is 2/7 Ω × its velocity, anywhere on the table: a circle that drifts nowhere."""
    speed, radius = 1.7, 0.5
    table = rbd.JointSpec("table", "revolute", "base", "disc", axis=(0.0, 0.0, 1.0), position=np.array([0.2, 0.1, 0]))
    model = body([0.4 * MASS * radius**2] * 3, extra=[table])
    constraints = rbd.ConstraintSet([rbd.RollingContact(rbd.Plane("disc"), rbd.Sphere("body", radius))])
    q, _ = rbd.project(model, constraints, [0.3, 0.4, -0.1, radius, 0, 0, 0, 1])
    v = np.array([speed, 0.3, -0.4, 2.0, 0.0, 0.0, 0.0])
    v[4:] = np.cross(speed * np.array([0, 0, 1.0]), q[1:4] - [0.2, 0.1, 0.0]) * [1, 1, 0] + np.cross(
        v[1:4], [0, 0, radius]) * [1, 1, 0]    # rolling: what the table has there, and what turning adds
    np.testing.assert_allclose(rbd.constraint_jacobian(model, constraints, q) @ v, 0.0, atol=1e-12)

    def rate(q, v):
        zero = np.zeros(7)
        return rbd.constrained_hybrid_dynamics(model, constraints, q, v, zero, zero, ["table"]).acceleration

    centre = v[4:6].copy()
    acceleration = rate(q, v)[4:] + np.cross(v[1:4], v[4:])    # of components, and of turning axes
    np.testing.assert_allclose(acceleration[:2], 2 / 7 * speed * np.array([-centre[1], centre[0]]), rtol=1e-9)
    start, steps = q, 1000
    h = 2 * np.pi / (2 / 7 * speed) / steps
    for _ in range(steps):    # once around
        q, v = INTEGRATORS["rk4"](model, rate, q, v, h)
    orbit = np.linalg.norm(centre) / (2 / 7 * speed)
    assert np.linalg.norm(q[1:3] - start[1:3]) < 1e-6 * orbit


def steady(theta, precession, R, r, moments):
    """ω, v of a rolling ring in steady precession whose axis leans by theta: the spin from the balance of moments.

    In the frame that turns with the precession all is at rest: ρ × F = Ω × H, F = m (Ω × v + g), v = −ω × ρ.
    """
    z, axis = np.array([0.0, 0.0, 1.0]), np.array([np.sin(theta), 0.0, np.cos(theta)])
    up = (z - np.cos(theta) * axis) / np.sin(theta)
    rho = -R * up - r * z

    def off(spin):
        omega = precession * z + spin * axis
        H = moments[0] * (omega - (omega @ axis) * axis) + moments[2] * (omega @ axis) * axis
        v = -np.cross(omega, rho)
        F = MASS * (precession * np.cross(z, v) + G * z)
        return (np.cross(rho, F) - precession * np.cross(z, H))[1]

    spin = -off(0.0) / (off(1.0) - off(0.0))
    assert abs(off(spin)) < 1e-9
    omega = precession * z + spin * axis
    return omega, -np.cross(omega, rho), -rho[2]


@pytest.mark.parametrize("theta", [0.4, 1.2, 1.55])
def test_a_rolling_ring_in_steady_precession(theta):
    """A coin: the edge is a torus of small minor radius. Lean and speed stay, the centre goes round in a circle.

    One of them by friction, not by a constraint.
    """
    R, r, precession = 0.2, 0.004, 2.0
    moments = np.array([0.25, 0.25, 0.5]) * MASS * R * R
    model = body(moments)
    constraints = rbd.ConstraintSet([rbd.RollingContact(FLAT, rbd.Torus("body", R, r))])
    omega, v, height = steady(theta, precession, R, r, moments)
    q = np.array([0.0, 0.0, height, 0.0, np.sin(theta / 2), 0.0, np.cos(theta / 2)])
    turn = turned(q)
    rates = np.concatenate([turn.T @ omega, turn.T @ v])
    touch = {"constraints": constraints} if theta != 1.2 else {"contacts": [
        rbd.UnilateralContact(FLAT, rbd.Torus("body", R, r), friction=1.5)]}
    simulator = rbd.Simulator(model, q=q, v=rates, integrator="rk4", step=2e-3, **touch)
    np.testing.assert_allclose(simulator.v, rates, atol=1e-9)
    time = 0.5
    simulator.step(n=round(time / 2e-3))
    axis = turned(simulator.q)[:, 2]
    angle = precession * time
    np.testing.assert_allclose(axis, [np.sin(theta) * np.cos(angle), np.sin(theta) * np.sin(angle), np.cos(theta)],
                               atol=1e-6)
    orbit = np.cross([0.0, 0.0, 1.0], v) / -precession    # from the centre of the circle to where it starts
    spun = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ orbit[:2]
    np.testing.assert_allclose(simulator.q[:2], spun - orbit[:2], atol=1e-6 * np.linalg.norm(orbit))


def test_an_ellipsoid_rocks_at_its_small_amplitude_frequency():
    """ω² = m g (ρ − c) / (I + m c²), with the radius of curvature ρ = a²/c at the bottom."""
    axes, moments = np.array([0.3, 0.25, 0.1]), np.array([0.011, 0.013, 0.02])
    model = body(moments)
    constraints = rbd.ConstraintSet([rbd.RollingContact(FLAT, rbd.Ellipsoid("body", axes))])
    for about, along in ((0, 1), (1, 0)):
        expected = MASS * G * (axes[along] ** 2 / axes[2] - axes[2]) / (moments[about] + MASS * axes[2] ** 2)
        tilt = 1e-5
        q = np.array([0.0, 0.0, axes[2], 0.0, 0.0, 0.0, 1.0])
        q[3 + about], q[6] = np.sin(tilt / 2), np.cos(tilt / 2)
        q = rbd.project(model, constraints, q).q
        angle = 2.0 * np.arcsin(q[3 + about])
        found = rbd.constrained_forward_dynamics(model, constraints, q, np.zeros(6), np.zeros(6))
        assert -found.acceleration[about] / angle == pytest.approx(expected, rel=1e-6)
        period = 2 * np.pi / np.sqrt(expected)
        simulator = rbd.Simulator(model, q=q, constraints=constraints, integrator="rk4", step=period / 200)
        simulator.step(n=200)
        assert 2.0 * np.arcsin(simulator.q[3 + about]) == pytest.approx(angle, rel=1e-6)
        assert abs(simulator.v[about]) < 1e-5 * np.sqrt(expected) * angle


def test_energy_of_pure_rolling_stays():
    """Ellipsoid on a plane, 1 kHz; over 60 s the drift is 3e-10 (measured by hand)."""
    model = body([0.006, 0.012, 0.015])
    constraints = rbd.ConstraintSet([rbd.RollingContact(FLAT, rbd.Ellipsoid("body", (0.3, 0.2, 0.15)))])
    q, v = rbd.project(model, constraints, [0, 0, 0.2, 0.1, 0.2, 0.3, np.sqrt(0.86)], [1.0, 2.0, -1.0, 0.0, 0.0, 0.0])
    simulator = rbd.Simulator(model, q=q, v=v, constraints=constraints, integrator="rk4")
    energy = simulator.energy
    simulator.step(n=1000)
    assert abs(simulator.energy - energy) < 1e-8 * energy


def test_a_ball_in_an_upright_pipe_goes_up_and_down():
    """It does not sink: its height swings with √(2/7) of the rate at which it goes round (Routh)."""
    model = ball()
    constraints = rbd.ConstraintSet([rbd.RollingContact(rbd.Cylinder("base", 0.5, inside=True),
                                                        rbd.Sphere("body", RADIUS))])
    orbit, rate = 0.5 - RADIUS, 9.0
    v = np.zeros(6)
    v[4] = rate * orbit
    v[2] = -v[4] / RADIUS    # rolls on the wall at +x
    q = np.array([orbit, 0, 0, 0, 0, 0, 1])
    np.testing.assert_allclose(rbd.constraint_jacobian(model, constraints, q) @ v, 0.0, atol=1e-12)
    swing = np.sqrt(2 / 7) * rate
    steps = 1000
    simulator = rbd.Simulator(model, q=q, v=v, constraints=constraints, integrator="rk4",
                              step=2 * np.pi / swing / steps)
    heights = []
    for _ in range(4):
        simulator.step(n=steps // 4)
        heights.append(simulator.q[2])
    deep = 2.0 * 5 / 7 * G / swing**2    # z'' = −5/7 g − 2/7 rate² z
    np.testing.assert_allclose(heights, [-deep / 2, -deep, -deep / 2, 0.0], atol=1e-6 * deep)


def test_a_ball_in_a_ring_keeps_its_constants():
    """On a surface of revolution the spin and the rate of going round are functions of the height (Routh): at the same
    place of the tube they are what they were, however often it has been there. And the energy stays.
    """
    model = ball()
    tube = rbd.Torus("base", 1.0, 0.5, inside=True)
    constraints = rbd.ConstraintSet([rbd.RollingContact(tube, rbd.Sphere("body", RADIUS), name="c")])
    q, v = rbd.project(model, constraints, [1.0, 0, -0.38, 0, 0, 0, 1], [3.0, 6.0, 2.0, 0.4, 2.0, 0.0])
    simulator = rbd.Simulator(model, q=q, v=v, constraints=constraints, integrator="rk4")
    energy = simulator.energy
    passes = []
    older = last = None
    for _ in range(2500):
        simulator.step()
        rho = np.hypot(*simulator.q[:2])
        normal = np.array([*(simulator.q[:2] / rho * (1.0 - rho)), -simulator.q[2]]) / 0.38    # from ball to the core
        omega = turned(simulator.q) @ simulator.v[:3]
        velocity = turned(simulator.q) @ simulator.v[3:]
        around = np.array([-simulator.q[1], simulator.q[0], 0.0]) / rho
        now = np.array([simulator.q[2], rho - 1.0, omega @ normal, velocity @ around])
        if last is not None and last[1] * now[1] < 0.0:    # through the bottom of the tube
            history = np.array([older, last, now])
            t = np.array([0.0, 1.0, 2.0])
            fit = np.polynomial.polynomial.polyfit(t, history[:, 1:], 2)
            roots = [x.real for x in np.polynomial.polynomial.polyroots(fit[:, 0]) if 1.0 <= x.real <= 2.0]
            passes.append([np.polynomial.polynomial.polyval(roots[0], fit[:, c]) for c in (1, 2)])
        older, last = last, now
    assert len(passes) >= 3
    np.testing.assert_allclose(passes, [passes[0]] * len(passes), rtol=1e-6)
    assert abs(simulator.energy - energy) < 1e-9 * abs(energy)

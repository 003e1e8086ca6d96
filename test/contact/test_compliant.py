"""Compliant contacts: the law of Hunt and Crossley and friction, as wrenches, and in the simulator's integrators."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from support.contacts import FRAMES, PAIRS, bodies, placed, surface
from support.robots import assert_close, build

import rbd_ros as rbd

G, RADIUS, MASS = 9.81, 0.1, 0.5
FLOOR = rbd.Plane("base")
each_integrator = pytest.mark.parametrize("integrator", ["variational", "semi_implicit", "rk4"])


def ball(gravity=(0.0, 0.0, -G)):
    return build([rbd.JointSpec("free", "floating", "base", "ball")],
                 {"ball": rbd.Inertia(MASS, np.zeros(3), 0.4 * MASS * RADIUS**2 * np.eye(3))}, gravity=gravity)


def on_floor(**law):
    return rbd.CompliantContact(FLOOR, rbd.Sphere("ball", RADIUS), **{"stiffness": 1e5, "dissipation": 0.0, **law})


def at_height(z, spin=None):
    return np.array([0.3, -0.2, z, *(spin or (0.0, 0.0, 0.0, 1.0))])


def restitution(c_v):
    """e of `a v − ln(1 + a v) = −a e v − ln(1 − a e v)`, a = 3/2 c."""
    x = 1.5 * c_v
    return brentq(lambda e: x - np.log1p(x) + x * e + np.log1p(-x * e), 0.0, min(1.0, (1.0 - 1e-14) / x), xtol=1e-15)


def thrown(speed, law, integrator, step):
    """How fast a ball comes back from the floor without gravity, and how deep it was."""
    simulator = rbd.Simulator(ball((0.0, 0.0, 0.0)), contacts=[on_floor(**law)], q=at_height(RADIUS + 1e-9),
                              v=[0, 0, 0, 0, 0, -speed], integrator=integrator, step=step)
    deepest = 0.0
    while simulator.v[5] <= 0.0 or simulator.q[2] < RADIUS:
        simulator.step()
        deepest = max(deepest, RADIUS - simulator.q[2])
    return simulator.v[5], deepest


@pytest.mark.parametrize(("n", "k", "c"), [(1.0, 5e3, 0.4), (1.5, 1e5, 0.6), (2.2, 2e6, 2.0)])
def test_restitution_is_that_of_hunt_and_crossley(n, k, c):
    """Against the closed form, which is checked against a quadrature of the law, and against 1 − c v for small c v."""
    speed, law = 0.8, {"stiffness": k, "dissipation": c, "exponent": n}

    expected = restitution(c * speed) * speed

    def fall(t, x):
        d = max(-x[0], 0.0)
        return [x[1], max(k * d**n * (1.0 - 1.5 * c * x[1]), 0.0) / MASS]

    apart = lambda t, x: x[0] if t > 0.0 else -1.0    # noqa: E731
    apart.terminal, apart.direction = True, 1.0
    if n != 1.5:
        found = solve_ivp(fall, (0.0, 1.0), [0.0, -speed], events=apart, rtol=1e-10, atol=1e-12, max_step=1e-3)
        assert found.y[1, -1] == pytest.approx(expected, rel=1e-6)
    assert restitution(1e-3) == pytest.approx(1.0 - 1e-3, abs=2e-6)
    for integrator, step, close in (("rk4", 2e-5, 1e-5), ("variational", 2e-5, 3e-5), ("semi_implicit", 2e-5, 2e-2)):
        back, deepest = thrown(speed, law, integrator, step)
        assert back == pytest.approx(expected, rel=close), integrator
    if c == 0.4:
        return
    deepest = thrown(speed, law | {"dissipation": 0.0}, "rk4", 1e-5)[1]
    assert deepest == pytest.approx((0.5 * MASS * speed**2 * (n + 1) / k) ** (1 / (n + 1)), rel=1e-6)


@each_integrator
def test_it_rests_as_deep_as_its_weight_presses(integrator):
    model, contact = ball(), on_floor(dissipation=10.0, friction=0.4, slip_speed=0.02, name="floor")
    simulator = rbd.Simulator(model, contacts=[contact], q=at_height(RADIUS + 1e-4), integrator=integrator, step=5e-4)
    simulator.step(n=1200)
    (found,) = simulator.contacts
    assert found.gap == pytest.approx(-(MASS * G / 1e5) ** (1 / 1.5), rel=1e-6)
    assert (found.name, found.state) == ("floor", "sticking")
    np.testing.assert_allclose(found.force, [0, 0, MASS * G], atol=1e-6)
    np.testing.assert_allclose(found.normal, [0, 0, 1])
    np.testing.assert_allclose(found.point, [0.3, -0.2, found.gap], atol=1e-9)
    wrenches = rbd.contact_wrenches(model, [contact], simulator.q, simulator.v)
    a = rbd.forward_dynamics(model, simulator.q, simulator.v, np.zeros(6), external_wrenches=wrenches)
    np.testing.assert_allclose(a, 0.0, atol=1e-5)


def scene(slip_speed):
    """Soft bodies on the floor, in a bowl and on each other, one of them on an arm."""
    law = {"stiffness": 2e4, "dissipation": 0.3, "friction": 0.6, "slip_speed": slip_speed}
    contacts = [rbd.CompliantContact(rbd.Plane("base", [0, 0, -0.6]), rbd.Ellipsoid("two", (0.3, 0.2, 0.15)), **law),
                rbd.CompliantContact(rbd.Plane("base", [0, 0, -0.6]), rbd.Sphere("one", 0.25), exponent=1.0, **law),
                rbd.CompliantContact(rbd.Sphere("base", 1.1, inside=True), rbd.Sphere("one", 0.25), **law),
                rbd.CompliantContact(rbd.Sphere("base", 1.1, inside=True), rbd.Sphere("two", 0.15, [0.1, 0, 0]), **law),
                rbd.CompliantContact(rbd.Sphere("one", 0.25), rbd.Ellipsoid("two", (0.3, 0.2, 0.15)), **law)]
    return bodies(), contacts


def elastic_energy(model, contacts, q):
    poses = rbd.forward_kinematics(model, q)
    total = 0.0
    for item in contacts:
        first, second = (poses[model.body_index(surface.link)] for surface in (item.first, item.second))
        gap = rbd.closest_points(item.first, item.second, rbd.lie.se3.inverse(first) @ second).gap
        total += item.stiffness * max(-gap, 0.0) ** (item.exponent + 1.0) / (item.exponent + 1.0)
    return total


def test_forces_of_all_pairs_by_the_law():
    """Wrenches are opposite, as places of closest points and the velocities there say; a batch is its states."""
    rng = np.random.default_rng(4)
    for first, second in PAIRS:
        q, v = placed(first, second, 2, gap=-0.002)
        model = bodies()
        a, b = surface(first, "one", FRAMES[0]), surface(second, "two", FRAMES[1])
        k, c, mu, s0 = 10.0 ** rng.uniform(3, 6), rng.uniform(0, 0.5), rng.uniform(0, 1.0), 10.0 ** rng.uniform(-3, 0)
        contact = rbd.CompliantContact(a, b, stiffness=k, dissipation=c, exponent=1.3, friction=mu, slip_speed=s0)
        W = rbd.contact_wrenches(model, [contact], q, v)
        poses = rbd.forward_kinematics(model, q)
        one, two = (poses[model.body_index(link)] for link in ("one", "two"))
        touch = rbd.closest_points(a, b, rbd.lie.se3.inverse(one) @ two)
        point, axes = (one @ [*touch.point_2, 1.0])[:3], one[:3, :3] @ touch.axes
        speed = [rbd.jacobian(model, q, link, "world") @ v for link in ("one", "two")]
        slip = axes.T @ np.diff([V[3:] + np.cross(V[:3], point) for V in speed], axis=0)[0]
        depth, s = max(-touch.gap, 0.0), np.hypot(slip[0], slip[1])
        normal = max(k * depth**1.3 * (1.0 - 1.5 * c * slip[2]), 0.0)
        force = axes @ [*(-mu * normal * np.tanh(s / s0) * slip[:2] / s), normal]
        for link, pose, sign in (("one", one, -1.0), ("two", two, 1.0)):
            arm = point - pose[:3, 3]
            expected = sign * np.concatenate([pose[:3, :3].T @ np.cross(arm, force), pose[:3, :3].T @ force])
            assert_close(W[model.body_index(link)], expected, 1e-9)
        assert not W[[model.body_index("base"), model.body_index("arm")]].any()
        apart = np.stack([q, placed(first, second, 2, gap=0.001)[0]])
        batch = rbd.contact_wrenches(model, [contact], apart, np.stack([v, -v]))
        assert_close(batch[0], W, 1e-12)
        assert not batch[1].any()


@each_integrator
def test_energy_never_grows(integrator):
    """Two bodies and an arm tumble in a bowl: what is lost is the work of dissipation and friction."""
    model, contacts = scene(0.1 if integrator == "rk4" else 0.001)
    rng = np.random.default_rng(2)
    q = model.neutral()
    q[model.joint("first").idx_q + 2], q[model.joint("second").idx_q:][:3] = -0.2, (0.2, 0.1, 0.3)
    simulator = rbd.Simulator(model, contacts=contacts, q=q, v=rng.normal(size=model.nv), integrator=integrator,
                              step=2e-4 if integrator == "rk4" else 5e-4)
    energy = [simulator.energy + elastic_energy(model, contacts, simulator.q)]
    touched = set()
    for _ in range(150):
        simulator.step(n=8)
        touched |= {state.name for state in simulator.contacts if state.state != "open"}
        energy.append(simulator.energy + elastic_energy(model, contacts, simulator.q))
    assert len(touched) >= 2 and energy[0] - energy[-1] > 4.0
    assert np.diff(energy).max() < {"variational": 1e-4, "semi_implicit": 3e-3, "rk4": 1e-9}[integrator]


@each_integrator
def test_what_is_lost_is_the_work_of_normal_and_friction_forces(integrator):
    """A thrown ball that spins: energy lost against the integral of the power of all wrenches that are not elastic."""
    model, contact = ball(), on_floor(stiffness=3e4, dissipation=0.3, friction=0.3, slip_speed=0.1)
    step = 1e-4
    simulator = rbd.Simulator(model, contacts=[contact], q=at_height(RADIUS + 0.01), v=[3, 20, -5, 1.5, 0.4, -0.5],
                              integrator=integrator, step=step)
    power, energy = [], []
    for _ in range(2500):
        q, v = np.array(simulator.q), np.array(simulator.v)
        elastic = contact.stiffness * max(RADIUS - q[2], 0.0) ** 2.5 / 2.5
        W = rbd.contact_wrenches(model, [contact], q, v)[1]    # in axes of the ball, as v is
        climb = -(rbd.forward_kinematics(model, q)[1, :3, :3] @ v[3:])[2]
        power.append(W @ v + contact.stiffness * max(RADIUS - q[2], 0.0) ** 1.5 * climb)
        energy.append(simulator.energy + elastic)
        simulator.step()
    work = step * (np.sum(power) - 0.5 * (power[0] + power[-1]))
    assert max(power) < 1e-12 and work < -0.1
    assert energy[-1] - energy[0] == pytest.approx(work, rel=0.1 if integrator == "semi_implicit" else 1e-3)


@pytest.mark.parametrize("integrator", ["variational", "rk4"])
def test_from_slipping_to_rolling(integrator):
    """A ball that slides at v₀ rolls at 5/7 v₀ after 2 v₀ / 7 µ g; friction is as exact as the slip speed is small."""
    mu, speed, s0 = 0.2, 1.0, 1e-3
    depth = (MASS * G / 1e5) ** (1 / 1.5)
    step = 1e-3 if integrator == "variational" else 5e-5
    simulator = rbd.Simulator(ball(), contacts=[on_floor(dissipation=5.0, friction=mu, slip_speed=s0)],
                              q=at_height(RADIUS - depth), v=[0, 0, 0, speed, 0, 0], integrator=integrator, step=step)
    end = 2.0 * speed / (7.0 * mu * G)
    simulator.step(n=int(0.9 * end / step))
    assert simulator.contacts[0].state == "sliding"
    assert np.linalg.norm(simulator.v[3:]) == pytest.approx(speed - mu * G * simulator.time, abs=1e-3)
    simulator.step(n=int(0.3 * end / step))
    assert simulator.contacts[0].state == "sticking"
    assert np.linalg.norm(simulator.v[3:]) == pytest.approx(5.0 / 7.0 * speed, abs=3e-3)


def test_creep_on_an_incline():
    """Below the angle of friction a block of four feet creeps at s₀ atanh(tan α / µ); above it slides at g (sin α − µ
    cos α)."""
    alpha, mu, s0 = 0.3, 0.5, 0.01
    gravity = (G * np.sin(alpha), 0.0, -G * np.cos(alpha))
    model = build([rbd.JointSpec("x", "prismatic", "base", "rail", axis=(1.0, 0, 0)),
                   rbd.JointSpec("z", "prismatic", "rail", "block", axis=(0, 0, 1.0))],
                  {"rail": rbd.Inertia.zero(), "block": rbd.Inertia(MASS, np.zeros(3), np.eye(3))}, gravity=gravity)
    for friction, expected in ((mu, s0 * np.arctanh(np.tan(alpha) / mu)), (0.1, None)):
        contact = rbd.CompliantContact(FLOOR, rbd.Sphere("block", RADIUS), stiffness=1e5, dissipation=20.0,
                                       friction=friction, slip_speed=s0)
        depth = (MASS * G * np.cos(alpha) / 1e5) ** (1 / 1.5)
        simulator = rbd.Simulator(model, contacts=[contact], q=[0, RADIUS - depth])
        simulator.step(n=500)
        if expected is None:
            expected = 0.5 * G * (np.sin(alpha) - 0.1 * np.cos(alpha))
            assert simulator.v[0] == pytest.approx(expected, rel=2e-2)    # less friction before it is fast
        else:
            assert simulator.v[0] == pytest.approx(expected, rel=1e-4)


@each_integrator
def test_a_contact_too_stiff_for_the_step_is_named_with_the_step_that_it_needs(integrator):
    model, contact = ball(), on_floor(stiffness=1e8, name="hard floor")
    q = at_height(RADIUS - 1e-3)
    with pytest.raises(rbd.RbdError, match=r"stiffness of contact 'hard floor', 1 mm deep.*at most \S+ s") as said:
        rbd.Simulator(model, contacts=[contact], q=q, integrator=integrator).step()
    step = float(str(said.value).split("at most ")[1].split()[0])
    rbd.Simulator(model, contacts=[contact], q=q, integrator=integrator, step=0.99 * step).step(n=20)
    for what, law in (("dissipation", {"dissipation": 200.0}), ("friction", {"friction": 1.0, "slip_speed": 1e-5})):
        simulator = rbd.Simulator(model, contacts=[on_floor(**law)], q=q, integrator=integrator)
        if integrator == "rk4":
            with pytest.raises(rbd.RbdError, match=f"{what} of contact 'compliant_0'.*or another integrator"):
                simulator.step()
        else:
            simulator.step(n=50)


def test_a_plane_with_a_size_ends():
    """A ball beside the plate falls, in the world as on a link; over the edge nothing else touches."""
    model = ball()
    plate = rbd.CompliantContact(rbd.Plane("world", [0.3, 0, 0], [0.4, 0.8]), rbd.Sphere("ball", RADIUS), stiffness=1e4,
                                 dissipation=0.1)
    places = np.array([[x, y, 0, 0, 0, 0, 0] for x, y in ((0, 0), (0.21, 0), (0, -0.21))])
    Q = at_height(RADIUS - 0.001) + places
    found = rbd.contact_wrenches(model, [plate], Q, np.zeros((3, 6)))[:, 1, 5]
    assert (found > 0.0).tolist() == [True, False, False]
    simulator = rbd.Simulator(model, contacts=[plate], q=Q[1])
    simulator.step(n=500)
    assert simulator.q[2] < -1.0 and simulator.contacts[0].state == "open" and simulator.contacts[0].gap > 0.0
    with pytest.raises(rbd.RbdError, match="only points and spheres"):
        rbd.CompliantContact(plate.first, rbd.Ellipsoid("ball", (1, 2, 3)), stiffness=1.0, dissipation=0.0)


def test_the_stiffer_the_closer_to_a_hard_contact():
    """One bounce with spin and friction, against UnilateralContact with the restitution of the closed form; the ball
    slides throughout, so that both laws of friction agree."""
    height, mu, c = 0.05, 0.1, 0.2
    e = restitution(c * np.sqrt(2.0 * G * height))
    model, start = ball(), {"q": at_height(RADIUS + height), "v": [0, 40, 0, 0.1, 0, 0]}

    def end(contact, step):
        simulator = rbd.Simulator(model, contacts=[contact], integrator="rk4", step=step, **start)
        simulator.step(n=round(0.15 / step))
        R = rbd.forward_kinematics(model, simulator.q)[1, :3, :3]
        return np.concatenate([simulator.q[:3], R @ simulator.v[:3], R @ simulator.v[3:]])

    hard = end(rbd.UnilateralContact(FLOOR, rbd.Sphere("ball", RADIUS), friction=mu, restitution=e), 1e-3)
    errors = [np.abs(end(on_floor(stiffness=k, dissipation=c, friction=mu), step) - hard).max()
              for k, step in ((1e5, 5e-5), (1e7, 2e-5))]
    assert errors[1] < 0.25 * errors[0] and errors[1] < 0.1    # of 40 rad/s


def test_hard_and_soft_contacts_together():
    """A ball on a hard floor leans against a soft wall that a constant force presses it to; records are in order."""
    wall = rbd.CompliantContact(rbd.Plane("base", [[0.5, 0, 0], [0, -np.pi / 2, 0]]), rbd.Sphere("ball", RADIUS),
                                stiffness=1e5, dissipation=5.0, name="wall")
    floor = rbd.UnilateralContact(FLOOR, rbd.Sphere("ball", RADIUS), name="floor")
    for integrator in ("variational", "semi_implicit", "rk4"):
        simulator = rbd.Simulator(ball(), contacts=[wall, floor], q=[0.4 - 1e-4, 0, RADIUS, 0, 0, 0, 1],
                                  integrator=integrator, step=5e-4)
        simulator.step(n=1500, external_wrenches={"ball": [0, 0, 0, 3.0, 0, 0]})
        soft, hard = simulator.contacts
        assert (soft.name, hard.name, soft.state, hard.state) == ("wall", "floor", "sliding", "sliding")
        np.testing.assert_allclose(soft.force, [-3.0, 0, 0], atol=1e-3)
        np.testing.assert_allclose(hard.force, [0, 0, MASS * G], atol=1e-3)
        assert soft.gap == pytest.approx(-((3.0 / 1e5) ** (1 / 1.5)), rel=1e-3)

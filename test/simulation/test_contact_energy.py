"""Energy of contacts: what their laws may add, nothing, and what steps of finite length add or lose, by its order.

Impulses are judged exactly: random bodies, rows, inertias, several contacts at once, µ up to 2, restitution up to 1.
Smooth motions without loss (flight, sliding without friction, rolling, pivoting) show the error of the integrator.
"""
from itertools import pairwise

import numpy as np
import pytest
from support.loose import FLOOR, at, ball, box, free

import rbd_ros as rbd
from rbd_ros.core.simulation.contact.contact_steps import press_entry
from rbd_ros.core.simulation.contact.impacts import strike_entry

# of many contacts at once the search is long
each_count = pytest.mark.parametrize(("count", "contacts"), [
    (60, 5), pytest.param(1000, 8, marks=pytest.mark.thorough)])


def problem(rng, contacts):
    """M and its inverse, velocities, rows (k, 3, nv) and µ of k contacts, up to so many, often with more rows than
    velocities.
    """
    k, nv = int(rng.integers(1, contacts + 1)), int(rng.integers(3, 13))
    root = rng.normal(size=(nv, nv))
    M = root @ root.T + 0.05 * np.eye(nv)
    J = rng.normal(size=(k, 3, nv))
    return M, np.linalg.inv(M), 3.0 * rng.normal(size=nv), J, rng.uniform(0.0, 2.0, k)


def packed(J):
    """Rows as kernels take them."""
    k, _, nv = J.shape
    rows = np.zeros((3 * k, nv + 2))
    rows[:, :nv] = J.reshape(3 * k, nv)
    return rows


def gain(M, before, after):
    """Gain of kinetic energy, relative to that before."""
    return (after @ M @ after) / (before @ M @ before) - 1.0


def outside(p, mu):
    """Excess over the cones, relative to the largest impulse."""
    return max((np.hypot(p[:, 1], p[:, 2]) - mu * p[:, 0]).max(), -p[:, 0].min()) / max(np.abs(p).max(), 1e-9)


def press(M, W, v, J, mu):
    """v after impulses of contacts held closed, and these; None without a solution."""
    k, nv = len(J), len(v)
    change, p = np.empty(nv), np.zeros((k, 3))
    solved = press_entry(M.reshape(-1), W.reshape(-1), v, J @ v, packed(J), np.full(k, np.inf), np.ones(k, dtype=bool),
                         mu, np.zeros((20, nv)), 1.0, 0.0, change, p, np.empty(nv, dtype=bool))
    return (v + change, p) if solved else None


@each_count
def test_impacts_never_add_energy(count, contacts):
    """Signorini's, Coulomb's and at most Newton's law of the velocities after them; few are refused, which jam."""
    rng, bounced, refused = np.random.default_rng(count), 0, 0
    for i in range(count):
        M, W, v, J, mu = problem(rng, contacts)
        after, p, e = v.copy(), np.zeros((len(J), 3)), rng.uniform(0.0, 1.0, len(J))
        if not strike_entry(M.reshape(-1), W.reshape(-1), packed(J), mu, e, after, p):
            refused += 1
            assert (after == v).all() and 3 * len(J) > len(v), i
            continue
        assert gain(M, v, after) <= 1e-9, i
        speed = np.abs(J @ v).max()
        assert outside(p, mu) < 1e-8 and (J[:, 0] @ after).min() > -1e-8 * speed, i
        np.testing.assert_allclose(M @ (after - v), np.einsum("ijk,ij->k", J, p), atol=1e-7 * np.abs(M @ v).max())
        rates, rise = J[:, 0] @ v, J[:, 0] @ after
        assert (rise[p[:, 0] > 0.0] <= (e * np.maximum(-rates, 0.0))[p[:, 0] > 0.0] + 1e-8 * speed).all(), i
        bounced += (rise > 0.1 * speed).any()
    assert bounced > 0.1 * count and refused < 0.03 * count


@each_count
def test_power_of_contacts_held_closed_is_never_positive(count, contacts):
    """λ · w ≤ 0 at each contact, opposite to the slip, as by the dense search, and the same motion if µ is small."""
    rng, slid, compared, refused = np.random.default_rng(count), 0, 0, 0
    for i in range(count):
        M, W, v, J, mu = problem(rng, contacts)
        mu *= rng.choice([0.05, 1.0])
        solved = press(M, W, v, J, mu)
        if solved is None:
            refused += 1
            assert 3 * len(J) > len(v), i
            continue
        after, p = solved
        w, speed, most = J @ after, np.abs(J @ v).max(), max(np.abs(p).max(), 1e-9)
        assert (p * w).sum(axis=1).max() <= 1e-9 * speed * most and gain(M, v, after) <= 1e-9, i
        assert outside(p, mu) < 1e-8 and w[:, 0].min() > -1e-8 * speed, i
        assert np.abs(p[:, 0] * w[:, 0]).max() < 1e-8 * speed * most, i
        slip = np.hypot(w[:, 1], w[:, 2])
        loss = -(p[:, 1:] * w[:, 1:]).sum(axis=1)
        np.testing.assert_allclose(loss, mu * p[:, 0] * slip, atol=1e-7 * speed * most)    # maximum dissipation
        slid += (slip[p[:, 0] > 0.0] > 0.1 * speed).any()
        if mu.max() < 0.1 and (dense := press(M[:0], W, v, J, mu)) is not None:
            compared += 1
            np.testing.assert_allclose(after, dense[0], atol=1e-9 * np.abs(v).max())
    assert slid > 0.3 * count and compared > 0.3 * count and refused < 0.01 * count


def test_where_the_lowest_of_ten_boxes_is_pulled_away():
    """Floor and neighbours slide, 60 contacts hold: cones, gaps, energy, and momentum by pull and friction."""
    size, mu, pull, h = (0.2,) * 3, 0.5, 150.0, 1e-3
    model = free(*[box(1.0, size) for _ in range(10)])
    contacts = list(rbd.box_contacts(FLOOR, "body_0", size, friction=mu))
    for i in range(1, 10):
        top, bottom = (rbd.Plane(f"body_{k}", frame, size=size[:2]) for k, frame in (
            (i - 1, [0, 0, 0.1]), (i, [[0, 0, -0.1], [np.pi, 0, 0]])))
        contacts += rbd.box_contacts(top, f"body_{i}", size, friction=mu)
        contacts += rbd.box_contacts(bottom, f"body_{i - 1}", size, friction=mu, name=f"under_{i}")
    effort = np.zeros(60)
    effort[3] = pull
    for integrator in ("semi_implicit", "rk4"):
        simulator = rbd.Simulator(model, contacts=contacts, q=at(*[[0, 0, 0.1 + 0.2 * i] for i in range(10)]),
                                  integrator=integrator, step=h)
        momentum, start = 0.0, simulator.energy
        for _ in range(12):
            simulator.step(effort)
            floor = np.zeros(3)
            for contact in simulator.contacts:
                push = contact.force @ contact.normal
                rub = np.linalg.norm(contact.force - push * contact.normal)
                assert push > -1e-6 and rub < mu * push + 1e-6
                assert contact.gap > -1e-8 or contact.state == "open"    # beside a face, gaps are no depths
                floor += contact.force * contact.name.startswith("body_0/")
            gained = simulator.v[3::6].sum() - momentum
            momentum += gained
            assert gained == pytest.approx((pull + floor[0]) * h, rel=2e-3)
            assert floor[0] == pytest.approx(-mu * floor[2], rel=1e-6)
        assert {contact.state for contact in simulator.contacts} == {"open", "sticking", "sliding"}
        assert simulator.energy - start < pull * simulator.q[0]


def smooth(kind, rng):
    """Model, contacts, q, v of a motion that keeps its energy, and how long it remains smooth (s)."""
    size, radius, bowl = (0.2,) * 3, 0.1, 1.5
    if kind == "flight":
        model = free(box(1.0, (0.2, 0.25, 0.15)))
        return model, rbd.box_contacts(FLOOR, "body_0", size), at([0, 0, 20.0]), 5.0 * rng.normal(size=6), 0.4
    if kind == "pivoting":
        angle = rng.uniform(0.3, 0.6)
        q = np.array([0, 0, 0.1 * (np.cos(angle) + np.sin(angle)), 0, np.sin(angle / 2), 0, np.cos(angle / 2)])
        return free(box(1.0, size)), rbd.box_contacts(FLOOR, "body_0", size, friction=2.0), q, np.zeros(6), 0.04
    angle, way = rng.uniform(0.1, 0.3), np.array([0.0, rng.uniform(0.5, 1.0), 0.0])
    normal = np.array([-np.sin(angle), 0.0, np.cos(angle)])
    spin = np.cross(normal, way) / radius if kind == "rolling" else np.zeros(3)
    contact = rbd.UnilateralContact(rbd.Sphere("base", bowl, [0, 0, bowl], inside=True), rbd.Sphere("body_0", radius),
                                    friction={"rolling": 2.0, "braked": 0.05}.get(kind, 0.0))
    q = at(np.array([0, 0, bowl]) - (bowl - radius) * normal)
    return free(ball(0.7, radius)), [contact], q, np.concatenate([spin, way]), 0.4


# motions whose steps gain a h³ + b h⁴ of opposite signs, about equal at 1 to 2 ms, so that no slope shows there; both
# lose less than a tenth of what others lose
CANCELLING = {("rolling", 21), ("rolling", 26)}


@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 30)]])
@pytest.mark.parametrize("integrator", ["variational", "semi_implicit", "rk4"])
@pytest.mark.parametrize("kind", ["flight", "sliding", "rolling", "pivoting"])
def test_energy_of_smooth_motions_drifts_with_the_order_of_the_step(kind, integrator, seed):
    """Order 2 by time stepping, 4 by RK4; contacts add nothing."""
    drift, steps = [], (2e-3, 1e-3, 5e-4)
    for step in steps:
        model, contacts, q, v, time = smooth(kind, np.random.default_rng(seed))
        simulator = rbd.Simulator(model, contacts=list(contacts), q=q, v=v, integrator=integrator, step=step)
        start, present, change = simulator.energy, 0.0, []
        for _ in range(round(time / 8e-3)):
            simulator.step(n=round(8e-3 / step))
            present = max(present, rbd.kinetic_energy(model, simulator.q, simulator.v))
            change.append(simulator.energy - start)
        drift.append(np.abs(change).max() / present)
        if integrator != "rk4" and kind != "flight":
            assert max(change) <= 1e-9 * present
    order = 4 if integrator == "rk4" else 2
    assert drift[0] < (1e-7 if order == 4 else 1e-4)
    for step, (coarse, fine) in zip(steps[1:], pairwise(drift), strict=True):
        if order == 2 and (kind, seed) in CANCELLING:
            assert fine < 0.02 * step ** 2
        else:
            assert fine < 1e-9 or coarse / fine > 2.0 ** (order - 0.3)


@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 10)]])
@pytest.mark.parametrize("integrator", ["variational", "semi_implicit"])
@pytest.mark.parametrize("kind", ["sliding", "braked", "rolling", "pivoting"])
def test_smooth_motions_converge_to_those_of_rk4_with_order_2(kind, integrator, seed):
    """Braked: sliding with friction, on a way that turns."""
    ends = []
    for name, step in (("rk4", 2.5e-4), (integrator, 2e-3), (integrator, 1e-3), (integrator, 5e-4)):
        model, contacts, q, v, time = smooth(kind, np.random.default_rng(seed))
        simulator = rbd.Simulator(model, contacts=list(contacts), q=q, v=v, integrator=name, step=step)
        simulator.step(n=round(min(time, 0.12) / step))
        ends.append(np.append(simulator.q, simulator.v))
    off = [np.abs(end - ends[0]).max() for end in ends[1:]]
    assert off[0] < 1e-3
    assert min(coarse / fine for coarse, fine in pairwise(off)) > 2.0 ** 1.8

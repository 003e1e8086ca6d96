"""Random bodies thrown onto a level or inclined floor: energy that contacts add, depth, and forces beyond cones.

Balls and cubes fly exactly, so that contacts alone may change the energy. Surfaces, friction, restitution, steps and
integrators at random; the energy present is the kinetic one and that of a fall of a metre.
"""
import numpy as np
import pytest
from support.loose import FLOOR, G, at, ball, box, free

import rbd_ros as rbd


def scene(rng, kinds):
    """Model, contacts, q, v and weight (N) of one to three bodies; single balls touch the floor alone."""
    bodies, contacts, balls, places = [], [], [], []
    for i in range(int(rng.integers(1, 4))):
        options = {"friction": rng.choice([0.0, 0.2, 0.5, 1.5]), "restitution": rng.choice([0.0, 0.3, 1.0])}
        mass, link = rng.uniform(0.2, 2.0), f"body_{i}"
        kind = rng.choice(kinds)
        if kind == "cube":
            bodies.append(box(mass, (0.2,) * 3))
            contacts += rbd.box_contacts(FLOOR, link, (0.2,) * 3, **options)
        else:
            bodies.append(ball(mass, 0.1))
            surface = rbd.Sphere(link, 0.1)
            contacts += [rbd.UnilateralContact(other, surface, **options) for other in [FLOOR, *balls]]
            balls += [surface] if kind == "ball" else []
        places.append([0.24 * (i - 1), 0.05 * rng.normal(), 0.18 + 0.1 * rng.random()])
    angle = float(rng.choice([0.0, 0.3]))
    model = free(*bodies, gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)))
    q = at(*places).reshape(-1, 7)
    q[:, 3:] = rng.normal(size=(len(q), 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    v = rng.normal(size=(len(q), 6)) * [3, 3, 3, 1, 1, 1]
    return model, contacts, q.ravel(), v.ravel(), G * sum(mass for mass, _ in bodies)


def walk(seed, integrator, kinds, steps):
    """Largest gain of energy in a stretch, relative; depth (m) and excess over the cone, relative to the weight."""
    rng = np.random.default_rng(seed)
    model, contacts, q, v, weight = scene(rng, kinds)
    simulator = rbd.Simulator(model, contacts=contacts, q=q, v=v, integrator=integrator, step=float(rng.choice(steps)))
    gained = deep = outside = 0.0
    energy, touched = simulator.energy, False
    for _ in range(60):
        simulator.step(n=int(rng.integers(1, 6)))
        present = rbd.kinetic_energy(model, simulator.q, simulator.v) + weight
        gained, energy = max(gained, (simulator.energy - energy) / present), simulator.energy
        for contact, declared in zip(simulator.contacts, contacts, strict=True):
            push = contact.force @ contact.normal
            rub = np.linalg.norm(contact.force - push * contact.normal)
            deep, touched = max(deep, -contact.gap), touched or contact.state != "open"
            outside = max(outside, (rub - declared.friction * push) / weight, -push / weight)
    return gained, deep, outside, touched


each_count = pytest.mark.parametrize("count", [3, pytest.param(200, marks=pytest.mark.thorough)])
MANY, BALLS = ["ball", "cube"], ["single ball"]


def judge(count, integrator, kinds, steps, most, excess):
    """Of so many walks: gains of energy below `most`, relative, forces beyond the cone below `excess` weights."""
    touched = 0
    for seed in range(count):
        gained, deep, outside, touches = walk(seed, integrator, kinds, steps)
        assert gained < most and deep < 1e-8 and outside < excess, (seed, gained, deep, outside)
        touched += touches
    assert touched > 0.1 * count


@each_count
@pytest.mark.parametrize("integrator", ["variational", "semi_implicit"])
def test_balls_on_a_floor_gain_nothing_by_time_stepping(integrator, count):
    judge(count, integrator, BALLS, [1e-3, 2e-3, 1e-2], 1e-9, 1e-8)


@each_count
@pytest.mark.parametrize("integrator", ["variational", "semi_implicit"])
def test_corners_and_balls_on_balls_gain_nothing_by_time_stepping(integrator, count):
    """Also while a corner pivots or a curved surface slides."""
    judge(count, integrator, MANY, [1e-3, 2e-3], 1e-9, 1e-8)


@pytest.mark.parametrize("seed", [96, 187, 1275, 2275])
def test_gaps_and_energy_where_impacts_follow_each_other(seed):
    """Corners that others push in are closed, too, and impulses in a search of an impact add nothing."""
    gained, deep, _, touched = walk(seed, "variational", MANY, [1e-3, 2e-3])
    assert gained < 1e-9 and deep < 1e-8 and touched


@pytest.mark.parametrize(("seed", "integrator"), [(2768, "semi_implicit"), (2787, "variational")])
def test_steps_whose_energy_no_share_mends_are_made_in_parts(seed, integrator):
    """A corner that sticks and pivots; in whole steps 1.7e-9 and 2.2e-9 of energy appear."""
    gained, deep, _, touched = walk(seed, integrator, MANY, [1e-3, 2e-3])
    assert gained < 1e-9 and deep < 1e-8 and touched


@each_count
@pytest.mark.parametrize(("kinds", "steps"), [(["ball"], [1e-3, 2e-3]), (MANY, [5e-4, 1e-3])])
def test_rk4_gains_nothing(kinds, steps, count):
    """Also where a contact with much friction lets go with a jump of its force."""
    judge(count, "rk4", kinds, steps, 1e-9, 1e-8)


@pytest.mark.parametrize("seed", [172, 371])
def test_a_contact_that_lets_go_with_a_jump_is_an_event(seed):
    """Of two balls: what sticks by much friction has no sliding to go to; without an event 2e-8 of energy appear."""
    gained, _, _, touched = walk(seed, "rk4", ["ball"], [1e-3, 2e-3])
    assert gained < 1e-11 and touched


def slow_scene(rng):
    """Model, contacts, q, v and weight (N) of a box or a ball on a slope about as steep as friction bears, turning and
    sliding by 1e-4 to 0.1 m/s.
    """
    friction, speed = float(rng.choice([0.2, 0.5, 1.0])), 10.0 ** rng.uniform(-4.0, -1.0)
    angle = float(rng.choice([0.0, 0.15, np.arctan(friction) * rng.uniform(0.8, 1.1)]))
    v = np.append(10.0 * speed * rng.normal(size=3), [*(speed * rng.normal(size=2)), 0.0])
    if rng.random() < 0.4:
        body, contacts = ball(1.0, 0.1), [rbd.UnilateralContact(FLOOR, rbd.Sphere("body_0", 0.1), friction=friction)]
    else:
        size, v[:2] = (0.2, 0.2, 0.2), 0.0
        body, contacts = box(1.0, size), rbd.box_contacts(FLOOR, "body_0", size, friction=friction)
    model = free(body, gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)))
    return model, contacts, at([0.0, 0.0, 0.1]), v, G


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.thorough)])
def test_slow_sliding_that_turns_stays_on_its_cone(count):
    """By rk4, and adds no energy; fine steps lead nearly there, on average to order 1."""
    off = []
    for seed in range(count):
        model, contacts, q, v, weight = slow_scene(np.random.default_rng(seed))
        ends = []
        for step, n in ((1e-3, 30), (2.5e-4, 120), (3.125e-5, 960)):
            simulator = rbd.Simulator(model, contacts=contacts, q=q, v=v, integrator="rk4", step=step)
            energy = simulator.energy
            for _ in range(30):
                simulator.step(n=n // 30)
                assert simulator.energy <= energy + 1e-9 * weight, seed
                energy = simulator.energy
                for contact, declared in zip(simulator.contacts, contacts, strict=True):
                    push = contact.force @ contact.normal
                    rub = np.linalg.norm(contact.force - push * contact.normal)
                    assert rub <= declared.friction * push + 1e-8 * weight, seed
            ends.append(simulator.q)
        off.append([np.abs(end - ends[-1]).max() for end in ends[:2]])
    coarse, fine = np.mean(off, axis=0)
    assert coarse < 3e-6 and fine < 0.4 * coarse


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit"])
@pytest.mark.parametrize("seed", range(4))
def test_without_the_kernel_each_step_is_the_same(integrator, seed):
    """As contacts with closed loops are followed; but for the weights of the projection onto gaps."""
    model, contacts, q, v, weight = scene(np.random.default_rng(seed), MANY)
    fast, plain = (rbd.Simulator(model, contacts=contacts, q=q, v=v, integrator=integrator, step=2e-3) for _ in "ab")
    plain._many = None
    fast.step(n=100)
    q, v, touched = fast.q, fast.v, 0
    for _ in range(80):
        for each in (plain, fast):
            each.reset(q, v)
            each.step()
        q, v = fast.q, fast.v
        np.testing.assert_allclose(plain.q, q, rtol=0, atol=2e-6)
        np.testing.assert_allclose(plain.v, v, rtol=0, atol=2e-5)
        for one, other in zip(plain.contacts, fast.contacts, strict=True):
            assert one.state == other.state
            np.testing.assert_allclose(one.impulse, other.impulse, rtol=0, atol=1e-5)
            np.testing.assert_allclose(one.force, other.force, rtol=0, atol=1e-4 * weight)
            touched += one.state != "open"
    assert touched > 20


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit", "rk4"])
@pytest.mark.parametrize("seed", range(4))
def test_steps_have_the_same_bits_however_they_are_shared_out(integrator, seed):
    rng = np.random.default_rng(seed)
    model, contacts, q, v, _ = scene(rng, MANY)
    many, single = (rbd.Simulator(model, contacts=contacts, q=q, v=v, integrator=integrator, step=1e-3) for _ in "ab")
    for n in rng.integers(1, 60, 15):
        many.step(n=int(n))
        for _ in range(n):
            single.step()
        assert np.array_equal(many.q, single.q) and np.array_equal(many.v, single.v)


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit"])
def test_an_impact_at_the_end_of_a_step_acts_once(integrator):
    """A ball reaches the floor after 20 steps, up to rounding: some of these falls end within 1e-12 of a step."""
    model, surface, speed = free(ball(1.0, 0.1)), rbd.Sphere("body_0", 0.1), 0.02 * G
    contacts = [rbd.UnilateralContact(FLOOR, surface, friction=0.0, restitution=0.5)]
    ends = 0
    for k in range(40):
        height = 0.1 + 0.5 * G * 0.02 ** 2 - 2.5e-16 * (k + 30)
        simulator = rbd.Simulator(model, contacts=contacts, q=at([0, 0, height]), integrator=integrator, step=1e-3)
        simulator.step(n=19)
        impulse = 0.0
        for i in range(2):
            simulator.step()
            impulse += simulator.contacts[0].impulse[2]
            ends += i == 0 and impulse > 0.0
        assert impulse == pytest.approx(1.5 * speed, rel=1e-9)
        assert simulator.v[5] == pytest.approx(0.5 * speed - 1e-3 * G, rel=1e-9)
    assert ends > 0

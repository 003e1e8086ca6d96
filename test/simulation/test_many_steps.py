"""Many steps in one compiled call are those that `Simulator` makes one by one, of any robot, up to what ends a call."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from simulation import robots
from support.loose import at, box, free, scene
from support.robots import chain
from support.trees import mimic_tree

import rbd_ros as rbd
from rbd_ros import Simulator
from rbd_ros.core.simulation.modes import Modes

INTEGRATORS = ("variational", "semi_implicit", "rk4")


def random_case(rng, *kinds):
    """A robot of these with some friction, its keywords, and a state in motion."""
    model = kinds[rng.integers(len(kinds))]
    inner = np.ones(model.nv)
    for joint in model.joints:
        if joint.nq != joint.nv:    # of a floating robot nothing rubs
            inner[joint.idx_v:joint.idx_v + joint.nv] = 0.0
    model = model.with_(damping=inner * rng.choice([0.0, 0.3]), friction=inner * rng.choice([0.0, 0.5]))
    law = None
    if model.friction.any() and rng.random() < 0.5:
        law = rbd.Friction(coulomb=model.friction, breakaway=1.5 * model.friction, stribeck_velocity=0.1)
    keywords = {"limits": bool(rng.random() < 0.7), "velocity_limits": bool(rng.random() < 0.3), "friction": law,
                "step": float(rng.choice([1e-3, 5e-3]))}
    q = model.integrate(model.neutral(), 0.3 * rng.standard_normal(model.nv))
    return model, keywords, q, rng.standard_normal(model.nv), inner


def one_by_one(*arguments, **keywords):
    simulator = Simulator(*arguments, **keywords)
    simulator._many = None
    if simulator.integrator == "rk4" and simulator._constrained is None:
        simulator._modes = Modes(simulator.model, simulator._level, simulator._bounds)
    return simulator


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("seed", range(20))
def test_the_same_as_one_by_one(integrator, seed):
    compare(integrator, np.random.default_rng([seed, len(integrator)]), rbd.sample("iiwa"), rbd.sample("two_link"),
            robots.satellite(), chain("revolute", "spherical", "prismatic", "planar"))


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("seed", range(6))
def test_mimic_joints(integrator, seed):
    compare(integrator, np.random.default_rng([seed, len(integrator)]), mimic_tree(seed))


def compare(integrator, rng, *kinds):
    """Compiled steps of a random robot of these with steps one by one, compiled and not."""
    model, keywords, q, v, inner = random_case(rng, *kinds)
    low, high = model.position_lower, model.position_upper
    for joint in model.joints:
        if joint.nq == joint.nv:
            at = slice(joint.idx_q, joint.idx_q + joint.nq)
            q[at] = np.clip(q[at], low[at], high[at])
    if integrator == "rk4":
        keywords["step"] = 1e-3    # explicit
    keywords |= {"integrator": integrator, "q": q, "v": v}
    many, single, plain = Simulator(model, **keywords), Simulator(model, **keywords), one_by_one(model, **keywords)
    body = model.body_names[-1]
    for n in rng.integers(1, 30, 6):
        efforts = 2.0 * rng.standard_normal((n, model.nv) if rng.random() < 0.5 else (1, model.nv))
        wrenches = {body: rng.standard_normal(6)} if rng.random() < 0.5 else None
        brakes = inner * rng.choice([0.0, 0.0, 3.0])
        for each in (many, single, plain):
            each.brakes = brakes
        many.step(efforts if len(efforts) == n else efforts[0], int(n), wrenches)
        for k in range(n):
            for each in (single, plain):
                each.step(efforts[min(k, len(efforts) - 1)], 1, wrenches)
        assert np.array_equal(many.q, single.q) and np.array_equal(many.v, single.v)    # however steps are shared out
        scale = 1.0 + np.abs(plain.v).max()
        np.testing.assert_allclose(many.q, plain.q, rtol=0, atol=1e-9 * scale)
        np.testing.assert_allclose(many.v, plain.v, rtol=0, atol=1e-8 * scale)
        assert many.steps == plain.steps


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_functions_of_time(integrator):
    rng = np.random.default_rng(3)
    model = rbd.sample("iiwa").with_(friction=np.full(7, 0.5))
    keywords = {"integrator": integrator, "v": rng.standard_normal(7)}
    amplitude, phase = rng.standard_normal((2, 7))
    many, plain = Simulator(model, **keywords), one_by_one(model, **keywords)
    for each in (many, plain):
        each.step(lambda t: 5.0 * amplitude * np.sin(9.0 * t + phase), 400)
    np.testing.assert_allclose(many.q, plain.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(many.v, plain.v, rtol=0, atol=1e-9)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_functions_of_time_may_read_the_state_at_the_start_of_each_step(integrator):
    simulator, seen = Simulator(rbd.sample("two_link"), integrator=integrator), []
    simulator.step(lambda t: seen.append(simulator.steps) or -simulator.v, 5)
    assert sorted(set(seen)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("integrator", "limits"), [
    *((integrator, {}) for integrator in INTEGRATORS),
    *((integrator, {"velocity_limits": True}) for integrator in INTEGRATORS if integrator != "rk4")])
def test_compiled_steps_take_over_where_they_can(integrator, limits, monkeypatch):
    model = rbd.sample("iiwa").with_(friction=np.full(7, 0.1), damping=np.full(7, 3.0),
                                   armature=np.full(7, 0.5), gravity=np.zeros(3))
    simulator = Simulator(model, integrator=integrator, **limits)
    monkeypatch.setattr(simulator, "_advance", None)    # would fail
    simulator.step([10.0, 0.0, 0.0, 10.0, 0.0, 0.0, 0.0], 3000)
    assert simulator.steps == 3000
    at_stops = np.isclose(simulator.q, model.position_upper, rtol=0, atol=1e-3)
    assert at_stops.sum() >= 2, simulator.q


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_earlier_views_keep_their_state(integrator):
    simulator = Simulator(rbd.sample("iiwa"), integrator=integrator, v=np.ones(7))
    q, v = simulator.q, simulator.v
    kept = q.copy(), v.copy()
    simulator.step(n=10)
    assert np.array_equal(q, kept[0]) and np.array_equal(v, kept[1])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_state_that_is_not_finite_is_refused_and_the_steps_before_stay(integrator):
    efforts = np.zeros((10, 7))
    efforts[6:] = 1e308
    simulator = Simulator(rbd.sample("iiwa"), integrator=integrator, limits=False)
    with pytest.raises(rbd.RbdError, match=r"diverged at 0\.00"):
        simulator.step(efforts, 10)
    assert 6 <= simulator.steps < 10 and np.isfinite(simulator.v).all()


@pytest.mark.parametrize("shape", [(3, 7), (5,), (2, 2, 7), (1, 5)])
def test_efforts_of_another_shape(shape):
    with pytest.raises(rbd.RbdError, match="effort"):
        Simulator(rbd.sample("iiwa")).step(np.zeros(shape), 4)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize(("name", "rubs"), [("four_bar", True), ("five_bar", True), ("five_bar", False),
                                            ("delta", False), ("stewart", False), ("biped", False)])
def test_closed_loops(name, rubs, integrator, monkeypatch):
    """Redundant rows among them; with damping, dry friction in one joint, a stop, brakes and wrenches, or free."""
    model, rng = rbd.sample(name), np.random.default_rng(2)
    constraints = rbd.sample_constraints(name, model)
    model = model.with_(damping=0.2 * rubs, friction=0.1 * rubs * (np.arange(model.nv) == 0))
    keywords = {"integrator": integrator, "constraints": constraints, "limits": False, "v": rng.normal(size=model.nv)}
    many, single, plain = Simulator(model, **keywords), Simulator(model, **keywords), one_by_one(model, **keywords)
    for each in (many, single):
        monkeypatch.setattr(each, "_step", None)    # would fail
    body = model.body_names[-1]
    for n in (20, 15):
        efforts = rng.normal(size=(n, model.nv))
        wrenches = {body: rng.standard_normal(6)} if rubs else None
        many.step(efforts, n, wrenches)
        for k in range(n):
            for each in (single, plain):
                each.step(efforts[k], 1, wrenches)
        assert np.array_equal(many.q, single.q) and np.array_equal(many.v, single.v)
        scale = 1.0 + np.abs(plain.v).max()
        np.testing.assert_allclose(many.q, plain.q, rtol=0, atol=1e-10 * scale)
        np.testing.assert_allclose(many.v, plain.v, rtol=0, atol=1e-10 * scale)
        np.testing.assert_allclose(many.multipliers, plain.multipliers, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_mechanism_at_its_stops(integrator):
    """What a stop holds, all joints of the loop know of, compiled or not."""
    model = rbd.sample("five_bar")
    constraints = rbd.sample_constraints("five_bar", model)
    joints = [dataclasses.replace(joint, lower=-0.3, upper=0.2) for joint in model.description.joints]
    model = rbd.RobotModel.from_description(dataclasses.replace(model.description, joints=tuple(joints)))
    many, plain = (each(model, integrator=integrator, constraints=constraints) for each in (Simulator, one_by_one))
    for each in (many, plain):
        each.step([5.0, 0.0, 0.0, 5.0, 0.0], 600)
    assert (np.isclose(many.q, -0.3, rtol=0, atol=1e-3) | np.isclose(many.q, 0.2, rtol=0, atol=1e-3)).any(), many.q
    np.testing.assert_allclose(many.q, plain.q, rtol=0, atol=1e-8)
    np.testing.assert_allclose(many.v, plain.v, rtol=0, atol=1e-8)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("integrator", ["variational", "rk4"])
def test_steps_with_contacts(integrator, seed):
    """Of bodies that fall, bounce, roll, slide and rest, behind an arm or not."""
    model, contacts, q, v = scene(seed)
    keywords = {"contacts": contacts, "q": q, "v": v, "step": 2e-3, "integrator": integrator}
    many, single, compiled = (Simulator(model, **keywords) for _ in range(3))
    plain = one_by_one(model, **keywords)
    # In scene 7 two corners rock, with impacts down to 4e-7 m/s, which is the resolution of gaps of 1e-14 m: rounding
    # decides which of them presses last.
    close = 1e-5 if (integrator, seed) == ("variational", 7) else 1e-6
    for _ in range(30):
        for each in (compiled, plain):
            each.reset(many.q, many.v)    # chaos would part them
        many.step(n=10)
        compiled.step(n=10)
        for _ in range(10):
            single.step()
            plain.step()
        assert np.array_equal(many.q, single.q) and np.array_equal(many.v, single.v)
        scale = 1.0 + np.abs(plain.v).max()
        np.testing.assert_allclose(compiled.q, plain.q, rtol=0, atol=1e-9 * scale)
        np.testing.assert_allclose(compiled.v, plain.v, rtol=0, atol=1e-8 * scale)
        for one, other in zip(compiled.contacts, plain.contacts, strict=True):
            assert one.state == other.state
            np.testing.assert_allclose(one.force, other.force, atol=close * scale)


def test_corners_that_rock():
    """A corner that opens from a depth within tolerance does not close at once, again and again."""
    model, contacts, q, v = scene(7)
    keywords = {"contacts": contacts, "q": q, "v": v, "step": 2e-3, "integrator": "variational"}
    many, compiled, plain = Simulator(model, **keywords), Simulator(model, **keywords), one_by_one(model, **keywords)
    many.step(n=190)
    for each in (compiled, plain):
        each.reset(many.q, many.v)
        each.step(n=10)
    np.testing.assert_allclose(compiled.v, plain.v, rtol=0, atol=1e-9 * (1.0 + np.abs(plain.v).max()))


@pytest.mark.parametrize("seeds", [(2, 7), pytest.param(range(8), marks=pytest.mark.thorough)], ids=["two", "all"])
@pytest.mark.parametrize("integrator", ["variational", "rk4"])
def test_compiled_steps_take_over_what_bounces(integrator, seeds, monkeypatch):
    impacts = 0
    for seed in seeds:
        model, contacts, q, v = scene(seed)
        simulator = Simulator(model, contacts=contacts, q=q, v=v, step=2e-3, integrator=integrator)
        monkeypatch.setattr(simulator, "_step", None)    # would fail
        for _ in range(300):
            simulator.step()
            impacts += any(contact.impulse.any() for contact in simulator.contacts)
    assert impacts > 3.75 * len(seeds)


@pytest.mark.parametrize("speed", [0.0, 1.0])
@pytest.mark.parametrize(("integrator", "error"), [("variational", 1e-3), ("rk4", 1e-9)])
def test_compiled_steps_take_over_where_contacts_stay(integrator, error, speed, monkeypatch):
    size = (0.2, 0.3, 0.4)
    contacts = rbd.box_contacts(rbd.Plane("base"), "body_0", size, friction=0.1)
    simulator = Simulator(free(box(2.0, size)), q=at([0.0, 0.0, 0.2]), v=[0.0, 0.0, 0.0, speed, 0.0, 0.0],
                          integrator=integrator, contacts=contacts)
    monkeypatch.setattr(simulator, "_step", None)    # would fail
    simulator.step(n=3000)
    states = {contact.state for contact in simulator.contacts}
    assert states == {"open", "sticking"} and simulator.q[0] == pytest.approx(
        speed**2 / (2.0 * 0.1 * 9.81), abs=error)

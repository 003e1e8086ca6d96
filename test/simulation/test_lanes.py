"""`rbd.simulate` of a specialised model: the same motions by vector lanes, to rounding."""
from __future__ import annotations

import numpy as np
import pytest
from simulation import robots
from support.robots import chain

import rbd_ros as rbd
from rbd_ros.core.simulation import simulate as module

pytestmark = pytest.mark.skipif(not rbd.COMPILED, reason="specialize needs numba")
N, STEPS = 150, 40
ROBOTS = {"iiwa": lambda: rbd.sample("iiwa"), "two_link": lambda: rbd.sample("two_link"), "satellite": robots.satellite,
          "chain": lambda: chain("revolute", "spherical", "prismatic", "planar")}


def states(model, count=N, speed=1.0):
    rng = np.random.default_rng(3)
    q = [model.integrate(model.neutral(), 0.3 * rng.standard_normal(model.nv)) for _ in range(count)]
    return np.array(q), speed * rng.standard_normal((count, model.nv)), rng


def both(model, q, v, efforts=None, **keywords):
    keywords = {"step": 2e-3, "n": STEPS, "stride": 10, "integrator": "semi_implicit"} | keywords
    return [rbd.simulate(each, q, v, efforts, **keywords) for each in (model, rbd.specialize(model))]


def assert_close(one, two):
    scale = 1.0 + np.abs(one.v).max()
    np.testing.assert_allclose(two.q, one.q, rtol=0, atol=1e-10 * scale)
    np.testing.assert_allclose(two.v, one.v, rtol=0, atol=1e-9 * scale)


@pytest.fixture
def calls(monkeypatch):
    """Names of the kernels that run, once for each call."""
    names = []
    for name in ("motions", "motions_in_lanes"):
        entry = getattr(module, name)
        entry.compile()
        monkeypatch.setattr(entry, "call", lambda *x, name=name, call=entry.call: names.append(name) or call(*x))
    return names


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("damping", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["none", "one", "state", "step", "each", "law"])
def test_the_same_motions(name, damping, kind, calls):
    model = ROBOTS[name]().with_(damping=damping, friction=0.0)
    q, v, rng = states(model)
    shapes = {"one": (1, 1), "state": (N, 1), "step": (1, STEPS), "each": (N, STEPS)}
    efforts = rng.standard_normal((*shapes[kind], model.nv)) if kind in shapes else None
    if kind == "law":
        efforts = rbd.PDLaw(0.5, 0.01, q[:, None], rng.standard_normal((1, STEPS, model.nv)), limited=True, period=2,
                            delay=1)
    one, two = both(model, q, v, efforts, limits=False)
    assert_close(one, two)
    assert set(calls) == {"motions", "motions_in_lanes"}


def test_states_at_their_limits(calls):
    """Stops and velocity limits act in some states, at some times."""
    model = rbd.sample("iiwa").with_(friction=0.0, damping=0.0, gravity=np.zeros(3))
    q, v, _ = states(model)
    q[::2, 3] = 0.99 * model.position_upper[3]
    one, two = both(model, q, v, velocity_limits=True)
    assert_close(one, two)
    free = both(model, q, v, limits=False)[0]
    acted = np.abs(free.v[:, -1] - one.v[:, -1]).max(axis=1) > 1e-3
    assert 20 < acted.sum() < N and (one.q[:, :, 3] <= model.position_upper[3]).all() and "motions_in_lanes" in calls


@pytest.mark.parametrize(("friction", "wrenches", "integrator"), [
    (0.1, None, "semi_implicit"), (0.0, {"link_7": [0, 0, 0, 1, 0, 0]}, "semi_implicit"), (0.0, None, "variational"),
    (0.0, None, "rk4")])
def test_what_lanes_do_not_have_is_state_by_state(friction, wrenches, integrator, calls):
    model = rbd.sample("iiwa").with_(friction=friction)
    one, two = both(model, *states(model)[:2], external_wrenches=wrenches, integrator=integrator, limits=False)
    assert_close(one, two)
    assert set(calls) == {"motions"}
    if wrenches or integrator == "variational":    # no specialised code
        assert np.array_equal(one.q, two.q)


def test_states_beyond_the_code_are_those_of_the_ordinary_kernel():
    model = rbd.sample("iiwa").with_(friction=0.0, damping=0.0)
    q, v, _ = states(model)
    q[::3, 1] = 1e7    # angles beyond 8e5
    one, two = both(model, q, v, limits=False)
    assert_close(one, two)
    assert np.array_equal(one.v[::3], two.v[::3])


def test_the_same_bits_however_states_are_shared_out(monkeypatch):
    model = rbd.specialize(rbd.sample("iiwa").with_(friction=0.0))
    q, v, rng = states(model)
    efforts = rng.standard_normal((N, STEPS, 7))

    def run(rows=slice(None), **keywords):
        return rbd.simulate(model, q[rows], v[rows], efforts[rows], n=STEPS, integrator="semi_implicit", **keywords)

    whole = run()
    for threads in (2, 3):
        assert np.array_equal(run(threads=threads).q, whole.q)
    monkeypatch.setattr(module, "AT_ONCE", 1)
    assert np.array_equal(run(threads=2).v, whole.v)
    for rows in (slice(0, 1), slice(3, 12), slice(60, 130), slice(149, 150)):
        assert np.array_equal(run(rows).q, whole.q[rows]) and np.array_equal(run(rows).v, whole.v[rows])
    one = rbd.simulate(model, q[5], v[5], efforts[5], n=STEPS, integrator="semi_implicit")
    assert np.array_equal(one.q, whole.q[5])


def test_a_state_that_diverges_is_named():
    model = rbd.specialize(rbd.sample("iiwa").with_(friction=0.0))
    q, v, _ = states(model, 20)
    efforts = np.zeros((20, 1, 7))
    efforts[7] = 1e300
    with pytest.raises(rbd.RbdError, match="state 7: simulation diverged"):
        rbd.simulate(model, q, v, efforts, n=STEPS, integrator="semi_implicit")

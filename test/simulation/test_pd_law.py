"""`rbd.PDLaw` in `rbd.simulate`: the law in Python between steps of `Simulator`, and oscillators in closed form."""
from __future__ import annotations

import dataclasses
from collections import deque

import numpy as np
import pytest
from simulation import robots
from support.loose import scene
from support.robots import chain

import rbd_ros as rbd

INTEGRATORS = ("variational", "semi_implicit", "rk4")
H = 2e-3


def by_hand(model, q, v, law, n, **keywords):
    """Of one state, (n + 1, …), with q, v and effort of the law (n, …)."""
    robot = rbd.Simulator(model, step=H, q=q, v=v, **keywords)
    limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf) if law.limited else np.inf
    coming, states = deque([law.effort[0] if law.initial is None else law.initial] * law.delay), [(robot.q, robot.v)]
    for s in range(n):
        if s % law.period == 0:
            effort = law.effort[s] + law.kp * model.difference(robot.q, law.q[s]) + law.kd * (law.v[s] - robot.v)
        coming.append(effort)
        robot.step(np.clip(coming.popleft(), -limit, limit))
        states.append((robot.q, robot.v))
    return [np.array(x) for x in zip(*states, strict=True)]


def case(seed, n, count):
    """A robot, states, and a law with a reference of each state and step."""
    rng = np.random.default_rng(seed)
    model = (rbd.sample("iiwa"), robots.satellite(), chain("revolute", "spherical", "prismatic", "planar"))[seed % 3]
    q, aim = ([model.integrate(model.neutral(), 0.3 * rng.standard_normal(model.nv)) for _ in range(size)]
              for size in (count, count * n))
    law = rbd.PDLaw(0.5 * rng.random(model.nv), 0.02 * rng.random(model.nv), np.reshape(aim, (count, n, model.nq)),
                    rng.standard_normal((count, n, model.nv)), rng.standard_normal((count, n, model.nv)),
                    limited=bool(seed % 2), period=int(rng.integers(1, 4)), delay=int(rng.integers(0, 5)),
                    initial=rng.standard_normal((count, model.nv)) if seed > 2 else None)
    return model.with_(damping=0.0, friction=0.0), np.array(q), rng.standard_normal((count, model.nv)), law


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("seed", range(6))
def test_as_in_python_between_steps(integrator, seed):
    n, count = 24, 5
    model, q, v, law = case(seed, n, count)
    if law.limited:
        model = model.with_(effort_limit={name: 0.3 for name in model.joint_names if model.joint(name).nv == 1})
    keywords = {"integrator": integrator, "limits": False}
    results = [rbd.simulate(model, q, v, law, H, n, stride=stride, threads=threads, **keywords)
               for stride, threads in ((4, 1), (8, 3))]
    assert np.array_equal(results[0].q[:, ::2], results[1].q) and np.array_equal(results[0].v[:, ::2], results[1].v)
    for row in range(count):
        own = dataclasses.replace(law, q=law.q[row], v=law.v[row], effort=law.effort[row],
                                  initial=None if law.initial is None else law.initial[row])
        q1, v1 = by_hand(model, q[row], v[row], own, n, **keywords)
        scale = 1.0 + np.abs(v1).max()
        np.testing.assert_allclose(results[0].q[row], q1[::4], rtol=0, atol=1e-9 * scale)
        np.testing.assert_allclose(results[0].v[row], v1[::4], rtol=0, atol=1e-9 * scale)


def test_where_python_makes_the_steps():
    model, contacts, q, v = scene(3)
    law = rbd.PDLaw(0.0, 0.2, q, np.zeros(model.nv), np.full(model.nv, 0.1), period=2, delay=1)
    result = rbd.simulate(model, q, v, law, H, 40, stride=10, contacts=contacts)
    each = rbd.PDLaw(0.0, 0.2, np.tile(q, (40, 1)), np.zeros((40, model.nv)), np.full((40, model.nv), 0.1), period=2,
                     delay=1)
    q1, v1 = by_hand(model, q, v, each, 40, contacts=contacts)
    np.testing.assert_allclose(result.q, q1[::10], rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.v, v1[::10], rtol=0, atol=1e-9)


def slider(**changes):
    """1 kg on a horizontal rail."""
    return robots.pendulum(joint_type="prismatic", axis=(1.0, 0.0, 0.0)).with_(**changes)


def test_an_oscillator_step_by_step():
    """`v₁ = v + h (−kp x − kd v)/m`, `x₁ = x + h v₁`: powers of a matrix."""
    kp, kd, n = 40.0, 1.5, 500
    step = np.array([[1.0 - H * H * kp, H * (1.0 - H * kd)], [-H * kp, 1.0 - H * kd]])
    result = rbd.simulate(slider(), [0.8], [0.3], rbd.PDLaw(kp, kd, [0.5]), H, n, integrator="semi_implicit")
    expected = np.linalg.matrix_power(step, n) @ [0.3, 0.3]
    np.testing.assert_allclose([result.q[-1, 0] - 0.5, result.v[-1, 0]], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_damped_oscillator(integrator):
    """x = e^(−δt) (x₀ cos ωt + (v₀ + δ x₀)/ω sin ωt); the law is held for a step: order 1."""
    kp, kd, t = 40.0, 1.5, 1.0
    decay = kd / 2.0
    omega = np.sqrt(kp - decay**2)
    expected = np.exp(-decay * t) * (0.3 * np.cos(omega * t) + (0.3 + 0.3 * decay) / omega * np.sin(omega * t))
    law = rbd.PDLaw(kp, kd, [0.5])
    errors = [rbd.simulate(slider(), [0.8], [0.3], law, t / n, n, integrator=integrator).q[-1, 0] - 0.5 - expected
              for n in (2000, 4000, 8000)]
    assert abs(errors[0]) < 2e-3
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 2.0, rtol=0.02)


@pytest.mark.parametrize(("limited", "force"), [(True, 3.0), (False, 8.0)])
def test_a_limit_counts_if_asked_for(limited, force):
    model = slider(effort_limit=3.0)
    result = rbd.simulate(model, [0.0], None, rbd.PDLaw(0.0, 0.0, [0.0], effort=[8.0], limited=limited), H, 100)
    np.testing.assert_allclose(result.v[-1], force * 100 * H, rtol=1e-12)


def test_a_limit_of_zero_counts_as_none():
    law = rbd.PDLaw(0.0, 0.0, [0.0], effort=[8.0], limited=True)
    np.testing.assert_allclose(rbd.simulate(slider(effort_limit=0.0), [0.0], None, law, H, 10).v[-1], 8.0 * 10 * H)


def test_shapes_of_a_reference():
    arm, n, count = rbd.sample("two_link"), 6, 4
    rng = np.random.default_rng(5)
    q, of_state, of_step = rng.random((count, 2)), rng.random((count, 2)), rng.random((n, 2))

    def run(aim):
        return rbd.simulate(arm, q, None, rbd.PDLaw(3.0, 0.1, aim), n=n, limits=False).q

    for aim, full in ((of_step[0], np.broadcast_to(of_step[0], (count, n, 2))),
                      (of_state, np.repeat(of_state[:, None], n, axis=1)),
                      (of_state[:, None], np.repeat(of_state[:, None], n, axis=1)),
                      (of_step, np.broadcast_to(of_step, (count, n, 2)))):
        assert np.array_equal(run(aim), run(full))


@pytest.mark.parametrize(("changed", "message"), [
    ({"kp": -1.0}, "kp of the law: expected a finite number, or 7, none negative"),
    ({"kd": np.ones(6)}, "kd of the law"), ({"kd": np.inf}, "kd of the law"), ({"kp": "stiff"}, "kp of the law"),
    ({"q": np.zeros(6)}, "q of the law: expected shape"), ({"q": np.full(7, np.nan)}, r"q of the law\[0, 0\] is nan"),
    ({"v": np.zeros((3, 7))}, "v of the law: expected shape"), ({"effort": np.zeros((2, 3, 7))}, "effort of the law"),
    ({"q": np.zeros((4, 4, 1))}, "q of the law"), ({"period": 0}, "period of the law"),
    ({"initial": np.zeros((4, 7))}, "initial of the law"), ({"delay": -1}, "delay of the law"),
    ({"delay": 0.5}, "delay of the law"),
])
def test_wrong_input_is_named(changed, message):
    law = rbd.PDLaw(**{"kp": 1.0, "kd": 1.0, "q": np.zeros(7)} | changed)
    with pytest.raises(rbd.RbdError, match=message):
        rbd.simulate(rbd.sample("iiwa"), np.zeros((2, 7)), None, law, n=4)


def test_a_reference_in_another_place_than_a_quaternion():
    with pytest.raises(rbd.RbdError, match="not a unit quaternion"):
        rbd.simulate(robots.top(), robots.top().neutral(), None, rbd.PDLaw(1.0, 1.0, np.zeros(4)), n=4)

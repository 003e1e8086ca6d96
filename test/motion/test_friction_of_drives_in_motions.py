"""Motions with friction by direction and by load: closed forms, limits at dense samples, Newton's matrix."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from test_motion_derivatives import LIMITS, task

import rbd_ros as rbd
from rbd_ros.core.motion.optimal.dynamic_rows import rows_of

IIWA = rbd.sample("iiwa")


def law_of(seed, n=7):
    rng = np.random.default_rng(seed)
    c, d = rng.uniform(1.0, 5.0, n), rng.uniform(0.5, 2.0, n)
    return rbd.Friction(d, c, smoothing=0.02, asymmetry=rng.uniform(-0.9, 0.9, n) * c,
                        viscous_asymmetry=rng.uniform(-0.5, 0.5, n) * d, load=rng.uniform(0.0, 0.4, n))


def slider(mass, limit):
    return rbd.load_urdf(f"""<robot name="slider"><link name="base"/><link name="cart"><inertial><mass value="{mass}"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
      <joint name="slide" type="prismatic"><parent link="base"/><child link="cart"/><axis xyz="1 0 0"/>
      <limit lower="-9" upper="9" velocity="99" effort="{limit}"/></joint></robot>""")


@pytest.mark.parametrize("way", [0.7, -0.7])
def test_a_cart_has_another_force_to_speed_up_than_to_brake(way):
    """Forces without friction: (F − c) / (1 + k) to speed up, and (F + c) / (1 − k) to brake, c of the direction."""
    m, F, k = 2.0, 6.0, 0.3
    law = rbd.Friction(coulomb=1.0, asymmetry=0.4, load=k, smoothing=1e-5)
    c = 1.4 if way > 0.0 else 0.6
    up, down = (F - c) / (1.0 + k) / m, (F + c) / (1.0 - k) / m
    motion = rbd.time_optimal(slider(m, F), [[0.0], [way]], friction=law, grid=5_000).check()
    exact = np.sqrt(2.0 * abs(way) * (1.0 / up + 1.0 / down))    # in the last part of the grid friction vanishes
    assert 1.0 - 1e-3 < motion.duration / exact < 1.0 + 1e-2
    best = rbd.optimize_motion(slider(m, F), [0.0], [way], 1.5, friction=law, starts=1).check()
    t = np.linspace(0.0, 1.5, 500)
    z = best(t)
    np.testing.assert_allclose(best.effort(t), law.add(z.v, m * z.a), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_fastest_motion_of_an_arm_uses_limits_and_keeps_them(seed):
    rng = np.random.default_rng(seed)
    law, points = law_of(seed), 0.6 * rng.uniform(-1.0, 1.0, (4, 7))
    limits = rbd.MotionLimits(velocity=20.0, effort=0.6 * IIWA.effort_limit)
    motion = rbd.time_optimal(IIWA, points, limits=limits, friction=law).check()
    z = motion(np.linspace(0.0, motion.duration, 20_001)[1:-1])
    efforts = law.add(z.v, rbd.inverse_dynamics(IIWA, z.q, z.v, z.a))
    ratio = np.abs(efforts / (0.6 * IIWA.effort_limit))
    assert ratio.max() <= 1.0 + 1e-6 and np.median(ratio.max(axis=1)) > 0.99
    assert motion.usage["effort"].ratio >= ratio.max() - 1e-9


def test_derivatives_of_rows_by_central_differences():
    given = task("effort", LIMITS, False)
    given = dataclasses.replace(given, friction=law_of(5, given.model.nv))
    rows = rows_of(given)
    rng, n = np.random.default_rng(2), given.model.nv
    z = rng.normal(size=(6, given.orders, n))
    z[:, 1] *= 0.02
    N, size = len(z), z[0].size

    def derivatives(z):
        return rows.derivatives(z, rows.values(z)[:, :n])

    J, h = derivatives(z), 1e-6
    c = rng.normal(size=(N, J.shape[1]))
    bent = np.zeros((N, size, size))
    rows.add_curvature(z, J, c, bent)
    for k in range(size):
        step = np.zeros((1, size))
        step[0, k] = h
        step = step.reshape(1, *z.shape[1:])
        slope = (rows.values(z + step) - rows.values(z - step)) / (2.0 * h)
        np.testing.assert_allclose(J[:, :, k], slope, rtol=1e-5, atol=1e-5 * np.abs(J).max())
        curve = np.einsum("nr,nrx->nx", c, derivatives(z + step) - derivatives(z - step)) / (2.0 * h)
        np.testing.assert_allclose(bent[:, k], curve, rtol=1e-4, atol=1e-4 * np.abs(bent).max())


def test_an_optimal_motion_of_an_arm_keeps_its_limits_with_the_law():
    law, goal = law_of(1), np.array([1.0, 0.5, -0.5, 0.8, 0.3, -0.4, 0.2])
    limits = rbd.MotionLimits(velocity=20.0, effort=0.6 * IIWA.effort_limit)
    motion = rbd.optimize_motion(IIWA, np.zeros(7), goal, objective={"duration": 1.0, "effort": 1e-6}, limits=limits,
                                 friction=law, starts=1, time_limit=60.0).check()
    z = motion(np.linspace(0.0, motion.duration, 5_000))
    efforts = law.add(z.v, rbd.inverse_dynamics(IIWA, z.q, z.v, z.a))
    assert 0.98 < np.abs(efforts / (0.6 * IIWA.effort_limit)).max() <= 1.0 + 5e-3    # between samples


def test_what_is_not_supported_is_said():
    law = rbd.Friction(coulomb=1.0, load=0.2)
    ends = [np.zeros(7), np.full(7, 0.3)]
    rates = rbd.MotionLimits(effort_rate=300.0)
    for call in (lambda: rbd.optimize_motion(IIWA, *ends, 2.0, "effort_rate", friction=law),
                 lambda: rbd.optimize_motion(IIWA, *ends, 2.0, limits=rates, friction=law),
                 lambda: rbd.time_optimal(IIWA, ends, limits=rates, friction=law)):
        with pytest.raises(rbd.RbdError, match=r"friction\.load: the rate"):
            call()
    bar = rbd.sample("five_bar")
    loops = rbd.sample_constraints("five_bar", bar)
    q, _ = rbd.project(bar, loops, np.zeros(5), np.zeros(5))
    with pytest.raises(rbd.RbdError, match=r"friction\.load: optimize_motion with loops"):
        rbd.optimize_motion(bar, q, q, 1.0, constraints=loops, actuated=["left_shoulder", "right_shoulder"],
                            friction=law)
    with pytest.raises(rbd.RbdError, match=r"friction\.breakaway: time_optimal"):
        rbd.time_optimal(IIWA, ends, friction=rbd.Friction(coulomb=1.0, breakaway=2.0))
    with pytest.raises(rbd.RbdError, match="friction: expected"):
        rbd.optimize_motion(IIWA, *ends, 2.0, friction=1.0)

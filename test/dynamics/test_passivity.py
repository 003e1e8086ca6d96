"""With a target at rest, the energy of the arm and of the springs and walls never grows but by the work of others."""
from __future__ import annotations

import numpy as np
import pytest
from test_walls import KINDS, random_wall

import rbd_ros as rbd
from rbd_ros.core.dynamics.walls import RECESS
from rbd_ros.core.lie import so3
from rbd_ros.runtime.control.cartesian_law import CartesianLaw
from rbd_ros.runtime.control.cartesian_settings import CartesianSettings

MODEL = rbd.sample("iiwa")
TIP = MODEL.body_names[-1]
START = np.array([0.2, 0.5, -0.3, -1.2, 0.2, 0.8, 0.1])


@pytest.mark.parametrize(("seed", "steps"), [(0, 1500), (1, 1500), *(pytest.param(
    seed, 50_000, marks=pytest.mark.thorough) for seed in range(2, 22))])
def test_the_law_is_passive(seed, steps):
    """Random walls, stiffnesses, targets and pushes. The plant is integrated by RK4 with the law in each of its stages,
    and with it the work of the pushes, so that no sampling adds energy; what remains is the integrator's error, at
    forces with kinks, of less than 1e-7 of the energy in a step.
    """
    rng, h = np.random.default_rng(seed), 4e-4
    q, v, k = START + 0.2 * rng.normal(size=7), np.zeros(7), 0
    while k < steps:
        walls = np.array([random_wall(str(rng.choice(KINDS)), ("inside", "outside")[rng.integers(2)], rng)[0]
                          for _ in range(3)])
        walls[:, 11:14] += rbd.forward_kinematics(MODEL, q)[-1, :3, 3]
        law = CartesianLaw(CartesianSettings.from_values({
            "posture.bandwidth": 0.0, "stiffness.translation": rng.uniform(0.0, 900.0, 3).tolist(), "walls.force": 80.0,
            "stiffness.rotation": rng.uniform(0.0, 40.0, 3).tolist(), "damping_ratio": rng.uniform(0.0, 1.2),
            "stiffness.frame": str(rng.choice(["base", "target"])), "walls.stiffness": rng.uniform(500.0, 5000.0),
            "limits.margin": [0.3], "posture.damping": rng.uniform(0.0, 10.0)}, MODEL))
        law.walls = walls
        T = rbd.forward_kinematics(MODEL, q)[-1]
        target = np.concatenate([(so3.exp(0.5 * rng.normal(size=3)) @ T[:3, :3]).ravel(),
                                 T[:3, 3] + 0.1 * rng.normal(size=3), np.zeros(12)])
        law.effort(q, v, target, START)
        if rng.random() < 0.5:
            law.walls[:, RECESS] = 0.0    # deep behind some of them
        energy, work = None, 0.0
        for _ in range(rng.integers(200, 500)):
            if k % 50 == 0:
                push = rng.normal(size=6) * np.repeat([3.0, 40.0], 3) * (rng.random() < 0.7)
            k += 1

            def rates(q, v, push=push, law=law, target=target):
                pushed = rbd.jacobian(MODEL, q, TIP, "aligned").T @ push
                tau = law.effort(q, v, target, START) + rbd.gravity_effort(MODEL, q) + pushed
                return v, rbd.forward_dynamics(MODEL, q, v, tau), pushed @ v

            first = rates(q, v)
            now = law.seen.energy + 0.5 * v @ rbd.mass_matrix(MODEL, q) @ v
            if energy is not None:
                assert now - energy - work < 1e-7 * (1.0 + energy), (k, now, energy, work)
            energy, slopes = now, [first]
            for share in (0.5, 0.5, 1.0):
                slopes.append(rates(q + share * h * slopes[-1][0], v + share * h * slopes[-1][1]))
            q, v, work = (x + h / 6.0 * (a + 2.0 * b + 2.0 * c + d) for x, a, b, c, d in zip(
                (q, v, 0.0), *slopes, strict=True))
        if np.abs(v).max() > 3.0:
            v = 0.2 * v

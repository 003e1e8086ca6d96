"""The linearised step of a period, against the robot simulated from states beside the motion."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from actuation.drives import MIXED
from feedback.plants import Drifting, Turning, spline, stepped
from support.trees import TYPES, random_tree

import rbd_ros as rbd
from rbd_ros.core.feedback.linearization import RigidPlant

STEP = 1e-5


def columns(model, gains, k, motion, after):
    """Derivative (nx, nx + nu) of the error after period k by state and efforts; `after(q, v, du)` simulates it."""
    nx, nu, n = gains.A.shape[1], gains.B.shape[2], len(gains.states)
    end = after(gains.q[k], gains.v[k], np.zeros(nu))
    out = np.empty((nx, nx + nu))
    for j in range(nx + nu):
        sides = []
        for sign in (STEP, -STEP):
            change = sign * np.eye(nx + nu)[j]
            q, v = after(gains.model.integrate(gains.q[k], change[:n]), gains.v[k] + change[n:nx], change[nx:])
            sides.append(np.concatenate([gains.model.difference(end[0], q), v - end[1]]))
        out[:, j] = (sides[0] - sides[1]) / (2.0 * STEP)
    return out


def rigid(model, motion, period, k, **options):
    """The step of period k as we have it, and as simulated."""
    mask = np.ones(model.nv, dtype=bool)
    if "actuated" in options:
        mask = np.isin(model.velocity_names, options["actuated"])
    gains = rbd.tracking_gains(model, motion, Q=np.ones(2 * model.nv), R=np.ones(mask.sum()), period=period,
                               end=np.ones(2 * model.nv), **options)

    @cache    # all simulations ask for the same times
    def planned(t):
        reference = motion(np.array([gains.t[k] + t]))
        return np.where(mask, rbd.inverse_dynamics(model, *(x[0] for x in reference[:3])), 0.0)

    def after(q, v, du):
        change = np.zeros(model.nv)
        change[mask] = du
        return stepped(model, q, v, lambda t: planned(t) + change, period)

    return np.hstack([gains.A[k], gains.B[k]]), columns(model, gains, k, motion, after)


@pytest.mark.parametrize("seed", range(3))
def test_all_joint_types(seed):
    model = random_tree(seed, TYPES if seed == 0 else ["floating", "spherical", "revolute", "cam"])
    rng = np.random.default_rng(seed)
    start = model.random_configuration(rng)
    motion = Turning(model, start, 0.6 * rng.normal(size=(9, model.nv)), 1.0)
    names = {"actuated": list(model.velocity_names)}
    wrong = []
    for period in (2e-3,) if seed == 0 else (4e-3, 2e-3):
        ours, simulated = rigid(model, motion, period, int(0.4 / period), **names)
        wrong.append(np.abs(ours - simulated).max())
    assert wrong[-1] < 1e-4 * np.abs(simulated).max()
    assert len(wrong) == 1 or wrong[0] / wrong[1] > 6.0, "an error of order 3 in the period"


def test_a_body_that_turns_on_a_sphere_drifts_by_its_velocity():
    """Without the term of the group (−ad_v), the error of this step would be of order 1, not 3."""
    model = random_tree(5, ["floating"])
    motion = Turning(model, model.neutral(), np.random.default_rng(2).normal(size=(9, 6)), 1.0)
    ours, simulated = rigid(model, motion, 1e-3, 400, actuated=list(model.velocity_names))
    np.testing.assert_allclose(ours, simulated, rtol=0.0, atol=1e-6)
    assert np.abs(ours[:6, :6] - np.eye(6)).max() > 1e-4


def test_a_floating_arm_driven_at_its_joints_alone():
    model = rbd.sample("biped", root="floating").with_(gravity=(0, 0, 0), armature=0.02)
    n, period, k = model.nv, 1e-3, 200
    motion = Drifting(model, 0.1 * np.random.default_rng(3).normal(size=(9, n - 6)), 0.5, period)
    gains = rbd.tracking_gains(model, motion, Q=np.ones(2 * n), R=np.ones(n - 6), period=period, end=np.ones(2 * n))
    assert gains.inputs == model.velocity_names[6:]

    def after(q, v, du):
        tau = np.concatenate([np.zeros(6), 0.5 * (gains.effort[k] + gains.effort[k + 1]) + du])
        return stepped(model, q, v, tau, period)

    simulated = columns(model, gains, k, motion, after)
    np.testing.assert_allclose(np.hstack([gains.A[k], gains.B[k]]), simulated, rtol=0.0,
                               atol=1e-5 * np.abs(simulated).max())


@pytest.mark.parametrize("damping", [0.0, 5.0])
def test_elastic_joints(damping):
    """Links and motors of each kind of spring, with viscous friction of motors; dry friction is not linearised."""
    drives = {name: {key: value for key, value in entry.items()} for name, entry in MIXED.items()}
    drives["joint_2"]["damping"] = damping
    drives["joint_3"] = drives["joint_3"] | {"motor": {"rotor_inertia": 2.0, "damping": 1.0}}
    for name in ("joint_4", "joint_7"):    # slower, so that steps of Runge and Kutta's method can follow
        drives[name] = drives[name] | {"stiffness_motor": {"rotor_inertia": 0.3, "damping": 0.1}}
    actuation = rbd.load_actuation(drives, rbd.sample("iiwa"))
    rng = np.random.default_rng(1)
    motion = spline(0.4 * rng.normal(size=7), 0.4 * rng.normal(size=7), 1.0)
    period, k = 1e-3, 400
    n = 7 + actuation.nm - 1
    gains = rbd.tracking_gains(actuation, motion, Q=np.ones(2 * n), R=np.ones(actuation.nm), period=period,
                               end=np.ones(2 * n))
    assert len(gains.states) == n and gains.inputs == actuation.motor_names
    behind = [j for j in range(actuation.nm) if j != 0]    # joint 1 is rigid

    simulated = rbd.ElasticSimulator(actuation, step=period / 50, integrator="rk4", limits=False)

    def after(q, v, du):
        simulated.reset(q[:7], v[:7], np.concatenate([[q[0]], q[7:]]), np.concatenate([[v[0]], v[7:]]))
        simulated.step(lambda t: 0.5 * (gains.effort[k] + gains.effort[k + 1]) + du, 50)
        return (np.concatenate([simulated.q, simulated.motor_position[behind]]),
                np.concatenate([simulated.v, simulated.motor_velocity[behind]]))

    found = columns(gains.model, gains, k, motion, after)
    scale = np.abs(found).max(axis=1, keepdims=True)
    np.testing.assert_allclose(np.hstack([gains.A[k], gains.B[k]]) / scale, found / scale, rtol=0.0, atol=1e-4)


def test_viscous_friction_counts_and_dry_friction_does_not():
    model = rbd.sample("iiwa").with_(damping=2.0, friction=3.0)
    motion = spline(np.zeros(7), np.full(7, 0.5), 1.0)
    t = np.array([0.4])
    plants = [RigidPlant(model, np.ones(7, dtype=bool), friction) for friction in (rbd.joint_friction(model), None)]
    courses = [plant.course(motion(t), t) for plant in plants]
    slopes = [plant.linearized(course)[0][0] for plant, course in zip(plants, courses, strict=True)]
    slower = np.zeros((14, 14))
    slower[7:, 7:] = -2.0 * np.linalg.inv(rbd.mass_matrix(model, courses[0].q[0]))
    np.testing.assert_allclose(slopes[0] - slopes[1], slower, rtol=0.0, atol=1e-10 * np.abs(slower).max())
    np.testing.assert_allclose(courses[0].effort - courses[1].effort, rbd.friction_effort(model, courses[0].v),
                               rtol=1e-12)

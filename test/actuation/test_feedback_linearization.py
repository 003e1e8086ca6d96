"""Feedback linearisation: the placed poles, identified from a step, and what its equations say in one state."""

from functools import cache

import numpy as np
import pytest
from actuation.drives import MIXED, Cosines, iiwa, mixed, series
from simulation import robots

import rbd_ros as rbd
from rbd_ros.core.simulation.elastic_simulator import ElasticSimulator
from rbd_ros.core.simulation.integrators import INTEGRATORS

Q = np.array([0.3, 0.5, -0.4, 0.8, 0.2, -0.6, 0.1])
POLES = {2: [-20.0, -28.0], 3: [-20.0, -25.0 + 8.0j, -25.0 - 8.0j], 4: [-20.0, -26.0, -30.0 + 10.0j, -30.0 - 10.0j]}
STIFFNESS_POLES = [-15.0, -40.0]


def arm(kind):
    """All kinds of joints at once: rigid, a spring with damping, a nonlinear one, four of variable stiffness."""
    if kind == "series":
        return series()
    if kind == "links with friction":
        return series(iiwa().with_(damping=3.0))
    if kind == "damped":
        return series(damping=0.01)
    return mixed(joint_2=MIXED["joint_2"] | {"damping": 200.0})


class Plant:
    """The robot in continuous time: the law is asked whenever the integrator asks for an acceleration."""

    def __init__(self, actuation, poles=POLES):
        self.actuation = actuation
        self.gains = rbd.FeedbackGains.placed(actuation, {
            name: poles[order] for name, order in zip(actuation.joint_names, actuation.orders, strict=True)},
            STIFFNESS_POLES)
        self.springs = ElasticSimulator(actuation, q=Q)._springs
        self.full = ElasticSimulator(actuation, q=Q)._full

    def start(self, q, v):
        simulator = ElasticSimulator(self.actuation, q=q, v=v)
        return simulator._simulator.q.copy(), simulator._simulator.v.copy()

    def law(self, x, rate, reference, stiffness=None):
        at = self.springs.motors
        return rbd.feedback_linearization(self.actuation, self.gains, x[:7], rate[:7], x[at], rate[at], reference,
                                          stiffness)

    def acceleration(self, x, rate, effort):
        full = np.zeros(self.springs.size)
        full[self.springs.motors] = effort
        # friction as the law has it, smoothed
        z = rate[self.springs.motors]
        rubbing = np.zeros(self.springs.size)
        rubbing[self.springs.motors] = self.actuation.friction.effort(z)
        rubbing[:7] += self.actuation.model.damping * rate[:7]
        return rbd.forward_dynamics(self.full, x, rate, full - rubbing + self.springs.effort(x, rate))


@cache
def step_response(kind, h=1e-3, count=320):
    """Errors of the links (N, nv) and of the stiffness (N, n) after a step of the reference from rest."""
    plant = Plant(arm(kind))
    reference = np.zeros((5, 7))
    reference[0] = Q + np.array([0.02, 0.01, -0.01, 0.015, 0.01, 0.02, -0.02])
    wanted = 1.04 * plant.actuation.stiffness
    x, rate = plant.start(Q, np.zeros(7))
    links, stiffness = [], []
    for _ in range(count):
        links.append(x[:7] - reference[0])
        stiffness.append(plant.springs.joint_stiffness(x)[plant.actuation.variable] - wanted)
        x, rate = INTEGRATORS["rk4"](plant.full, lambda x, rate: plant.acceleration(
            x, rate, plant.law(x, rate, reference, wanted).effort), x, rate, h)
    return np.array(links), np.array(stiffness), h


def identified(samples, order, h, every=8):
    """Poles of the linear system of this order whose free motion this is (Prony)."""
    y = samples[::every]
    rows = np.stack([y[i:len(y) - order + i] for i in range(order)], axis=1)
    c = np.linalg.lstsq(rows, y[order:], rcond=None)[0]
    return np.sort_complex(np.log(np.roots(np.concatenate([[1.0], -c[::-1]])).astype(complex)) / (h * every))


@pytest.mark.parametrize("kind", ["series", "damped", "links with friction", "mixed"])
def test_a_step_shows_the_placed_poles(kind):
    links, stiffness, h = step_response(kind)
    for i, order in enumerate(arm(kind).orders):
        expected = np.sort_complex(np.array(POLES[order], dtype=complex))
        np.testing.assert_allclose(identified(links[:, i], order, h), expected, rtol=1e-3, err_msg=f"joint {i + 1}")
    for i in range(stiffness.shape[1]):
        np.testing.assert_allclose(identified(stiffness[:, i], 2, h), np.sort_complex(np.array(STIFFNESS_POLES) + 0j),
                                   rtol=1e-3)


@pytest.mark.parametrize("kind", ["series", "damped", "links with friction", "mixed"])
def test_accelerations_and_jerks_are_those_of_the_robot(kind):
    """In any state, off the reference: forward dynamics of links and motors together gives what the law says."""
    plant = Plant(arm(kind))
    rng = np.random.default_rng(1)
    for _ in range(5):
        x, rate = plant.start(Q + 0.1 * rng.normal(size=7), rng.normal(size=7))
        rate = rate + 0.05 * np.abs(rate).max() * rng.normal(size=rate.size)
        reference = rng.normal(size=(5, 7))
        law = plant.law(x, rate, reference)
        true = plant.acceleration(x, rate, law.effort)
        np.testing.assert_allclose(law.acceleration, true[:7], rtol=1e-9, atol=1e-9 * np.abs(true).max())
        np.testing.assert_allclose(law.motor_acceleration, true[plant.springs.motors], rtol=1e-9,
                                   atol=1e-9 * np.abs(true).max())
        springs = plant.springs.torque(x, rate)
        elastic = plant.actuation.elastic
        np.testing.assert_allclose(law.torque[elastic], springs[elastic], rtol=1e-12)
        np.testing.assert_allclose(law.stiffness, plant.springs.joint_stiffness(x), rtol=1e-12)
        h = 1e-5    # the jerk, from the motion under the law
        ends = []
        for step in (h, -h):
            y, z = x + step * rate + 0.5 * step * step * true, rate + step * true
            moved = np.stack([sum(reference[i + j] * step**j / (1.0, 1.0, 2.0, 6.0, 24.0)[j] for j in range(5 - i))
                              for i in range(5)])
            ends.append(plant.law(y, z, moved).acceleration)
        np.testing.assert_allclose(law.jerk, (ends[0] - ends[1]) / (2.0 * h), rtol=1e-4,
                                   atol=1e-5 * np.abs(law.jerk).max())


def test_on_the_reference_it_is_the_feed_forward():
    actuation = mixed()
    rng = np.random.default_rng(2)
    r = np.stack(Cosines(rng, 7).motion(0.4, 5))
    k = np.stack([actuation.stiffness, 3e3 * rng.normal(size=4), 1e4 * rng.normal(size=4)])
    r[3] *= 30.0    # fast enough for every term to matter
    efforts = rbd.link_efforts(actuation, *r)
    motors = rbd.motor_reference(actuation, r[0], r[1], r[2], efforts, k)
    law = rbd.feedback_linearization(actuation, rbd.FeedbackGains.placed(actuation, 25.0), r[0], r[1], motors.position,
                                     motors.velocity, r, k)
    np.testing.assert_allclose(law.effort, motors.effort, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(law.motor_acceleration, motors.acceleration, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose([law.acceleration, law.jerk, law.snap], r[2:], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(law.torque, motors.torque, rtol=1e-9)


@pytest.mark.parametrize("delta", [0.02, 0.05, 0.1])
def test_poles_slower_than_half_the_mode_times_the_root_of_the_error_are_unstable(delta):
    """docs/elastic_joints.md: a stiffness believed too large by δ needs b > ω√δ/2; one believed too small nothing."""
    model = robots.pendulum().with_(gravity=(0.0, 0.0, 0.0))

    def joint(stiffness):
        return rbd.load_actuation({"hinge": {"type": "series_elastic", "stiffness": stiffness,
                                             "motor": {"rotor_inertia": 100.0}}}, model)

    omega = np.sqrt(8000.0 / float(rbd.mass_matrix(model, [0.0])[0, 0]))

    def fastest_growth(believed, b):
        gains, real, zero = rbd.FeedbackGains.placed(joint(believed), b), joint(8000.0), np.zeros((5, 1))

        def rates(y):
            q, v, z, w = y[:, None]
            law = rbd.feedback_linearization(joint(believed), gains, q, v, z, w, zero)
            tau = real.series_spring.torque(z - q)
            return np.concatenate([v, rbd.forward_dynamics(model, q, v, tau), w, (law.effort - tau) / 100.0])

        return np.linalg.eigvals(np.transpose([rates(1e-4 * e) / 1e-4 for e in np.eye(4)])).real.max()

    limit, stiff = 0.5 * omega * np.sqrt(delta), 8000.0 * (1.0 + delta)
    assert fastest_growth(stiff, 0.97 * limit) > 0.0 > fastest_growth(stiff, 1.03 * limit)
    assert fastest_growth(8000.0 * (1.0 - delta), 0.1 * limit) < 0.0


@pytest.mark.parametrize(("change", "words"), [
    ({"q": np.zeros(6)}, "q has shape"), ({"q": np.zeros((2, 7))}, "one measured state"),
    ({"motor_position": np.zeros(7)}, "motor_position: expected finite numbers"),
    ({"motor_velocity": np.full(11, np.nan)}, "motor_velocity: expected finite"),
    ({"reference": np.zeros((4, 7))}, "reference: expected"), ({"stiffness": [1.0]}, "stiffness has shape"),
    ({"motor_position": np.concatenate([Q, [3000.0, -0.3, 0.0, 400.0]])}, "joint 'joint_[56]': torque and stiffness"),
])
def test_wrong_input_is_named(change, words):
    actuation = mixed()
    rest = ElasticSimulator(actuation, q=Q)
    given = {"q": Q, "v": np.zeros(7), "motor_position": rest.motor_position, "motor_velocity": rest.motor_velocity,
             "reference": np.zeros((5, 7))} | change
    with pytest.raises(rbd.RbdError, match=words):
        rbd.feedback_linearization(actuation, rbd.FeedbackGains.placed(actuation, 10.0), **given)

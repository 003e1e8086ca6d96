"""Coupled motors, joints that stand, Stribeck's effect and closed loops, two and three of them at once."""
from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from support.recordings import on_the_loops, periodic, perturbed, record, record_closed, rest_to_rest

import rbd_ros as rbd
from rbd_ros.core.identification.closed_chain import closed_chain
from rbd_ros.core.identification.consistency import is_consistent
from rbd_ros.core.identification.recorded.signals import prepare
from rbd_ros.core.identification.stacking import Equations
from rbd_ros.core.identification.transmission import CoupledMotors

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
ARM = rbd.sample("two_link")
NAMES = ARM.velocity_names
HEIGHT, VELOCITY = np.array([1.2, 0.8]), np.array([0.15, 0.3])
WRIST = rbd.Transmission({NAMES[0]: 50.0, NAMES[1]: {NAMES[0]: 30.0, NAMES[1]: 30.0}})
BAR = rbd.sample("five_bar")
LOOPS = rbd.sample_constraints("five_bar", BAR)
SHOULDERS = ("left_shoulder", "right_shoulder")
AT = [BAR.velocity_names.index(name) for name in SHOULDERS]
BELT = rbd.Transmission({"right_shoulder": {"left_shoulder": -20.0, "right_shoulder": 20.0}})


def on_both(v, a, rotor, viscous, coulomb, signs=(1.0, 1.0)):
    """What a motor adds to two joints (N, 2) that it turns with alike."""
    speed, acceleration = v @ signs, a @ signs
    return np.outer(rotor * acceleration + viscous * speed + coulomb * np.tanh(speed / 0.01), signs)


def of_the_arm(still=0.0, seed=0):
    """With Stribeck's effect, a motor on both joints, and the second joint standing for a share of four periods."""
    truth = perturbed(ARM, 1)
    motion = rest_to_rest(periodic(ARM, seed, period=15.0, periods=4, reach=0.6))
    plain = record(truth, motion, seed, noise=0.0)
    q, v, a = (x.copy() for x in motion(plain.t)[:3])
    stands = (plain.t >= 15.0) & (plain.t < 15.0 + 30.0 * still)
    q[stands, 1], v[stands, 1], a[stands, 1] = motion(0.0).q[1], 0.0, 0.0
    tau = (rbd.inverse_dynamics(truth, q, v, a) + rbd.friction_effort(truth, v) + on_both(v, a, 0.05, 0.4, 0.7)
           + HEIGHT * np.exp(-((v / VELOCITY) ** 2)) * np.tanh(v / 0.01))
    tau[stands, 1] += 0.9 * (truth.friction + HEIGHT)[1] * np.sign(np.sin(0.4 * plain.t[stands]) + 0.8)
    tau += 0.03 * np.random.default_rng(seed).normal(size=tau.shape)
    return truth, rbd.Recording(plain.t, q, tau=tau, joints=plain.joints)


@pytest.mark.parametrize("still", [0.0, 1.0], ids=["all move", "one stands"])
def test_stribeck_behind_a_coupled_motor(still):
    truth, recording = of_the_arm(still)
    found = rbd.identify(ARM, recording, stribeck=True, transmission=WRIST)
    said = " ".join(x for x in found.findings if "while they stand" in x)
    assert (NAMES[1] in said) == bool(still), said
    assert found.residual.overall < 0.01, found
    np.testing.assert_allclose(found.stribeck_height, HEIGHT, rtol=0.15)
    np.testing.assert_allclose(found.stribeck_velocity, VELOCITY, rtol=0.1)
    np.testing.assert_allclose(found.model.friction, truth.friction, atol=0.1)
    for name, expected in (("viscous", 0.4), ("coulomb", 0.7)):    # rotors only with inertias
        estimate = next(e for e in found.confidence if e.name == f"{name}(motor {NAMES[1]})")
        assert estimate.seen and abs(estimate.linear - expected) < 1.5 * estimate.half_width, estimate
        assert getattr(found.transmission, name)[1] == pytest.approx(estimate.value)
    said = next(x for x in found.findings if "more than one joint" in x)
    assert NAMES[1] in said and "no node" in said
    v = np.array([[0.3, -0.1], [0.05, 0.4]])
    expected = truth.damping * v + (truth.friction + HEIGHT * np.exp(-((v / VELOCITY) ** 2))) * np.tanh(v / 0.01)
    expected += on_both(v, 0.0 * v, 0.05, 0.4, 0.7)
    np.testing.assert_allclose(found.effort(0.0 * v, v, 0.0 * v) - found.offset
                               - rbd.inverse_dynamics(found.model, 0.0 * v, v, 0.0 * v), expected, atol=0.15)


def of_the_bar(still=False, coupled=True, seed=0):
    """Two motors on a five-bar, a third on both; the second stands for two of four periods."""
    driven = np.isin(BAR.velocity_names, SHOULDERS)
    truth = perturbed(BAR, 4, rotors=False, friction=False).with_(
        armature=2e-4 * driven, damping=np.where(driven, 5e-3, 0.0), friction=np.where(driven, 2e-2, 0.0))
    whole = periodic(BAR, seed, period=6.0, periods=4, reach=0.2)
    motion = rest_to_rest(type(whole)(whole.coefficients[:, :2], whole.period, whole.periods))

    def moved(t):
        q, v, a = (x.copy() for x in motion(t)[:3])
        stands = (t >= 6.0) & (t < 18.0) & still
        q[stands, 1], v[stands, 1], a[stands, 1] = motion(0.0).q[1], 0.0, 0.0
        return SimpleNamespace(q=q, v=v, a=a)

    moved.duration = motion.duration
    recording = record_closed(truth, LOOPS, SHOULDERS, moved, noise=5e-4)
    tau, wanted = recording.tau.copy(), moved(recording.t)
    if coupled:
        tau[:, AT] += on_both(wanted.v, wanted.a, 4e-4, 6e-3, 8e-3, (-1.0, 1.0))
    stands = (recording.t >= 6.0) & (recording.t < 18.0)
    if still:
        tau[stands, AT[1]] += 0.9 * 2e-2 * np.sign(np.sin(1.1 * recording.t[stands]) + 0.5)
    return truth, motion, rbd.Recording(recording.t, recording.q, tau=tau, joints=recording.joints)


def off_on_another_motion(found, truth, coupled):
    other = periodic(BAR, 7, period=6.0, periods=1, reach=0.2)
    motion = type(other)(other.coefficients[:, :2], other.period, other.periods)
    t = np.linspace(0.0, 6.0, 600)
    q, v, a = on_the_loops(BAR, LOOPS, SHOULDERS, motion, t)
    own = found.transmission
    efforts = []
    for robot, extra in ((truth, on_both(v[:, AT], a[:, AT], 4e-4, 6e-3, 8e-3, (-1.0, 1.0)) * coupled),
                         (found.model, 0.0 if own is None else own.effort(found.model, v, a)[:, AT])):
        rubbing = rbd.friction_effort(robot, v)
        tau = rbd.constrained_inverse_dynamics(robot, LOOPS, q, v, a, SHOULDERS, passive_effort=-rubbing).effort
        efforts.append((tau + rubbing)[:, AT] + extra)
    efforts[1] += found.offset[AT]
    return np.linalg.norm(efforts[1] - efforts[0]) / np.linalg.norm(efforts[0])


def test_a_coupled_motor_of_closed_loops():
    truth, _, recording = of_the_bar()
    found = rbd.identify(BAR, recording, constraints=LOOPS, transmission=BELT)
    alone = rbd.identify(BAR, recording, constraints=LOOPS)
    assert found.residual.overall < 0.02 and found.residual.overall < 0.5 * alone.residual.overall, (found, alone)
    assert all(is_consistent(body) for body in found.model.inertial_parameters.reshape(-1, 10) if body[0] > 0.0)
    for name, expected in (("viscous", 6e-3), ("coulomb", 8e-3)):
        estimate = next(e for e in found.confidence if e.name == f"{name}(motor right_shoulder)")
        assert estimate.seen and abs(estimate.linear - expected) < 1.5 * estimate.half_width, estimate
    assert off_on_another_motion(found, truth, True) < 0.02


@pytest.mark.parametrize("coupled", [False, True])
def test_motors_of_closed_loops_that_stand_are_left_out(coupled):
    truth, _, recording = of_the_bar(still=True, coupled=coupled)
    drive = BELT if coupled else None
    found, every = (rbd.identify(BAR, recording, constraints=LOOPS, transmission=drive, **options)
                    for options in ({}, {"slowest": 0.0, "robust": False}))
    said = next(x for x in found.findings if "while they stand" in x)
    assert "right_shoulder" in said and "left_shoulder" not in said, said
    right, wrong = (off_on_another_motion(x, truth, coupled) for x in (found, every))
    assert right < 0.02 and wrong > 3.0 * right, (right, wrong)


def test_a_motor_on_a_joint_without_effort_is_refused():
    _, _, recording = of_the_bar(coupled=False)
    passive = next(name for name in BAR.velocity_names if name not in SHOULDERS)
    with pytest.raises(rbd.RbdError, match=f"motor 'left_shoulder' moves {passive}, of which no effort"):
        rbd.identify(BAR, recording, constraints=LOOPS,
                     transmission=rbd.Transmission({"left_shoulder": {"left_shoulder": 20.0, passive: 20.0}}))


def test_an_effort_says_nothing_while_a_joint_that_follows_stands():
    """Friction of a passive joint is part of the efforts of the motors that move it."""
    _, _, recording = of_the_bar(coupled=False)
    chain, whole = closed_chain(BAR, LOOPS, recording)
    prepared = prepare(BAR, whole, 5.0)
    passive = int(chain.dependent[0])
    assert BAR.velocity_names[passive] not in SHOULDERS
    still = []
    for piece in prepared.pieces:
        v = np.ones_like(piece.v)
        v[:len(v) // 2, passive] = 0.0
        still.append(dataclasses.replace(piece, v=v))
    stands = dataclasses.replace(prepared, pieces=tuple(still))
    one, every = (Equations(BAR, stands, np.ones(BAR.nv), CoupledMotors.none(BAR.nv), slowest, chain).rows().measured
                  for slowest in (2e-3, 0.0))
    half = len(one) // 2
    assert every[:, AT].all() and not one[:half - 5, AT].any() and one[half + 10:, AT].all()

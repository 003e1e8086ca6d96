"""The flatness map in one call is the one of `flat_motors`, whose formulas are tested by themselves."""
from __future__ import annotations

import numpy as np
import pytest
from actuation.drives import MIXED, iiwa

import rbd_ros as rbd
from rbd_ros.core.motion.trajectory import Reference
from rbd_ros.core.actuation.elastic_law import ElasticState
from rbd_ros.runtime.control.elastic_settings import ElasticSettings
from rbd_ros.runtime.control.elastic_laws import ElasticLaws
from rbd_ros.runtime.control.quick_flatness import QuickFlatness
from rbd_ros.runtime.inputs.references import ReferenceInput
from rbd_ros.runtime.inputs.rejections import Rejections

# rigid, linear, hardening with all kinds of friction
KINDS = [MIXED["joint_1"], MIXED["joint_2"], MIXED["joint_3"] | {"motor": MIXED["joint_3"]["motor"] | {
    "asymmetry": 0.2, "viscous_asymmetry": -0.1, "load": 0.3}}]


def laws(mode="feed_forward", friction=True, **changed):
    model = iiwa().with_(damping=0.5, friction=0.3)
    names = model.joint_names
    count = 7 + sum(drive["type"] == "variable_stiffness" for drive in changed.values())
    drives = {name: KINDS[i % 3] for i, name in enumerate(names)} | changed
    values = {"mode": mode, "state_rate": 500.0, "friction.damping": friction, "friction.coulomb": friction,
              "motor_gains.kp": [20.0 + i for i in range(count)],
              "motor_gains.kd": [2.0 + 0.1 * i for i in range(count)]}
    settings = ElasticSettings.from_drives(values, model, rbd.load_actuation(drives, model).drives)
    return ElasticLaws(settings, ReferenceInput(model, Rejections(), 0.0))


def situation(seed, size=1.0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(5, 7)) * size
    rows[1, 0] = 0.0    # at rest, where friction turns
    return Reference(*rows), ElasticState(*rng.normal(size=(4, 7)))


@pytest.mark.parametrize("mode", ["feed_forward", "feed_forward_pd"])
@pytest.mark.parametrize("friction", [True, False])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_it_is_the_same_map(mode, friction, share):
    made = laws(mode, friction)
    stiffness = np.zeros((3, 0))
    for seed in range(50):
        reference, state = situation(seed, 0.3)
        effort, rates, found = made.flat(reference, None, state, stiffness, share)
        assert made.quick is not None and made.quick.command(reference, state, share) is not None
        wanted, wanted_rates = made.feedforward(reference)
        other = made.motors.follow(reference, state, stiffness, (wanted, *wanted_rates), share)
        size = np.abs(wanted_rates).max() + 1.0
        for one, two in ((effort, wanted), (rates, wanted_rates), (found.effort, other.effort),
                         *zip(found.reference, other.reference, strict=True)):
            np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-13 * size)


def test_what_a_spring_does_not_bear_is_named_as_ever():
    made = laws(joint_3=KINDS[2] | {"max_deflection": 1e-6})
    reference, state = situation(1)
    assert made.quick.command(reference, state, 1.0) is None
    with pytest.raises(rbd.RbdError, match=r"joint 'joint_3': torque .* is more than its spring transmits"):
        made.flat(reference, None, state, np.zeros((3, 0)), 1.0)


def test_what_is_not_finite_is_left_to_the_others():
    made = laws()
    reference, state = situation(2)
    assert made.quick.command(reference._replace(v=np.full(7, 1e200)), state, 1.0) is None
    assert made.quick.command(reference._replace(q=np.full(7, np.nan)), state, 1.0) is None


@pytest.mark.parametrize("changed", [{"joint_2": MIXED["joint_7"]}, {"joint_2": MIXED["joint_2"] | {"damping": 5.0}}])
def test_other_drives_have_the_ordinary_way(changed):
    made = laws(**changed)
    assert made.quick is None and not QuickFlatness.suits(made.actuation)


def test_wrenches_have_the_ordinary_way():
    made = laws()
    reference, state = situation(3, 0.3)
    wrenches = np.ones((len(made.model.body_names), 6))
    effort = made.flat(reference, wrenches, state, np.zeros((3, 0)), 1.0)[0]
    np.testing.assert_array_equal(effort, made.feedforward(reference, wrenches)[0])
    assert np.abs(effort - made.flat(reference, None, state, np.zeros((3, 0)), 1.0)[0]).max() > 0.1

"""Every law is the formula in its table."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import A_REF, Q_REF, V_REF, Q, V, arm

import rbd_ros as rbd
from rbd_ros.core.motion.trajectory import Reference
from rbd_ros.runtime.control.tracking_law import TrackingLaw, TrackingLawSettings
from rbd_ros.runtime.friction_terms import FrictionTerms

KP, KD = np.array([100.0, 60.0]), np.array([10.0, 5.0])
REFERENCE = Reference(Q_REF, V_REF, A_REF)
PD = KP * (Q_REF - Q) + KD * (V_REF - V)


@pytest.fixture(scope="module")
def model():
    return arm()


def friction(model, v):
    return model.damping * v + model.friction * np.tanh(v / 0.01)


def effort(model, reference=REFERENCE, wrenches=None, **settings):
    law = TrackingLaw(model, TrackingLawSettings(**({"kp": KP, "kd": KD} | settings)))
    return law.effort(Q, V, reference, wrenches)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def test_none_is_pd(model):
    close(effort(model, feedforward="none"), PD)


def test_gravity(model):
    close(effort(model, feedforward="gravity"), rbd.gravity_effort(model, Q) + PD)


def test_gravity_alone_needs_no_reference(model):
    law = TrackingLaw(model, TrackingLawSettings(kp=np.zeros(2), kd=np.zeros(2), feedforward="gravity"))
    assert not law.needs_reference
    close(law.effort(Q, V, None), rbd.gravity_effort(model, Q))


def test_a_law_that_is_none_is_refused(model):
    """It would fall through to the law that is asked for last."""
    with pytest.raises(rbd.RbdError, match=r"unknown feedforward 'fulll'; did you mean 'full'"):
        effort(model, feedforward="fulll")


def test_full(model):
    close(effort(model), rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF) + friction(model, V_REF) + PD)


def test_computed_torque(model):
    close(effort(model, feedforward="computed_torque"),
          rbd.inverse_dynamics(model, Q, V, A_REF + PD) + friction(model, V_REF))


@pytest.mark.parametrize("damping", [False, True])
@pytest.mark.parametrize("coulomb", [False, True])
def test_friction_terms_switch_one_by_one(model, damping, coulomb):
    expected = damping * model.damping * V_REF + coulomb * model.friction * np.tanh(V_REF / 0.3)
    found = effort(model, friction=FrictionTerms(damping, coulomb, 0.3))
    close(found, rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF) + PD + expected)


@pytest.mark.parametrize("kind", ["full", "computed_torque"])
def test_what_the_robot_compensates_is_subtracted(model, kind):
    whole = effort(model, feedforward=kind)
    at = (Q_REF, V_REF) if kind == "full" else (Q, V)    # where the law has it
    gravity, bias = rbd.gravity_effort(model, at[0]), rbd.bias_effort(model, *at)
    close(effort(model, feedforward=kind, compensates=("gravity",)), whole - gravity)
    close(effort(model, feedforward=kind, compensates=("coriolis",)), whole - (bias - gravity))
    close(effort(model, feedforward=kind, compensates=("friction",)), whole - friction(model, V_REF))


def test_gravity_law_of_a_robot_that_compensates_gravity(model):
    close(effort(model, feedforward="gravity", compensates=("gravity",)), PD)


def test_external_wrench(model):
    wrench = {"lower": np.array([0.0, 0, 0, 0, 0, -5])}
    close(effort(model, wrenches=wrench) - effort(model),
          rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF, wrench) - rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF))
    close(effort(model, wrenches=wrench, feedforward="gravity", compensates=("gravity",)),
          rbd.bias_effort(model, Q, 0 * V, wrench) - rbd.gravity_effort(model, Q) + PD)

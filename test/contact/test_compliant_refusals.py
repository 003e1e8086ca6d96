"""Compliant contacts that cannot be, or do not fit the model: refused by name."""
from __future__ import annotations

import numpy as np
import pytest
from support.robots import build

import rbd_ros as rbd

RADIUS = 0.1
FLOOR = rbd.Plane("base")
MODEL = build([rbd.JointSpec("free", "floating", "base", "ball")])


def on_floor(name=""):
    return rbd.CompliantContact(FLOOR, rbd.Sphere("ball", RADIUS), stiffness=1e5, dissipation=0.0, name=name)


@pytest.mark.parametrize(("change", "words"), [
    ({"stiffness": 0.0}, "stiffness"), ({"stiffness": "1"}, "stiffness"), ({"dissipation": -1.0}, "dissipation"),
    ({"exponent": 0.5}, "exponent"), ({"friction": float("nan")}, "friction"), ({"friction": True}, "friction"),
    ({"slip_speed": 0.0}, "slip_speed"), ({"first": rbd.Sphere("ball", 0.01, inside=True)}, "inside out"),
    ({"second": rbd.Plane("ball")}, "planes touch all over"), ({"name": 3}, "name")])
def test_a_contact_that_cannot_be(change, words):
    good = {"first": FLOOR, "second": rbd.Sphere("ball", RADIUS), "stiffness": 1e5, "dissipation": 0.1}
    with pytest.raises(rbd.RbdError, match=words):
        rbd.CompliantContact(**(good | change))


def test_contacts_that_do_not_fit_are_named():
    model, q, v = MODEL, np.array([0.3, -0.2, RADIUS, 0, 0, 0, 1]), np.zeros(6)
    lost = rbd.CompliantContact(FLOOR, rbd.Sphere("bal", RADIUS), stiffness=1e5, dissipation=0.0, name="c")
    twice = [on_floor(name="c"), on_floor(name="c")]
    line = rbd.CompliantContact(rbd.Cylinder("base", 0.2), rbd.Cylinder("ball", 0.1), stiffness=1e5, dissipation=0.0)
    for contacts, words in (([lost], "contact 'c'.*'bal'"), (twice, "duplicate contact name 'c'"), ([FLOOR], "Plane"),
                            ([line], "'compliant_0'.*no unique closest points"), (3, "contacts"),
                            ([rbd.RollingContact(FLOOR, rbd.Sphere("ball", 0.1))], "RollingContact")):
        with pytest.raises(rbd.RbdError, match=words):
            rbd.contact_wrenches(model, contacts, q, v)
    with pytest.raises(rbd.RbdError, match="state 1: contact 'compliant_0'"):
        rbd.contact_wrenches(model, [line], np.stack([model.integrate(q, [0, 1.0, 0, 0, 0, 0]), q]), np.stack([v, v]))
    with pytest.raises(rbd.RbdError, match="shape"):
        rbd.contact_wrenches(model, [on_floor()], q[:3], v)
    with pytest.raises(rbd.RbdError, match=r"is CompliantContact, expected.*lets go.*Simulator"):
        rbd.ConstraintSet([on_floor()])


@pytest.mark.parametrize(("options", "speed", "what"), [
    ({"stiffness": 1e12}, 0.0, "stiffness"), ({"dissipation": 1e9}, -1.0, "dissipation|stiffness"),
    ({}, -1e4, "dissipation|stiffness"), ({"friction": 1e9}, 0.0, "friction")])
def test_a_contact_that_closes_and_opens_within_a_step_is_too_stiff_too(options, speed, what):
    """By RK4, from outside: no step begins where it touches, and it would be thrown back with any speed."""
    contact = rbd.CompliantContact(FLOOR, rbd.Sphere("ball", RADIUS), **({"stiffness": 1e5, "dissipation": 0.1,
                                                                          "name": "mat"} | options))
    simulator = rbd.Simulator(MODEL, contacts=[contact], q=[0, 0, RADIUS + 1e-6, 0, 0, 0, 1],
                              v=[0, 0, 0, 1.0, 0, speed], integrator="rk4")
    with pytest.raises(rbd.RbdError, match=f"({what}) of contact 'mat'"):
        simulator.step(n=50)


def test_hard_and_soft_contacts_share_names():
    hard = rbd.UnilateralContact(FLOOR, rbd.Sphere("ball", RADIUS), name="c")
    with pytest.raises(rbd.RbdError, match="duplicate contact name 'c'"):
        rbd.Simulator(MODEL, contacts=[hard, on_floor(name="c")], q=[0, 0, 1, 0, 0, 0, 1])

"""The examples of docs/contact.md run as shown and do what the page says; the picture is drawn from them."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import rbd_ros as rbd

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contact.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names():
    found: dict = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, found)
    return found


def test_the_ball_is_balanced(names):
    history = names["history"]
    late = history[history[:, 0] > 3.0]
    assert np.abs(late[:, 1:3]).max() < 0.02 < np.abs(history[0, 1:3]).max()
    assert (history[:, 3] > 0.5).all() and (history[:, 4] < 0.3 * history[:, 3]).all()
    model, contact, simulator = names["model"], names["contact"], names["simulator"]
    assert abs(rbd.constraint_values(model, contact, simulator.q)[0]) < 1e-12
    v, q, now = names["v"], names["q"], names["now"]
    inverse = rbd.constrained_inverse_dynamics(model, contact, q, v, now.acceleration, names["arm"])
    np.testing.assert_allclose(inverse.effort, now.effort, atol=1e-9)
    np.testing.assert_allclose(inverse.multipliers, now.multipliers, atol=1e-9)


def test_what_the_comments_say(names):
    held = names["held"]
    np.testing.assert_allclose(held.multipliers, [0.11 * 9.81, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(held.effort[:4], [-10.38, -10.38, -2.885, 0.0], atol=5e-3)
    assert names["contact"].row_names[0] == "roll/normal"
    touch, rates = names["touch"], names["rates"]
    assert touch.gap > 0.0 and np.isfinite([*rates.u_1, *rates.u_2, rates.psi]).all()
    assert (ROOT / "docs" / "images" / "ball_on_plate.png").read_bytes()[:4] == b"\x89PNG"


def test_a_ball_that_bounces_comes_to_rest(names):
    touched, model, bounce = names["touched"], names["ball_alone"], names["bounce"]
    assert touched.state == "sticking" and touched.gap == pytest.approx(-((0.11 * 9.81 / 2e5) ** (1 / 1.5)), rel=1e-3)
    np.testing.assert_allclose(touched.force, [0.0, 0.0, 0.11 * 9.81], atol=2e-3)
    a = rbd.forward_dynamics(model, bounce.q, bounce.v, np.zeros(6), external_wrenches=names["wrenches"])
    np.testing.assert_allclose(a, 0.0, atol=0.05)


def test_the_yaml_is_that_of_the_sample(names):
    *texts, contacts = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert len(texts) == 2
    model = names["model"]
    q = model.neutral()
    own = rbd.constraint_jacobian(model, rbd.sample_constraints("ball_on_plate", model), q)
    for text in texts:
        shown = rbd.load_constraints(text, model)
        np.testing.assert_allclose(rbd.constraint_jacobian(model, shown, q), own, atol=1e-15)
    top, ground = rbd.load_contacts(contacts, model)
    assert (top.name, top.restitution, ground.name, ground.stiffness) == ("top", 0.3, "ground", 2e5)


def test_the_thrown_box_lies(names):
    np.testing.assert_allclose(names["resting"], [0.0, 0.0, 1.3 * 9.81], atol=1e-6)
    assert names["lying"] == {"sticking"} and np.abs(names["thrown"].v).max() < 1e-9
    assert names["hits"] > 1.3 * np.sqrt(2 * 9.81 * 0.2)

"""docs/closed_form.md: its code runs, its numbers are the recursion's and derivatives, its pictures are up to date."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.iiwa import motion
from support.robots import assert_close

import rbd_ros as rbd

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "closed_form.md").read_text(encoding="utf-8")


def test_the_page_runs_and_draws_its_pictures(tmp_path, monkeypatch):
    image = pytest.importorskip("matplotlib.image")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, names)
    states, form = motion(names["t"]), names["form"]
    for key, expected in zip(("q", "v", "a", "jerk", "snap"), states, strict=True):
        assert_close(names[key], expected, 1e-15)
    tau = rbd.inverse_dynamics_time_derivatives(names["model"], *states)
    for order, curve in enumerate((form.effort[:, 0], form.effort_dot, form.effort_ddot)):
        assert_close(curve, tau[:, order], 1e-11)
    for before, after in ((form.effort[:, 0], form.effort_dot), (form.effort_dot, form.effort_ddot)):
        slope = (8 * (before[3:-1] - before[1:-3]) - (before[4:] - before[:-4])) / (12 * 0.025)
        assert np.abs(slope - after[2:-2]).max() < 2e-3 * np.abs(after).max()
    for file in ("mueller_fig3.png", "mueller_fig4.png"):
        drawn, shown = (image.imread(folder / file)[..., :3] for folder in (tmp_path, DOCS / "images"))
        if drawn.shape == shown.shape:    # other versions and fonts draw text elsewhere
            assert np.mean(np.abs(drawn - shown) > 0.2) < 0.03


def test_every_name_of_the_table_is_a_term():
    model = rbd.sample("two_link")
    q, v, a, jerk, snap = np.random.default_rng(1).normal(size=(5, 2))
    form = rbd.closed_form(model, q, v, a, jerk, snap)
    batch = rbd.closed_form(model, np.stack([q, q]), v, a, jerk, snap)
    found = re.findall(r"`(\w+)(?:\[(\d)\])?`", "".join(re.findall(r"^\|.*\|$", PAGE, re.MULTILINE)))
    assert len(found) == 24
    for name, order in found:
        one, many = getattr(form, name), getattr(batch, name)
        one, many = (one[int(order)], many[:, int(order)]) if order else (one, many)
        assert np.isfinite(one).all()
        assert_close(many[1], one, 1e-14)
    assert_close(form.effort_ddot, form.mass[0] @ snap + (2 * form.mass_dot + form.coriolis[0]) @ jerk
                 + (form.mass_ddot + 2 * form.coriolis_dot) @ a + form.coriolis_ddot @ v + form.gravity_ddot
                 + form.external_ddot, 1e-13)    # M eq. 38
    with pytest.raises(rbd.RbdError, match="asked for to order 0: order 2 needs"):
        _ = rbd.closed_form(model, q, v, a).mass_ddot

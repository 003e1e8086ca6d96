"""`rbd demo sea` and `rbd demo vsa`: what they promise, on a short motion, and their report."""
from __future__ import annotations

import json

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.cli import demo_elastic
from rbd_ros.cli.main import main


@pytest.mark.parametrize("variant", ["sea", "vsa"])
def test_flatness_beats_feed_forward_as_if_rigid(variant, tmp_path, capsys):
    assert main(["demo", variant, "--duration", "0.5", "--output", str(tmp_path), "--no-plot"]) == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["better"]["flatness"] > 5.0 and summary["better"]["linearization"] > 5.0
    assert summary["variant"] == variant and summary["model_error"] == 0.05
    assert list(summary["rms_error_rad"]) == list(demo_elastic.MODES)
    if variant == "vsa":
        assert max(summary["modes"][mode]["stiffness_error"] for mode in ("flatness", "linearization")) < 0.01
    shown = capsys.readouterr().out
    assert "masses, inertias and rotors +5 %" in shown and "feedback linearisation" in shown and "\r" not in shown
    with np.load(tmp_path / "flatness.npz") as run:
        assert run["error"].shape == (len(run["t"]), 7)


def test_the_robot_differs_from_its_model():
    for variant in demo_elastic.VARIANTS:
        scenario = demo_elastic.scenario(variant)
        believed, real = scenario.believed, scenario.real
        np.testing.assert_allclose(real.inertia, 1.05 * believed.inertia)
        assert real.model.total_mass == pytest.approx(1.05 * believed.model.total_mass)
        q = scenario.motion.position(0.7)
        np.testing.assert_allclose(rbd.mass_matrix(real.model, q), 1.05 * rbd.mass_matrix(believed.model, q))
    np.testing.assert_allclose(demo_elastic.scenario("sea").real.series_spring.coefficients[:, 0],
                               0.95 * np.array(demo_elastic.STIFFNESS))


def test_as_if_rigid_is_the_flatness_map_of_very_stiff_springs():
    model = demo_elastic.arm()
    stiff = rbd.load_actuation({name: {"type": "series_elastic", "stiffness": 1e12, "motor": {"rotor_inertia": b}}
                                for name, b in zip(model.joint_names, demo_elastic.ROTORS, strict=True)}, model)
    r = demo_elastic.published_motion().derivatives(0.4)
    found = demo_elastic.rigid_reference(demo_elastic.sea(model), r, np.zeros((3, 0)))
    expected = rbd.motor_reference(stiff, *r[:3], rbd.link_efforts(stiff, *r))
    for name in ("position", "velocity", "acceleration", "effort"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-6)
    vsa = demo_elastic.vsa(model)
    k = np.stack([vsa.stiffness, np.zeros(7), np.zeros(7)])
    found = demo_elastic.rigid_reference(vsa, r, k)
    joined = found.effort[:7].copy()
    joined[:4] += found.effort[7:11]    # both motors of a pair together move the link
    np.testing.assert_allclose(joined, expected.effort, rtol=1e-6, atol=1e-6)


def test_report_and_plot(tmp_path):
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 2.0, 101)
    runs = {mode: demo_elastic.Run(title, t, scale * rng.normal(size=(101, 2)), scale * rng.normal(size=(101, 1)),
                                   ["elbow"], 100.0)
            for (mode, title), scale in zip(demo_elastic.MODES.items(), (1e-2, 1e-3, 1e-4), strict=True)}
    text = demo_elastic.table(runs, ["shoulder", "elbow"])
    assert len(text.splitlines()) == 4 and "stiffness" in text and "mrad" in text
    runs["rigid"].stiffness[:50] = 5.0    # before it has settled
    again = demo_elastic.Run("x", t, runs["rigid"].error, runs["rigid"].stiffness, ["elbow"], 1.0)
    assert again.stiffness_error < 1.0
    pytest.importorskip("matplotlib")
    demo_elastic.plot(tmp_path / "tracking.png", runs, ["shoulder", "elbow"], "arm")
    assert (tmp_path / "tracking.png").read_bytes().startswith(b"\x89PNG")


def test_other_arms_have_no_springs(capsys, tmp_path):
    assert main(["demo", "sea", "--urdf", "arm.urdf", "--output", str(tmp_path)]) == 1
    assert "a robot is for rigid joints: demo sea" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_said_before_the_work(capsys, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(demo_elastic, "scenario", lambda *arguments: pytest.fail("ran first"))
    assert main(["demo", "sea", "--output", str(tmp_path / "file" / "folder")]) == 1
    assert "cannot make folder" in capsys.readouterr().err

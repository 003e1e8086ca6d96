"""Drive gains from a known load: simulated arms whose gains are known, and recordings of which a lot is wrong."""
from __future__ import annotations

import numpy as np
import pytest
import yaml
from support.recordings import mutilated_pair, periodic, with_known_load

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.core.identification.known_load import read_known_load

ARM, TOOL = rbd.sample("iiwa"), "link_7"
TWO = rbd.sample("two_link")


@pytest.fixture(scope="module")
def case():
    return with_known_load(ARM, 1, TOOL)


@pytest.fixture(scope="module")
def small():
    return with_known_load(TWO, 3, "tip", bits=18)


def held(found, gains, slack=0.0):
    """Joints whose interval holds the gain, or whose gain is not shown, or doubted."""
    low, high = (found.interval + slack * np.abs(gains)[:, None] * [-1.0, 1.0]).T
    doubted = [any(f"friction of {name} is" in finding for finding in found.findings) for name in found.joints]
    return np.isnan(found.gains) | ((low <= gains) & (gains <= high)) | np.array(doubted)


def test_gains_of_a_simulated_arm(case):
    gains, load, unloaded, loaded = case
    found = rbd.drive_gains(ARM, unloaded, loaded, TOOL, load)
    assert not found.missing and found.residual.max() < 0.1
    np.testing.assert_allclose(found.gains, gains, rtol=0.01)
    assert held(found, gains, 0.003).all() and held(found, gains).sum() >= 5
    assert np.ptp(found.interval, axis=1).max() < 0.05 * np.abs(gains).max()
    assert ("negative sign" in " ".join(found.findings)) == bool((gains < 0.0).any())


@pytest.mark.parametrize("seed", [5, pytest.param(6, marks=pytest.mark.thorough)])
def test_what_is_not_known_of_the_load_is_found(seed):
    gains, load, unloaded, loaded = with_known_load(ARM, seed, TOOL)
    known, com = ("mass", np.zeros(3)) if seed == 5 else ("com", load.com)    # what is free is not looked at
    found = rbd.drive_gains(ARM, unloaded, loaded, TOOL, rbd.Inertia(load.mass, com, np.zeros((3, 3))), known=known)
    assert held(found, gains, 0.01).all(), found.gains / gains
    assert np.nanmax(np.abs(found.gains / gains - 1.0)) < 0.03


def test_exact_recordings_give_exact_gains():
    gains, load, unloaded, loaded = with_known_load(TWO, 0, "tip", noise=0.0, bits=30, jitter=0.0, rate=1000.0)
    found = rbd.drive_gains(TWO, unloaded, loaded, "tip", load)
    np.testing.assert_allclose(found.gains, gains, rtol=1e-3)


def test_delays_are_those_of_each_joint_and_recording(small):
    gains, load, unloaded, loaded = small
    late = np.column_stack([np.roll(loaded.tau[:, 0], 5), np.roll(loaded.tau[:, 1], -3)])
    shifted = rbd.Recording(loaded.t, loaded.q, tau=late, joints=loaded.joints)
    found = rbd.drive_gains(TWO, unloaded, shifted, "tip", load)
    np.testing.assert_allclose(found.delay, [[0.0, 0.0], [0.020, -0.012]], atol=0.002)
    np.testing.assert_allclose(found.gains, gains, rtol=0.01)


def test_several_recordings_and_units_of_their_own(small):
    gains, load, unloaded, loaded = small

    def scaled(recording, rows):
        part = recording.part(rows)
        return rbd.Recording(part.t, part.q, tau=1e3 * part.tau, joints=part.joints)

    halves = slice(0, 3500), slice(4000, 7500)
    without, with_load = ([scaled(recording, rows) for rows in halves] for recording in (unloaded, loaded))
    found = rbd.drive_gains(TWO, without, with_load, "tip", load)
    np.testing.assert_allclose(1e3 * found.gains, gains, rtol=0.02)
    assert found.delay.shape == (4, 2)


def test_a_load_on_a_vertical_axis_says_nothing_of_its_joint():
    """Slow motion across gravity: the load is felt by no joint."""
    turn = rbd.load_urdf(rbd.sample_path("two_link"), gravity=(0.0, 0.0, 0.0))
    t = np.arange(0.0, 30.0, 0.004)
    q = periodic(turn, 0, period=15.0)(t).q * 0.05
    tau = np.random.default_rng(0).normal(size=q.shape)
    recordings = [rbd.Recording(t, q, tau=tau[::k], joints=turn.velocity_names) for k in (1, -1)]
    with pytest.raises(rbd.RbdError, match="no joint feels the load"):
        rbd.drive_gains(turn, *recordings, "tip", rbd.Inertia(0.1, np.zeros(3), np.zeros((3, 3))))


def test_a_wrong_mass_is_doubted(small):
    _, load, unloaded, loaded = small
    found = rbd.drive_gains(TWO, unloaded, loaded, "tip", rbd.Inertia(5.0 * load.mass, load.com, 5.0 * load.matrix))
    assert any("is the mass of the load right?" in finding for finding in found.findings)


def test_an_absurd_row_is_left_out(small):
    """As the last one of a file that was cut off."""
    gains, load, unloaded, loaded = small
    q = loaded.q.copy()
    q[-1, 0] = 2e282
    found = rbd.drive_gains(TWO, unloaded, rbd.Recording(loaded.t, q, tau=loaded.tau), "tip", load)
    np.testing.assert_allclose(found.gains, gains, rtol=0.01)
    assert any(finding.startswith("loaded: 1 of") for finding in found.findings)


@pytest.mark.parametrize("factor", [80.0, 3.0, pytest.param(0.01, marks=pytest.mark.thorough)])
def test_another_scale_with_the_load_shows_by_the_friction(case, factor):
    """The last joint carries almost nothing without the load: only friction ties the scales of the recordings."""
    _, load, unloaded, loaded = case
    tau = loaded.tau * np.where(np.arange(ARM.nv) == ARM.nv - 1, factor, 1.0)
    found = rbd.drive_gains(ARM, unloaded, rbd.Recording(loaded.t, loaded.q, tau=tau), TOOL, load)
    if factor == 3.0:
        told = [finding for finding in found.findings if "was it as warm" in finding]
        assert len(told) == 1 and told[0].startswith("friction of joint_7 is 1.")
    else:
        assert found.missing == ("joint_7",)


@pytest.mark.parametrize(("model", "body", "pair"), [
    (TWO, "tip", "small"), pytest.param(ARM, TOOL, "case", marks=pytest.mark.thorough)], ids=["two_link", "iiwa"])
def test_swapped_recordings_are_refused(model, body, pair, request):
    _, load, unloaded, loaded = request.getfixturevalue(pair)
    with pytest.raises(rbd.RbdError, match="swapped"):
        rbd.drive_gains(model, loaded, unloaded, body, load)


def mutilated_ends(model, body, case, seeds):
    """Seeds whose gains are wrong; clear errors are none."""
    gains, load, unloaded, loaded = case
    wrong, shown = [], 0
    for seed in seeds:
        pair = mutilated_pair(unloaded, loaded, np.random.default_rng((5, seed)))
        try:
            found = rbd.drive_gains(model, *pair, body, load)
        except rbd.RbdError as error:
            assert len(str(error)) > 20
            continue
        shown += not np.isnan(found.gains).all()
        wrong += [seed] * (not held(found, gains, 0.03).all())
    return wrong, shown


def test_mutilated_pairs_give_no_wrong_digits(small):
    wrong, shown = mutilated_ends(TWO, "tip", small, range(12))
    assert not wrong and shown


@pytest.mark.thorough
def test_many_mutilated_pairs(case):
    wrong, shown = mutilated_ends(ARM, TOOL, case, range(100))
    assert not wrong and shown, wrong


@pytest.mark.parametrize(("change", "words"), [
    ({"unloaded": 3}, "unloaded: expected rbd.Recording"), ({"loaded": []}, "loaded: expected at least one"),
    ({"body": "hand"}, "unknown body 'hand'"), ({"load": 2.0}, "load: expected rbd.Inertia"),
    ({"load": rbd.Inertia(-1.0, np.zeros(3), np.zeros((3, 3)))}, "inertia.m is -1 kg"),
    ({"body": "base"}, "does not move"), ({"known": "weight"}, "unknown known 'weight'"), ({"model": 1}, "model")])
def test_wrong_arguments(small, change, words):
    _, load, unloaded, loaded = small
    given = {"model": TWO, "unloaded": unloaded, "loaded": loaded, "body": "tip", "load": load, **change}
    with pytest.raises(rbd.RbdError, match=words):
        rbd.drive_gains(**given)


def test_short_and_same_recordings_are_refused(small):
    _, load, unloaded, loaded = small
    with pytest.raises(rbd.RbdError, match="the motion with the load is too short"):
        rbd.drive_gains(TWO, unloaded, loaded.part(slice(0, 500)), "tip", load)
    with pytest.raises(rbd.RbdError, match="the same recording"):
        rbd.drive_gains(TWO, unloaded, unloaded, "tip", load)


def test_the_file_of_a_load():
    body, load, known = read_known_load("{body: tool, mass: 2.0, com: [0, 0, 0.1], inertia: [3, 4, 5, 0.1, 0.2, 0.3]}")
    assert (body, load.mass, known) == ("tool", 2.0, "inertia")
    np.testing.assert_allclose(load.matrix, [[3.0, 0.1, 0.2], [0.1, 4.0, 0.3], [0.2, 0.3, 5.0]])
    assert read_known_load("{body: tool, mass: 2.0, com: [0, 0, 0.1]}")[2] == "com"
    for text, words in (("{mass: 2.0}", "expected body and mass"), ("{body: t, mass: 2, weight: 3}", "key 'weight'"),
                        ("{body: t, mass: -2}", "inertia.m is -2"), ("{body: t, mass: 2, com: [1]}", "three finite"),
                        ("{body: t, mass: 2, inertia: [1, 1, 1, 0, 0, 0]}", "com, which is missing")):
        with pytest.raises(rbd.RbdError, match=words):
            read_known_load(text)


@pytest.mark.parametrize(("name", "seed", "bits"), [
    ("two_link", 7, 18), pytest.param("iiwa", 1, 14, marks=pytest.mark.thorough)])
def test_identify_with_a_known_load(name, seed, bits, tmp_path, capsys):
    model = rbd.sample(name)
    joints, body = model.velocity_names, model.body_names[-1]
    gains, load, unloaded, loaded = with_known_load(model, seed, body, bits=bits)
    for which, recording in (("unloaded", unloaded), ("loaded", loaded)):
        np.savez(tmp_path / f"{which}.npz", t=recording.t, q=recording.q, tau=recording.tau,
                 joints=np.array(recording.joints))
    (tmp_path / "load.yaml").write_text(f"body: {body}\nmass: {load.mass}\ncom: {load.com.tolist()}\n")
    call = ["identify", str(rbd.sample_path(name)), str(tmp_path / "unloaded.npz"), "--delay", "0"]
    both = ["--known-load", str(tmp_path / "load.yaml"), "--loaded", str(tmp_path / "loaded.npz")]
    file = tmp_path / "gains.yaml"
    assert main([*call, *both, "--report", str(tmp_path / "report.html"), "--gains", f"{joints[1]}=12.5",
                 "--write-gains", str(file)]) == 0
    said = capsys.readouterr().out
    rows = [line.split() for line in said.split("\n\n")[0].splitlines() if line.startswith(joints)]
    np.testing.assert_allclose([float(row[1]) for row in rows], gains, rtol=0.02)
    page = (tmp_path / "report.html").read_text()
    table = page[page.index("<h2>Gains</h2>"):page.index("</table>", page.index("<h2>Gains</h2>"))]
    for j, row in enumerate(rows):    # what is given instead has no interval
        assert (f"<td>{row[2]} to {row[4]}</td>" in table) == (j != 1)
    assert "<td>12.5</td><td>given</td>" in table and "negative sign" in page
    written = yaml.safe_load(file.read_text())
    np.testing.assert_allclose(list(written.values()), np.where(np.arange(len(gains)) == 1, 12.5, gains), rtol=0.02)
    assert main([*call, "--gains", str(file)]) == 0 and main([*call, "--write-gains", str(file)]) == 1
    assert "from --known-load" in capsys.readouterr().err
    for wrong in ("[1.0, 2.0]", "joint_1: fast"):
        file.write_text(wrong)
        assert main([*call, "--gains", str(file)]) == 1 and "gain" in capsys.readouterr().err
    assert main([*call, *both[:2]]) == 1 and "go together" in capsys.readouterr().err
    assert main([*call, *both, "--gains", "estimate"]) == 1 and "joint=gain" in capsys.readouterr().err

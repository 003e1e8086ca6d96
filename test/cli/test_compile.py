"""`rbd compile`: the code of one robot, made ahead."""
from __future__ import annotations

import sys

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.core.specialize import machine

pytestmark = pytest.mark.skipif(not rbd.COMPILED, reason="needs numba")


@pytest.fixture
def nothing_made(tmp_path, monkeypatch):
    """A cache without code of robots, in a process that has loaded none; the folder of their code."""
    monkeypatch.setattr(machine, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(machine, "_engines", {})
    return tmp_path / "specialize"


def test_the_code_of_a_robot_is_made_ahead(nothing_made, monkeypatch, capsys):
    assert main(["compile", "--urdf", "two_link", "--functions", "inverse_dynamics", "mass_matrix"]) == 0
    assert "'two_link', 2 velocity coordinates: code of 2 of 2 functions ready" in capsys.readouterr().out
    made = sorted(nothing_made.glob("*.o"))
    assert len(made) == 2
    monkeypatch.setattr(machine, "_engines", {})    # as another process, which finds it
    monkeypatch.setattr(machine, "_write", lambda *_: pytest.fail("made again"))
    model = rbd.sample("two_link")
    q, v, a = np.random.default_rng(1).normal(size=(3, 9, 2))
    found = rbd.inverse_dynamics(rbd.specialize(model), q, v, a)
    np.testing.assert_allclose(found, rbd.inverse_dynamics(model, q, v, a), rtol=1e-12)


def test_a_floating_root_is_another_robot(nothing_made, capsys):
    for root in ("fixed", "floating"):
        assert main(["compile", "--quiet", "--urdf", "two_link", "--root", root, "--functions", "mass_matrix"]) == 0
    assert len(list(nothing_made.glob("*.o"))) == 2
    assert [line.split(",")[1].split()[0] for line in capsys.readouterr().out.splitlines()] == ["2", "8"]


def test_on_a_terminal_it_says_what_takes_long(nothing_made, monkeypatch, capsys):
    clock = iter(range(100))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["compile", "--urdf", "two_link",
                 "--functions", "mass_matrix", "inverse_dynamics"]) == 0
    assert "[2/2] inverse_dynamics …" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "code", "what"), [
    (["--urdf", "no.urdf"], 1, "no.urdf"), (["--urdf", "two_link", "--functions", "nothing"], 2, "nothing")])
def test_what_is_wrong_is_said(arguments, code, what, capsys):
    try:
        assert main(["compile", *arguments]) == code
    except SystemExit as end:    # argparse
        assert end.code == code
    said = capsys.readouterr().err
    assert what in said and "Traceback" not in said

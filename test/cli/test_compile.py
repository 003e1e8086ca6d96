"""`rbd compile`: the code of one robot, made ahead."""
from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.core.specialize import machine, program

pytestmark = pytest.mark.skipif(not rbd.COMPILED, reason="needs numba")


processes = []    # what was loaded, which has to live as long as models that call it


def forget(monkeypatch):
    """As in another process."""
    processes.append({})
    monkeypatch.setattr(machine, "_engines", processes[-1])


@pytest.fixture
def nothing_made(tmp_path, monkeypatch):
    """A cache without code of robots, in a process that has loaded none; the folder of their code."""
    monkeypatch.setattr(machine, "cache_directory", lambda: tmp_path)
    forget(monkeypatch)
    return tmp_path / "specialize"


def test_the_code_of_a_robot_is_made_ahead(nothing_made, monkeypatch, capsys):
    assert main(["compile", "two_link", "--functions", "inverse_dynamics", "mass_matrix"]) == 0
    assert "'two_link', 2 velocity coordinates: code of 2 of 2 functions ready" in capsys.readouterr().out
    made = sorted(nothing_made.glob("*.o"))
    assert len(made) == 4    # for one state and for batches
    forget(monkeypatch)
    monkeypatch.setattr(machine, "_write", lambda *_: pytest.fail("made again"))
    model = rbd.sample("two_link")
    q, v, a = np.random.default_rng(1).normal(size=(3, 9, 2))
    for x in ((q, v, a), (q[0], v[0], a[0])):
        found = rbd.inverse_dynamics(rbd.specialize(model), *x)
        np.testing.assert_allclose(found, rbd.inverse_dynamics(model, *x), rtol=1e-12)


def test_functions_with_parameters(nothing_made, monkeypatch, capsys):
    link = rbd.sample("two_link").body_names[-1]
    names = [f"jacobian:{link}:world", "inverse_dynamics_time_derivatives:1", "mass_matrix"]
    assert main(["compile", "two_link", "--functions", *names]) == 0
    assert "code of 3 of 3 functions ready" in capsys.readouterr().out
    assert len(list(nothing_made.glob("*.o"))) == 6
    forget(monkeypatch)
    monkeypatch.setattr(machine, "_write", lambda *_: pytest.fail("made again"))
    rbd.jacobian(rbd.specialize(rbd.sample("two_link")), np.ones(2), link, "world")


def test_what_has_no_code_is_said(nothing_made, monkeypatch, capsys):
    monkeypatch.setattr(program, "MOST", 5)
    assert main(["compile", "two_link", "--functions", "inverse_dynamics"]) == 0
    said = capsys.readouterr()
    assert "inverse_dynamics: " in said.out and "operations, more than 5; the ordinary kernels compute it" in said.out
    assert "code of 0 of 1 functions" in said.out and not said.err


def test_a_floating_root_is_another_robot(nothing_made, capsys):
    for root in ("fixed", "floating"):
        assert main(["compile", "two_link", "--quiet", "--root", root, "--functions", "mass_matrix"]) == 0
    assert len(list(nothing_made.glob("*.o"))) == 4
    assert [line.split(",")[1].split()[0] for line in capsys.readouterr().out.splitlines()] == ["2", "8"]


def test_on_a_terminal_it_says_what_takes_long(nothing_made, monkeypatch, capsys):
    clock = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["compile", "two_link",
                 "--functions", "mass_matrix", "inverse_dynamics"]) == 0
    assert "[2/2] inverse_dynamics …" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "code", "what"), [
    (["no.urdf"], 1, "no.urdf"),
    (["two_link", "--functions", "nothing"], 1, "unknown function 'nothing'"),
    (["two_link", "--functions", "mass_matrix:1"], 1, "unknown function 'mass_matrix:1'"),
    (["two_link", "--functions", "jacobian:no_link"], 1, "unknown body 'no_link'")])
def test_what_is_wrong_is_said(arguments, code, what, capsys):
    assert main(["compile", *arguments]) == code
    said = capsys.readouterr().err
    assert what in said and "Traceback" not in said

"""`rbd sweep`: what its numbers are, what they follow, and what it says of wrong arguments."""
from __future__ import annotations

import contextlib
import csv
import dataclasses
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.processes import PATIENCE, ends

import rbd_ros as rbd
from rbd_ros.cli import demo_motion
from rbd_ros.cli.main import main
from rbd_ros.cli.sweep import report, trial
from rbd_ros.cli.sweep.trial import LAWS, Setup, Spread

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
NOTHING = Spread(0.0, 0.0, 0.0)
LONG = [sys.executable, "-m", "rbd_executables", "rbd", "sweep", "two_link", "--cases", "100000", "--workers", "2"]


def setup(spread, rate=500.0, duration=0.5, **changes):
    model = rbd.sample("two_link")
    scenario = demo_motion.scenario(model, demo_motion.random_motion(model, duration), duration)
    scenario = dataclasses.replace(scenario, **changes) if changes else scenario
    return Setup(model.with_(armature=scenario.rotors), scenario, spread, rate, duration)


def rms(made, law="full feed-forward", cases=8):
    i = LAWS.index(law)
    return np.array([each.rms[i] for each in rbd.batch(partial(trial.run, made), range(cases))])


def test_the_robot_of_the_model_is_tracked_as_well_as_the_rate_allows():
    """Without friction beyond the model's and at twice the rate, the error of the feed-forward held for a period
    halves; that of gravity alone stays.
    """
    model = rbd.sample("two_link")
    same = {"damping": model.damping, "friction": model.friction}
    slow, fast = (rms(setup(NOTHING, rate, **same), cases=1)[0] for rate in (250.0, 1000.0))
    assert 0.0 < fast < 0.35 * slow < 1e-3
    others = [rms(setup(NOTHING, rate, **same), "pd + gravity", 1)[0] for rate in (250.0, 1000.0)]
    assert min(others) > 10.0 * fast and others[1] == pytest.approx(others[0], rel=0.1)


def test_without_a_spread_all_robots_are_one():
    found = rms(setup(NOTHING))
    assert np.ptp(found) == 0.0


@pytest.mark.parametrize("spread", [Spread(0.5, 0.0, 0.0), Spread(0.0, 2.0, 0.0), Spread(0.0, 0.0, 0.05),
                                    Spread(0.0, 0.0, 0.0, 0.01, 0.0), Spread(0.0, 0.0, 0.0, 0.0, 0.2)])
def test_each_spread_worsens_the_error(spread):
    assert np.median(rms(setup(spread))) > 1.2 * rms(setup(NOTHING), cases=1)[0]


def test_what_diverges_is_counted(capsys):
    made = setup(Spread(0.0, 0.0, 0.2), duration=20.0)
    stiff = dataclasses.replace(made.scenario, kp=2000.0 * made.scenario.kp, kd=200.0 * made.scenario.kd)
    found = rbd.batch(partial(trial.run, dataclasses.replace(made, scenario=stiff)), range(3))
    text = report.table(found)
    count = int(np.isinf([each.rms for each in found]).sum())
    assert count and sum(int(line.split()[-1]) for line in text.splitlines()[1:4]) == count
    assert "nan" not in text


def test_a_run_does_not_depend_on_the_workers(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    arm = ["sweep", "two_link", "--cases", "4", "--duration", "0.2", "--position-noise", "1e-4"]
    for workers in ("1", "2"):
        assert main([*arm, "--workers", workers, "--output", str(tmp_path / workers)]) == 0
    one, two = ((tmp_path / name / "sweep.csv").read_text() for name in "12")
    assert one == two
    rows = list(csv.DictReader(one.splitlines()))
    assert len(rows) == 4 and len({row["mass"] for row in rows}) == 4
    for row in rows:
        assert all(float(row[f"largest_{law}"]) >= float(row[f"rms_{law}"]) for law in ("pd", "pd_gravity"))
    assert (tmp_path / "2" / "sweep.png").read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    assert shown.count("tracking error, mrad or mm") == 2


@pytest.mark.parametrize(("option", "text"), [
    (["--cases", "0"], "--cases must be a positive"), (["--mass", "-1"], "--mass must be a number of at least 0"),
    (["--delay", "nan"], "--delay must be"), (["--workers", "0"], "--workers must be"),
    (["--rate", "0"], "--rate must be a positive rate"), (["--duration", "inf"], "--duration must be a positive"),
    (["--seed", "-1"], "seed must be"), (["--duration", "1e-4"], "--duration 0.0001: shorter than a period"),
])
def test_what_it_does_not_take_is_named(option, text, capsys):
    assert main(["sweep", "two_link", *option]) == 1
    assert text in capsys.readouterr().err


def of_group(group):
    """Processes of a process group that run."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, its = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(its) == group and state != "Z":
                found.add(int(folder.name))
    return found


def grown(process, count):
    """Wait until more than this many processes run in the group of a process."""
    end = time.monotonic() + PATIENCE
    while len(of_group(process.pid)) <= count:
        assert time.monotonic() < end
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.02)


def gone(group):
    """Wait for the end of all processes of a group."""
    while left := of_group(group):
        assert all(map(ends, left))


@pytest.mark.parametrize(("end", "helpers"), [    # the resource tracker, then two workers, in their first lines
    (os.killpg, 1), (os.killpg, 3), (os.kill, 3)])    # Ctrl-C in a terminal, and a signal to the command alone
def test_the_first_signal_ends_it_with_a_word_and_without_orphans(end, helpers):
    process = subprocess.Popen(LONG, stderr=subprocess.PIPE, text=True, start_new_session=True)
    grown(process, helpers)
    end(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and said == "\nrbd sweep: interrupted\n"
    gone(process.pid)


def test_a_sweep_that_is_killed_leaves_no_worker():
    process = subprocess.Popen(LONG, stderr=subprocess.DEVNULL, start_new_session=True)
    grown(process, 3)
    process.kill()
    process.wait()
    gone(process.pid)

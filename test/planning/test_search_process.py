"""Searches in a process of their own: it answers as a search in this process does, and ends whatever it does."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.processes import PATIENCE, ends

import rbd_ros as rbd
from rbd_ros.runtime.planning import search_process
from rbd_ros.runtime.planning.motion_planner import MotionPlanner
from rbd_ros.runtime.planning.motion_request import MotionRequest
from rbd_ros.runtime.planning.planner_settings import PlannerSettings
from rbd_ros.runtime.planning.search_process import SearchProcess

MODEL = rbd.sample("two_link")


def task(**fields):
    made = MotionPlanner(MODEL, PlannerSettings.from_values({"time_limit": 600.0}, MODEL))
    return made.prepare(MotionRequest(**{"name": MODEL.joint_names, "start": [-0.5, 0.4], "goal": [0.6, -0.3],
                                         "duration": 1.5} | fields), 0.0)


@pytest.fixture(scope="module")
def searcher():
    made = SearchProcess(MODEL)
    yield made
    made.close()
    assert not running(made.pid)


def running(pid):
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def frozen(searcher):
    """A task; while it is searched for, the process hears and answers nothing."""
    assert searcher.ready()
    os.kill(searcher.pid, signal.SIGSTOP)
    return task()


def meanwhile(act):
    """The `gone` of a search that acts once this waits for an answer, in another thread."""
    other = threading.Thread(target=act)

    def gone():
        if other.ident is None:
            other.start()
        return False

    return gone


def test_it_finds_what_a_search_here_finds(searcher):
    told = []
    there, here = searcher.search(task(), told.append), MotionPlanner.search(task())
    assert there.good and there.names == here.names and told[0].iterations == 0
    for name in ("time", "q", "v", "a", "effort"):
        np.testing.assert_allclose(getattr(there.points, name), getattr(here.points, name), atol=1e-5)
    assert there.motion.cost == pytest.approx(here.motion.cost, rel=1e-6) and there.motion.usage["effort"].ratio < 1.0


def test_refusals_and_defects_come_back(searcher):
    with pytest.raises(rbd.RbdError, match=r"sample_period is 0\.6 s, too long"):
        searcher.search(task(objective=["duration"], duration=0.0, sample_period=0.6))
    with pytest.raises(RuntimeError, match="Traceback"):
        searcher.search(replace(task(), limits=None))
    assert searcher.search(task()).good


def test_too_much_memory_is_an_error(searcher):
    with pytest.raises(rbd.RbdError, match="more memory than parameter 'memory_limit' grants, 16 MiB"):
        searcher.search(replace(task(sample_period=1e-3, duration=19.0), memory_limit=16.0))
    assert searcher.search(task()).good


def test_one_that_is_late_is_ended(searcher, monkeypatch):
    monkeypatch.setattr(search_process, "LATE", 0.1)
    pid = searcher.pid
    late = frozen(searcher)
    with pytest.raises(rbd.RbdError, match=r"did not end within its time limit of 0\.2 s, and was ended"):
        searcher.search(replace(late, time_limit=0.2))
    assert not running(pid) and searcher.search(task()).good


@pytest.mark.thorough
def test_one_that_does_not_hear_that_it_is_cancelled_is_ended(searcher):
    pid = searcher.pid
    plan = searcher.search(frozen(searcher), gone=lambda: True)
    assert plan.cancelled and not plan.good and not running(pid)
    assert searcher.search(task()).good


def test_one_that_does_lives_on(searcher, monkeypatch):
    waits, pid, worker = frozen(searcher), searcher.pid, searcher._worker    # so that it does not end before

    def send(message):
        worker.connection.send(message)
        if message is None:
            os.kill(pid, signal.SIGCONT)

    with monkeypatch.context() as patch:
        patch.setattr(search_process, "GRACE", PATIENCE)
        patch.setattr(searcher, "_worker", worker._replace(connection=SimpleNamespace(
            send=send, poll=worker.connection.poll, recv=worker.connection.recv)))
        plan = searcher.search(waits, gone=lambda: True)
    assert plan.cancelled and searcher.pid == pid and searcher.search(task()).good


def test_one_that_is_killed_is_a_defect_and_replaced(searcher):
    waits, pid = frozen(searcher), searcher.pid
    with pytest.raises(RuntimeError, match="ended with code -9"):
        searcher.search(waits, gone=meanwhile(lambda: os.kill(pid, signal.SIGKILL)))
    assert searcher.ready()
    os.kill(searcher.pid, signal.SIGKILL)    # between searches nobody notices
    searcher._worker.process.wait()    # whose first thread ends before the others
    assert searcher.search(task()).good


def test_close_ends_a_search():
    made = SearchProcess(MODEL)
    waits = frozen(made)
    assert made.search(waits, gone=meanwhile(made.close)).cancelled
    assert ends(made.pid)    # `close` may still be at it
    assert made.search(task()).cancelled and not running(made.pid)    # and nothing starts any more


ORPHAN = """
import sys, time
import rbd_ros as rbd
from rbd_ros.runtime.planning.search_process import SearchProcess
made = SearchProcess(rbd.sample("two_link"))
print(made.pid, flush=True)
if sys.argv[1] == "warm":
    made.ready()
print("there", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("when", [pytest.param("starting", marks=pytest.mark.thorough), "warm"])
def test_it_ends_with_a_parent_that_is_killed(when):
    with subprocess.Popen([sys.executable, "-c", ORPHAN, when], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        parent.stdout.readline()
        os.kill(pid, signal.SIGINT)    # as a terminal's: it is the parent's to end it
        parent.kill()
    assert ends(pid)

"""examples/mit_arm.py drives a simulated arm through package motorbridge, whose serial port is a pseudo terminal.

Behind it: the frames of the adapter and `support.damiao`; the arm is one of `rbd.Simulator`, and its time the clock of
the example.
"""
from __future__ import annotations

import os
import pty
import select
import sys
import threading
import tty
from pathlib import Path

import numpy as np
import pytest
from support.arm import arm, arm_urdf
from support.damiao import STEP, DamiaoArm

import rbd_ros as rbd

pytest.importorskip("motorbridge", reason="package motorbridge is not installed")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import mit_arm
import mit_tracking

pytestmark = [pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning"), pytest.mark.closed_loop]
MODELS = ["4340P", "4310"]
GAINS = {"kp": [80.0, 40.0], "kd": [8.0, 3.0]}
REACH = np.array([0.3, -0.4])
TIMEOUT, MODE = 9, 10    # registers


class Adapter(DamiaoArm):
    """The far end of the serial port: two motors on an arm."""

    def __init__(self, start):
        super().__init__(rbd.Simulator(arm().with_(armature=0.1).with_scaled_masses(1.05), q=start), MODELS)
        self._here, self._there = pty.openpty()
        for end in (self._here, self._there):
            tty.setraw(end)
        self.port = os.ttyname(self._there)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        """Hear what was sent, and end."""
        self._ends.set()
        self._thread.join()

    def _serve(self):
        waiting = b""
        while (heard := bool(select.select([self._here], [], [], 0.05)[0])) or not self._ends.is_set():
            waiting += os.read(self._here, 4096) if heard else b""
            while len(waiting) >= 30:
                assert waiting[:3] == b"\x55\xaa\x1e"
                for identifier, data in self.hear(waiting[13] | waiting[14] << 8, waiting[21:29]):
                    os.write(self._here, b"\xaa\x11\x08" + identifier.to_bytes(4, "little") + data + b"\x55")
                q, v, kp, kd, _ = self.commands
                assert not kp.any() and not kd.any() and (np.abs(q) < 1e-3).all() and (np.abs(v) < 1e-2).all()
                waiting = waiting[30:]

    # ---- the time of the example

    def clock(self):
        return self.plant.time

    def wait(self, seconds):
        for _ in range(max(round(seconds / STEP), 1)):
            self.step()
        self.happens(self.plant.time)

    def happens(self, t):
        """What a test does at time t."""


@pytest.fixture
def adapter():
    made = Adapter([0.4, -0.8])
    yield made
    made.close()
    os.close(made._there)
    os.close(made._here)


def go(adapter):
    controller = rbd.TorqueController(arm_urdf(), rotor_inertia=[0.1], gains=GAINS, effort_limits={
        "maximum": [mit_tracking.LIMITS[model] for model in MODELS]})
    with mit_arm.Controller.from_dm_serial(adapter.port) as bus:
        done = mit_arm.run(mit_arm.Motors(bus, MODELS), controller, REACH, adapter.clock, adapter.wait)
    return done, controller


def test_the_arm_goes_there_and_back(adapter, capsys):
    start, places = adapter.plant.q.copy(), []
    adapter.happens = lambda t: places.append(adapter.plant.q.copy())
    done, controller = go(adapter)
    far = min(places, key=lambda q: np.abs(q - start - REACH).max())
    assert done and np.abs(far - start - REACH).max() < 0.03 and np.abs(places[-1] - start).max() < 0.05
    assert (adapter.most < 0.5).all() and controller.report()["rejected_total"] == 0
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line in ("held", "there", "back", "letting go")] == [
        "held", "there", "back", "letting go"]
    adapter.close()
    assert adapter.enabled == set()    # off, at the end
    assert int.from_bytes(adapter.registers[1, TIMEOUT], "little") == 2000    # 0.1 s without commands, in 50 µs


def test_a_motor_that_is_silent_for_a_while_and_outliers_do_not_throw_the_arm(adapter):
    def happens(t):
        adapter.silent = {2} if 2.0 < t < 2.3 else set()
        adapter.false = np.array([0.0, 3.0]) if 3.0 < t < 3.01 else np.zeros(2)

    adapter.happens = happens
    done, controller = go(adapter)
    report = controller.report()
    assert done and report["timeouts"] == 1 and report["rejected_implausible"] > 0
    assert (adapter.most < 1.5).all() and np.abs(adapter.plant.v).max() < 0.1


def test_a_motor_that_stays_silent_ends_at_the_fallback(adapter):
    """And no further: the program goes on, and says so."""
    class Enough(Exception):
        pass

    def happens(t):
        adapter.silent = {1} if t > 2.0 else set()
        if t > 6.0:
            raise Enough

    adapter.happens = happens
    with pytest.raises(Enough):
        go(adapter)
    assert np.abs(adapter.torque).max() < 0.02    # the fallback, 0, in the steps of the protocol

"""examples/mit_arm.py drives a simulated arm through package motorbridge, whose serial port is a pseudo terminal.

Behind it: the frames of the adapter, the coding of MIT mode and the registers of Damiao motors, written from their
protocol; the arm is one of `rbd.Simulator`, and its time the clock of the example.
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

import rbd_ros as rbd

pytest.importorskip("motorbridge", reason="package motorbridge is not installed")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import mit_arm

pytestmark = [pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning"), pytest.mark.closed_loop]
RANGES = {"4340P": (12.5, 10.0, 28.0), "4310": (12.5, 30.0, 10.0)}    # rad, rad/s, N m
MODELS = ["4340P", "4310"]
GAINS = {"kp": [80.0, 40.0], "kd": [8.0, 3.0]}
REACH = np.array([0.3, -0.4])
TIMEOUT, MODE = 9, 10    # registers


def coded(value, largest, bits):
    return int(np.clip(round((value + largest) / (2.0 * largest) * (2**bits - 1)), 0, 2**bits - 1))


def decoded(number, largest, bits):
    return number / (2**bits - 1) * 2.0 * largest - largest


class Adapter:
    """The far end of the serial port: two motors on an arm. silent: identifiers that do not answer; false: numbers
    added to the positions that are told.
    """

    def __init__(self, start):
        self.plant = rbd.Simulator(arm().with_(armature=0.1).with_scaled_masses(1.05), q=start)
        self.torque, self.silent, self.false, self.enabled = np.zeros(2), set(), np.zeros(2), set()
        self.registers = {(motor, MODE): (1).to_bytes(4, "little") for motor in (1, 2)}    # MIT
        self.most = np.zeros(2)
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
                self._hear(waiting[13] | waiting[14] << 8, waiting[21:29])
                waiting = waiting[30:]

    def _hear(self, identifier, data):
        if identifier == 0x7FF:    # registers
            motor = data[0] | data[1] << 8
            if data[2] == 0x55:
                self.registers[motor, data[3]] = data[4:8]
            if data[2] in (0x33, 0x55):
                self._say(motor, data[:4] + self.registers.get((motor, data[3]), (motor).to_bytes(4, "little")))
                return
        else:
            motor = identifier
            if data[:7] == b"\xff" * 7:
                (self.enabled.add if data[7] == 0xFC else self.enabled.discard)(motor)
            elif motor in self.enabled:
                P, V, T = RANGES[MODELS[motor - 1]]
                q, v, kp, kd, torque = (
                    data[0] << 8 | data[1], data[2] << 4 | data[3] >> 4, (data[3] & 15) << 8 | data[4],
                    data[5] << 4 | data[6] >> 4, (data[6] & 15) << 8 | data[7])
                assert kp == kd == 0 and abs(decoded(q, P, 16)) < 1e-3 and abs(decoded(v, V, 12)) < 1e-2
                self.torque[motor - 1] = decoded(torque, T, 12)
        self._say(motor, self._state(motor))

    def _state(self, motor):
        P, V, T = RANGES[MODELS[motor - 1]]
        i = motor - 1
        q, v, torque = (coded(self.plant.q[i] + self.false[i], P, 16), coded(self.plant.v[i], V, 12),
                        coded(self.torque[i], T, 12))
        return bytes([motor | (motor in self.enabled) << 4, q >> 8, q & 255, v >> 4, (v & 15) << 4 | torque >> 8,
                      torque & 255, 30, 30])

    def _say(self, motor, data):
        if motor not in self.silent:
            os.write(self._here, b"\xaa\x11\x08" + (0x10 + motor).to_bytes(4, "little") + data + b"\x55")

    # ---- the time of the example

    def clock(self):
        return self.plant.time

    def wait(self, seconds):
        for _ in range(max(round(seconds * 1e3), 1)):
            self.plant.step(self.torque)
        self.most = np.maximum(self.most, np.abs(self.plant.v))
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
        "maximum": [mit_arm.LIMITS[model] for model in MODELS]})
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

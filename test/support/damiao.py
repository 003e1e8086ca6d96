"""An arm of Damiao motors in MIT mode, from the far end of their bus: what they hear, answer and apply.

Written from the protocol, not from a package that speaks it. Identifiers are 1, 2, … for commands, 0x11, 0x12, … for
answers, 0x7FF for registers.
"""
from __future__ import annotations

import numpy as np

RANGES = {"8009": (12.5, 45.0, 54.0), "4340P": (12.5, 10.0, 28.0), "4310": (12.5, 30.0, 10.0)}    # rad, rad/s, N m
STIFFEST, DAMPED = 500.0, 5.0    # N m/rad, N m s/rad: largest gains
STEP = 1e-3                      # s, of the motors' loop
MODE = 10                        # register
ENABLE, DISABLE = 0xFC, 0xFD
READ, WRITE, STATE = 0x33, 0x55, 0xCC


def coded(value, largest, bits):
    return int(np.clip(round((value + largest) / (2.0 * largest) * (2**bits - 1)), 0, 2**bits - 1))


def decoded(number, largest, bits):
    return number / (2**bits - 1) * 2.0 * largest - largest


class DamiaoArm:
    """plant: with q, v and step(effort) of `STEP`, as `rbd.Simulator`. kinds: of `RANGES`, one per joint.

    An arm whose motors were never enabled stands on its brakes. silent: identifiers that do not answer; false (n,):
    added to the positions that are told.
    """

    def __init__(self, plant, kinds):
        self.plant, self.kinds = plant, kinds
        n = len(kinds)
        self.commands = np.zeros((5, n))    # position, velocity, kp, kd, torque
        self.torque, self.most, self.false = np.zeros((3, n))
        self.enabled, self.silent, self.free = set(), set(), False
        self.registers = {(motor, MODE): (1).to_bytes(4, "little") for motor in range(1, n + 1)}    # MIT

    def hear(self, identifier, data):
        """A frame; returns the answers, (identifier, data)."""
        if identifier == 0x7FF:
            motor = data[0] | data[1] << 8
            if data[2] == WRITE:
                self.registers[motor, data[3]] = bytes(data[4:8])
            if data[2] in (READ, WRITE):
                value = self.registers.get((motor, data[3]), motor.to_bytes(4, "little"))
                return self._answers(motor, bytes(data[:4]) + value)
        else:
            motor = identifier
            if bytes(data[:7]) == b"\xff" * 7:
                if data[7] == ENABLE:
                    self.enabled.add(motor)
                elif data[7] == DISABLE:
                    self.enabled.discard(motor)
                    self.commands[:, motor - 1] = 0.0
            elif motor in self.enabled:
                self._take(motor, data)
        return self._answers(motor, self._state(motor))

    def _take(self, motor, data):
        P, V, T = RANGES[self.kinds[motor - 1]]
        q, v, kp, kd, torque = (
            data[0] << 8 | data[1], data[2] << 4 | data[3] >> 4, (data[3] & 15) << 8 | data[4],
            data[5] << 4 | data[6] >> 4, (data[6] & 15) << 8 | data[7])
        self.commands[:, motor - 1] = (decoded(q, P, 16), decoded(v, V, 12), kp / 4095 * STIFFEST, kd / 4095 * DAMPED,
                                       decoded(torque, T, 12))
        self.free = True

    def _state(self, motor):
        i = motor - 1
        P, V, T = RANGES[self.kinds[i]]
        q, v, torque = (coded(self.plant.q[i] + self.false[i], P, 16), coded(self.plant.v[i], V, 12),
                        coded(self.torque[i], T, 12))
        return bytes([motor | (motor in self.enabled) << 4, q >> 8, q & 255, v >> 4, (v & 15) << 4 | torque >> 8,
                      torque & 255, 30, 30])

    def _answers(self, motor, data):
        return [] if motor in self.silent else [(0x10 + motor, data)]

    def step(self):
        """A step of the motors' loops."""
        q_d, v_d, kp, kd, torque = self.commands
        limit = np.array([RANGES[kind][2] for kind in self.kinds])
        self.torque = np.clip(torque + kp * (q_d - self.plant.q) + kd * (v_d - self.plant.v), -limit, limit)
        if self.free:
            self.plant.step(self.torque)
        self.most = np.maximum(self.most, np.abs(self.plant.v))

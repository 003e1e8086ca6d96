"""Move an arm of Damiao motors on SocketCAN through package motorbridge with a model's torque beside the motors' gains.

    python3 examples/motorbridge_arm.py arm.urdf can0 8009,4310 60,30 4,1.5 0.3,-0.4

The arguments are those of openarm_arm.py; the motors, and how a silent one is noticed, those of mit_arm.py.
"""
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import mit_arm
import numpy as np
from mit_tracking import compare
from motorbridge import Controller


class Motors:
    def __init__(self, bus: Controller, kinds: list[str], kp: np.ndarray, kd: np.ndarray) -> None:
        self._arm, self._gains = mit_arm.Motors(bus, kinds), (kp.tolist(), kd.tolist())

    def states(self) -> tuple[np.ndarray, ...]:
        for motor in self._arm.motors:
            motor.request_feedback()
        return self._arm.heard()

    def exchange(self, q, v, torque) -> tuple[np.ndarray, ...]:
        return self._arm.send(q.tolist(), v.tolist(), *self._gains, torque.tolist())


@contextmanager
def motors_on(interface: str, kinds: list[str], kp: np.ndarray, kd: np.ndarray) -> Iterator[Motors]:
    with Controller(interface) as bus:
        yield Motors(bus, kinds, kp, kd)


def main(arguments: list[str], **time) -> int:
    return compare(motors_on, __doc__, arguments, **time)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Move an OpenArm, or any arm of Damiao motors on SocketCAN, through package openarm-can with a model's torque.

    python3 examples/openarm_arm.py arm.urdf can0 8009,4310 60,30 4,1.5 0.3,-0.4

Interface; motors of the joints in the order of the URDF, with the identifiers 1, 2, … for commands and 0x11, 0x12, …
for answers, and the joints' directions and zeros; their gains kp and kd; how far they go. The motion is done by the
gains alone first, then with torque: what it prints is the largest error of each. Parameters of node feedforward in
arm.yaml, beside the URDF, count if there are any.

After the last line the motors are off, so have the arm where it can rest. The package returns the last answer of a
silent motor for ever: the motors' own timeout (register 9) ends what this program cannot see.
"""
import sys

import numpy as np
import openarm_can
from mit_tracking import compare

WAIT = 2000    # µs, for the first answer


class Motors:
    def __init__(self, interface: str, kinds: list[str], kp: np.ndarray, kd: np.ndarray) -> None:
        ids = range(1, len(kinds) + 1)
        self._gains = kp.tolist(), kd.tolist()
        self._bus = openarm_can.OpenArm(interface, False)
        self._bus.init_arm_motors([getattr(openarm_can.MotorType, f"DM{kind}") for kind in kinds], list(ids),
                                  [0x10 + i for i in ids])
        self._bus.set_callback_mode_all(openarm_can.CallbackMode.STATE)
        self._arm = self._bus.get_arm()

    def __enter__(self) -> "Motors":
        self._bus.enable_all()
        self._bus.recv_all(WAIT)
        return self

    def __exit__(self, *error: object) -> None:
        self._bus.disable_all()
        self._bus.recv_all(WAIT)

    def states(self) -> tuple[np.ndarray, ...]:
        self._bus.refresh_all()
        return self._heard()

    def exchange(self, q, v, torque) -> tuple[np.ndarray, ...]:
        self._arm.mit_control_all([openarm_can.MITParam(*each) for each in zip(
            *self._gains, q.tolist(), v.tolist(), torque.tolist(), strict=True)])
        return self._heard()

    def _heard(self) -> tuple[np.ndarray, ...]:
        self._bus.recv_all(WAIT)
        return tuple(np.array([(motor.get_position(), motor.get_velocity(), motor.get_torque())
                               for motor in self._arm.get_motors()]).T)


def main(arguments: list[str], **time) -> int:
    return compare(Motors, __doc__, arguments, **time)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

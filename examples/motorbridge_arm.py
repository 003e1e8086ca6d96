"""Move an arm of Damiao motors on SocketCAN through package motorbridge with a model's torque beside the motors' gains.

    python3 examples/motorbridge_arm.py arm.urdf can0 8009,4310 60,30 4,1.5 0.3,-0.4

The arguments are those of openarm_arm.py. The motors switch themselves off if no command comes for 0.1 s. `mit_arm.py`
is for torques alone, through the serial adapter.
"""
import sys

import numpy as np
from mit_tracking import controller_for, numbers, track
from motorbridge import CallError, Controller, Mode

import rbd_ros as rbd

ENABLED, OFF_AFTER = 1, 100    # status of a motor; ms


class Motors:
    def __init__(self, bus: Controller, kinds: list[str], controller: rbd.TorqueController) -> None:
        self._bus = bus
        self._gains = list(zip(controller.parameters["gains.kp"], controller.parameters["gains.kd"], strict=True))
        self._motors = [bus.add_damiao_motor(1 + i, 0x11 + i, kind) for i, kind in enumerate(kinds)]
        bus.enable_all()
        for motor in self._motors:
            motor.ensure_mode(Mode.MIT)
            motor.set_can_timeout_ms(OFF_AFTER)

    def states(self) -> tuple[np.ndarray, ...]:
        for motor in self._motors:
            motor.request_feedback()
        return self._heard()

    def exchange(self, q, v, torque) -> tuple[np.ndarray, ...]:
        for motor, (kp, kd), *sent in zip(self._motors, self._gains, q.tolist(), v.tolist(), torque.tolist(),
                                          strict=True):
            motor.send_mit(*sent[:2], kp, kd, sent[2])
        return self._heard()

    def _heard(self) -> tuple[np.ndarray, ...]:
        try:
            self._bus.poll_feedback_once()
        except CallError:
            return ()
        states = [motor.get_state() for motor in self._motors]
        if any(state is None or state.status_code != ENABLED for state in states):
            return ()
        return tuple(np.array([(state.pos, state.vel, state.torq) for state in states]).T)


def main(arguments: list[str], **time) -> int:
    if len(arguments) != 6:
        raise SystemExit(__doc__)
    urdf, interface = arguments[:2]
    kinds, (kp, kd, reach) = arguments[2].split(","), map(numbers, arguments[3:])
    controller = controller_for(urdf, kinds, kp, kd)
    with Controller(interface) as bus:
        alone, helped = track(Motors(bus, kinds, controller), controller, reach, **time)
    return 0 if helped < alone else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

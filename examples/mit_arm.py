"""Move an arm of Damiao motors in MIT mode with `rbd.TorqueController`: no ROS, one program between URDF and CAN.

    python3 examples/mit_arm.py arm.urdf /dev/ttyACM0 4340P,4340P,4310 0.3,-0.2,0.1

Needs package motorbridge. The motors are those of the joints in the order of the URDF, with the identifiers 1, 2, … for
commands and 0x11, 0x12, … for answers, and the joints' directions and zeros (otherwise `rbd identify --zeros`, and
the signs in `send` and `heard`). Parameters of node feedforward in arm.yaml, beside the URDF, count if there are any:
give gains.kp and gains.kd, or the arm is held by gravity compensation alone. The arm goes by these angles (rad) and
back. Ctrl-C lets go at any time: after the last line the motors are off, so have the arm where it can rest.

Feedback and limits are here all those of the controller: the motors get torques alone. motorbridge_arm.py, on
SocketCAN, is for the motors' own gains, which hold the arm also between two commands.

The motors switch themselves off if no command comes for 0.1 s. `get_state` has no time, and returns the last answer of
a silent motor for ever: so one motor per cycle is asked for a register, and without an answer there is no state.
"""
import itertools
import signal
import sys
import time

import numpy as np
from mit_tracking import RATE, controller_for, numbers

import rbd_ros as rbd

try:
    from motorbridge import CallError, Controller, Mode
except ImportError:    # `run` alone, for motors behind another driver: docs/mit_arms.md
    Controller = None

IDENTIFIER, ANSWER = 8, 5         # register; ms
ENABLED, OFF_AFTER = 1, 100       # status of a motor; ms


class Motors:
    """The motors of all joints on one bus."""

    def __init__(self, bus: Controller, models: list[str]) -> None:
        self._bus = bus
        self.motors = [bus.add_damiao_motor(1 + i, 0x11 + i, model) for i, model in enumerate(models)]
        self._turn, self._asked = itertools.cycle(self.motors), self.motors[0]
        bus.enable_all()
        for motor in self.motors:
            motor.ensure_mode(Mode.MIT)
            motor.set_can_timeout_ms(OFF_AFTER)

    def exchange(self, effort: np.ndarray) -> tuple[np.ndarray, ...]:
        """Send torques (n,), N m, alone: with gains 0. Returns the states."""
        zero = [0.0] * len(self.motors)
        return self.send(zero, zero, zero, zero, effort.tolist())

    def send(self, *commands: list[float]) -> tuple[np.ndarray, ...]:
        """Send positions, velocities, gains kp and kd, and torques, a number per motor; returns the states."""
        try:
            for motor, *command in zip(self.motors, *commands, strict=True):
                motor.send_mit(*command)
        except CallError:
            return ()
        return self.heard()

    def heard(self) -> tuple[np.ndarray, ...]:
        """Positions, velocities and torques (n,), rad, rad/s, N m; () if a motor is silent or off."""
        try:
            self._asked.get_register_u32(IDENTIFIER, ANSWER)
            self._asked = next(self._turn)    # a silent motor is asked until it answers
            self._bus.poll_feedback_once()
            states = [motor.get_state() for motor in self.motors]
        except CallError:
            return ()
        if any(state is None or state.status_code != ENABLED for state in states):
            return ()
        return tuple(np.array([(state.pos, state.vel, state.torq) for state in states]).T)


def run(motors, controller, reach, clock=time.monotonic, wait=time.sleep) -> bool:
    """Go by `reach` (n,) and back, then let go; whether the arm got there. clock: s; wait: called with s."""
    command = controller.update(clock())
    signal.signal(signal.SIGINT, lambda *signals: controller.finish())
    moves, done = None, False
    while command.mode != "inactive":
        begin = clock()
        state = motors.exchange(command.effort)
        command = controller.update(begin, *state)
        for notice in controller.notices():
            print(notice, flush=True)
        if moves is None and state and command.valid:
            start, zero = state[0], np.zeros(len(reach))
            moves = iter([("held", [], 1.0), ("there", [(3.0, start + reach, zero, zero)], 3.5),
                          ("back", [(3.0, start, zero, zero)], 3.5)])
            until = begin
        if moves is not None and begin >= until:
            name, points, lasts = next(moves, ("", None, np.inf))
            until = begin + lasts
            done = points is None
            try:
                controller.finish() if done else controller.follow(points)
                print(name or "letting go", flush=True)
            except rbd.RbdError as error:
                print(f"not {name}: {error}", flush=True)
        wait(max(begin + 1.0 / RATE - clock(), 0.0))
    motors.exchange(command.effort)
    return done


def main() -> int:
    if len(sys.argv) != 5 or Controller is None:
        raise SystemExit(__doc__)
    urdf, port, kinds = *sys.argv[1:3], sys.argv[3].split(",")
    with Controller.from_dm_serial(port) as bus:
        return 0 if run(Motors(bus, kinds), controller_for(urdf, kinds), numbers(sys.argv[4])) else 1


if __name__ == "__main__":
    sys.exit(main())

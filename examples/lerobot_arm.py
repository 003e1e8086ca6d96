"""Move an OpenArm through lerobot's robot class, with a model's torque: by `send_action`, which takes positions alone.

    python3 examples/lerobot_arm.py arm.urdf can0 8009,4310 60,30 4,1.5 0.3,-0.4

The arguments are those of openarm_arm.py. lerobot's motors apply kp (q_d - q) - kd v to the positions of an action: a
torque, and the velocity of the motion, are a shift of these by (torque + kd v_d) / kp. So a policy for lerobot, which
asks for positions, gets an arm that goes where it is told, with gains that are as soft as before.

`connect(calibrate=False)`: an arm with a file of calibration would take its present place for zero.
"""
import sys

import numpy as np
from lerobot.robots.openarm_follower import OpenArmFollower, OpenArmFollowerConfig
from mit_tracking import compare

FARTHEST = 180.0    # degrees; of positions in an action, which the torque shifts


class Motors:
    def __init__(self, interface: str, kinds: list[str], kp: np.ndarray, kd: np.ndarray) -> None:
        names = [f"joint_{1 + i}" for i in range(len(kinds))]
        self._names, self._kp, self._kd = names, kp, kd
        self._gains = [dict(zip(names, gains.tolist(), strict=True)) for gains in (kp, kd)]
        self._robot = OpenArmFollower(OpenArmFollowerConfig(
            port=interface, use_can_fd=False, joint_limits=dict.fromkeys(names, (-FARTHEST, FARTHEST)),
            motor_config={name: (1 + i, 0x11 + i, f"dm{kind}") for i, (name, kind) in enumerate(zip(
                names, kinds, strict=True))}))

    def __enter__(self) -> "Motors":
        self._robot.connect(calibrate=False)
        return self

    def __exit__(self, *error: object) -> None:
        self._robot.disconnect()

    def states(self) -> tuple[np.ndarray, ...]:
        seen = self._robot.get_observation()
        q, v, torque = (np.array([seen[f"{name}.{what}"] for name in self._names])
                        for what in ("pos", "vel", "torque"))
        return np.radians(q), np.radians(v), torque

    def exchange(self, q, v, torque) -> tuple[np.ndarray, ...]:
        positions = np.degrees(q + (torque + self._kd * v) / self._kp)
        self._robot.send_action({f"{name}.pos": float(p) for name, p in zip(self._names, positions, strict=True)},
                                *self._gains)
        return self.states()


def main(arguments: list[str], **time) -> int:
    return compare(Motors, __doc__, arguments, **time)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

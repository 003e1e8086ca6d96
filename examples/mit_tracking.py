"""What the examples of arms in MIT mode share: the controller of an arm, and a comparison of two motions of it.

`compare` moves an arm by its motors' gains alone, then with the torque of a model.

A motor in MIT mode applies kp (q_d - q) + kd (v_d - v) + torque in a loop of its own, at 1 kHz or more. With gains that
are soft enough for contact an arm sags by its weight; a torque from a model carries it, and the gains do the rest.

`rbd.TorqueController` answers a measured state with an effort, of which the same gains are a part. `split` makes of it
what the motors are sent: in this state they apply that effort, whatever it is (a command, a ramp, what holds a stopped
arm), and until the next one they follow the reference by their own, newer measurements.
"""
from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import rbd_ros as rbd

LIMITS = {"4310": 10.0, "4340": 28.0, "4340P": 28.0, "6006": 20.0, "8006": 40.0, "8009": 54.0}    # N m, of the protocol
RATE, THERE_AND_BACK = 200.0, 4.0    # Hz; s
States = tuple[np.ndarray, ...]      # positions, velocities and torques; () if a motor is silent


def numbers(text: str) -> np.ndarray:
    return np.array([float(x) for x in text.split(",")])


def controller_for(urdf: str, kinds: list[str], **parameters: Any) -> rbd.TorqueController:
    """With these parameters of node feedforward, others of the .yaml beside the URDF, if there is one, and the motors'
    effort limits.
    """
    file = Path(urdf).with_suffix(".yaml")
    controller = rbd.TorqueController(urdf, file=file if file.is_file() else None, **parameters)
    most = np.array([LIMITS[kind] for kind in kinds])
    asked = np.broadcast_to(controller.parameters["effort_limits.maximum"], len(kinds))
    controller.set(effort_limits={"maximum": np.where(asked > 0.0, np.minimum(asked, most), most).tolist()})
    return controller


def split(controller: rbd.TorqueController, effort: np.ndarray, q: np.ndarray, v: np.ndarray) -> States:
    """Positions, velocities and torques with which the motors apply `effort` in the state q, v."""
    kp, kd = (np.array(controller.parameters[name]) for name in ("gains.kp", "gains.kd"))
    q_d, v_d = (q, 0.0 * v) if controller.reference is None else controller.reference[:2]
    return q_d, v_d, effort - kp * (q_d - q) - kd * (v_d - v)


class Motors(Protocol):
    """Motors with the gains of the controller."""

    def states(self) -> States:
        """Positions, velocities and torques (n,), rad, rad/s and N m; () if a motor is silent."""

    def exchange(self, q: np.ndarray, v: np.ndarray, torque: np.ndarray) -> States:
        """Send positions, velocities and torques; returns the states."""


def track(motors: Motors, controller: rbd.TorqueController, reach: np.ndarray,
          clock: Callable[[], float] = time.monotonic,
          wait: Callable[[float], object] = time.sleep) -> tuple[float, float]:
    """Move by `reach` (n,) and back, by the gains alone and with torque; prints and returns the largest errors, rad.

    clock: s; wait: called with s. Ctrl-C lets go.
    """
    stops: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: stops.append(number))

    def cycles() -> Iterator[float]:
        begin = clock()
        while True:
            now = clock()
            yield now - begin
            wait(max(now + 1.0 / RATE - clock(), 0.0))

    home = next(states[0] for _ in cycles() if (states := motors.states()))
    zero = 0.0 * home
    motion = rbd.SplineMotion(np.repeat([home, home + reach, home], 6, axis=0), THERE_AND_BACK)
    alone = helped = 0.0
    for t in cycles():
        if t > THERE_AND_BACK or stops:
            break
        q, v = motion(t)[:2]
        if states := motors.exchange(q, v, zero):
            alone = max(alone, float(np.abs(states[0] - q).max()))
    print(f"by the gains alone: {1e3 * alone:.1f} mrad from the motion at most", flush=True)

    sent, moves = (home, zero, zero), [(0.0, []), (0.6, [(1.0, home, zero, zero)]), (2.2, motion)]
    finishing, moving = False, False
    for t in cycles():
        now = clock()
        states = motors.exchange(*sent)
        command = controller.update(now, *states)
        for notice in controller.notices():
            print(notice, flush=True)
        if command.mode == "inactive":
            break
        if states:
            sent = split(controller, command.effort, *states[:2])
        if moving and command.following and controller.reference is not None and states:
            helped = max(helped, float(np.abs(states[0] - controller.reference.q).max()))
        if moves and t >= moves[0][0] and command.valid:
            move = moves.pop(0)[1]
            controller.follow(move)
            moving = move is motion
        if not finishing and (stops or t > 2.4 + THERE_AND_BACK):
            controller.finish()
            finishing, moving = True, False
    print(f"with the torque of the model: {1e3 * helped:.1f} mrad", flush=True)
    return alone, helped


def compare(motors_on: Callable[[str, list[str], np.ndarray, np.ndarray], AbstractContextManager[Motors]],
            usage: str | None, arguments: list[str], **time: Any) -> int:
    """The program of an example. motors_on: motors of an interface, of these kinds, with gains kp and kd (n,), off at
    the end of the context.
    """
    if len(arguments) != 6:
        raise SystemExit(usage)
    urdf, interface = arguments[:2]
    kinds, (kp, kd, reach) = arguments[2].split(","), map(numbers, arguments[3:])
    controller = controller_for(urdf, kinds, gains={"kp": kp.tolist(), "kd": kd.tolist()})
    with motors_on(interface, kinds, kp, kd) as motors:
        alone, helped = track(motors, controller, reach, **time)
    return 0 if helped < alone else 1

"""Gravity check: agreement of measured effort and model, and compensation by exactly one of robot and node.

Gravity compensated twice (the arm rises) and not at all (the arm falls) are the two classic failures. They are
detected by the measured effort m at rest, the model's gravity torque g and parameter `robot_compensates`:

| m     | before this node sends torque           | while it does: what `robot_compensates` says is wrong or right |
|-------|-----------------------------------------|----------------------------------------------------------------|
| ≈ 0   | held by brakes or a stand, or measured  | with gravity: measured without gravity, or nobody compensates  |
|       | without gravity                         | (missing); without: the torque does not arrive (missing)       |
| ≈ g   | held by brakes, another controller or   | agreement                                                      |
|       | the robot itself                        |                                                                |
| ≈ 2 g | compensated twice, without this node    | compensated twice (double)                                     |
| ≈ −g  | other sign convention, or the base is mounted upside down (sign)                                         |
| else  | tool, mounting or order of joints (mismatch)                                                             |
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SMALL = 0.5       # N m or N: smaller gravity torques are inconclusive
RESIDUAL = 0.3    # share of |g| by which m may differ from a multiple of g
NEAR = 0.3        # tolerance of the multiple


class GravityVerdict(NamedTuple):
    """`kind`: agrees, held, unloaded, double, missing, sign, mismatch or unknown; `text`: explanation."""

    agrees: bool
    kind: str
    text: str


def compare_gravity(names: Sequence[str], measured: Array, gravity: Array, compensates: bool,
                    acting: bool) -> GravityVerdict:
    """Judge measured effort and the model's gravity torque, (nv,) each, N m or N.

    `compensates`: whether `robot_compensates` has gravity. `acting`: whether this node's torque acts on the robot.
    """
    size = float(np.linalg.norm(gravity))
    if not np.abs(gravity).max(initial=0.0) >= SMALL:
        return GravityVerdict(True, "unknown", "gravity loads no joint in this pose, so it cannot be seen whether the "
                              "robot compensates it: start in a pose with the arm stretched out")
    ratio = float(measured @ gravity) / size**2
    i = int(np.argmax(np.abs(measured - gravity)))
    numbers = f"at joint '{names[i]}' {measured[i]:.3g} is measured, the model says {gravity[i]:.3g} (N m or N)"
    near = round(ratio)
    if np.linalg.norm(measured - near * gravity) > RESIDUAL * size * max(abs(near), 1) or abs(ratio - near) > NEAR:
        near = 99
    verdict = _ACTING.get((near, compensates)) if acting else _BEFORE.get((near, compensates))
    kind, text = verdict or _ALWAYS.get(near, _MISMATCH)
    return GravityVerdict(kind in ("agrees", "held", "unloaded"), kind, f"{text}; {numbers}")


_SET = "set parameter 'robot_compensates' to [gravity]"
_UNSET = "take gravity out of parameter 'robot_compensates'"

_ACTING: dict[tuple[int, bool], tuple[str, str]] = {
    (0, False): ("missing", "no gravity torque is measured though this node sends it: the torque does not reach the "
                 "joints (controller not active, wrong topic or order of joints), or the robot reports effort without "
                 f"gravity, because it compensates that itself; then gravity is compensated twice: {_SET}"),
    (0, True): ("missing", "no gravity torque is measured, and this node adds none, as 'robot_compensates' has gravity"
                f": if the arm sinks, nobody compensates gravity: {_UNSET}; if it stays, the robot reports effort "
                "without gravity, which is fine"),
    (1, False): ("agrees", "measured effort agrees with the model's gravity torque, which this node sends"),
    (1, True): ("agrees", "measured effort agrees with the model's gravity torque, which the robot adds by itself"),
    (2, False): ("double", "twice the gravity torque is measured: gravity is compensated twice, by the robot and by "
                 f"this node: {_SET}"),
    (2, True): ("double", "twice the gravity torque is measured, although this node adds none: gravity is compensated "
                "twice, by the robot and by another controller, or the robot carries a load of about its own weight: "
                "check its tool settings"),
}
_BEFORE: dict[tuple[int, bool], tuple[str, str]] = {
    (0, False): ("unloaded", "no gravity torque is measured yet: something else holds the arm (brakes, a stand), or "
                 "the robot reports effort without gravity, because it compensates that itself; in that case "
                 f"{_SET}, or gravity is compensated twice"),
    (0, True): ("unloaded", "no gravity torque is measured, as with robots that report effort without gravity. If the "
                f"arm sinks now, nobody compensates gravity: {_UNSET}"),
    (1, False): ("held", "the model's gravity torque is measured before this node sends any: brakes, another "
                 f"controller or the robot itself hold the arm. If it is the robot itself, {_SET}, or gravity is "
                 "compensated twice"),
    (1, True): ("agrees", "measured effort agrees with the model's gravity torque, which the robot adds by itself"),
    (2, False): ("double", "twice the gravity torque is measured before this node sends any: gravity is compensated "
                 f"twice already, by the robot and by another controller: stop that one and {_SET}; or the model lacks "
                 "half of the weight"),
    (2, True): ("double", "twice the gravity torque is measured before this node sends any: gravity is compensated "
                "twice already, by the robot and by another controller, or the model lacks half of the weight (tool?)"),
}
_ALWAYS: dict[int, tuple[str, str]] = {
    -1: ("sign", "measured effort has the opposite sign of the model's gravity torque: the robot reports the torque "
         "that acts on it, not the one that it exerts, or it is mounted upside down (parameter 'gravity')"),
}
_MISMATCH = ("mismatch", "measured effort is no multiple of the model's gravity torque: check the tool (payload), the "
             "mounting (parameter 'gravity'), the units (motor currents are not torques: switch 'gravity_check' off) "
             "and the order of joints")

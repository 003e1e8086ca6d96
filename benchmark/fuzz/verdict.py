"""Expected verdict of a torque node on a message, from the message alone, and comparison with its counters.

Independent of the node's code: the rules are those of docs/safety.md and of the comments in the message files.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, combinations, pairwise
from typing import Any

ALWAYS = frozenset({"stamp_backwards", "stamp_leap", "implausible"})    # may be found before what else is wrong


class Verdict(frozenset):
    """Kinds of rejection of which one must be counted; empty: none is required, the message may be valid."""


NOTHING = Verdict()
HUGE = 1e100    # larger numbers may count as infinite


def _verdict(found: set[str]) -> Verdict:
    """Kinds of what must be wrong, and of what may be (with "?") if something must be."""
    return Verdict(kind.lstrip("?") for kind in found) if any(kind[0] != "?" for kind in found) else NOTHING


def _names(names: Sequence[str], wanted: Collection[str], extra: bool) -> set[str]:
    found = set()
    if len(set(names)) != len(names):
        found.add("duplicate_joint")
    if not extra and (not set(names) <= set(wanted) or not names):
        found.add("unknown_joint")
    if not set(wanted) <= set(names):
        found.add("missing_joint")
    return found


def _numbers(names: Sequence[str], wanted: Collection[str], values: Sequence[float], optional: bool) -> set[str]:
    if not len(values) and optional:
        return set()
    found = {"wrong_size"} if len(values) != len(names) else set()
    for name, value in zip(names, values, strict=False):
        if name in wanted and not abs(value) < HUGE:
            found.add("?non_finite" if math.isfinite(value) else "non_finite")
    return found


def of_state(message: Any, joints: Collection[str]) -> Verdict | None:
    """Of a joint state; None if it is not for this robot, and is not to be counted. Velocities and efforts may be NaN.
    """
    if not set(message.name) & set(joints):
        return None
    found = _names(message.name, joints, extra=True) | _numbers(message.name, joints, message.position, False)
    for values in (message.velocity, message.effort):
        if len(values) not in (0, len(message.name)):
            found.add("wrong_size")
    return _verdict(found)


def of_motors(message: Any, motors: Collection[str], needed: Collection[str]) -> Verdict:
    """Of a motor state: position and velocity of those that are needed."""
    found = _names(message.name, needed, extra=True)
    for values in (message.position, message.velocity):
        found |= _numbers(message.name, needed, values, False)
    return _verdict(found)


def of_reference(message: Any, joints: Collection[str]) -> Verdict:
    """Of a sample of a stream."""
    found = _names(message.name, joints, extra=False) | _numbers(message.name, joints, message.position, False)
    for field in ("velocity", "acceleration", "jerk", "snap"):
        found |= _numbers(message.name, joints, getattr(message, field), True)
    return _verdict(found)


def of_trajectory(message: Any, joints: Collection[str]) -> Verdict:
    """Of a trajectory: without points it means stop, whatever its names."""
    if not message.points:
        return NOTHING
    found = _names(message.joint_names, joints, extra=False)
    for point in message.points:
        found |= _numbers(message.joint_names, joints, point.positions, False)
        for values in (point.velocities, point.accelerations):
            found |= _numbers(message.joint_names, joints, values, True)
    times = [point.time_from_start.sec * 1_000_000_000 + point.time_from_start.nanosec for point in message.points]
    if times[0] < 0 or any(b <= a for a, b in pairwise(times)):
        found.add("bad_trajectory")
    return _verdict(found | {"?bad_trajectory"})    # may be found first


def of_wrenches(message: Any, bodies: Collection[str]) -> Verdict:
    """Of external wrenches."""
    found = set()
    for item in message.wrenches:
        force, torque = item.wrench.force, item.wrench.torque
        if item.body not in bodies:
            found.add("unknown_body")
        size = math.hypot(force.x, force.y, force.z, torque.x, torque.y, torque.z)
        if not size < HUGE:
            found.add("?non_finite" if math.isfinite(size) else "non_finite")
    return _verdict(found)


def of_cartesian(message: Any) -> Verdict:
    """Of a pose, twist, wrench or trajectory of the controlled link: what else is refused depends on the node's state.
    """
    parts = [getattr(message, name, None) for name in ("pose", "twist", "wrench")]
    numbers = [getattr(getattr(part, field), axis) for part in parts if part is not None
               for field in ("position", "orientation", "linear", "angular", "force", "torque") if hasattr(part, field)
               for axis in "xyz"]
    return NOTHING if all(map(math.isfinite, numbers)) else _verdict({"non_finite"})


class Ledger:
    """Comparison of delivered messages, by verdict, with the node's counts of rejections by kind."""

    def __init__(self) -> None:
        self.certain: Counter[frozenset[str]] = Counter()
        self.possible = 0    # messages that may be accepted or rejected for any reason

    def sent(self, verdict: Verdict | None, surely_looked_at: bool = True) -> None:
        """A message was sent, which the node looks at, or may look at."""
        if verdict and surely_looked_at:
            self.certain[verdict | ALWAYS] += 1
        elif verdict is not None:
            self.possible += 1

    def complete(self, counts: Mapping[str, int]) -> bool:
        """Whether all required rejections are counted."""
        return not self._wrong(counts, lambda low, high, got: got < low)

    def contradictions(self, counts: Mapping[str, int]) -> list[str]:
        """What cannot be, in words: for each set of kinds, so many of the messages belong there, at least and at most.
        """
        return self._wrong(counts, lambda low, high, got: not low <= got <= high)

    def _wrong(self, counts: Mapping[str, int], bad: Callable[[int, int, int], bool]) -> list[str]:
        kinds, found = sorted({kind for verdict in self.certain for kind in verdict} | set(counts)), []
        named = [kind for kind in kinds if any(kind in verdict for verdict in self.certain)]
        for some in chain.from_iterable(combinations(named, n) for n in range(1, len(named) + 1)):
            chosen = set(some)
            low = sum(n for verdict, n in self.certain.items() if verdict <= chosen)
            high = sum(n for verdict, n in self.certain.items() if verdict & chosen) + self.possible
            got = sum(counts.get(kind, 0) for kind in some)
            if bad(low, high, got):
                found.append(f"{'+'.join(some)}: counted {got}, expected {low} to {high}")
        total, low = sum(counts.values()), sum(self.certain.values())
        if bad(low, low + self.possible, total):
            found.append(f"all: counted {total}, expected {low} to {low + self.possible}")
        return found

"""Loop: the logic of torque nodes in a closed loop with arms, under random events, judged on the arm.

Every shipped configuration on an arm that it suits, elastic joints under `flatness`, and node `cartesian`: links up to
10 % heavier or lighter than the model, friction up to 30 % off, motor lag, transport delay up to 5 ms, jitter,
quantised and noisy encoders, torque limits, brakes in half of the episodes, robots that compensate gravity and friction
and stop by themselves. Events: stops, cancels, trajectories in motion, goals and twists of a link, stalls of node and
driver from 5 to 500 ms, lost, repeated and old states, outliers, emergency stops, another controller that has the arm
meanwhile, changed gains, limits, laws, loads, external wrenches, restarts of the node. The bounds are those of
docs/safety.md: speed, kinetic energy, excursion, rest, and a line in the log for what ends a motion.
"""
from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

from ..timing import table

EVENTS = 40      # of an episode
BATCH = 5        # episodes
SHOWN = 8        # violations that are printed
QUANTITIES = ("speed", "energy", "path", "excursion", "rest", "carried", "end")    # of the table


class Batch(NamedTuple):
    """Episodes of one configuration."""

    name: str
    cycles: int
    seen: Counter[str]
    most: dict[str, dict[str, float]]    # the largest of each quantity, per event that came before
    found: list[tuple[int, str, list[str]]]


def walk(name: str, seed: int, first: int, episodes: int = BATCH, events: int = EVENTS) -> Batch:
    """Episodes from number `first` on."""
    from .cases import LINKS
    from .episode import Episode
    from .link import LinkEpisode
    kind = LinkEpisode if name in LINKS else Episode
    cycles, seen, found = 0, Counter[str](), []
    most: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for number in range(first, first + episodes):
        episode = kind(name, seed, number)
        episode.run(events)
        cycles += episode.rig.cycles
        seen += episode.seen
        found += [(number, what, list(episode.history)) for what in episode.violations[:1]]
        for event, each in episode.judge.most.items():
            for what, value in each.items():
                most[event][what] = max(most[event][what], value)
    return Batch(name, cycles, seen, {event: dict(each) for event, each in most.items()}, found)


def run(events: int = 100_000, seed: int = 1, names: Sequence[str] = ()) -> dict[str, Any]:
    """So many events in all, or some more; prints the largest speed and excursion per event, returns `violations`."""
    from .cases import CASES, LINKS
    begin, names = time.monotonic(), list(names) or [*CASES, *LINKS]
    rounds = -(-events // (BATCH * EVENTS * len(names)))
    cycles, seen, violations = Counter[str](), Counter[str](), []
    most: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 4), get_context("spawn")) as pool:
        tasks = [pool.submit(walk, name, seed, BATCH * k) for k in range(rounds) for name in names]
        shown = begin
        for task in tasks:
            batch = task.result()
            cycles[batch.name] += batch.cycles
            seen += batch.seen
            for event, each in batch.most.items():
                for what, value in each.items():
                    most[event][what] = max(most[event][what], value)
            for number, what, history in batch.found:
                violations.append(f"{batch.name}, seed {seed}, episode {number}: {what}")
                if len(violations) <= SHOWN:
                    print("\n  VIOLATION, " + "\n    ".join([violations[-1], *history[-5:]]), flush=True)
            if time.monotonic() - shown > 10.0:
                shown = time.monotonic()
                print(f"  {seen.total()} of {events} events, {cycles.total()} cycles, {len(violations)} violations",
                      flush=True)
    seconds = time.monotonic() - begin
    table(f"Loop: seed {seed}, {seen.total()} events, {cycles.total()} cycles in {seconds:.0f} s, {len(violations)} "
          "violations; largest within 1.5 s of an event with no other one but motions and stops: "
          "speed above what was planned or had (rad/s), kinetic energy "
          "likewise, by the largest power of all joints (s), distance from the reference beyond `tracking_tolerance` "
          "(rad), excursion from where it was stopped beyond its braking distance (rad), speed 3 s after a stop, "
          "of an arm at rest without joint states, and where a node ends (rad/s)", ["event", "times", *QUANTITIES],
          [[event, str(seen[event]) if event in seen else "", *(f"{each.get(what, 0.0):.3g}" for what in QUANTITIES)]
           for event, each in sorted(most.items())])
    return {"events": dict(seen), "cycles": dict(cycles), "seconds": seconds,
            "most": {event: dict(each) for event, each in most.items()}, "violations": violations}

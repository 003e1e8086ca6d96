"""Walk: the torque controllers under random events for a million cycles, without ROS, every output judged.

Joint states of a smooth motion; and outliers, gaps, stamps that leap, streams of references that stop and begin
elsewhere, trajectories, wrenches, changed parameters, emergency stops, deactivation. In every cycle the output must be
finite and within its limits, lie between what the laws and safe efforts of that cycle say, move by no more than these
and the ramps do, and be just the command where nothing fades; at the end of each episode it must be that of a fresh
controller (docs/safety.md: what holds in every cycle). The rules are in `rules`; which of them hold follows from the
events alone.
"""
from __future__ import annotations

import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from heapq import merge
from itertools import count
from multiprocessing import get_context
from typing import Any, NamedTuple

from ..timing import table
from .arms import NAMES
from .episode import Episode

# of the steps; elastic ones take five times as long
SHARE = {"feedforward": 0.4, "flatness": 0.3, "elastic": 0.2, "series": 0.1}
BATCH = 10       # episodes
SHOWN = 8        # violations that are printed
SEEN = ("exact", "fading", "continuous", "smooth", "stale", "stopped", "way out", "finished", "no command", "as fresh")


class Batch(NamedTuple):
    """Episodes of one controller: cycles, how often each situation was seen, and (number, what was wrong, events)."""

    name: str
    steps: int
    seen: Counter[str]
    found: list[tuple[int, str, list[str]]]


def walk(name: str, seed: int, first: int, episodes: int = BATCH) -> Batch:
    """Episodes from number `first` on."""
    steps, seen, found = 0, Counter[str](), []
    for number in range(first, first + episodes):
        episode = Episode(name, seed, number)
        episode.run()
        steps += episode.steps
        seen += episode.seen
        found += [(number, what, list(episode.history)) for what in episode.violations[:1]]
    return Batch(name, steps, seen, found)


def run(steps: int = 1_000_000, seed: int = 1, nodes: Sequence[str] = NAMES,
        processes: int | None = None) -> dict[str, Any]:
    """Walk that many cycles in all, or some more; prints a row per controller, returns them with all `violations`."""
    begin, done = time.monotonic(), dict.fromkeys(nodes, 0)
    seen = {name: Counter[str]() for name in nodes}
    violations: list[str] = []
    helpers = processes or min(os.cpu_count() or 1, 4)
    with ProcessPoolExecutor(helpers, get_context("spawn")) as pool:
        for batch in batches(steps, nodes, lambda name, first: pool.submit(walk, name, seed, first), helpers + 1):
            done[batch.name] += batch.steps
            seen[batch.name] += batch.seen
            for number, what, events in batch.found:
                violations.append(f"{batch.name}, seed {seed}, episode {number}: {what}")
                if len(violations) <= SHOWN:
                    print("\n  VIOLATION, " + "\n    ".join([violations[-1], *events[-5:]]), flush=True)
            _show(f"{sum(done.values())} of {steps} steps, {len(violations)} violations")
    print()
    seconds = time.monotonic() - begin
    table(f"Walk: seed {seed}, {sum(done.values())} steps in {seconds:.0f} s; how often each was seen",
          ["controller", "steps", *SEEN], [[name, str(done[name]), *(str(seen[name][key]) for key in SEEN)]
                                           for name in nodes])
    if violations:
        print(f"  {len(violations)} episodes with a violation. To see one: scripts/run python -c \"from "
              "benchmark.walk.episode import Episode; e = Episode('<controller>', <seed>, <episode>); e.run(); "
              "print(e.violations, *e.history, sep='\\n')\"")
    return {"steps": done, "seconds": seconds, "seen": {name: dict(each) for name, each in seen.items()},
            "violations": violations}


def batches(steps: int, nodes: Sequence[str], submit: Callable[[str, int], Future[Batch]],
            ahead: int) -> Iterator[Batch]:
    """Batches of all controllers in turns until there are that many steps, and one batch of each at least; `submit`
    begins the one of a controller from an episode on. `ahead`: how many are begun before the first one is taken.
    """
    tasks = merge(*(_tasks(name) for name in nodes))
    waiting: deque[Future[Batch]] = deque()
    done = dict.fromkeys(nodes, 0)
    while True:
        while len(waiting) < ahead and (sum(done.values()) < steps or not all(done.values())):
            _, name, first = next(tasks)
            waiting.append(submit(name, first))
        if not waiting:
            return
        batch = waiting.popleft().result()
        done[batch.name] += batch.steps
        yield batch


def _tasks(name: str) -> Iterator[tuple[float, str, int]]:
    return ((k / SHARE[name], name, k * BATCH) for k in count())


_DUE = [0.0]


def _show(text: str) -> None:
    terminal = sys.stdout.isatty()
    if time.monotonic() >= _DUE[0]:
        print(f"\r  {text}" if terminal else f"  {text}", end="" if terminal else "\n", flush=True)
        _DUE[0] = time.monotonic() + (0.2 if terminal else 10.0)

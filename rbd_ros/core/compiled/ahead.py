"""Ahead-of-time compilation of all kernels, on all cores. No kernel imports this file: a change here recompiles
nothing.
"""
from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import pkgutil
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from .cache import dependencies, is_writable, prune
from .entry import ENTRIES, Entry

_Compiled = tuple[tuple[str, str], float]    # module and name of an entry, seconds of compilation


class _Job(NamedTuple):
    """Entries of one module, which share code, and their source files."""

    entries: tuple[Entry, ...]
    sources: frozenset[Path]


class _Helper(NamedTuple):
    """A worker process, and the source files of its compiled entries."""

    pool: ProcessPoolExecutor
    sources: set[Path]


def compile_all(report: Callable[[str], None] | None = None) -> float:
    """Compile every entry point that is not in the cache yet, on all cores; returns the seconds it took.

    report: called with a line per entry point. Worker processes import the main module of the calling program: protect
    its statements by `if __name__ == "__main__"`. Without workers, or after their early end, this process compiles.

        >>> seconds = rbd.compile_all()    # doctest: +SKIP
    """
    start = time.perf_counter()
    know_all()
    missing = [item for item in ENTRIES if not item.cached()]
    with contextlib.closing(_compiled(missing)) as compiled:    # also where `report` fails
        for count, (item, seconds) in enumerate(compiled, 1):
            if report is not None:
                report(f"[{count}/{len(missing)}] {item.name} ({seconds:.1f} s)")
    for item in ENTRIES:
        item.compile()    # now from the cache
    prune()
    return time.perf_counter() - start


def know_all() -> None:
    """Import every module of the library, to register all entry points."""
    folder, package = Path(__file__).parents[1], __package__.rpartition(".")[0]
    for module in pkgutil.walk_packages([str(folder)], f"{package}."):
        importlib.import_module(module.name)


def _compiled(entries: Iterable[Entry]) -> Generator[tuple[Entry, float], None, None]:
    """Compiled entries in order of completion, with seconds; closing the generator ends its processes."""
    remaining = {(item.module, item.name): item for item in entries}
    if len(remaining) > 1 and _cores() > 1 and is_writable():    # workers return code through the cache
        # no processes, or a system without semaphores (the last two)
        with contextlib.suppress(BrokenProcessPool, OSError, ImportError, NotImplementedError):
            for key, seconds in _by_helpers(list(remaining.values())):
                yield remaining.pop(key), seconds
    for item in remaining.values():
        yield item, _compile(item)


def _cores() -> int:
    """Number of processors available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _by_helpers(entries: list[Entry]) -> Generator[_Compiled, None, None]:
    """Compile in worker processes; entries of processes that ended early are left out."""
    jobs = _jobs(entries)
    helpers = [_Helper(ProcessPoolExecutor(1, get_context("spawn"), _end_with_parent), set())
               for _ in range(min(_cores(), len(jobs)))]
    at_work: dict[Future[list[_Compiled]], _Helper] = {}
    try:
        with _without_interrupts():
            for helper in helpers:
                _give(helper, helpers, jobs, at_work)
        while at_work:
            for done in wait(at_work, return_when=FIRST_COMPLETED).done:
                helper = at_work.pop(done)
                with contextlib.suppress(BrokenProcessPool):
                    compiled = done.result()
                    _give(helper, helpers, jobs, at_work)
                    yield from compiled
    except BaseException:    # mainly interrupts: end the workers
        for helper in helpers:    # no public access to their processes
            for process in list((getattr(helper.pool, "_processes", None) or {}).values()):
                process.terminate()
        raise
    finally:
        for helper in helpers:
            helper.pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """In a worker: end with the parent process, even if that is killed."""
    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _give(helper: _Helper, helpers: list[_Helper], jobs: list[_Job], at_work: dict[Any, _Helper]) -> None:
    """Give a job to an idle worker, if any is left.

    Each process compiles all callees of its jobs: choose the job with most sources in common with this helper's, and
    fewest with those of others.
    """
    others = set().union(*(other.sources for other in helpers if other is not helper))
    if jobs:
        job = max(jobs, key=lambda job: _size(job.sources & helper.sources) - _size(job.sources & others))
        jobs.remove(job)
        at_work[helper.pool.submit(_compile_job, [(item.module, item.name) for item in job.entries])] = helper
        helper.sources.update(job.sources)


def _jobs(entries: Iterable[Entry]) -> list[_Job]:
    """The entries by module, those with the most source, the slowest, first."""
    modules: dict[str, list[Entry]] = {}
    for item in entries:
        modules.setdefault(item.module, []).append(item)
    jobs = [_Job(tuple(job), frozenset(dependencies(Path(str(importlib.import_module(module).__file__)))))
            for module, job in modules.items()]
    return sorted(jobs, key=lambda job: _size(job.sources), reverse=True)


def _size(files: Iterable[Path]) -> int:
    return sum(_bytes(path) for path in files)


@functools.cache
def _bytes(path: Path) -> int:
    return path.stat().st_size


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let processes started within this context ignore SIGINT."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _compile_job(keys: list[tuple[str, str]]) -> list[_Compiled]:
    """Compile one job, in a worker, with less frequent garbage collection."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    importlib.import_module(keys[0][0])
    by_key = {(item.module, item.name): item for item in ENTRIES}
    return [(key, _compile(by_key[key])) for key in keys]


def _compile(item: Entry) -> float:
    begin = time.perf_counter()
    _with_large_block(item.compile)
    return time.perf_counter() - begin


def _call(work: Callable[[], Any]) -> Any:
    return work()


# CPython from 3.11 on allocates frames of functions in blocks of 16 kB, and frees a block as soon as it is empty: a
# loop whose calls cross the end of a block allocates memory each time. A frame with such a large stack gets a block of
# 1 MB, half of which serves the deep calls of numba: a tenth less time.
_with_large_block = FunctionType(_call.__code__.replace(co_stacksize=70_000), {})

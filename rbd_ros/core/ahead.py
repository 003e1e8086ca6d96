"""Compiling all kernels ahead, on all cores. No kernel imports this file: a change here compiles nothing anew."""
from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from .compile import ENTRIES, Entry
from .kernel_cache import dependencies, is_writable, prune

_Job = tuple[Entry, ...]    # entries of one module, which share much of their code


def compile_all(report: Callable[[str], None] | None = None) -> float:
    """Compile every entry point that is not in the cache yet, on all cores; returns the seconds it took.

    report: called with a line per entry point. The main module of a program that calls this is imported by its
    helpers, so what it does belongs under `if __name__ == "__main__"`; otherwise, and where helpers cannot be started
    or end early, this process compiles what is left.
    """
    start = time.perf_counter()
    know_all()
    missing = [item for item in ENTRIES if not item.cached()]
    with contextlib.closing(_compiled(missing)) as compiled:    # also where `report` fails
        for count, (item, seconds) in enumerate(compiled, 1):
            if report is not None:
                report(f"[{count}/{len(missing)}] {item.name} ({seconds:.1f} s)")
    for item in ENTRIES:
        item.compile()    # from the cache by now
    prune()
    return time.perf_counter() - start


def know_all() -> None:
    """Import every module of the library, so that all entry points are known."""
    folder = Path(__file__).parent
    for module in pkgutil.walk_packages([str(folder)], f"{__package__}."):
        importlib.import_module(module.name)


def _compiled(entries: Iterable[Entry]) -> Generator[tuple[Entry, float], None, None]:
    """Each entry when it is compiled, with the seconds that took; closing it ends the processes that do it."""
    left = {(item.module, item.name): item for item in entries}
    if len(left) > 1 and (os.cpu_count() or 1) > 1 and is_writable():    # otherwise nothing would come back
        with contextlib.suppress(BrokenProcessPool, OSError, ImportError, NotImplementedError):
            for key, seconds in _by_helpers(list(left.values())):
                yield left.pop(key), seconds
    for item in left.values():
        yield item, _compile(item)


def _by_helpers(entries: list[Entry]) -> Generator[tuple[tuple[str, str], float], None, None]:
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        with _without_interrupts():
            waiting = [pool.submit(_compile_job, [(item.module, item.name) for item in job]) for job in _jobs(entries)]
        helpers = list((getattr(pool, "_processes", None) or {}).values())    # there is no public way to them
        try:
            for done in as_completed(waiting):
                yield from done.result()
        except BaseException:    # an interrupt above all: nobody waits for what they do
            pool.shutdown(wait=False, cancel_futures=True)
            for helper in helpers:
                helper.terminate()
            raise


def _jobs(entries: Iterable[Entry]) -> list[_Job]:
    """The entries by module, those first that stand on the most source: they take longest, and all cores end alike."""
    modules: dict[str, list[Entry]] = {}
    for item in entries:
        modules.setdefault(item.module, []).append(item)
    return sorted((tuple(job) for job in modules.values()), key=_weight, reverse=True)


def _weight(job: _Job) -> int:
    file = importlib.import_module(job[0].module).__file__
    return sum(path.stat().st_size for path in dependencies(Path(file))) if file else 0


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that are started meanwhile leave Ctrl-C to the one that started them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _compile_job(keys: list[tuple[str, str]]) -> list[tuple[tuple[str, str], float]]:
    """In a helper, which does nothing else: it need not look for garbage after every 700 objects that numba makes."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    importlib.import_module(keys[0][0])
    known = {(item.module, item.name): item for item in ENTRIES}
    return [(key, _compile(known[key])) for key in keys]


def _compile(item: Entry) -> float:
    begin = time.perf_counter()
    item.compile()
    return time.perf_counter() - begin

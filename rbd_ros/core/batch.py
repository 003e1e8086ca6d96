"""Many cases of one function, on any executor of `concurrent.futures`: processes, Dask, Ray.

Each case has a stream of random numbers of its own, given by the seed and the number of the case alone, so that
results do not depend on who computed what: 1, 2 or N workers agree bit for bit.
"""
from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from .errors import RbdError, shown
from .model.scalars import whole_number

Executors = Executor | int | Callable[[], Executor] | None
PARTS = 256       # messages to workers: the resolution of progress, and a small loss if a worker ends
ATTEMPTS = 3      # of a part whose worker was lost
PATIENCE = 1.0    # s before a bar is drawn
# Variables that bound the threads of linear algebra, read where a process loads it.
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def batch(function: Callable[[Any, np.random.Generator], Any], cases: Iterable[Any], executor: Executors = None,
          seed: int = 0, *, progress: bool | Callable[[int, int], None] | None = None) -> list[Any]:
    """`[function(case, random) for case in cases]`, in this order, with the workers of an executor.

    function: gets a case and a `numpy.random.Generator` of its own, made of `seed` and the number of the case.
    executor: None: this process. A number: that many new processes, with one thread each, ended at the end. An
    executor, such as `ProcessPoolExecutor` or Dask's `client.get_executor()`, which stays open; or a function that
    makes one, called again where a lost worker broke it, and closed at the end. For other processes, function, cases
    and results are pickled: define the function at the top of a module.
    progress: whether to draw a bar on standard error (default: if that is a terminal and it takes longer than a
    second), or a function called with (done, total).

    The first case runs in this process, so that kernels are compiled once, not by every worker. Cases that a lost
    worker had not finished are computed again, twice at most. Raises `RbdError` with the number of the first
    case that raises, and from it; for a worker lost three times; for an executor that is closed or takes no more work.

        >>> rbd.batch(lambda mass, random: round(mass + random.normal(), 3), [1.0, 2.0, 3.0], seed=1)
        [0.36, 4.486, 4.442]
    """
    try:
        each = iter(cases)
    except TypeError:
        raise RbdError(f"cases: expected a list of them, got {shown(cases)}") from None
    all_cases = list(each)
    work = partial(_part, function, _seed(seed))
    with _shown(progress, len(all_cases)) as show:
        if executor is None:
            return [_values(work([(i, case)]), show)[0] for i, case in enumerate(all_cases)]
        make, own, workers = _maker(executor)
        if own:
            _check_pickles(function)
        first_values = _values(work([(0, all_cases[0])]), show) if all_cases else []
        size = max(1, -(-(len(all_cases) - 1) // PARTS))
        parts = [_Part([(i, all_cases[i]) for i in range(begin, min(begin + size, len(all_cases)))])
                 for begin in range(1, len(all_cases), size)]
        _spread(work, parts, make, own, workers, show)
        return first_values + [value for part in parts for value in part.values]


@dataclass
class _Part:
    """Some cases that one worker computes."""

    cases: list[tuple[int, Any]]
    lost: int = 0
    values: list[Any] = ()    # type: ignore[assignment]
    done: bool = False

    def name(self) -> str:
        first, last = self.cases[0][0], self.cases[-1][0]
        return f"case {first}" if first == last else f"cases {first} to {last}"


@dataclass(frozen=True)
class _Failed:
    """The exception of a case, in a form that can be pickled."""

    case: int
    text: str
    trace: str


def _part(function: Callable[..., Any], seed: int, cases: list[tuple[int, Any]]) -> list[Any]:
    """Values of some cases, ended by the first failure. Runs in a worker."""
    values: list[Any] = []
    for i, case in cases:
        try:
            values.append(function(case, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,)))))
        except Exception as error:
            values.append(_Failed(i, f"{type(error).__name__}: {error}", traceback.format_exc()))
            break
    return values


def _values(values: list[Any], show: Callable[[int], None]) -> list[Any]:
    for value in values:
        if isinstance(value, _Failed):
            raise RbdError(f"case {value.case}: {value.text}") from RuntimeError(f"\n{value.trace}")
    show(len(values))
    return values


def _spread(work: Callable[..., Any], parts: list[_Part], make: Callable[[], Executor], own: bool, workers: int,
            show: Callable[[int], None]) -> None:
    """Compute all parts; resubmit lost ones to the next executor if they are `own`, else to the same one."""
    while unfinished := [part for part in parts if not part.done]:
        executor = make()
        if not callable(getattr(executor, "submit", None)):
            raise RbdError(f"executor: the function made {shown(executor)}, which is none of concurrent.futures")
        try:
            lost, why = _round(work, unfinished, executor, own, show)
        except BaseException:
            if isinstance(executor, _Workers):
                executor.give_up()
            elif own:
                executor.shutdown(wait=False, cancel_futures=True)
            raise
        if own:
            executor.shutdown()
        # A process pool breaks as a whole and starts its parts in order: the part that broke it is among the first.
        for part in lost[:workers + 1] if own else lost:
            part.lost += 1
            if part.lost >= ATTEMPTS:
                raise RbdError(f"{part.name()}: lost {ATTEMPTS} workers ({shown(why)}); they may need more memory, "
                               "or crash") from why


def _round(work: Callable[..., Any], parts: list[_Part], executor: Executor, own: bool,
           show: Callable[[int], None]) -> tuple[list[_Part], BaseException | None]:
    """The parts whose workers were lost, and the last reason."""
    futures: dict[Future[Any], _Part] = {}
    why: BaseException | None = None
    try:
        with _one_thread(), _interrupts_blocked():    # processes start at submissions
            for part in parts:
                futures[executor.submit(work, part.cases)] = part
    except RuntimeError as error:    # closed, or broken meanwhile
        if not own or not futures:
            raise RbdError(f"executor: takes no work: {error}" + ("" if own else "; a number of processes, or a "
                           "function that makes an executor, has lost cases done again")) from error
        why = error
    try:
        for future in as_completed(futures):
            part = futures[future]
            try:
                values = future.result()
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                raise RbdError(f"{part.name()} cannot be sent to a worker, or its result back: {error}") from error
            except (Exception, CancelledError) as error:    # of the executor: those of the function are values
                why = error
            else:
                part.values, part.done = _values(values, show), True
    except BaseException:
        if not isinstance(executor, _Workers):
            for future in futures:
                future.cancel()
        raise
    return [part for part in parts if not part.done], why


def _maker(executor: Executors) -> tuple[Callable[[], Executor], bool, int]:
    """Factory of executors, whether they are closed at the end, and their number of workers, if known."""
    if isinstance(executor, Executor):
        return (lambda: executor), False, 0
    if callable(executor):
        return executor, True, os.cpu_count() or 1
    count = whole_number(executor, "executor", "number of processes, an executor, or a function that makes one")
    return partial(_Workers, count), True, count


class _Workers(ProcessPoolExecutor):
    """New processes that end as soon as this one gives up or ends in any way: both close a pipe they wait on."""

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        reader, self._writer = context.Pipe(duplex=False)
        super().__init__(count, context, _ends_with, (reader,))

    def give_up(self) -> None:
        """End all processes, busy or not."""
        self._writer.close()
        self.shutdown()


def _ends_with(pipe: Connection) -> None:
    """Runs in a worker."""
    def wait() -> None:
        pipe.poll(None)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in processes started within this context: only the waiting process handles Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread in processes started or forked within this context."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _seed(seed: Any) -> int:
    try:
        return int(np.random.SeedSequence(seed).entropy)    # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise RbdError(f"seed must be a whole number, not negative, got {shown(seed)}") from None


def _check_pickles(function: Any) -> None:
    try:
        pickle.dumps(function)
    except Exception as error:
        raise RbdError(f"function: cannot be sent to other processes: {error}; define it at the top of a module, and "
                       "bind what it needs with functools.partial") from error


@contextmanager
def _shown(progress: bool | Callable[[int, int], None] | None, total: int) -> Iterator[Callable[[int], None]]:
    """Callback for the number of further cases done."""
    done, begin, drawn = 0, time.monotonic(), False
    tty = sys.stderr is not None and sys.stderr.isatty()
    draw = progress is True or (progress is None and tty)

    def show(more: int) -> None:
        nonlocal done, drawn
        done += more
        if callable(progress):
            progress(done, total)
        elif draw and time.monotonic() - begin > PATIENCE * (progress is None):
            drawn = True
            spent = time.monotonic() - begin
            remaining = spent * (total - done) / done
            print(f"\r\033[K[{'#' * (25 * done // total):25}] {done} of {total}, {remaining:.0f} s left", end="",
                  file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if drawn:
            print(file=sys.stderr, flush=True)

"""Motion searches in a warm worker process, which can be killed at any time and has bounded memory.

The worker is a fresh interpreter, because a fork of a process with threads may hang. Parent and worker communicate
over a pair of sockets: the parent sends tasks and `None` (stop), the worker answers. A worker ends with its parent.
"""
from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.motion.collision.collision_model import CollisionModel
from ...core.motion.optimization import Progress
from .motion_planner import CANCELLED, Figures, MotionPlanner, Plan, warm_up
from .motion_request import PlanningTask

LOOK = 0.02           # s between two checks of cancellation
GRACE = 1.0           # s for a stopped search to end by itself
LATE, LATER = 5.0, 1.1    # s, and multiple of its time limit, after which a search is killed
TOLD = 0.02           # s between two progress reports
MIB = 2**20


class _Worker(NamedTuple):
    process: subprocess.Popen[bytes]
    connection: Connection

    def end(self) -> int:
        self.process.kill()
        return self.process.wait()


class SearchProcess:
    """Searches for motions of a model, one at a time, in a worker process that is restarted after it was killed."""

    def __init__(self, model: RobotModel, collisions: CollisionModel | None = None) -> None:
        self._models = _packed(model, collisions)
        self._lock = threading.Lock()    # guards the worker
        self._closed = False
        self._worker, self._warm = self._started(), False

    @property
    def pid(self) -> int:
        """Process id of the present worker."""
        return self._worker.process.pid

    def close(self) -> None:
        """Kill the worker; a search in another thread is cancelled."""
        with self._lock:
            self._closed = True
            self._worker.end()

    def ready(self, gone: Callable[[], bool] = lambda: False) -> bool:
        """Wait until the worker is ready for tasks: seconds, or minutes if kernels are compiled. False if `gone()`
        became true, or `close` was called; raises `RbdError` if the worker ends by itself.
        """
        if self._worker.process.poll() is not None:
            self._renew()
        try:
            while not (self._warm or self._closed or gone()):
                if self._worker.connection.poll(LOOK):
                    _unwrapped(self._worker.connection.recv())
                    self._warm = True
        except (EOFError, OSError):
            self._lost()
        return self._warm and not self._closed

    def search(self, task: PlanningTask, tell: Callable[[Progress], None] = lambda progress: None,
               gone: Callable[[], bool] = lambda: False) -> Plan:
        """`MotionPlanner.search` with figures in place of the motion; `cancelled` once `gone()` is true. Raises
        `RbdError` if the search far exceeds its time limit, or exceeds its memory limit.
        """
        if not self.ready(gone):
            return CANCELLED
        until, stopped = time.monotonic() + LATER * task.time_limit + LATE, False
        try:
            bare = replace(task, model=None, collisions=None)    # type: ignore[arg-type]
            self._worker.connection.send((_packed(task.model, task.collisions), bare))
            while True:
                if self._worker.connection.poll(LOOK):
                    answer = _unwrapped(self._worker.connection.recv())
                    if isinstance(answer, Plan):
                        return answer
                    tell(answer)
                if not stopped and gone():
                    self._worker.connection.send(None)
                    until, stopped = min(until, time.monotonic() + GRACE), True
                if time.monotonic() > until:
                    self._renew()
                    if stopped:
                        return CANCELLED
                    raise RbdError(f"the search did not end within its time limit of {task.time_limit:g} s, and was "
                                   "ended")
        except (EOFError, OSError):
            self._lost()
            return CANCELLED

    def _lost(self) -> None:
        """Restart after the worker has ended; raises `RuntimeError` unless it was closed."""
        if not self._closed:
            code = self._worker.end()
            self._renew()
            raise RuntimeError(f"the process that searches ended with code {code}")

    def _renew(self) -> None:
        with self._lock:
            if not self._closed:
                self._worker.end()
                self._worker, self._warm = self._started(), False

    def _started(self) -> _Worker:
        ours, theirs = Pipe()
        path = json.dumps(sys.path)
        code = f"import sys; sys.path[:] = {path}; from {__name__} import serve; serve({theirs.fileno()})"
        with theirs:    # in a new session: Ctrl-C in a terminal is for the node
            process = subprocess.Popen([sys.executable, "-c", code], pass_fds=[theirs.fileno()], start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        with contextlib.suppress(OSError):    # the waiting thread detects the ended worker
            ours.send((self._models, None))
        return _Worker(process, ours)


def _packed(model: RobotModel, collisions: CollisionModel | None) -> tuple[bytes, bytes]:
    return pickle.dumps(model), pickle.dumps(collisions)


def _unwrapped(answer: Any) -> Any:
    if isinstance(answer, RbdError):
        raise answer
    if isinstance(answer, Exception):
        raise RuntimeError(f"in the process that searches:\n{answer}")
    return answer


# ---- the worker

def serve(descriptor: int) -> None:
    """Worker: process tasks from the socket until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(descriptor)
    tasks: queue.SimpleQueue[tuple[tuple[bytes, bytes], PlanningTask | None]] = queue.SimpleQueue()
    stop = threading.Event()

    def hear() -> None:
        while True:
            try:
                message = connection.recv()
            except (EOFError, OSError):
                os._exit(0)
            if message is None:
                stop.set()
            else:
                stop.clear()
                tasks.put(message)

    threading.Thread(target=hear, daemon=True).start()
    told = 0.0
    kept: list[Any] = [b"", b""]
    models: list[Any] = [None, None]

    def progress(now: Progress) -> bool:
        nonlocal told
        if time.monotonic() >= told:
            told = time.monotonic() + TOLD
            connection.send(now)
        return stop.is_set()

    while True:
        packed, task = tasks.get()
        try:
            for i, part in enumerate(packed):    # keep the same object: `own_code` identifies robots by it
                if part != kept[i]:
                    models[i], kept[i] = pickle.loads(part), part
            model, collisions = models
            answer: Any = _warmed(model, collisions) if task is None else _searched(
                replace(task, model=model, collisions=collisions), progress)
        except RbdError as error:
            answer = error
        except Exception:
            answer = RuntimeError(traceback.format_exc())
        connection.send(answer)


def _warmed(model: Any, collisions: Any) -> str:
    from scipy.linalg.lapack import dgesv    # local import: saves 20 MB in nodes without planning

    warm_up(model, collisions)
    # NumPy and SciPy have an OpenBLAS each, whose first call takes a buffer: by version, it tries for ever or ends the
    # process if that is refused, as by the memory limit of a search
    np.linalg.solve(np.eye(2), np.eye(2))
    dgesv(np.eye(2), np.eye(2))
    return "ready"


def _searched(task: PlanningTask, progress: Callable[[Progress], bool]) -> Plan:
    try:
        with _bounded(task.memory_limit):
            plan = MotionPlanner.search(task, progress)
    except MemoryError:
        raise RbdError("the search takes more memory than parameter 'memory_limit' grants, "
                       f"{task.memory_limit:g} MiB") from None
    return plan._replace(motion=Figures.of(plan.motion))


@contextlib.contextmanager
def _bounded(limit: float) -> Any:
    """Context manager: limit the growth of memory (MiB); no limit on systems without support."""
    try:
        import resource
        with open("/proc/self/status", encoding="ascii") as file:
            used = int(file.read().split("VmData:")[1].split()[0]) * 1024
        before = resource.getrlimit(resource.RLIMIT_DATA)
    except (ImportError, OSError, IndexError):
        yield
        return
    most = used + int(limit * MIB)
    resource.setrlimit(resource.RLIMIT_DATA, (most if before[1] < 0 else min(most, before[1]), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)

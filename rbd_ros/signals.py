"""What SIGINT and SIGTERM do to programs that have something to clean up."""
from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
AGAIN = 0.02         # s
LONGEST_END = 4.0    # s: the run-down of torque_node; `ros2 launch` sends SIGTERM after 5 s


class Interrupted(KeyboardInterrupt):
    """A signal, with its number.

    A plain `KeyboardInterrupt` that leaves `exec` or `eval` of a string, as runs while a named tuple is made, CPython
    notes as uncaught, even if somebody caught it; and it ends a process of `python -m` by SIGINT, not by its exit code.
    """


def hangs(signals: int, seconds: float) -> bool:
    """Whether a process does not end, from the number of signals and the time since the first one.

    Ctrl-C pressed twice under `ros2 launch` is three signals at once: then a node that ramps out goes on with that.
    """
    return signals >= 3 and seconds > LONGEST_END


def ignore_signals() -> None:
    """For the last lines of a program.

    While it ends, the interpreter puts default handlers back, and a signal would kill the process; Ctrl-C in a terminal
    comes twice, also from `ros2 launch`. What is ignored stays ignored.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interruptible(give_up: Callable[[], object] = lambda: None,
                  first: Callable[[int], object] = lambda number: None) -> Iterator[None]:
    """Let the first signal raise `Interrupted` and the next ones not disturb the cleaning up.

    A process that `hangs` then ends, after `give_up()`; `first(number)` may end it before. In other threads than the
    main one this does nothing.

    CPython ignores exceptions that leave a finalizer, or a function that C calls, as LLVM does while it compiles. Where
    `Interrupted` ends so, it is raised again: a little later, or at the end. Others make another error of it, as C++
    does while a module is imported: what comes out of an interrupted block is `Interrupted`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    count, begin = 0, 0.0
    raised = lost = 0    # numbers of the signals that were raised, and ignored
    repeats: list[threading.Thread] = []

    def repeat() -> None:
        while lost:
            time.sleep(AGAIN)
            if lost:
                os.kill(os.getpid(), lost)

    def ignored(unraisable: Any) -> None:
        nonlocal count, lost
        if not isinstance(unraisable.exc_value, Interrupted):
            show(unraisable)
            return
        lost = unraisable.exc_value.args[0]
        thread = threading.Thread(target=repeat)
        thread.start()
        repeats.append(thread)
        count = 0    # last: what is raised in here would be ignored, too

    def interrupt(number: int, frame: Any) -> None:
        nonlocal count, begin, raised, lost
        count += 1
        if count == 1:
            first(number)
            begin, raised, lost = time.monotonic(), number, 0
            raise Interrupted(number)
        if hangs(count, time.monotonic() - begin):
            give_up()
            os._exit(128 + number)

    show, sys.unraisablehook = sys.unraisablehook, ignored
    before = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
        if raised:    # somebody swallowed it
            raise Interrupted(raised)
    except Exception as error:
        if not raised:
            raise
        raise Interrupted(raised) from error
    finally:
        count, lost = count or 1, 0    # nothing is raised any more
        for thread in repeats:
            thread.join()
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = show


def ends_at_once(name: str) -> AbstractContextManager[None]:
    """Let a signal end the process with 128 + its number, and say that `rbd NAME` was interrupted: for compilers.

    LLVM calls Python, and may not survive what a handler raises there. While helpers of `multiprocessing` work, the
    signal raises `Interrupted`, as this process only waits for them then, and has to end them.
    """
    def end(number: int) -> None:
        if not multiprocessing.active_children():
            with suppress(OSError):
                os.write(2, f"\nrbd {name}: interrupted\n".encode())
            os._exit(128 + number)

    return interruptible(first=end)

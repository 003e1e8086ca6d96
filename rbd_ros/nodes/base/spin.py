"""`main` of a node: signals become a safe output and exit code 0."""
from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.signals import SignalHandlerOptions

from ...runtime.parameter_files import why_not
from ...signals import SIGNALS, hangs, ignore_signals
from .rclpy_inside import Stop, let_go, make_executor

WRONG = 2             # exit code where arguments or parameter files are wrong
LONGEST_IDLE = 1.0    # s that a process takes to end which publishes no torque


def run(make_node: Callable[[], Any], arguments: list[str] | None = None, executor_name: str = "") -> None:
    """Make a node and spin it until SIGINT or SIGTERM. What it cannot start with is one line, and exit code 2.

    The node may have `start()`, called before spinning, and `stop()`, called after it with the middleware still
    alive, so that it can publish; and a parameter `executor`, which counts instead of `executor_name`.
    """
    stopped = Stop()
    node: Any = None
    _catch_signals(stopped, lambda: not getattr(node, "active", False))
    try:
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:    # RCLError, which rclpy does not export
        _say(why_not(error, sys.argv if arguments is None else arguments))
        os._exit(WRONG)    # there is nothing to clean up, and what the middleware has begun may not end
    executor: Any = None
    try:
        node = make_node()
        node.ending = stopped.done
        executor = make_executor(node.get_parameter("executor").value if node.has_parameter("executor")
                                 else executor_name)
        executor.add_node(node)
        if hasattr(node, "start"):
            node.start()
        executor.spin_until_future_complete(stopped)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except ParameterException as error:    # of those that rclpy itself declares, such as use_sim_time
        _say(error)
        raise SystemExit(WRONG) from None
    finally:
        with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
            if hasattr(node, "stop"):
                node.stop()
            if executor is not None:
                executor.shutdown()
            if node is not None:
                node.destroy_node()
                let_go(node)
        rclpy.try_shutdown()
        ignore_signals()


def _say(problem: object) -> None:
    print(f"error: {problem}", file=sys.stderr, flush=True)


def _catch_signals(stopped: Stop, idle: Callable[[], bool]) -> None:
    """Let SIGINT and SIGTERM set `stopped` at once, though the main thread waits in the middleware.

    The interpreter writes the number of a signal into a socket, whichever thread the signal hits; a thread reads it.
    So neither a callback nor the middleware is interrupted half-way. Further signals end a process that `hangs`; one
    that is `idle` need not be waited for: it may be compiling kernels, for minutes.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)    # before the handlers, or one could be lost
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)

    def wait() -> None:
        count, begin, leave = 0, 0.0, False
        while not hangs(count, time.monotonic() - begin):
            with contextlib.suppress(TimeoutError):
                count += reader.recv(1)[0] in SIGNALS
            if count and not stopped.done():
                begin, leave = time.monotonic(), idle()
                stopped.set_result(True)    # from now on nothing is activated any more
            left = begin + LONGEST_IDLE - time.monotonic()
            if leave and left <= 0.0:
                leave = False
                if idle():
                    os._exit(0)
            reader.settimeout(max(left, 1e-3) if leave else None)
        os._exit(1)

    threading.Thread(target=wait, daemon=True, name="signals").start()
    _KEPT.append(writer)


_KEPT: list[socket.socket] = []    # a wake-up socket must outlive the function that made it

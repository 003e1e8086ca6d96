"""`main` of a node; on a signal, the node publishes its safe output and exits with code 0."""
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

WRONG = 2             # exit code for invalid arguments or parameter files
LONGEST_IDLE = 1.0    # s for a process without torque output to end


def run(make_node: Callable[[], Any], arguments: list[str] | None = None, executor_name: str = "") -> None:
    """Create a node and spin it until SIGINT or SIGTERM. A failed start prints one line and exits with code 2.

    The node may have `start()`, called before spinning, `stop()`, called after spinning while the middleware still
    works, so that it can publish, and a parameter `executor`, which replaces `executor_name`.
    """
    stopped = Stop()
    node: Any = None
    _catch_signals(stopped, lambda: not getattr(node, "active", False))
    try:
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:    # RCLError, which rclpy does not export
        _say(why_not(error, sys.argv if arguments is None else arguments))
        os._exit(WRONG)    # nothing to clean up, and the partly started middleware may not end
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
    except ParameterException as error:    # for parameters declared by rclpy, such as use_sim_time
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
    """Let SIGINT and SIGTERM set `stopped` at once, although the main thread waits in the middleware.

    The interpreter writes the number of a signal into a socket, in any thread; another thread reads the socket. No
    callback and no middleware call is interrupted. Further signals kill a hanging process. An `idle` process is ended
    after `LONGEST_IDLE`, because it may compile kernels for minutes.
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
                stopped.set_result(True)    # no activation from now on
            remaining = begin + LONGEST_IDLE - time.monotonic()
            if leave and remaining <= 0.0:
                leave = False
                if idle():
                    os._exit(0)
            reader.settimeout(max(remaining, 1e-3) if leave else None)
        os._exit(1)

    threading.Thread(target=wait, daemon=True, name="signals").start()
    _KEPT.append(writer)


_KEPT: list[socket.socket] = []    # a wake-up socket must outlive the function that creates it

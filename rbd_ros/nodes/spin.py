"""`main` of a node: signals become a safe output and exit code 0."""
from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from .stop import Stop

SIGNALS = {signal.SIGINT, signal.SIGTERM}
PATIENCE = 5.0    # s: a torque node needs some time until the torque that it leaves behind is safe


def run(make_node: Callable[[], Any], arguments: list[str] | None = None) -> None:
    """Make a node and spin it until SIGINT or SIGTERM.

    The node may have `start()`, called before spinning, and `stop()`, called after it with the middleware still
    alive, so that it can publish; and a parameter `executor`.
    """
    stopped = Stop()
    _catch_signals(stopped)
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    node: Any = None
    executor: Any = None
    try:
        node = make_node()
        node.ending = stopped.done
        executor = make_executor(node.get_parameter("executor").value if node.has_parameter("executor") else "")
        executor.add_node(node)
        if hasattr(node, "start"):
            node.start()
        executor.spin_until_future_complete(stopped)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
            if hasattr(node, "stop"):
                node.stop()
            if executor is not None:
                executor.shutdown()
            if node is not None:
                node.destroy_node()
        rclpy.try_shutdown()


def make_executor(name: str) -> Any:
    """The executor of this name: `events` where this rclpy has it, else single-threaded."""
    if name == "events":
        from rclpy.experimental.events_executor import EventsExecutor
        return EventsExecutor()
    return SingleThreadedExecutor()


def _catch_signals(stopped: Stop) -> None:
    """Let SIGINT and SIGTERM set `stopped` at once, though the main thread waits in the middleware.

    The interpreter writes the number of a signal into a socket, whichever thread the signal hits; a thread reads it.
    So neither a callback nor the middleware is interrupted half-way. A process that hangs is ended by the third signal,
    or a later one, but not within `PATIENCE` after the first.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def wait() -> None:
        count, first = 0, 0.0
        while count < 3 or time.monotonic() - first < PATIENCE:
            count += reader.recv(1)[0] in SIGNALS
            if count and not stopped.done():
                first = time.monotonic()
                stopped.set_result(True)
        os._exit(1)

    threading.Thread(target=wait, daemon=True, name="signals").start()
    _KEPT.append(writer)


_KEPT: list[socket.socket] = []    # a wake-up socket must outlive the function that made it

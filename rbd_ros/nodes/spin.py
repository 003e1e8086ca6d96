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
LONGEST_END = 4.0    # s: the run-down of torque_node; `ros2 launch` sends SIGTERM after 5 s


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
        # Ctrl-C in a terminal comes twice, also from `ros2 launch`. While it ends, the interpreter puts back default
        # handlers, and the second signal would kill the process; what is ignored stays ignored.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def make_executor(name: str) -> Any:
    """The executor of this name: `events` where this rclpy has it, else single-threaded."""
    if name == "events":
        from rclpy.experimental.events_executor import EventsExecutor
        return EventsExecutor()
    return SingleThreadedExecutor()


def _catch_signals(stopped: Stop) -> None:
    """Let SIGINT and SIGTERM set `stopped` at once, though the main thread waits in the middleware.

    The interpreter writes the number of a signal into a socket, whichever thread the signal hits; a thread reads it.
    So neither a callback nor the middleware is interrupted half-way. Further signals end a process that `hangs`.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def wait() -> None:
        count, begin = 0, 0.0
        while not hangs(count, time.monotonic() - begin):
            count += reader.recv(1)[0] in SIGNALS
            if count and not stopped.done():
                begin = time.monotonic()
                stopped.set_result(True)
        os._exit(1)

    threading.Thread(target=wait, daemon=True, name="signals").start()
    _KEPT.append(writer)


def hangs(signals: int, seconds: float) -> bool:
    """Whether a process does not end, from the number of signals and the time since the first one.

    Ctrl-C pressed twice under `ros2 launch` is three signals at once: then a node that ramps out goes on with that.
    """
    return signals >= 3 and seconds > LONGEST_END


_KEPT: list[socket.socket] = []    # a wake-up socket must outlive the function that made it

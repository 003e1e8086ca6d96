"""A node that runs for days must not collect callbacks, and must still wake up to end."""
from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor

from rbd_ros.nodes.base import spin
from rbd_ros.nodes.base.rclpy_inside import Stop

# A node that gets signals while it stops, and one after everything else: when the modules are taken down.
ENDS_LATE = """
import os, signal, subprocess, sys
from rclpy.node import Node
from rbd_ros.nodes.base import spin
spin.LONGEST_IDLE = 60.0    # s: a slow machine stops to the end

class Ending(Node):
    def start(self):
        os.kill(os.getpid(), signal.SIGINT)

    def stop(self):
        for _ in range(int(sys.argv[1])):
            os.kill(os.getpid(), signal.SIGINT)
        subprocess.run([sys.executable, "-c", ""])    # it takes a while
        print("stopped", flush=True)

class Late:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.SIGINT):
        kill(pid, number)

sys.late = Late()
spin.run(lambda: Ending("ending"))
"""


def test_one_callback_is_kept_however_long_it_spins(private_domain):
    context = Context()
    rclpy.init(context=context, domain_id=int(os.environ["ROS_DOMAIN_ID"]))
    executor = SingleThreadedExecutor(context=context)
    node = rclpy.create_node("spinning", context=context)
    executor.add_node(node)
    stop, spins, wakes, enough = Stop(), [], [], threading.Event()

    def tick():
        spins.append(1)
        if len(spins) == 300:
            timer.cancel()    # from now on there is nothing to do: only the end wakes the executor
            enough.set()

    def end():
        enough.wait(30.0)
        wake = executor.wake
        executor.wake = lambda: (wakes.append(1), wake())
        stop.set_result(True)

    timer = node.create_timer(1e-4, tick)
    ender = threading.Thread(target=end)
    ender.start()
    executor.spin_until_future_complete(stop, timeout_sec=None)
    ender.join()
    assert len(spins) == 300 and len(wakes) == 1
    node.destroy_node()
    executor.shutdown()
    rclpy.shutdown(context=context)


def test_only_the_first_callback_is_kept():
    stop, calls = Stop(), []
    for i in range(1000):
        stop.add_done_callback(lambda _, i=i: calls.append(i))
    stop.set_result(True)
    assert calls == [0]


@pytest.mark.parametrize("signals", [0, 1, 5])
def test_more_signals_do_not_kill_a_node_that_ends(private_domain, signals):
    # Ctrl-C in a terminal reaches a node twice: from the terminal, and from `ros2 launch`; and users press it again.
    result = subprocess.run([sys.executable, "-c", ENDS_LATE, str(signals)], capture_output=True, text=True)
    assert result.stdout == "stopped\n", result.stderr
    assert result.returncode == 0


def test_a_process_that_hangs_can_be_ended():
    assert spin.hangs(3, 4.1) and spin.hangs(5, 60.0)
    assert not spin.hangs(9, 3.9) and not spin.hangs(2, 60.0)

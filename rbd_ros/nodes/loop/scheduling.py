"""Real-time scheduling of a thread: priority, processor affinity, locked memory, as in ros2_control.

Each is requested by a parameter; a refusal is reported by a warning and in the diagnostics.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from typing import Any

from ...core.errors import RbdError
from ...runtime.parameters import Parameter, Table

SCHEDULING_TABLE: Table = (
    Parameter("scheduling_policy", "string", "fifo", "Policy of the control thread, if `thread_priority` is not 0.",
              choices=("fifo", "rr"), read_only=True),
    Parameter("thread_priority", "number", 0.0, "Real-time priority of the control thread, 1 to 99; 0: ordinary "
              "scheduling. Needs permission (limits.conf: rtprio).", lower=0.0, upper=99.0, read_only=True),
    Parameter("cpu_affinity", "numbers", (-1.0,), "Processors that the control thread may use; -1: all.", lower=-1.0,
              upper=4096.0, read_only=True, per="processor"),
    Parameter("lock_memory", "bool", False, "Prevent the memory of the process from being swapped out. Needs "
              "permission (limits.conf: memlock).", read_only=True),
)
_ALL_MEMORY = 1 | 2    # MCL_CURRENT | MCL_FUTURE


class Scheduling:
    """Scheduling requested by parameters. `state`: description of the result, "" without a request."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._policy, self._priority = values["scheduling_policy"], int(values["thread_priority"])
        self._processors = {int(number) for number in values["cpu_affinity"]} - {-1}
        self._lock_memory = values["lock_memory"]
        self._found: list[str] = []
        if self._priority != values["thread_priority"]:
            raise RbdError(f"parameter 'thread_priority' is {values['thread_priority']:g}, expected a whole number")
        if any(number != int(number) for number in values["cpu_affinity"]):
            raise RbdError("parameter 'cpu_affinity': expected processor numbers, as whole numbers")

    @property
    def state(self) -> str:
        return "; ".join(self._found)

    def apply_to_thread(self, warn: Callable[[str], Any]) -> None:
        """Request the scheduling for the calling thread, with warnings for refusals."""
        self._found = []
        if self._priority:
            self._ask(f"priority {self._priority} ({self._policy})", warn, "rtprio in /etc/security/limits.conf",
                      lambda: os.sched_setscheduler(0, os.SCHED_FIFO if self._policy == "fifo" else os.SCHED_RR,
                                                    os.sched_param(self._priority)))
        if self._processors:
            self._ask(f"processors {', '.join(map(str, sorted(self._processors)))}", warn,
                      f"there are 0 to {(os.cpu_count() or 1) - 1}", lambda: os.sched_setaffinity(0, self._processors))
        if self._lock_memory:
            self._ask("memory locked", warn, "memlock in /etc/security/limits.conf", _lock_memory)

    def _ask(self, what: str, warn: Callable[[str], Any], advice: str, ask: Callable[[], Any]) -> None:
        try:
            ask()
        except (OSError, OverflowError, AttributeError) as error:    # AttributeError on systems without support
            self._found.append(f"{what}: refused ({error})")
            warn(f"{what}: refused by the system ({error}); {advice}")
        else:
            self._found.append(what)


def _lock_memory() -> None:
    if ctypes.CDLL(None, use_errno=True).mlockall(_ALL_MEMORY):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

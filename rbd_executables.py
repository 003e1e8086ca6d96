"""Entry points of the executables, which import nothing heavy: signals have a meaning from the first line on.

`import rbd_ros` takes a second, and several on a busy machine. A signal meanwhile ends the process at once: nothing has
been published yet, and there is nothing to clean up. A node then has exit code 0, as whenever a signal ends it; `rbd`
has 128 + the number of the signal. `python -m rbd_executables NAME …` starts the executable of this name, too.
"""
from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _executable(module: str, ended: Callable[[int], int]) -> Callable[[], int]:
    """Run `main` of a module of rbd_ros; ended: exit code for a signal that nobody else handles."""
    def start() -> int:
        if module.startswith("nodes."):    # threads of BLAS wait for each other by spinning, which stops all others
            os.environ.setdefault("OMP_NUM_THREADS", "1")
        for number in SIGNALS:
            signal.signal(number, lambda number, _: os._exit(ended(number)))
        try:
            return __import__(f"rbd_ros.{module}", fromlist=["main"]).main() or 0
        finally:
            # While it ends, the interpreter puts default handlers back, and one more signal would kill the process.
            # What is ignored stays ignored.
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)

    return start


def _node(name: str) -> Callable[[], int]:
    return _executable(f"nodes.{name}", lambda number: 0)


rbd = _executable("cli.main", lambda number: 128 + number)
cartesian = _node("cartesian")
diagnostics_view = _node("diagnostics_view")
dynamics_server = _node("dynamics_server")
effort_annotator = _node("effort_annotator")
feedforward = _node("feedforward")
flatness = _node("flatness")
float_check = _node("float_check")
lockstep = _node("lockstep")
motion_planner = _node("motion_planner")
mujoco_plant = _node("mujoco_plant")
observer = _node("observer")
residual = _node("residual")
simulator = _node("simulator")

if __name__ == "__main__":
    name = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    sys.exit((rbd if name == "rbd" else _node(name))())

"""Start-up: from the start of a process to its first result, with the compiled kernels cached and without."""
from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from .timing import table

PROGRAM = ("import rbd_ros as rbd; m = rbd.sample('iiwa'); q = m.neutral(); "
           "rbd.inverse_dynamics(m, q, q, q)")


def _run(program: str, **variables: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, env={**os.environ, **variables},
                   stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def run() -> dict[str, Any]:
    """Print seconds; returns them."""
    _run(PROGRAM)
    warm = statistics.median(_run(PROGRAM) for _ in range(5))
    bare = statistics.median(_run("import numpy") for _ in range(5))
    with tempfile.TemporaryDirectory() as folder:
        cold = _run(PROGRAM, RBD_CACHE_DIR=folder)
        everything = _run("import rbd_ros as rbd; rbd.compile_all()", RBD_CACHE_DIR=folder)
    table("Start-up (s, a whole process)", ["what", "s"], [
        ["python -c 'import numpy'", f"{bare:.2f}"],
        ["first inverse dynamics, kernels cached", f"{warm:.2f}"],
        ["first inverse dynamics, nothing cached", f"{cold:.1f}"],
        ["compile all kernels", f"{everything:.1f}"]])
    return {"warm": warm, "cold": cold, "compile_all": everything}

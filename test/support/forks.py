"""Processes of `python -m <module>` that begin where the imports are done.

The imports of a node and the loading of its kernels take more than a second of processor time, in some hundred tests.
One server process does both and then forks once per requested process. The fork runs the module as `__main__`, with its
own arguments, environment and output.
"""
from __future__ import annotations

import atexit
import functools
import gc
import importlib
import inspect
import json
import os
import runpy
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OWN = ("PYTEST_CURRENT_TEST", "ROS_DOMAIN_ID", "ROS_LOG_DIR")    # variables of which each fork has its own


class Fork:
    """As `subprocess.Popen`, as far as the tests use it."""

    def __init__(self, module: str, arguments: Sequence[str], output: Path, python_path: Path | None = None) -> None:
        """output: file of stdout and stderr; python_path: folder of further modules."""
        self.returncode: int | None = None
        own = {name: os.environ[name] for name in OWN if name in os.environ}
        self._server = _server()
        self.pid = self._server.ask({"module": module, "arguments": list(arguments), "output": str(output), "own": own,
                                     "python_path": [str(python_path)] if python_path else []})

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._server.ask(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code; `subprocess.TimeoutExpired` after `timeout` seconds."""
        if self.poll() is None:
            process = os.pidfd_open(self.pid)    # readable when it has ended
            try:
                select.select([process], [], [], timeout)
            finally:
                os.close(process)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Server:
    """The process that forks, asked by lines of JSON."""

    def __init__(self) -> None:
        self.environment = _inherited()
        self._process = subprocess.Popen([sys.executable, __file__], cwd=ROOT, env=self.environment, text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(self.end)

    def ask(self, request: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the process that forks has ended: its error is above"
        return json.loads(answer)

    def end(self) -> None:
        atexit.unregister(self.end)
        self._process.communicate()


def new_environment() -> dict[str, str]:
    """Of a node under test: threads of BLAS as the executables have them, and a fault of compiled code says where it
    was.
    """
    return {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONFAULTHANDLER": "1"}


def _inherited() -> dict[str, str]:
    return {name: value for name, value in new_environment().items() if name not in OWN}


@functools.cache
def _server() -> _Server:
    return _Server()


def renew() -> None:
    """Let forks have the environment as it is now."""
    if _server.cache_info().currsize:
        _server().end()
        _server.cache_clear()


def same_environment() -> bool:
    """Whether a fork has the environment of a new process: it does not where a test changes that."""
    return _server().environment == _inherited()


def _serve() -> dict[str, Any]:
    """Answers until there are no more requests; returns in each child, with what it shall run."""
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, int):
            pid, status = os.waitpid(request, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                return request
        print(json.dumps(answer), flush=True)
    sys.exit()


def _prepare() -> None:
    """Import what all nodes import, and load what most of them load."""
    import rbd_ros as rbd

    model = rbd.sample("two_link")
    q = [0.3, 0.5]
    for node in ("cartesian", "dynamics_server", "feedforward", "flatness", "simulator"):
        importlib.import_module(f"rbd_ros.nodes.{node}")
        del sys.modules[f"rbd_ros.nodes.{node}"]    # a fork runs it as __main__
    for node in ("cartesian", "feedforward", "flatness"):
        rbd.TorqueController(model, node).update(0.0, q, q)
    rbd.Simulator(model, q=q).step(q)
    inspect.getframeinfo(inspect.currentframe())    # as loggers do for the first line: it looks through all modules
    gc.collect()
    gc.freeze()    # nodes collect garbage before they start, but not this


def _main() -> None:
    sys.path[0] = str(ROOT)    # as `python -m` has it
    signal.signal(signal.SIGINT, signal.SIG_IGN)    # of the terminal: it ends with its standard input
    _prepare()
    request = _serve()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.update(request["own"])
    with open(os.devnull) as nothing, open(request["output"], "w") as output:
        os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    sys.path[1:1] = request["python_path"]
    sys.argv[1:] = request["arguments"]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()

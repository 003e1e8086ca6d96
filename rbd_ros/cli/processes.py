"""Child processes that end cleanly: nodes of this package, each with its parameters and its log."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from ..core.errors import RbdError
from ..signals import interruptible


class NodeProcesses:
    """Nodes in one namespace; a context manager that interrupts them, by process id, in reverse order.

    In its context the first signal raises `Interrupted`; further signals do not interrupt the termination of the nodes.
    Hanging nodes are killed, and the program ends.
    """

    def __init__(self, folder: Path, namespace: str, patience: float = 30.0) -> None:
        self._folder, self._namespace, self._patience = folder, namespace, patience
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> NodeProcesses:
        self._signals = interruptible(self._kill)
        self._signals.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            try:
                self.close()
            except KeyboardInterrupt:    # the first signal; further ones raise nothing
                self.close()
                raise
        finally:
            self._signals.__exit__(kind, error, trace)

    def start(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Start executable `<name>`; writes `<name>.yaml` and `<name>.log` to the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump({"/**": {"ros__parameters": dict(parameters)}}), encoding="utf-8")
        command = [sys.executable, "-m", "rbd_executables", name, "--ros-args", "-r", f"__ns:={self._namespace}",
                   "--params-file", str(file)]
        with open(self._log(name), "wb") as log:
            # A new session: Ctrl-C in a terminal reaches only this program, which then ends its children.
            self._running[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                                   stderr=subprocess.STDOUT, start_new_session=True)

    def check(self) -> None:
        """Raise `RbdError` with the end of its log if a process has ended by itself."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise RbdError(f"node {name} ended with code {process.returncode}: {self.last_words(name)}")

    def last_words(self, name: str, lines: int = 3) -> str:
        """The last lines of a log in one line, and the path of the log."""
        text = self._log(name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " | ".join(line.strip() for line in text[-lines:]) + f" (all of it in {self._log(name)})"

    def said(self, name: str, mark: str) -> str:
        """The text after `mark` in the first line of a log that contains it; empty without one."""
        text = self._log(name).read_text(encoding="utf-8", errors="replace")
        return text.partition(mark)[2].partition("\n")[0].strip()

    def close_after(self, report: Mapping[str, Any]) -> None:
        """End all nodes, and report failures; raises `RbdError` if `feedforward` reports rejected inputs."""
        codes = self.close()
        if any(codes):
            print(f"a node ended with code {max(codes, key=abs)}; see {self._folder}", file=sys.stderr)
        if report.get("rejected_total"):
            raise RbdError(f"the controller rejected {report['rejected_total']:.0f} inputs: "
                           f"{self.last_words('feedforward')}")

    def close(self) -> list[int]:
        """End all nodes; returns their exit codes. Hanging nodes are killed."""
        codes = []
        for name, process in reversed(list(self._running.items())):
            with contextlib.suppress(ProcessLookupError):
                if process.poll() is None:
                    os.kill(process.pid, signal.SIGINT)
            try:
                codes.append(process.wait(self._patience))
            except subprocess.TimeoutExpired:
                process.kill()
                codes.append(process.wait())
                print(f"node {name} did not end within {self._patience:g} s and was killed", file=sys.stderr)
        self._running.clear()
        return codes

    def _kill(self) -> None:
        for process in self._running.values():
            process.kill()

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

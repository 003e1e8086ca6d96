"""Standard output and error of programs whose reader may go away."""
from __future__ import annotations

import contextlib
import os
import sys


def flush() -> None:
    """Write what is left now, not while the interpreter ends, which could only complain."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def be_quiet() -> None:
    """Let what is still to be written to a stream that does not take it go nowhere."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)

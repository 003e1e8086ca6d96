"""Progress display of work without known progress."""
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 1.0    # s between messages, and before the first


@contextmanager
def waiting(label: str, limit: float) -> Iterator[None]:
    """Show on a terminal the elapsed seconds of at most `limit`."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    done, begin = threading.Event(), time.monotonic()

    def tell() -> None:
        while not done.wait(PATIENCE):
            print(f"\r\033[K{label}: {time.monotonic() - begin:.0f} s of at most {limit:g} s", end="", file=sys.stderr,
                  flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        print("\r\033[K", end="", file=sys.stderr, flush=True)

"""The lock of simulators: reentrant, and nobody is kept out by who comes again and again."""
from __future__ import annotations

import threading

import pytest

from rbd_ros.nodes.loop.turnstile import Turnstile


def test_who_waits_comes_before_who_returns():
    lock, order = Turnstile(), []

    def other():
        with lock:
            order.append("other")

    threads = [threading.Thread(target=other) for _ in range(3)]
    for number, thread in enumerate(threads):
        with lock:
            thread.start()
            while not lock._next.locked():    # until it waits
                pass
            with lock:    # reentrant, though somebody waits
                pass
            assert order == ["other"] * number
        with lock:
            assert order == ["other"] * (number + 1)
    for thread in threads:
        thread.join()


def test_it_is_let_go_after_an_error():
    lock = Turnstile()
    with pytest.raises(KeyError), lock, lock:
        raise KeyError
    thread = threading.Thread(target=lock.__enter__)
    thread.start()
    thread.join()    # it had it

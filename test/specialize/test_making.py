"""Making and keeping own code: threads that make the same at once, the end of a process, a cache of somebody else."""
from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.core.specialize import machine
from rbd_ros.core.specialize.plain import Plain

pytestmark = pytest.mark.skipif(not COMPILED, reason="needs numba")


def test_threads_that_make_the_same_code_have_one(monkeypatch, tmp_path):
    """The one that came second took away the code of the first, which then called what was no longer there."""
    monkeypatch.setattr(machine, "cache_directory", lambda: tmp_path)
    both = threading.Barrier(2, timeout=60.0)

    def text():
        both.wait()
        return "@operations = constant i64 1\ndefine void @call() {\n  ret void\n}\n"

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: machine.call_of("of this test", text), range(2))
    assert one == other


def test_plain_kernels_are_seen_with_all_that_they_name():
    """By another thread, too, that asks for one while it is made."""
    plain, seen, threads = Plain({}), [], []

    class Callee:
        @property
        def py_func(self):
            if not threads:
                threads.append(threading.Thread(target=lambda: seen.append(set(plain(kernel).__globals__))))
                threads[0].start()
                threads[0].join(0.2)    # it waits for us
            return None

    names = {"__name__": "rbd_ros.core.test", "__builtins__": {}, "first": Callee(), "last": 1.0}
    exec("def kernel():\n    return last\n", names)
    kernel = names["kernel"]
    assert plain(kernel)() == 1.0
    threads[0].join()
    assert "last" in seen[0]


def test_a_cache_that_cannot_be_written_is_read(monkeypatch, tmp_path):
    machine._write(tmp_path / "code.o", b"code")

    def touch(path):
        raise PermissionError(path)

    def gone(folder, kept):
        raise FileNotFoundError(folder)

    monkeypatch.setattr(Path, "touch", touch)
    monkeypatch.setattr(machine, "drop_oldest", gone)    # as where another process deletes the same
    machine._write(tmp_path / "code.o", b"code")
    assert machine._read(tmp_path / "code.o") == b"code"

"""What a node says while it loads: that kernels are compiled only where they are."""
from __future__ import annotations

import pytest
from harness import NodeProcess, Peer

import rbd_ros as rbd


@pytest.mark.parametrize("cold", [True, False], ids=["empty cache", "nothing to compile"])
def test_compiling_is_announced_where_it_happens(tmp_path, private_domain, monkeypatch, cold):
    if cold:
        pytest.importorskip("numba")
        monkeypatch.setenv("RBD_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.delenv("RBD_DISABLE_COMPILE", raising=False)
    else:
        monkeypatch.setenv("RBD_DISABLE_COMPILE", "1")
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=str(rbd.sample_path("two_link")))
    try:
        with Peer() as peer:
            peer.spin_until(lambda: "loading the robot" in process.output(), "log line")
        (line,) = [line for line in process.output().splitlines() if "loading the robot" in line]
        assert ("compiling kernels, once" in line) == cold
    finally:
        process.kill()

"""The blocks of docs/ecosystems.md, and that they find one posture."""
from __future__ import annotations

import numpy as np
import pytest
from support.pages import blocks, run

import rbd_ros as rbd

BLOCKS = {block.reason.split()[1].strip(";"): block for block in blocks("python")
          if block.page == "docs/ecosystems.md"}


@pytest.mark.parametrize("library", ["casadi", "torch", "jax"])
def test_a_block_finds_the_least(library):
    """Zero gradient, by this library's derivatives."""
    peer = pytest.importorskip(library)
    before = peer.config.jax_enable_x64 if library == "jax" else None
    names = {}
    assert run(BLOCKS[library].code, names, str(BLOCKS[library])) == 1
    q = np.array(names["solver"](x0=names["q0"])["x"])[:, 0] if library == "casadi" else np.asarray(
        names["q"].detach() if library == "torch" else names["q"])
    still = np.zeros(7)
    g = rbd.gravity_effort(names["model"], q)
    J = rbd.inverse_dynamics_derivatives(names["model"], q, still, still).q
    assert np.abs(J.T @ g + 500.0 * (q - np.asarray(names["q0"]))).max() < 1e-5
    if library == "jax":
        peer.config.update("jax_enable_x64", before)

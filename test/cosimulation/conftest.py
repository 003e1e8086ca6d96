"""The private DDS domain and the compiled kernels of the tests of nodes, and processes of nodes."""
import itertools

import pytest
from nodes.conftest import compiled_kernels, private_domain  # noqa: F401


@pytest.fixture(params=["direct", pytest.param("executor", marks=pytest.mark.thorough)])
def each_control_loop(request, monkeypatch):
    """As in test/nodes, where the harness has another name."""
    from nodes import harness

    monkeypatch.setattr(harness, "control_loop", request.param)
    return request.param


@pytest.fixture
def start(tmp_path):
    """Start nodes; kill what a failed test leaves behind."""
    from nodes.harness import NodeProcess

    started, number = [], itertools.count()

    def launch(name, *arguments, **parameters):
        folder = tmp_path / str(next(number))
        folder.mkdir()
        started.append(NodeProcess(folder, name, arguments, **parameters))
        return started[-1]

    yield launch
    for process in started:
        process.kill()

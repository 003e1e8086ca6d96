"""A private DDS domain per session, so that tests neither hear nor disturb anything else on this machine."""
from __future__ import annotations

import itertools
import os

import pytest
from support.domains import private_domain_id


@pytest.fixture(scope="session", autouse=True)
def private_domain():
    saved = {name: os.environ.get(name) for name in ("ROS_DOMAIN_ID", "ROS_AUTOMATIC_DISCOVERY_RANGE")}
    os.environ["ROS_DOMAIN_ID"] = private_domain_id()
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    yield
    for name, value in saved.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture
def start_node(tmp_path):
    """Start nodes in processes of their own; end what a failed test leaves behind."""
    from harness import NodeProcess

    started, number = [], itertools.count()

    def start(name, *arguments, **parameters):
        folder = tmp_path / f"node{next(number)}"
        folder.mkdir()
        started.append(NodeProcess(folder, name, arguments, **parameters))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels():
    """Kernels compiled ahead, so that a node under test starts in a second or two."""
    import numpy as np

    import rbd_ros as rbd

    model = rbd.load_urdf(rbd.sample_path("two_link"))
    zero = np.zeros(model.nv)
    rbd.mass_matrix(model, zero)
    rbd.inverse_dynamics(model, zero, zero, zero)
    rbd.inverse_dynamics(model, zero, zero, zero, np.zeros((len(model.body_names), 6)))
    model.difference(zero, zero)


@pytest.fixture(params=["direct", pytest.param("executor", marks=pytest.mark.thorough)])
def each_control_loop(request, monkeypatch):
    """What is tested of nodes holds on both ways from a message to its answer; the one of this test."""
    import harness

    monkeypatch.setattr(harness, "control_loop", request.param)
    return request.param

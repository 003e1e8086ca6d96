"""Node `feedforward` with the description and the parameters that identification writes."""
from __future__ import annotations

import pytest
from elbow import NAMES, PATIENT, Q, V, follow, full
from harness import Peer
from support.recordings import periodic, perturbed, record

import rbd_ros as rbd
from elbow import URDF

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


@pytest.fixture
def peer(private_domain):
    with Peer() as peer:
        yield peer


def test_the_node_computes_with_what_was_identified(start_node, peer, tmp_path):
    source = tmp_path / "elbow.urdf"
    source.write_text(URDF.format(shoulder=100))
    model = rbd.load_urdf(source)
    found = rbd.identify(model, record(perturbed(model, 2), periodic(model, 2), 2), smoothing=0.01)
    found.write_urdf(tmp_path / "new.urdf", source)
    found.write_parameters(tmp_path / "nodes.yaml")
    process = start_node("feedforward", "--params-file", str(tmp_path / "nodes.yaml"),
                         **PATIENT, robot_description_file=str(tmp_path / "new.urdf"))
    expected = full(found.model)
    assert abs(expected - full(model)).max() > 0.05 and found.model.armature.max() > 0.01
    assert follow(peer, expected, tolerance=1e-6).name == NAMES
    peer.answer_close_to(expected, NAMES, Q, V, tolerance=1e-6)
    assert process.end() == 0

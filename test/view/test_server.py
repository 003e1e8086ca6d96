"""The server of the view itself, without a browser: who may connect, and where links are in its tree."""

import asyncio
from itertools import pairwise

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.errors import RbdError
from rbd_ros.view.serving import end, is_own, open_server, url_of

LINK = """<link name="{}"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual></link>"""
JOINT = """<joint name="{1}_joint" type="revolute"><parent link="{0}"/><child link="{1}"/><origin xyz="0 0 1"/>
  <axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="10" velocity="1"/></joint>"""


@pytest.fixture
def server():
    pytest.importorskip("viser")
    found = open_server(port=0)
    yield found
    end(found)


@pytest.mark.parametrize("host, asked, origin, own", [
    ("127.0.0.1", "localhost:8080", "http://localhost:8080", True),
    ("127.0.0.1", "127.0.0.1:8080", None, True),
    ("127.0.0.1", "localhost:8080", "http://elsewhere.example", False),
    ("127.0.0.1", "localhost:8080", "http://localhost:3000", False),
    ("127.0.0.1", "localhost:8080", "null", False),
    ("127.0.0.1", "rebound.example:8080", "http://rebound.example:8080", False),
    ("127.0.0.1", "", None, False),
    ("127.0.0.1", "[::1", None, False),
    ("0.0.0.0", "robot:8080", "http://robot:8080", True),
    ("0.0.0.0", "robot:8080", "https://elsewhere.example", False)])
def test_own_pages(host, asked, origin, own):
    assert is_own(host, asked, origin) is own


def test_pages_of_other_sites_cannot_connect(server):
    """They could press its buttons: any page may open a WebSocket to this machine."""
    import viser
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus

    port = server.get_port()

    async def received(origin):
        async with connect(f"ws://localhost:{port}", origin=origin, proxy=None,
                           subprotocols=[f"viser-v{viser.__version__}"]) as connection:
            return len(await asyncio.wait_for(connection.recv(), 20.0))

    assert asyncio.run(received(f"http://localhost:{port}")) > 0
    with pytest.raises(InvalidStatus, match="403"):
        asyncio.run(received("http://elsewhere.example"))


def test_links_of_any_name_are_where_they_are(server):
    """Names with slashes, as of prefixed robots, and names of the view's own parts."""
    from rbd_ros.view.robot_view import RobotView
    from rbd_ros.view.scene import load_scene

    names = ["base", "base/tool", "centre_of_mass", "ties", "links", "base%2Ftool", "shape_0"]
    scene = load_scene('<robot name="r">' + "".join(map(LINK.format, names))
                       + "".join(JOINT.format(*pair) for pair in pairwise(names))
                       + "</robot>")
    view = RobotView(server, scene)
    view.move(np.full(view.model.nq, 0.1))
    frames = [handle.name for handle in view.drawing._links]
    assert len(set(frames)) == len(names) and view.drawing._centre.name not in frames
    assert not any(other.startswith(frame + "/") for frame in frames for other in frames)    # poses are of the world
    poses = rbd.forward_kinematics(scene.model, view.q)
    assert np.allclose([handle.position for handle in view.drawing._links], poses[:, :3, 3])


@pytest.mark.parametrize("host", ["a..b", "x" * 300, "256.1.1.1.1"])
def test_hosts_that_are_none_are_refused_in_words(host):
    pytest.importorskip("viser")
    with pytest.raises(RbdError, match="--host"):
        open_server(host, 0)


def test_the_sixth_version_of_addresses():
    pytest.importorskip("viser")
    try:
        found = open_server("::1", 0)
    except RbdError:
        import socket
        with pytest.raises(OSError), socket.socket(socket.AF_INET6) as probe:    # this machine has none
            probe.bind(("::1", 0))
        return
    try:
        assert url_of(found).startswith("http://[::1]:")
    finally:
        end(found)

"""The server of the view itself, without a browser: who may connect, and where links are in its tree."""

import asyncio
import threading
import time
import urllib.error
import urllib.request
from itertools import pairwise

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.errors import RbdError
from rbd_ros.core.lie import se3
from rbd_ros.view.gate import Gate
from rbd_ros.view.serving import end, open_server, url_of

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


@pytest.mark.parametrize("host, allowed, local, asked, origin, own", [
    ("127.0.0.1", [], "127.0.0.1", "localhost:8080", "http://localhost:8080", True),
    ("127.0.0.1", [], "127.0.0.1", "127.0.0.1:8080", None, True),
    ("127.0.0.1", [], "127.0.0.1", "localhost:8080", "http://elsewhere.example", False),
    ("127.0.0.1", [], "127.0.0.1", "localhost:8080", "http://localhost:3000", False),
    ("127.0.0.1", [], "127.0.0.1", "localhost:8080", "null", False),
    ("127.0.0.1", [], "127.0.0.1", "rebound.example:8080", "http://rebound.example:8080", False),
    ("127.0.0.1", [], "127.0.0.1", "", None, False),
    ("127.0.0.1", [], "127.0.0.1", "[::1", None, False),
    ("0.0.0.0", [], "10.0.0.5", "evil.example:8080", "http://evil.example:8080", False),
    ("0.0.0.0", [], "10.0.0.5", "evil.example:8080", None, False),
    ("0.0.0.0", [], "10.0.0.5", "10.0.0.6:8080", "http://10.0.0.6:8080", False),
    ("0.0.0.0", [], "10.0.0.5", "10.0.0.5:8080", "http://10.0.0.5:8080", True),
    ("::", [], "::ffff:10.0.0.5", "10.0.0.5:8080", "http://10.0.0.5:8080", True),
    ("::", [], "fe80::1%eth0", "[fe80::1]:8080", "http://[fe80::1]:8080", True),
    ("0.0.0.0", ["Robot.local"], "10.0.0.5", "robot.local:8080", "http://robot.local:8080", True),
    ("0.0.0.0", ["robot.local"], "10.0.0.5", "robot.local:8080", "https://elsewhere.example", False),
    ("0.0.0.0", ["robot.local"], "10.0.0.5", "a.robot.local:8080", "http://a.robot.local:8080", False)])
def test_own_pages(host, allowed, local, asked, origin, own):
    """Under names that were given, and addresses of this machine."""
    assert Gate(host, allowed).is_own(asked, origin, local) is own


@pytest.mark.parametrize("name", ["http://robot", "robot:8080", "a/b", "", "me@robot", "[robot]"])
def test_allowed_names_are_names(name):
    with pytest.raises(RbdError, match="--allow-host"):
        Gate("0.0.0.0", [name])


def connected(server, path, *messages, name="127.0.0.1", origin=None):
    """Send messages as a browser does whose page has this path, name and origin."""
    import msgspec
    import viser
    from websockets.asyncio.client import connect

    async def talk():
        options = {"subprotocols": [f"viser-v{viser.__version__}"], "proxy": None, "origin": origin}
        async with connect(f"ws://{name}:{server.get_port()}{path}", host="127.0.0.1", **options) as connection:
            assert len(await asyncio.wait_for(connection.recv(), 20.0)) > 0
            for message in messages:
                await connection.send(message if isinstance(message, bytes) else msgspec.msgpack.encode(message))

    asyncio.run(asyncio.wait_for(talk(), 60.0))


def camera():
    return {"type": "ViewerCameraMessage", "wxyz": [1.0, 0.0, 0.0, 0.0], "position": [1.0, 0.0, 0.0], "fov": 1.0,
            "near": 0.1, "far": 10.0, "image_height": 100, "image_width": 100, "look_at": [0.0, 0.0, 0.0],
            "up_direction": [0.0, 0.0, 1.0]}


def changed(control, **updates):
    return {"type": "GuiUpdateMessage", "uuid": control._impl.uuid, "updates": updates}


def test_pages_of_other_sites_cannot_connect(server):
    """They could press its buttons: any page may open a WebSocket to this machine, under a name of its own."""
    from websockets.exceptions import InvalidStatus

    port = server.get_port()
    connected(server, "/", name="localhost", origin=f"http://localhost:{port}")
    for name, origin in (("localhost", "http://elsewhere.example"), ("evil.example", f"http://evil.example:{port}")):
        with pytest.raises(InvalidStatus, match="403"):
            connected(server, "/", name=name, origin=origin)


def test_a_page_under_a_name_that_was_not_given_is_refused_at_all_addresses():
    """What `--host 0.0.0.0` serves: a name of a foreign page may lead here (DNS rebinding), and Host is Origin then."""
    pytest.importorskip("viser")
    from websockets.exceptions import InvalidStatus

    found = open_server("0.0.0.0", 0, allowed=["robot.local"])
    try:
        port = found.get_port()
        for name in ("robot.local", "127.0.0.1"):
            connected(found, "/", name=name, origin=f"http://{name}:{port}")
        with pytest.raises(InvalidStatus, match="403"):
            connected(found, f"/{found.gate.token}", name="evil.example", origin=f"http://evil.example:{port}")
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60)
    finally:
        end(found)


@pytest.fixture
def pressed(server):
    """What was used, by name, of two buttons and a slider; the first button is open to guests."""
    found = []
    controls = {name: server.gui.add_button(name) for name in ("stop", "reset")}
    controls["slider"] = server.gui.add_slider("slider", 0.0, 1.0, 0.1, 0.0)
    server.gate.open(controls["stop"])
    came = {name: threading.Event() for name in controls}
    for name, control in controls.items():

        @(control.on_update if name == "slider" else control.on_click)
        def _(event, name=name):
            found.append(name)
            came[name].set()

    return controls, found, came


@pytest.mark.parametrize("path", ["", "/wrong", "/?token={}", "/x/{}"])
def test_a_guest_may_stop_and_nothing_else(server, pressed, path):
    """Without the token of the link: a release, and all that moves, does not reach viser."""
    controls, found, came = pressed
    stop = controls["stop"]
    connected(server, path.format(server.gate.token), camera(), changed(controls["reset"], value=True),
              changed(controls["slider"], value=0.5), changed(stop, removed=True), changed(stop, update_cb=[]),
              changed(stop, value=True, disabled=True), b"nonsense", b"", [1, 2], changed(stop, value=True))
    assert came["stop"].wait(60.0) and found == ["stop"]
    assert controls["slider"].value == 0.0 and not stop._impl.removed


def test_the_link_of_the_terminal_moves_all(server, pressed):
    controls, _, came = pressed
    path = url_of(server).partition(str(server.get_port()))[2]
    connected(server, path, camera(), changed(controls["reset"], value=True), changed(controls["slider"], value=0.5),
              changed(controls["stop"], value=True))
    assert all(event.wait(60.0) for event in came.values()) and controls["slider"].value == 0.5


@pytest.mark.parametrize("kind", ["ShareUrlRequest", "ShareUrlDisconnect"])
def test_no_one_opens_a_public_tunnel(server, pressed, monkeypatch, kind):
    """viser's server has a handler for it: no connection reaches that, with the token neither."""
    controls, _, came = pressed
    asked = []
    for name in ("request_share_url", "disconnect_share_url"):
        monkeypatch.setattr(server, name, lambda: asked.append(1))
    connected(server, f"/{server.gate.token}", camera(), {"type": kind}, changed(controls["stop"], value=True))
    assert came["stop"].wait(60.0) and asked == []


def test_the_page_is_served_with_and_without_the_token(server):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for url in (url_of(server), f"http://localhost:{server.get_port()}/"):
        assert b"<html" in opener.open(url, timeout=60).read()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        opener.open(url_of(server) + "../../etc/passwd", timeout=60)


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


def dragged(what, **fields):
    return {"type": f"TransformControls{what}Message", "name": "/handle", "owner": ""} | fields


def test_a_dragged_link_takes_the_joints_along_within_their_limits(server):
    """Of who has the token; beyond reach the arm goes as far as it can, says so, and the handle comes back to it."""
    from rbd_ros.view.robot_view import RobotView
    from rbd_ros.view.scene import load_scene

    view = RobotView(server, load_scene(rbd.sample_path("iiwa")))
    model, handle, path = view.model, view._dragging._handle, f"/{server.gate.token}"
    q = np.array([0.3, 0.5, 0.1, -1.2, 0.2, 0.8, 0.4])
    view.move(q)
    view._dragging._link.value = "link_7"
    view.move(q)
    pose = rbd.forward_kinematics(model, q)[-1]
    np.testing.assert_allclose(handle.position, pose[:3, 3])
    goal, moved = pose[:3, 3] + [0.05, -0.05, 0.1], threading.Event()
    view.on_slide = moved.set

    def drag(path, position):
        moved.clear()
        turned = {"wxyz": handle.wxyz.tolist(), "position": position}
        connected(server, path, camera(), dragged("DragStart"), dragged("Update", **turned), dragged("DragEnd"))

    goal = goal.tolist()
    drag("/", goal)    # a guest
    drag(path, goal)
    assert moved.wait(60.0)
    with view.lock:
        there = rbd.forward_kinematics(model, view.q)[-1]
    np.testing.assert_allclose(there[:3, 3], goal, atol=1e-6)
    np.testing.assert_allclose(there[:3, :3], pose[:3, :3], atol=1e-6)
    assert view._handles[0].value == pytest.approx(view.q[0], abs=1e-3)
    drag(path, [0.0, 0.0, 9.0])
    assert moved.wait(60.0)
    with view.lock:
        assert "out of reach" in view._problem
        assert ((view.q >= model.position_lower) & (view.q <= model.position_upper)).all()
    before = view.q
    for position in ([np.nan, 0.0, 0.0], [0.0, 1e308, np.inf]):
        drag(path, position)
    drag(path, goal)
    assert moved.wait(60.0)
    with view.lock:
        assert view.q is not before


class Node:
    """Stands for a running node `cartesian`."""

    def __init__(self):
        self.goals, self.came, self.target = [], threading.Event(), None

    def poll(self, observed):
        if self.target is not None:
            observed.on_target(time.monotonic(), *self.target)

    def go_to(self, pose):
        self.goals.append(pose)
        self.came.set()


def test_the_target_of_a_link_is_shown_and_dragged(server):
    from rbd_ros.runtime.observed_robot import ObservedRobot
    from rbd_ros.view.live import LiveView
    from rbd_ros.view.robot_view import RobotView
    from rbd_ros.view.scene import load_scene

    view, node = RobotView(server, load_scene(rbd.sample_path("iiwa")), sliders=False), Node()
    live = LiveView(view, node, ObservedRobot(view.model, "/cartesian", view.q))
    assert live._target is None    # another node has none
    node.target = view.model.body_names[0], [0.3, 0.2, 0.1], [0.6, 0.0, 0.0, 0.8]
    live.step()
    axes, drag = live._target
    drag._link.value = "target"
    live.step()
    for shown in (axes, drag._handle):
        np.testing.assert_allclose([*shown.position, *shown.wxyz], [0.3, 0.2, 0.1, 0.8, 0.6, 0.0, 0.0], atol=1e-12)
    update = dragged("Update", wxyz=[1.0, 0.0, 0.0, 0.0], position=[0.3, 0.4, 0.5])
    connected(server, "/", camera(), dragged("DragStart"), update, dragged("DragEnd"))    # a guest
    connected(server, f"/{server.gate.token}", camera(), dragged("DragStart"), update, dragged("DragEnd"))
    assert node.came.wait(60.0)
    np.testing.assert_allclose(node.goals[-1], se3.from_rotation(np.eye(3), [0.3, 0.4, 0.5]), atol=1e-12)
    assert len(node.goals) == 1
    node.target = None
    live._clock = lambda: time.monotonic() + 10.0
    live.step()
    assert not axes.visible


def test_a_guest_drags_nothing(server):
    import msgspec

    for what, fields in (("DragStart", {}), ("Update", {"wxyz": [1, 0, 0, 0], "position": [0, 0, 0]}), ("DragEnd", {})):
        message = msgspec.msgpack.encode(dragged(what, **fields))
        assert server.gate.admits(message, False) and not server.gate.admits(message, True)
        assert not server.gate.admits(msgspec.msgpack.encode(dragged(what, removed=True, **fields)), False)


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

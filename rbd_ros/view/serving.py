"""The server of the view: start, address, end."""
from __future__ import annotations

import contextlib
import io
import os
import socket
import sys
import time
import webbrowser
from collections.abc import Callable, Iterable
from typing import Any

from ..core.errors import RbdError
from ..signals import interruptible
from .gate import HERE, IS_GUEST, Gate

PORT = 8080
LOCAL = HERE[0]
FIELD = 0.75    # rad: of the camera, from top to bottom


def open_server(host: str = LOCAL, port: int = PORT, title: str = "rbd view", allowed: Iterable[str] = ()) -> Any:
    """A viser server, by default reachable from this machine only; on the next free port if `port` is taken. allowed:
    further host names that are accepted. Its `gate` controls access. Raises `RbdError` if viser is not installed, or if
    the address cannot be bound.
    """
    viser = has_viser()
    gate = Gate(host, allowed)
    if not 0 <= port <= 65535:
        raise RbdError(f"--port is {port}, expected 0 to 65535")
    with contextlib.redirect_stdout(io.StringIO()), gate.guard():    # suppress its own output
        server = viser.ViserServer(host=_checked(host), port=_free(host, port), label=title, verbose=False)
    server.gate = gate
    server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(0, 114, 178),
                               control_width="medium")
    server.scene.configure_default_lights(cast_shadow=False)
    server.initial_camera.fov = FIELD
    server.gui.main_panel.dock_right()

    @server.on_client_connect
    async def _(client: Any) -> None:    # in the context of its connection
        if IS_GUEST.get():
            client.add_notification("Read-only view", "Only the emergency stop works here. For all controls, open the "
                                    "complete link that the terminal printed.", auto_close_seconds=None)

    return server


def has_viser() -> Any:
    """The package viser; raises `RbdError`, with installation instructions, if it is missing."""
    try:
        import viser
    except ImportError as error:
        raise RbdError(f"the view needs the package viser ({error}): pip install 'rbd_ros[view]', or "
                       "pip install viser trimesh") from None
    return viser


def _checked(host: str) -> str:
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError) as error:
        raise RbdError(f"--host {host[:80]}: {getattr(error, 'strerror', None) or error}") from None
    return host


def _free(host: str, port: int) -> int:
    """The port, or the next free one; any for 0."""
    for candidate in (port, *range(port + 1, min(port + 20, 65536)), 0):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise RbdError(f"--host {host[:80]}: no port is free there, or the address is not of this machine")


def url_of(server: Any) -> str:
    """The link for a browser on this machine, with the token."""
    host = server.get_host()
    name = "localhost" if host in ("0.0.0.0", "::", LOCAL) else f"[{host}]" if ":" in host else host
    return f"http://{name}:{server.get_port()}/{server.gate.token}/"


def serve(server: Any, browser: bool = True, step: Callable[[], object] | None = None, period: float = 0.1) -> int:
    """Serve until Ctrl-C (SIGINT, SIGTERM): print the address, open a browser if there is a screen, call `step` every
    `period` s. Returns the exit code 0.
    """
    url = url_of(server)
    print(f"rbd view: {url}    (Ctrl-C ends it)", flush=True)
    if server.get_host() not in HERE:
        print("rbd view: everyone who reaches this machine can view the page, and with --live stop the robot; the link "
              "also allows to release the stop. To open it under a host name: --allow-host NAME", file=sys.stderr)
    if browser and has_screen():
        with contextlib.suppress(webbrowser.Error, OSError):
            webbrowser.open(url)
    try:
        with interruptible():
            while True:
                if step is not None:
                    step()
                time.sleep(period)
    except KeyboardInterrupt:
        print("\nrbd view: ended", flush=True)
    finally:
        end(server)
    return 0


def end(server: Any) -> None:
    """Close the server, and all connections to it."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def has_screen() -> bool:
    """Whether there is a screen for a browser."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))

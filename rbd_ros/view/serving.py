"""The server of the view: starting, telling its address, ending."""
from __future__ import annotations

import contextlib
import io
import os
import socket
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from ..core.errors import RbdError
from ..signals import interruptible

PORT = 8080
LOCAL = "127.0.0.1"
HERE = (LOCAL, "localhost", "::1")    # this machine alone
FIELD = 0.75    # rad: of the camera, from top to bottom


def open_server(host: str = LOCAL, port: int = PORT, title: str = "rbd view") -> Any:
    """A viser server, reachable from this machine alone unless `host` says otherwise; on the next free port if that is
    taken. `RbdError` where viser is not installed, or the address cannot be had.
    """
    viser = has_viser()
    if not 0 <= port <= 65535:
        raise RbdError(f"--port is {port}, expected 0 to 65535")
    with contextlib.redirect_stdout(io.StringIO()), _own_pages_alone(host):    # it prints its address unasked
        server = viser.ViserServer(host=_checked(host), port=_free(host, port), label=title, verbose=False)
    server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(0, 114, 178),
                               control_width="medium")
    server.scene.configure_default_lights(cast_shadow=False)
    server.initial_camera.fov = FIELD
    server.gui.main_panel.dock_right()
    return server


@contextlib.contextmanager
def _own_pages_alone(host: str) -> Iterator[None]:
    """Servers that viser starts in here refuse pages of other sites.

    A browser lets every page connect to a WebSocket on this machine: one could release an emergency stop. viser does
    not look at who asks, and has no argument for it.
    """
    from websockets.asyncio import server as websockets

    serve_any = websockets.serve

    def serve_own(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
        def checked(connection: Any, request: Any) -> Any:
            if not is_own(host, request.headers.get("Host", ""), request.headers.get("Origin")):
                return connection.respond(403, "this page is of another site\n")
            return None if process_request is None else process_request(connection, request)

        return serve_any(*arguments, process_request=checked, **options)

    websockets.serve = serve_own    # type: ignore[misc, assignment]
    try:
        yield
    finally:
        websockets.serve = serve_any    # type: ignore[misc]


def is_own(host: str, asked: str, origin: str | None) -> bool:
    """Whether a request to a server at `host` comes from its own page. asked, origin: its headers Host and Origin (only
    browsers send it). At this machine alone, other names that lead here (DNS rebinding) are not its own.
    """
    try:
        if host in HERE and urlsplit(f"//{asked}").hostname not in HERE:
            return False
        return origin is None or urlsplit(origin).netloc == asked
    except ValueError:    # of brackets that do not match
        return False


def has_viser() -> Any:
    """The package; `RbdError` says how to get it."""
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
    """The port, or the next free one; 0 is any."""
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
    """The address for a browser on this machine."""
    host = server.get_host()
    named = "localhost" if host in ("0.0.0.0", "::", LOCAL) else f"[{host}]" if ":" in host else host
    return f"http://{named}:{server.get_port()}"


def serve(server: Any, browser: bool = True, step: Callable[[], object] | None = None, period: float = 0.1) -> int:
    """Until Ctrl-C (SIGINT, SIGTERM): tells the address, opens a browser where there is a screen, calls `step` every
    `period` s. Returns the exit code 0.
    """
    url = url_of(server)
    print(f"rbd view: {url}    (Ctrl-C ends it)", flush=True)
    if server.get_host() not in HERE:
        print("rbd view: whoever reaches this machine can open it, and with --live stop the robot", file=sys.stderr)
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
    """Whether a browser has where to open."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))

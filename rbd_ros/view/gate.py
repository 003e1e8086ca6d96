"""Access control of the view's page: own addresses only, a token for changes, and the stop button for everyone.

A browser lets every page connect to a WebSocket on this machine, under any name that resolves to it, and viser does not
check the origin. Each connection and each message is therefore checked here before it reaches viser.
"""
from __future__ import annotations

import contextlib
import ipaddress
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from ..core.errors import RbdError

HERE = ("127.0.0.1", "localhost", "::1")    # this machine alone
CAMERA, CHANGE = "ViewerCameraMessage", "GuiUpdateMessage"
DRAG = {f"TransformControls{what}Message": {"type", "name", "owner", *more}    # with their fields
        for what, more in (("DragStart", ()), ("Update", ("wxyz", "position")), ("DragEnd", ()))}
LARGEST = 2**16    # bytes of a message from a browser, such as a slider's value
IS_GUEST: ContextVar[bool] = ContextVar("rbd_view_guest", default=True)    # whether the present client lacks the token


class Gate:
    """host: the served address; allowed: further names or addresses accepted for the page.

    `token` is the first part of the link's path. Clients with the token may use all controls; guests may look around
    and use controls passed to `open`. Other features of viser (public tunnel, uploads, other properties) are blocked.
    """

    def __init__(self, host: str, allowed: Iterable[str] = ()) -> None:
        self.token = secrets.token_urlsafe(16)
        self._hosts = {*map(_host, HERE), _host(host), *map(checked_name, allowed)}
        self._opened: set[str] = set()

    def open(self, control: Any) -> Any:
        """Allow guests to use a control of viser; returns it."""
        self._opened.add(control._impl.uuid)
        return control

    def is_own(self, host: str, origin: str | None, local: str) -> bool:
        """Whether a request comes from the page itself. host, origin: headers Host and Origin (sent by browsers only);
        local: the local address of the connection. Other names that resolve here (DNS rebinding) are rejected.
        """
        try:
            return (_host(urlsplit(f"//{host}").hostname or "") in {*self._hosts, _host(local)}
                    and (origin is None or urlsplit(origin).netloc == host))
        except ValueError:    # for unmatched brackets
            return False

    def claim(self, path: str) -> str | None:
        """The requested path without the token; None without the right token."""
        first, _, remainder = path.lstrip("/").partition("/")
        first, mark, query = first.partition("?")
        return f"/{remainder}{mark}{query}" if secrets.compare_digest(first.encode(), self.token.encode()) else None

    def admits(self, raw: Any, guest: bool) -> bool:
        """Whether a message is passed to viser."""
        import msgspec

        try:
            message = msgspec.msgpack.decode(raw)
            kind = message["type"]
            if kind in DRAG:
                return not guest and message.keys() <= DRAG[kind]
            return kind == CAMERA or (kind == CHANGE and message["updates"].keys() == {"value"}
                                      and (not guest or message["uuid"] in self._opened))
        except (msgspec.DecodeError, AttributeError, TypeError, KeyError, RecursionError):
            return False

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Context in which servers started by viser are protected by this gate; viser has no option for it."""
        from websockets.asyncio import server as websockets

        serve_any = websockets.serve
        gate = self

        class Guarded(websockets.ServerConnection):
            guest = True

            async def recv(self, decode: bool | None = None) -> Any:
                while not gate.admits(raw := await super().recv(decode), self.guest):
                    pass
                return raw

        def serve_own(handler: Callable[[Any], Any], *arguments: Any, process_request: Any = None,
                      **options: Any) -> Any:
            def checked(connection: Any, request: Any) -> Any:
                host, origin = (",".join(request.headers.get_all(name)) for name in ("Host", "Origin"))
                if not self.is_own(host, origin or None, connection.local_address[0]):
                    return connection.respond(403, "this page is of another site, or asked for under a name that is "
                                                   "not given with --allow-host\n")
                if (remainder := self.claim(request.path)) is not None:
                    connection.guest, request.path = False, remainder
                return None if process_request is None else process_request(connection, request)

            async def handled(connection: Any) -> Any:
                IS_GUEST.set(connection.guest)
                return await handler(connection)

            return serve_any(handled, *arguments, process_request=checked,
                             **{**options, "create_connection": Guarded, "max_size": LARGEST})

        websockets.serve = serve_own    # type: ignore[misc, assignment]
        try:
            yield
        finally:
            websockets.serve = serve_any    # type: ignore[misc]


def checked_name(name: str) -> Any:
    """A name or address of `--allow-host`, normalised for comparison."""
    try:
        if ":" in name:
            ipaddress.ip_address(name)
        if not name or set(name) & set("/?#@[]") or name.split() != [name]:
            raise ValueError
    except ValueError:
        raise RbdError(f"--allow-host {name[:80]}: expected a name or an address, as robot.local, no port") from None
    return _host(name)


def _host(name: str) -> Any:
    """An IP address (IPv4-mapped IPv6 as IPv4); any other name in lower case."""
    try:
        address = ipaddress.ip_address(name.strip("[]").partition("%")[0])
        return getattr(address, "ipv4_mapped", None) or address
    except ValueError:
        return name.lower()

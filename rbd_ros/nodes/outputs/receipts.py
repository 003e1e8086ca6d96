"""Receipts: confirmation by service that other nodes have handled their messages.

A publisher knows at best that a subscriber's middleware has received a message, not whether the callback ran; with
best-effort subscriptions, as of ros2_control's controllers, not even that. But an executor serves the subscriptions of
a node before its services, and discovery announces writers in order of creation. A node that answers a request (here
get_parameters without names) of a client created after the publisher has therefore received and handled the messages
published before the request.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.callback_groups import CallbackGroup


class Receipts:
    """Requests to these services; done: called when all have answered. group: of the clients."""

    def __init__(self, node: Any, services: Sequence[str], group: CallbackGroup | None,
                 done: Callable[[], None]) -> None:
        self._node, self._done = node, done
        self.clients = [node.create_client(GetParameters, name, callback_group=group) for name in services]
        self._missing: set[int] = set()
        self._round = 0

    def destroy(self) -> None:
        for client in self.clients:
            self._node.destroy_client(client)

    @property
    def missing(self) -> str:
        """Services without an answer."""
        return ", ".join(self.clients[i].service_name for i in sorted(self._missing))

    def ask(self) -> None:
        """Send requests to all services, for receipts of earlier messages."""
        self._round += 1
        self._missing = set(range(len(self.clients)))
        self.repeat()

    def repeat(self) -> None:
        """Repeat the unanswered requests."""
        for i in sorted(self._missing):
            client = self.clients[i]
            if client.service_is_ready():
                future = client.call_async(GetParameters.Request())
                future.add_done_callback(partial(self._on_answer, self._round, i))

    def _on_answer(self, number: int, i: int, future: Any) -> None:
        if number != self._round or i not in self._missing or future.cancelled():
            return
        self._missing.discard(i)
        if not self._missing:
            self._done()

"""Receipts: confirmation by service that other nodes have handled their messages.

A publisher knows at best that the middleware of a subscriber has a message, not whether its callback ran; with a
best-effort subscription, as controllers of ros2_control have, not even that. But an executor runs the subscriptions of
a node before its services, and discovery tells another process of writers in the order in which they were made. So a
node that answers a request, here for none of its parameters, by a client that was made after the publisher, has got
what was published to it before the request, and has handled it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.callback_groups import CallbackGroup


class Receipts:
    """Asks these services; done: called when all have answered. group: of the clients."""

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
        """Services that have not answered."""
        return ", ".join(self.clients[i].service_name for i in sorted(self._missing))

    def ask(self) -> None:
        """All, about what was sent before."""
        self._round += 1
        self._missing = set(range(len(self.clients)))
        self.repeat()

    def repeat(self) -> None:
        """Ask those again that have not answered."""
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

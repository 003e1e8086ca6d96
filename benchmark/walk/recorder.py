"""What a controller's laws and safe efforts were asked for in a cycle, and what they said, before any limit."""
from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from rbd_ros.runtime.inputs.finite import all_finite
from rbd_ros.runtime.safety import Command

Array = np.ndarray
CARRIED = -1    # in place of the number of a law: what carries a robot at rest without states


class Recorder:
    """Listens between a controller and its safety filter; `clear` before each cycle.

    commands: what each law said, None where it had no finite command. safe: the same for its safe efforts.
    """

    def __init__(self, controller: Any) -> None:
        self.commands: dict[int, tuple[Array, ...] | None] = {}
        self.safe: dict[tuple[int, bool], list[Array] | None] = {}
        self._alive: dict[int, tuple[int, Any]] = {}    # number by identity, with the law itself, so that it stays
        safety = controller.safety
        update, efforts, carried = safety.update, safety._safe_efforts, safety._carried

        def record_update(now: float, command: Any, again: Any) -> Any:
            return update(now, lambda laws: self._command(laws, command), again)

        def record_safe(laws: Any, at_rest: bool) -> Any:
            key = self._name(laws), at_rest
            self.safe[key] = None
            found = efforts(laws, at_rest)
            self.safe[key] = [np.array(effort) for effort in found]
            return found

        def record_carried(safe: list[Array]) -> list[Array]:
            found = carried(safe)
            if found is not safe:
                self.safe = {(CARRIED, True): [np.array(effort) for effort in found]}
            return found

        safety.update, safety._safe_efforts, safety._carried = record_update, record_safe, record_carried

    def clear(self) -> None:
        self.commands.clear()
        self.safe.clear()

    def _command(self, laws: Any, command: Any) -> Any:
        found = command(laws)
        good = isinstance(found, Command) and all(map(all_finite, found.efforts))
        self.commands[self._name(laws)] = tuple(map(np.array, found.efforts)) if good else None
        return found

    def _name(self, laws: Any) -> int:
        """A number for each law, that no other gets later."""
        if id(laws) not in self._alive:
            self._alive[id(laws)] = len(self._alive), laws
        return self._alive[id(laws)][0]

    def values(self, channel: int, fallbacks: dict[Hashable, Array], commands: bool) -> dict[Hashable, Array]:
        """All that may take part in the last output of a channel: of commands, unless these may not; safe efforts where
        they were asked; fallbacks where there is no finite safe effort.
        """
        found: dict[Hashable, Array] = {}
        if commands:
            found.update({("C", name): each[channel] for name, each in self.commands.items() if each is not None})
        found.update(self._safe(channel, fallbacks))
        return found

    def _safe(self, channel: int, fallbacks: dict[Hashable, Array]) -> Iterator[tuple[Hashable, Array]]:
        for (name, at_rest), each in self.safe.items():
            if each is not None and all_finite(each[channel]):
                yield ("S", name, at_rest), each[channel]
            else:
                yield from ((("F", key), fallback) for key, fallback in fallbacks.items())

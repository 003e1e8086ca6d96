"""Contact states of a simulator."""
from __future__ import annotations

from typing import NamedTuple

from ...model.inertia import Array


class ContactState(NamedTuple):
    """A contact of a simulator after a step: `name`; `state`: "open", "sticking" (or rolling) or "sliding"; `point`
    (3,): of the second surface closest to the first (m); `normal` (3,): unit vector from the first surface to the
    second; `force` (3,): of the first on the second in that step (N); `impulse` (3,): of impacts within it (N s), on
    the second, too; all in world axes. `gap`: m, positive if open.
    """

    name: str
    state: str
    point: Array
    normal: Array
    force: Array
    impulse: Array
    gap: float

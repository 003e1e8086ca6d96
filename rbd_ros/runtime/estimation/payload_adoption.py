"""From an estimated load to the parameters `payload.*` of a node."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import RbdError
from ...core.model.inertia import Inertia

SURE, NEAR = 0.1, 0.02    # largest half widths: of the mass, relative; of the centre of mass, m
NEEDED = ("the mass", *(f"the centre of mass along {axis}" for axis in "xyz"))


def payload_values(body: str, load: Inertia, half_width: Sequence[float], observed: Sequence[bool],
                   touching: bool) -> dict[str, Any]:
    """Values of parameters `payload.*` by name. half_width, observed (10,): as of `PayloadEstimator`; a mass within its
    interval of zero is no load. Raises `RbdError` while the robot touches something, and for a load whose mass or
    centre of mass the motion has not shown within `SURE` and `NEAR`.
    """
    if touching:
        raise RbdError("the robot touches something, or carries another load than before")
    light = bool(observed[0]) and load.mass <= half_width[0]
    missing = [name for name, shown in zip(NEEDED, observed, strict=False) if not shown]
    if missing and not light:
        raise RbdError(f"the motion has not shown {', '.join(missing)} of the load on '{body}' yet: move more joints, "
                       "faster or farther")
    mass, widths = max(load.mass, 1e-9), np.asarray(half_width)
    if not light and (widths[0] > SURE * mass or (widths[1:4] > NEAR * mass).any()):
        raise RbdError(f"the load on '{body}' is not known well enough yet: {mass:.3g} ± {widths[0]:.2g} kg, centre of "
                       f"mass ± {1e3 * widths[1:4].max() / mass:.0f} mm; expected {100.0 * SURE:.0f} % and "
                       f"{1e3 * NEAR:.0f} mm: move on")
    if light:
        return {"payload.body": body, "payload.mass": 0.0}
    I = np.asarray(load.matrix)
    return {"payload.body": body, "payload.mass": float(load.mass), "payload.com": [float(x) for x in load.com],
            "payload.inertia": [float(I[k]) for k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]}

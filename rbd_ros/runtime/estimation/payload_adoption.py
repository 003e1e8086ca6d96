"""From an estimated load to the parameters `payload.*` of a node."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import RbdError
from ...core.model.inertia import Inertia

SURE, NEAR = 0.1, 0.02    # largest half widths: of the mass, relative; of the centre of mass, m
LIGHTEST = 0.15           # kg: largest half width of a mass that may be none
LARGEST = 1.0             # m: distance of the centre of mass from the link's origin, and radius of gyration
NEEDED = ("the mass", *(f"the centre of mass along {axis}" for axis in "xyz"))


def payload_values(body: str, load: Inertia, half_width: Sequence[float], observed: Sequence[bool],
                   touching: bool, *, heaviest: float = math.inf, carried: str = "") -> dict[str, Any]:
    """Values of parameters `payload.*` by name. half_width, observed (10,): as of `PayloadEstimator`; a mass within its
    interval of zero is no load. heaviest (kg): plausible load, as heavy as the robot. carried: link of a load that the
    node has now, "" for none. Raises `RbdError` while the robot touches something, for a load whose mass or centre of
    mass the motion has not shown within `SURE` and `NEAR`, for one that is not plausible, and on another link.
    """
    if touching:
        raise RbdError("the robot touches something, or carries another load than before: let it move on freely")
    if carried not in ("", body):
        raise RbdError(f"parameters payload.* describe a load on '{carried}', which the estimate of that on '{body}' "
                       "would replace")
    if not (np.asarray(half_width) >= 0.0).all():    # NaN, too
        raise RbdError(f"half_width: expected numbers of at least 0, got {list(half_width)}")
    light = bool(observed[0]) and load.mass <= half_width[0] <= LIGHTEST
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
    if load.mass > heaviest or max(np.abs(load.com).max(), math.sqrt(np.trace(load.matrix) / mass)) > LARGEST:
        raise RbdError(f"a load of {mass:.3g} kg with its centre of mass at {np.round(load.com, 3).tolist()} m is not "
                       f"plausible on this robot: expected at most {heaviest:.3g} kg, within {LARGEST:g} m")
    I = np.asarray(load.matrix)
    return {"payload.body": body, "payload.mass": float(load.mass), "payload.com": [float(x) for x in load.com],
            "payload.inertia": [float(I[k]) for k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]}

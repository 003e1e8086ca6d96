"""The one root of every error that this package raises on purpose."""
from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class RbdError(ValueError):
    """A wrong input, named: what was given, what was expected, and where that can be said, the fix."""


class RbdWarning(UserWarning):
    """Something a user should look at, though the computation goes on."""


def unknown_name(kind: str, name: object, valid: Iterable[str], where: str = "") -> RbdError:
    """Error for a `name` that is none of the `valid` names of this `kind` (joint, body, …), found `where`."""
    valid = list(valid)
    near = get_close_matches(str(name), valid, n=1)
    hint = f"; did you mean '{near[0]}'" if near else ""
    shown = ", ".join(valid[:40]) + (", …" if len(valid) > 40 else "")
    return RbdError(f"{where and where + ': '}unknown {kind} '{name}'{hint}. Valid names: {shown or 'none'}")

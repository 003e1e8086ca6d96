"""Exceptions and warnings of this package."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from reprlib import Repr
from typing import Any

LONGEST = 500    # characters of a message: what is longer nobody reads, and it may come from a hostile file


class _Words(Repr):
    def repr_array(self, value: Any, level: int) -> str:
        """As a list: messages of ROS and its parameters have arrays, of which users do not know."""
        return self.repr_list(value.tolist(), level)


_REPR = _Words()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother, _REPR.maxlong = 3, 60, 120, 60
_REPR.maxlist = _REPR.maxtuple = _REPR.maxdict = 12


class RbdError(ValueError):
    """Invalid input; the message states the value, the expectation and, where possible, the fix.

    Messages of more than 500 characters are shortened in the middle.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(shortened(str(message)))


class BeyondNumbers(RbdError):
    """A result beyond the range of floating-point numbers."""


class RbdWarning(UserWarning):
    """Something that a user should check; the computation continues."""


def warn(message: str) -> None:
    """Give a `RbdWarning` at the line outside the library from which it was called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_LIBRARY):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, RbdWarning, stacklevel=level)


_LIBRARY = __name__.rpartition(".")[0] + "."    # rbd_ros.core.


def shortened(text: str, length: int = LONGEST) -> str:
    """A text without its middle, where it is longer than this."""
    return text if len(text) <= length else f"{text[:length * 2 // 3]} … {text[3 - length // 3:]}"


def shown(value: object) -> str:
    """`repr` of what a user gave, for messages: of bounded length and effort, however large or nested the value is."""
    try:
        return shortened(_REPR.repr(value), 160)
    except Exception:    # of an integer with too many digits, or somebody's class
        return f"a {type(value).__name__}"


def unknown_name(kind: str, name: object, valid: Iterable[str], where: str = "") -> RbdError:
    """Error for an unknown `name` of this `kind` (joint, body, …), listing the `valid` ones; `where` it was found."""
    valid = list(valid)
    text = shortened(name, 80) if isinstance(name, str) else shown(name)
    near = get_close_matches(text, [name for name in valid if len(name) <= 80], n=1)
    hint = f"; did you mean '{near[0]}'" if near else ""
    names = ", ".join(shortened(name, 80) for name in valid[:40]) + (", …" if len(valid) > 40 else "")
    return RbdError(f"{where and where + ': '}unknown {kind} '{text}'{hint}. Valid names: {names or 'none'}")

"""Validation of robot descriptions received from a topic."""
from __future__ import annotations

from ...core.errors import shown
from .rejections import Rejected

LONGEST = 2**22    # bytes of a message
BLANK = "\ufeff \t\r\n"


def received(text: str) -> str:
    """The XML text of a message. Raises `Rejected` for anything else.

    Paths and xacro files are accepted from the command line only: a publisher must not choose which local files are
    read or executed (xacro evaluates Python).
    """
    if not text.lstrip(BLANK).startswith("<"):
        raise Rejected("malformed", f"expected a robot description as XML text; what came is no XML: {shown(text)}")
    return text

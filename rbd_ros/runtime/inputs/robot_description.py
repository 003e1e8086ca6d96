"""Robot descriptions that come in messages: the one door for all who take them from a topic."""
from __future__ import annotations

from ...core.errors import shown
from .rejections import Rejected

LONGEST = 2**22    # bytes of a message
BLANK = "\ufeff \t\r\n"


def received(text: str) -> str:
    """The XML text of a message. Raises `Rejected` for anything else.

    A path, or a xacro file with arguments, is for those to give who start a program: who may publish does not choose
    which files of this computer are read, let alone run (xacro evaluates Python).
    """
    if not text.lstrip(BLANK).startswith("<"):
        raise Rejected("malformed", f"expected a robot description as XML text; what came is no XML: {shown(text)}")
    return text

"""Service responses for invalid requests and for program errors; neither ends a node."""
from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from ...core.errors import RbdError


def answered(log: Any, counts: Counter[str], name: str, answer: Callable[[], None], response: Any) -> Any:
    """The response filled by `answer`; if that raises, a new response of its type with the error.

    counts: `refused` requests, `defects` (program errors).
    """
    try:
        answer()
        return response
    except RbdError as error:
        counts["refused"] += 1
        message = str(error)
        log.warning(f"{name} refused: {message}", throttle_duration_sec=1.0)
    except Exception as error:
        counts["defects"] += 1
        message = f"the server failed with {type(error).__name__} ({error}); see its log"
        log.error(f"{name} failed, please report it:\n{traceback.format_exc()}")
    return type(response)(success=False, message=message)    # without partially filled fields

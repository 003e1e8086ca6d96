"""Messages and services of optional packages, loaded on demand of a parameter."""
from __future__ import annotations

import importlib
from typing import Any

from ...core.errors import RbdError


def interface_type(use: str, package: str, kind: str, name: str) -> Any:
    """The class of a message or service (`kind`: msg, srv) that not every user needs; `use` says what needs it."""
    try:
        return getattr(importlib.import_module(f"{package}.{kind}"), name)
    except ImportError:
        raise RbdError(f"{use} {package}/{name}, but there is no package '{package}' here: "
                       f"install it (Debian, Ubuntu: apt install ros-$ROS_DISTRO-{package.replace('_', '-')}, or "
                       "build it in your workspace), source it, and start the node again") from None
    except AttributeError:
        raise RbdError(f"{use} {package}/{name}, which the installed '{package}' does not have: "
                       "install a newer one") from None

"""Messages and services of optional packages, imported only if a parameter needs them."""
from __future__ import annotations

import importlib
from typing import Any

from ...core.errors import RbdError


def interface_type(use: str, package: str, kind: str, name: str) -> Any:
    """The class of an optional message or service (`kind`: msg, srv); `use`: the feature that needs it, for the error.
    """
    try:
        return getattr(importlib.import_module(f"{package}.{kind}"), name)
    except ImportError:
        raise RbdError(f"{use} {package}/{name}, but there is no package '{package}' here: "
                       f"install it (Debian, Ubuntu: apt install ros-$ROS_DISTRO-{package.replace('_', '-')}, or "
                       "build it in your workspace), source it, and start the node again") from None
    except AttributeError:
        raise RbdError(f"{use} {package}/{name}, which the installed '{package}' does not have: "
                       "install a newer one") from None

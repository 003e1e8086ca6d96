"""A package of services that is not installed everywhere, by name only: nothing can be sent."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest


@contextmanager
def stand_in_services() -> Iterator[None]:
    """`ros_gz_interfaces.srv` can be imported within."""
    pytest.importorskip("rbd_interfaces.srv", reason="rbd_interfaces is not built: scripts/setup does it")
    package, services = ModuleType("ros_gz_interfaces"), ModuleType("ros_gz_interfaces.srv")
    services.ControlWorld = package.srv = services    # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ros_gz_interfaces", package)
        patch.setitem(sys.modules, "ros_gz_interfaces.srv", services)
        yield

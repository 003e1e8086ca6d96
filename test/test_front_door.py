"""`import rbd_ros`: what it names is there, and what few programs ask for is imported when they do."""
from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rbd_ros as rbd

DOOR = Path(rbd.__file__)


def test_all_names_are_there():
    assert [name for name in rbd.__all__ if not hasattr(rbd, name)] == []
    assert set(rbd.__all__) <= set(dir(rbd))


def test_checkers_of_types_know_what_is_imported_later():
    """By the same table."""
    known = {}
    for node in ast.parse(DOOR.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            known |= {alias.name: item.module for item in node.body for alias in item.names}
    assert known and known == rbd._LATER and set(known) <= set(rbd.__all__)


def test_what_is_no_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'rbd_ros' has no attribute 'identfy'"):
        _ = rbd.identfy


def test_a_program_of_control_does_not_wait_for_identification():
    code = ("import sys, rbd_ros as rbd, rbd_ros.runtime.control.feedforward; "
            "print([name for name in sys.modules if 'core.identification' in name or name == 'scipy.interpolate']); "
            "from rbd_ros import identify; print(identify.__module__, rbd.identify is identify)")
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()
    assert said == ["[]", "rbd_ros.core.identification.fit True"]


@pytest.mark.parametrize(("name", "package"), [("casadi_function", "casadi"), ("cuda_batch", "cupy")])
def test_an_optional_package_waits_for_the_call(name, package):
    code = f"import sys, rbd_ros as rbd; rbd.{name}; print({package!r} in sys.modules)"
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, text=True, stdout=subprocess.PIPE)
    assert said.stdout == "False\n"

"""Contents of a Gazebo world file: name of the world (part of its service names), step and gravity.

Files are searched as by Gazebo: as a path, in GZ_SIM_RESOURCE_PATH, and among its own worlds. Defaults are those of
SDFormat 1.10.
"""
from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from ...core.errors import RbdError
from ...core.model.files.xml_tree import parse_xml, read_text

STEP, GRAVITY = 0.001, (0.0, 0.0, -9.8)    # defaults; s, m/s²


@dataclass(frozen=True)
class World:
    """A world: its name; step of the physics, s; gravity, m/s², in axes of the world; path of the file."""

    name: str
    step: float
    gravity: tuple[float, ...]
    path: Path


def read_world(file: str, environment: Mapping[str, str] | None = None) -> World:
    """The first world of an SDF file; raises `RbdError` if the file is missing or has no world.

    environment: variables with the search paths; None: those of the process.
    """
    path = find_world(file, os.environ if environment is None else environment)
    text, source = read_text(path, "SDF")
    # Gazebo's own worlds have "--" in comments, which XML forbids but Gazebo's parser accepts.
    text = re.sub(r"<!--.*?-->", "", text.decode(errors="replace") if isinstance(text, bytes) else text, flags=re.S)
    world = parse_xml(text, source).find("world")
    name = "" if world is None else world.get("name", "")
    if world is None or not name:
        raise RbdError(f"{source} has no <world name=…>: it is not a Gazebo world file")
    # Of several <physics> elements, the one with default="true" is used, else the first.
    physics = sorted(world.findall("physics"), key=lambda element: element.get("default") != "true")
    step = _numbers(physics[0].find("max_step_size") if physics else None, (STEP,), f"<max_step_size> in {source}")[0]
    return World(name, step, _numbers(world.find("gravity"), GRAVITY, f"<gravity> in {source}"), path)


def find_world(file: str, environment: Mapping[str, str]) -> Path:
    """The path of a world file, found as by Gazebo; `RbdError` lists the searched folders."""
    folders = list(dict.fromkeys(_folders(environment)))
    for path in (Path(file), *(folder / file for folder in folders)):
        if path.is_file():
            return path.absolute()
    raise RbdError(f"there is no world file '{file}', neither here nor in "
                   f"{', '.join(map(str, folders)) or 'GZ_SIM_RESOURCE_PATH, which is empty'}: give its path")


def _folders(environment: Mapping[str, str]) -> Iterator[Path]:
    for name in ("GZ_SIM_RESOURCE_PATH", "SDF_PATH"):
        yield from (Path(text) for text in environment.get(name, "").split(os.pathsep) if text)
    prefixes = [text for text in environment.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if text]
    for prefix in [*prefixes, "/usr"]:
        for share in (Path(prefix) / "share", Path(prefix) / "opt" / "gz_sim_vendor" / "share"):
            yield from sorted(share.glob("gz/gz-sim*/worlds"), reverse=True)


def _numbers(element: ElementTree.Element | None, default: tuple[float, ...], what: str) -> tuple[float, ...]:
    try:
        numbers = default if element is None else tuple(map(float, (element.text or "").split()))
    except ValueError:
        numbers = ()
    if len(numbers) != len(default) or (len(default) == 1 and not numbers[0] > 0.0):
        raise RbdError(f"{what} is no {'positive number' if len(default) == 1 else 'vector of three numbers'}")
    return numbers

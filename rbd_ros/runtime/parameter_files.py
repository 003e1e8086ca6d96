"""ROS parameter files: the parameters of a node, and explanations for files that ROS rejects."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from ..core.errors import RbdError, shown
from ..core.model.files.yaml_text import read_yaml

OPTION = "--params-file"
EXPECTED = "expected `NODE:`, below it `ros__parameters:`, and below that the parameters, indented by spaces"


def parameters_of(path: str | os.PathLike[str], node: str) -> dict[str, Any]:
    """Parameters of a node in a ROS parameter file, by full name: under its name and under /**."""
    tree, source = read_yaml(path, "parameters")
    parameters: dict[str, Any] = {}
    for section in ("/**", node, f"/{node}", f"/**/{node}"):
        values = tree.get(section, {}) if isinstance(tree, Mapping) else {}
        parameters |= flat(values.get("ros__parameters", {}) if isinstance(values, Mapping) else {})
    if not parameters:
        raise RbdError(f"{source} has no parameters for node {node}: expected `/**: ros__parameters:`")
    return parameters


def flat(tree: Any, before: str = "") -> dict[str, Any]:
    """Nested parameters by full (dotted) name."""
    found: dict[str, Any] = {}
    for key, value in tree.items() if isinstance(tree, Mapping) else ():
        found |= flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return found


def why_not(error: object, arguments: Sequence[str]) -> str:
    """Why ROS did not start with these arguments: the problem of the first invalid file, else ROS's own message."""
    files = [path for option, path in pairwise(arguments) if option == OPTION]
    for path in files:
        if problem := problem_of(path):
            return problem
    text = " ".join(str(error).split()).removeprefix("failed to initialize rcl: ")
    return text.partition(", at /")[0]    # without the location in ROS's sources


def problem_of(path: str) -> str:
    """The part of this file that ROS rejects, with its line; empty if none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return f"cannot read parameter file {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}"
    for number, line in enumerate(text.splitlines(), 1):
        if "\t" in line[:len(line) - len(line.lstrip())]:
            return f"parameter file {path}, line {number}: indented by a tab; YAML takes spaces only"
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return f"parameter file {path}{f', line {mark.line + 1}' if mark else ''}: not YAML: {error.problem}"
    except yaml.YAMLError as error:
        return f"parameter file {path}: not YAML: {' '.join(str(error).split())}"
    place, problem = next(_refused(root, False), (0, ""))
    return f"parameter file {path}, line {place}: {problem}" if problem else ""


def _refused(node: Any, inside: bool) -> Iterator[tuple[int, str]]:
    """Lines rejected by ROS, with reasons; inside: below `ros__parameters`."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _refused(value, inside or key.value == "ros__parameters")
    elif node is not None and not inside:
        yield (node.start_mark.line + 1,
               f"{shown(node.value)} is not below a node's name and ros__parameters; {EXPECTED}")
    elif isinstance(node, yaml.SequenceNode):
        kinds = {item.tag.rpartition(":")[2] for item in node.value}
        if len(kinds) > 1 or not kinds <= {"str", "int", "float", "bool"}:
            yield node.start_mark.line + 1, ("a list must hold values of one kind (1.0 and 1 are two kinds), got "
                                             + ", ".join(sorted(kinds)))

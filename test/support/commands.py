"""Shell commands of the pages, checked without being run: what they name exists and takes these values."""
from __future__ import annotations

import argparse
import importlib
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

import yaml

from .pages import ROOT
from .tables import TABLES

# Programs of others; what they do is theirs.
OTHERS = {"cd", "cmake", "colcon", "ctest", "export", "git", "pip", "rosdep", "ruff", "source"}
EXECUTABLES = set(re.findall(r'"(\w+) = rbd_executables:', (ROOT / "setup.py").read_text(encoding="utf-8")))


def commands(code: str) -> Iterator[list[str]]:
    """The words of each command; a backslash or an open quotation mark continues a line."""
    held = ""
    for line in code.splitlines():
        held += line
        if held.endswith("\\"):
            held = held[:-1] + " "
            continue
        try:
            words = shlex.split(held, comments=True)
        except ValueError:    # no closing quotation
            held += "\n"
            continue
        held = ""
        command: list[str] = []
        for word in [*words, "&&"]:
            if word != "&&":
                command.append(word)
            elif command:
                yield command
                command = []
    assert not held.strip(), held


def check(command: list[str]) -> None:
    """Raise AssertionError for what does not exist."""
    words = list(command)
    while words and re.match(r"[A-Z_]+=", words[0]):
        value = words.pop(0).partition("=")[2]
        assert "/" not in value or (ROOT / value).exists(), value
    if not words or words[0] in OTHERS:
        return
    first, *rest = words
    if first.startswith("scripts/"):
        assert (ROOT / first).is_file(), first
        if first == "scripts/run":
            executable(rest)
        elif first == "scripts/demo":
            rbd(["demo", *rest])
        elif first == "scripts/view":
            rbd(["view", *rest])
        elif first == "scripts/test":
            assert all((ROOT / word).exists() for word in rest if word.startswith("test/")), rest
    elif first in ("python", "python3", "rbd"):
        executable(words)
    else:
        assert first == "ros2", f"unknown program {first}"
        ros2(rest)


def executable(words: list[str]) -> None:
    first, *rest = words
    if first == "rbd":
        rbd(rest)
    elif first in ("python", "python3"):
        files = [word for word in rest if word.endswith(".py") or word.startswith("test/")]
        assert all((ROOT / file).exists() for file in files if "/" in file), files
    elif first not in OTHERS:
        assert first in EXECUTABLES, f"no executable {first}"
        parameters(first, rest)


def rbd(words: list[str]) -> None:
    """Arguments of a subcommand, as its parser takes them."""
    from rbd_ros.cli.files.robot import parsed
    from rbd_ros.cli.main import COMMANDS

    name, *rest = words
    assert name in COMMANDS, f"no command rbd {name}"
    parser = argparse.ArgumentParser(prog=f"rbd {name}", exit_on_error=False)
    importlib.import_module(f"rbd_ros.cli.{COMMANDS[name][0]}").add_arguments(parser)
    try:
        parsed(parser, rest, bool(parser.get_default("has_robot")))
    except (SystemExit, argparse.ArgumentError) as error:
        raise AssertionError(f"rbd {' '.join(words)}: {error}") from None


def parameters(node: str, words: list[str]) -> None:
    """`--ros-args` of an executable: parameters by their table, files."""
    for option, value in pairwise(words):
        if option == "--params-file" and value.startswith("config/"):
            assert (ROOT / value).is_file(), value
        elif option == "-p":
            name, _, text = value.partition(":=")
            parameter(node, name, text)


def parameter(node: str, name: str, text: str) -> None:
    rows = {row.name: row for row in TABLES[node]}
    assert name in rows, f"node {node} has no parameter {name}"
    if text.startswith(("rbd_ros/", "config/")):
        assert (ROOT / text).exists(), text
    rows[name].convert(yaml.safe_load(text))


def ros2(words: list[str]) -> None:
    verb, *rest = words
    if verb == "run":
        assert rest[0] in ("rbd_ros", "my_package"), rest
        if rest[0] == "rbd_ros":
            executable(rest[1:])
    elif verb == "launch":
        assert rest[0] == "rbd_ros", rest
        text = (ROOT / "launch" / rest[1]).read_text(encoding="utf-8")
        for argument in rest[2:]:
            name = argument.partition(":=")[0]
            assert re.search(rf"[\"']{name}[\"']", text), f"{rest[1]} has no argument {name}"
    elif verb == "param" and rest[0] == "set":
        parameter(rest[1].lstrip("/"), rest[2], rest[3])
    elif verb == "bag":
        assert rest[:2] == ["record", "-o"], rest
    elif verb in ("topic", "action"):
        node = next(word for word in rest[1:] if word.startswith("/")).split("/")[1]
        assert node in TABLES, f"no node {node}"
    else:
        assert (verb, rest[0]) in (("service", "call"), ("param", "describe")), words

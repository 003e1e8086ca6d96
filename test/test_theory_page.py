"""docs/theory.md as an index: every name of its tables is called, every test exists, every equation is covered."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from support.theory_calls import calls

import rbd_ros as rbd

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8").split("## Where to find what")[1].split("\n## ")[0]
HEAD = ("equations", "quantity", "where", "source")    # of the first columns of tables of names
LAST = {"K": 92, "P": 30, "M": 58}    # of P the text at hand has legible numbers to 30
TABLES = {"K": 7}
CALLS = calls()


def tables():
    """(paper, cells of the head, rows) of each table."""
    paper, head = "", None
    for line in PAGE.splitlines():
        if line.startswith("### "):
            paper = line[4:].split(":")[0]
        if not line.startswith("|"):
            head = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if head is None:
            head = cells
        elif not set(line) <= set("|-"):
            yield paper, head, cells


ROWS = [(paper, *cells) for paper, head, cells in tables() if head[0] in HEAD]
NOTHING = [(paper, *cells) for paper, head, cells in tables() if head[0] == "by themselves nothing"]
NAMED = {name for row in ROWS for name in re.findall(r"`rbd\.([\w.]+)`", row[3])}


def numbers(cell):
    """Equations and tables of a cell: {1, 2, 3, "T4"} of '1–3, T4'; parts that are no numbers are left out."""
    found = set()
    for part in cell.split(", "):
        if match := re.fullmatch(r"(\d+)(?:–(\d+))?", part):
            found |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
        elif re.fullmatch(r"T\d+", part):
            found.add(part)
    return found


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_a_row_has_names_and_tests_that_exist(row):
    _, where, what, names, tests = row
    assert where and what and re.fullmatch(r"(`rbd\.[\w.]+`(, )?)+", names), row
    assert re.fullmatch(r"(`\w+/test_\w+\.py(::test_\w+)?`(, )?)+", tests), row
    for file, _, function in re.findall(r"`(\w+/test_\w+\.py)(::(test_\w+))?`", tests):
        text = (ROOT / "test" / file).read_text(encoding="utf-8")
        assert not function or f"def {function}(" in text, (file, function)
    for name in re.findall(r"`rbd\.([\w.]+)`", names):
        assert name in CALLS, f"{name}: no call of it in support/theory_calls.py"


@pytest.mark.parametrize("name", CALLS)
def test_a_name_can_be_called(name):
    """With what it documents, and gives finite numbers of the shapes that it documents."""
    assert name in NAMED, f"{name} is in no row of docs/theory.md"
    found = rbd
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found) and found.__doc__
    call, shape = CALLS[name]
    value = call()
    values, shapes = (value, shape) if isinstance(shape, list) else ([value], [shape])
    assert [np.shape(x) for x in values] == [tuple(s) for s in shapes]
    assert all(np.isfinite(np.asarray(x, dtype=float)).all() for x in values)


@pytest.mark.parametrize("paper", LAST)
def test_every_numbered_equation_is_covered(paper):
    every = set(range(1, LAST[paper] + 1)) | {f"T{i}" for i in range(1, TABLES.get(paper, 0) + 1)}
    covered = set().union(*(numbers(row[1]) for row in ROWS if row[0] == paper))
    reasons = [(numbers(row[1]), row[2]) for row in NOTHING if row[0] == paper]
    left = set().union(*(found for found, _ in reasons))
    assert covered | left == every, every - covered - left
    assert not covered & left and all(reason for _, reason in reasons)


def test_every_function_of_dynamics_derivatives_and_elastic_joints_is_in_a_row():
    """What is public there is of a paper, or its row says of what."""
    public = {name for name in rbd.__all__ if callable(getattr(rbd, name)) and name[0].islower()
              and any(layer in getattr(rbd, name).__module__ for layer in (
                  ".core.dynamics.", ".core.derivatives.", "actuation.directional", "actuation.motor_reference"))}
    rows = {"potential_energy", "center_of_mass", "anchored"}    # of other books
    assert public - NAMED - rows == set()

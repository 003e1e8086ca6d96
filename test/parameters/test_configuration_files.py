"""config/<node>.yaml lists every parameter of the node with its default, and every adapter."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from support.tables import TABLES

from rbd_ros.nodes.outputs import ADAPTERS
from rbd_ros.runtime.parameters import validate

CONFIG = Path(__file__).parents[2] / "config"


@pytest.mark.parametrize("node", TABLES)
def test_the_file_lists_every_parameter_with_its_default(node):
    table = TABLES[node]
    values = yaml.safe_load((CONFIG / f"{node}.yaml").read_text())["/**"]["ros__parameters"]
    names = {row.name for row in table}
    assert values.keys() == names, (f"config/{node}.yaml lacks {sorted(names - values.keys())}, and has "
                                    f"{sorted(values.keys() - names)}, which are no parameters")
    assert validate(table, values) == validate(table, {})
    for row in table:    # where one file has a number and the next one a list, ROS takes the number
        assert isinstance(values[row.name], list) == (row.kind in ("numbers", "strings")), row.name


@pytest.mark.parametrize("node", TABLES)
def test_every_row_is_described_once(node):
    assert all(row.description for row in TABLES[node])
    assert len({row.name for row in TABLES[node]}) == len(TABLES[node])


def test_pages_name_every_adapter():
    page = (CONFIG.parent / "docs" / "controllers.md").read_text(encoding="utf-8")
    for adapter in ADAPTERS:
        assert f"\n| `{adapter}` |" in page, f"docs/controllers.md has no row for adapter {adapter}"
        for node in ("feedforward", "flatness", "cartesian", "float_check"):
            text = (CONFIG / f"{node}.yaml").read_text(encoding="utf-8")
            comment = text[text.index("    adapters: "):].partition("\n    forward_command.")[0]
            assert re.search(rf"\b{adapter}\b", comment), f"config/{node}.yaml does not name {adapter} at `adapters`"

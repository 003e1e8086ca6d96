"""The pages on arms, controllers, safety and trouble name parameters, files and log messages that exist."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.tables import TABLES

ROOT = Path(__file__).parents[2]
PAGES = ("arms", "controllers", "safety", "troubleshooting")
NAMES = {row.name for node in ("feedforward", "effort_annotator") for row in TABLES[node]}
PREFIXES = {name.split(".")[0] for name in NAMES if "." in name}
SOURCE = "\n".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text()) for path in (ROOT / "rbd_ros").rglob("*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_parameters_exist(page):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    found = re.findall(r"(?<![\w/.])([a-z_]+\.[a-z_]+)\b(?!\.|\(|/)", text)
    named = [name for name in found if name.split(".")[0] in PREFIXES]
    assert named
    assert not [name for name in named if name not in NAMES]


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(page):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    for link in re.findall(r"\]\(([^)]+)\)", text):
        name, _, heading = link.partition("#")
        target = ROOT / "docs" / (name or f"{page}.md")
        assert target.is_file(), link
        headings = [re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
                    for line in target.read_text().splitlines() if line.startswith("#")]
        assert not heading or heading in headings, link
    for path in re.findall(r"`((?:config|test|rbd_ros|docs)/[\w/]+\.\w+)`", text):
        assert (ROOT / path).is_file(), path


def test_log_messages_exist():
    """What the page of symptoms quotes from the node's own log is what the node says."""
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    for message in ("waiting for robot_description", "gravity is compensated twice", "nobody compensates gravity",
                    "measured effort is no multiple of the model's gravity torque", "opposite sign",
                    "torque is withheld until it is 4", "joint state late by more than two periods",
                    "no limit for the effort of"):
        assert message in text
        parts = ["withheld until it is 4"] if message.startswith("torque is withheld") else [message]
        assert all(part in SOURCE for part in parts), message


@pytest.mark.parametrize("key", ["rate_hz", "latency_p50_us", "latency_p99_us", "deadline_misses", "cycles",
                                 "late_states", "clock_restarts", "position_restarts", "saturated", "rate_limited",
                                 "non_finite_command", "rejected_stamp_backwards", "rejected_implausible",
                                 "rejected_stamp_leap"])
def test_diagnostics_that_pages_name_are_published(key):
    pages = "\n".join((ROOT / "docs" / f"{page}.md").read_text() for page in PAGES)
    assert f"`{key}`" in pages
    from support.arm import arm

    from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
    assert key in FeedforwardController(arm(), FeedforwardSettings.from_values({}, arm())).report()

"""What the documentation of the services shows is what they do, and its client runs."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doc_examples import examples, plain
from harness import ROOT, NodeProcess
from service_messages import KINDS, server

import rbd_ros as rbd

SERVICES, TUTORIAL = ROOT / "docs" / "services.md", ROOT / "docs" / "tutorial_five_bar.md"


@pytest.fixture(scope="module")
def client(tmp_path_factory, private_domain):
    with server(tmp_path_factory.mktemp("documented"), constraints_file="five_bar") as (_, client):
        client.wait_until_active()
        yield client


def compare(actual: Any, shown: Any, where: str, digits: float) -> None:
    """Every shown field, numbers to as many digits as are shown."""
    if isinstance(shown, dict):
        for name, value in shown.items():
            compare(actual[name], value, f"{where}.{name}", digits)
    elif isinstance(shown, list):
        assert len(actual) == len(shown), where
        for i, value in enumerate(shown):
            compare(actual[i], value, f"{where}[{i}]", digits)
    elif isinstance(shown, (int, float)) and not isinstance(shown, bool):
        np.testing.assert_allclose(actual, shown, rtol=0.0, atol=digits, err_msg=where)
    else:
        assert actual == shown, where


@pytest.mark.parametrize("page", [SERVICES, TUTORIAL], ids=lambda page: page.name)
def test_commands_give_the_answers_that_are_shown(client, page):
    found = examples(page)
    assert found
    for service, kind, request, shown in found:
        assert len(shown) > 1, f"{service} without an answer"
        compare(plain(client.call(kind, service, request)), shown, service, 5.1e-5)


def test_every_service_is_documented():
    headings = set(re.findall(r"^## (\w+)$", SERVICES.read_text(), re.MULTILINE))
    assert headings == {name for _, name in KINDS.values()}
    assert {kind for _, kind, _, _ in examples(SERVICES)} == {kind for kind, _ in KINDS.values()}


def test_the_client_of_the_tutorial(client):
    path = os.pathsep.join([str(ROOT), *filter(None, [os.getenv("PYTHONPATH")])])    # of this checkout, if two are here
    result = subprocess.run([sys.executable, "examples/five_bar_services.py"], cwd=ROOT, capture_output=True, text=True,
                            timeout=120, env=os.environ | {"PYTHONPATH": path})
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() and f"```\n{result.stdout.strip()}\n```" in TUTORIAL.read_text()


def test_the_client_says_that_there_is_no_server(monkeypatch):
    text = Path(ROOT / "examples" / "five_bar_services.py").read_text()
    assert "wait_for_service(timeout_sec=60.0)" in text
    monkeypatch.setenv("ROS_DOMAIN_ID", "99")
    result = subprocess.run([sys.executable, "-c", text.replace("timeout_sec=60.0", "timeout_sec=0.1")], cwd=ROOT,
                            capture_output=True, text=True, timeout=60)
    assert result.returncode != 0 and "start node dynamics_server" in result.stderr


def test_the_simulated_five_bar_and_the_server(client, tmp_path):
    process = NodeProcess(tmp_path, "simulator", constraints_file="five_bar", timeout_action="zero",
                          robot_description_file=str(rbd.sample_path("five_bar")))
    try:
        answer = client.spin_until(lambda: (found := client.ask("constrained", {"mode": 1})).success and found,
                                   "answer for the moving robot")
        assert answer.rank == 3 and answer.residual < 1e-6 and np.abs(answer.acceleration).max() > 0.1
        assert process.end() == 0
    finally:
        process.kill()

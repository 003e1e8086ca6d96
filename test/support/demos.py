"""Runs of `rbd demo` with all their processes."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.domains import private_domain_id

ROOT = Path(__file__).parents[2]


def run_demo(name: str, folder: Path) -> tuple[dict[str, Any], str]:
    """The summary that it writes to the folder, and what it prints; it must end well, and all its nodes, too."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")
    pytest.importorskip("rbd_interfaces.msg", reason="rbd_interfaces is not built: scripts/setup does it")
    result = subprocess.run([sys.executable, "-m", "rbd_ros.cli.main", "demo", name, "--output", str(folder)],
                            cwd=ROOT, capture_output=True, text=True, check=False,
                            env=os.environ | {"ROS_DOMAIN_ID": private_domain_id(f"demo {name}"),
                                              "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"})
    assert result.returncode == 0, result.stderr
    assert "ended with code" not in result.stderr
    return json.loads((folder / "summary.json").read_text()), result.stdout

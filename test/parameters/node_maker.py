"""Nodes in this process, without anything that spins or is sent."""
from __future__ import annotations

import gc
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from parameters.case import Values, split
from support.tables import CLASSES


class Nodes:
    """Makes nodes with parameters; the messages that they publish are in `sent` by topic."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.sent: dict[str, list[Any]] = {}

    def make_class(self) -> Any:
        return getattr(importlib.import_module(f"rbd_ros.nodes.{self.program}"), CLASSES[self.program])

    def make(self) -> Any:
        node = self.make_class()()
        create = node.create_publisher

        def create_publisher(*arguments: Any, **options: Any) -> Any:
            publisher = create(*arguments, **options)
            sent = self.sent.setdefault(publisher.topic_name, [])
            publisher.publish = lambda message: sent.append(_message(message, publisher.msg_type))
            return publisher

        node.create_publisher = create_publisher
        return node

    @contextmanager
    def started(self, values: Values) -> Iterator[Any]:
        rclpy = pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")
        pytest.importorskip("rbd_interfaces.msg", reason="rbd_interfaces is not built: scripts/setup does it")
        if self.program == "mujoco_plant":
            pytest.importorskip("mujoco", reason="MuJoCo is not installed: scripts/setup --peers")
        from rbd_ros.nodes.base.rclpy_inside import let_go
        interval = sys.getswitchinterval()
        first, later = split(self.make_class().table, values) if self.program != "lockstep" else (values, None)
        with parameter_file(first) as arguments:
            rclpy.init(args=arguments, domain_id=int(os.environ["ROS_DOMAIN_ID"]))
        node = self.make()
        try:
            node.start()
            for name in set(later or ()) - set(first):
                [result] = node.set_parameters([rclpy.parameter.Parameter(name, value=values[name])])
                assert result.successful, result.reason
            yield node
        finally:
            node.stop()
            node.destroy_node()
            let_go(node)
            rclpy.shutdown()
            gc.unfreeze()    # what a control loop did to this process
            sys.setswitchinterval(interval)


def _message(sent: Any, kind: type) -> Any:
    """What was sent, perhaps as bytes."""
    from rclpy.serialization import deserialize_message
    return deserialize_message(sent, kind) if isinstance(sent, bytes) else sent


@contextmanager
def parameter_file(values: Values) -> Iterator[list[str]]:
    """Arguments of a ROS program."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "parameters.yaml"
        file.write_text(yaml.safe_dump({"/**": {"ros__parameters": dict(values)}}))
        yield ["--ros-args", *(["--params-file", str(file)] if values else [])]

"""A controller's report as diagnostic_msgs/DiagnosticArray."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node


def diagnostic_array(node: Node, text: str, active: bool, report: Mapping[str, Any],
                     notice: str = "") -> DiagnosticArray:
    """One status named after the node. ERROR: configuration failed, or stopped; WARN: inactive, without inputs, or with
    a notice.
    """
    status = DiagnosticStatus(name=node.get_fully_qualified_name(), message=text, level=DiagnosticStatus.OK)
    mode = report.get("mode")
    if active and mode in ("waiting", "stale", "stopped"):
        status.message = f"{text}, {mode}"
    if text.startswith("configuration failed") or (active and mode == "stopped"):
        status.level = DiagnosticStatus.ERROR
    elif not active or mode in ("waiting", "stale") or notice:
        status.level = DiagnosticStatus.WARN
    status.message += f"; {notice}" if notice else ""
    status.values = [KeyValue(key=key, value=f"{value:.6g}" if isinstance(value, float) else str(value))
                     for key, value in report.items()]
    message = DiagnosticArray(status=[status])
    message.header.stamp = node.get_clock().now().to_msg()
    return message

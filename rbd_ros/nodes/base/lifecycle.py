"""Rejection of life-cycle transitions that are impossible in the present state."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode

from .rclpy_inside import guard_service


def refuse_impossible_transitions(node: LifecycleNode) -> None:
    """Answer an impossible transition with `success: false`, as nodes in C++ do.

    rclpy raises an error instead, which ends the process: activating an active torque node would drop the arm.
    """
    guard_service(node, (ChangeState,), lambda change: _refusing(node, change))


def _refusing(node: LifecycleNode, change: Callable[..., Any]) -> Callable[..., Any]:
    def answer(request: Any, response: Any) -> Any:
        try:
            return change(request, response)
        except RuntimeError as error:    # RCLError, which rclpy does not export
            wanted = request.transition.label or f"of id {request.transition.id}"
            node.get_logger().warning(f"refused: the transition {wanted} is not possible now ({error})")
            response.success = False
            return response

    return answer

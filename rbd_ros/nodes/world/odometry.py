"""Conversion of nav_msgs/Odometry to plain values, for nodes with parameter `odometry`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...runtime.world.odometry import Odometry
from ..base.conversions import nanoseconds
from ..base.model_node import BEST_EFFORT, ModelNode
from ..base.optional import interface_type


def subscribe_odometry(node: ModelNode, topic: str, take: Callable[[Odometry], Any]) -> Any:
    """Call `take` with messages of the topic, until cleanup; returns the subscription. Raises `RbdError` if package
    nav_msgs is missing.
    """
    kind = interface_type("parameter 'odometry' reads", "nav_msgs", "msg", "Odometry")
    return node.subscribe(kind, topic, lambda message: take(odometry(message)), BEST_EFFORT)


def odometry(message: Any) -> Odometry:
    """Plain values of a nav_msgs/Odometry, whose twist is that of the child frame in its own axes, linear part first.
    """
    position, orientation = message.pose.pose.position, message.pose.pose.orientation
    angular, linear = message.twist.twist.angular, message.twist.twist.linear
    return Odometry(nanoseconds(message.header.stamp), message.header.frame_id, message.child_frame_id,
                    (position.x, position.y, position.z), (orientation.x, orientation.y, orientation.z, orientation.w),
                    (angular.x, angular.y, angular.z, linear.x, linear.y, linear.z))

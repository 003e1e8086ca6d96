"""Service ~/adopt_payload: an estimated load becomes the node's parameters payload.*; never by itself."""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from rclpy.parameter import Parameter as RosParameter
from std_srvs.srv import Trigger

from rbd_interfaces.msg import Payload

from ...core.errors import RbdError
from ...core.model.payload import payload
from ...runtime.estimation.payload_adoption import payload_values
from ...runtime.parameters import Parameter
from ..service_conversions import inertia
from .answering import answered
from .model_node import RELIABLE, ModelNode

OLDEST = 3.0    # s of an estimate
TOPIC = Parameter("payload.topic", "string", "", "Estimates of the load, which service ~/adopt_payload takes over: "
                  "~/payload of node observer, for example /observer/payload; empty: there is no such service.",
                  read_only=True)


def serve_adoption(node: ModelNode, estimate: Callable[[], tuple[Any, ...]]) -> None:
    """Offer the service until cleanup. estimate: arguments of `payload_values`; raises `RbdError` without any."""
    counts: Counter[str] = Counter()

    def adopt(request: Trigger.Request, response: Trigger.Response) -> Any:
        def answer() -> None:
            assert node.model is not None    # from configuration to cleanup, as this service
            mass, body = (node.get_parameter(f"payload.{name}").value for name in ("mass", "body"))
            with node.lock:
                values = payload_values(*estimate(), heaviest=node.model.total_mass, carried=body if mass else "")
            result = node.set_parameters_atomically([RosParameter(name, value=value) for name, value in values.items()])
            if not result.successful:
                raise RbdError(result.reason)
            response.success = True
            response.message = f"payload on '{values['payload.body']}': {values['payload.mass']:.4g} kg"
            node.get_logger().info(response.message)

        return answered(node.get_logger(), counts, "adopt_payload", answer, response)

    node.serve(Trigger, "~/adopt_payload", adopt)


def adopt_from_topic(node: ModelNode, topic: str) -> None:
    """Offer the service, with the estimates on this topic."""
    last: list[tuple[float, Payload]] = []

    def hear(message: Payload) -> None:
        last[:] = [(time.monotonic(), message)]

    def estimate() -> tuple[Any, ...]:
        if not last or time.monotonic() - last[0][0] > OLDEST:
            raise RbdError(f"no estimate on {node.resolve_topic_name(topic)} within the last {OLDEST:g} s")
        message = last[0][1]
        return (message.header.frame_id, payload(*inertia(message.inertia)), message.half_width, message.observed,
                message.touching)

    node.subscribe(Payload, topic, hear, RELIABLE)
    serve_adoption(node, estimate)

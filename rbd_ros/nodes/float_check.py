"""Node `float_check`: holds poses, releases one joint at a time, and judges how far it sinks or climbs under the
model's gravity torque (`runtime.control.float_check`).

Topics: those of `torque_node`, and
  ~/result              std_msgs/String, out, latched: the report of the last test as JSON: passed, text, advice, gains,
                        load, and per pose and joint drift, prediction and what was left (rad or m, N m or N, s)
Services:
  ~/start               std_srvs/Trigger: begin the test, once the arm is held
Keys of /diagnostics, in addition: float_phase (what the test does), float_verdict (of the last one).
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from std_msgs.msg import String
from std_srvs.srv import Trigger

from ..core.model.robot_model import RobotModel
from ..runtime.control.float_check import FLOAT_TABLE, FloatCheck, FloatSettings
from ..runtime.control.torque_settings import TorqueSettings
from ..runtime.safety import Command
from .base.model_node import LATCHED
from .base.spin import run
from .base.torque_node import TORQUE_NODE_TABLE, TorqueNode


class FloatCheckNode(TorqueNode):
    """Offers the test, and publishes its report."""

    controller: FloatCheck
    logic, make_settings = FLOAT_TABLE, staticmethod(FloatSettings.from_values)
    table = (*TORQUE_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("float_check")
        self._results: Any = None

    def make_controller(self, model: RobotModel, settings: TorqueSettings) -> FloatCheck:
        assert isinstance(settings, FloatSettings)
        return FloatCheck(model, settings)

    def set_up(self, values: Mapping[str, Any], model: RobotModel) -> None:
        super().set_up(values, model)
        results = self._results = self.create_publisher(String, "~/result", LATCHED)
        self.undo.append(lambda: self.destroy_publisher(results))
        self.serve(Trigger, "~/start", self._on_start)

    def tear_down(self) -> None:
        self._results = None
        super().tear_down()

    def _on_start(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self.lock:
            problem = self.controller.start() if self.active else "the node is not active"
        response.success, response.message = not problem, problem or "the float test begins; its result is on ~/result"
        self.get_logger().info(response.message if response.success else f"float test refused: {problem}")
        return response

    def answered(self, command: Command, received_ns: int) -> None:
        super().answered(command, received_ns)
        self._tell_report()

    def look_around(self, now: float) -> str:
        with self.lock:
            self._tell_report()    # of a test that has ended because joint states ceased
        return super().look_around(now)

    def _tell_report(self) -> None:
        report = None if self.controller is None else self.controller.take_report()
        if report is None:
            return
        self._results.publish(String(data=report.as_json()))
        if report.passed:
            self.get_logger().info(report.text)
        else:
            self.get_logger().warning(report.text)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `float_check`."""
    run(FloatCheckNode, arguments)


if __name__ == "__main__":
    main()

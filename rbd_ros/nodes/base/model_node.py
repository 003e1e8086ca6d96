"""Base class of nodes with a robot model: parameters, robot description, configuration, diagnostics."""
from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from std_msgs.msg import String

from ...core.compiled.entry import is_cached
from ...core.compiled.kernel import COMPILED
from ...core.errors import RbdError
from ...core.model.files.packages import package_folders
from ...core.model.files.xml_tree import read_text
from ...core.model.robot_model import RobotModel
from ...runtime.inputs.rejections import Rejected, check_size
from ...runtime.inputs.robot_description import LONGEST
from ...runtime.parameters import Table, select, validate
from ...runtime.robot import load_model
from ..world import mounting
from . import parameters
from .conversions import read_description, reading
from .diagnostics import diagnostic_array
from .lifecycle import refuse_impossible_transitions
from .rclpy_inside import bounded
from .seldom import BoundedLog, Seldom
from .surroundings import Reminder, silence

BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=1)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
WAITING = "waiting for robot_description"


class ModelNode(LifecycleNode):
    """Base class. A subclass has a `table` of all parameters, including those of its `logic`, of which `make_settings`
    makes settings, and implements `set_up`, `tear_down` and the other methods of the first section.
    """

    table: Table
    logic: Table
    make_settings: Callable[[dict[str, Any], RobotModel], Any]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._log = BoundedLog(super().get_logger())
        refuse_impossible_transitions(self)
        parameters.declare(self, self.table)
        parameters.on_change(self, self.table, self._check_parameters, self._apply_parameters)
        self.model: RobotModel | None = None    # set from configuration to cleanup
        self.active = False
        self.status = WAITING
        self.most_bytes = 0                     # largest size of a message; set at configuration
        self.lock = threading.RLock()           # guards the logic, held by every callback that uses it
        self.steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.seldom = Seldom(self.get_logger())
        self.undo: list[Callable[[], Any]] = []    # callbacks that undo the configuration, run in reverse order
        self._description = ""      # last description on the topic
        self._loaded = ""           # description of the present model
        self._given = False         # whether the description comes from parameters
        self.ending: Callable[[], bool] = lambda: False    # whether the process is about to end
        self._ended = False                        # by transition `cleanup` or `shutdown`: no further autostart
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._descriptions = self.listen(String, "robot_description", self._on_description, LATCHED, LONGEST,
                                         read_description)
        self._undescribed, self._unmounted = (Reminder(self.get_logger().warning) for _ in range(2))
        self._mounting = mounting.make_mounting(self)
        self.create_timer(1.0, self._publish_diagnostics, clock=self.steady)

    def get_logger(self) -> Any:
        return getattr(self, "_log", None) or super().get_logger()    # called by rclpy during construction

    # ---- for subclasses

    def settings(self, values: Mapping[str, Any], model: RobotModel) -> Any:
        """The settings of the logic, from all parameters of the node; an `RbdError` if they are inconsistent."""
        return self.make_settings(select(self.logic, values), model)

    def load(self, values: Mapping[str, Any], description: str) -> tuple[RobotModel, list[str]]:
        """The model of a URDF text or path, and warnings."""
        return load_model(values, description)

    def set_up(self, values: Mapping[str, Any], model: RobotModel) -> None:
        """Create logic and entities from validated parameters; an `RbdError` makes the configuration fail."""

    def tear_down(self) -> None:
        """Release the logic, after the entities were destroyed."""

    def apply(self, settings: Any) -> None:
        """Use changed settings; called under the lock."""

    def report(self) -> Mapping[str, Any]:
        """Values for /diagnostics."""
        return {}

    def look_around(self, now: float) -> str:
        """Notices about other nodes, for /diagnostics; called once per second, at `now` (s, steady)."""
        return ""

    def on_defect(self, trace: str) -> None:
        """Handle an exception in a subscription's callback; by default it ends the process."""
        raise

    def on_rejected(self, error: Rejected) -> None:
        """Count and log a too large or malformed message; called under the lock."""
        self.seldom.warning("rejected", f"input rejected: {error}")

    def listen(self, kind: type, topic: str, callback: Callable[[Any], None], qos: QoSProfile, most: int,
               read: Callable[[bytes], Any] | None = None, parameter: str = "", **options: Any) -> Any:
        """A subscription that rejects messages larger than `most` bytes (the value of `parameter`) before decoding.
        read: decodes bytes to the argument of `callback`; raises `Rejected`.
        """
        read = read or reading(kind)
        name = self.resolve_topic_name(topic)

        def received(data: Any, info: Any) -> None:
            try:
                check_size(name, len(data), most, parameter)
                message = read(data)
            except Rejected as error:
                with self.lock:
                    self.on_rejected(error)
            else:
                callback(message)

        return bounded(self, kind, topic, received, qos, most, **options)

    def subscribe(self, kind: type, topic: str, callback: Callable[[Any], None], qos: QoSProfile,
                  **options: Any) -> Any:
        """A subscription until cleanup, called under the lock, with QoS overridable by parameters. options: of
        `listen`.
        """
        def locked(message: Any) -> None:
            with self.lock:
                self.guarded(lambda: callback(message))

        return self.subscribe_unlocked(kind, topic, locked, qos, **options)

    def subscribe_unlocked(self, kind: type, topic: str, callback: Callable[[Any], None], qos: QoSProfile,
                           most: int = 0, parameter: str = "input_limits.bytes", **options: Any) -> Any:
        """`subscribe` without the lock."""
        subscription = self.listen(kind, topic, callback, qos, most or self.most_bytes, parameter=parameter,
                           qos_overriding_options=QoSOverridingOptions.with_default_policies(), **options)
        self.undo.append(lambda: self.destroy_subscription(subscription))
        return subscription

    def guarded(self, call: Callable[[], None]) -> None:
        """Call `call`, and treat exceptions as defects."""
        try:
            call()
        except Exception:
            self.on_defect(traceback.format_exc())

    def serve(self, kind: type, name: str, callback: Callable[..., Any]) -> None:
        """Offer a service until cleanup."""
        service = self.create_service(kind, name, callback)
        self.undo.append(lambda: self.destroy_service(service))

    # ---- start and end

    def start(self) -> None:
        """Configure and activate if parameter `autostart` is set and there is a robot description."""
        values = parameters.read(self, self.table)
        if values["autostart"] is not True:
            self.status = "not configured"
        elif self._mounting is not None and not self._mounting.received and not self._mounting.problem:
            self.status = mounting.WAITING
        elif values["robot_description"] or values["robot_description_file"] or self._description:
            if self.trigger_configure() == TransitionCallbackReturn.SUCCESS and not self.ending():
                self.trigger_activate()
        else:
            self.get_logger().info(f"waiting for a robot description on {self.resolve_topic_name('robot_description')}")

    def stop(self) -> None:
        """Release everything before the process ends."""
        self._clean_up()

    def _on_description(self, text: str) -> None:
        if self.model is not None and text not in (self._description, self._loaded):
            self.get_logger().warning(
                "the robot description on the topic differs, but the one from the parameters is used"
                if self._given else "a new robot description takes effect at the next configuration")
        self._description = text
        self._start_late()

    def mounting_changed(self) -> None:
        """Retry a configuration that waits for a static transform."""
        self._start_late()

    def _start_late(self) -> None:
        if self.model is None and not self._ended and self.get_parameter("autostart").value is True:
            self.start()

    # ---- life cycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            values = validate(self.table, parameters.read(self, self.table))
            with package_folders(values["package_folders"]):
                self._configure(values)
        except RbdError as error:
            self._clean_up()
            self.status = f"configuration failed: {error}"
            self.get_logger().error(self.status)
            return TransitionCallbackReturn.FAILURE
        except Exception:    # rclpy would discard it
            self.get_logger().error(traceback.format_exc())
            raise
        return TransitionCallbackReturn.SUCCESS

    def _configure(self, values: Mapping[str, Any]) -> None:
        log = self.get_logger()
        description = values["robot_description"] or values["robot_description_file"] or self._description
        if not description:
            raise RbdError("no robot description: nothing came on topic "
                           f"{self.resolve_topic_name('robot_description')}, and neither parameter 'robot_description' "
                           "nor 'robot_description_file' is set")
        log.info("loading the robot" if not COMPILED or is_cached() else
                 "loading the robot; compiling kernels, once, which takes up to a few minutes (`rbd compile` does it "
                 "in advance)")
        begin = time.monotonic()
        model, notes = self.load(values, description)
        for note in notes:
            log.warning(note)
        if self._mounting is not None:
            model = self._mounting.applied(model, values)
        self.most_bytes = int(values["input_limits.bytes"])
        self.set_up(values, model)
        text, _ = read_text(description)
        self._loaded = text if isinstance(text, str) else text.decode(errors="replace")
        self._given = bool(values["robot_description"] or values["robot_description_file"])
        self.model, self.status = model, "configured"
        log.info(f"'{model.name}' ready in {time.monotonic() - begin:.1f} s; joints: "
                 f"{', '.join(values['joints'] or model.joint_names)}")

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.active, self.status = True, "active"
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.active, self.status = False, "inactive"
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._clean_up()
        self.status, self._ended = "not configured", True
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.stop()
        self.status, self._ended = "shut down", True
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.stop()
        self.status = "configuration failed: an error in the program, see the log"
        return TransitionCallbackReturn.SUCCESS

    def _clean_up(self) -> None:
        while self.undo:
            self.undo.pop()()
        if self._mounting is not None:
            self._mounting.forget()
        self.tear_down()
        self.model, self.active = None, False

    # ---- parameters and diagnostics

    def _check_parameters(self, values: Mapping[str, Any]) -> None:
        checked = validate(self.table, values)
        if self.model is not None:
            self.settings(checked, self.model)

    def _apply_parameters(self) -> None:
        if self.model is not None:
            settings = self.settings(validate(self.table, parameters.read(self, self.table)), self.model)
            with self.lock:
                self.apply(settings)

    def _publish_diagnostics(self) -> None:
        now = time.monotonic()
        self._undescribed.tell(
            f"still no robot description: {silence(self, self._descriptions.topic_name)}" if self.status == WAITING
            else "", "expected a URDF as std_msgs/String, transient local, as robot_state_publisher publishes it, in "
            "the same namespace; or set parameter 'robot_description_file'", now)
        notice = self.look_around(now)
        if self._mounting is not None:
            self._unmounted.tell(f"{mounting.WAITING}: {silence(self, mounting.TOPIC)}" if self.status ==
                                 mounting.WAITING else "", "expected tf2_msgs/TFMessage, transient local, from "
                                 f"'{self._mounting.world}' to the root link; or set parameter 'mounting.rpy'", now)
        with self.lock:
            report = {} if self.model is None else self.report()
        self._diagnostics.publish(diagnostic_array(self, self.status, self.active, report, notice))

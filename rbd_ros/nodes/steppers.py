"""Steppers of simulations: one class per kind of service, whose package is imported if selected."""
from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node

from ..core.errors import RbdError

Done = Callable[[bool, str], None]    # whether the request was accepted, and the response's message


class Stepper(ABC):
    """Requests steps of a paused simulation; answers are asynchronous, by `done`. group: of the clients."""

    package = ""                               # of the service definitions
    services: ClassVar[dict[str, str]] = {}    # type → name, with {world} and {plant}

    def __init__(self, node: Node, names: dict[str, str], group: CallbackGroup | None = None) -> None:
        try:
            module = importlib.import_module(f"{self.package}.srv")
        except ImportError as error:
            raise RbdError(f"parameter 'stepper' needs the package {self.package}, which cannot be imported ({error}): "
                           "install it, or build it in your workspace") from None
        self._node = node
        self.types = {kind: getattr(module, kind) for kind in self.services}
        self.clients = {kind: node.create_client(self.types[kind], name.format(**names), callback_group=group)
                        for kind, name in self.services.items()}

    @property
    def ready(self) -> bool:
        """Whether the simulation's services are available."""
        return all(client.service_is_ready() for client in self.clients.values())

    def show(self, done: Done) -> None:
        """Make the simulation publish a state; by default by a step."""
        self.step(1, done)

    @abstractmethod
    def step(self, steps: int, done: Done) -> None:
        """Advance the simulation."""

    def destroy(self) -> None:
        for client in self.clients.values():
            self._node.destroy_client(client)

    def _call(self, kind: str, request: Any, read: Callable[[Any], tuple[bool, str]], done: Done) -> None:
        future = self.clients[kind].call_async(request)
        future.add_done_callback(lambda future: None if future.cancelled() else done(*read(future.result())))


class RbdStepper(Stepper):
    """Stepper of nodes `simulator` and `mujoco_plant`, which must be paused; they start in their initial state."""

    package = "rbd_interfaces"
    services: ClassVar[dict[str, str]] = {"Step": "{plant}/step", "Reset": "{plant}/reset"}

    def show(self, done: Done) -> None:
        self._call("Reset", self.types["Reset"].Request(), _success, done)

    def step(self, steps: int, done: Done) -> None:
        self._call("Step", self.types["Step"].Request(steps=steps), _success, done)


class GazeboStepper(Stepper):
    """Stepper of Gazebo through ros_gz_bridge. Gazebo answers before the steps are made."""

    package = "ros_gz_interfaces"
    services: ClassVar[dict[str, str]] = {"ControlWorld": "/world/{world}/control"}

    def step(self, steps: int, done: Done) -> None:
        request = self.types["ControlWorld"].Request()
        request.world_control.pause = True
        request.world_control.multi_step = steps
        self._call("ControlWorld", request,
                   lambda answer: (answer.success, "" if answer.success else "Gazebo refused to step"), done)


class SimulationInterfacesStepper(Stepper):
    """Stepper of simulators with the simulation_interfaces standard, which answer after the steps."""

    package = "simulation_interfaces"
    services: ClassVar[dict[str, str]] = {"StepSimulation": "{plant}/step_simulation"}    # plant: /gzserver for Gazebo

    def step(self, steps: int, done: Done) -> None:
        request = self.types["StepSimulation"].Request(steps=steps)
        self._call("StepSimulation", request, lambda answer: (
            answer.result.result == answer.result.RESULT_OK, answer.result.error_message), done)


def make_stepper(kind: str, node: Node, names: dict[str, str], group: CallbackGroup | None = None) -> Stepper | None:
    """The stepper of parameter `stepper`, None for `none`; names: `world` and `plant`, for its services."""
    kinds: dict[str, Callable[..., Stepper]] = {
        "rbd": RbdStepper, "gazebo": GazeboStepper, "simulation_interfaces": SimulationInterfacesStepper}
    return kinds[kind](node, names, group) if kind in kinds else None


def _success(answer: Any) -> tuple[bool, str]:
    return answer.success, answer.message

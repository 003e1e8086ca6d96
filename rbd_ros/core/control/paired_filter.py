"""Safety filters for two outputs of one robot that go through the same modes: joints and motors."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .inputs import all_finite
from .safety import SafetyFilter, SafetySettings

Array = NDArray[np.float64]


class PairedFilter(SafetyFilter):
    """The filter of the joints, and `motors`, that of the motors. `motor_command` has to be set before `update`; where
    it or the command of the joints is None or not finite, both outputs are safe.
    """

    def __init__(self, settings: SafetySettings, safe_effort: Callable[[bool], Array], motor_settings: SafetySettings,
                 safe_motors: Callable[[bool], Array]) -> None:
        super().__init__(settings, safe_effort)
        self.motors = SafetyFilter(motor_settings, safe_motors)
        self.motor_command: Array | None = None

    def activate(self, now: float) -> None:
        super().activate(now)
        self.motors.activate(now)

    def deactivate(self) -> None:
        super().deactivate()
        self.motors.deactivate()

    @property
    def finished(self) -> bool:
        return super().finished and self.motors.finished

    @property
    def settled(self) -> bool:
        return super().settled and self.motors.settled

    def finish(self, now: float) -> Array | None:
        self.motors.finish(now)
        return super().finish(now)

    def stop(self) -> None:
        super().stop()
        self.motors.stop()

    def reset(self) -> None:
        super().reset()
        self.motors.reset()

    def soften(self) -> None:
        super().soften()
        self.motors.soften()

    def restart(self) -> None:
        super().restart()
        self.motors.restart()

    def update(self, now: float, command: Array | None) -> Array:
        if command is None or self.motor_command is None:
            command = self.motor_command = None
        elif not (all_finite(command) and all_finite(self.motor_command)):
            self.counts["non_finite_command"] += 1
            command = self.motor_command = None
        self.motors.update(now, self.motor_command)
        return super().update(now, command)

    def watchdog(self, now: float) -> Array | None:
        self.motors.watchdog(now)
        return super().watchdog(now)

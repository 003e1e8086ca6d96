"""Plot of the last seconds: torques or positions of all joints, or of one."""
from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ..core.model.inertia import Array
from ..core.model.robot_model import RobotModel
from .bars import places_of, shown_coordinates

SPAN = 20.0      # s
PERIOD = 0.2     # s between pictures
ALL = "all joints"
QUANTITIES = ("nothing", "torque", "position (rad, m)", "position (°, m)")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8f98")


class Plot:
    """Plot with controls in the current container of `server.gui`. passive: coordinates without a motor."""

    def __init__(self, server: Any, model: RobotModel, passive: Collection[str],
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._server, self._model, self._clock = server, model, clock
        self._samples: deque[tuple[float, Array, Array, Array]] = deque(maxlen=int(60.0 * SPAN))
        self._driven, self._placed = shown_coordinates(model, passive), list(places_of(model))
        gui, names = server.gui, model.velocity_names
        self._quantity = gui.add_dropdown("plot over time", QUANTITIES)
        self._joint = gui.add_dropdown("of", (ALL, *names), visible=False)
        self._chart = gui.add_uplot((np.zeros(1), np.zeros(1)), ({}, {}), scales={"x": {"time": False}}, height=240,
                                    visible=False)
        self._drawn = -np.inf
        for control in (self._quantity, self._joint):
            control.on_update(lambda _: self.draw())

    def add(self, q: Array, effort: Array, second: Array | None) -> None:
        """Add the shown values: q (nq,), effort and second (nv,)."""
        now = self._clock()
        self._samples.append((now, q, effort, np.full(self._model.nv, np.nan) if second is None else second))
        if self._chart.visible and now - self._drawn > PERIOD:
            self.draw()

    def curves(self) -> dict[str, Array]:
        """Curves by name: "s" (time relative to now), and the chosen ones."""
        samples = [sample for sample in list(self._samples) if self._samples[-1][0] - sample[0] <= SPAN]
        t, q, effort, second = (np.array(column) for column in zip(*samples, strict=True))
        names, chosen = self._model.velocity_names, self._joint.value
        indices = [i for i, name in enumerate(names) if chosen in (ALL, name)]
        curves = {"s": t - t[-1]}
        if self._quantity.value == "torque":
            curves |= {names[i]: effort[:, i] for i in indices if i in self._driven or chosen != ALL}
            if chosen != ALL:
                curves[f"{chosen} (line)"] = second[:, indices[0]]
        else:
            degrees = self._quantity.value == QUANTITIES[3]
            curves |= {place.name: q[:, place.index] * (180.0 / np.pi if degrees and place.turns else 1.0)
                       for place in self._placed if chosen in (ALL, place.name)}
        return curves

    def draw(self) -> None:
        """Draw the plot on the page."""
        shown = self._quantity.value != "nothing" and len(self._samples) > 0
        curves = self.curves() if shown else {}
        with self._server.atomic():
            self._joint.visible = self._quantity.value != "nothing"
            if len(curves) > 1:
                self._chart.series = tuple(
                    {"label": name} if i == 0 else {"label": name, "stroke": COLOURS[(i - 1) % len(COLOURS)],
                                                    "width": 2} for i, name in enumerate(curves))
                self._chart.data = tuple(curves.values())
            self._chart.visible = len(curves) > 1
        self._drawn = self._clock()

"""External wrenches: bounded, rate-limited, and released when messages cease.

The wrench on a body moves along a straight line towards the newest accepted one, or to zero after `timeout` s without
a message. With F and M the bounds of the force f and the moment m of each body, and changes Δ per second:

    |f| ≤ F,   |m| ≤ M,   |Δf| ≤ rate F,   |Δm| ≤ rate M

The state is the present wrench and the time of its last update, so the wrench cannot jump for any timing of messages.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.model.robot_model import RobotModel
from ..parameters import parameter
from .joint_map import total_wrenches
from .rejections import TAKEN, Rejected, Rejections, Verdict

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class WrenchSettings:
    """Validated parameters in s, N, N m and 1/s."""

    timeout: float = parameter(0.1, "Age at which external wrenches expire, s; 0: never.", name="wrench_timeout",
                               lower=0.0, upper=1e6)
    force: float = parameter(500.0, "External force on a body above which a message is rejected, N.",
                             name="wrench_limits.force", lower=1e-6, upper=1e9)
    moment: float = parameter(100.0, "External moment on a body above which a message is rejected, N m.",
                              name="wrench_limits.moment", lower=1e-6, upper=1e9)
    rate: float = parameter(10.0, "Fastest change of the force and moment that are used, in their limits per second.",
                            name="wrench_limits.rate", lower=1e-3)


class WrenchInput:
    """The wrenches on the bodies of a model, [moment, force] in their link frames; time is an argument (s, steady)."""

    def __init__(self, model: RobotModel, rejections: Rejections, settings: WrenchSettings) -> None:
        self._model, self._rejections, self._settings = model, rejections, settings
        self._none = np.zeros((len(model.body_names), 6))
        self.clear()

    def clear(self) -> None:
        """Set all wrenches to zero at once."""
        self._used = self._wanted = self._none    # never changed in place
        self._moved = self._received = 0.0        # times of the last update and reception

    def allow(self, settings: WrenchSettings) -> None:
        """Change the limits. Lower bounds act at once."""
        self._settings = settings
        self._used, self._wanted = (
            w if w is self._none else w / np.maximum(self._sizes(w).max(axis=1, keepdims=True), 1.0)
            for w in (self._used, self._wanted))

    @property
    def any(self) -> bool:
        """Whether there are wrenches, fresh or stale."""
        return self._used is not self._none or self._wanted is not self._none

    def accept(self, now: float, wrenches: Sequence[tuple[str, ArrayLike]]) -> Verdict:
        """Take all wrenches: pairs (body, [moment, force] on the body)."""
        try:
            total = total_wrenches(self._model, wrenches)
            if total is not None:
                self._judge(total)
        except Rejected as error:
            return self._rejections.add(error)
        if not self.any:
            self._moved = now
        self._wanted, self._received = self._none if total is None else total, now
        return TAKEN

    def at(self, now: float) -> Array | None:
        """The wrenches in use (bodies, 6), None without any. Times of calls must not decrease."""
        if not self.any:
            return None
        timeout, rate = self._settings.timeout, self._settings.rate
        if 0.0 < timeout < now - self._received:
            self._wanted = self._none
        way, farthest = self._wanted - self._used, np.inf if rate == np.inf else rate * max(now - self._moved, 0.0)
        self._moved = now
        size = self._sizes(way).max(axis=1, keepdims=True)
        if (size <= farthest).all():
            self._used = self._wanted
        else:
            self._used = self._used + np.minimum(1.0, farthest / np.where(size > 0.0, size, np.inf)) * way
        return self._used if self.any else None

    def _judge(self, total: Array) -> None:
        sizes = self._sizes(total)
        if sizes.max() <= 1.0:
            return
        i, j = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
        label, unit, bound = (("moment", "N m", self._settings.moment), ("force", "N", self._settings.force))[j]
        raise Rejected("excessive_wrench", f"external {label} of {sizes[i, j] * bound:.4g} {unit} on body "
                       f"'{self._model.body_names[i]}', at most {bound:g}")

    def _sizes(self, wrenches: Array) -> Array:
        """Norms of moments and forces (bodies, 2), relative to their bounds."""
        norms = np.linalg.norm(wrenches.reshape(-1, 2, 3), axis=2)
        sizes: Array = norms / (self._settings.moment, self._settings.force)
        return sizes

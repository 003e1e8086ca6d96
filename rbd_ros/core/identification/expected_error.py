"""Residual of an identified model by speed, and the expected error of feed-forward on another motion."""
from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .linear_fit import Rows
from .regressor_columns import columns_of, full_regressor, parameter_names
from ..dynamics.friction import Friction
from ..model.robot_model import RobotModel

Array = NDArray[np.float64]
SHARES = (0.05, 0.25, 0.6)    # of the largest recorded speed: bounds of very slow, slow, medium and fast
BINS = ("very slow", "slow", "medium", "fast")
FEWEST = 10                   # samples of a bin


@dataclass(frozen=True, eq=False)
class ResidualBySpeed:
    """bounds (nv, 3): between the four bins of `BINS`, rad/s or m/s; rms (nv, 4): of the residual, N m or N, NaN with
    fewer than ten samples; fastest (nv,): the largest speed.
    """

    bounds: Array
    rms: Array
    fastest: Array

    def at(self, v: Array) -> Array:
        """Root mean square of the residual at speeds (N, nv); empty bins have the largest value of the others."""
        usual = np.array([np.nanmax(row) if np.isfinite(row).any() else np.nan for row in self.rms])
        filled = np.where(np.isfinite(self.rms), self.rms, usual[:, None])
        columns = [row[np.searchsorted(bounds, np.abs(x))] for row, bounds, x in zip(filled, self.bounds, v.T,
                                                                                  strict=True)]
        return np.column_stack(columns)


def residual_by_speed(model: RobotModel, rows: Rows, predicted: Array) -> ResidualBySpeed:
    """Residual by speed of measured minus predicted efforts (N, nv)."""
    v = np.abs(np.stack([rows.X[:, j, columns_of(model, "viscous").start + j] for j in range(model.nv)], axis=1))
    v = np.where(rows.measured, v, 0.0)
    fastest = v.max(axis=0)
    bounds = fastest[:, None] * np.array(SHARES)
    rms = np.full((model.nv, len(BINS)), np.nan)
    for j in range(model.nv):
        bins = np.searchsorted(bounds[j], v[:, j])
        for k in range(len(BINS)):
            chosen = rows.measured[:, j] & (bins == k)
            if chosen.sum() >= FEWEST:
                rms[j, k] = np.sqrt(np.mean((rows.y[chosen, j] - predicted[chosen, j]) ** 2))
    return ResidualBySpeed(bounds, rms, fastest)


@dataclass(frozen=True, eq=False)
class ExpectedError:
    """Standard deviations (N, nv) of feed-forward efforts, N m or N: residual (unexplained by any parameters) and
    parameters (their uncertainty); outside (nv,): whether the joint is faster than in the judged motion.
    """

    residual: Array
    parameters: Array
    outside: NDArray[np.bool_]

    @property
    def total(self) -> Array:
        return np.hypot(self.residual, self.parameters)


@dataclass(frozen=True, eq=False)
class ParameterErrors:
    """Errors of the named parameters of a model: their covariance (p, p), infinite on the diagonal if undetermined."""

    model: RobotModel
    names: tuple[str, ...]
    covariance: Array
    smoothing: float

    @property
    def of_joints(self) -> ParameterErrors:
        """Those of parameters of the model and its friction: without motors and Stribeck's effect."""
        return self._chosen(parameter_names(self.model))

    @property
    def of_model(self) -> ParameterErrors:
        """As `of_joints`, without constant offsets."""
        names, offsets = parameter_names(self.model), columns_of(self.model, "offset")
        return self._chosen([*names[:offsets.start], *names[offsets.stop:]])

    def _chosen(self, names: Collection[str]) -> ParameterErrors:
        known = frozenset(names)
        index = [i for i, name in enumerate(self.names) if name in known]
        return ParameterErrors(self.model, tuple(self.names[i] for i in index), self.covariance[np.ix_(index, index)],
                               self.smoothing)

    def rows(self, q: Array, v: Array, a: Array) -> Array:
        """Derivatives (N, nv, p) of efforts by the parameters, which are those `of_joints`."""
        columns = {name: k for k, name in enumerate(parameter_names(self.model))}
        slip = Friction(coulomb=1.0, smoothing=self.smoothing).effort(v)
        return np.asarray(full_regressor(self.model, q, v, a, slip)[..., [columns[name] for name in self.names]])

    def deviation(self, q: Array, v: Array, a: Array) -> Array:
        """Standard deviation (N, nv) of efforts; infinite for efforts that depend on an undetermined parameter."""
        X, part = self.rows(q, v, a), self.covariance
        lost = ~np.isfinite(np.diag(part))
        part = np.where(lost[:, None] | lost, 0.0, part)
        deviation = np.sqrt(np.maximum(np.einsum("njp,pq,njq->nj", X, part, X), 0.0))
        scale = np.abs(X).max(axis=(0, 1), initial=0.0)
        blind = (np.abs(X[..., lost]) > 1e-6 * np.maximum(scale[lost], 1e-300)).any(axis=-1)
        return np.where(blind, np.inf, deviation)

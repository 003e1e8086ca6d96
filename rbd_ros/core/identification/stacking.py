"""A recording as equations that are linear in θ, `y = X θ`, with the same filter on both sides."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model.robot_model import RobotModel
from .closed_chain import ClosedChain
from .linear_fit import Rows
from .recorded.signals import Piece, Prepared, decimation, low_pass, noise_correlation, shifted
from .regressor_columns import columns_of, full_regressor
from .stribeck import StribeckTerms

Array = NDArray[np.float64]
FEWEST = 10    # rows that are worth judging by


@dataclass(frozen=True, eq=False)
class Equations:
    """The rows of a prepared recording, at few samples per cycle of the cutoff frequency.

    gain (nv,): factors of the recorded efforts. chain: of a robot with loops, whose rows are those of its independent
    joints. stribeck: columns of θ behind those of `regressor_columns`, with the velocities that they belong to.
    """

    model: RobotModel
    prepared: Prepared
    gain: Array
    chain: ClosedChain | None = None
    stribeck: StribeckTerms | None = None

    def rows(self) -> Rows:
        """X, y and what belongs to them."""
        measured = np.ones(self.model.nv, dtype=bool)
        measured[list(self.prepared.unmeasured)] = False
        if self.chain is not None:
            measured &= self.chain.judged
        X = np.concatenate([self._regressor(piece) for piece in self.prepared.pieces])
        y = [self._efforts(piece) for piece in self.prepared.pieces]
        return Rows(X, np.concatenate(y), tuple(len(part) for part in y), measured,
                    noise_correlation(self.prepared, self.prepared.pieces[0]))

    def efforts(self, delay: float) -> Array:
        """y (N, nv) with efforts read so much later (s)."""
        return np.concatenate([self._efforts(shifted(piece, delay)) for piece in self.prepared.pieces])

    def _efforts(self, piece: Piece) -> Array:
        rows = decimation(self.prepared, piece)
        tau = self.gain * piece.tau[rows]
        return tau if self.chain is None else self.chain.reduced(piece.q[rows], tau[..., None])[..., 0]

    def _regressor(self, piece: Piece) -> Array:
        """Inertias, rotors and viscous friction are filtered here; slip is filtered already, at full rate."""
        nv, coulomb = self.model.nv, columns_of(self.model, "coulomb").start
        Y = full_regressor(self.model, piece.q, piece.v, piece.a, np.zeros_like(piece.slip))
        if self.chain is not None:
            Y = self.chain.reduced(piece.q, Y)
        rows = decimation(self.prepared, piece)
        Y = low_pass(Y, piece.rate, self.prepared.cutoff)[rows]
        slip = piece.slip[rows][..., None] * np.eye(nv)
        if self.stribeck is not None:
            more = self.stribeck.columns(self.prepared, piece)[rows]
            own = np.zeros((len(more), nv, more.shape[1]))
            own[:, self.stribeck.joints, np.arange(more.shape[1])] = more
            slip = np.concatenate([slip, own], axis=2)
        if self.chain is not None:
            slip = self.chain.reduced(piece.q[rows], slip)
        Y[..., coulomb:coulomb + nv] = slip[..., :nv]
        return np.concatenate([Y, slip[..., nv:]], axis=2) if self.stribeck is not None else Y


def split(rows: Rows, holdout: float) -> tuple[Rows, Rows | None]:
    """The first rows, and the last ones, if there are enough of them."""
    n = len(rows.y)
    cut = round((1.0 - holdout) * n)
    if holdout == 0.0 or n - cut < FEWEST:
        return rows, None
    ends = np.minimum(np.cumsum(rows.lengths), cut)
    lengths = np.diff(np.concatenate([[0], ends]))
    first = Rows(rows.X[:cut], rows.y[:cut], tuple(int(k) for k in lengths if k), rows.measured,
                 rows.correlation)
    return first, Rows(rows.X[cut:], rows.y[cut:], (n - cut,), rows.measured, rows.correlation)

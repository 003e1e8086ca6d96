"""A recording as linear equations `y = X θ`, with the same filter on both sides."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..derivatives.regressor import inertial_regressor
from ..model.robot_model import RobotModel
from .closed_chain import RecordedChain
from .drive_friction import DriveTerms
from .linear_fit import Rows
from .recorded.signals import Piece, Prepared, decimation, low_pass, noise_correlation, shifted
from .recorded.sticking import sticking
from .regressor_columns import columns_of, full_regressor, motor_columns
from .stribeck import StribeckTerms
from .transmission import CoupledMotors

Array = NDArray[np.float64]
FEWEST = 10    # smallest number of rows for validation
FELT = 1e-6    # relative share of a joint's effort in a row of closed loops below which it is rounding
OFTEN = 0.05   # share of the time above which exclusions are reported


@dataclass(frozen=True, eq=False)
class Equations:
    """The rows of a prepared recording, at few samples per cycle of the cutoff frequency.

    gain (nv,): factors of the recorded efforts. coupled: motors on more than one joint. slowest (rad/s, m/s): efforts
    of slower joints are excluded. chain: of a robot with loops, whose rows are those of its independent joints.
    drive, stribeck: columns of θ after those of `regressor_columns`; stribeck with their velocities.
    """

    model: RobotModel
    prepared: Prepared
    gain: Array
    coupled: CoupledMotors
    slowest: float
    chain: RecordedChain | None = None
    drive: DriveTerms | None = None
    stribeck: StribeckTerms | None = None

    def rows(self) -> Rows:
        """The stacked rows."""
        measured = np.concatenate([self._moving(piece) for piece in self.prepared.pieces])
        measured[:, list(self.prepared.unmeasured)] = False
        if self.chain is not None:
            measured &= self.chain.judged
        X = np.concatenate([self._regressor(piece) for piece in self.prepared.pieces])
        y = [self._efforts(piece) for piece in self.prepared.pieces]
        return Rows(X, np.concatenate(y), tuple(len(part) for part in y), measured,
                    noise_correlation(self.prepared, self.prepared.pieces[0]))

    def efforts(self, delay: float) -> Array:
        """y (N, nv) with efforts read `delay` (s) later."""
        return np.concatenate([self._efforts(shifted(piece, delay)) for piece in self.prepared.pieces])

    def gravity(self) -> Array:
        """The regressor of the inertias (N, nv, 10·nb) at rest in the rows' positions."""
        parts = []
        for piece in self.prepared.pieces:
            q = piece.q[decimation(self.prepared, piece)]
            Y = inertial_regressor(self.model, q, np.zeros_like(q), np.zeros_like(q))
            parts.append(Y if self.chain is None else self.chain.reduced(q, Y))
        return np.concatenate(parts)

    def left_out(self, rows: Rows) -> list[str]:
        """Report of excluded efforts of sticking joints."""
        shares = 1.0 - rows.measured.mean(axis=0)
        stuck = [f"{name} {100.0 * share:.0f} %" for name, share in
                 zip(self.model.velocity_names, shares, strict=True) if OFTEN < share < 1.0]
        condition = "while they stand," if self.chain is None else "while they stand, or joints that follow them,"
        return [f"efforts of joints {condition} left out, for they may be anything: {', '.join(stuck)} of the time"
                ] if stuck else []

    def _moving(self, piece: Piece) -> NDArray[np.bool_]:
        """Mask of usable efforts (N, nv): of moving joints. In closed loops a row combines a joint with its dependent
        joints, all of which must move.
        """
        rows = decimation(self.prepared, piece)
        stuck = sticking(piece, self.prepared.cutoff, self.slowest, self.coupled.rows)[rows]
        if self.chain is not None:
            shares = self.chain.reduced(piece.q[rows], stuck[..., None] * np.eye(self.model.nv))
            stuck = np.abs(shares).max(axis=2) > FELT
        return ~stuck

    def _efforts(self, piece: Piece) -> Array:
        rows = decimation(self.prepared, piece)
        tau = self.gain * piece.tau[rows]
        return tau if self.chain is None else self.chain.reduced(piece.q[rows], tau[..., None])[..., 0]

    def _regressor(self, piece: Piece) -> Array:
        """Regressor of a piece, with inertias, rotors and viscous friction filtered here; slip is already filtered."""
        nv, coupled = self.model.nv, self.coupled
        Y = full_regressor(self.model, piece.q, piece.v, piece.a, np.zeros_like(piece.slip), coupled)
        if self.chain is not None:
            Y = self.chain.reduced(piece.q, Y)
        rows = decimation(self.prepared, piece)
        Y = low_pass(Y, piece.rate, self.prepared.cutoff)[rows]
        slip = piece.slip[rows][:, None, :] * np.concatenate([np.eye(nv), coupled.rows.T], axis=1)
        if self.drive is not None:
            slip = np.concatenate([slip, self.drive.columns(self.model, self.prepared, piece)[rows]], axis=2)
        if self.stribeck is not None:
            columns = self.stribeck.columns(self.prepared, piece)[rows]
            block = np.zeros((len(columns), nv, columns.shape[1]))
            block[:, self.stribeck.joints, np.arange(columns.shape[1])] = columns
            slip = np.concatenate([slip, block], axis=2)
        if self.chain is not None:
            slip = self.chain.reduced(piece.q[rows], slip)
        both = nv + len(coupled.names)
        Y[..., columns_of(self.model, "coulomb")] = slip[..., :nv]
        Y[..., motor_columns(self.model, len(coupled.names), "coulomb")] = slip[..., nv:both]
        return np.concatenate([Y, slip[..., both:]], axis=2)


def split(rows: Rows, holdout: float) -> tuple[Rows, Rows | None]:
    """Training rows, and held-out rows (None if too few)."""
    n = len(rows.y)
    cut = round((1.0 - holdout) * n)
    if holdout == 0.0 or n - cut < FEWEST:
        return rows, None
    ends = np.minimum(np.cumsum(rows.lengths), cut)
    lengths = np.diff(np.concatenate([[0], ends]))
    first = Rows(rows.X[:cut], rows.y[:cut], tuple(int(k) for k in lengths if k), rows.measured[:cut],
                 rows.correlation)
    return first, Rows(rows.X[cut:], rows.y[cut:], (n - cut,), rows.measured[cut:], rows.correlation)

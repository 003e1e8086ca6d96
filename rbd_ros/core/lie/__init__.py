"""Lie groups SO(3) and SE(3): coefficient series, `so3`, `se3`, differentials of exp and log, curves."""
from __future__ import annotations

from . import coadjoint, rodrigues, se3, series, so3, trivialized
from .campbell_hausdorff import BCH, bch
from .curves import geodesics
from .curves.metric_geodesics import MetricGeodesic
from .curves.metrics import Metric
from .rodrigues import cayley, cayley_inverse
from .trivialized import dexp_left, dexp_right, dlog_left, dlog_right, left_velocity, right_velocity

__all__ = ["BCH", "Metric", "MetricGeodesic", "bch", "cayley", "cayley_inverse", "coadjoint", "dexp_left",
           "dexp_right", "dlog_left", "dlog_right", "geodesics", "left_velocity", "right_velocity", "rodrigues", "se3",
           "series", "so3", "trivialized"]

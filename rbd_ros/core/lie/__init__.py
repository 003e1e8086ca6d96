"""Lie groups SO(3) and SE(3), scalars upward: series, so3, se3, geodesics."""
from __future__ import annotations

from . import geodesics, se3, series, so3

__all__ = ["geodesics", "se3", "series", "so3"]

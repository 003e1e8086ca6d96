"""Lie groups SO(3) and SE(3), scalars upward: series, so3, se3, coadjoint, geodesics."""
from __future__ import annotations

from . import coadjoint, geodesics, se3, series, so3

__all__ = ["coadjoint", "geodesics", "se3", "series", "so3"]

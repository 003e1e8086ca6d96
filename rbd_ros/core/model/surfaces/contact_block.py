"""The packed array of contacts, the form in which kernels read them.

Header: rows, items. Per contact: first row and number of rows (1: normal; 3: and x, y; 4: and spin); nodes of first and
second body (−1: the world); pose (R, p) of either surface in its node; whether the search for closest points
(`dynamics/contact/closest`) iterates on the second surface; kind, side and sizes of either surface.
"""
from __future__ import annotations

from .. import block

ROWS, ITEMS, START = 0, 1, 2
(ROW, COUNT, NODE_1, NODE_2, ROTATION_1, POSITION_1, ROTATION_2, POSITION_2, WALKS, FIRST, SECOND,
 RECORD) = block.layout(row=1, count=1, node_1=1, node_2=1, rotation_1=9, position_1=3, rotation_2=9, position_2=3,
                        walks=1, first=5, second=5)

"""Contacts as one array of numbers, the form in which kernels see them.

Header: rows, items. Then per contact: its first row and the number of its rows (1: normal; 3: x, y, too; 4: spin, too);
nodes of the first and the second body (−1: the world), the pose (R, p) of either surface in its node; whether the
search for closest points moves the second (`dynamics/contact/closest`); and of either surface kind, side and sizes.
"""
from __future__ import annotations

from .. import block

ROWS, ITEMS, START = 0, 1, 2
(ROW, COUNT, NODE_1, NODE_2, ROTATION_1, POSITION_1, ROTATION_2, POSITION_2, WALKS, FIRST, SECOND,
 RECORD) = block.layout(row=1, count=1, node_1=1, node_2=1, rotation_1=9, position_1=3, rotation_2=9, position_2=3,
                        walks=1, first=5, second=5)

"""The packed array of a constraint set, the form in which kernels read it.

Header: rows m, items. Then per item: kind, size of the record, first row, and
* POSE: nodes of predecessor and successor (−1: the world), pose (R, p) of either frame in its node, six flags of the
  constrained axes rx, ry, rz, x, y, z;
* COUPLING: constant, number of terms; per term position and velocity index, multiplier and offset (mimic joints),
  number of coefficients, and these, of q, q², …;
* USER: rows, and the offset of its values (A, Ȧq̇, f; nv + 2 per row) in the array of values computed per state:
  first those of rolling and sliding contacts (by a separate kernel), then those of users' functions.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiled.kernel import COMPILED
from ..errors import RbdError, unknown_name
from ..compiled.workspace import CONSTRAINED
from . import block
from .assembly import WORLD
from .inertia import Array
from .robot_model import RobotModel

ROWS, ITEMS, START = 0, 1, 2
KIND, SIZE, ROW = 0, 1, 2
POSE, COUPLING, USER = 0, 1, 2
_, NODE_1, NODE_2, ROTATION_1, POSITION_1, ROTATION_2, POSITION_2, FLAGS, POSE_SIZE = block.layout(
    head=3, node_1=1, node_2=1, rotation_1=9, position_1=3, rotation_2=9, position_2=3, flags=6)
CONSTANT, TERMS, FIRST_TERM = 3, 4, 5
TERM_Q, TERM_V, TERM_RATIO, TERM_OFFSET, TERM_COUNT, TERM_FIRST = 0, 1, 2, 3, 4, 5
COUNT, USER_START, USER_SIZE = 3, 4, 5


def node_frame(model: RobotModel, end: str, link: str | None, pose: Array) -> tuple[int, list[float]]:
    """The node of a link (None: the world, −1), and the pose in it of a frame on the link: R, p as 12 numbers."""
    if link is None or (link == WORLD and WORLD not in model.body_names):
        return -1, [*pose[:3, :3].ravel().tolist(), *pose[:3, 3].tolist()]
    if link not in model.body_names:
        raise unknown_name(f"{end} link", link, [*model.body_names, WORLD])
    start = int(model._block[block.LINK_START]) + block.LINK * model.body_index(link)
    record = model._block[start:start + block.LINK]
    R = record[block.LINK_ROTATION:block.LINK_ROTATION + 9].reshape(3, 3)
    p = record[block.LINK_POSITION:block.LINK_POSITION + 3]
    return int(record[block.LINK_NODE]), [*(R @ pose[:3, :3]).ravel().tolist(), *(R @ pose[:3, 3] + p).tolist()]


def pose_record(model: RobotModel, row: int, predecessor: str | None, frame_1: Array, successor: str, frame_2: Array,
                flags: Sequence[bool]) -> list[float]:
    """POSE record: frame 2 on the successor coincides with frame 1 on the predecessor in the flagged axes."""
    node_1, pose_1 = node_frame(model, "predecessor", predecessor, frame_1)
    node_2, pose_2 = node_frame(model, "successor", successor, frame_2)
    if node_1 == node_2:
        raise RbdError(f"links '{predecessor or WORLD}' and '{successor}' are one rigid body: nothing can move between "
                       "them")
    return [POSE, POSE_SIZE, row, node_1, node_2, *pose_1, *pose_2, *map(float, flags)]


def coupling_record(model: RobotModel, row: int, terms: Mapping[str, Sequence[float]],
                    constant: float) -> list[float]:
    """COUPLING record of `Σ P_i(q_i) − constant`; terms: per joint the coefficients of q, q², … of P_i."""
    mimics = {mimic.name: mimic for mimic in model.mimics}
    coordinates = {name: indices for joint in model.joints if joint.nq == joint.nv for name, indices in zip(
        model.velocity_names[joint.idx_v:joint.idx_v + joint.nv],
        zip(range(joint.idx_q, joint.idx_q + joint.nq), range(joint.idx_v, joint.idx_v + joint.nv), strict=True),
        strict=True)}
    out: list[float] = []
    for name, coefficients in terms.items():
        source, ratio, offset = name, 1.0, 0.0
        if name in mimics:
            source, ratio, offset = mimics[name].source, mimics[name].multiplier, mimics[name].offset
        if source not in coordinates:
            raise unknown_name("joint coordinate", name, [*coordinates, *mimics])
        iq, iv = coordinates[source]
        out += [iq, iv, ratio, offset, len(coefficients), *coefficients]
    return [COUPLING, FIRST_TERM + len(out), row, constant, len(terms), *out]


def user_record(model: RobotModel, row: int, count: int, user: int) -> list[float]:
    """USER record of `count` rows, whose values start at row `user` of the values computed per state."""
    return [USER, USER_SIZE, row, count, user * (model.nv + 2)]


class ContactRows:
    """Contacts of a set, bound to a model: names, row indices in the set (`at`), and the packed array of
    `surfaces.contact_block`.
    """

    def __init__(self, records: Mapping[str, list[float]], at: Sequence[int]) -> None:
        self.names, self.rows = tuple(records), len(at)
        self.at: NDArray[np.int64] = np.array(at, dtype=np.int64)
        self.block = np.array([len(at), len(records), *(x for record in records.values() for x in record)], dtype=float)


@dataclass(frozen=True, eq=False)
class Bound:
    """A constraint set bound to one model: the packed array of kernels, contacts, and the user's constraints.

    Values of contacts and users' constraints are computed per state outside the constraint kernels
    (`dynamics.constrained.given`): the packed array has USER records for them, contacts last.
    """

    model: RobotModel
    size: int
    block: Array
    users: tuple[Any, ...]    # each a `UserConstraint` or `NonholonomicConstraint`
    holonomic: NDArray[np.bool_]    # (m,): rows that restrict positions
    contacts: ContactRows
    block_alone: Array = field(init=False)    # without contacts
    none_given: Array = field(default_factory=lambda: np.empty(0))
    work: Array = field(init=False)    # scratch memory, see `workspace`

    def __post_init__(self) -> None:
        without_contacts = self.block
        if self.contacts.rows:
            without_contacts = self.block.copy()
            without_contacts[ITEMS] -= len(self.contacts.names)
        object.__setattr__(self, "block_alone", without_contacts)
        if COMPILED:
            object.__setattr__(self, "work", self.new_work())

    def new_work(self) -> Array:
        """Scratch memory of one call."""
        return np.empty(CONSTRAINED.size(nodes=len(self.model._node_rows), nv=self.model.nv, rows=self.size))

    @property
    def is_given(self) -> bool:
        """Whether some rows have values computed per state."""
        return bool(self.users) or self.contacts.rows > 0


if not COMPILED:    # plain Python: new scratch memory per call
    Bound.work = property(Bound.new_work)    # type: ignore[assignment]

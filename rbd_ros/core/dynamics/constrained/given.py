"""Constraint rows evaluated outside the kernel: contacts, by their own kernel, and users' functions."""
from __future__ import annotations

from typing import Protocol

import numpy as np

from ...errors import RbdError
from ...model.constraint_block import Bound, ContactRows
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import shaped
from ..contact.contact_rows import contact_rows_entry


class HasContacts(Protocol):
    """Contacts looked up in a model."""

    @property
    def model(self) -> RobotModel: ...
    @property
    def contacts(self) -> ContactRows: ...


def given_rows(bound: Bound, q: Array, v: Array) -> Array:
    """A, Ȧq̇ and f (nv + 2 numbers per row) at a state or at each of a batch, flat: contacts first.

    Raises `RbdError` naming a contact whose surfaces have no closest points that count.
    """
    if not bound.is_given:
        return bound.none_given
    count = len(np.atleast_2d(q))
    if not count:
        return bound.none_given
    parts = []
    if bound.contacts.rows:
        parts.append(contact_values(bound, q, v, count))
    if bound.users:
        states = zip(np.atleast_2d(q), np.atleast_2d(v), strict=True)
        parts.append(np.array([np.concatenate([user.values(x, y).ravel() for user in bound.users]) for x, y in states]))
    return np.concatenate(parts, axis=1).reshape(-1) if len(parts) > 1 else parts[0].reshape(-1)


def contact_values(bound: HasContacts, q: Array, v: Array, count: int) -> Array:
    """Those of contacts (count, rows · (nv + 2))."""
    model, contacts = bound.model, bound.contacts
    out = np.empty((count, contacts.rows * (model.nv + 2)))
    found = contact_rows_entry.call(model._block, contacts.block, q.reshape(-1), v.reshape(-1),
                                    np.zeros(count * model.nv) if count > 1 else model._zeros, count, out.reshape(-1))
    if found == -1:
        return out
    given = shaped(model, positions={"q": q}, rates={"v": v})
    given.check_values()
    if found < 0:
        raise given.beyond_numbers() or RbdError("contacts: their rows would not be finite")
    raise given.beyond_numbers() or no_contact(bound, found, count)


def no_contact(bound: HasContacts, found: int, count: int) -> RbdError:
    """The error for a contact whose closest points are not found."""
    items = len(bound.contacts.names)
    where = f"state {found // items}: " if count > 1 else ""
    return RbdError(f"{where}contact '{bound.contacts.names[found % items]}' of model '{bound.model.name}': the "
                    "surfaces have no unique closest points here: they touch along a line, a hollow body does not hold "
                    "the other, or one is far inside the other. Start near the contact, or declare other surfaces")

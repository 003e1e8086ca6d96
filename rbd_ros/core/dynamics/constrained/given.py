"""Constraint rows evaluated outside the constraint kernel: contacts (by a separate kernel), users' functions."""
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
    """Contacts bound to a model."""

    @property
    def model(self) -> RobotModel: ...
    @property
    def contacts(self) -> ContactRows: ...


def given_rows(bound: Bound, q: Array, v: Array) -> Array:
    """A, Ȧq̇ and f (nv + 2 numbers per row) of contacts, then users' constraints, per state: flat.

    Raises `RbdError` naming a contact whose surfaces have no unique closest points.
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
    """A, Ȧq̇ and f of contacts at `count` states: (count, rows·(nv + 2)); errors as `given_rows`."""
    model, contacts = bound.model, bound.contacts
    out = np.empty((count, contacts.rows * (model.nv + 2)))
    status = contact_rows_entry.call(model._block, contacts.block, q.reshape(-1), v.reshape(-1),
                                     np.zeros(count * model.nv) if count > 1 else model._zeros, count, out.reshape(-1))
    if status == -1:
        return out
    inputs = shaped(model, positions={"q": q}, rates={"v": v})
    inputs.check_values()
    if status < 0:
        raise inputs.beyond_numbers() or RbdError("contacts: their rows would not be finite")
    raise inputs.beyond_numbers() or no_contact(bound, status, count)


def no_contact(bound: HasContacts, number: int, count: int) -> RbdError:
    """Error for contact `number` = state · contacts + contact, without unique closest points."""
    items = len(bound.contacts.names)
    where = f"state {number // items}: " if count > 1 else ""
    return RbdError(f"{where}contact '{bound.contacts.names[number % items]}' of model '{bound.model.name}': the "
                    "surfaces have no unique closest points here: they touch along a line, a hollow body does not hold "
                    "the other, or one is far inside the other. Start near the contact, or declare other surfaces")

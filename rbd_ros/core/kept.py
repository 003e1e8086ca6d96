"""`@kept`: a property that is computed once, for frozen classes whose attributes are read in every call.

`functools.cached_property` does the same through the instance's `__dict__`. CPython then has to keep that dictionary,
and from there on each attribute of the object, not only this one, takes 13 ns to read instead of 2 (seen in 3.11): some
40 ns more in every call of inverse dynamics. An attribute that is set as any other costs nothing, as long as there are
no more than 30 of them (`MOST`).
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
MOST = 30    # attributes of an instance that CPython stores without a dictionary


class kept(Generic[T]):
    """Decorator for a method without arguments; from the first look on, its result is an attribute."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> kept[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> kept[T] | T:
        if instance is None:
            return self
        value = self._make(instance)
        object.__setattr__(instance, self._name, value)    # the class may be frozen; found before this from now on
        return value

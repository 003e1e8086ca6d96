"""`@trying(at_once)`: a public function of states passes its unvalidated inputs to a compiled entry first.

An entry takes float64 arrays of one state and checks them itself: to look at types and shapes in Python takes several
times as long as inverse dynamics does. What decides between the two is written here, once:

* `at_once` calls the entry, and returns the result, or None where the entry refuses the input or the result;
* a specialised model (`specialize`) has code of its own, for one state, which is tried instead, and for batches, which
  is tried next;
* the decorated function takes everything else: lists, batches, external wrenches, and whatever is wrong, by name.

A parameter with the default None that `at_once` does not have, `external_wrenches` for one, is None where it is tried.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from inspect import Parameter, signature
from typing import Any, TypeVar

from .compile import UNSUITED

F = TypeVar("F", bound=Callable[..., Any])

# The function that users call has the parameters of the decorated one by name, as a dataclass's `__init__` has its
# fields: passing on `*arguments, **keywords` takes 0.12 µs, beside 0.8 µs of inverse dynamics; this, some 0.02 µs.
_SOURCE = """
def {name}({parameters}):
    if {absent}:
        try:
            own = {model}._specialized
            found = at_once({tried}) if own is None else own.single["{name}"]({given})
            if found is not None:
                return found
        except UNSUITED:
            pass
        found = by_own_code("{name}", {tried})
        if found is not None:
            return found
    return looked_at({passed})
"""
AT_ONCE: dict[str, Callable[..., Any]] = {}    # what is tried first, by the names of the functions that are decorated


def by_own_code(name: str, model: Any, *inputs: Any) -> Any:
    """Result of a specialised model for a batch, or for a state outside its code's domain; None if unsupported."""
    own = getattr(model, "_specialized", None)
    if own is None:
        return None
    found = own.batch[name](*inputs) if name in own.batch else None
    return where_suited(AT_ONCE[name], model, *inputs) if found is None else found


def where_suited(call: Callable[..., Any], *inputs: Any) -> Any:
    """Result of `call` for unvalidated inputs; None if it does not support them."""
    try:
        return call(*inputs)
    except UNSUITED:
        return None


def trying(at_once: Callable[..., Any]) -> Callable[[F], F]:
    """Decorator for a public function: try `at_once` first; signature and docstring stay."""

    def decorate(function: F) -> F:
        AT_ONCE[function.__name__] = at_once
        parameters = list(signature(function).parameters.values())
        tried = list(signature(at_once).parameters)
        absent = [f"{parameter.name} is None" for parameter in parameters
                  if parameter.name not in tried and parameter.default is None]
        source = _SOURCE.format(
            name=function.__name__, parameters=_declared(parameters), absent=" and ".join(absent) or "True",
            model=tried[0], given=", ".join(tried[1:]), tried=", ".join(tried),
            passed=", ".join(map(_passed, parameters)))
        scope: dict[str, Any] = {"at_once": at_once, "looked_at": function, "by_own_code": by_own_code,
                                 "UNSUITED": UNSUITED}
        exec(compile(source, f"<trying {at_once.__module__}.{at_once.__name__}>", "exec"), scope)
        made: Any = scope[function.__name__]
        plain: Any = function
        made.__defaults__, made.__kwdefaults__ = plain.__defaults__, plain.__kwdefaults__
        update_wrapper(made, function)
        return made    # type: ignore[no-any-return]

    return decorate


def _declared(parameters: list[Parameter]) -> str:
    """The parameters of a `def`; what their defaults are is set later."""
    out: list[str] = []
    for parameter in parameters:
        if parameter.kind is Parameter.KEYWORD_ONLY and not any(item.startswith("*") for item in out):
            out.append("*")
        name = f"*{parameter.name}" if parameter.kind is Parameter.VAR_POSITIONAL else parameter.name
        out.append(name if parameter.default is Parameter.empty else f"{name}=None")
    return ", ".join(out)


def _passed(parameter: Parameter) -> str:
    """A parameter as an argument of a call."""
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    return f"{parameter.name}={parameter.name}" if parameter.kind is Parameter.KEYWORD_ONLY else parameter.name

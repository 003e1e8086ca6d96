"""A robot's functions as functions of JAX, with the analytic derivatives."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dynamics.friction import Friction
from ..errors import RbdError
from ..model.constraints import ConstraintSet
from ..model.robot_model import RobotModel
from .batch_function import BatchFunction


def jax_function(model: RobotModel, function: str, *, friction: Friction | None = None,
                 inertias: Sequence[str] = (), friction_fields: Sequence[str] = (),
                 constraints: ConstraintSet | None = None) -> Callable[..., Any]:
    """A function of the model for batches of JAX, on the CPU, with the analytic derivatives.

    Arguments, inputs, results and gradients are those of `torch_function`, with arrays of JAX. It computes in float64
    in any case; results are float32 if all inputs are, as they are without `jax_enable_x64`, which must be set by
    `jax.config.update` or in the environment: the context manager does not reach callbacks. With `jax.jit`, `vmap`,
    `grad`, `jvp`, `jacfwd`, `jacrev` and `hessian`; a call is a `jax.pure_callback`. Second derivatives as of
    `torch_function`. Raises `RbdError` without jax, for unknown names, and for inputs of other shapes and types; the
    library's errors in a call are texts of a `jax.errors.JaxRuntimeError`.

        >>> import jax.numpy as jnp
        >>> dynamics = rbd.jax_function(rbd.sample("two_link"), "inverse_dynamics")
        >>> dynamics(*jnp.zeros((3, 1000, 2))).shape
        (1000, 2)
    """
    made = BatchFunction("jax_function", model, function, friction, inertias, friction_fields, constraints)
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        raise RbdError("jax_function needs the package jax (`pip install jax`)") from None

    def computed(method: Callable[..., Any], *shape: int) -> Callable[..., Any]:
        """A method as a function of inputs of equal rank, with results (…, *shape)."""
        def function(*inputs: Any) -> Any:
            types = tuple(x.dtype for x in inputs)
            lead = jnp.broadcast_shapes(*(x.shape[:-1] for x in inputs))
            result = jax.ShapeDtypeStruct((*lead, *shape), np.result_type(*types))
            return jax.pure_callback(functools.partial(on_host, types), result, *inputs, vmap_method="expand_dims")

        def on_host(types: tuple[Any, ...], *inputs: Any) -> Any:
            if tuple(x.dtype for x in inputs) != types:
                raise RbdError(f"{made.name}: float64 is on in the caller's thread only, and callbacks run in others: "
                               "use jax.config.update('jax_enable_x64', True)")
            return method(*(np.asarray(x) for x in inputs)).astype(np.result_type(*types), copy=False)

        return function

    def along(inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Changes of all inputs' numbers (…, K)."""
        lead = jnp.broadcast_shapes(*(x.shape[:-1] for x in inputs))
        return jnp.concatenate([jnp.broadcast_to(x, (*lead, x.shape[-1])) for x in tangents], axis=-1)

    numbers = jax.custom_jvp(computed(made.value, made.size))
    jacobian = jax.custom_jvp(computed(made.jacobian, made.size, made.inputs))
    hessian = jax.custom_jvp(computed(made.hessian, made.size, made.inputs, made.inputs))

    @numbers.defjvp
    def first(inputs: Any, tangents: Any) -> Any:
        return numbers(*inputs), jnp.einsum("...mk,...k->...m", jacobian(*inputs), along(inputs, tangents))

    @jacobian.defjvp
    def second(inputs: Any, tangents: Any) -> Any:
        made.check_twice()
        return jacobian(*inputs), jnp.einsum("...mij,...j->...mi", hessian(*inputs), along(inputs, tangents))

    @hessian.defjvp
    def third(inputs: Any, tangents: Any) -> Any:
        raise RbdError(f"{made.name} has no derivatives of order 3")

    def call(*given: Any, **named: Any) -> Any:
        inputs = [jnp.asarray(x) for x in made.ordered(given, named)]
        for name, x in zip(made.arguments, inputs, strict=True):
            if x.dtype not in (jnp.float64, jnp.float32):
                raise RbdError(f"{made.name}: {name}: expected float64 or float32, got {x.dtype}")
        made.check_shapes([x.shape for x in inputs])
        rank = max(x.ndim for x in inputs)
        result = numbers(*(x.reshape((1,) * (rank - x.ndim) + x.shape) for x in inputs))
        parts = jnp.split(result, np.cumsum(made.sizes)[:-1], axis=-1)
        shaped = tuple(part.reshape(result.shape[:-1] + shape)
                       for part, shape in zip(parts, made.outputs.values(), strict=True))
        return shaped[0] if len(shaped) == 1 else shaped

    return made.named(call, "jax")

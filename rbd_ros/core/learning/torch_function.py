"""A robot's functions as functions of torch, with the analytic derivatives."""
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

_MADE: list[BatchFunction] = []    # operators get an index in it; it stays valid, as graphs may outlive functions


def torch_function(model: RobotModel, function: str, *, friction: Friction | None = None,
                   inertias: Sequence[str] = (), friction_fields: Sequence[str] = (),
                   constraints: ConstraintSet | None = None) -> Callable[..., Any]:
    """A function of the model for batches of torch, on the CPU, with gradients by the analytic derivatives.

    function: "inverse_dynamics", "forward_dynamics", "hybrid_dynamics:joint1,joint3" (prescribed accelerations),
    "gravity_effort", "bias_effort", "mass_matrix", "forward_kinematics", "kinetic_energy", "potential_energy", and with
    `constraints` "constrained_forward_dynamics", "constrained_inverse_dynamics:joint1,joint2" (actuated). Inputs (q, v,
    a, …), by place or name, are tensors (…, size) of float64 or float32 whose leading axes broadcast; results have the
    shapes of the library's, several in a tuple. It computes in float64 in any case; results are float32 if all inputs
    are. friction: as the argument of the library's functions. inertias: bodies whose inertial parameters are an input
    `inertias` (…, 10·k), as in `model.inertial_parameters`; friction_fields: fields of the law that are an input
    `friction` (…, nv·k), field after field. Gradients by q are those by its stored numbers, as of `casadi_function`:
    four for a quaternion, orthogonal to it. Second derivatives: of inverse dynamics, gravity and bias effort and
    potential energy, by the state; others raise `RbdError`. With `torch.func.vmap`, `grad` and `jacrev`, and
    `torch.compile` without breaks of the graph, then once differentiable; without forward mode. Raises `RbdError`
    without torch, for unknown names, and for inputs of other shapes, types and devices; calls raise the library's
    errors.

        >>> import torch
        >>> dynamics = rbd.torch_function(rbd.sample("two_link"), "inverse_dynamics")
        >>> dynamics(*torch.zeros(3, 1000, 2)).shape
        torch.Size([1000, 2])
    """
    made = BatchFunction("torch_function", model, function, friction, inertias, friction_fields, constraints)
    torch, operate = _torch()
    number = len(_MADE)
    _MADE.append(made)

    def call(*given: Any, **named: Any) -> Any:
        inputs = made.ordered(given, named)
        for name, x in zip(made.arguments, inputs, strict=True):
            if not isinstance(x, torch.Tensor):
                raise RbdError(f"{made.name}: {name}: expected a torch.Tensor, got {type(x).__name__}")
            if x.dtype not in (torch.float64, torch.float32):
                raise RbdError(f"{made.name}: {name}: expected torch.float64 or torch.float32, got {x.dtype}")
            if x.device.type not in ("cpu", "meta"):
                raise RbdError(f"{made.name}: {name}: expected a tensor on the CPU, got one on {x.device}")
        made.check_shapes([tuple(x.shape) for x in inputs])
        numbers = operate(number, *inputs)
        lead = numbers.shape[:-1]
        if len(made.sizes) == 1:
            return numbers.reshape(*lead, *next(iter(made.outputs.values())))
        parts = numbers.split(made.sizes, dim=-1)
        return tuple(part.reshape(*lead, *shape) for part, shape in zip(parts, made.outputs.values(), strict=True))

    return made.named(call, "torch")


@functools.cache
def _torch() -> tuple[Any, Callable[..., Any]]:
    """torch, and the values as a function of an index in `_MADE` and inputs."""
    try:
        import torch
    except ImportError:
        raise RbdError("torch_function needs the package torch (`pip install torch`)") from None

    def result_type(tensors: Sequence[Any]) -> Any:
        return torch.float64 if any(x.dtype == torch.float64 for x in tensors) else torch.float32

    def operator(name: str, width: Callable[[BatchFunction], int]) -> Any:
        """The method of this name as an operator with results (…, width)."""
        def compute(number: int, tensors: Any) -> Any:
            result = getattr(_MADE[number], name)(*(x.detach().numpy() for x in tensors))
            return torch.from_numpy(np.ascontiguousarray(result)).to(result_type(tensors))

        def fake(number: int, tensors: Any) -> Any:
            lead = torch.broadcast_shapes(*(x.shape[:-1] for x in tensors))
            return tensors[0].new_empty((*lead, width(_MADE[number])), dtype=result_type(tensors))

        def mapped(info: Any, axes: Any, number: int, tensors: Any) -> tuple[Any, int]:
            """The mapped axis becomes the first one; axes of size 1 after it make the ranks equal."""
            ranks = [x.dim() - (axis is not None) for x, axis in zip(tensors, axes[1], strict=True)]
            front = [x if axis is None else x.movedim(axis, 0) for x, axis in zip(tensors, axes[1], strict=True)]
            return made(number, [
                x if axis is None else x.reshape(x.shape[0], *[1] * (max(ranks) - rank), *x.shape[1:])
                for x, axis, rank in zip(front, axes[1], ranks, strict=True)]), 0

        made = torch.library.custom_op(f"rbd_ros::{name}", compute, mutates_args=(),
                                       schema="(int number, Tensor[] tensors) -> Tensor")
        made.register_fake(fake)
        made.register_vmap(mapped)
        return getattr(torch.ops.rbd_ros, name).default

    value = operator("value", lambda made: made.size)
    pull = operator("pull", lambda made: made.inputs)
    bend = operator("bend", lambda made: made.size + made.inputs)

    class Differentiated(torch.autograd.Function):    # derivatives registered with an operator do not serve torch.func
        """Functions of an index in `_MADE` and of tensors, the last of which are the inputs."""

        generate_vmap_rule = True

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.number = inputs[0]
            ctx.save_for_backward(*inputs[1:])

    def by_input(number: int, joint: Any, inputs: Sequence[Any]) -> list[Any]:
        parts = joint.split(list(_MADE[number].arguments.values()), dim=-1)
        return [part.sum_to_size(x.shape).to(x.dtype) for part, x in zip(parts, inputs, strict=True)]

    class Value(Differentiated):
        @staticmethod
        def forward(number: int, *inputs: Any) -> Any:
            return value(number, inputs)

        @staticmethod
        def backward(ctx: Any, weights: Any) -> Any:
            inputs = ctx.saved_tensors
            if torch.compiler.is_compiling():    # compiled graphs have first derivatives only, and no nested functions
                joint = pull(ctx.number, [weights, *inputs])
            else:
                joint = Pull.apply(ctx.number, weights, *inputs)
            return None, *by_input(ctx.number, joint, inputs)

    class Pull(Differentiated):
        @staticmethod
        def forward(number: int, *tensors: Any) -> Any:
            return pull(number, tensors)

        @staticmethod
        def backward(ctx: Any, direction: Any) -> Any:
            _MADE[ctx.number].check_twice()
            weights, *inputs = ctx.saved_tensors
            joint = Bend.apply(ctx.number, weights, direction, *inputs)
            by_weights, by_inputs = joint.split([weights.shape[-1], direction.shape[-1]], dim=-1)
            return None, by_weights.to(weights.dtype), *by_input(ctx.number, by_inputs, inputs)

    class Bend(Differentiated):
        @staticmethod
        def forward(number: int, *tensors: Any) -> Any:
            return bend(number, tensors)

        @staticmethod
        def backward(ctx: Any, weights: Any) -> Any:
            raise RbdError(f"{_MADE[ctx.number].name} has no derivatives of order 3")

    return torch, Value.apply

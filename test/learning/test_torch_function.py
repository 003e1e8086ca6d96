"""Functions of torch: their gradients by differences, batches, transformations, types, and adam's and Pinocchio's."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.differentiated import FRICTION, MODELS, RUBBED, SIZES, TWICE, states, text_of
from support.pages import ROOT
from support.trees import random_tree

import rbd_ros as rbd

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")

TREES = MODELS | {f"tree {seed}": (lambda seed=seed: random_tree(seed, count=4)) for seed in range(3)}


def state(model, name, lead=(2,), seed=0, dtype=None):
    return [torch.tensor(x, dtype=dtype or torch.float64, requires_grad=True) for x in states(model, name, lead, seed)]


def arrays(inputs):
    return [x.detach().numpy() for x in inputs]


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("name", SIZES)
def test_gradients_are_those_of_differences(name, kind):
    model = TREES[kind]()
    friction = FRICTION if name in RUBBED else None
    function = rbd.torch_function(model, text_of(model, name), friction=friction)
    assert torch.autograd.gradcheck(function, state(model, name, (1,)), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["mimic", "floating"])
@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives_are_those_of_differences(name, kind):
    model = MODELS[kind]()
    friction = FRICTION if name == "inverse_dynamics" else None
    function = rbd.torch_function(model, name, friction=friction)
    assert torch.autograd.gradgradcheck(function, state(model, name, (1,)), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "hybrid_dynamics"])
def test_gradients_by_parameters(name):
    """Common to all states: their gradients add up; and of each state."""
    model = MODELS["all joints"]()
    bodies, fields = model.body_names[-2:], ("damping", "coulomb", "load")
    function = rbd.torch_function(model, text_of(model, name), friction=FRICTION, inertias=bodies,
                                  friction_fields=fields)
    own = np.concatenate([model.inertial_parameters.reshape(-1, 10)[model.body_index(body)] for body in bodies])
    law = np.repeat([getattr(FRICTION, field) for field in fields], model.nv)
    for scale in (1.0, np.array([[1.0], [1.05]])):
        parameters = {name: torch.tensor(x * scale, requires_grad=True)
                      for name, x in (("inertias", own), ("friction", law))}
        x = state(model, name)
        assert torch.autograd.gradcheck(
            lambda *y: function(*y[:-2], inertias=y[-2], friction=y[-1]), [*x, *parameters.values()], atol=1e-4,
            rtol=1e-4)


def test_gradients_of_constrained_dynamics():
    model = rbd.sample("five_bar")
    loop = rbd.sample_constraints("five_bar", model)
    function = rbd.torch_function(model, "constrained_forward_dynamics", constraints=loop)
    q = rbd.project(model, loop, np.array([0.4, -0.2, 0.1, 0.5, -0.1]))[0]
    x = [torch.tensor(y, requires_grad=True) for y in (q, np.zeros(5), np.random.default_rng(0).normal(size=5))]
    acceleration, multipliers = function(*x)
    assert acceleration.shape == (5,) and multipliers.shape == (loop.size,)
    by = rbd.constrained_forward_dynamics_derivatives(model, loop, *arrays(x))
    for row in range(loop.size):
        found = torch.autograd.grad(multipliers[row], x, retain_graph=True)
        np.testing.assert_allclose(np.stack([g.numpy() for g in found]), [part[row] for part in by[3:]], atol=1e-9)


@pytest.mark.parametrize("name", ["constrained_forward_dynamics",
                                  "constrained_inverse_dynamics:left_shoulder,right_shoulder"])
def test_gradients_of_constrained_dynamics_by_parameters(name):
    model = rbd.sample("five_bar")
    loop = rbd.sample_constraints("five_bar", model)
    body = model.body_names[-1]
    function = rbd.torch_function(model, name, constraints=loop, friction=FRICTION, inertias=[body],
                                  friction_fields=["damping", "coulomb"])
    q = rbd.project(model, loop, np.array([0.4, -0.2, 0.1, 0.5, -0.1]))[0]
    x = [torch.tensor(y) for y in (q, np.zeros(5), np.zeros(5))]
    parameters = [torch.tensor(y, requires_grad=True) for y in (
        model.inertial_parameters[-10:], np.repeat([FRICTION.damping, FRICTION.coulomb], 5))]
    assert torch.autograd.gradcheck(lambda *y: function(*x, *y), parameters, atol=1e-6, rtol=1e-6)


def test_functions_without_second_derivatives_say_so():
    """Never zeros."""
    model = rbd.sample("two_link")
    for text, options, what in (
            ("forward_dynamics", {}, "forward_dynamics has no second derivatives, which inverse_dynamics"),
            ("inverse_dynamics", {"inertias": ["tip"]}, "no second derivatives by parameters")):
        function = rbd.torch_function(model, text, **options)
        more = [torch.tensor(model.inertial_parameters[-10:])] if options else []
        x = [*state(model, text, ()), *more]
        gradient, = torch.autograd.grad(function(*x).sum(), x[0], create_graph=True)
        with pytest.raises(rbd.RbdError, match=what):
            gradient.sum().backward()
    x = state(model, "inverse_dynamics", ())
    function = rbd.torch_function(model, "inverse_dynamics")
    y = function(*x)[0]
    for _ in range(2):
        y = torch.autograd.grad(y, x[0], create_graph=True)[0].sum()
    with pytest.raises(rbd.RbdError, match="no derivatives of order 3"):
        y.backward()


# batches and types

def test_values_of_batches_are_the_librarys():
    model = rbd.sample("iiwa")
    function = rbd.torch_function(model, "hybrid_dynamics:joint_2,joint_5", friction=FRICTION)
    for lead in ((), (5,), (2, 3), (0,), (4, 0)):
        x = state(model, "hybrid_dynamics", lead)
        flat = [y.reshape(-1, 7) for y in arrays(x)]
        expected = rbd.hybrid_dynamics(model, *flat, ["joint_2", "joint_5"], friction=FRICTION)
        for part, wanted in zip(function(*x), expected[:2], strict=True):
            assert part.shape == (*lead, 7) and part.dtype == torch.float64
            np.testing.assert_allclose(part.detach().numpy().reshape(-1, 7), wanted, atol=1e-12)
        sum(part.sum() for part in function(*x)).backward()
        assert all(y.grad.shape == y.shape for y in x)
    poses = rbd.torch_function(model, "forward_kinematics")(x[0][..., :0, :].reshape(2, 0, 7))
    assert poses.shape == (2, 0, len(model.body_names), 4, 4)
    assert rbd.torch_function(model, "kinetic_energy")(*state(model, "kinetic_energy", (3,))).shape == (3,)


def test_leading_axes_broadcast_and_gradients_add_up():
    model = rbd.sample("iiwa")
    function = rbd.torch_function(model, "inverse_dynamics")
    q, v, a = state(model, "inverse_dynamics", (4, 3))
    q, v, a = (x.detach().requires_grad_() for x in (q[:, :1], v[0], a[0, 0]))
    loss = function(q, v, a).square().sum()
    expected = torch.autograd.grad(function(*torch.broadcast_tensors(q, v, a)).square().sum(), (q, v, a))
    for found, wanted in zip(torch.autograd.grad(loss, (q, v, a)), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_inputs_of_any_strides():
    model = rbd.sample("iiwa")
    function = rbd.torch_function(model, "inverse_dynamics")
    x = state(model, "inverse_dynamics", (6,))
    strided = [torch.as_strided(y.detach().repeat(2, 1).T.contiguous(), (6, 7), (1, 12)).requires_grad_() for y in x]
    assert not strided[0].is_contiguous()
    assert torch.equal(function(*x), function(*strided))
    expanded = x[0].detach()[:1].expand(6, 7)
    assert torch.equal(function(expanded, *x[1:]), function(x[0][:1], *x[1:]))
    for parts in (x, strided):
        function(*parts).square().sum().backward()
    assert all(torch.equal(y.grad, z.grad) for y, z in zip(x, strided, strict=True))


def test_results_are_views_of_the_librarys(monkeypatch):
    """And it gets the memory of the inputs: nothing is copied."""
    model, seen = rbd.sample("iiwa"), []
    from rbd_ros.core.learning import batch_function as module
    ordinary = module.inverse_dynamics

    def watched(model, *x, **options):
        seen.extend(x)
        seen.append(ordinary(model, *x, **options))
        return seen[-1]

    monkeypatch.setattr(module, "inverse_dynamics", watched)
    x = state(model, "inverse_dynamics", (3,))
    result = rbd.torch_function(model, "inverse_dynamics")(*x)
    for array, tensor in zip(seen, [*x, result], strict=True):
        assert array.__array_interface__["data"][0] == tensor.data_ptr()


def test_float32_is_computed_in_float64():
    model = rbd.sample("iiwa")
    for name in ("inverse_dynamics", "forward_dynamics"):
        function = rbd.torch_function(model, name)
        single = state(model, name, (50,), dtype=torch.float32)
        double = [x.detach().double().requires_grad_() for x in single]
        found, expected = function(*single), function(*double)
        assert found.dtype == torch.float32 and torch.equal(found, expected.float())
        found.sum().backward()
        expected.sum().backward()
        for x, y in zip(single, double, strict=True):
            assert x.grad.dtype == torch.float32 and torch.equal(x.grad, y.grad.float())
        mixed = function(single[0], *double[1:])
        assert mixed.dtype == torch.float64
        assert torch.autograd.grad(mixed.sum(), single[0])[0].dtype == torch.float32


@pytest.mark.parametrize(("change", "what"), [
    (lambda x: x.int(), "v: expected torch.float64 or torch.float32, got torch.int32"),
    (lambda x: x.half(), "v: expected torch.float64 or torch.float32, got torch.float16"),
    (lambda x: x.numpy(), "v: expected a torch.Tensor, got ndarray"),
    (lambda x: x[:, :1], r"v has shape \(2, 1\), expected \(…, 2\)"),
    (lambda x: x[None, None], None),
    (lambda x: torch.stack([x] * 3, 1)[:, :, None].reshape(3, 2, 2), None),
    (lambda x: torch.cat([x, x]), "leading axes that broadcast"),
    (lambda x: torch.full_like(x, torch.nan), r"v\[0, 0\] is nan")])
def test_inputs_that_are_refused(change, what):
    model = rbd.sample("two_link")
    function = rbd.torch_function(model, "inverse_dynamics")
    q, v, a = (x.detach() for x in state(model, "inverse_dynamics"))
    if what is None:
        function(q, change(v), a)
        return
    with pytest.raises(rbd.RbdError, match=what):
        function(q, change(v), a)


def test_tensors_elsewhere_are_refused():
    class Elsewhere(torch.Tensor):
        device = torch.device("cuda", 0)

    function = rbd.torch_function(rbd.sample("two_link"), "gravity_effort")
    with pytest.raises(rbd.RbdError, match="q: expected a tensor on the CPU, got one on cuda:0"):
        function(torch.zeros(2, dtype=torch.float64).as_subclass(Elsewhere))
    assert function(torch.zeros(5, 2, device="meta")).shape == (5, 2)    # shapes alone


# transformations

def test_vmap_of_any_axes():
    model = rbd.sample("iiwa")
    function = rbd.torch_function(model, "inverse_dynamics", inertias=["link_7"])
    q, v, a = (x.detach() for x in state(model, "inverse_dynamics", (5, 3)))
    own = torch.tensor(model.inertial_parameters[-10:]) * torch.linspace(0.9, 1.1, 3, dtype=torch.float64)[:, None]
    vmap = torch.func.vmap
    expected = function(q, v, a, own)
    torch.testing.assert_close(vmap(function, (0, 0, 0, None))(q, v, a, own), expected)
    torch.testing.assert_close(vmap(function, (1, 1, 1, 0), 1)(q, v, a, own), expected)
    torch.testing.assert_close(vmap(vmap(function), (0, 0, 0, None))(q, v, a, own), expected)
    torch.testing.assert_close(vmap(lambda x: function(x, v[0, 0], a[0], own[0]))(q[:, 0]),
                               function(q[:, :1], v[0, 0], a[0], own[0]))


def test_transformations_of_functions():
    model = rbd.sample("iiwa")
    function = rbd.torch_function(model, "inverse_dynamics")
    x = [y.detach() for y in state(model, "inverse_dynamics", (4,))]
    vmap, grad, jacrev = torch.func.vmap, torch.func.grad, torch.func.jacrev
    for found, expected in zip(vmap(jacrev(function, (0, 1, 2)))(*x),
                               rbd.inverse_dynamics_derivatives(model, *arrays(x)), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    second = rbd.inverse_dynamics_second_derivatives(model, *arrays(x))
    np.testing.assert_allclose(vmap(jacrev(jacrev(function)))(*x), second.qq, atol=1e-11)
    np.testing.assert_allclose(vmap(jacrev(jacrev(function, 1), 0))(*x), second.qv.swapaxes(2, 3), atol=1e-11)
    per_state = vmap(grad(lambda *y: function(*y).square().sum()))(*x)
    together = [y.clone().requires_grad_() for y in x]
    function(*together).square().sum().backward()
    torch.testing.assert_close(per_state, together[0].grad)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_compiled_without_breaks_of_the_graph(backend, dtype):
    """Of other batches too."""
    torch.compiler.reset()    # others in this process do not count
    model = rbd.sample("iiwa")
    dynamics = rbd.torch_function(model, "hybrid_dynamics:joint_2", inertias=["link_7"])

    def loss(q, v, a, tau, inertias):
        acceleration, effort = dynamics(torch.sin(q), v, a, tau, inertias=inertias)
        return (acceleration.tanh() * effort).sum(-1)

    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    for count in (3, 8, 11):
        x = state(model, "hybrid_dynamics", (count,), count, dtype)
        x.append(torch.tensor(model.inertial_parameters[-10:], dtype=dtype, requires_grad=True))
        found, expected = compiled(*x), loss(*x)
        torch.testing.assert_close(found, expected)
        for left, right in zip(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), x),
                               strict=True):
            torch.testing.assert_close(left, right)


def test_operators_are_as_torch_wants_them():
    model = rbd.sample("two_link")
    rbd.torch_function(model, "inverse_dynamics")
    from rbd_ros.core.learning.torch_function import _MADE
    x = [y.detach() for y in state(model, "inverse_dynamics")]
    extra = {"value": [], "pull": [x[0]], "bend": [x[0], torch.ones(2, 6, dtype=torch.float64)]}
    for name, more in extra.items():
        operator = getattr(torch.ops.rbd_ros, name).default
        assert set(torch.library.opcheck(operator, (len(_MADE) - 1, [*more, *x])).values()) == {"SUCCESS"}


def test_a_graph_outlives_its_function():
    x = state(rbd.sample("two_link"), "gravity_effort")
    effort = rbd.torch_function(rbd.sample("two_link"), "gravity_effort")(*x)
    effort.sum().backward()
    assert x[0].grad.abs().max() > 0.0


# peers

@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_gradients_are_adams(name):
    adam = pytest.importorskip("adam")
    from adam.pytorch import KinDynComputations

    model = rbd.sample("iiwa")
    peer = KinDynComputations(str(rbd.sample_path("iiwa")), list(model.joint_names), dtype=torch.float64,
                              gravity=torch.tensor([*model.gravity, 0.0, 0.0, 0.0]))
    peer.set_frame_velocity_representation(adam.Representations.BODY_FIXED_REPRESENTATION)
    base, still = torch.eye(4, dtype=torch.float64), torch.zeros(6, dtype=torch.float64)
    function = rbd.torch_function(model, name)
    for seed in range(3):
        x = state(model, name, (), seed)
        M, h = peer.mass_matrix(base, x[0])[6:, 6:], peer.bias_force(base, x[0], still, x[1])[6:]
        theirs = M @ x[2] + h if name == "inverse_dynamics" else torch.linalg.solve(M, x[2] - h)
        ours = function(*x)
        scale = theirs.detach().abs().max()
        torch.testing.assert_close(ours / scale, theirs / scale, rtol=0.0, atol=1e-9)
        weights = torch.randn(7, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        for left, right in zip(torch.autograd.grad(ours @ weights, x), torch.autograd.grad(theirs @ weights, x),
                               strict=True):
            torch.testing.assert_close(left / right.abs().max(), right / right.abs().max(), rtol=0.0, atol=1e-8)


def test_gradients_are_pinocchios():
    pin = pytest.importorskip("pinocchio")
    model, peer = rbd.sample("iiwa"), pin.buildModelFromUrdf(str(rbd.sample_path("iiwa")))
    data = peer.createData()
    x = state(model, "inverse_dynamics", ())
    pin.computeRNEADerivatives(peer, data, *arrays(x))
    by = [data.dtau_dq, data.dtau_dv, np.triu(data.M) + np.triu(data.M, 1).T]
    found = torch.autograd.functional.jacobian(rbd.torch_function(model, "inverse_dynamics"), tuple(x))
    for ours, theirs in zip(found, by, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-10)


def test_the_library_does_not_import_torch_or_jax():
    code = ("import rbd_ros as rbd, sys; rbd.torch_function; rbd.jax_function; "
            "print({'torch', 'jax'} & set(sys.modules))")
    result = subprocess.run([sys.executable, "-c", code], cwd=Path(rbd.__file__).parents[1], check=True, text=True,
                            stdout=subprocess.PIPE)
    assert result.stdout.strip() == "set()"


@pytest.mark.thorough
def test_the_example_finds_load_and_friction(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    import torch_identification

    result = torch_identification.main(quiet=True)
    load = torch_identification.LOAD
    assert abs(result.mass / load.mass - 1.0) < 0.02 and np.abs(result.com - load.com).max() < 2e-3
    np.testing.assert_allclose(result.damping, torch_identification.DAMPING, atol=0.05)
    assert result.error < 5e-3

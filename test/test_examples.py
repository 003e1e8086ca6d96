"""Every public docstring has an example, and it gives what it shows."""
from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest

import rbd_ros as rbd

# What functions return and raise: their examples show it.
RESULTS = {"BaseParameters", "Closest", "ContactProbabilities", "ContactThresholds", "DriveGains", "Estimate",
           "Excitation", "ExternalWrench", "CudaBatch", "FloatTest", "Identification", "OptimalMotion", "PlannedPath",
           "PoseExcitation", "RbdError", "RbdWarning", "SampledPairs", "SingularMassMatrix", "SpecializedModel",
           "TimedPath", "Zeros"}
NEEDED = {"CollisionModel": "coal", "sampled_pairs": "coal", "plan_path": "coal", "casadi_function": "casadi",
          "crocoddyl_model": "crocoddyl", "cuda_batch": "cupy", "jax_function": "jax",    # optional packages
          "torch_function": "torch"}
PUBLIC = {name: value for name in rbd.__all__ if callable(value := getattr(rbd, name))}


def is_result(name):
    value = PUBLIC[name]
    return name in RESULTS or (inspect.isclass(value) and issubclass(value, tuple))


@pytest.mark.parametrize("name", [name for name in PUBLIC if not is_result(name) or ">>>" in PUBLIC[name].__doc__])
@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
def test_the_example_gives_what_it_shows(name):
    if name == "specialize" and not rbd.COMPILED:
        pytest.skip("needs numba")
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(PUBLIC[name]), {"rbd": rbd, "np": np}, name, None, None)
    assert 1 <= len(test.examples) <= 6
    said = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert not said, "".join(said)


def test_dir_has_what_is_for_users_alone():
    assert set(dir(rbd)) == {*rbd.__all__, "__doc__", "__version__"}

"""The example of a ros2_control controller: its arithmetic, compiled with generated C, against this library."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.core.specialize.c_source import c_files

FOLDER = Path(__file__).parents[2] / "examples" / "feedforward_effort_controller"
# reads per line: whether there is a reference, q, v, its position, velocity, acceleration; a cycle of 0.1 s each
PROGRAM = r"""
#include <cstdio>
#include "torque_law.hpp"
using namespace feedforward_effort_controller;
static bool read(Vector & values)
{
  for (double & value : values) {
    if (std::scanf("%lf", &value) != 1) {return false;}
  }
  return true;
}
int main()
{
  TorqueLaw law;
  law.ramp = 0.4;
  law.stiffness.fill(20.0);
  law.damping.fill(3.0);
  Vector q, v, effort{};
  Reference reference;
  int given = 0;
  while (std::scanf("%d", &given) == 1 && read(q) && read(v) && read(reference.position) &&
    read(reference.velocity) && read(reference.acceleration))
  {
    const bool awaits = law.awaits(q, v);
    const bool good = law.update(q, v, given ? &reference : nullptr, 0.1, effort);
    std::printf("%d %.17g", awaits ? -1 : good, law.weight());
    for (double value : effort) {
      std::printf(" %.17g", value);
    }
    std::printf("\n");
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def law(tmp_path_factory):
    """Runs cycles (given, q, v, position, velocity, acceleration); returns (good, weight, effort …) of each."""
    if shutil.which("g++") is None or shutil.which("gcc") is None:
        pytest.skip("no compiler")
    folder = tmp_path_factory.mktemp("controller")
    assert main(["generate", "iiwa", "--name", "arm", "--functions", "inverse_dynamics", "gravity_effort",
                 "-o", str(folder)]) == 0
    (folder / "main.cpp").write_text(PROGRAM)
    strict = ["-Wall", "-Wextra", "-Werror", "-O1", "-I", str(folder), "-I", str(FOLDER)]
    for command in (["gcc", "-std=c99", *strict, "-c", folder / "arm.c", "-o", folder / "arm.o"],
                    ["g++", "-std=c++17", *strict, folder / "main.cpp", folder / "arm.o", "-lm", "-o", folder / "law"]):
        subprocess.run(command, check=True)

    def run(cycles):
        text = "\n".join(" ".join(map(repr, [int(given), *np.ravel(rest).tolist()])) for given, *rest in cycles)
        said = subprocess.run([folder / "law"], input=text, check=True, text=True, stdout=subprocess.PIPE).stdout
        return np.array([line.split() for line in said.splitlines()], dtype=float)

    return run


def states(count):
    return np.random.default_rng(2).uniform(-0.5, 0.5, size=(count, 5, 7))


def test_it_holds_tracks_and_ramps_in_between(law):
    model = rbd.sample("iiwa")
    given = [False, *[True] * 6, *[False] * 6]
    x = states(len(given))
    found = law([(one, *state) for one, state in zip(given, x, strict=True)])
    np.testing.assert_allclose(found[:, 1], [0, .25, .5, .75, 1, 1, 1, .75, .5, .25, 0, 0, 0], atol=1e-12)
    assert (found[:, 0] == 1).all()
    reference = np.zeros((3, 7))
    for one, state, (_, weight, *effort) in zip(given, x, found, strict=True):
        q, v = state[:2]
        reference = state[2:] if one else reference    # the last one, on the way back
        hold = np.clip(rbd.gravity_effort(model, q) - 3.0 * v, -model.effort_limit, model.effort_limit)
        track = np.clip(rbd.inverse_dynamics(model, *reference) + 20.0 * (reference[0] - q)
                        + 3.0 * (reference[1] - v), -model.effort_limit, model.effort_limit)
        np.testing.assert_allclose(effort, hold + weight * (track - hold), rtol=1e-12, atol=1e-12)


def test_efforts_stay_within_the_limits_of_the_arm(law):
    model = rbd.sample("iiwa")
    x = 1e4 * states(20)
    found = law([(True, *state) for state in x])
    assert (np.abs(found[:, 2:]) <= model.effort_limit).all() and (np.abs(found[:, 2:]) == model.effort_limit).any()


def test_a_state_that_is_not_finite_gives_no_torque(law):
    x = states(3)
    broken = x[1].copy()
    broken[0, 3] = np.nan
    unusable = x[2].copy()
    unusable[3, 0] = np.inf    # a reference that is none: it holds
    found = law([(False, *x[0]), (False, *broken), (True, *unusable)])
    assert found[:, 0].tolist() == [1, 0, 1] and found[2, 1] == 0
    np.testing.assert_array_equal(found[1, 2:], found[0, 2:])


def test_before_the_first_state_nothing_has_failed(law):
    x = states(4)
    x[:2, 0], x[3, 1] = np.nan, np.nan
    found = law([(False, *state) for state in x])
    assert found[:, 0].tolist() == [-1, -1, 1, 0]
    assert "if (law_.awaits(q, v)) {\n      return return_type::OK;" in (FOLDER / "controller.cpp").read_text()


def test_a_reference_grows_old_whatever_clock_updates_have(tmp_path):
    """No time stamps are compared: the node's clock and the controller manager's begin at different times."""
    if shutil.which("g++") is None:
        pytest.skip("no compiler")
    (tmp_path / "arm.h").write_text(c_files(rbd.sample("iiwa"), ["inverse_dynamics", "gravity_effort"], "arm")["arm.h"])
    (tmp_path / "main.cpp").write_text(r"""
#include <cstdio>
#include "torque_law.hpp"
int main()
{
  feedforward_effort_controller::Age age;
  for (int number : {0, 0, 1, 1, 1, 2, 2, 2, 2, 0, 0, 3}) {
    std::printf("%d", age.within(0.25, number, 0.1));
  }
  return 0;
}
""")
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", tmp_path, "-I", FOLDER,
                    tmp_path / "main.cpp", "-o", tmp_path / "age"], check=True)
    assert subprocess.run([tmp_path / "age"], check=True, text=True, stdout=subprocess.PIPE).stdout == "001111110001"
    assert "received.time" not in (FOLDER / "controller.cpp").read_text()

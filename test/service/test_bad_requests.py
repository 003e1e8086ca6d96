"""Every bad request is refused with words that help, and changes nothing."""
from __future__ import annotations

import pytest
from support import service_requests as req
from support.service_calls import ask, service, state
from support.service_requests import FIVE_BAR, LOOP, NAMES, SERVICES, Q, V

import rbd_ros as rbd
from rbd_ros.core.model.samples import constraints_from
from rbd_ros.runtime.service.constrained import ConstrainedRequest
from rbd_ros.runtime.service.robot_state import StateRequest
from rbd_ros.runtime.service.server_settings import ServerSettings

NOW = state(req.state())


@pytest.fixture(scope="module")
def made():
    return service()


@pytest.mark.parametrize("kind", SERVICES)
def test_the_unchanged_requests_are_good(made, kind):
    good, bad = SERVICES[kind]
    if kind == "set_payload":
        assert ask(service(), kind, good) == "'tool' carries 2 kg"
    else:
        ask(made, kind, good)
    assert len(bad) >= 12 and len({what for what, _, _ in bad}) == len(bad)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("kind", "fields", "words"), [case[:3] for case in req.CASES], ids=[c[3] for c in req.CASES])
def test_bad_requests_are_refused_with_words_that_help(made, kind, fields, words):
    with pytest.raises(rbd.RbdError) as caught:
        ask(made, kind, fields)
    for word in words:
        assert word in str(caught.value)


def test_without_constraints(made):
    with pytest.raises(rbd.RbdError, match=r"no constraints.*'constraints_file'"):
        service(constraints_file="").constrained(NOW, ConstrainedRequest(1))


def test_the_tolerance_of_constraints_is_a_parameter():
    off = StateRequest(NAMES, req.put(Q, 0, Q[0] + 0.01), V)
    with pytest.raises(rbd.RbdError, match="is open by"):
        service().constrained(off, ConstrainedRequest(1))
    service(constraint_tolerance=0.1).constrained(off, ConstrainedRequest(1))


@pytest.mark.parametrize(("name", "words"), [
    ("delta", "sample 'delta' do not fit robot 'five_bar'"), ("iiwa", "'iiwa' has no constraints"),
    ("/no/such.yaml", "cannot read constraints '/no/such.yaml'"), ("five_baR", "cannot read constraints 'five_baR'")])
def test_constraints_that_are_none(name, words):
    with pytest.raises(rbd.RbdError, match=words):
        ServerSettings.from_values({"constraints_file": name}, FIVE_BAR)


def test_constraints_from_a_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(rbd.sample_path("five_bar").with_suffix(".constraints.yaml").read_text())
    assert constraints_from(str(path), FIVE_BAR).row_names == LOOP.row_names
    assert constraints_from("", FIVE_BAR).size == 0

"""`rbd doctor`: what it finds, where, and that it is quiet about robots that are sound."""

import argparse
import json

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.cli import doctor
from rbd_ros.core.model.files.rotors import MOST_NOTES
from rbd_ros.runtime.robot import MOST_COORDINATES, check_model
from rbd_ros.core.model.checks.plausibility import about_origin, semi_axes
from rbd_ros.core.model.inertia import Inertia

ROD = '<mass value="1"/><inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.001"/>'
LIMIT = '<limit lower="-1" upper="1" velocity="2" effort="3"/>'


def link(name, inertial=ROD, com="0 0 0.2"):
    return f'<link name="{name}"><inertial><origin xyz="{com}"/>{inertial}</inertial></link>' if inertial else (
        f'<link name="{name}"/>')


def joint(name, parent, child, limit=LIMIT, axis="0 1 0", type_="revolute", more="", xyz="0 0 0.5"):
    return (f'<joint name="{name}" type="{type_}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{xyz}"/><axis xyz="{axis}"/>{limit}{more}</joint>')


def arm(upper=None, lower=None, shoulder=None, elbow=None, more=""):
    return ('<robot name="arm"><link name="base"/>' + (upper or link("upper")) + (lower or link("lower"))
            + (shoulder or joint("shoulder", "base", "upper")) + (elbow or joint("elbow", "upper", "lower")) + more
            + "</robot>")


def low(*inertial, **options):
    return arm(lower=link("lower", *inertial, **options))


def bent(*limit, **options):
    return arm(elbow=joint("elbow", "upper", "lower", *limit, **options))


@pytest.fixture
def examine(tmp_path):
    def run(text, **options):
        path = tmp_path / "arm.urdf"
        path.write_text(text)
        return doctor.examine(path, **options)
    return run


def chain(count):
    """A chain of so many links."""
    return '<robot name="chain"><link name="l0"/>' + "".join(
        f'<link name="l{i}"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" '
        f'iyz="0"/></inertial></link><joint name="j{i}" type="revolute"><origin xyz="0 0 1"/><parent link="l{i - 1}"/>'
        f'<child link="l{i}"/><limit lower="-1" upper="1" effort="9" velocity="1"/></joint>'
        for i in range(1, count + 1)) + "</robot>"


def test_a_very_large_robot_is_looked_at_without_its_mass_matrix(examine, monkeypatch):
    """Whose memory grows with the square of the joints, the time for it with their cube."""
    def refuse(*arguments):
        raise AssertionError
    monkeypatch.setattr(doctor, "mass_matrix", refuse)
    report = examine(chain(1000))
    assert report.model.nv == 1000 and report.matrices is None
    assert [(finding.severity, finding.topic) for finding in report.findings] == [("note", "mass matrix not checked")]
    assert "1000 degrees of freedom" in doctor.as_text(report)


def test_nodes_refuse_a_robot_that_is_too_large():
    model = rbd.load_urdf(chain(MOST_COORDINATES + 1))
    with pytest.raises(rbd.RbdError, match=f"1001 degrees of freedom, expected 1 to {MOST_COORDINATES}"):
        check_model(model)


def test_names_that_are_missing_in_a_large_file_do_not_hold_it_up(examine):
    """Each would be compared with all others."""
    wrong = "".join(f'<transmission name="t{i}"><joint name="k{i}"/><actuator name="a"><drake:rotor_inertia value="1"/>'
                    "</actuator></transmission>" for i in range(2000))
    notes = [finding for finding in examine(chain(1000).replace("</robot>", wrong + "</robot>")).findings
             if finding.topic == "not read"]
    assert len(notes) == MOST_NOTES + 1 and "of 1980 more" in notes[-1].message


def run(*arguments):
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    return doctor.run(parser.parse_args([str(argument) for argument in arguments]))


def test_a_sound_robot_is_left_in_peace(examine):
    assert examine(arm()).findings == ()


HEAVY = '<mass value="1"/><inertia ixx="{0}" ixy="0" ixz="0" iyy="{0}" iyz="0" izz="{0}"/>'
ILL = {    # text → severity, topic, subject, words of the message or fix
    "mass": (low(ROD.replace('"1"', '"-1"', 1)), "error", "negative mass", "lower", "-1 kg"),
    "massless inertia": (low(ROD.replace('"1"', '"0"', 1)), "warning", "inertia without mass", "lower", "mass is 0"),
    "point": (low('<mass value="1"/>'), "warning", "point mass", "lower", "1 kg"),
    "definite": (low(ROD.replace("0.001", "-0.001")), "error", "inertia not positive definite", "lower", "-0.001"),
    "triangle": (low(ROD.replace("0.001", "0.05")), "warning", "triangle inequality", "lower", "by 0.01 kg m²"),
    "no body": (low('<mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="5"/>'), "error",
                "triangle inequality", "lower", "1, 1, 5 kg m²"),
    "small": (low(HEAVY.format(1e-8)), "warning", "inertia too small for the mass", "lower", "metal"),
    "kg mm²": (low(HEAVY.format(2000)), "warning", "inertia too large for the mass", "lower", "in kg mm²"),
    "g mm²": (low(HEAVY.format(2e6)), "warning", "inertia too large for the mass", "lower", "in g mm²"),
    "thin": (low(ROD.replace("0.001", "0.04")), "note", "thinner than a real body", "lower", "mm"),
    "com": (low(com="0 0 200"), "warning", "centre of mass far away", "lower", "millimetres"),
    "swapped": (bent(LIMIT.replace("-1", "9")), "error", "lower limit above upper", "elbow", "lower 9 > upper 1"),
    "degrees": (bent(LIMIT.replace('"-1"', '"-90"').replace('"1"', '"90"')), "warning", "range in degrees?", "elbow",
                "-90 … 90 rad is 29 turns"),
    "no range": (bent('<limit velocity="2" effort="3"/>'), "warning", "no range", "elbow", "cannot move"),
    "no effort": (bent(LIMIT.replace('"3"', '"0"')), "warning", "effort limit 0", "elbow", "override"),
    "no speed": (bent(LIMIT.replace('"2"', '"0"')), "warning", "velocity limit 0", "elbow", "data sheet"),
    "negative": (bent(LIMIT.replace('"3"', '"-3"')), "error", "negative limit", "elbow", "-3"),
    "infinite": (bent(LIMIT.replace('"3"', '"inf"')), "note", "infinite limit", "elbow", "effort"),
    "no limit": (bent(""), "warning", "no limits", "elbow", "<limit>"),
    "continuous": (bent("", type_="continuous"), "note", "no limits", "elbow", "effort"),
    "axis": (bent(axis="0 2 0"), "warning", "axis not of length one", "elbow", "2"),
    "zero axis": (bent(axis="0 0 0"), "error", "zero axis", "elbow", "zero"),
    "damping": (bent(more='<dynamics damping="-1"/>'), "error", "negative dissipation", "elbow", "damping"),
    "planar": (bent(type_="planar"), "note", "planar joint", "elbow", "3"),
    "mimic range": (bent(more='<mimic joint="shoulder" multiplier="2"/>'),
                    "warning", "mimic limits disagree", "elbow", "[-2, 2]"),
    "mimic 0": (bent(more='<mimic joint="shoulder" multiplier="0"/>'),
                "warning", "mimic multiplier 0", "elbow", "shoulder"),
    "mimic of nobody": (bent(more='<mimic joint="sholder"/>'), "error", "not loadable", "arm", "sholder"),
    "fixed mass": (arm(shoulder=joint("shoulder", "base", "upper", type_="fixed")), "note", "mass on the fixed base",
                   "upper", "1 kg"),
    "missing inertial": (arm(lower=link("lower", ""),
                             more='<link name="tip"/>' + joint("f", "lower", "tip", type_="fixed")),
                         "note", "massless bodies", "elbow", "inertia: lower, tip"),
    "massless end": (low(""), "error", "singular mass matrix", "elbow", "rotor_inertia"),
    "spun needle": (arm(lower=link("lower", '<mass value="1"/>'), elbow=joint("elbow", "upper", "lower", axis="0 0 1")),
                    "error", "singular mass matrix", "elbow", "no inertia"),
    "coaxial": (arm(upper=link("upper", ""), elbow=joint("elbow", "upper", "lower", xyz="0 0 0")), "error",
                "singular mass matrix", "shoulder, elbow", "against each other"),
    "indefinite": (low('<mass value="-20"/>'), "error", "singular mass matrix", "shoulder", "negative"),
    "conditioned": (arm(lower=link("lower", ROD.replace("0.001", "1e-10")),
                        elbow=joint("elbow", "upper", "lower", axis="0 0 1")), "warning", "ill-conditioned mass matrix",
                    "elbow", "shoulder"),
    "scaled": (arm(more='<link name="x"><visual><geometry><mesh filename="x" scale="0.001 0.001 0.001"/></geometry>'
                   '</visual></link>' + joint("f", "lower", "x", type_="fixed")), "note", "scaled meshes",
               "visuals and collisions", "0.001"),
    "misspelt": (arm(lower=link("lower").replace("inertial>", "inertal>") + "<!-- -->"), "warning", "not read",
                 "link 'lower'", "inertal"),
}


@pytest.mark.parametrize("case", ILL)
def test_finds(case, examine):
    text, severity, topic, subject, *words = ILL[case]
    report = examine(text)
    found = [finding for finding in report.findings if (finding.topic, finding.subject) == (topic, subject)]
    assert found, report.findings
    assert found[0].severity == severity
    assert all(word in found[0].message + found[0].fix for word in words), found[0]
    assert report.healthy == all(finding.severity != "error" for finding in report.findings)


def test_singular_only_where_axes_align(examine):
    hand = link("hand", '<mass value="1"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>', "0 0 0")
    text = arm(upper=link("upper", ""), lower=link("lower", ""), shoulder=joint("roll", "base", "upper", axis="0 0 1"),
               elbow=joint("pitch", "upper", "lower", xyz="0 0 0"),
               more=hand + joint("yaw", "lower", "hand", axis="0 0 1", xyz="0 0 0"))
    found = [f for f in examine(text).findings if f.topic == "singular at neutral"]
    assert [f.severity for f in found] == ["warning"] and set(found[0].subject.split(", ")) == {"roll", "yaw"}


def test_inertias_about_the_origin(examine):
    rng = np.random.default_rng(1)
    right, wrong = {}, {}
    for k in range(6):
        sides = rng.uniform(0.05, 0.4, 3)
        mass, com = rng.uniform(1, 5), rng.uniform(0.3, 1.0, 3) * sides
        inertia = Inertia(mass, com, mass / 12 * np.diag(sides @ sides - sides**2))
        right[f"l{k}"] = inertia
        wrong[f"l{k}"] = Inertia(mass, com, inertia.about_origin)
    assert about_origin(right) == []
    (found,) = about_origin(wrong)
    assert found.severity == "warning" and set(found.subject.split(", ")) == set(wrong)


def test_the_ellipsoid_of_a_ball():
    mass, radius = 3.0, 0.2
    assert np.allclose(semi_axes(mass, np.full(3, 0.4 * mass * radius**2)), radius)


def test_the_iiwa_of_identified_parameters(capsys):
    assert run(rbd.sample_path("iiwa")) == 0
    text = capsys.readouterr().out
    assert "triangle inequality (2)" in text and "link_4" in text and "link_7" in text and "error" not in text.lower()
    assert "7 degrees of freedom" in text and "20.67 kg" in text
    assert all(f"joint_{k}" in text for k in range(1, 8))
    assert max(map(len, text.splitlines())) <= 100


ROTORS = ('<transmission name="{0}_drive"><joint name="{0}"/><actuator name="m"><drake:rotor_inertia '
          'xmlns:drake="http://drake.mit.edu" value="1e-4"/><drake:gear_ratio xmlns:drake="http://drake.mit.edu" '
          'value="100"/></actuator></transmission>')
DRY = '<dynamics damping="0.5" friction="1"/>'


def test_the_last_line_sums_up_what_torque_will_be(tmp_path, capsys):
    path = tmp_path / "arm.urdf"

    def last(text):
        path.write_text(text)
        run(path)
        said = capsys.readouterr().out
        return " ".join(said[said.index("torque from this file"):].split())

    both = {name: joint(name, *links, more=DRY) for name, links in (("shoulder", ("base", "upper")),
                                                                    ("elbow", ("upper", "lower")))}
    rotors = ROTORS.format("shoulder") + ROTORS.format("elbow")
    assert last(arm(**both, more=rotors)) == "torque from this file will be as accurate as its numbers"
    said = last(arm())
    assert "will lack rotor inertia (rotor_inertia) and friction (<dynamics>): `rbd identify`" in said
    said = last(arm(shoulder=both["shoulder"], more=rotors))
    assert "will lack friction (<dynamics>) of elbow:" in said and "rotors" not in said
    assert "look at the 1 warning above first" in last(low('<mass value="1"/>'))
    assert last(ILL["no body"][0]).startswith("torque from this file would be wrong")
    assert run(path, "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert data["lacking"]["friction"] == ["shoulder", "elbow"] and "wrong" in data["verdict"]


def test_two_link_has_nothing_wrong_and_both_roots_are_read(capsys):
    assert run(rbd.sample_path("two_link")) == 0
    assert "no problems found" in capsys.readouterr().out
    assert run(rbd.sample_path("two_link"), "--root", "floating", "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["nq"], data["nv"]) == (9, 8)    # and its base has no mass, so it cannot float
    assert set(data["findings"][0]["subject"].split(", ")) == {"root_joint/1", "shoulder"}


def test_json_says_the_same_as_the_text(tmp_path, capsys):
    path = tmp_path / "arm.urdf"
    path.write_text(arm(lower=link("lower", ""), more=joint("m", "lower", "tip", more='<mimic joint="elbow"/>')
                        + link("tip", "")))
    assert run(path, "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert data["name"] == "arm" and data["mass"] == 1.0 and not data["healthy"] and data["condition_number"] is None
    assert [row["name"] for row in data["joints"]] == ["shoulder", "elbow", "m"]
    assert data["joints"][2]["mimic"] == ["elbow", 1.0, 0.0] and data["joints"][0]["effort"] == 3.0
    assert run(path) == 1
    text = capsys.readouterr().out
    assert all(finding["subject"].split(", ")[0] in text for finding in data["findings"])
    assert "mimics elbow" in text and "1 error" in text


def test_many_findings_of_a_kind_are_one_paragraph(examine):
    names = [f"part_{k}" for k in range(30)]
    text = arm(more="".join(link(name, '<mass value="1"/>') + joint(f"j_{name}", "lower", name, type_="fixed")
                            for name in names))
    shown = doctor.as_text(examine(text))
    assert shown.count("point mass") == 1 and "and 18 more" in shown and len(shown.splitlines()) < 30


@pytest.mark.parametrize("content", [None, "", "<robot", "<sdf/>", "<robot><link/></robot>", "\0\1",
                                     arm(lower="<link/>")])
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_file_that_is_none_is_an_error_without_a_traceback(tmp_path, capsys, content, flags):
    path = tmp_path / "broken.urdf"
    if content is not None:
        path.write_text(content)
    assert run(path, *flags) == 1
    out, err = capsys.readouterr()
    message = json.loads(out)["error"] if flags else err
    assert "broken.urdf" in message and "Traceback" not in out + err


@pytest.mark.parametrize("text", ['<robot name="r"/>', arm(more='<link name="lost"/>'),
                                  arm(elbow=joint("elbow", "lower", "upper")), '<robot><link name="only"/></robot>'])
def test_robots_without_a_tree_still_get_a_report(examine, text):
    report = examine(text)
    assert doctor.as_text(report) and json.dumps(doctor.as_json(report))
    assert report.healthy == ("only" in text)


def test_a_missing_extension_is_said(capsys, monkeypatch):
    from rbd_ros.cli.main import main

    monkeypatch.setattr(doctor, "COMPILED", True)
    monkeypatch.setattr(doctor, "EXTENSION", None)
    assert main(["doctor", "two_link"]) == 0
    assert "install a C compiler" in capsys.readouterr().out

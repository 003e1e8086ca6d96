"""Broken robot descriptions: each is an `RbdError` that names the thing, or loads to a valid model; nothing else."""

import math
import random
import re
import time
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.samples import samples

import rbd_ros as rbd
from rbd_ros.core.model.files.xml_tree import MAX_BYTES, MAX_DEPTH

SEEDS = settings(max_examples=samples(250), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def arm(link="", joint="", robot="", type_='type="revolute"',
        inertial='<mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>',
        ends='<parent link="base"/><child link="rod"/>', axis='<axis xyz="0 1 0"/>',
        limit='<limit lower="-1" upper="1" velocity="2" effort="3"/>', origin='<origin xyz="0 0 1" rpy="0 0 0"/>'):
    """URDF of one joint, `hinge`, and two links, `base` and `rod`, of which any piece can be replaced."""
    return (f'<robot name="r"><link name="base"/><link name="rod"><inertial>{inertial}</inertial>{link}</link>'
            f'<joint name="hinge" {type_}>{origin}{ends}{axis}{limit}{joint}</joint>{robot}</robot>')


def refused(text, *words):
    """The message, which must contain all the words; no warning may stand in for the error."""
    with pytest.raises(rbd.RbdError) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore", rbd.RbdWarning)
        rbd.load_urdf(text)
    message = str(caught.value)
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} not in: {message}"
    assert len(message) < 3000
    return message


def loads_or_is_refused(text):
    """A model whose numbers are finite, or None with an `RbdError`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rbd.RbdWarning)
        try:
            model = rbd.load_urdf(text)
        except rbd.RbdError as error:
            assert str(error)
            return None
    assert len(set(model.joint_names)) == len(model.joints) and math.isfinite(model.total_mass)
    assert (model.position_lower <= model.position_upper).all() and (model.effort_limit >= 0).all()
    if model.nv:
        q = model.neutral()
        M = rbd.mass_matrix(model, q)
        assert np.isfinite(M).all() and np.abs(M - M.T).max() <= 1e-9 * np.abs(M).max()
        assert np.isfinite(rbd.inverse_dynamics(model, q, np.ones(model.nv), np.ones(model.nv))).all()
    assert np.isfinite(rbd.forward_kinematics(model, model.neutral())).all()
    return model


def test_the_pattern_itself_loads():
    assert loads_or_is_refused(arm()).joint_names == ("hinge",)


BROKEN = {
    "empty text": ("", "empty"),
    "blank text": (" \n ", "empty"),
    "no file": ("nowhere.urdf", "nowhere.urdf", "No such file"),
    "xacro file": ("arm.urdf.xacro", "arm.urdf.xacro", "No such file"),
    "not xml": ("<", "not well-formed"),
    "tag left open": (arm().replace("</joint>", ""), "not well-formed", "line 1"),
    "two roots": (arm() + "<robot/>", "not well-formed"),
    "sdf": ("<sdf><model/></sdf>", "<sdf>", "<robot>", "export URDF"),
    "other root": ("<Robot/>", "<Robot>", "<robot>"),
    "no links": ("<robot name='r'/>", "no links"),
    "xacro inside": (arm(robot='<xacro:arm name="x"/>'), "xacro:arm", "expand"),
    "xacro number": (arm(axis='<axis xyz="0 ${s} 0"/>'), "hinge", "${s}", "xacro"),
    "link without name": (arm(robot="<link/>"), "<link>", "no name", "line 1"),
    "link with blank name": (arm(robot='<link name=" "/>'), "<link>", "no name"),
    "joint without name": (arm(robot='<joint type="fixed"/>'), "<joint>", "no name"),
    "link twice": (arm(robot='<link name="rod"/>'), "duplicate link", "'rod'"),
    "joint twice": (arm(robot=re.search("<joint.*</joint>", arm())[0]), "duplicate joint", "'hinge'"),
    "no type": (arm(type_=""), "hinge", "type", "revolute"),
    "unknown type": (arm(type_='type="revolut"'), "hinge", "revolut", "did you mean 'revolute'"),
    "no parent": (arm(ends='<child link="rod"/>'), "hinge", "<parent"),
    "no child": (arm(ends='<parent link="base"/>'), "hinge", "<child"),
    "parent without link": (arm(ends='<parent/><child link="rod"/>'), "hinge", "parent", "link"),
    "empty child": (arm(ends='<parent link="base"/><child link=""/>'), "hinge", "child", "link"),
    "unknown parent": (arm(ends='<parent link="bas"/><child link="rod"/>'), "hinge", "'bas'", "did you mean 'base'"),
    "unknown child": (arm(ends='<parent link="base"/><child link="rodd"/>'), "hinge", "'rodd'", "'rod'"),
    "two parents": (arm(ends='<parent link="base"/><parent link="rod"/><child link="rod"/>'),
                    "hinge", "second <parent>"),
    "joint onto itself": (arm(ends='<parent link="rod"/><child link="rod"/>'), "cycle", "hinge"),
    "disconnected": (arm(robot='<link name="lost"/>'), "disconnected", "lost"),
    "cycle apart": (arm(robot='<link name="a"/><link name="b"/><joint name="ab" type="fixed"><parent link="a"/>'
                        '<child link="b"/></joint><joint name="ba" type="fixed"><parent link="b"/><child link="a"/>'
                        '</joint>'), "cycle", "ab", "ba"),
    "loop": (arm(robot='<joint name="again" type="fixed"><parent link="base"/><child link="rod"/></joint>'),
             "rod", "hinge", "again", "constraint"),
    "zero axis": (arm(axis='<axis xyz="0 0 0"/>'), "hinge", "axis", "length zero"),
    "axis without xyz": (arm(axis="<axis/>"), "hinge", "axis", "xyz", "3 numbers"),
    "axis of two": (arm(axis='<axis xyz="0 1"/>'), "hinge", "axis", "0 1", "3 finite"),
    "axis with commas": (arm(axis='<axis xyz="0,1,0"/>'), "hinge", "axis", "0,1,0"),
    "axis too long": (arm(axis='<axis xyz="0 1e200 0"/>'), "hinge", "axis", "1e200"),
    "two axes": (arm(joint='<axis xyz="1 0 0"/>'), "hinge", "second <axis>"),
    "two inertials": (arm(link="<inertial><mass value='1'/></inertial>"), "rod", "second <inertial>"),
    "two masses": (arm(inertial='<mass value="1"/><mass value="2"/>'), "rod", "second <mass>"),
    "no mass": (arm(inertial='<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'), "rod", "<mass"),
    "mass without value": (arm(inertial="<mass/>"), "rod", "mass", "value"),
    "mass with unit": (arm(inertial='<mass value="2 kg"/>'), "rod", "mass", "2 kg"),
    "mass with underscore": (arm(inertial='<mass value="1_0"/>'), "rod", "mass", "1_0"),
    "mass in other digits": (arm(inertial='<mass value="٣"/>'), "rod", "mass"),
    "huge mass": (arm(inertial='<mass value="1e300"/>'), "rod", "mass", "1e300", "unit"),
    "inertia without izz": (arm(inertial='<mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0"/>'),
                            "rod", "inertia", "izz"),
    "overflowing origin": (arm(origin='<origin xyz="1e999 0 0"/>'), "hinge", "origin xyz", "1e999"),
    "empty rpy": (arm(origin='<origin rpy=""/>'), "hinge", "origin", "rpy", "3 numbers"),
    "limits swapped": (arm(limit='<limit lower="2" upper="1" velocity="1" effort="1"/>'), "hinge", "lower", "upper"),
    "negative effort": (arm(limit='<limit velocity="1" effort="-1"/>'), "hinge", "effort", "negative"),
    "negative velocity": (arm(limit='<limit velocity="-1" effort="1"/>'), "hinge", "velocity", "negative"),
    "no effort": (arm(limit='<limit lower="0" upper="1" velocity="1"/>'), "hinge", "limit", "effort"),
    "nan limit": (arm(limit='<limit lower="nan" upper="1" velocity="1" effort="1"/>'), "hinge", "lower", "nan"),
    "negative damping": (arm(joint='<dynamics damping="-1"/>'), "hinge", "damping", "negative"),
    "infinite friction": (arm(joint='<dynamics friction="inf"/>'), "hinge", "friction", "inf"),
    "mimic of nobody": (arm(joint='<mimic joint="hing"/>'), "hinge", "'hing'", "did you mean 'hinge'"),
    "mimic of itself": (arm(joint='<mimic joint="hinge"/>'), "hinge", "cycle"),
    "mimic without joint": (arm(joint='<mimic multiplier="2"/>'), "hinge", "mimic", "joint"),
    "mimic without number": (arm(joint='<mimic joint="hinge" multiplier="x"/>'), "hinge", "multiplier", "x"),
    "deep nesting": ("<robot>" + "<a>" * 50_000 + "</a>" * 50_000 + "</robot>", str(MAX_DEPTH), "deep"),
    "deep inside a link": (arm(link="<a>" * 50_000 + "</a>" * 50_000), str(MAX_DEPTH), "deep"),
    "external entity": ('<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/hostname">]><robot name="&e;"/>', "DOCTYPE"),
    "undefined entity": ('<robot name="&lol;"/>', "not well-formed", "entity"),
    "wrong type of argument": (17, "int", "path"),
    "bytes": (b"<robot/>", "bytes", "path"),
    "none": (None, "NoneType", "path"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_says_what_is_broken_and_where(case):
    text, *words = BROKEN[case]
    refused(text, *words)


def test_a_billion_laughs_are_refused_at_once():
    entities = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
    start = time.process_time()
    refused(f'<!DOCTYPE lolz [<!ENTITY l0 "lol">{entities}]><robot name="r">&l11;</robot>', "DOCTYPE", "line 1")
    assert time.process_time() - start < 1.0


ATTRIBUTES = {    # attribute: the text that holds it, the name that the message must give
    "mass value": ('<mass value="2"/>', "2", "rod"), "inertia ixx": ('ixx="1"', "1", "rod"),
    "inertia iyz": ('iyz="0"', "0", "rod"), "axis xyz": ('xyz="0 1 0"', "0 1 0", "hinge"),
    "origin xyz": ('xyz="0 0 1"', "0 0 1", "hinge"), "origin rpy": ('rpy="0 0 0"', "0 0 0", "hinge"),
    "limit effort": ('effort="3"', "3", "hinge"), "limit velocity": ('velocity="2"', "2", "hinge"),
    "limit lower": ('lower="-1"', "-1", "hinge"),
}
NO_NUMBER = st.one_of(
    st.sampled_from(["nan", "NaN", "-nan", "abc", "", " ", "1,5", "0x10", "1e", "--1", "1..2", "1f", "½", "None",
                     "true", "1 2", "0 0 0 0", "1e3e3", "∞", "$(arg x)", "1;2", "+", "."]),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Nd"], exclude_characters='<&"'), max_size=12)
    .filter(lambda text: text.strip().lower().lstrip("+-") not in ("inf", "infinity")))


@SEEDS
@given(st.sampled_from(sorted(ATTRIBUTES)), NO_NUMBER)
def test_an_attribute_that_is_no_number_is_named(attribute, value):
    whole, old, owner = ATTRIBUTES[attribute]
    name = attribute.split()[1]
    text = arm().replace(whole, whole.replace(f'"{old}"', f'"{value}"'), 1)
    refused(text, owner, name)


@SEEDS
@given(st.one_of(st.text(max_size=200), st.text(alphabet='<>/="robtlinkjea \n&;!-?[]', max_size=200)))
def test_any_text(text):
    loads_or_is_refused(text)
    loads_or_is_refused(f"<robot>{text}</robot>")
    loads_or_is_refused(f'<robot><link name="{text}"/></robot>')


@SEEDS
@given(st.binary(max_size=300),
       st.sampled_from([b"", b"<robot>", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf<robot>", b"\x00"]))
def test_any_file(tmp_path_factory, content, head):
    path = tmp_path_factory.getbasetemp() / "any.urdf"
    path.write_bytes(head + content)
    with pytest.raises(rbd.RbdError, match=re.escape("any.urdf")):
        rbd.load_urdf(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"])
def test_encodings_that_xml_knows(tmp_path, encoding):
    declared = {"utf-8-sig": "utf-8", "utf-16-le": "utf-16", "utf-16-be": "utf-16"}.get(encoding, encoding)
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    text = f'{mark}<?xml version="1.0" encoding="{declared}"?>\n<!-- ä -->' + arm().replace("hinge", "gelenk_ä")
    path = tmp_path / "arm.urdf"
    path.write_bytes(text.encode(encoding))
    assert rbd.load_urdf(path).joint_names == ("gelenk_ä",)


@pytest.mark.parametrize(("content", "words"), [
    ('<?xml version="1.0" encoding="utf-32"?>'.encode("utf-32"), ["not well-formed"]),
    (b'<?xml version="1.0" encoding="klingon"?><robot/>', ["not well-formed", "encoding"]),
    (b'<?xml version="1.0" encoding="utf-8"?><robot name="\xe4"/>', ["not well-formed"]),
    (b"", ["empty"]), (b"\xef\xbb\xbf", ["not well-formed"]), (b"\x7fELF" + bytes(100), ["not well-formed"]),
    (b"<robot>" + b" " * MAX_BYTES, ["larger", "MiB"]),
], ids=["utf-32", "unknown", "not utf-8", "empty", "mark only", "binary", "huge"])
def test_files_that_are_none(tmp_path, content, words):
    path = tmp_path / "odd.urdf"
    path.write_bytes(content)
    refused(path, "odd.urdf", *words)


def test_a_folder_and_a_path_that_is_none(tmp_path):
    refused(tmp_path, str(tmp_path), "directory")
    refused("a" * 100_000, "aaa")
    refused("a\0b", "cannot read")


@pytest.mark.parametrize("sample", ["two_link", "iiwa"])
def test_truncated_anywhere(sample):
    text = rbd.sample_path(sample).read_text()
    for end in range(0, len(text) - 10, max(1, len(text) // 150)):
        if "<" in text[:end]:
            refused(text[:end], "line")


VALUES = ["", "0", "-1", "1", "nan", "inf", "-inf", "1e400", "1e300", "1e-320", "abc", "0 0 0", "1 2", "base", "fixed",
          "floating", "planar", "prismatic", "spherical", "шарнир", "a" * 300]


def mutated(text, random_):
    """The text with a few lines, attributes or characters changed."""
    lines = text.splitlines()
    for _ in range(random_.randint(1, 3)):
        at = random_.randrange(len(lines))
        what = random_.randrange(6)
        attributes = list(re.finditer(r'(\w+)="([^"]*)"', lines[at]))
        if what == 0:
            del lines[at]
        elif what == 1:
            lines.insert(random_.randrange(len(lines)), lines[at])
        elif what == 2 and lines[at]:
            k = random_.randrange(len(lines[at]))
            lines[at] = lines[at][:k] + random_.choice('<>"=/ x0\0é') + lines[at][k + 1:]
        elif what == 3:
            other = random_.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif attributes:
            found = random_.choice(attributes)
            new = random_.choice(VALUES) if what == 4 else f"{random_.uniform(-3, 3):.3g}"
            start, end = found.span(2) if random_.random() < 0.8 else found.span(1)
            lines[at] = lines[at][:start] + new + lines[at][end:]
    return "\n".join(lines)


@pytest.mark.parametrize("sample", ["two_link", "iiwa"])
def test_mutations_load_or_are_refused(sample):
    text = rbd.sample_path(sample).read_text()
    text = text[text.index("<robot"):]
    outcomes = [loads_or_is_refused(mutated(text, random.Random(seed))) for seed in range(250)]
    loaded = sum(model is not None for model in outcomes)
    assert 20 < loaded < 230    # both happen


@pytest.mark.parametrize(("text", "words"), [
    (arm(inertial='<mass value="-2"/>'), ["link 'rod'", "mass"]),
    (arm(inertial='<mass value="2"/><inertia ixx="-1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'),
     ["link 'rod'", "positive definite"]),
    (arm(inertial='<mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="3"/>'),
     ["link 'rod'", "triangle"]),
    (arm(inertial='<mass value="2"/>'), ["link 'rod'", "rotational inertia"]),
    (arm(limit='<limit lower="-1" uper="1" velocity="2" effort="3"/>').replace('lower="-1"', ""),
     ["joint 'hinge'", "uper", "upper"]),
    (arm(link='<inertail><mass value="1"/></inertail>').replace("inertial>", "gone>"),
     ["link 'rod'", "inertail", "inertial"]),
    (arm(robot='<Link name="x"/>'), ["Link", "link"]),
    (arm(axis='<axs xyz="0 1 0"/>'), ["joint 'hinge'", "axs", "axis"]),
], ids=["mass", "definite", "triangle", "point", "attribute", "inertial", "link", "axis"])
def test_warnings_name_the_link_or_joint(text, words):
    with pytest.warns(rbd.RbdWarning) as caught:
        rbd.load_urdf(text)
    assert any(all(word in str(item.message) for word in words) for item in caught)


def test_what_dynamics_does_not_read_may_be_anything():
    text = arm(link='<visual><geometry><box size="x y z"/></geometry></visual><collision/><visual/>',
               joint='<safety_controller k_velocity="?"/><calibration/>',
               robot='<gazebo reference="?"><p><q/></p></gazebo><transmission/><material/>')
    fixed = '<joint name="f" type="fixed"><parent link="rod"/><child link="t"/><axis xyz="0 0 0"/><limit/></joint>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rbd.load_urdf(text.replace("</robot>", '<link name="t"/>' + fixed + "</robot>")).nv == 1

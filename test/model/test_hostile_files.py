"""YAML and URDF from anywhere: nothing but `RbdError` comes out, soon, and in a message that one can read."""
from __future__ import annotations

import random
import time
import warnings
from pathlib import Path

import pytest

import rbd_ros as rbd
from rbd_ros.core.errors import LONGEST, shown, unknown_name
from rbd_ros.core.model.samples import constraints_from
from rbd_ros.runtime.parameters import Parameter

ROOT = Path(__file__).parents[2]
ACTUATION = (ROOT / "config/sea_example.actuation.yaml").read_text()
FIVE_BAR = rbd.sample_path("five_bar").with_suffix(".constraints.yaml").read_text()
GEAR = "constraints:\n  - {name: g, type: coupling, terms: {shoulder: 1.0, elbow: [-2.0, 0.1]}, constant: 0.0}\n"
URDF = rbd.sample_path("two_link").read_text()
ARM = rbd.sample("two_link")
DRIVES = "actuation:\n  shoulder: {type: rigid}\n  elbow: {type: series_elastic, stiffness: 100.0}\n"
DIGITS = "9" * 400
BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{new}: &{new} [*{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}]\n"
    for old, new in zip("abcdefghi", "bcdefghij", strict=True))
READERS = {"actuation": lambda text: rbd.load_actuation(text, ARM),
           "constraints": lambda text: rbd.load_constraints(text, ARM), "urdf": rbd.load_urdf}


def refused(reader, text, limit=5.0):
    """The message, which is short and came soon; None where the text is taken."""
    begin = time.process_time()
    message = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            READERS[reader](text)
        except rbd.RbdError as error:
            message = str(error)
    assert time.process_time() - begin < limit
    assert all(len(str(text)) <= LONGEST + 3 for text in [message or "", *(item.message for item in caught)])
    return message


HOSTILE = {    # → words of the message
    "date": ("actuation:\n  elbow: {type: rigid, motor: {rotor_inertia: 2024-01-01}}", ["elbow", "rotor_inertia", "2"]),
    "no date": ("actuation:\n  elbow: {type: 2024-13-77}", ["elbow", "type"]),
    "python tag": ("actuation: !!python/object/apply:os.system ['true']", ["actuation", "line 1"]),
    "set": ("actuation: !!set {a, b}", ["actuation", "set"]),
    "binary": ("actuation: !!binary aGVsbG8=", ["actuation", "binary"]),
    "wrong tag": ("actuation: {elbow: !!int abc}", ["elbow", "abc", "int"]),
    "digits": (f"actuation:\n  shoulder: {{type: series_elastic, stiffness: {DIGITS}}}", ["shoulder", "stiffness"]),
    "many digits": (f"actuation:\n  elbow: {{type: series_elastic, stiffness: {DIGITS * 20}}}", ["elbow", "stiffness"]),
    "long text": ("actuation:\n  elbow: {type: " + "x" * 100_000 + "}", ["elbow", "type"]),
    "long key": ("actuation:\n  " + "x" * 900 + ": {type: rigid}", ["xxx"]),
    "deep": ("actuation: " + "[" * 5000 + "]" * 5000, ["nested"]),
    "rather deep": ("actuation: " + "[" * 40 + "]" * 40, ["actuation", "nested"]),
    "number as key": ("actuation:\n  1: {type: rigid}", ["actuation", "1", "quote"]),
    "list as key": ("actuation:\n  ? [a, b]\n  : {type: rigid}", ["actuation", "key"]),
    "nothing as key": ("actuation:\n  ~: {type: rigid}", ["actuation", "key"]),
    "alias of itself": ("actuation: &a\n  elbow: *a", ["elbow", "alias"]),
    "aliases": (BOMB + "actuation: *j", ["aliases"]),
    "merged aliases": ("x: &a {p: 1}\n" + "".join(f"y{i}: &{b} {{<<: [{', '.join([f'*{a}'] * 9)}]}}\n" for i, (a, b)
                       in enumerate(zip("abcdefghi", "bcdefghij", strict=True))) + "actuation: *j", ["aliases"]),
    "large": ("actuation: [" + "1, " * 100_000 + "1]", ["characters"]),
    "not a number": ("actuation:\n  elbow: {type: series_elastic, stiffness: .nan}", ["elbow"]),
    "infinite": ("actuation:\n  elbow: {type: series_elastic, stiffness: .inf}", ["elbow"]),
    "truth": ("actuation:\n  elbow: {type: series_elastic, stiffness: true}", ["elbow", "stiffness"]),
    "control characters": ("actuation: \x00\x07", ["actuation"]),
    "nothing": (":\n", ["actuation"]), "two documents": ("a: 1\n---\nb: 2\n", ["actuation"]),
    "unknown anchor": ("actuation: *b", ["b"]), "tab": ("actuation:\n\t- 1", ["actuation text"]),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_yaml(case):
    text, words = HOSTILE[case]
    message = refused("actuation", text)
    assert message and all(word in message for word in words), message
    assert refused("constraints", text.replace("actuation", "constraints"))


@pytest.mark.parametrize("entry", [
    "terms: {shoulder: %s}", "terms: {shoulder: [1, %s]}", "terms: {shoulder: 1}, constant: %s", "name: %s",
    "name: %s, terms: {shoulder: 1}, extra: 1"])
@pytest.mark.parametrize("value", [DIGITS, "2024-01-01", "[[[[1]]]]", "{a: {b: c}}", ".nan", "1e999", "x", "~", "true"])
def test_hostile_couplings(entry, value):
    message = refused("constraints", "constraints:\n  - {type: coupling, " + entry % value + "}")
    assert message and "constraint" in message


@pytest.mark.parametrize("key", ["xyz", "rpy"])
@pytest.mark.parametrize("value", [f"[{DIGITS}, 0, 0]", "[1, 2]", "[[1, 2], [3], 4]", "x", "[a, b, c]", "[.nan, 0, 0]",
                                   "{x: 1}", "[2024-01-01, 0, 0]", "~", "[1e308, 1e308, 1e308]", "[true, 0, 0]"])
def test_hostile_frames(key, value):
    message = refused("constraints", f"constraints:\n  - {{type: contact, link: {ARM.body_names[-1]}, frame: "
                                     f"{{{key}: {value}}}}}")
    assert message is None or "constraint" in message


def entity_bomb():
    entities = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
    return f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "lol">{entities}]><robot name="&l9;"/>'


def with_value(value):
    return URDF.replace('mass value="', f'mass value="{value}" old="', 1)


XML = {"bomb": entity_bomb(), "deep": "<robot name='r'>" + "<a>" * 10_000 + "</a>" * 10_000 + "</robot>",
       "long name": URDF.replace("shoulder", "s" * 1_000_000), "long tag": f"<{'x' * 1_000_000}/>",
       "long root": "<robot name='" + "r" * 1_000_000 + "'><joint name='x'/></robot>",
       **{f"mass {value[:12]}": with_value(value) for value in ("1e999", "-1e999", "nan", "inf", "-inf", DIGITS, "1e13",
                                                                "0x10", "1_000", "١", "1" * 100_000, "", "1 2")},
       "long type": URDF.replace('type="revolute"', f'type="{"t" * 1_000_000}"', 1),
       "long parent": URDF.replace('<parent link="', f'<parent link="{"p" * 1_000_000}', 1),
       "bytes": URDF[:200] + "\udcff" + URDF[200:], "null": URDF[:200] + "\x00" + URDF[200:]}


@pytest.mark.parametrize("case", XML)
def test_hostile_urdf(case):
    message = refused("urdf", XML[case])
    assert message or case == "long name"


def test_every_error_is_short():
    huge = ["x" * 50_000] * 50
    for error in (rbd.RbdError("a" * 10**6), unknown_name("joint", "j" * 10**6, huge),
                  unknown_name("joint", huge, huge)):
        assert len(str(error)) <= LONGEST + 3
    nested = "x"
    for _ in range(40):
        nested = [nested] * 10    # 10^40 when written out
    for value in (nested, 10**5000, huge, {"k" * 10**6: huge}, rbd):
        assert len(shown(value)) < 200
    with pytest.raises(rbd.RbdError, match="parameter 'n'") as caught:
        Parameter("n", "number", 1.0, "").convert(nested)
    assert len(str(caught.value)) < LONGEST
    with pytest.raises(rbd.RbdError, match="parameter 'n'"):
        Parameter("n", "numbers", (1.0,), "").convert([10**400])
    for call in (lambda: rbd.sample("iiwa", gravity=["x" * 10**6] * 3),
                 lambda: rbd.sample("iiwa", locked={"joint_1": 10**400}),
                 lambda: ARM.with_(damping=10**400), lambda: rbd.mass_matrix(ARM, [10**400, 0]),
                 lambda: rbd.jacobian(ARM, [0.0, 0.0], "b" * 10**6), lambda: rbd.load_urdf("r" * 10**5),
                 lambda: constraints_from("c" * 10**5, ARM), lambda: rbd.load_actuation("p" * 10**5, ARM),
                 lambda: rbd.load_actuation({"elbow": nested, "shoulder": nested}, ARM)):
        with pytest.raises(rbd.RbdError) as caught:
            call()
        assert len(str(caught.value)) <= LONGEST + 3


SCRAPS = [":", "- ", "{", "}", "[", "]", "&a ", "*a", "!!int ", "? ", "1e999", DIGITS, ".nan", "~", "2024-01-01", "\n",
          "  ", '"', "'", "|", "0x", "<<: ", "true", "#", "%", "-1", "0", "<", ">", "/>", "<x>", "&lt;", "nan", "\x00"]


@pytest.mark.parametrize("name", ["actuation", "drives", "five_bar", "gear", "urdf"])
def test_a_walk_of_mutations(name):
    text, reader = {"actuation": (ACTUATION, "actuation"), "drives": (DRIVES, "actuation"),
                    "five_bar": (FIVE_BAR, "constraints"), "gear": (GEAR, "constraints"), "urdf": (URDF, "urdf")}[name]
    rng = random.Random(name)
    taken = 0
    for _ in range(150):
        changed = text
        for _ in range(rng.randint(1, 4)):
            at, length = rng.randrange(len(changed) + 1), rng.choice([0, 0, 1, 3, 20])
            other = rng.randrange(len(changed) + 1)
            scrap = rng.choice([rng.choice(SCRAPS), changed[other:other + rng.choice([1, 5, 40])]])
            changed = changed[:at] + scrap + changed[at + length:]
        taken += refused(reader, changed + "\n") is None
    assert taken < 150

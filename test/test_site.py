"""The documentation site: it builds without a warning, has every public name once, and all nodes and pictures."""
from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from support.browser import browser
from support.tables import TABLES

import rbd_ros as rbd

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
needs_sphinx = pytest.mark.skipif(any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser")),
                                  reason="Sphinx and MyST are not installed: scripts/setup --docs does it")


def script_options() -> list[str]:
    """Those with which scripts/docs calls Sphinx."""
    (line,) = re.findall(r"-m sphinx (.*) -d ", (ROOT / "scripts" / "docs").read_text())
    return line.split()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site. -W: a broken link, a page in no table of contents, markup in a docstring are errors."""
    folder = tmp_path_factory.mktemp("site")
    assert {"-n", "-W"} <= set(script_options())
    result = subprocess.run([sys.executable, "-m", "sphinx", *script_options(), "-d", str(folder / "cache"), str(DOCS),
                             str(folder / "html")], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0 and not result.stderr, result.stderr
    return folder / "html"


class Page(HTMLParser):
    """Anchors of a page, what it links to, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.loads += [given[name] for name in ("src", "data") if given.get(name)]
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon"):
            self.loads.append(given["href"])


@needs_sphinx
def test_no_link_is_broken_and_nothing_is_loaded_from_elsewhere(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 45
    drawn = importlib.util.find_spec("ziamath") is not None    # equations; Sphinx's own way loads a script
    broken = []
    for path, page in pages.items():
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data" and (drawn or "mathjax" not in link):
                    broken.append((path.name, link))
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists() or (parts.fragment and target in pages
                                       and unquote(parts.fragment) not in pages[target].anchors):
                broken.append((path.relative_to(site).as_posix(), link))
    assert not broken


@needs_sphinx
@pytest.mark.parametrize(("page", "texts"), [
    ("index.html", ["Rigid-body dynamics for ROS 2", "On a robot", "tracking.png"]),
    ("api/dynamics.html", ["(nv,) or (N, nv)", 'id="rbd_ros.inverse_dynamics"', "external_wrenches"]),
    ("api/lie.html", ['id="rbd_ros.lie.so3.exp"']),
    ("nodes/feedforward.html", ["state_timeout", "~/joint_trajectory", "latency_p50_us"]),
    ("reference/interfaces.html", ["ConstraintForces", "JointReference"]),
    ("reference/command_line.html", ["rbd doctor", "--help"]), ("changelog.html", ["1.1.0"]),
    ("safety.html", ["waiting, ramp_in, running, stale, ramp_out"])])
def test_pages_have_what_they_are_for(site, page, texts):
    text = (site / page).read_text(encoding="utf-8")
    assert [each for each in texts if each not in text] == []


@needs_sphinx
def test_equations_are_drawn(site):
    pytest.importorskip("ziamath", reason="ziamath is not installed: scripts/setup --docs does it")
    text = (site / "equations.html").read_text(encoding="utf-8")
    shown = len(re.findall(r"^\$\$$", (DOCS / "equations.md").read_text(), re.MULTILINE)) // 2
    assert len(re.findall(r'<div class="math"><svg role="img" aria-label="\S', text)) == shown


def test_docstrings_become_markup(monkeypatch):
    """Names that are public are links; what reStructuredText would take for markup stays what it is."""
    monkeypatch.syspath_prepend(str(DOCS))
    from rbd_site.plain_text import to_rst

    def rst(text, names=()):
        return "\n".join(to_rst(text, lambda name: f"rbd_ros.{name}" if name == "RbdError" else None, names))

    assert rst("q_ref * 2|x| of `RbdError`s and `a`.") == (
        r"q\_ref \* 2\|x\| of :py:obj:`RbdError <rbd_ros.RbdError>`\ s and ``a``." + "\n")
    assert rst("A *right* one. step: s. n (3,): m", ("step", "n")) == "A *right* one. ``step``: s. ``n`` (3,): m\n"
    assert rst("Topics:\n  a_b    in:\n         x\n  c      out") == "Topics:\n\n``a_b``\n    in: x\n\n``c``\n    out\n"
    assert rst("| a | b |\n|---|---|\n| `x` | y |\n|   | z |").split() == (
        ["..", "list-table::", ":header-rows:", "1", "*", "-", "a", "-", "b", "*", "-", "``x``", "-", "y", "z"])
    assert rst("Services: a,\n  b") == "Services: a,\nb\n"
    assert rst("so:\n\n    F = | a  b |") == "so:\n\n::\n\n    F = | a  b |\n"


def test_what_is_public_says_what_it_is(monkeypatch):
    """Each name and member has a text of its own, which refers to nothing that the page does not show."""
    monkeypatch.syspath_prepend(str(DOCS))
    from rbd_site import api

    for name in set(rbd.__all__) - set(api.VALUES) - {"lie"}:
        value = getattr(rbd, name)
        assert api.doc(value), name
        for member, what in api.members(value):
            assert api.doc(what.__func__ if isinstance(what, (classmethod, staticmethod)) else what), (name, member)


def test_every_public_name_has_one_place():
    listed = []
    for page in (DOCS / "api").glob("*.rst"):
        for block in re.findall(r"^\.\. api::((?:\n    \w+)+)", page.read_text(), re.MULTILINE):
            listed += block.split()
    listed.append("lie")
    assert set(rbd.__all__) - set(listed) == set(), "these need a line in docs/api"
    assert set(listed) - set(rbd.__all__) == set() and len(listed) == len(set(listed))
    modules = re.findall(r"\.\. api-module:: rbd_ros\.lie\.(\w+)", (DOCS / "api" / "lie.rst").read_text())
    scalars = {"series"}    # kernels of coefficients
    public = {name for name in rbd.lie.__all__ if inspect.ismodule(getattr(rbd.lie, name))}
    assert set(modules) == public - scalars


def test_every_node_has_its_page():
    pages = {page.stem: page.read_text() for page in (DOCS / "nodes").glob("*.rst")}
    assert set(pages) - {"index"} == set(TABLES)
    assert all(f".. node:: {name}\n" in pages[name] and f"    {name}\n" in pages["index"] for name in TABLES)


def test_every_picture_is_in_the_gallery():
    gallery = (DOCS / "gallery.md").read_text()
    pictures = [file.name for file in (DOCS / "images").iterdir() if file.suffix in (".png", ".jpg", ".svg", ".gif")]
    assert [name for name in pictures if f"images/{name})" not in gallery] == [], "these need a cell in docs/gallery.md"


def test_rosdoc2_finds_the_configuration():
    text = (ROOT / "rosdoc2.yaml").read_text()
    assert "<rosdoc2>rosdoc2.yaml</rosdoc2>" in (ROOT / "package.xml").read_text()
    assert "sphinx_sourcedir: 'docs'" in text and (DOCS / "conf.py").is_file() and (DOCS / "index.rst").is_file()


@needs_sphinx
def test_pages_fit_narrow_windows(site):
    pytest.importorskip("furo")
    with browser(1200, 800) as driver:
        for width in (1200, 900, 520):
            driver.set_window_size(width, 800)
            for page in ("index", "view", "nodes/feedforward"):
                driver.get((site / f"{page}.html").as_uri())
                room = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
                assert room[0] <= room[1], (page, width, room)

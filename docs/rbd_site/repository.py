"""Pages whose text is a file outside of this folder, and the list of all pages, which is README.md of this folder.

So each text stands once, its links work on a forge as in the site, and a page that the list lacks is in no table of
contents, which Sphinx reports.
"""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.utils import new_document

from .api import Lines

# file of the checkout → its page
PAGES = {"README.md": "index.rst", "CONTRIBUTING.md": "contributing.rst", "CHANGELOG.rst": "changelog.rst",
         "examples/feedforward_effort_controller/README.md": "example_controller.rst"}
CHECKOUT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")


def linked(text: str, folder: str) -> str:
    """Links of a Markdown file in `folder` of the checkout as links from a page of this folder."""
    def moved(match: re.Match[str]) -> str:
        base = (CHECKOUT / folder / match[2]).resolve()
        if not base.is_relative_to(CHECKOUT):
            return match[0]
        path = base.relative_to(CHECKOUT).as_posix()
        path = PAGES.get(path, path[5:] if path.startswith("docs/") else f"../{path}")
        return match[1] + path + match[3]

    return LINK.sub(moved, text)


class RepositoryPage(Directive):
    """`.. repository-page:: FILE`, a path below the checkout."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        file = CHECKOUT / self.arguments[0]
        self.state.document.settings.env.note_dependency(str(file))
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".rst":
            from docutils.parsers.rst import Parser
        else:
            from myst_parser.parsers.sphinx_ import MystParser as Parser
            text = linked(text, str(Path(self.arguments[0]).parent))
        parser = Parser()
        made = new_document(str(file), self.state.document.settings)
        parser.parse(text, made)
        return made.children


class PageList(Lines):
    """`.. page-list:: README.md`: a table of contents per bold heading of this page, of the pages that it links to, by
    the names that it gives them.
    """

    def text(self) -> list[str]:
        folder = Path(self.state.document.settings.env.srcdir)
        lines = [".. toctree::", "    :hidden:", "", "    README", ""]
        for part in re.split(r"^\*\*(?=.*\*\*$)", (folder / "README.md").read_text(encoding="utf-8"), flags=re.M)[1:]:
            title, _, rest = part.partition("**")
            rest = re.split(r"^#", rest, flags=re.M)[0]
            named = re.findall(r"\[([^\]]+)\]\(([\w/]+)\.\w+\)", rest)
            pages = {page: (text[0].upper() + text[1:]).replace("`", "") for text, page in reversed(named)}
            lines += [".. toctree::", "    :hidden:", f"    :caption: {title}", "",
                      *(f"    {pages.pop(page)} <{page}>" for _, page in named if page in pages), ""]
        return [*lines, ".. toctree::", "    :hidden:", "    :caption: Project", "",
                "    contributing", "    Changelog <changelog>", "    example_controller", ""]


def outside(app: Any, docname: str, content: list[str]) -> None:
    """Links to files that have a page here, `../CONTRIBUTING.md`, lead to it."""
    if Path(app.env.doc2path(docname)).suffix == ".md":
        content[0] = re.sub(r"\]\(\.\./([\w./]+)", lambda link: f"]({PAGES.get(link[1], '../' + link[1])}", content[0])


def setup(app: Any) -> None:
    app.add_directive("repository-page", RepositoryPage)
    app.add_directive("page-list", PageList)
    app.connect("source-read", outside)

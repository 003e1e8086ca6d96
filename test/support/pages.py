"""Code blocks of the pages: which there are, and Python that runs and gives the numbers that its comments show."""
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rbd_ros as rbd

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")),
         *sorted((ROOT / "examples").rglob("*.md"))]
FENCE = re.compile(r"(?:^<!-- not run: (?P<reason>[^\n]+?) -->\n)?^```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```",
                   re.MULTILINE | re.DOTALL)
NUMBERS = re.compile(r"\[?[-+\d.e,\s]+\]?$")


@dataclass(frozen=True)
class Block:
    page: str          # path below the checkout
    line: int
    language: str
    code: str
    reason: str        # why it is not run; empty: it is

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    """Those in these languages, of all pages."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            line = text[:match.start("code")].count("\n") + 1
            found.append(Block(page.relative_to(ROOT).as_posix(), line, match["language"], match["code"],
                               match["reason"] or ""))
    return [block for block in found if block.language in languages]


def run(code: str, names: dict[str, Any], where: str) -> int:
    """Run the statements one by one; returns how many numbers of their comments were compared."""
    compared = 0
    for statement, comment in statements(code):
        found = re.match(r"RbdError: (.*)", comment, re.DOTALL)
        source = compile(ast.Module([statement], []), where, "exec")
        if found:
            try:
                exec(source, names)
            except rbd.RbdError as error:
                told = " ".join(found[1].split())
                assert str(error).startswith(told.removesuffix("…").strip()), f"{where}: {error}\n not: {told}"
                compared += 1
                continue
            raise AssertionError(f"{where}: no error from {ast.unparse(statement)}")
        if isinstance(statement, ast.Expr):
            names["_"] = eval(compile(ast.Expression(statement.value), where, "eval"), names)
        else:
            exec(source, names)
        compared += compare(comment, names, where)
    return compared


def statements(code: str) -> Iterator[tuple[ast.stmt, str]]:
    """(statement, the comment at its end and on the lines below)."""
    lines = code.splitlines()
    body = ast.parse(code).body
    for statement, follower in zip(body, [*body[1:], None], strict=True):
        last = statement.end_lineno or 0
        end = follower.lineno - 1 if follower else len(lines)
        rest = [lines[last - 1][len(lines[last - 1].encode()[:statement.end_col_offset].decode()):], *lines[last:end]]
        comments = [part.split("#", 1)[1].strip() for part in rest if "#" in part]
        yield statement, "\n".join(comments)


def compare(comment: str, names: dict[str, Any], where: str) -> int:
    """Of `# [1.0 2.0]` the value of the statement, as of names, `# ('a', 'b')`; of `# q = …, rank = 3` variables or
    fields of that value."""
    if re.match(r"\('|[A-Z]\w+\(.*\)$", comment):
        assert comment in (str(names["_"]), repr(names["_"])), f"{where}: {names['_']}, not {comment}"
        return 1
    shown = [(name, text) for name, text in re.findall(r"(\w+) = (\[[^\]]*\]|[-\d.e]+)(?=,|\n|$)", comment)]
    if not shown and NUMBERS.match(comment.split(", or")[0]) and re.search(r"\d", comment):
        shown = [("_", comment.split(", or")[0])]
    for name, text in shown:
        actual = names[name] if name in names else getattr(names["_"], name)
        numbers = re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)
        values = np.array([float(number) for number in numbers])
        actual = np.asarray(actual, dtype=float).reshape(-1)
        assert actual.shape == values.shape, f"{where}: {name} = {actual}, not {text}"
        digits = max((len(number.partition(".")[2]) for number in numbers if "e" not in number), default=0)
        bound = 1e-12 if "e-1" in text else 0.51 * 10.0**-digits
        assert np.abs(actual - values).max() <= bound, f"{where}: {name} = {actual}, not {text}"
    return len(shown)

"""Docstrings of this project, which are plain text with `code` in single backticks, as reStructuredText."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

# A row of a list in columns: what, two spaces or more, text. With = or | in it it is a formula.
ENTRY = re.compile(r"([^\s=|](?:[^=|]*?[^\s=|])?)\s{2,}([^\s=|].*)")


def to_rst(text: str, link: Callable[[str], str | None] = lambda name: None, names: Iterable[str] = ()) -> list[str]:
    """Lines of reStructuredText: paragraphs, tables, lists in columns as definitions, other indented blocks literally.

    link: target of a name in backticks (None: none). names: of arguments, whose `name:` is set as code, too.
    """
    lines: list[str] = []
    for block, indented in blocks(text):
        if all(row.startswith("|") for row in block):
            lines += table(block, link)
        elif not indented:
            lines += [*inline("\n".join(block), link, names).split("\n"), ""]
        elif is_list(block):
            for what, told in entries(block):
                lines += [f"``{what}``", "    " + inline(told, link, ()), ""]
        else:
            lines += ["::", "", *("    " + row for row in block), ""]
    return lines


def blocks(text: str) -> Iterator[tuple[list[str], bool]]:
    """(lines, whether they are indented) of the paragraphs of a docstring; indented lines lose what all have."""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        parts: list[tuple[list[str], bool]] = []
        for row in paragraph.split("\n"):
            indented = row.startswith("  ")
            if not parts or parts[-1][1] != indented:
                parts.append(([], indented))
            parts[-1][0].append(row.rstrip())
        joined: list[tuple[list[str], bool]] = []
        for rows, indented in parts:
            rows = dedented(rows, indented)
            goes_on = joined and indented and not joined[-1][1] and not joined[-1][0][-1].endswith(":")
            if goes_on and not is_list(rows):    # a sentence whose further lines are indented
                joined[-1][0].extend(row.strip() for row in rows)
            elif joined and not indented and not joined[-1][1]:
                joined[-1][0].extend(rows)
            else:
                joined.append((rows, indented))
        yield from joined


def table(block: list[str], link: Callable[[str], str | None]) -> list[str]:
    """A table drawn with bars: a head, a rule, rows; a row without a first cell goes on with the one before."""
    rows: list[list[str]] = []
    for row in (block[0], *block[2:]):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if cells[0] or not rows:
            rows.append(cells)
        else:
            rows[-1] = [" ".join(pair).strip() for pair in zip(rows[-1], cells, strict=True)]
    lines = [".. list-table::", "    :header-rows: 1", ""]
    for cells in rows:
        lines += [f"    {'*' if i == 0 else ' '} - {inline(cell, link, ())}" for i, cell in enumerate(cells)]
    return [*lines, ""]


def is_list(block: list[str]) -> bool:
    return not block[0].startswith((" ", ">>> ")) and all(row.startswith(" ") or ENTRY.fullmatch(row) for row in block)


def dedented(rows: list[str], indented: bool) -> list[str]:
    cut = min(len(row) - len(row.lstrip()) for row in rows) if indented else 0
    return [row[cut:] for row in rows]


def entries(block: list[str]) -> Iterator[tuple[str, str]]:
    """(what, text) of a list in columns, whose texts go on in indented lines."""
    found: list[list[str]] = []
    for row in block:
        if row.startswith(" "):
            found[-1][1] += " " + row.strip()
        else:
            match = ENTRY.fullmatch(row)
            assert match is not None
            found.append([match[1], match[2]])
    yield from ((what, told) for what, told in found)


def inline(text: str, link: Callable[[str], str | None], names: Iterable[str]) -> str:
    """Code in backticks as code or links, what else reStructuredText would read as markup escaped."""
    made = []
    for i, part in enumerate(re.split(r"`+", text)):
        if i % 2 == 0:
            part = re.sub(r"([\\_|]|\*(?!\w+\*)(?<!\w\*))", r"\\\1", part)    # *word* stays
            made.append(arguments(part, names))
        elif (target := link(part)) is not None:
            made.append(f"\0:py:obj:`{part} <{target}>`\0")
        else:
            made.append(f"\0``{' '.join(part.split())}``\0")
    text = "".join(made)
    # Markup has to stand alone; an escaped space, which is not shown, separates it from what touches it.
    text = re.sub(r"(?<=[^\s(\[{<\"'/\-])\0(?=[:`])", r"\\ ", text)
    text = re.sub(r"(?<=[:`])\0(?=\w|[^\x00-\x7f])", r"\\ ", text)
    return text.replace("\0", "")


def arguments(text: str, names: Iterable[str]) -> str:
    """`name:` at the beginning of a sentence, or `name (3,):`, as code where it is an argument."""
    known = {name.replace("_", r"\_"): name for name in names}
    if not known:
        return text
    word = "|".join(sorted(map(re.escape, known), key=len, reverse=True))

    def mark(match: re.Match[str]) -> str:
        return match[1] + re.sub(word, lambda name: f"``{known[name[0]]}``", match[2]) + match[3]

    return re.sub(rf"((?:^|[.;] |[.;]\n|\n))((?:{word})(?:, (?:{word}))*)((?: \([^)]*\))?:(?=\s))", mark, text)

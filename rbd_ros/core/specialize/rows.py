"""LLVM code that turns numbers [row][lane] into results, one row per state: `void rows_of(double* found, double* out)`.

Number k of a result is that of row place[k]: what is 0 for all states, or what a symmetric matrix has twice, is there
once. `rows_past` does the same past the caches, to rows that begin at multiples of a tile: large results do not stay
there anyway, and would drive out the code.
"""
from __future__ import annotations

from collections.abc import Sequence


def transposition(places: Sequence[int], width: int, nothing: int) -> list[str]:
    """Lines of both functions for `width` states; row `nothing` is 0.

    Tiles are transposed in registers: at distance 1, 2, 4 … two rows exchange every other block of their entries.
    """
    full = [*places, *[nothing] * (-len(places) % width)]
    table = ", ".join(f"i64 {place * width}" for place in full)
    return [f"declare void @llvm.masked.store.v{width}f64.p0(<{width} x double>, ptr, i32, <{width} x i1>)",
            "!0 = !{i32 1}", f"@places = internal constant [{len(full)} x i64] [{table}]",
            *_function("rows_of", len(places), width, "align 8"),
            *_function("rows_past", len(full), width, f"align {8 * width}, !nontemporal !0")]


def _function(name: str, count: int, width: int, how: str) -> list[str]:
    whole, rest = divmod(count, width)
    lines = [f"define void @{name}(ptr noalias %in, ptr noalias %out) {{", "start:",
             f"  br label %{'tile' if whole else 'rest'}"]
    if whole:
        lines += ["tile:", "  %k = phi i64 [0, %start], [%next, %tile]", *_tile("%k", count, width, width, how),
                  f"  %next = add i64 %k, {width}", f"  %more = icmp ult i64 %next, {whole * width}",
                  "  br i1 %more, label %tile, label %rest"]
    return [*lines, "rest:", *(_tile(str(whole * width), count, width, rest, how) if rest else []), "  ret void", "}"]


def _tile(first: str, count: int, width: int, used: int, how: str) -> list[str]:
    """The tile that begins at number `first` of `count`, `used` numbers of it; how: whole tiles are stored."""
    vector, t, lines = f"<{width} x double>", "t" if used == width else "r", []
    rows = []
    for i in range(width):
        lines += [f"  %{t}k{i} = add i64 {first}, {i}",
                  f"  %{t}p{i} = getelementptr inbounds i64, ptr @places, i64 %{t}k{i}",
                  f"  %{t}o{i} = load i64, ptr %{t}p{i}",
                  f"  %{t}a{i} = getelementptr inbounds double, ptr %in, i64 %{t}o{i}",
                  f"  %{t}v{i} = load {vector}, ptr %{t}a{i}, align 8"]
        rows.append(f"%{t}v{i}")
    step = 1
    while step < width:
        upper = [k & step for k in range(width)]
        for i in (i for i in range(width) if not upper[i]):
            a, b = rows[i], rows[i + step]
            for j, lanes in ((i, [k - step + width if upper[k] else k for k in range(width)]),
                             (i + step, [k + width if upper[k] else k + step for k in range(width)])):
                rows[j] = f"%{t}x{step}n{j}"
                order = ", ".join(f"i32 {k}" for k in lanes)
                lines.append(f"  {rows[j]} = shufflevector {vector} {a}, {vector} {b}, <{width} x i32> <{order}>")
        step *= 2
    mask = ", ".join(f"i1 {'true' if i < used else 'false'}" for i in range(width))
    for i in range(width):
        at = f"%{t}b{i}"
        lines += [f"  %{t}j{i} = add i64 {first}, {i * count}",
                  f"  {at} = getelementptr inbounds double, ptr %out, i64 %{t}j{i}",
                  f"  store {vector} {rows[i]}, ptr {at}, {how}" if used == width else
                  f"  call void @llvm.masked.store.v{width}f64.p0({vector} {rows[i]}, ptr {at}, i32 8, "
                  f"<{width} x i1> <{mask}>)"]
    return lines

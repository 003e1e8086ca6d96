"""LLVM code from numbers [row][lane] to results by state: `void rows_of(double* found, double* out)`.

Number k of a result is in row place[k]: zeros and entries of symmetric matrices are stored once. `rows_past` uses
non-temporal stores, to rows that begin at multiples of a tile: large results exceed the caches and would evict the
code.
"""
from __future__ import annotations

from collections.abc import Sequence


def transposition(places: Sequence[int], width: int, nothing: int) -> list[str]:
    """Lines of both functions for `width` states; row `nothing` is 0.

    Tiles are transposed in registers: at distances 1, 2, 4 … pairs of rows exchange alternate blocks of entries.
    """
    full = [*places, *[nothing] * (-len(places) % width)]
    table = ", ".join(f"i64 {place * width}" for place in full)
    return [f"declare void @llvm.masked.store.v{width}f64.p0(<{width} x double>, ptr, i32, <{width} x i1>)",
            "!0 = !{i32 1}", f"@places = internal constant [{len(full)} x i64] [{table}]",
            *_function("rows_of", len(places), width, "align 8"),
            *_function("rows_past", len(full), width, f"align {8 * width}, !nontemporal !0")]


def _function(name: str, count: int, width: int, how: str) -> list[str]:
    full_tiles, remainder = divmod(count, width)
    lines = [f"define void @{name}(ptr noalias %in, ptr noalias %out) {{", "start:",
             f"  br label %{'tile' if full_tiles else 'rest'}"]
    if full_tiles:
        lines += ["tile:", "  %k = phi i64 [0, %start], [%next, %tile]", *_tile("%k", count, width, width, how),
                  f"  %next = add i64 %k, {width}", f"  %more = icmp ult i64 %next, {full_tiles * width}",
                  "  br i1 %more, label %tile, label %rest"]
    last = _tile(str(full_tiles * width), count, width, remainder, how) if remainder else []
    return [*lines, "rest:", *last, "  ret void", "}"]


def _tile(first: str, count: int, width: int, used: int, how: str) -> list[str]:
    """The tile of `used` numbers from number `first` of `count` on; how: kind of store of complete tiles."""
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
        address = f"%{t}b{i}"
        lines += [f"  %{t}j{i} = add i64 {first}, {i * count}",
                  f"  {address} = getelementptr inbounds double, ptr %out, i64 %{t}j{i}",
                  f"  store {vector} {rows[i]}, ptr {address}, {how}" if used == width else
                  f"  call void @llvm.masked.store.v{width}f64.p0({vector} {rows[i]}, ptr {address}, i32 8, "
                  f"<{width} x i1> <{mask}>)"]
    return lines

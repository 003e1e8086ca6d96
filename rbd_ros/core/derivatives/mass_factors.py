"""LTDL factorisation of the mass matrix, `Lᵀ D L` along the branches of the tree (Featherstone 2005), and solves.

Row k of L has entries at the ancestors of coordinate k only: neither the factors nor the first half of a solution fill
in zeros between branches. Prescribed coordinates are left out, as in K eq. 33, 34.
"""
from __future__ import annotations

from ..compiled.kernel import kernel, sweep
from ..model.block import SHARED, size_v

SINGULAR = 1e-14
# per coordinate: its next free coordinate towards the root (−1: none); the end of its subtree (exclusive); begin and
# end of its branch
UP, END, FIRST, BRANCH, RECORD = 0, 1, 2, 3, 4


@sweep
def branches(B, T, mask, branch):
    """Fill `branch`, a record per coordinate. If bodies share coordinates, all coordinates count as one branch."""
    nv = size_v(B)
    shared = B[SHARED].real > 0.0
    hybrid = mask.shape[0] > 0
    for x in range(nv):
        before = x - 1 if shared else T[2 * x + 1]
        r = RECORD * x
        branch[r + END] = x + 1
        branch[r + FIRST] = x if before < 0 else branch[RECORD * before + FIRST]
        if hybrid and before >= 0 and mask[before]:
            before = branch[RECORD * before + UP]
        branch[r + UP] = before
    for x in range(nv - 1, -1, -1):
        before = x - 1 if shared else T[2 * x + 1]
        if before >= 0:
            branch[RECORD * before + END] = max(branch[RECORD * before + END], branch[RECORD * x + END])
    for x in range(nv):
        branch[RECORD * x + BRANCH] = branch[RECORD * branch[RECORD * x + FIRST] + END]


@kernel
def factor(nv, mask, branch, H):
    """H = Lᵀ D L of free coordinates, in place of the lower triangle of H, D as reciprocals.

    H[nv * nv:] receives the diagonal of M. Returns 0, or the coordinate + 1 with a vanishing pivot.
    """
    hybrid = mask.shape[0] > 0
    for x in range(nv):
        H[nv * nv + x] = H[x * nv + x]
    for x in range(nv - 1, -1, -1):
        if hybrid and mask[x]:
            continue
        row = x * nv
        d = H[row + x]
        if not d.real > SINGULAR * abs(H[nv * nv + x]):    # relative to its value before elimination
            return x + 1
        psi = 1.0 / d
        i = branch[RECORD * x + UP]
        while i >= 0:
            l = H[row + i] * psi
            y = i
            while y >= 0:
                H[i * nv + y] -= l * H[row + y]
                y = branch[RECORD * y + UP]
            H[row + i] = l
            i = branch[RECORD * i + UP]
        H[row + x] = psi
    return 0


@kernel
def solve_vector(nv, mask, branch, H, x):
    """`x := M⁻¹ x` of free coordinates, from the factors; D holds reciprocals."""
    hybrid = mask.shape[0] > 0
    for c in range(nv - 1, -1, -1):
        if hybrid and mask[c]:
            continue
        i = branch[RECORD * c + UP]
        while i >= 0:
            x[i] -= H[c * nv + i] * x[c]
            i = branch[RECORD * i + UP]
    for c in range(nv):
        if hybrid and mask[c]:
            continue
        s = x[c] * H[c * nv + c]
        i = branch[RECORD * c + UP]
        while i >= 0:
            s -= H[c * nv + i] * x[i]
            i = branch[RECORD * i + UP]
        x[c] = s


# Right-hand sides and solutions: rows of a flat array, with the numbers of PARTS matrices side by side per column, so
# that one loop over a row serves all. Rows are padded to multiples of PAD, for vector instructions without remainder.
PARTS, PAD = 3, 8


def row_length(nv: int) -> int:
    """Length of a row."""
    return (PARTS * nv + PAD - 1) // PAD * PAD


pitch = kernel(row_length)


@kernel
def span(first, end, nv):
    """Range of columns `first` to `end` in a row, rounded up to a multiple of PAD."""
    low = PARTS * first
    return low, min(pitch(nv), low + (PARTS * (end - first) + PAD - 1) // PAD * PAD)


@sweep
def subtract_row(X, to, row, factor, nv):
    """`X[to] −= factor X[row]`."""
    p = pitch(nv)
    a = X[p * to:p * to + p]
    b = X[p * row:p * row + p]
    for x in range(a.shape[0]):
        a[x] -= factor * b[x]


@kernel
def spread_row(X, c, nv, branch, H, low, high):
    """`X[i] −= H[c, i] X[c]` for the ancestors i of coordinate c, two at a time."""
    p = pitch(nv)
    b = X[p * c + low:p * c + high]
    i = branch[RECORD * c + UP]
    while i >= 0:
        k = branch[RECORD * i + UP]
        f = H[c * nv + i]
        a = X[p * i + low:p * i + high]
        if k < 0:
            for x in range(b.shape[0]):
                a[x] -= f * b[x]
            break
        g = H[c * nv + k]
        d = X[p * k + low:p * k + high]
        for x in range(b.shape[0]):
            y = b[x]
            a[x] -= f * y
            d[x] -= g * y
        i = branch[RECORD * k + UP]


@kernel
def gather_rows(X, c, nv, branch, H, low, high):
    """`X[c] := −H[c, c] X[c] − Σ H[c, i] X[i]` over the ancestors i of coordinate c, two at a time."""
    p = pitch(nv)
    a = X[p * c + low:p * c + high]
    f = -H[c * nv + c]
    for x in range(a.shape[0]):
        a[x] *= f
    i = branch[RECORD * c + UP]
    while i >= 0:
        k = branch[RECORD * i + UP]
        f = H[c * nv + i]
        b = X[p * i + low:p * i + high]
        if k < 0:
            for x in range(a.shape[0]):
                a[x] -= f * b[x]
            break
        g = H[c * nv + k]
        d = X[p * k + low:p * k + high]
        for x in range(a.shape[0]):
            a[x] -= f * b[x] + g * d[x]
        i = branch[RECORD * k + UP]


@kernel
def solve_rows(nv, mask, branch, H, X):
    """`X := −M⁻¹ X` of free coordinates, for X whose row i is zero in the columns that are neither ancestors nor
    descendants of coordinate i.
    """
    hybrid = mask.shape[0] > 0
    for c in range(nv - 1, -1, -1):
        if hybrid and mask[c]:
            continue
        low, high = span(branch[RECORD * c + FIRST], branch[RECORD * c + END], nv)
        spread_row(X, c, nv, branch, H, low, high)
    for c in range(nv):
        if hybrid and mask[c]:
            continue
        low, high = span(branch[RECORD * c + FIRST], branch[RECORD * c + BRANCH], nv)
        gather_rows(X, c, nv, branch, H, low, high)


@sweep
def given_columns(nv, mask, H, X):
    """Right-hand side of `solve_rows` for derivatives by the given efforts (−1) and accelerations (M_vu; M_uu)."""
    p = pitch(nv)
    hybrid = mask.shape[0] > 0
    for y in range(nv):
        if hybrid:
            for x in range(nv):
                if mask[x]:
                    X[p * y + PARTS * x + 2] = H[y * nv + x]
        if not (hybrid and mask[y]):
            X[p * y + PARTS * y + 2] -= 1.0


@sweep
def effort_rows(nv, mask, H, X):
    """Efforts of prescribed coordinates: ∂τ_u = ∂ID_u + M_uv ∂q̈_v."""
    for y in range(nv):
        if mask[y]:
            for i in range(nv):
                if not mask[i] and H[y * nv + i] != 0.0:
                    subtract_row(X, y, i, -H[y * nv + i], nv)

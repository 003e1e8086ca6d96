"""Distances of convex shapes that are apart in 200 digits, by a primal-dual interior-point method: an oracle."""
from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
from scipy.spatial import ConvexHull

DIGITS, ITERATIONS = 200, 200
SMALL = Decimal("1e-30")    # where the iterations end


class Core:
    """Points p + B y with linear constraints A y ≤ c and y_0² + y_1² ≤ rim² of the first two; radius about them."""

    def __init__(self, shape, pose):
        columns, A, c, self.rim, radius = {
            "sphere": lambda size: ([], [], [], None, size[0]),
            "capsule": lambda size: ([2], [[1], [-1]], [size[1] / 2] * 2, None, size[0]),
            "box": lambda size: ([0, 1, 2], [*np.eye(3), *-np.eye(3)], [x / 2 for x in (*size, *size)], None, 0),
            "cylinder": lambda size: ([0, 1, 2], [[0, 0, 1], [0, 0, -1]], [size[1] / 2] * 2, size[0], 0),
            "mesh": lambda size: ([0, 1, 2], *faces(shape.surface.points), None, 0)}[shape.kind](shape.size)
        self.B = [[Decimal(float(pose[i, k])) for k in columns] for i in range(3)]
        self.p = [Decimal(float(x)) for x in pose[:3, 3]]
        self.A, self.c = [[Decimal(float(x)) for x in row] for row in A], [Decimal(float(x)) for x in c]
        self.n, self.radius = len(columns), Decimal(float(radius))
        self.begin = [Decimal(0)] * self.n
        if shape.kind == "mesh":
            self.begin = [Decimal(float(x)) for x in shape.surface.points.mean(axis=0)]

    def point(self, y):
        return [self.p[i] + sum(self.B[i][k] * y[k] for k in range(self.n)) for i in range(3)]

    def constraints(self, y):
        """Values, ≤ 0, their gradients, and of the last one, if it is round, the second derivative."""
        values = [sum(a * x for a, x in zip(row, y, strict=True)) - c for row, c in zip(self.A, self.c, strict=True)]
        slopes = list(self.A)
        if self.rim is not None:
            values.append((y[0] ** 2 + y[1] ** 2 - Decimal(float(self.rim)) ** 2) / 2)
            slopes.append([y[0], y[1], Decimal(0)])
        return values, slopes


def faces(points):
    equations = np.unique(ConvexHull(points).equations.round(15), axis=0)
    return equations[:, :3], -equations[:, 3]


def solved(H, b):
    """x of H x = b with a positive definite H; H and b are lost."""
    n = len(b)
    for i in range(n):
        for k in range(i + 1, n):
            factor = H[k][i] / H[i][i]
            H[k] = [x - factor * y for x, y in zip(H[k], H[i], strict=True)]
            b[k] -= factor * b[i]
    for i in reversed(range(n)):
        b[i] = (b[i] - sum(H[i][k] * b[k] for k in range(i + 1, n))) / H[i][i]
    return b


def exact_distance(first, T, second, U):
    """Distance and normal (3,), from the first to the second, of two shapes with these poses whose cores are apart."""
    with localcontext() as context:
        context.prec = DIGITS
        cores = Core(first, T), Core(second, U)
        split, n = cores[0].n, cores[0].n + cores[1].n
        y = cores[0].begin + cores[1].begin
        J = [[-x for x in cores[0].B[i]] + cores[1].B[i] for i in range(3)]    # ∂v/∂y, v = b − a

        def parts(y):
            (v0, g0), (v1, g1) = cores[0].constraints(y[:split]), cores[1].constraints(y[split:])
            zeros = [Decimal(0)] * split, [Decimal(0)] * (n - split)
            return v0 + v1, [g + zeros[1] for g in g0] + [zeros[0] + g for g in g1]

        def way(y):
            return [b - a for a, b in zip(cores[0].point(y[:split]), cores[1].point(y[split:]), strict=True)]

        values, slopes = parts(y)
        m = len(values)
        s = [max(-x, Decimal("1e-3")) for x in values]
        multipliers = [Decimal("1e-3") / x for x in s]
        rims = [k for k, core in ((len(cores[0].A), cores[0]), (m - 1, cores[1])) if core.rim is not None]
        for _ in range(ITERATIONS):
            if not n:
                break
            v = way(y)
            gap = sum(x * z for x, z in zip(multipliers, s, strict=True)) / max(m, 1)
            slope = [sum(J[i][k] * v[i] for i in range(3)) + sum(multipliers[r] * slopes[r][k] for r in range(m))
                     for k in range(n)]
            wrong = max(map(abs, slope)) + max([abs(values[r] + s[r]) for r in range(m)])
            if gap < SMALL and wrong < SMALL:
                break
            target = max(gap * min(gap, Decimal("0.05")), SMALL / 1000)
            H = [[Decimal(0)] * n for _ in range(n)]
            for k in range(n):
                for j in range(n):
                    H[k][j] = sum(J[i][k] * J[i][j] for i in range(3)) + sum(
                        multipliers[r] / s[r] * slopes[r][k] * slopes[r][j] for r in range(m) if slopes[r][k])
            for r in rims:
                for k in ((0, 1) if r < len(cores[0].A) + (cores[0].rim is not None) else (split, split + 1)):
                    H[k][k] += multipliers[r]
            for k in range(n):    # where the nearest points are a line or a face
                H[k][k] += Decimal("1e-50")
            weight = [(target + multipliers[r] * values[r]) / s[r] for r in range(m)]
            step = solved(H, [-slope[k] - sum(weight[r] * slopes[r][k] for r in range(m)) for k in range(n)])
            moved = [sum(slopes[r][k] * step[k] for k in range(n)) for r in range(m)]
            ds = [-values[r] - s[r] - moved[r] for r in range(m)]
            dm = [(target - multipliers[r] * ds[r]) / s[r] - multipliers[r] for r in range(m)]
            part = max(Decimal("0.99"), 1 - gap)
            length = min([Decimal(1), *(-part * x / d for x, d in (*zip(s, ds, strict=True), *zip(
                multipliers, dm, strict=True)) if d < 0)])
            y = [y[k] + length * step[k] for k in range(n)]
            s = [x + length * d for x, d in zip(s, ds, strict=True)]
            multipliers = [x + length * d for x, d in zip(multipliers, dm, strict=True)]
            values, slopes = parts(y)
        else:
            raise AssertionError("no convergence")
        v = way(y)
        size = sum(x * x for x in v).sqrt()
        return float(size - cores[0].radius - cores[1].radius), np.array([float(x / size) for x in v])

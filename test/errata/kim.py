"""K's tables on arrays of one tree of one-coordinate joints, with the factors that a misprint touches as arguments.

Real or complex (complex step). A tree is `T` (n, 4, 4) poses in the parent, `S` (n, 6), `I` (n, 6, 6), `W` (n, 6)
external wrenches; gravity is the acceleration `V0dot` of the ground.
"""

import numpy as np
from support.trees import random_inertia, random_rotation

PARENTS = (-1, 0, 1, 0, 3)
GROUND = np.array([0.0, 0.0, 0.0, 1.0, -2.0, 9.0])


def skew(x):
    return np.array([[0.0 * x[0], -x[2], x[1]], [x[2], 0.0 * x[0], -x[0]], [-x[1], x[0], 0.0 * x[0]]])


def hat(V):
    return np.block([[skew(V[:3]), V[3:, None]], [np.zeros((1, 4))]])


def ad(V):
    return np.block([[skew(V[:3]), np.zeros((3, 3))], [skew(V[3:]), skew(V[:3])]])


def Ad(T):
    R = T[:3, :3]
    return np.block([[R, np.zeros((3, 3))], [skew(T[:3, 3]) @ R, R]])


def inverse(T):
    out = np.eye(4, dtype=T.dtype)
    out[:3, :3], out[:3, 3] = T[:3, :3].T, -T[:3, :3].T @ T[:3, 3]
    return out


def back(T):
    """Ad_{T⁻¹}."""
    return Ad(inverse(T))


def generalized(inertia):
    """K eq. 22."""
    c = skew(inertia.moment)
    return np.block([[inertia.about_origin, c], [c.T, inertia.mass * np.eye(3)]])


class Tree:
    """Random, with rates, accelerations and efforts."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n = len(PARENTS)
        self.T = np.tile(np.eye(4), (n, 1, 1))
        for T in self.T:
            T[:3, :3], T[:3, 3] = random_rotation(rng), rng.normal(size=3)
        self.S, self.W = rng.normal(size=(2, n, 6))
        self.I = np.array([generalized(random_inertia(rng)) for _ in range(n)])
        self.v, self.a, self.tau = rng.normal(size=(3, n))
        self.rng, self.n = rng, n

    def along(self, change, step=1e-30j):
        """The same tree moved by `step` along a change: `h` (T⁻¹∂T), `S`, `I`, `W`, `v`, `a`, `tau`."""
        moved = Tree.__new__(Tree)
        moved.n = self.n
        moved.T = self.T @ (np.eye(4) + step * np.array([hat(h) for h in change["h"]]))
        for name in ("S", "I", "W", "v", "a", "tau"):
            setattr(moved, name, getattr(self, name) + step * change[name])
        return moved

    def jacobian(self):
        J = np.zeros((self.n, 6, self.n), dtype=self.T.dtype)
        for i, up in enumerate(PARENTS):
            J[i] = back(self.T[i]) @ J[up] if up >= 0 else 0.0
            J[i][:, i] += self.S[i]
        return J

    def dense(self):
        """M and b of K eq. 32 from each body's equation 31 and virtual power: no recursion of forces."""
        J = self.jacobian()
        no = {name: 0.0 for name in ("S", "I", "W", "v", "a", "tau")}
        rate = self.along({"h": self.S * self.v[:, None], **no}).jacobian().imag / 1e-30
        M, b = np.zeros((self.n, self.n)), np.zeros(self.n)
        ground = [GROUND] * self.n
        for i, up in enumerate(PARENTS):
            ground[i] = back(self.T[i]) @ (ground[up] if up >= 0 else GROUND)
            V = J[i] @ self.v
            M += J[i].T @ self.I[i] @ J[i]
            b += J[i].T @ (self.I[i] @ (rate[i] @ self.v + ground[i]) - ad(V).T @ self.I[i] @ V - self.W[i])
        return M, b


def velocities(tree):
    V, eta = [], []
    for i, up in enumerate(PARENTS):
        V.append((back(tree.T[i]) @ V[up] if up >= 0 else 0.0) + tree.S[i] * tree.v[i])
        eta.append(ad(V[i]) @ tree.S[i] * tree.v[i])
    return V, eta


def hybrid(tree, prescribed=(), left=lambda T: back(T).T, bias=lambda T: back(T).T, right=back, base=back):
    """K Table 4 (Table 3 where nothing is prescribed): accelerations, efforts and what Table 6 needs."""
    V, eta = velocities(tree)
    n = tree.n
    Ih = [I + 0.0 for I in tree.I]
    Bh = [-ad(V[i]).T @ tree.I[i] @ V[i] - tree.W[i] for i in range(n)]
    Pi, beta, Psi = [None] * n, [None] * n, [0.0] * n
    for i in range(n - 1, -1, -1):
        S = tree.S[i]
        if i in prescribed:
            Pi[i], beta[i] = Ih[i], Bh[i] + Ih[i] @ (eta[i] + S * tree.a[i])
        else:
            IS = Ih[i] @ S
            Psi[i] = 1.0 / (S @ IS)
            Pi[i] = Ih[i] - Psi[i] * np.outer(IS, IS)
            beta[i] = Bh[i] + Ih[i] @ (eta[i] + S * Psi[i] * (tree.tau[i] - S @ (Ih[i] @ eta[i] + Bh[i])))
        up = PARENTS[i]
        if up >= 0:
            Ih[up] = Ih[up] + left(tree.T[i]) @ Pi[i] @ right(tree.T[i])
            Bh[up] = Bh[up] + bias(tree.T[i]) @ beta[i]
    a, tau, Vdot = list(tree.a), list(tree.tau), []
    for i, up in enumerate(PARENTS):
        above, S = Vdot[up] if up >= 0 else GROUND, tree.S[i]
        if i not in prescribed:
            a[i] = Psi[i] * (tree.tau[i] - S @ Ih[i] @ (back(tree.T[i]) @ above + eta[i]) - S @ Bh[i])
        Vdot.append(base(tree.T[i]) @ above + S * a[i] + eta[i])
        if i in prescribed:
            tau[i] = S @ (Ih[i] @ Vdot[i] + Bh[i])
    return np.array(a), np.array(tau), (V, eta, Ih, Bh, Pi, beta, Psi, Vdot)


def table_6(tree, d, base=back, left=lambda T: back(T).T):
    """K Table 6: ∂q̈ for a change `d` as in `Tree.along`."""
    a, _, (V, eta, Ih, Bh, Pi, beta, Psi, Vdot) = hybrid(tree)
    n = tree.n
    dV, deta = [], []
    for i, up in enumerate(PARENTS):
        above, dabove = (V[up], dV[up]) if up >= 0 else (np.zeros(6), np.zeros(6))
        X = back(tree.T[i])
        joint = d["S"][i] * tree.v[i] + tree.S[i] * d["v"][i]
        dV.append(X @ dabove - ad(d["h"][i]) @ X @ above + joint)
        deta.append(ad(dV[i]) @ tree.S[i] * tree.v[i] + ad(V[i]) @ joint)
    dIh = [x + 0.0 for x in d["I"]]
    dBh = [-ad(dV[i]).T @ tree.I[i] @ V[i] - ad(V[i]).T @ (d["I"][i] @ V[i] + tree.I[i] @ dV[i]) - d["W"][i]
           for i in range(n)]
    dPsi = np.zeros(n)
    for i in range(n - 1, -1, -1):
        S, dS, IS = tree.S[i], d["S"][i], Ih[i] @ tree.S[i]
        dPsi[i] = -Psi[i] ** 2 * (S @ dIh[i] @ S + 2.0 * dS @ IS)
        once = Psi[i] * (np.outer(dIh[i] @ S, IS) + np.outer(Ih[i] @ dS, IS))
        dPi = dIh[i] - (dPsi[i] * np.outer(IS, IS) + once + once.T)
        rest = tree.tau[i] - S @ (Ih[i] @ eta[i] + Bh[i])
        drest = d["tau"][i] - dS @ (Ih[i] @ eta[i] + Bh[i]) - S @ (dIh[i] @ eta[i] + Ih[i] @ deta[i] + dBh[i])
        dbeta = (dBh[i] + dIh[i] @ (eta[i] + S * Psi[i] * rest)
                 + Ih[i] @ (deta[i] + (dS * Psi[i] + S * dPsi[i]) * rest + S * Psi[i] * drest))
        up = PARENTS[i]
        if up >= 0:
            X, turn = back(tree.T[i]), Pi[i] @ ad(d["h"][i])
            dIh[up] = dIh[up] + left(tree.T[i]) @ (dPi - turn - turn.T) @ X
            dBh[up] = dBh[up] + left(tree.T[i]) @ (dbeta - ad(d["h"][i]).T @ beta[i])
    da, dVdot = np.zeros(n), []
    for i, up in enumerate(PARENTS):
        above, dabove = (Vdot[up], dVdot[up]) if up >= 0 else (GROUND, np.zeros(6))
        X, S, dS, turned = back(tree.T[i]), tree.S[i], d["S"][i], ad(d["h"][i]) @ back(tree.T[i]) @ above
        driven = X @ above + eta[i]
        da[i] = (dPsi[i] * (tree.tau[i] - S @ Ih[i] @ driven - S @ Bh[i])
                 + Psi[i] * (d["tau"][i] - (dS @ Ih[i] + S @ dIh[i]) @ driven
                             - S @ Ih[i] @ (X @ dabove - turned + deta[i]) - dS @ Bh[i] - S @ dBh[i]))
        dVdot.append(base(tree.T[i]) @ dabove - turned + dS * a[i] + S * da[i] + deta[i])
    return da

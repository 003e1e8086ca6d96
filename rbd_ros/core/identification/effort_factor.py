"""How many times what the description says a joint's effort is, and which such factors it excludes.

`y = Σ_i k_i (b_i + D_i e) + F φ + r`: of k_i times parts b_i of what the description says (its whole, or gravity and
the rest). e ~ N(0, 1) is what the description may be wrong by, φ friction, rotor and offset, of which nothing is known,
r the noise. For given factors k the noise of y is `S(k) = σ² 1 + D(k) D(k)ᵀ`, and k̂ the generalised least squares: a k
is excluded if k̂ is further from it than noise of that covariance explains. Unlike an interval about k̂ this holds
however little is known of the description (Fieller's theorem).
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ROUNDS = 30          # of the noise's variance
INDEPENDENT = 1e-8   # singular values of columns of length one
SMALLEST = 1e-6      # share of an effort, or of a part of it, that friction does not explain
MISFIT = 0.02        # share of friction that no law of friction says, in any direction
WIDTH = 9            # lines of the spectrum, half a period per recording apart, that are one


@dataclass(frozen=True, eq=False)
class EffortFactor:
    """Of one joint, without what friction explains: b (r, m), D (m of (r, p)), y (r,), in r directions of time; noise:
    variance σ² of a direction; limit: standard errors that are exceeded as rarely as was asked for.
    """

    b: Array
    D: tuple[Array, ...]
    y: Array
    noise: float
    limit: float

    def given(self, factors: Array) -> tuple[Array, Array]:
        """k̂ (m,) and its standard errors, as they are if these factors (m,) are the true ones."""
        D = sum(k * part for k, part in zip(factors, self.D, strict=True))
        apply = _inverse(np.asarray(D), self.noise)
        covariance = np.linalg.inv(self.b.T @ apply(self.b))
        return covariance @ (self.b.T @ apply(self.y)), np.sqrt(np.diag(covariance))

    def above(self, *factors: float) -> bool:
        """Whether the first factor is more than all of these, the others being one."""
        return min(self._off(factors)) > self.limit

    def below(self, *factors: float) -> bool:
        """Whether it is less than all of these."""
        return max(self._off(factors)) < -self.limit

    def _off(self, factors: tuple[float, ...]) -> list[float]:
        """By how many standard errors the estimate is above each."""
        each = [self.given(np.array([k, *[1.0] * (len(self.D) - 1)])) for k in factors]
        return [float((found[0] - k) / error[0]) for k, (found, error) in zip(factors, each, strict=True)]


def effort_factor(y: Array, b: Array, D: tuple[Array, ...], free: Array, friction: Array,
                  filtered: float, rare: float) -> EffortFactor | None:
    """Of y (n,), b (n, m), D (m of (n, p)), free columns F: (n, f), and those of friction, (n, g). filtered: how many
    samples of filtered white noise say as much as one without correlation. rare: how often a factor may be excluded
    that is right; noise of which few samples tell counts more. None where nothing is left to be compared.
    """
    from scipy.special import ndtri, stdtrit

    m, p = b.shape[1], D[0].shape[1]
    Q, columns = _basis(np.column_stack([free, friction])), np.column_stack([y, b, *D])
    columns -= Q @ (Q.T @ columns)
    freedoms = len(y) - Q.shape[1] - m
    sizes = np.linalg.norm(columns[:, :m + 1], axis=0)
    if freedoms < 2 or (sizes <= SMALLEST * np.linalg.norm(np.column_stack([y, b]), axis=0).max()).any():
        return None
    basis, turned = np.linalg.qr(columns[:, 1:])
    own, parts = basis.T @ columns[:, 0], tuple(turned[:, m + k * p:m + (k + 1) * p] for k in range(m))
    outside = max(float(sizes[0]**2 - own @ own), 0.0)
    rubbing = friction @ np.linalg.lstsq(np.column_stack([friction, free, b]), y, rcond=None)[0][:friction.shape[1]]
    misfit = MISFIT**2 * float(np.sum((rubbing - rubbing.mean())**2))
    variance, k, share = _noise(own, turned[:, :m], parts, outside, freedoms)
    left = columns[:, 0] - columns[:, 1:] @ np.concatenate([k, share])
    slower = max(filtered, _correlated(left))
    limit = -float(ndtri(rare))
    fewer = float(stdtrit(max(freedoms / slower, 1.0), rare)) / limit
    return EffortFactor(turned[:, :m], parts, own, variance * slower * fewer**2 + misfit, limit)


def _noise(y: Array, b: Array, parts: tuple[Array, ...], outside: float, freedoms: int) -> tuple[float, Array, Array]:
    """The variance that explains itself, with the factors and the coefficients (m p,) of D that belong to it: what the
    description may be wrong by takes from the residual as much as it can, and from its freedoms likewise.
    """
    variance, k = (float(y @ y) + outside) / freedoms, np.ones(b.shape[1])
    for _ in range(ROUNDS):
        scales = np.maximum(np.abs(k), 1.0)
        D = np.asarray(sum(s * part for s, part in zip(scales, parts, strict=True)))
        U, s, _ = np.linalg.svd(D, full_matrices=False)
        held = s**2 / (s**2 + variance)
        apply = _inverse(D, variance)
        k = np.linalg.solve(b.T @ apply(b), b.T @ apply(y))
        residual = y - b @ k
        error = residual - U @ (held * (U.T @ residual))
        before, variance = variance, max((float(error @ error) + outside) / max(freedoms - float(held.sum()), 1.0),
                                         1e-12 * float(y @ y) / freedoms)
        if abs(variance - before) < 1e-3 * before:
            break
    return variance, k, np.concatenate([s * (D.T @ apply(residual)) for s in scales])


def _inverse(D: Array, variance: float) -> Callable[[Array], Array]:
    """x → (variance 1 + D Dᵀ)⁻¹ x."""
    U, s, _ = np.linalg.svd(D, full_matrices=False)
    share = s**2 / (s**2 + variance)

    def apply(x: Array) -> Array:
        inner = U.T @ x
        return (x - U @ (share * inner if x.ndim == 1 else share[:, None] * inner)) / variance

    return apply


def _basis(columns: Array) -> Array:
    """Orthonormal, of their span."""
    lengths = np.linalg.norm(columns, axis=0)
    columns = columns[:, lengths > 1e-12] / lengths[lengths > 1e-12]
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    found: Array = U[:, s > INDEPENDENT * max(float(s.max(initial=0.0)), 1.0)]
    return found


def _correlated(r: Array) -> float:
    """How many samples say as much as one: the largest density of the residual over its mean. What is left of friction
    repeats with the motion, at the frequencies at which the rest of the effort is, too.
    """
    density = np.abs(np.fft.rfft(r, 2 * len(r)))**2
    smooth = np.convolve(density, np.full(WIDTH, 1.0 / WIDTH), "valid") if len(density) > WIDTH else density
    return float(smooth.max() / max(float(density.mean()), 1e-300))

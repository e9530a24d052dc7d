"""Derive the polynomial coefficients of :mod:`.math` (run it; nothing imports it).

Weighted least squares on Chebyshev nodes in long double, with the weights sharpened towards the
largest error until the error is level (Lawson's method): within a few percent of minimax, and
short enough to read. ``python -m composite.compiler.tvm.fit`` prints the coefficients and errors.
"""

from __future__ import annotations

import math

import numpy as np

Real = np.longdouble


def _expm1_tail(r: np.ndarray) -> np.ndarray:
    """Return (exp(r) - 1 - r) / r^2 from its series, without cancellation."""
    term = np.full_like(r, Real(0.5))
    total = term.copy()
    for k in range(3, 40):
        term = term * r / Real(k)
        total = total + term
    return total


def _solve(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Solve a small least squares problem in long double by Householder reflections."""
    a, y = matrix.copy(), target.copy()
    n = a.shape[1]
    for j in range(n):
        v = a[j:, j].copy()
        v[0] += np.copysign(np.sqrt((v * v).sum()), v[0])
        scale = Real(2) / (v * v).sum()
        a[j:] -= np.outer(v, (v @ a[j:]) * scale)
        y[j:] -= v * ((v @ y[j:]) * scale)
    x = np.zeros(n, Real)
    for j in reversed(range(n)):
        x[j] = (y[j] - a[j, j + 1 :] @ x[j + 1 :]) / a[j, j]
    return x


def _fit(
    nodes: np.ndarray, target: np.ndarray, size: np.ndarray, degree: int, steps: int
) -> tuple[list[float], float]:
    """Return the polynomial whose largest error times ``size`` is least (Lawson's reweighting)."""
    powers = np.stack([nodes**k for k in range(degree + 1)], axis=1)
    weight = np.ones_like(nodes)
    for _ in range(steps):
        scale = np.sqrt(weight) * size
        q = _solve(powers * scale[:, None], target * scale)
        error = np.abs((powers @ q - target) * size)
        weight = weight * (error / error.max() + Real(1e-9))
        weight /= weight.sum()
    return [float(c) for c in q], float(error.max())


def _chebyshev(count: int) -> np.ndarray:
    return np.cos(np.pi * (np.arange(count) + 0.5).astype(Real) / count)


def fit_expm1_tail(degree: int, steps: int = 60) -> tuple[list[float], float]:
    """Return q with exp(r) ~ 1 + r + r^2 q(r) on |r| <= ln(2)/2, and its error relative to exp."""
    nodes = _chebyshev(600) * (Real(math.log(2)) / 2 * Real(1.001))
    return _fit(nodes, _expm1_tail(nodes), nodes * nodes / np.exp(nodes), degree, steps)


def fit_exp_rest(degree: int, steps: int = 60) -> tuple[list[float], float]:
    """Return q with exp(r) ~ 1 + r q(r) on 0 <= r <= ln(2), and its error relative to exp."""
    nodes = (_chebyshev(600) + 1) * (Real(math.log(2)) / 2 * Real(1.00001))
    return _fit(nodes, 1 + nodes * _expm1_tail(nodes), nodes / np.exp(nodes), degree, steps)


def fit_erfc(degree: int, steps: int = 60) -> tuple[list[float], float]:
    """Return q with erfc(x) ~ e^(-x^2) t q(t - 1/2), t = 1 / (1 + x / 2), and its relative error.

    For 0 <= x <= 10.1, beyond which float32 has none.
    """
    least = 1 / (1 + Real(10.1) / 2)
    t = (1 + least) / 2 + (1 - least) / 2 * _chebyshev(400)
    x = (2 * (1 / t - 1)).astype(np.float64)
    scaled = np.array([math.erfc(v) for v in x]) * np.exp(x.astype(Real) ** 2)
    return _fit(t - Real(0.5), scaled / t, t / scaled, degree, steps)


def main() -> None:
    """Print what math.py holds."""
    fits = (
        ("float32 expm1 tail", fit_expm1_tail, 4),
        ("float64 expm1 tail", fit_expm1_tail, 9),
        ("float32 exp", fit_exp_rest, 5),
        ("float32 erfc", fit_erfc, 9),
    )
    for what, fit, degree in fits:
        coefficients, error = fit(degree)
        print(what, "error", error)
        print("   ", ", ".join(repr(c) for c in coefficients))


if __name__ == "__main__":
    main()

"""Derive coefficients of :mod:`.elementary`, :mod:`.exponential` and :mod:`.trigonometry`.

Run it; nothing imports it.

Weighted least squares on Chebyshev nodes in long double, with the weights sharpened towards the
largest error until the error is level (Lawson's method): within a few percent of minimax, and
short enough to read. ``python -m composite.compiler.tvm.math.fit`` prints the coefficients and
errors.
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


def fit_exp_tail(degree: int, steps: int = 60) -> tuple[list[float], float]:
    """Return q as `fit_expm1_tail` does, on -ln(2)/2 <= r <= ln(2)."""
    nodes = Real(math.log(2)) * (Real(0.25) + Real(0.7505) * _chebyshev(600))
    return _fit(nodes, _expm1_tail(nodes), nodes * nodes / np.exp(nodes), degree, steps)


def _fit_ratio(
    nodes: np.ndarray, target: np.ndarray, degrees: tuple[int, int], unit: int, steps: int
) -> tuple[list[float], list[float], float]:
    """Return P and Q whose ratio has the least largest error relative to ``target``.

    Q's coefficient ``unit`` is 1: as the last it saves a product, as the first some rounding.
    The error of P - target Q is least where the one of P / target / Q is, if it is weighted with
    the Q of the step before (Sanathanan and Koerner).
    """
    over, under = degrees
    powers = np.stack([nodes**k for k in range(max(degrees) + 1)], axis=1)
    columns = [powers[:, : over + 1], -target[:, None] * powers[:, 1 : under + 1]]
    weight, denominator = np.ones_like(nodes), np.ones_like(nodes)
    for _ in range(steps):
        scale = np.sqrt(weight) / (np.abs(target) * denominator)
        matrix = np.concatenate(columns, axis=1) * scale[:, None]
        largest = np.abs(matrix).max(0)
        found = _solve(matrix / largest, target * scale) / largest
        p, q = found[: over + 1], np.concatenate([[Real(1)], found[over + 1 :]])
        denominator = powers[:, : under + 1] @ q
        error = np.abs(powers[:, : over + 1] @ p / denominator / target - 1)
        weight = weight * (error / error.max() + Real(1e-6))
        weight /= weight.sum()
    # In float32 the denominator is rounded; the numerator makes up for that.
    q = (q / q[unit]).astype(np.float32).astype(Real)
    given = powers[:, : under + 1] @ q
    p, largest_error = _fit(nodes, target * given, 1 / np.abs(target * given), over, steps)
    return p, [float(c) for c in q], largest_error


def fit_erfc(degrees: tuple[int, int], steps: int = 200) -> tuple[list[float], list[float], float]:
    """Return P and Q with erfc(x) ~ e^(-x^2) P(x) / Q(x) for 0 <= x <= 9.4, and the relative error.

    The exponent is reduced by multiples of float32's ln(2), which P / Q makes up for. Beyond that
    range float32 has no such number.
    """
    places = _chebyshev(600), ((1 + _chebyshev(300)) / 2) ** 2 * 2 - 1
    x = np.sort((1 + np.concatenate(places)) * Real(4.7))
    values = np.array([math.erfc(v) for v in x.astype(np.float64)])
    reduced = Real(np.float32(math.log(2))) / Real(math.log(2)) - 1
    return _fit_ratio(x, values * np.exp(x * x * (1 - reduced)), degrees, -1, steps)


def fit_tanh_tail(degree: int, steps: int = 60) -> tuple[list[float], float]:
    """Return q with tanh(u) ~ u + u s q(s), s = u^2, for |u| <= ln(2)/4, and the relative error."""
    s = (1 + _chebyshev(600)) / 2 * (Real(math.log(2)) / 2 * Real(0.782)) ** 2
    u = np.sqrt(s)
    ratio = np.tanh(u) / u
    return _fit(s, (ratio - 1) / s, s / ratio, degree, steps)


def fit_atan_tail(degree: int, steps: int = 60) -> tuple[list[float], float]:
    """Return q with atan(a) ~ a + a s q(s), s = a^2, for 0 <= a <= 1, and the relative error."""
    s = (1 + _chebyshev(600)) / 2 * Real(1.001)
    a = np.sqrt(s)
    ratio = np.arctan(a) / a
    return _fit(s, (ratio - 1) / s, s / ratio, degree, steps)


def main() -> None:
    """Print what they hold."""
    fits = (
        ("float32 expm1 tail", fit_expm1_tail, 4),
        ("float64 expm1 tail", fit_expm1_tail, 9),
        ("float32 exp tail", fit_exp_tail, 5),
        ("float32 atan tail", fit_atan_tail, 7),
        ("float32 tanh tail", fit_tanh_tail, 2),
    )
    for what, fit, degree in fits:
        coefficients, error = fit(degree)
        print(what, "error", error)
        print("   ", ", ".join(repr(c) for c in coefficients))
    over, under, error = fit_erfc((4, 5))
    print("float32 erfc error", error)
    print("   ", over, "over", under)


if __name__ == "__main__":
    main()

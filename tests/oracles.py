"""The models of the paper: textbook formulas, closed forms of the T-update, dense Algorithm 1.

Nothing here imports nmd_lab. A nonlinearity is its name; MinMax has the bounds ``a`` and ``b``.
"""

from dataclasses import dataclass, field

import numpy as np
import part_oracles

NONLINEARITIES = ("relu", "square", "minmax", "modulus", "identity")
LOSSES = ("frobenius", "l1", "kl")
PAIRS = [(f, d) for f in NONLINEARITIES for d in LOSSES]


def forward(f: str, t: np.ndarray, a: float = 0.0, b: float = 1.0) -> np.ndarray:
    """The nonlinearity f(t), entry by entry."""
    return part_oracles.forward((f, a, b) if f == "minmax" else (f,), t)


def distance(loss: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The loss d(x, y), entry by entry; KL is infinite outside y > 0 (y >= 0 where x = 0)."""
    return part_oracles.distance((loss,), x, y)


def subproblem(t, v, x, rho, f: str, loss: str, a: float = 0.0, b: float = 1.0) -> np.ndarray:
    """What the T-update minimises: d(x, f(t)) + rho/2 (t - v)^2."""
    return distance(loss, x, forward(f, t, a, b)) + rho / 2 * (t - v) ** 2


# Closed forms -----------------------------------------------------------------------------------


def _plain_prox(loss: str, v, x, rho):
    """argmin over y of d(x, y) + rho/2 (y - v)^2."""
    if loss == "frobenius":
        return (x + rho * v) / (1 + rho)
    if loss == "l1":
        return np.minimum(np.maximum(x, v - 1 / rho), v + 1 / rho)
    c = 1 - rho * v
    s = np.sqrt(c * c + 4 * rho * x)
    with np.errstate(divide="ignore", invalid="ignore"):
        positive = np.where(c > 0, 2 * x / (c + s), (s - c) / (2 * rho))
    return np.where(x > 0, positive, np.maximum(v - 1 / rho, 0))


def _cubic_roots(p, q):
    """Three candidates that hold every real root of t^3 + p t + q (repeats and NaN where fewer)."""
    with np.errstate(all="ignore"):
        disc = (q / 2) ** 2 + (p / 3) ** 3
        c = np.cbrt(-q / 2 - np.copysign(np.sqrt(np.maximum(disc, 0)), q))
        single = np.where(c == 0, 0.0, c - p / (3 * c))
        angle = np.arccos(np.clip(3 * q / (2 * p) * np.sqrt(-3 / p), -1, 1))
        roots = [2 * np.sqrt(-p / 3) * np.cos((angle - 2 * np.pi * k) / 3) for k in range(3)]
        roots = [np.where(disc > 0, single, r) for r in roots]
        for _ in range(6):  # polish
            steps = [(r**3 + p * r + q) / (3 * r**2 + p) for r in roots]
            roots = [r - np.where(np.isfinite(s), s, 0) for r, s in zip(roots, steps, strict=True)]
    return roots


def exact_prox(v, x, rho, f: str, loss: str, a: float = 0.0, b: float = 1.0) -> np.ndarray:
    """The minimiser of ``subproblem``: the best of every piece's own minimiser."""
    v, x, rho = np.broadcast_arrays(*(np.asarray(u, dtype=float) for u in (v, x, rho)))
    if f == "identity":
        candidates = [_plain_prox(loss, v, x, rho)]
    elif f == "relu":
        candidates = [np.minimum(v, 0), np.maximum(_plain_prox(loss, v, x, rho), 0)]
    elif f == "minmax":
        inside = np.clip(_plain_prox(loss, v, x, rho), a, b)
        candidates = [np.minimum(v, a), inside, np.maximum(v, b)]
    elif f == "modulus":
        candidates = [
            np.maximum(_plain_prox(loss, v, x, rho), 0),
            -np.maximum(_plain_prox(loss, -v, x, rho), 0),
        ]
    elif loss == "frobenius":
        candidates = _cubic_roots(rho / 2 - x, -rho * v / 2)
    elif loss == "l1":
        root = np.sqrt(np.maximum(x, 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = np.where(rho > 2, rho * v / (rho - 2), 0)
        candidates = [root, -root, rho * v / (rho + 2), inner]
    else:
        s = np.sqrt((rho * v) ** 2 + 8 * x * (rho + 2))
        candidates = [np.where(v < 0, rho * v - s, rho * v + s) / (2 * (rho + 2))]
    points = np.stack(candidates)
    values = subproblem(points, v, x, rho, f, loss, a, b)
    values = np.where(np.isnan(values), np.inf, values)
    return np.take_along_axis(points, np.argmin(values, axis=0)[None], axis=0)[0]


# Algorithm 1 ------------------------------------------------------------------------------------


def best_rows(H, Z, seen, ridge):
    """The ridge regression of each row on the columns of H where it is observed."""
    pairs = [(H[:, s], z[s]) for s, z in zip(seen, Z, strict=True)]
    return np.array([np.linalg.solve(part @ part.T + ridge, part @ z) for part, z in pairs])


@dataclass
class Trace:
    """What ``plain_admm`` saw after each iteration."""

    W: np.ndarray
    H: np.ndarray
    product: list[np.ndarray] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    relative_error: list[float] = field(default_factory=list)
    primal_residual: list[float] = field(default_factory=list)
    dual_residual: list[float] = field(default_factory=list)
    penalty: list[float] = field(default_factory=list)


def errors(X, A, f, loss, mask, kl_floor, a=0.0, b=1.0) -> tuple[float, float]:
    """Total loss and relative error of f(A) on the mask, in the paper's normalisation."""
    x, y = X[mask], forward(f, A[mask], a, b)
    if loss == "kl":
        total = distance("kl", x, np.maximum(y, kl_floor * x)).sum()
        return total, total / distance("kl", x, np.full_like(x, x.mean())).sum()
    total = distance(loss, x, y).sum()
    if loss == "l1":
        return total, total / np.abs(x).sum()
    return total, np.sqrt(((x - y) ** 2).sum() / (x**2).sum())


def plain_admm(
    X, W0, H0, nonlinearity, loss, observed=None, n_iter=20, penalty="balanced", epsilon=1e-10,
    alpha=0.0, a=0.0, b=1.0, kl_floor=1e-10,
) -> Trace:  # fmt: skip
    """Algorithm 1 on dense matrices, one line per line of the book."""
    mask = np.ones(X.shape, dtype=bool) if observed is None else observed
    X = np.where(mask, X, 0.0).astype(float)
    W, H = W0.astype(float), H0.astype(float)
    identity = np.eye(W.shape[1])
    T = np.sqrt(np.maximum(X, 0)) if nonlinearity == "square" else X.copy()
    U = np.zeros_like(X)
    rho = 1.0 if isinstance(penalty, str) else float(penalty)
    trace = Trace(W, H)
    for _ in range(n_iter):
        Z = T + U
        ridge = epsilon * (H**2).sum() + alpha / rho
        W = np.linalg.solve(H @ H.T + ridge * identity, H @ Z.T).T
        ridge = epsilon * (W**2).sum() + alpha / rho
        H = np.linalg.solve(W.T @ W + ridge * identity, W.T @ Z)
        A = W @ H
        V = A - U
        previous = T
        T = np.where(mask, exact_prox(V, X, rho, nonlinearity, loss, a, b), V)
        U = T - V
        change = W.T @ (T - previous) if penalty == "paper" else T - previous
        R, S = np.linalg.norm(T - A), rho * np.linalg.norm(change)

        total, relative = errors(X, A, nonlinearity, loss, mask, kl_floor, a, b)
        trace.product.append(A)
        trace.objective.append(total + alpha / 2 * ((W**2).sum() + (H**2).sum()))
        trace.relative_error.append(relative)
        trace.primal_residual.append(R)
        trace.dual_residual.append(S)
        trace.penalty.append(rho)

        new = rho
        if isinstance(penalty, str):
            mu = {"balanced": 3, "paper": 10}[penalty]
            if mu * S < R:
                new = 2 * rho
            elif mu * R < S:
                new = rho / 2
        U, rho = U * (rho / new), new
    trace.W, trace.H = W, H
    return trace

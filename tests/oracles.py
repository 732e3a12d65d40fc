"""The models of the paper: textbook formulas, and Algorithm 1 on dense matrices.

A nonlinearity is its name; MinMax has the bounds ``a`` and ``b``.  Of nmd_lab there is the
T-update alone, which has an oracle of its own.
"""

from typing import NamedTuple

import numpy as np
import part_oracles

import nmd_lab

NONLINEARITIES = ("relu", "square", "minmax", "modulus", "identity")
LOSSES = ("frobenius", "l1", "kl")
PAIRS = [(f, d) for f in NONLINEARITIES for d in LOSSES]


def forward(f: str, t: np.ndarray, a: float = 0.0, b: float = 1.0) -> np.ndarray:
    """The nonlinearity f(t), entry by entry."""
    return part_oracles.forward((f, a, b) if f == "minmax" else (f,), t)


def distance(loss: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The loss d(x, y), entry by entry; KL is infinite outside y > 0 (y >= 0 where x = 0)."""
    return part_oracles.distance((loss,), x, y)


def exact_prox(v, x, rho, f: str, loss: str, a: float = 0.0, b: float = 1.0) -> np.ndarray:
    """The T-update, which `model/test_parts.py` compares with brute force."""
    return nmd_lab.prox(
        v, x, rho, nonlinearity=nmd_lab.MinMax(a, b) if f == "minmax" else f, loss=loss
    )


# Algorithm 1 ------------------------------------------------------------------------------------


def best_rows(H, Z, seen, ridge):
    """The ridge regression of each row on the columns of H where it is observed."""
    pairs = [(H[:, s], z[s]) for s, z in zip(seen, Z, strict=True)]
    return np.array([np.linalg.solve(part @ part.T + ridge, part @ z) for part, z in pairs])


def all_rows(H, Z, seen, ridge):
    """The ridge regression of each row on all columns of H."""
    return np.linalg.solve(H @ H.T + ridge, H @ Z.T).T


class Trace(NamedTuple):
    """What ``plain_admm`` saw after each iteration, and the last W."""

    W: np.ndarray
    product: tuple[np.ndarray, ...]
    objective: tuple[float, ...]
    relative_error: tuple[float, ...]
    primal_residual: tuple[float, ...]
    dual_residual: tuple[float, ...]
    penalty: tuple[float, ...]


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
    alpha=0.0, a=0.0, b=1.0, kl_floor=1e-10, observed_only=False,
) -> Trace:  # fmt: skip
    """Algorithm 1 on dense matrices, one line per line of the book.

    In the observed-only form, each row and column is solved at its observed entries.
    """
    mask = np.ones(X.shape, dtype=bool) if observed is None else observed
    X = np.where(mask, X, 0.0).astype(float)
    W, H = W0.astype(float), H0.astype(float)
    identity = np.eye(W.shape[1])
    T = np.sqrt(np.maximum(X, 0)) if nonlinearity == "square" else X.copy()
    least_squares = best_rows if observed_only else all_rows
    U = np.zeros_like(X)
    rho, trace = 1.0 if isinstance(penalty, str) else float(penalty), []
    for _ in range(n_iter):
        Z = T + U
        ridge = epsilon * (H**2).sum() + alpha / rho
        W = least_squares(H, Z, mask, ridge * identity)
        ridge = epsilon * (W**2).sum() + alpha / rho
        H = least_squares(W.T, Z.T, mask.T, ridge * identity).T
        A = W @ H
        V = A - U
        previous = T
        T = np.where(mask, exact_prox(V, X, rho, nonlinearity, loss, a, b), V)
        U = T - V
        change = W.T @ (T - previous) if penalty == "paper" else T - previous
        R, S = np.linalg.norm(T - A), rho * np.linalg.norm(change)

        total, relative = errors(X, A, nonlinearity, loss, mask, kl_floor, a, b)
        objective = total + alpha / 2 * ((W**2).sum() + (H**2).sum())
        trace.append((A, objective, relative, R, S, rho))

        new = rho
        if isinstance(penalty, str):
            mu = {"balanced": 3, "paper": 10}[penalty]
            if mu * S < R:
                new = 2 * rho
            elif mu * R < S:
                new = rho / 2
        U, rho = U * (rho / new), new
    return Trace(W, *zip(*trace, strict=True))

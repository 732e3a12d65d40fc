"""What one iteration costs, beside its three bare matrix products and beside plain NumPy.

Run with ``python benchmarks/iteration.py``; it takes the three in turn, many times, on one thread
and prints the table of median times and ratios.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import time
from collections.abc import Callable, Iterator

import numpy as np

from nmd_lab.data.inputs import observe_dense
from nmd_lab.engines import iterates
from nmd_lab.engines.admm import Admm
from nmd_lab.model.model import make_model
from nmd_lab.problem.initialization import Start
from nmd_lab.problem.problem import Problem
from nmd_lab.request.penalty import PenaltyRule

CASES = [(500, 784, 32), (2429, 361, 10)]
ROUNDS = 60
EPSILON = 1e-12

Array = np.ndarray


def factor_steps(T: Array, dual: Array, H: Array) -> tuple[Array, Array]:
    """The W- and H-step, given the scaled dual variable."""
    identity = np.eye(H.shape[0])
    Z = T + dual
    W = Z @ H.T @ np.linalg.inv(H @ H.T + EPSILON * np.sum(H**2) * identity)
    return W, np.linalg.inv(W.T @ W + EPSILON * np.sum(W**2) * identity) @ (W.T @ Z)


def residuals(X: Array, T: Array, T_previous: Array, A: Array) -> None:
    """What every history records."""
    np.linalg.norm(T - A), np.linalg.norm(T - T_previous)
    np.linalg.norm(X - np.maximum(A, 0))


def as_printed(X: Array, H: Array) -> Iterator[None]:
    """The paper's Algorithm 1 with the T-update of its Algorithm 2, line by line, at ρ = 1."""
    rho = 1.0
    T, dual = X.copy(), np.zeros_like(X)
    while True:
        W, H = factor_steps(T, dual / rho, H)
        A, T_previous = W @ H, T
        Y = dual - rho * A
        T1 = (X + rho * A - dual) / (1 + rho)
        T2 = A - dual / rho
        gamma, delta, theta = Y <= 0, Y >= X, (Y > 0) & (Y < X)
        T = np.zeros_like(X)
        T[gamma], T[delta] = T1[gamma], T2[delta]
        G1 = 0.5 * (X - T1) ** 2 + dual * T1 + 0.5 * rho * (T1 - A) ** 2
        G2 = 0.5 * X**2 + dual * T2 + 0.5 * rho * (T2 - A) ** 2
        T[theta] = np.where(G1 <= G2, T1, T2)[theta]
        dual = dual + rho * (T - A)
        residuals(X, T, T_previous, A)
        yield


def rearranged(X: Array, H: Array) -> Iterator[None]:
    """The same iterates by someone who has thought about NumPy: few temporaries, no indexing."""
    T, U = X.copy(), np.zeros_like(X)
    while True:
        W, H = factor_steps(T, U, H)
        A, T_previous = W @ H, T
        V = A - U
        low, high = np.minimum(V, 0), np.maximum((X + V) / 2, 0)
        low_objective = X**2 + (low - V) ** 2
        high_objective = (X - high) ** 2 + (high - V) ** 2
        T = np.where(low_objective <= high_objective, low, high)
        U = T - V
        residuals(X, T, T_previous, A)
        yield


def seconds(step: Callable[[], object]) -> float:
    began = time.process_time()  # on one thread; other work on the machine does not count
    step()
    return time.process_time() - began


def measure(m: int, n: int, rank: int) -> tuple[float, ...]:
    """Return the median milliseconds of the bare products, ours and the two in plain NumPy."""
    rng = np.random.default_rng(0)
    W, H = rng.standard_normal((m, rank)), rng.standard_normal((rank, n))
    X = np.maximum(W @ H + 0.1 * rng.standard_normal((m, n)), 0)
    A, XHt, WtX = np.empty((m, n)), np.empty((m, rank)), np.empty((rank, n))

    def products() -> None:
        np.dot(W, H, out=A)
        np.dot(X, H.T, out=XHt)
        np.dot(W.T, X, out=WtX)

    fixed = PenaltyRule(factor=np.inf)
    problem = Problem(observe_dense(X), make_model("relu", "frobenius"), fixed, epsilon=EPSILON)
    ours = iterates(Admm(), problem, Start(W, H, from_factors=False))
    printed, tuned = as_printed(X, H), rearranged(X, H)
    steps = (products, lambda: next(ours), lambda: next(printed), lambda: next(tuned))
    times = np.array([[seconds(step) for step in steps] for _ in range(ROUNDS)])
    return tuple(1e3 * np.median(times[5:], axis=0))


def main() -> None:
    print("ReLU + Frobenius, fixed ρ, float64, one thread; median milliseconds an iteration.")
    print("Plain NumPy: (a) the paper's algorithms line by line, (b) rearranged for NumPy.\n")
    print("| size | rank | 3 products | nmd_lab | to products | (a) | to (a) | (b) | to (b) |")
    print("|---|---|---|---|---|---|---|---|---|")
    for m, n, rank in CASES:
        products, ours, printed, tuned = measure(m, n, rank)
        print(
            f"| {m} x {n} | {rank} | {products:.2f} | {ours:.2f} | {ours / products:.2f} "
            f"| {printed:.1f} | 1/{printed / ours:.1f} | {tuned:.1f} | 1/{tuned / ours:.1f} |"
        )


if __name__ == "__main__":
    main()

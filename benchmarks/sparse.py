"""Completion at the size of real ratings: time beside the three bare passes, memory, two threads.

Run with ``python benchmarks/sparse.py``; it takes some minutes and 4 GiB.  Each fit runs in a
process of its own, on generated ratings that the parent has written to a temporary folder.

An iteration ("everywhere") cannot do without three passes over the observed entries: the products
WH there, S Hᵀ and Sᵀ W.  They are measured in turn with the iteration, in the best of the forms
that we know: our own compiled loops over all rows at once, and SciPy's products of a CSR array.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from common.memory import Peak, in_own_process
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.kernels.products import Block, CsrStorage

RATINGS = (138_000, 27_000, 8_000_000, 16)
MILLIONS = (1_000_000, 1_000_000, 10_000_000, 8)
ROUNDS = 5

Array = np.ndarray


def write(folder: Path, m: int, n: int, count: int) -> None:
    """Write a CSR array of ratings, its three arrays one by one."""
    table = nmd.datasets.make_ratings(m, n, count, random_state=0)
    user = table["user"].to_numpy()
    indptr = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=m))])
    np.save(folder / "indptr.npy", indptr.astype(np.int32))
    np.save(folder / "indices.npy", table["item"].to_numpy().astype(np.int32))
    np.save(folder / "data.npy", table["rating"].to_numpy())


def read(folder: Path, m: int, n: int) -> sparse.csr_array:
    data, indices, indptr = (np.load(folder / f"{k}.npy") for k in ("data", "indices", "indptr"))
    return sparse.csr_array((data, indices, indptr), shape=(m, n))


def states(X: sparse.csr_array, rank: int, threads: int, count: int) -> list[float]:
    """Return the seconds at the end of each iteration."""
    fit = nmd.complete(
        X,
        rank,
        alpha=0.1,
        init="random",
        max_iter=count,
        tol=0,
        random_state=0,
        progress=False,
        solver=nmd.ADMM(split="everywhere", refine=False, polish=False, rho="balanced"),
        compute=nmd.Compute(threads=threads),
    )
    return [float(second) for second in fit.history.seconds]


def warm_up(rank: int) -> None:
    """Compile, on something small of the same types."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 200), density=0.2, rng=rng, format="csr")
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    states(X, rank, 1, 2)


def memory(folder: Path, m: int, n: int, rank: int) -> tuple[float, float, float]:
    """Return GiB beyond the input and in all, and the seconds of an iteration."""
    warm_up(rank)
    X = read(folder, m, n)
    peak = Peak()
    seconds = states(X, rank, 1, 3)
    return peak.beyond_start / 1024, peak.total / 1024, seconds[-1] - seconds[-2]


def bare_passes(X: sparse.csr_array, rank: int) -> dict[str, list[Callable[[], object]]]:
    """Return each pass in the forms that it has."""
    m, n = X.shape
    rng = np.random.default_rng(0)
    W, right, S = rng.random((m, rank)), rng.random((n, rank)), X.data.copy()
    storage = CsrStorage(X.shape, X.indptr, X.indices)
    whole = Block(slice(0, m), slice(0, S.size))
    out, StW = np.empty(S.size), np.zeros((n, rank))
    transposed = X.T.tocsr()
    return {
        "WH at Ω": [lambda: storage.products(whole, W, right, out)],
        "S Hᵀ": [lambda: storage.times_Ht(whole, S, right), lambda: X @ right],
        "Sᵀ W": [
            lambda: storage.add_StW(whole, S, W, StW),
            lambda: X.T @ W,
            lambda: transposed @ W,
        ],
    }


def seconds(step: Callable[[], object]) -> float:
    began = time.process_time()  # on one thread; other work on the machine does not count
    step()
    return time.process_time() - began


def against_passes(folder: Path, m: int, n: int, rank: int) -> dict[str, float]:
    """Return the median seconds of an iteration and of the quickest form of each pass."""
    warm_up(rank)
    X = read(folder, m, n)
    passes = bare_passes(X, rank)
    times: dict[str, list[list[float]]] = {name: [] for name in passes}
    iterations = []
    for state in in_turn(X, rank):
        iterations.append(state)
        for name, forms in passes.items():
            times[name].append([seconds(form) for form in forms])
    result = {"an iteration": float(np.median(iterations[1:]))}
    for name, rows in times.items():
        result[name] = float(np.median(rows[1:], axis=0).min())
    return result


def in_turn(X: sparse.csr_array, rank: int) -> Iterator[float]:
    """Yield the seconds of single iterations, so that the passes run in between."""
    from nmd_lab.data.inputs import observe_sparse
    from nmd_lab.engines import iterates
    from nmd_lab.engines.admm import Admm
    from nmd_lab.engines.refined import make_plan
    from nmd_lab.fit.starts import all_starts
    from nmd_lab.fit.summary import make_problem
    from nmd_lab.model.model import make_model
    from nmd_lab.problem.problem import Scaling
    from nmd_lab.request.options import Options

    options = Options(
        init="random",
        random_state=0,
        solver=nmd.ADMM(split="everywhere"),
        compute=nmd.Compute(threads=1),
    ).settled()
    scaling = Scaling(make_model("identity", "frobenius"))
    problem = make_problem(observe_sparse(X), scaling, options, observed_only=False)
    plan = make_plan(problem, rank, options)
    starts = all_starts(problem, rank, options, plan, options.generator())
    run = iterates(Admm(), problem, next(starts))
    next(run)
    for _ in range(ROUNDS + 1):
        yield seconds(lambda: next(run))


def threads(folder: Path, m: int, n: int, rank: int) -> tuple[float, float]:
    """Return the least seconds of an iteration on one thread and on two, taken in turn."""
    warm_up(rank)
    X = read(folder, m, n)
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(2 * ROUNDS):
        for count, found in times.items():
            found.extend(np.diff(states(X, rank, count, 4)))
    return min(times[1]), min(times[2])


def main() -> None:
    print("Identity + Frobenius, float64, constraint everywhere, random start.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        m, n, count, rank = RATINGS
        write(folder, m, n, count)
        print(f"\n## {m} x {n}, {count} observed, rank {rank}\n")
        times = in_own_process(against_passes, folder, m, n, rank)
        iteration = times.pop("an iteration")
        print("| pass | seconds |\n|---|---|")
        for what, value in times.items():
            print(f"| {what} | {value:.3f} |")
        total = sum(times.values())
        print(f"| the three | {total:.3f} |\n| an iteration | {iteration:.3f} |")
        print(f"\n- an iteration to the three passes: {iteration / total:.2f} (to be at most 1.5)")
        one, two = in_own_process(threads, folder, m, n, rank)
        print(f"- {one:.3f} s on a thread, {two:.3f} s on two: {one / two:.2f} (at least 1.5)")
        beyond, _, _ = in_own_process(memory, folder, m, n, rank)
        print(f"- peak memory beyond the input: {beyond:.2f} GiB (at most 1.2)")

        m, n, count, rank = MILLIONS
        write(folder, m, n, count)
        print(f"\n## {m} x {n}, {count} observed, rank {rank}\n")
        beyond, total, took = in_own_process(memory, folder, m, n, rank)
        print(f"- an iteration: {took:.2f} s on one thread")
        print(f"- peak memory: {total:.2f} GiB in all (at most 4), {beyond:.2f} beyond the input")


if __name__ == "__main__":
    main()

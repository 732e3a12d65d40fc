"""Fits on a Dask cluster of this machine: what travels, what the engine costs, how it grows.

    python benchmarks/cluster.py --write

starts clusters of one, two and four processes, and writes their tables in ``docs/scale.md``.
``--quick`` takes small data.  What travels is counted on the loopback device by the system, so that
everything is in it, the heartbeats of Dask too.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psutil
from common.pages import write_tables
from distributed import Client, LocalCluster
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.cluster.partitions import add_answers

PLAIN: dict[str, Any] = {
    "tol": 0,
    "init": "random",
    "random_state": 0,
    "solver": nmd.ADMM(refine=False),
}
WARM_UP = 3
"""Iterations that compile, and are not measured."""


@contextmanager
def cluster_of(workers: int) -> Iterator[Client]:
    """Start a cluster of processes with one thread each."""
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.ERROR}
    with LocalCluster(n_workers=workers, **settings) as cluster, Client(cluster) as client:
        yield client


def dense(rows: int, columns: int = 200) -> Any:
    """Return a dense matrix of float32 for ReLU."""
    rng = np.random.default_rng(0)
    W, H = rng.standard_normal((rows, 5), np.float32), rng.standard_normal((5, columns), np.float32)
    return np.maximum(W @ H, 0)


def ratings(rows: int, columns: int = 2000, each: int = 40) -> Any:
    """Return a sparse matrix with as many entries in each row."""
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(0, columns - each, (rows, each)), axis=1) + np.arange(each)
    indptr = np.arange(0, rows * each + 1, each)
    return sparse.csr_array((rng.random(rows * each), indices.ravel(), indptr), (rows, columns))


def per_iteration(X: Any, client: Any, iterations: int) -> tuple[float, float]:
    """Return the seconds (the least) and the bytes (the median) that an iteration takes."""
    marks: list[tuple[float, int]] = []

    def note(state: nmd.State) -> None:
        sent = psutil.net_io_counters(pernic=True, nowrap=False)["lo"].bytes_sent
        marks.append((time.perf_counter(), sent))

    options = PLAIN | {"max_iter": WARM_UP + iterations, "callback": note}
    if sparse.issparse(X):
        options |= {"alpha": 0.1, "offsets": "none"}
        nmd.complete(X, 10, "identity", compute=nmd.Compute(client=client), **options)
    else:
        nmd.decompose(X, 10, "relu", compute=nmd.Compute(client=client), **options)
    seconds, sent = np.diff(np.array(marks[WARM_UP - 1 :], float), axis=0).T
    return float(np.min(seconds)), float(np.median(sent))


def table_of_traffic(rows: int, iterations: int) -> list[str]:
    """Return the lines about what travels."""
    lines = ["| rows | dense, kB an iteration | ratings, kB an iteration |", "| --- | --- | --- |"]
    with cluster_of(4) as client:
        for factor in (1, 4, 16):
            sent = [
                per_iteration(make(factor * rows), client, iterations)[1]
                for make in (dense, ratings)
            ]
            lines.append(f"| {factor * rows} | {sent[0] / 1e3:.0f} | {sent[1] / 1e3:.0f} |")
    return lines


def table_of_speed(rows: int, iterations: int) -> list[str]:
    """Return the lines about seconds against workers."""
    small, large, more = dense(200), dense(4 * rows), ratings(rows)
    lines = [
        "| workers | overhead of a sweep, ms | dense, s an iteration | ratings, s an iteration |",
        "| --- | --- | --- | --- |",
    ]
    for workers in (1, 2, 4):
        with cluster_of(workers) as client:
            own = [per_iteration(X, client, iterations)[0] for X in (small, large, more)]
        lines.append(f"| {workers} | {1e3 * own[0]:.0f} | {own[1]:.2f} | {own[2]:.2f} |")
    return lines


CASES = {
    "10^9 ratings, T = WH everywhere": (10**9, 10**5, 20, False, 16),
    "10^9 ratings, on the observed alone": (10**9, 10**5, 20, True, 16),
    "10^11 ratings, T = WH everywhere": (10**11, 10**6, 32, False, 100),
    "10^11 ratings, on the observed alone": (10**11, 10**6, 32, True, 100),
}
"""Entries, columns, rank, whether the sums are n x r x r, and number of workers."""


def answer_bytes(columns: int, rank: int, observed: bool) -> int:
    """Return the size of what a worker sends in an iteration, with factors in float32."""
    return 8 * columns * (rank**2 + rank) if observed else 4 * columns * rank + 12 * rank**2


def seconds_of_reduction(client: Any, size: int, answers: int) -> float:
    """Return the time in which the tree of tasks adds up answers of some size in bytes."""

    def reduce() -> float:
        own = [client.submit(_answer, size // 8, k, pure=False) for k in range(answers)]
        client.gather([client.submit(_size, each) for each in own])
        began = time.perf_counter()
        while len(own) > 1:
            own = [client.submit(add_answers, *own[i : i + 4]) for i in range(0, len(own), 4)]
        client.gather(client.submit(_size, own[0]))
        return time.perf_counter() - began

    return min(reduce() for _ in range(3))


def _answer(size: int, seed: int) -> Any:
    return (np.full(size, float(seed)),)


def _size(answer: Any) -> int:
    return int(answer[0].nbytes)


def table_of_estimates(largest: int) -> list[str]:
    """Return the lines of the estimates, with the measured reduction."""
    lines = [
        "| data | workers | memory of a worker, GB | sent by a worker, MB "
        "| network at 10 Gbit/s, s | passes of 16 cores, s | reduction simulated here, s "
        "| of MB, by answers |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    with cluster_of(4) as client:
        for name, (entries, columns, rank, observed, workers) in CASES.items():
            sent = answer_bytes(columns, rank, observed)
            memory = 28 * entries / workers + 4 * columns * rank + (sent if observed else 0)
            levels = int(np.ceil(np.log(workers) / np.log(4)))
            # an answer takes its way once for each level, four at a time into one machine
            network = (4 * levels * sent + 4 * columns * rank * levels) / 1.25e9
            passes = entries / workers * NANOSECONDS[rank, observed] * 1e-9 / 16
            simulated = min(sent, largest)
            measured = seconds_of_reduction(client, simulated, 16)
            lines.append(
                f"| {name} | {workers} | {memory / 1e9:.1f} | {sent / 1e6:.0f} | {network:.1f} | "
                f"{passes:.1f} | {measured:.1f} | {simulated / 1e6:.0f} x 16 |"
            )
    return lines


NANOSECONDS = {(20, False): 30.0, (20, True): 110.0, (32, False): 45.0, (32, True): 260.0}
"""Time of one core for each entry of an iteration, by rank and constraint (docs/performance.md has
one million ratings at the ranks 10, 40 and 100)."""


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data")
    parser.add_argument("--write", action="store_true", help="write docs/scale.md")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("nmd_lab").setLevel(logging.ERROR)
    makers: list[Callable[[], list[str]]] = [
        lambda: table_of_traffic(*((200, 5) if given.quick else (4000, 20))),
        lambda: table_of_speed(*((400, 3) if given.quick else (200_000, 15))),
        lambda: table_of_estimates(1 << 16 if given.quick else 340_000_000),
    ]
    text = "\n\n".join("\n".join(make()) for make in makers) + "\n"
    if given.write:
        write_tables("scale", "cluster", text)
    else:
        print(text)


if __name__ == "__main__":
    main()

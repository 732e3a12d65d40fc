"""Data larger than memory: what an iteration takes when X, T and U lie in files.

    python benchmarks/scale.py --gib 12 --entries 100000000 --limit 2 --write

makes a dense file and the files of a CSR array of these sizes in a temporary folder (``--folder``),
reads the file, and fits both, in a process whose memory is limited where the system allows it (a
control group of version 1, as root).  The sweep in memory is measured on a part that fits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common.pages import write_tables
from scipy.sparse import csr_array

import nmd_lab as nmd

COLUMNS, RANK, STORE_COLUMNS, EACH = 1000, 10, 20_000, 200
GROUP = Path("/sys/fs/cgroup/memory/nmd-lab-benchmark")


def make_dense(path: Path, rows: int) -> None:
    """Write a dense matrix of float32, block by block."""
    rng = np.random.default_rng(0)
    H = rng.standard_normal((5, COLUMNS), dtype=np.float32)
    with path.open("wb") as file:
        for first in range(0, rows, 20_000):
            W = rng.standard_normal((min(20_000, rows - first), 5), dtype=np.float32)
            file.write(np.maximum(W @ H, 0).tobytes())


def make_store(path: Path, entries: int) -> None:
    """Write the arrays of a CSR matrix of generated ratings."""
    rng, rows = np.random.default_rng(0), entries // EACH
    H = rng.standard_normal((STORE_COLUMNS, 5), dtype=np.float32)
    path.mkdir()
    np.save(path / "indptr.npy", np.arange(rows + 1) * EACH)
    indices, values = (
        np.lib.format.open_memmap(path / f"{name}.npy", "w+", dtype, (rows, EACH))
        for name, dtype in (("indices", np.int32), ("data", np.float32))
    )
    for first in range(0, rows, 5000):
        size = (min(5000, rows - first), EACH)
        columns = np.sort(rng.integers(0, STORE_COLUMNS - EACH, size), axis=1)
        columns += np.arange(EACH)
        W = rng.standard_normal((size[0], 5), dtype=np.float32)
        block = slice(first, first + size[0])
        indices[block] = columns
        values[block] = np.einsum("ik,ijk->ij", W, H[columns])
        values[block] += 0.3 * rng.standard_normal(size, dtype=np.float32)


def open_store(path: Path) -> csr_array:
    """Return the matrix over its files."""
    data, indices, indptr = (
        np.load(path / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "indptr")
    )
    shape = indptr.size - 1, STORE_COLUMNS
    return csr_array((data.ravel(), indices.ravel(), indptr), shape=shape)


def seconds_to_read(path: Path) -> float:
    """Return the time that reading a file takes."""
    if os.geteuid() == 0:
        subprocess.run(["sync"], check=True)
        Path("/proc/sys/vm/drop_caches").write_text("3")
    began = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        buffer = bytearray(16 << 20)
        while file.readinto(buffer):
            pass
    return time.perf_counter() - began


def fit(kind: str, path: str, rows: int, folder: str) -> dict[str, float]:
    """Return seconds an iteration and of the whole call, and the peak of this process in GiB."""
    warnings.simplefilter("ignore")
    times: list[float] = []
    options: dict[str, Any] = {"max_iter": 4, "tol": 0, "init": "random", "random_state": 0}
    options["callback"] = lambda state: times.append(time.perf_counter())
    if kind.startswith("dense"):
        X: Any = np.memmap(path, np.float32, "r", shape=(rows, COLUMNS))
        call, model = nmd.decompose, (RANK, "relu")
    else:
        X, call, model = open_store(Path(path)), nmd.complete, (RANK, "identity")
        options |= {"alpha": 1.0, "offsets": "both"}
    if kind.endswith("streamed"):
        options["compute"] = nmd.Compute(work_dir=folder)
    elif kind.startswith("dense"):
        X = np.array(X)
    began = time.perf_counter()
    call(X, *model, **options)
    total = time.perf_counter() - began
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**20
    return {"iteration": float(np.median(np.diff(times))), "total": total, "peak": peak}


def in_own_process(*arguments: Any, limit: float | None) -> dict[str, float]:
    """Return what `fit` returns in a process of its own, with a limit of memory in GiB."""
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    enter = None
    if limit is not None and GROUP.parent.is_dir() and os.geteuid() == 0:
        GROUP.mkdir(exist_ok=True)
        (GROUP / "memory.limit_in_bytes").write_text(str(int(limit * 2**30)))

        def enter() -> None:
            (GROUP / "cgroup.procs").write_text(str(os.getpid()))

    done = subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=enter)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def tables(gib: float, entries: int, limit: float | None, folder: Path) -> str:
    """Return the table of both kinds of data."""
    rows = int(gib * 2**30 / 4 / COLUMNS)
    dense, store = folder / "dense.raw", folder / "store"
    make_dense(dense, rows)
    read = seconds_to_read(dense)
    part = min(rows, 500_000)
    lines = [
        "| data | size | memory allowed | peak | reading the file, s | sweep in memory, s "
        "| streamed sweep, s | streamed over (reading + in memory) |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    whole = in_own_process("dense memory", dense, part, folder, limit=None)
    inside = whole["iteration"] * rows / part
    streamed = in_own_process("dense streamed", dense, rows, folder, limit=limit)
    lines.append(_line("dense float32, ReLU", f"{gib:g} GiB", limit, streamed, read, inside))
    dense.unlink()
    make_store(store, entries)
    read = sum(seconds_to_read(store / name) for name in ("indices.npy", "data.npy"))
    whole = in_own_process("sparse memory", store, 0, folder, limit=None)
    streamed = in_own_process("sparse streamed", store, 0, folder, limit=limit)
    size = f"{entries / 1e6:g} million entries"
    lines.append(_line("CSR array, identity", size, limit, streamed, read, whole["iteration"]))
    return "\n".join(lines) + "\n"


def _line(
    name: str,
    size: str,
    limit: float | None,
    streamed: dict[str, float],
    read: float,
    inside: float,
) -> str:
    allowed = "all" if limit is None else f"{limit:g} GiB"
    each = streamed["iteration"]
    numbers = (f"{streamed['peak']:.2f} GiB", f"{read:.1f}", f"{inside:.1f}", f"{each:.1f}")
    return f"| {' | '.join((name, size, allowed, *numbers, f'{each / (read + inside):.2f}'))} |"


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=0.5)
    parser.add_argument("--entries", type=int, default=5_000_000)
    parser.add_argument("--limit", type=float, default=None)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", nargs=4)
    given = parser.parse_args()
    if given.one:
        kind, path, rows, folder = given.one
        print(json.dumps(fit(kind, path, int(rows), folder)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        text = tables(given.gib, given.entries, given.limit, Path(folder))
    print(text)
    if given.write:
        write_tables("scale", "scale", text)


if __name__ == "__main__":
    main()

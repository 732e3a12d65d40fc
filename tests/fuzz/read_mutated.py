"""Read damaged files in a process of its own, under limits of memory and time.

As a script, ``python read_mutated.py KIND COUNT SEED`` prints what went wrong, and how many files
were read and refused.
"""

from __future__ import annotations

import gzip
import io
import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from mutate import mutated, with_mutated_member
from scipy import io as scipy_io
from scipy import sparse

from nmd_lab.data.observations import observe
from nmd_lab.data.readers import read_file

MEMORY = 3 * 2**30
"""Largest address space of the process, in bytes."""

SECONDS = 10
"""Longest time for one file; a reader that takes longer has hung."""


def examples() -> dict[str, bytes]:
    """Return the contents of a valid file of each kind, by the name of the file."""
    rng = np.random.default_rng(0)
    X = rng.random((12, 7)).round(3)
    holes = sparse.random_array((30, 20), density=0.2, rng=rng)
    frame = pd.DataFrame(X)
    ratings = pd.DataFrame({"userId": rng.integers(1, 9, 40), "movieId": np.arange(40),
                            "rating": rng.integers(1, 11, 40) / 2})  # fmt: skip
    market, array = io.BytesIO(), io.BytesIO()
    scipy_io.mmwrite(market, sparse.coo_array(holes), symmetry="general")
    scipy_io.mmwrite(array, X)
    made = {
        "x.npy": stored(lambda stream: np.save(stream, X)),
        "x.npz": stored(lambda stream: np.savez(stream, X=X)),
        "x_small.npz": stored(lambda stream: np.savez_compressed(stream, X=X)),
        "x.mtx": market.getvalue(),
        "array.mtx": array.getvalue(),
        "x.mtx.gz": gzip.compress(market.getvalue()),
        "x.csv": frame.to_csv().encode(),
        "bare.csv": frame.to_csv(header=False, index=False).encode(),
        "x.tsv": frame.to_csv(sep="\t").encode(),
        "x.csv.gz": gzip.compress(frame.to_csv().encode()),
        "long.csv": ratings.to_csv(index=False).encode(),
        "x.txt": frame.to_csv(sep=" ", header=False, index=False).encode(),
    }
    for layout in ("csr", "csc", "coo", "bsr", "dia"):
        for compressed in (True, False):
            made[f"{layout}_{compressed}.npz"] = stored(
                lambda stream, layout=layout, compressed=compressed: sparse.save_npz(
                    stream, holes.asformat(layout), compressed=compressed
                )
            )
    return made


def stored(write) -> bytes:
    """Return what a function writes to a stream."""
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def attempt(path: Path) -> bool:
    """Return whether a file was read; raise what its reader should not have raised."""
    try:
        contents = read_file(path)
        assert contents.what
        observe(contents.X).entries()
    except (ValueError, TypeError) as error:
        text = str(error)
        beginnings = ("file=", "X ", "variable ", "the table ", "value=", "row ", "column ")
        expected = text.startswith(beginnings)
        if not expected or "\n" in text:
            raise
        return False
    except KeyError as error:
        if "is not in the table" not in str(error):
            raise
        return False
    return True


def main(kind: str, count: int, seed: int) -> int:
    """Read `count` damaged files of a kind, "all" for each in turn; return the number of faults."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("error")
    made = examples()
    names = list(made) if kind == "all" else [kind]
    read = refused = faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for k in range(count):
            name = names[k % len(names)]
            path = Path(folder) / name
            rng = np.random.default_rng([seed, k])
            inside = name.endswith(".npz") and k // len(names) % 2 == 1  # else checksums tell
            path.write_bytes((with_mutated_member if inside else mutated)(made[name], rng))
            signal.alarm(SECONDS)  # ends the process, whatever library it is in
            print(f"\r{name} {k}", end="", file=sys.stderr, flush=True)
            try:
                succeeded = attempt(path)
                read, refused = read + succeeded, refused + (not succeeded)
            except BaseException as error:
                faults += 1
                print(f"{name}, seed [{seed}, {k}]: {type(error).__name__}: {error}")
                if os.environ.get("TRACE"):
                    traceback.print_exc()
            signal.alarm(0)
    print(f"{kind}: {count} files, {read} read, {refused} refused, {faults} faults")
    return faults


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))

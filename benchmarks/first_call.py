"""Processor seconds of a first call: of each verb in a new process, with nothing compiled.

    python benchmarks/first_call.py             # the five calls
    python benchmarks/first_call.py impute      # some of them, with their dearest functions
    python benchmarks/first_call.py --kernels   # the number of kernels in NUMBA_CACHE_DIR
    python benchmarks/first_call.py --write     # docs/performance.md

Seconds are those of the processor on one thread, imports included, for the process as a whole, the
least of three runs; a second process of the same call finds its code on disk.  Functions are those
that Numba compiled, those inside of kernels included, and the seconds of a function are without
those that it calls.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.common import pages

CALLS = {
    "decompose": """
digits = nmd.datasets.digits()
nmd.decompose(digits, rank=16, nonlinearity="relu")
""",
    "complete": """
from sklearn.datasets import load_digits
X = load_digits().data[:300]
nmd.complete(np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X), random_state=0)
""",
    "sample": """
frame = nmd.datasets.make_ratings(400, 300, 12_000, random_state=0)
ratings = nmd.observations_from_table(frame, row="user", column="item", value="rating")
nmd.sample(ratings, 10, draws=200, random_state=0)
""",
    "impute": """
from sklearn.datasets import load_wine
table = load_wine(as_frame=True).frame.astype({"target": "category"})
nmd.impute(table.mask(np.random.default_rng(0).random(table.shape) < 0.2), random_state=0)
""",
    "inpaint": """
from sklearn.datasets import load_sample_image
picture = load_sample_image("china.jpg")[:96, :96] / 255
hidden = np.random.default_rng(0).random(picture.shape[:2]) < 0.6
nmd.inpaint(np.where(hidden[..., None], np.nan, picture), random_state=0)
""",
}
"""The calls of the README, on data that come with scikit-learn or are generated."""

RUNS = 3
"""Runs of each process; the quickest counts."""

PROGRAM = """
import json, time
from numba.core import event

class Compiled(event.Listener):
    def __init__(self):
        self.seconds, self.open = [], []
    def on_start(self, e):
        self.open.append([time.process_time(), 0.0])
    def on_end(self, e):
        start, inner = self.open.pop()
        whole = time.process_time() - start
        if self.open:
            self.open[-1][1] += whole
        self.seconds.append((whole - inner, whole, e.data["dispatcher"].py_func.__name__))

compiled = Compiled()
event.register("numba:compile", compiled)
import numpy as np
import nmd_lab as nmd
import warnings
warnings.simplefilter("ignore")
before = time.process_time()
{call}
print(json.dumps([time.process_time(), before, compiled.seconds]))
"""


def run(call: str, folder: str) -> tuple[float, float, list[list[Any]]]:
    """Return the seconds of a new process, those of its imports, and what it compiled."""
    one = dict.fromkeys(("OPENBLAS", "OMP", "MKL", "NUMBA"), "1")
    threads = {f"{name}_NUM_THREADS": n for name, n in one.items()}
    # Python keeps what it compiles itself, as after an installation.
    settings = {n: x for n, x in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"} | threads
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(call=call)],
        env=settings | {"NUMBA_CACHE_DIR": folder},
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    whole, imports, compiled = json.loads(done.stdout.splitlines()[-1])
    return whole, imports, compiled


def measure(name: str) -> tuple[list[str], list[list[Any]]]:
    """Return the line of a call in the table, and what it compiled, dearest first."""
    firsts, seconds = [], []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            firsts.append(run(CALLS[name], folder))
            kernels = number_of_kernels(Path(folder))
            seconds.append(run(CALLS[name], folder)[0])
    first, imports, compiled = min(firsts)
    compiled.sort(reverse=True)
    dearest = max((whole for _, whole, _ in compiled), default=0.0)
    numbers = [f"{x:.1f}" for x in (first, min(seconds), imports)]
    line = [f"`{name}`", *numbers, str(len(compiled)), str(kernels), f"{dearest:.1f}"]
    return line, compiled


def number_of_kernels(folder: Path) -> int:
    """Return how many compiled functions a folder of Numba's cache holds."""
    return sum(1 for _ in folder.rglob("*.nbc"))


HEAD = ["call", "first", "second", "imports", "functions compiled", "kernels on disk", "dearest"]


def table(quick: bool = False) -> str:
    """Return the table of docs/performance.md, between marks; one call if quick."""
    lines = [measure(name)[0] for name in list(CALLS)[: 1 if quick else None]]
    return f"{pages.mark('first_call')}\n\n{pages.table(HEAD, lines)}\n{pages.END}"


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("calls", nargs="*", metavar="CALL", help=f"of {', '.join(CALLS)}")
    parser.add_argument("--kernels", action="store_true", help="count the kernels on disk")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    given = parser.parse_args()
    if given.kernels:
        print(number_of_kernels(Path(os.environ["NUMBA_CACHE_DIR"])))
        return
    lines = []
    for name in given.calls or CALLS:
        line, compiled = measure(name)
        lines.append(line)
        print(" ".join(f"{x:>12}" for x in line), flush=True)
        for seconds, whole, function in compiled[: 10 if given.calls else 0]:
            print(f"    {seconds:5.2f} s, {whole:5.2f} s with what it calls: {function}")
    if given.write:
        pages.write_tables("performance", "first_call", pages.table(HEAD, lines))


if __name__ == "__main__":
    main()

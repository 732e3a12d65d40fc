"""What the installed wheel does, without extras and with each of them.

    python wheel_check.py            in an environment without extras
    python wheel_check.py plot       in one with this extra

It is no test of pytest: `make dist` runs it in fresh environments, outside of the checkout.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import nmd_lab as nmd

X = np.maximum(np.random.default_rng(0).normal(size=(40, 12)), 0)


def fit() -> nmd.Decomposition:
    """Return a small fit."""
    return nmd.decompose(X, 3, "relu", max_iter=20, random_state=0)


def plot() -> None:
    """Draw a figure."""
    os.environ["MPLBACKEND"] = "Agg"
    fit().plot.convergence()


def io() -> None:
    """Save and load a fit."""
    with tempfile.TemporaryDirectory() as folder:
        fit().save(Path(folder) / "fit.nc")
        np.testing.assert_array_equal(nmd.load(Path(folder) / "fit.nc").W, fit().W)


def parquet() -> None:
    """Read ratings from a Parquet file."""
    import pandas as pd

    frame = pd.DataFrame({"row": [0, 1, 1], "column": [0, 0, 1], "value": [1.0, 2.0, 3.0]})
    with tempfile.TemporaryDirectory() as folder:
        frame.to_parquet(Path(folder) / "table.parquet")
        names = {"row": "row", "column": "column", "value": "value"}
        paths = Path(folder) / "table.parquet", Path(folder) / "ratings"
        assert nmd.observations_from_files(*paths, **names).n_stored == 3


def dask() -> None:
    """Fit an array of Dask on a client of this process."""
    import dask.array
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as one:
        lazy = dask.array.from_array(X, chunks=(10, 12))
        nmd.decompose(lazy, 3, "relu", max_iter=5, random_state=0, compute=nmd.Compute(client=one))


def lab() -> None:
    """Make an explorer."""
    nmd.widgets.explore(X)


def data() -> None:
    """Import what downloads use."""
    import pooch  # noqa: F401


NEEDS: dict[str, Callable[[], None]] = {
    "plot": plot,
    "io": io,
    "parquet": parquet,
    "dask": dask,
    "lab": lab,
}
"""What works with an extra, and names the extra without it."""


def refusal(work: Callable[[], None]) -> str:
    """Return the error where an extra is missing."""
    try:
        work()
    except ImportError as error:
        return str(error)
    return "it works"


def main() -> None:
    """Check the environment for the extra that is named, or for none."""
    warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
    assert "site-packages" in nmd.__file__, f"this is not the wheel: {nmd.__file__}"
    assert fit().relative_error < 0.8
    assert nmd.complete(np.where(X > 1, np.nan, X), 2, alpha=0.1, random_state=0).rank == 2
    extras = sys.argv[1:]
    for extra in extras:
        (data if extra == "data" else NEEDS[extra])()
    for extra, work in NEEDS.items():
        if extras:
            break
        message = refusal(work)
        if extra not in ("dask", "parquet"):  # there the user imports the library first
            assert ": pip install " in message, f"{extra}: {message}"
    print("the wheel works", *(["with", *extras] if extras else ["without extras"]))


if __name__ == "__main__":
    main()

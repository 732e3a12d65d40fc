"""Whether a change of the code leaves every fit as it was, bit for bit.

    python benchmarks/same_results.py before.npz   # at the commit before: writes the file
    python benchmarks/same_results.py before.npz   # after the change: compares; exit status 0 or 1

It uses public names only, so that it runs at both commits.  At a commit where these had other
names, run the script of that commit: it makes the same fits.  Compared are W, H, offsets and every
column of the history except the seconds, the reason why each fit ended, and the rows that
`fold_in` finds.  The bits hold for one machine and one set of versions.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy import sparse

import nmd_lab as nmd

PAIRS = [
    (f, d)
    for f in ("relu", "square", "minmax", "modulus", "identity")
    for d in ("frobenius", "l1", "kl")
]


def data() -> dict[str, Any]:
    """Return one matrix of each kind of storage."""
    rng = np.random.default_rng(7)
    W, H = rng.normal(size=(60, 4)), rng.normal(size=(4, 45))
    dense = np.clip(np.maximum(W @ H + 0.1 * rng.normal(size=(60, 45)), 0) / 4, 0, 1)
    holes = np.where(rng.random(dense.shape) < 0.4, np.nan, dense)
    few = rng.random(dense.shape) < 0.25
    ratings = np.round(1 + 4 * dense)
    frame = xr.DataArray(
        dense[:, :44].reshape(60, 4, 11), dims=("time", "lat", "lon"), coords={"time": range(60)}
    )
    return {
        "dense": dense,
        "holes": holes,
        "weights": rng.random(dense.shape) + 0.1,
        "float32": dense.astype(np.float32),
        "zeros": sparse.csr_array(np.where(few, dense, 0)),
        "few": sparse.csr_array((ratings[few], np.nonzero(few)), shape=dense.shape),
        "many": sparse.csr_array(np.where(rng.random(dense.shape) < 0.7, dense, 0)),
        "maps": frame,
    }


def fits(X: dict[str, Any]) -> Iterator[tuple[str, Callable[[], nmd.Decomposition]]]:
    """Yield a name and a fit for each pair, storage and option."""

    def make(verb: Any, *args: Any, **options: Any) -> Callable[[], nmd.Decomposition]:
        options = {"max_iter": 60, "random_state": 0} | options
        return lambda: verb(*args, **options)

    for f, d in PAIRS:
        yield f"dense {f} {d}", make(nmd.decompose, X["dense"], 4, f, d)
    for f, d in PAIRS[::4]:
        yield f"holes {f} {d}", make(nmd.complete, X["holes"], 3, f, d)
        yield f"zeros {f} {d}", make(nmd.decompose, X["zeros"], 3, f, d)
        named = nmd.MinMax(0, 1) if f == "minmax" else f  # by its name it would refuse ratings
        yield f"few {f} {d}", make(nmd.complete, X["few"], 3, named, d, alpha=0.5)
    relu: tuple[Any, ...] = (X["dense"], 3, "relu")
    yield "float32", make(nmd.decompose, X["float32"], 4, "relu", "kl")
    yield "weights", make(nmd.decompose, *relu, weights=X["weights"])
    yield "maps", make(nmd.decompose, X["maps"], 3, sample_dims="time")
    yield "paper", make(nmd.decompose, *relu, tol=0, solver=nmd.ADMM(rho="paper"))
    yield "fixed penalty", make(nmd.decompose, *relu, "l1", solver=nmd.ADMM(rho=2.0))
    from_a_tenth = nmd.ADMM(rho="balanced", initial_rho=0.1)
    yield "initial penalty", make(nmd.decompose, *relu, solver=from_a_tenth)
    plain = nmd.ADMM(refine=False, polish=False, homotopy=False)
    yield "plain", make(nmd.decompose, *relu, solver=plain)
    yield "polish alone", make(nmd.decompose, *relu, solver=nmd.ADMM(refine=False, polish=True))
    wide_first = nmd.ADMM(homotopy=True)
    yield "homotopy", make(nmd.decompose, X["dense"], 3, "minmax", "l1", solver=wide_first)
    yield "starts", make(nmd.decompose, *relu, n_init=4, max_iter=150)
    yield "time limit", make(nmd.decompose, *relu, time_limit=1e9)
    yield "callback", make(nmd.decompose, *relu, callback=lambda state: state.iteration == 9)
    for init in ("random", "randomized", "nndsvd"):
        yield f"init {init}", make(nmd.decompose, *relu, init=init)
    rng = np.random.default_rng(1)
    pair = rng.random((60, 3)), rng.random((3, 45))
    balanced = nmd.ADMM(rho="balanced")
    yield "init pair", make(nmd.decompose, *relu, init=pair, solver=balanced, tol=0)
    first = nmd.decompose(*relu, max_iter=5, random_state=0)
    yield "init fit", make(nmd.decompose, *relu, init=first, max_iter=9)
    for offsets in ("global", "rows", "columns", "both"):
        yield f"offsets {offsets}", make(nmd.complete, X["few"], 3, offsets=offsets, alpha=0.3)
    yield "offsets dense", make(nmd.complete, X["holes"], 3, "minmax", offsets="both", alpha=0.1)
    everywhere, observed = nmd.ADMM(split="everywhere"), nmd.ADMM(split="observed")
    yield "everywhere", make(nmd.complete, X["few"], 3, solver=everywhere, alpha=0.3)
    yield "observed", make(nmd.complete, X["many"], 3, "relu", "l1", solver=observed)
    yield "observed dense", make(nmd.complete, X["holes"], 3, "minmax", solver=observed)
    impatient = nmd.ADMM(patience=3)
    yield "share", make(nmd.complete, X["few"], 3, validation=0.1, solver=impatient)
    yield "share dense", make(nmd.complete, X["holes"], 3, "relu", validation=0.1)
    held_out = sparse.csr_array((np.full(4, 3.0), ([0, 1, 2, 3], [4, 5, 6, 7])), shape=(60, 45))
    yield "held out", make(nmd.complete, X["few"], 3, validation=held_out)
    yield "generator", make(nmd.decompose, *relu, random_state=np.random.default_rng(5), n_init=2)
    large = np.maximum(rng.normal(size=(900, 3)) @ rng.normal(size=(3, 700)), 0)
    yield "two threads", make(nmd.decompose, large, 3, max_iter=8, compute=nmd.Compute(threads=2))


def record(name: str, fit: nmd.Decomposition) -> dict[str, np.ndarray]:
    """Return everything about a fit that must not change."""
    W, H = fit._factors
    parts = {"W": W, "H": H, "stop_reason": np.array(str(fit.stop_reason))}
    parts |= {n: np.asarray(v) for n, v in fit.offsets._asdict().items() if v is not None}
    parts |= {str(n): v.values for n, v in fit.history.data_vars.items() if n != "seconds"}
    parts["optimality"] = np.array(fit.parameters["optimality"])
    return {f"{name}/{part}": value for part, value in parts.items()}


def main(path: Path) -> int:
    """Write the file, or compare with it."""
    X, found, count = data(), {}, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
        for name, fit in fits(X):
            found |= record(name, fit())
            count += 1
        for f, d in PAIRS[::2]:
            fit = nmd.decompose(X["dense"], 3, f, d, max_iter=20, random_state=0)
            found[f"fold_in {f} {d}/W"] = fit.fold_in(X["holes"][:9]).values
    if not path.exists():
        np.savez_compressed(path, **found)
        print(f"{count} fits written to {path}")
        return 0
    with np.load(path) as before:
        different = [n for n in {*before.files, *found} if not _same(before, found, n)]
    print(f"{count} fits: {len(found)} arrays, {len(different)} of them not as in {path}")
    for name in sorted(different):
        print("  other:", name)
    return int(bool(different))


def _same(before: Any, found: dict[str, np.ndarray], name: str) -> bool:
    """Return whether an array is there in both, with the same bits."""
    if name not in before.files or name not in found:
        return False
    old, new = before[name], found[name]
    if old.dtype.kind != "f":
        return bool(np.array_equal(old, new))
    return old.dtype == new.dtype and np.array_equal(old, new, equal_nan=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""Data in files: read by blocks, with the bits of a fit in memory, in little memory."""

import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import xarray as xr
from helpers import check_all_refused, run_python, some
from made_runs import PAIRS, bits_of, fit_of, noisy

import nmd_lab as nmd
from nmd_lab._runtime.machine import MIN_ENTRIES

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")

SHAPE = (90, 60)
STORAGES = ("dense", "float32", "with NaN", "masked", "observed", "weighted")


@pytest.fixture
def stored(tmp_path):
    """Return a function that puts an array into a file and maps it."""

    def put(X, order="C"):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.raw"
        array = np.memmap(path, X.dtype, "w+", shape=X.shape, order=order)
        array[:] = X
        array.flush()
        return np.memmap(path, X.dtype, "r", shape=X.shape, order=order)

    return put


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("f", "loss"), some(PAIRS, 2))
def test_streamed_fits_have_the_bits_of_those_in_memory(f, loss, storage, stored, tmp_path):
    verb, (X, *model), options = fit_of(f, loss, storage, SHAPE)
    assert X.size > MIN_ENTRIES  # T and U lie in files
    function, one = getattr(nmd, verb), nmd.Compute(threads=1)
    expected = bits_of(function(X, *model, compute=one, **options))
    one = replace(one, work_dir=tmp_path)
    assert bits_of(function(stored(X), *model, compute=one, **options)) == expected
    assert [each.name for each in tmp_path.iterdir()] == ["0.raw"]  # nothing is left behind


@pytest.mark.parametrize("init", ["svd", "randomized", "random"])
def test_every_start_is_that_of_memory(init, stored, tmp_path):
    X = np.random.default_rng(0).normal(size=(1300, 1100))
    options = {"init": init, "max_iter": 1, "tol": 0, "random_state": 0}
    one = nmd.decompose(X, 3, compute=nmd.Compute(threads=1), **options)
    streamed = nmd.Compute(threads=1, work_dir=tmp_path)
    other = nmd.decompose(stored(X), 3, compute=streamed, **options)
    assert bits_of(one) == bits_of(other)


@pytest.mark.parametrize(
    "kind", ["integers", "Fortran order", "HDF5", "zarr", "xarray", "maps over time"]
)
def test_other_files_are_copied_by_blocks(kind, stored, tmp_path):
    h5py = pytest.importorskip("h5py")
    X = np.round(20 * noisy("relu", SHAPE))
    options = {"max_iter": 20, "random_state": 0}
    if kind == "integers":
        lazy = stored(X.astype(np.int16))
    elif kind == "Fortran order":
        lazy = stored(X, order="F")
    elif kind == "HDF5":
        lazy = h5py.File(tmp_path / "X.h5", "w").create_dataset("X", data=X)
    elif kind == "zarr":
        zarr = pytest.importorskip("zarr")
        lazy = zarr.create_array(tmp_path / "X.zarr", shape=X.shape, chunks=(20, 20), dtype="f8")
        lazy[:] = X
    else:
        labelled = xr.DataArray(
            X.reshape(90, 6, 10), dims=("time", "lat", "lon"), coords={"lat": np.arange(6.0)}
        )
        labelled.to_netcdf(tmp_path / "X.nc", engine="h5netcdf")
        lazy = xr.open_dataarray(tmp_path / "X.nc", engine="h5netcdf")
        options["sample_dims"] = "time"
        if kind == "maps over time":
            options["sample_dims"] = ("time", "lat")
            X = X.reshape(540, 10)
    data = labelled if "sample_dims" in options else X
    expected = nmd.decompose(data, 2, compute=nmd.Compute(threads=1), **options)
    fit = nmd.decompose(lazy, 2, compute=nmd.Compute(threads=1, work_dir=tmp_path), **options)
    assert bits_of(fit) == bits_of(expected)
    assert fit.W.dims == expected.W.dims
    assert fit.H.coords.equals(expected.H.coords)


def test_what_does_not_go_with_files_is_refused(stored, tmp_path):
    X = noisy("relu", SHAPE)
    lazy, infinite = stored(X), X.copy()
    infinite[70, 3] = np.inf

    def fit(X, work_dir=tmp_path, verb=nmd.complete, **options):
        return verb(X, compute=nmd.Compute(work_dir=work_dir), **options)

    rank = {"rank": 2, "alpha": 0}
    check_all_refused([
        ("work_dir=.* does not go with an array in memory: leave", partial(fit, **rank), X),
        ("work_dir=.* is no folder: make it first", partial(fit, lazy, **rank), tmp_path / "none"),
        ("does not go with data that are read from a file", fit, lazy),
        ("does not go with data that are read from a file", partial(fit, alpha=0.1), lazy),
        ("does not go with data that", partial(fit, rank=2, alpha=0.1, validation=0.1), lazy),
        (r"observed has shape \(3, 3\): give it the shape of X, \(90, 60\)",
         lambda seen: fit(lazy, observed=seen, **rank), np.ones((3, 3), bool)),
        ("infinity at row 70, column 3", partial(fit, **rank), stored(infinite)),
        ("X has no observed entry", partial(fit, **rank), stored(np.full(SHAPE, np.nan))),
    ])  # fmt: skip


def test_a_limit_of_memory_is_kept(stored, tmp_path):
    X = noisy("relu", (900, 300))
    options = {"max_iter": 5, "random_state": 0}
    little, enough = (nmd.Compute(threads=1, memory_limit=gib) for gib in (0.004, 1))
    with pytest.raises(MemoryError, match=r"GiB are free and memory_limit=0.004: give"):
        nmd.decompose(X, 2, compute=little, **options)
    expected = bits_of(nmd.decompose(X, 2, compute=enough, **options))
    assert bits_of(nmd.decompose(stored(X), 2, compute=little, **options)) == expected


def test_a_full_disk_is_found_before_the_work(monkeypatch, stored, tmp_path):
    usage = type("Usage", (), {"free": 1000})()
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(OSError, match=r"GiB left, and .* more are needed: give another folder"):
        nmd.decompose(stored(noisy("relu", SHAPE)), 2, compute=nmd.Compute(work_dir=tmp_path))


SCRIPT = """
import sys
import numpy as np
import nmd_lab as nmd

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

path, folder = sys.argv[1:]
X = np.memmap(path, np.float32, "r", shape=(60_000, 1000))
options = dict(max_iter=2, tol=0, init="random", random_state=0)
nmd.decompose(np.array(X[:300]), 3, compute=nmd.Compute(threads=1), **options)
before = peak()
nmd.decompose(X, 3, compute=nmd.Compute(threads=1, work_dir=folder), **options)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.exhaustive
def test_a_streamed_fit_needs_a_part_of_the_memory_of_its_data(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "X.raw"
    H = rng.standard_normal((3, 1000), dtype=np.float32)
    with path.open("wb") as file:
        for _ in range(20):
            file.write((rng.standard_normal((3000, 3), dtype=np.float32) @ H).tobytes())
    done = run_python("-W", "ignore", "-c", SCRIPT, str(path), str(tmp_path))
    assert float(done.stdout) < 0.8 * path.stat().st_size / 2**20  # with T and U: 3

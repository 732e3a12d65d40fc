"""Files of tables, and the command `nmd-lab fit`, beside the same data given directly."""

from __future__ import annotations

import contextlib
import gzip
import io
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.io import mmwrite

import nmd_lab
from nmd_lab.cli import ExitCode, main
from nmd_lab.data.readers import read_file

from .case import Case, arguments_of
from .faults import Fault, is_documented

FILES = ("x.csv", "x.csv.gz", "x.tsv", "x.npy", "x.npz", "x.mtx", "long.csv")
OUTPUTS = ("fit.nc", "fit.npz", "fit.csv", "FIT.NC")


def tables_keep_their_values(case: Case) -> None:
    """A table that is written is read with its values, whatever it says of its labels."""
    rng = np.random.default_rng([case.seed, 10])
    values = _values(case)
    header, index = bool(rng.integers(2)), bool(rng.integers(2))
    whole = bool(rng.integers(2))
    frame = pd.DataFrame(values)
    if not whole:
        frame = frame.set_axis([f"r{i}" for i in range(len(frame))])
        frame = frame.set_axis([f"c{j}" for j in range(frame.shape[1])], axis=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("x.csv.gz", "x.csv", "x.tsv")[rng.integers(3)]
        separator = "\t" if path.suffix == ".tsv" else ","
        frame.to_csv(path, sep=separator, header=header, index=index)
        contents = read_file(path, header=header, index=index)
        _is_frame(contents.X, frame, "a table that is read with its flags")
        m, n = frame.shape
        if f"{m} rows x {n} columns" not in contents.what:
            raise Fault("what is said of a file is not what was read", contents.what)
        guessed = read_file(path)
        if not whole or (header and index and min(m, n) > 1):
            _is_frame(guessed.X, frame, "a table whose labels are found out")


def _values(case: Case) -> np.ndarray:
    """Return the values of a case as a file has them, NaN where they are missing."""
    with np.errstate(all="ignore"):
        return np.where(case.seen, case.matrix.astype(float), np.nan)


def _is_frame(X: Any, frame: pd.DataFrame, what: str) -> None:
    read = np.asarray(X, float)
    if read.shape != frame.shape:
        raise Fault(f"{what} has another shape", f"{frame.shape} became {read.shape}")
    if not np.array_equal(read, frame.to_numpy(), equal_nan=True):
        gap = np.nanmax(np.abs(read - frame.to_numpy()) / np.abs(frame.to_numpy()))
        if not gap <= 1e-15:  # the parser of pandas rounds the last digit
            raise Fault(f"{what} has other values", f"{gap}")


def command_gives_the_fit(case: Case) -> None:
    """`nmd-lab fit` saves the fit of the same data and options, or says in a line why not."""
    rng = np.random.default_rng([case.seed, 11])
    arguments = {"rank": case.rank, "max_iter": 4, "random_state": case.seed} | _flags(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILES[rng.integers(len(FILES))]
        _write(path, _values(case))
        out = Path(folder) / OUTPUTS[rng.integers(len(OUTPUTS))]
        tokens = [
            "fit",
            str(path),
            "--out",
            str(out),
            "--quiet",
            f"--nonlinearity={case.nonlinearity}",
        ]
        tokens += ["--loss", case.loss] + ["--decompose"] * (case.verb == "decompose")
        for name, value in arguments.items():
            tokens.append(f"--{name.replace('_', '-')}={str(value).lower()}")
        expected = _direct(case, path, arguments)
        said, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            code = main(tokens)
        lines = errors.getvalue().splitlines()
        if any(not line.startswith("nmd-lab: ") for line in lines):
            raise Fault("the command says something else", errors.getvalue()[:200])
        if expected is None:
            if code not in (ExitCode.BAD_INPUT, ExitCode.FAILED) or "error: " not in lines[-1]:
                raise Fault("the command takes what the library refuses", str(code))
            return
        if code != ExitCode.OK:
            raise Fault("the command refuses what the library takes", lines[-1])
        if out.suffix.lower() == ".nc" and not nmd_lab.load(out).W.identical(expected.W):
            raise Fault("the command gives another fit")
        if out.suffix == ".npz" and not np.array_equal(np.load(out)["W"], expected.W.values):
            raise Fault("the command gives another fit")
        if len(list(Path(folder).iterdir())) > 2:
            raise Fault("the command leaves a file behind")


def _flags(case: Case) -> dict[str, Any]:
    """Return the options of a case that the command has, too."""
    names = ["max_iter", "tol", "alpha", "offsets", "dtype", "n_init", "init"]
    names += ["rho", "initial_rho", "split", "patience", "epsilon", "homotopy", "polish"]
    return {name: case.options[name] for name in names if name in case.options}


def _write(path: Path, values: np.ndarray) -> None:
    """Write a matrix in the format of the ending."""
    i, j = np.nonzero(~np.isnan(values))
    stored = sparse.coo_array((values[i, j], (i, j)), shape=values.shape)
    if path.name == "long.csv":
        table = pd.DataFrame({"userId": i, "movieId": j, "rating": values[i, j]})
        table.to_csv(path, index=False)
    elif path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".npz":
        sparse.save_npz(path, stored)
    elif path.suffix == ".mtx":
        mmwrite(path, stored)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(pd.DataFrame(values).to_csv().encode()))
    else:
        pd.DataFrame(values).to_csv(path, sep="\t" if path.suffix == ".tsv" else ",")


def _direct(case: Case, path: Path, arguments: dict[str, Any]) -> nmd_lab.Decomposition | None:
    """Return the fit that the library gives of a file, None if it refuses."""
    verb = getattr(nmd_lab, case.verb)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nmd_lab.warnings.NMDWarning)
            X = read_file(path).X
            fit: nmd_lab.Decomposition = verb(
                X,
                nonlinearity=case.model,
                loss=case.loss,
                progress=False,
                **arguments_of(arguments),
            )
    except Exception as error:
        if not is_documented(error):
            raise
        return None
    return fit

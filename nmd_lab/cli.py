"""The command ``nmd-lab``: fits, posteriors and studies from the command line.

::

    nmd-lab fit data.csv --out fit.nc
    nmd-lab fit data.csv --rank 10 --alpha 0.5 --nonlinearity relu --out fit.nc
    nmd-lab sample data.csv --rank 10 --out filled.csv
    nmd-lab study study.toml --out study.nc --jobs 2
    nmd-lab show fit.nc

Progress and errors go to stderr, results to stdout and files.  `ExitCode` lists the exit codes.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from nmd_lab.data.labels import RESULT_ATTRIBUTE
from nmd_lab.data.readers import read_file, with_categories
from nmd_lab.result import netcdf
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.exports import TABLES, check_export, export
from nmd_lab.result.posterior.files import is_posterior
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.result.selection import in_short

from ._atomic import check_target
from ._checks import check_share
from ._command_line import (
    DataOptions,
    ModelOptions,
    SampledModelOptions,
    SamplerOptions,
    SolverOptions,
    arguments_of,
    check_columns,
    checkpoint_of,
    in_shell,
    is_to_be_chosen,
)
from ._journal import journal_path
from ._version import __version__
from .checkpoint.file import exists
from .fit import complete, decompose
from .model.from_text import named_model
from .sampling import sample as draw_from_posterior

BAD_INPUT = (
    FileNotFoundError, IsADirectoryError, LookupError, NotADirectoryError, PermissionError,
    TypeError, ValueError,
)  # fmt: skip
"""Errors that arguments or files cause."""


class ExitCode(IntEnum):
    """Exit codes of the command."""

    OK = 0
    FAILED = 1
    """Something else than the input, such as memory, a full disk or a missing library."""
    BAD_INPUT = 2
    """Arguments or data that make no sense."""
    INCOMPLETE = 3
    """A study some of whose fits failed or exceeded the time limit."""
    INTERRUPTED = 130
    """Ctrl-C; the last checkpoint, or the finished fits of a study, are there."""


app = App(
    name="nmd-lab",
    help="Nonlinear matrix decomposition X ≈ f(WH).",
    version=f"nmd-lab {__version__}",
    help_format="rst",
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after "nmd-lab"; by default those of the command line.
    """
    tokens = list(sys.argv[1:] if argv is None else argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            code = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except KeyboardInterrupt as error:
        text = ": ".join(["interrupted", *map(str, error.args)])
        return _refuse(text, ExitCode.INTERRUPTED, kind="")
    except CycloptsError as error:
        return _refuse(str(error), ExitCode.BAD_INPUT)
    except BAD_INPUT as error:
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        return _refuse(in_shell(text), ExitCode.BAD_INPUT)
    except Exception as error:  # a user of the command has no use for a traceback
        return _refuse(str(error) or type(error).__name__, ExitCode.FAILED)
    return ExitCode.OK if code is None else int(code)


def _refuse(text: str, code: ExitCode, kind: str = "error: ") -> ExitCode:
    """Print a message in one line, and return the exit code."""
    print(f"nmd-lab: {kind}{' '.join(text.split())}", file=sys.stderr)
    return code


@contextmanager
def _going_on_from(path: Path | None) -> Iterator[None]:
    """Say at Ctrl-C that the command goes on from a checkpoint or a journal, if there is one."""
    try:
        yield
    except KeyboardInterrupt as error:
        if path is None or not exists(path):
            raise
        raise KeyboardInterrupt(f"the same command goes on from {path}") from error


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning in one line, without the place in the code."""
    print(f"nmd-lab: warning: {' '.join(str(message).split())}", file=sys.stderr)


@app.command
def fit(
    data: Path,
    /,
    *,
    rank: Literal["auto"] | int = "auto",
    out: Path | None = None,
    categories: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    reconstruction: Annotated[bool, Parameter(show_default=False)] = False,
    decompose_: Annotated[bool, Parameter(name="--decompose", show_default=False)] = False,
    quiet: Annotated[bool, Parameter(show_default=False)] = False,
    reading: DataOptions | None = None,
    model: ModelOptions | None = None,
    solver: SolverOptions | None = None,
) -> ExitCode:
    """Fit one model to a matrix.

    The file is .npy, .npz, .mtx, .nc, or a table .csv, .tsv, .txt with or without names of rows
    and columns.  A table of columns such as userId, movieId, rating is taken as a long table.
    Missing entries are completed.  Rank, ridge, offsets and nonlinearity are chosen by held-out
    entries unless they are given.

    Parameters
    ----------
    data
        File with the matrix.
    rank
        Number of components; auto: chosen by held-out entries.
    out
        File for the result: .nc (the fit, for "nmd-lab show" and nmd_lab.load), .npz (W, H and
        offsets), .csv or .parquet (the data with their holes filled).
    categories
        Columns of a table that hold categories.
    reconstruction
        Write the reconstruction f(WH) to .csv or .parquet, in place of the data.
    decompose_
        Take absent entries of a sparse matrix as zeros, not as missing.
    quiet
        No progress bar.
    """
    if out is not None and check_export(out, "out") == data.resolve():
        raise ValueError(f"out={str(out)!r} is the file of the data: give another path.")
    if reconstruction and (out is None or out.suffix.lower() not in TABLES):
        raise ValueError("--reconstruction goes with a table: give --out with .csv or .parquet.")
    changed = arguments_of(model or ModelOptions()) | arguments_of(solver or SolverOptions())
    options = _with_models(changed)
    X, options = _read(data, reading, options)
    X = with_categories(X, categories)
    check_columns(X, "fit")
    if out is not None:
        check_export(out, "out", "fit", X.shape)
    function = decompose if decompose_ else complete
    if not quiet and is_to_be_chosen(rank, options, decompose_):
        print("choosing by held-out entries, which takes several fits", flush=True)
    with _going_on_from(checkpoint_of(options)):
        result = function(X, rank, progress=not quiet, **options)
        print(result)
        if out is not None:
            export(result, out, None if reconstruction else X)
            print(f"saved as {out}")
    return ExitCode.OK


def _read(
    data: Path, reading: DataOptions | None, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the data, with the options and how to read them; print what was read."""
    reading = reading or DataOptions()
    X, what = read_file(data, **reading.of_reader())
    print(f"read {what}")
    return X, options | ({"sample_dims": reading.sample_dims} if reading.sample_dims else {})


def _with_models(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with objects for nonlinearities and losses that have parameters."""
    models = {name: options[name] for name in ("nonlinearity", "loss") if name in options}
    return options | {name: named_model(name, text) for name, text in models.items()}


@app.command
def sample(
    data: Path,
    /,
    *,
    rank: int,
    out: Path | None = None,
    level: float = 0.9,
    quiet: Annotated[bool, Parameter(show_default=False)] = False,
    reading: DataOptions | None = None,
    model: SampledModelOptions | None = None,
    sampler: SamplerOptions | None = None,
) -> ExitCode:
    """Fill the holes of a matrix, and say how sure that is.

    Draws from the posterior of the model.  The file is as for "nmd-lab fit".  Absent entries of a
    sparse matrix or a long table are missing.

    Parameters
    ----------
    data
        File with the matrix.
    rank
        Largest number of components; more than enough does no harm, except in a small table with
        near copies of columns.
    out
        File for the result.  .nc: the posterior, for "nmd-lab show" and nmd_lab.load.  .csv or
        .parquet: the matrix with its holes filled by posterior means; after each column "a" come
        "a lower" and "a upper", the ends of intervals, which are the value itself where it was
        observed.  .npz: the same as arrays filled, lower and upper.
    level
        Probability that an interval holds a new observation.
    quiet
        No progress bar.
    """
    check_share("level", level, zero=False)
    if out is not None and check_export(out, "out", "posterior") == data.resolve():
        raise ValueError(f"out={str(out)!r} is the file of the data: give another path.")
    model, sampler = model or SampledModelOptions(), sampler or SamplerOptions()
    options = arguments_of(model) | arguments_of(sampler)
    X, options = _read(data, reading, _with_models(options))
    check_columns(X, "sample")
    if out is not None:
        check_export(out, "out", "posterior", X.shape)
    with _going_on_from(checkpoint_of(options)):
        result = draw_from_posterior(X, rank, progress=not quiet, **options)
        print(result)
        if out is not None:
            export(result, out, X, level)
            print(f"saved as {out}")
    return ExitCode.OK


@app.command
def study(
    config: Path,
    /,
    *,
    out: Path,
    jobs: int | None = None,
    time_limit: float | None = None,
    quiet: Annotated[bool, Parameter(show_default=False)] = False,
) -> ExitCode:
    """Do the fits of a study that are not done yet, or failed.

    Parameters
    ----------
    config
        TOML file; see examples/study.toml.
    out
        File .nc for the results.
    jobs
        Number of processes; -1: one for each processor.
    time_limit
        Largest duration of each fit in seconds.
    quiet
        No progress bar.
    """
    from nmd_lab.studies.configuration import read_configuration

    check_target(out, "out")
    if out.suffix.lower() != ".nc":
        raise ValueError(f"out={str(out)!r} has another ending: results of a study are .nc files.")
    the_study, options = read_configuration(config)
    numbers = {"n_jobs": jobs, "time_limit": time_limit}
    options |= {name: value for name, value in numbers.items() if value is not None}
    with _going_on_from(journal_path(out)):
        results = the_study.run(out, progress=not quiet, **options)
    _print_study(results)
    print(f"saved as {out}")
    incomplete = results.status.isin(["failed", "timed out"]).any()
    return ExitCode.INCOMPLETE if incomplete else ExitCode.OK


@app.command
def show(file: Path, /) -> ExitCode:
    """Print a saved fit or posterior, or the table of a study.

    Parameters
    ----------
    file
        File .nc of a fit, a posterior or a study.
    """
    dataset = netcdf.read(file)
    if "study" in json.loads(dataset.attrs[RESULT_ATTRIBUTE]):
        _print_study(dataset)
        return ExitCode.OK
    kind = Posterior if is_posterior(dataset) else Decomposition
    result: Decomposition | Posterior = kind.from_dataset(dataset)
    print(result)
    for name, value in in_short(result.parameters).items():
        print(f"  {name}: {value}")
    return ExitCode.OK


def _print_study(results: Any) -> None:
    """Print the table of a study, and the number of fits without a result."""
    from nmd_lab.studies.summary import table

    print(f"<nmd_lab.Study>  {', '.join(f'{dim}: {n}' for dim, n in results.sizes.items())}")
    print(table(results, [], {}).joined().to_string())
    status, reasons = results["status"].values, results["stop_reason"].values
    fits = results["fit"].values
    for name in ("left out", "timed out", "failed"):
        mask = status == name
        reason_of = dict(zip(fits[mask], reasons[mask], strict=True))  # by fit, since cells share
        if reason_of:
            print(f"{len(reason_of)} fits {name}, for example: {next(iter(reason_of.values()))}")

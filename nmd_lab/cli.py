"""The command ``nmd-lab``: fits, posteriors and studies from the command line.

::

    nmd-lab fit data.csv --out fit.nc
    nmd-lab fit data.csv --rank 10 --alpha 0.5 --nonlinearity relu --out fit.nc
    nmd-lab sample data.csv --rank 10 --out filled.csv
    nmd-lab impute table.csv --draws 20 --out filled.csv --report report.html
    nmd-lab study study.toml --out study.nc --jobs 2
    nmd-lab show fit.nc

Progress and errors go to stderr, results to stdout and files.  `ExitCode` lists the exit codes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from nmd_lab.data.labels import RESULT_ATTRIBUTE
from nmd_lab.data.readers import read_file, with_categories
from nmd_lab.result import netcdf
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.draws_dataset import is_posterior
from nmd_lab.result.files import TABLES, check_export, export, export_filled
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.report import check_report
from nmd_lab.result.selection import in_short

from ._command_line import (
    FEWEST_DRAWS,
    DataOptions,
    ImputerOptions,
    ModelOptions,
    SampledModelOptions,
    SamplerOptions,
    SolverOptions,
    arguments_of,
    check_columns,
    checkpoint_of,
    is_to_be_chosen,
)
from ._journal import journal_path
from ._runtime.checks import check_integer, check_share
from ._runtime.disk import check_target
from ._shell import ExitCode, exit_code_of, going_on_from
from ._version import __version__
from .fit import complete, decompose
from .model.kind import named_model
from .sampling import sample as draw_from_posterior

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
    return exit_code_of(
        lambda: app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    )


Categories = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]
"""Names of columns."""


@app.command
def fit(
    data: Path,
    /,
    *,
    rank: Literal["auto"] | int = "auto",
    out: Path | None = None,
    categories: Categories = (),
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
    if out is not None:
        check_export(out, "out", source=data)
    if reconstruction and (out is None or out.suffix.lower() not in TABLES):
        raise ValueError("--reconstruction goes with a table: give --out with .csv or .parquet.")
    X, options = _read(data, reading, categories, model, solver)
    if out is not None:
        check_export(out, "out", "fit", X.shape)
    function = decompose if decompose_ else complete
    if not quiet and is_to_be_chosen(rank, options, decompose_):
        print("choosing by held-out entries, which takes several fits", flush=True)
    with going_on_from(checkpoint_of(options)):
        result = function(X, rank, progress=not quiet, **options)
        print(result)
        if out is not None:
            export(result, out, None if reconstruction else X)
            print(f"saved as {out}")
    return ExitCode.OK


def _read(
    data: Path, reading: DataOptions | None, categories: tuple[str, ...], *options: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the data, and the arguments for them; print what was read."""
    arguments, reading = arguments_of(*options), reading or DataOptions()
    for name in {"nonlinearity", "loss"} & arguments.keys():  # those that have parameters
        arguments[name] = named_model(name, arguments[name])
    X, what = read_file(data, **reading.of_reader())
    print(f"read {what}")
    X = with_categories(X, categories)
    check_columns(X)
    return X, arguments | ({"sample_dims": reading.sample_dims} if reading.sample_dims else {})


@app.command
def sample(
    data: Path,
    /,
    *,
    rank: Literal["auto"] | int = "auto",
    out: Path | None = None,
    categories: Categories = (),
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
        Largest number of components; more than enough does no harm.  By default one less than
        there are columns, at most 20.
    out
        File for the result.  .nc: the posterior, for "nmd-lab show" and nmd_lab.load.  .csv or
        .parquet: the matrix with its holes filled by posterior means; after each column "a" come
        "a lower" and "a upper", the ends of intervals, which are the value itself where it was
        observed.  .npz: the same as arrays filled, lower and upper.
    categories
        Columns of a table that hold categories.
    level
        Probability that an interval holds a new observation.
    quiet
        No progress bar.
    """
    check_share("level", level, zero=False)
    if out is not None:
        check_export(out, "out", "posterior", source=data)
    X, options = _read(data, reading, categories, model, sampler)
    if out is not None:
        check_export(out, "out", "posterior", X.shape)
    with going_on_from(checkpoint_of(options)):
        result = draw_from_posterior(X, rank, progress=not quiet, **options)
        print(result)
        if out is not None:
            export(result, out, X, level)
            print(f"saved as {out}")
    return ExitCode.OK


@app.command
def impute(
    data: Path,
    /,
    *,
    out: Path,
    draws: int | None = None,
    report: Path | None = None,
    rank: Literal["auto"] | int = "auto",
    categories: Categories = (),
    quiet: Annotated[bool, Parameter(show_default=False)] = False,
    reading: DataOptions | None = None,
    model: SampledModelOptions | None = None,
    sampler: ImputerOptions | None = None,
) -> ExitCode:
    """Fill the holes of a table, once by best guesses or several times by draws.

    Draws from the posterior as "nmd-lab sample" does, and writes the table alone.

    Parameters
    ----------
    data
        File with the table.
    out
        File .csv or .parquet for the filled table.
    draws
        Number of copies for multiple imputation, which are written below each other, with their
        number in a first column "draw".  Without it the table is filled once, by means, medians of
        levels, and the most probable classes.
    report
        File .html or .md for a page that says what was missing, filled and assumed, and how sure
        that is.
    rank
        Largest number of components.  By default one less than there are columns, at most 20.
    categories
        Columns that hold categories.
    quiet
        No progress bar.
    """
    check_export(out, "out", "table", source=data)
    if report is not None:
        check_report(report, "report")
    copies = 1 if draws is None else check_integer("draws", draws, 1)
    X, options = _read(data, reading, categories, model, sampler)
    check_export(out, "out", "table", (copies, *X.shape))
    if draws is not None and "draw" in getattr(X, "columns", ()):
        raise ValueError("X has a column 'draw', which numbers the copies: rename it.")
    options |= {"draws": copies} if copies > FEWEST_DRAWS else {}
    with going_on_from(checkpoint_of(options)):
        posterior = draw_from_posterior(X, rank, progress=not quiet, **options)
        print(posterior)
        export_filled(posterior, out, X, draws, options.get("random_state"))
        print(f"saved as {out}")
        if report is not None:
            posterior.report(X).save(report)
            print(f"report saved as {report}")
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
    with going_on_from(journal_path(out)):
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

"""The command ``nmd-lab``: imputes a table, or fits one model to a matrix.

::

    nmd-lab impute table.csv --out filled.csv --report report.html
    nmd-lab impute table.csv --draws 20 --out copies.csv
    nmd-lab fit data.csv --out fit.nc
    nmd-lab fit data.csv --rank 10 --alpha 0.5 --nonlinearity relu --out fit.nc

Its options are the arguments of `nmd_lab.sample` and of `nmd_lab.complete`, and the settings of
`ADMM` and `Compute`.  Progress and errors go to stderr, results to stdout and files.  `ExitCode`
lists the exit codes.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal

from ._command_line import READING, parsed
from ._runtime.checks import check_integer
from .checkpoint.checkpoint import exists
from .data.frames import description, refused_columns
from .data.labels import is_frame
from .data.readers import read_file, with_categories
from .fit import complete, decompose
from .model.kind import named_model
from .result.files import TABLES, check_export, export, export_filled
from .result.report import check_report
from .sampling import sample
from .solver.options import COMPLETION_DEFAULTS, Options
from .solver.settings import ADMM, Compute

FEWEST_DRAWS: int = inspect.signature(sample).parameters["draws"].default
"""Draws of the sampler behind the copies of a table."""


class ExitCode(IntEnum):
    """Exit codes of the command."""

    OK = 0
    FAILED = 1
    """Something else than the input, such as memory, a full disk or a missing library."""
    BAD_INPUT = 2
    """Arguments or data that make no sense."""
    INTERRUPTED = 130
    """Ctrl-C; the last checkpoint is there."""


BAD_INPUT = (
    *(FileNotFoundError, IsADirectoryError, LookupError, NotADirectoryError, PermissionError),
    *(TypeError, ValueError),
)
"""Errors that arguments or files cause."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; errors and warnings are one line on stderr.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after "nmd-lab"; by default those of the command line.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: _say(f"warning: {message}")
            options = parsed((fit, impute), list(sys.argv[1:] if argv is None else argv))
            options.pop("command")(**options)
    except SystemExit:  # --help and --version
        return ExitCode.OK
    except KeyboardInterrupt as error:
        _say(": ".join(["interrupted", *map(str, error.args)]))
        return ExitCode.INTERRUPTED
    except BAD_INPUT as error:
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        _say(f"error: {_in_shell(text)}")
        return ExitCode.BAD_INPUT
    except Exception as error:  # a user of the command has no use for a traceback
        _say(f"error: {str(error) or type(error).__name__}")
        return ExitCode.FAILED
    return ExitCode.OK


def _say(text: str) -> None:
    """Print a message in one line on stderr."""
    print(f"nmd-lab: {' '.join(text.split())}", file=sys.stderr)


def _in_shell(text: str) -> str:
    """Return an error message with the bounds of MinMax and `complete` as the shell has them."""
    text = text.replace(" or MatrixCompletion", "")
    text = text.replace("use complete()", "leave out --decompose")
    return re.sub(r"nonlinearity=nmd\.MinMax(\([^)]*\))", r'--nonlinearity "minmax\1"', text)


def fit(
    data: Path,
    *,
    rank: int | Literal["auto"] = "auto",
    out: Path | None = None,
    reconstruction: bool = False,
    decompose: bool = False,
    quiet: bool = False,
    paper: bool = False,
    **options: Any,
) -> None:
    """Fit one model to a matrix, print it, and write what the ending of `out` asks for."""
    if out is not None:
        check_export(out, "out", source=data)
    if reconstruction and (out is None or out.suffix.lower() not in TABLES):
        raise ValueError("--reconstruction goes with a table: give --out with .csv or .parquet.")
    if solver := _taken(options, ADMM):
        if paper:
            other = next(iter(solver)).replace("_", "-")
            raise ValueError(f"--paper does not go with --{other}: leave out one of the two.")
        options["solver"] = ADMM(**solver)
    elif paper:
        options["solver"] = "paper"
    X = _read(data, options)
    if out is not None:
        check_export(out, "out", "fit", X.shape)
    if not quiet and _is_chosen(rank, options, decompose):
        print("choosing by held-out entries, which takes several fits", flush=True)
    function = _decompose if decompose else complete
    with _resumable(options):
        result = function(X, rank, progress=not quiet, **options)
        print(result)
        if out is not None:
            export(result, out, None if reconstruction else X)
            print(f"saved as {out}")


_decompose = decompose  # an option has the same name


def impute(
    data: Path,
    *,
    out: Path,
    draws: int | None = None,
    report: Path | None = None,
    rank: int | Literal["auto"] = "auto",
    quiet: bool = False,
    **options: Any,
) -> None:
    """Impute the missing cells of a table, once by best guesses or several times by draws."""
    check_export(out, "out", "table", source=data)
    if report is not None:
        check_report(report, "report")
    copies = 1 if draws is None else check_integer("draws", draws, 1)
    X = _read(data, options)
    check_export(out, "out", "table", (copies, *X.shape))
    if draws is not None and "draw" in getattr(X, "columns", ()):
        raise ValueError("X has a column 'draw', which numbers the copies: rename it.")
    options |= {"draws": copies} if copies > FEWEST_DRAWS else {}
    with _resumable(options):
        posterior = sample(X, rank, progress=not quiet, **options)
        print(posterior)
        export_filled(posterior, out, X, draws, options.get("random_state"))
        print(f"saved as {out}")
        if report is not None:
            posterior.report(X).save(report)
            print(f"report saved as {report}")


def _read(data: Path, options: dict[str, Any]) -> Any:
    """Return the data and print what was read; make values of Python of the options."""
    reading = {name: options.pop(name, None) for name in READING}
    reading |= {name: options.pop(name, "auto") for name in ("header", "index")}
    categories = options.pop("categories", ())
    for name in {"nonlinearity", "loss"} & options.keys():  # those that have parameters
        options[name] = named_model(name, options[name])
    if compute := _taken(options, Compute):
        options["compute"] = Compute(**compute)
    X, what = read_file(data, **reading)
    print(f"read {what}")
    X = with_categories(X, categories)
    refused = refused_columns(X) if is_frame(X) else {}
    if refused:
        names = ", ".join(repr(name) for names in refused.values() for name in names)
        remedy = f"leave {names} out of the file"
        if "limits" in refused:
            remedy += "; limits need Python: at_most= and at_least= of nmd.sample"
        raise ValueError(f"the table has {description(X, refused)}: {remedy}.")
    return X


def _taken(options: dict[str, Any], settings: type[ADMM | Compute]) -> dict[str, Any]:
    """Take from the options those of a group of settings."""
    return {f.name: options.pop(f.name) for f in fields(settings) if f.name in options}


def _is_chosen(rank: int | str, options: dict[str, Any], decompose: bool) -> bool:
    """Return whether a fit with these options chooses something by held-out entries."""
    defaults = {"alpha": Options.alpha} if decompose else COMPLETION_DEFAULTS
    names = ("alpha", "nonlinearity", "loss")
    return "auto" in (rank, *((defaults | options).get(name) for name in names))


@contextmanager
def _resumable(options: dict[str, Any]) -> Iterator[None]:
    """Print at Ctrl-C that the command resumes from a checkpoint, if there is one."""
    path = options["compute"].checkpoint if "compute" in options else None
    try:
        yield
    except KeyboardInterrupt as error:
        if path is None or not exists(path):
            raise
        raise KeyboardInterrupt(f"the same command resumes from {path}") from error

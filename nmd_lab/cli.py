"""The command ``nmd-lab``: imputes a table, or fits one model to a matrix.

::

    nmd-lab impute table.csv --out filled.csv --report report.html
    nmd-lab impute table.csv --n 20 --out completed.csv
    nmd-lab fit data.csv --out fit.nc
    nmd-lab fit data.csv --rank 10 --alpha 0.5 --nonlinearity relu --out fit.nc

Its options are the arguments of `nmd_lab.sample` and of `nmd_lab.complete`, and the settings of
`ADMM` and `Compute`.  Progress and errors go to stderr, results to stdout and files.  `ExitCode`
lists the exit codes.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import warnings
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from collections.abc import Callable, Sequence
from dataclasses import fields
from enum import IntEnum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from ._runtime.checks import check_integer, many, nearest
from ._version import __version__
from .api.fits import complete, decompose
from .api.posteriors import sample
from .checkpoint import exists
from .data.labels import is_frame
from .data.readers import censored, read_file, with_categories
from .data.typed_table import description, refused_columns
from .model.column_model import named_model
from .request.options import COMPLETION_DEFAULTS, DataOptions, Options
from .request.settings import ADMM, Compute
from .result.files import TABLES, check_export, export, export_filled
from .result.report import check_report

MIN_DRAWS: int = inspect.signature(sample).parameters["draws"].default
"""Least number of draws behind the imputations of a table, unless it is given."""


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
    options: dict[str, Any] = {}
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: _say(f"warning: {message}")
            options = parsed((fit, impute), list(sys.argv[1:] if argv is None else argv))
            options.pop("command")(**options)
    except SystemExit:  # --help and --version
        return ExitCode.OK
    except KeyboardInterrupt:
        path = options.get("checkpoint")
        remedy = f": the same command resumes from {path}" if path and exists(path) else ""
        _say(f"interrupted{remedy}")
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
    text = re.sub("that limits=.* give .*", "as a word: write '<' and the limit there.", text)
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
        remedy = "give --out with .csv, .parquet or .xlsx"
        raise ValueError(f"--reconstruction goes with a table: {remedy}.")
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
    defaults = {"alpha": Options.alpha} if decompose else COMPLETION_DEFAULTS
    asked = (defaults | options).get
    if not quiet and "auto" in (rank, asked("alpha"), asked("nonlinearity"), asked("loss")):
        print("choosing by held-out entries, which takes several fits", flush=True)
    function = _decompose if decompose else complete
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
    n: int | None = None,
    report: Path | None = None,
    rank: int | Literal["auto"] = "auto",
    quiet: bool = False,
    **options: Any,
) -> None:
    """Impute the missing cells of a table, once by point predictions or n times by draws."""
    check_export(out, "out", "table", source=data)
    if report is not None:
        check_report(report, "report")
    copies = 1 if n is None else check_integer("n", n, 1)
    X = _read(data, options)
    check_export(out, "out", "table", (copies, *X.shape))
    if n is not None and "draw" in getattr(X, "columns", ()):
        raise ValueError("X has a column 'draw', which numbers the completed copies: rename it.")
    options = ({"draws": copies} if copies > MIN_DRAWS else {}) | options
    posterior = sample(X, rank, progress=not quiet, **options)
    print(posterior)
    export_filled(posterior, out, X, n, options.get("random_state"))
    print(f"saved as {out}")
    if report is not None:
        posterior.report(X).save(report)
        print(f"report saved as {report}")


def _read(data: Path, options: dict[str, Any]) -> Any:
    """Return the data and print what was read; make values of Python of the options."""
    reading = {n: options.pop(n) for n in (*READING, "header", "index") if n in options}
    categories = options.pop("categories", ())
    for name in {"nonlinearity", "loss"} & options.keys():  # those that have parameters
        options[name] = named_model(name, options[name])
    if compute := _taken(options, Compute):
        options["compute"] = Compute(**compute)
    X, what = read_file(data, **reading)
    print(f"read {what}")
    X = with_categories(X, categories)
    if not is_frame(X):
        return X
    X, limits = censored(X)
    for side, mask in limits.items():
        found = ", ".join(f"{name} {count}" for name, count in mask.sum().items() if count)
        print(f"{side}: {many(int(mask.to_numpy().sum()), 'cell')} ({found})")
    options |= limits
    if refused := refused_columns(X):
        names = ", ".join(repr(name) for names in refused.values() for name in names)
        raise ValueError(f"the table has {description(X, refused)}: leave {names} out of the file.")
    return X


def _taken(options: dict[str, Any], settings: type[ADMM | Compute]) -> dict[str, Any]:
    """Take from the options those of a group of settings."""
    return {f.name: options.pop(f.name) for f in fields(settings) if f.name in options}


FILES = """  The file is .npy, .npz, .mtx, .nc, .parquet, or a table .csv, .tsv or .txt with or
without names of rows and columns.  A table of columns userId, movieId, rating is a long table."""

OF_PYTHON = {*DataOptions.__annotations__} - {"dtype"} | {
    *("X", "rank", "limit_noise", "bounds", "order", "callback", "progress", "work_dir", "client"),
    *("solver", "compute"),
}
"""Arguments that a command takes from its file, has in other words, or has no words for."""

READING = ("variable", "row", "column", "value")

HELP = {
    "nonlinearity": 'relu, square, minmax, identity or another name; with bounds "minmax(1, 5)"',
    "loss": "frobenius, l1, kl or another name",
    "alpha": "ridge; auto: chosen by cross-validation",
    "offsets": "offsets added to WH",
    "max_iter": "largest number of iterations",
    "tol": "relative gain that is worth 100 more iterations",
    "validation": "fraction of the observed entries to hold out for early stopping",
    "time_limit": "in seconds",
    "random_state": "seed, which gives the same result again",
    "dtype": "working precision, by default that of the data",
    "draws": "sweeps after tuning",
    "tune": "first sweeps, which are left out",
    "threads": "number of threads",
    "checkpoint": "file from which the same command resumes after a stop",
}
"""Help of the options that most people need; the docstrings of the library explain all."""


ORDER = "rows in order: index or column of their places (dates); before it names of series"


class _Parser(ArgumentParser):
    """A parser whose errors are exceptions with one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise the error, for one line without the usage."""
        raise ValueError(message)


def parsed(functions: tuple[Callable[..., None], ...], tokens: list[str]) -> dict[str, Any]:
    """Return the options that were given, and the function of the command as "command"."""
    parser = _Parser("nmd-lab", description="Nonlinear matrix decomposition X ≈ f(WH).")
    parser.add_argument("--version", action="version", version=f"nmd-lab {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    parsers = {function: _command(commands, function) for function in functions}
    namespace, others = parser.parse_known_args(tokens)
    options = vars(namespace)
    if others:
        actions = parsers[options["command"]]._actions
        flags = [flag for action in actions for flag in action.option_strings]
        hint = nearest(others[0].partition("=")[0], flags) or "--help lists the options."
        raise ValueError(f"{others[0]} is not an option: {hint}")
    return options


def _command(commands: Any, function: Callable[..., None]) -> ArgumentParser:
    """Return the parser of a command."""
    parser: ArgumentParser = commands.add_parser(
        function.__name__,
        help=(inspect.getdoc(function) or "").partition(",")[0],
        description=(inspect.getdoc(function) or "") + FILES,
        argument_default=SUPPRESS,
        allow_abbrev=False,
    )
    parser.set_defaults(command=function)
    parser.add_argument("data", type=Path, help="file with the matrix")
    parser.add_argument(
        "--rank", type=_reader(int | Literal["auto"]) or int, help="number of components"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    is_fit = function.__name__ == "fit"
    endings = ".nc (the fit), .npz (W and H), " * is_fit + ".csv, .parquet or .xlsx (filled)"
    parser.add_argument("--out", type=Path, required=not is_fit, help=f"result: {endings}")
    if is_fit:
        parser.add_argument("--reconstruction", action="store_true", help="write f(WH) itself")
        parser.add_argument("--decompose", action="store_true", help="absent entries are zeros")
        parser.add_argument("--paper", action="store_true", help="the paper's algorithm alone")
        owners: list[Callable[..., Any]] = [complete, ADMM, Compute]
    else:
        parser.add_argument("--n", type=int, help="number of imputations, one below the other")
        parser.add_argument("--report", type=Path, help="page .html or .md: what was filled, how")
        parser.add_argument("--order", nargs="+", metavar="NAME", help=ORDER)
        owners = [sample, Compute]
    reading = parser.add_argument_group("reading the data")
    reading.add_argument("--categories", nargs="+", metavar="NAME", help="columns of categories")
    reading.add_argument("--sample-dims", nargs="+", metavar="NAME", help="dimensions of the rows")
    for name in READING:
        text = "array in the file" if name == "variable" else f"column of a long table: {name}"
        reading.add_argument(f"--{name}", metavar="NAME", help=text)
    for name in ("header", "index"):
        reading.add_argument(f"--{name}", action=BooleanOptionalAction, help="whether it has one")
    left_out = OF_PYTHON | (set() if is_fit else {"device", "memory_limit"})
    for owner in owners:
        group = parser.add_argument_group(f"arguments of nmd_lab.{owner.__name__}")
        _add_arguments(group, owner, left_out)
    return parser


def _add_arguments(group: Any, owner: Callable[..., Any], left_out: set[str]) -> None:
    """Add the arguments of a function or class for whose values the command line has words."""
    hints = get_type_hints(owner)
    for name, parameter in inspect.signature(owner).parameters.items():
        if name in left_out or name not in hints:
            continue
        flags = [f"--{name.replace('_', '-')}"]
        text = HELP.get(name, "").replace("%", "%%")
        if parameter.default not in (None, inspect.Parameter.empty, "auto"):
            text = f"{text} (default {str(parameter.default).lower()})".lstrip()
        if hints[name] is bool:
            group.add_argument(*flags, action=BooleanOptionalAction, help=text)
            continue
        if name == "random_state":
            flags, hints[name] = ["--seed", *flags], int
        elif name == "dtype":
            hints[name] = Literal["float32", "float64"]
        reader = _reader(hints[name])
        if reader is not None:
            group.add_argument(*flags, dest=name, type=reader, metavar=reader.__name__, help=text)


def _reader(hint: Any) -> Callable[[str], Any] | None:
    """Return a function that reads a value of a type from a word; None if there is no word."""
    members = list(get_args(hint)) if get_origin(hint) in (Union, UnionType) else [hint]
    literals = [each for each in members if get_origin(each) is Literal]
    words: dict[str, Any] = {word: word for each in literals for word in get_args(each)}
    if words and bool in members:
        words |= {"true": True, "false": False}
    kinds: list[type] = [each for each in members if each in (int, float)]
    kinds += [Path for each in members if get_origin(each) is os.PathLike]
    if not words and not kinds and str in members:
        kinds = [str]
    if not words and not kinds:
        return None

    def read(text: str) -> Any:
        if text in words:
            return words[text]
        for kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
        raise ArgumentTypeError(f"{text!r} is none of {read.__name__}")

    names = [*words, *(kind.__name__.upper() for kind in kinds)]
    read.__name__ = "|".join(names)
    return read

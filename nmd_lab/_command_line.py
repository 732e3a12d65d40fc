"""The parser of ``nmd-lab``: its options are arguments of the library's functions."""

from __future__ import annotations

import inspect
import os
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from ._runtime.checks import nearest
from ._version import __version__
from .fit import complete
from .sampling import sample
from .solver.options import FitOptions
from .solver.settings import ADMM, Compute

FILES = """  The file is .npy, .npz, .mtx, .nc, .parquet, or a table .csv, .tsv or .txt with or
without names of rows and columns.  A table of columns userId, movieId, rating is a long table."""

OF_PYTHON = {
    *("X", "rank", "observed", "weights", "at_most", "at_least", "upper", "limit_noise"),
    *("sample_dims", "callback", "progress", "work_dir", "client", "solver", "compute"),
}
"""Arguments that a command takes from its file, has in other words, or has no words for."""

READING = ("variable", "row", "column", "value")

HELP = {
    "nonlinearity": 'relu, square, minmax, identity or another name; with bounds "minmax(1, 5)"',
    "loss": "frobenius, l1, kl or another name",
    "alpha": "ridge; auto: chosen by held-out entries",
    "offsets": "offsets added to WH",
    "max_iter": "largest number of iterations",
    "tol": "relative gain that is worth 100 more iterations",
    "validation": "fraction of the observed entries to hold out for early stopping",
    "time_limit": "in seconds",
    "random_state": "seed, which gives the same result again",
    "dtype": "working precision, by default that of the data",
    "tune": "first sweeps, which are left out",
    "threads": "number of threads",
    "checkpoint": "file from which the same command resumes after a stop",
}
"""Help of the options that most people need; the docstrings of the library explain all."""


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
    endings = ".nc (the fit), .npz (W and H), " if is_fit else ""
    parser.add_argument(
        "--out", type=Path, required=not is_fit, help=f"result: {endings}.csv or .parquet (filled)"
    )
    if is_fit:
        parser.add_argument("--reconstruction", action="store_true", help="write f(WH) itself")
        parser.add_argument("--decompose", action="store_true", help="absent entries are zeros")
        parser.add_argument("--paper", action="store_true", help="the paper's algorithm alone")
        owners: list[Callable[..., Any]] = [complete, ADMM, Compute]
    else:
        parser.add_argument("--draws", type=int, help="number of copies, one below the other")
        parser.add_argument("--report", type=Path, help="page .html or .md: what was filled, how")
        owners = [sample, Compute]
    reading = parser.add_argument_group("reading the data")
    reading.add_argument("--categories", nargs="+", metavar="NAME", help="columns of categories")
    reading.add_argument("--sample-dims", nargs="+", metavar="NAME", help="dimensions of the rows")
    for name in READING:
        text = "array in the file" if name == "variable" else f"column of a long table: {name}"
        reading.add_argument(f"--{name}", metavar="NAME", help=text)
    for name in ("header", "index"):
        reading.add_argument(f"--{name}", action=BooleanOptionalAction, help="whether it has one")
    left_out = OF_PYTHON | (set() if is_fit else {"draws", "device", "memory_limit"})
    for owner in owners:
        group = parser.add_argument_group(f"arguments of nmd_lab.{owner.__name__}")
        _add_arguments(group, owner, left_out)
    return parser


def _add_arguments(group: Any, owner: Callable[..., Any], left_out: set[str]) -> None:
    """Add the arguments of a function or class for whose values the command line has words."""
    hints = get_type_hints(owner) | (get_type_hints(FitOptions) if owner is complete else {})
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

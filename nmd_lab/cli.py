"""The command ``nmd-lab``: fits and studies from the command line.

::

    nmd-lab fit data.csv --rank 10 --nonlinearity relu --out fit.nc
    nmd-lab study study.toml --out study.nc --jobs 2
    nmd-lab show fit.nc

Progress and errors go to stderr, results to stdout and files.  `ExitCode` lists the exit codes.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import json
import re
import signal
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from nmd_lab.data.labels import RESULT_ATTRIBUTE
from nmd_lab.data.readers import read_matrix
from nmd_lab.result import netcdf
from nmd_lab.result.decomposition import Decomposition

from ._interruption import interruptible
from ._version import __version__
from .fit import complete, decompose

NO_GENERATED_OPTION = ("X", "rank", "mask", "weights", "callback", "progress", "sample_dims")
"""Arguments of `complete` that have no option, or one that is written by hand."""


class ExitCode(IntEnum):
    """Exit codes of the command."""

    OK = 0
    BAD_INPUT = 2
    """Arguments or data that make no sense."""
    INCOMPLETE = 3
    """A study some of whose fits failed or exceeded the time limit."""
    INTERRUPTED = 130
    """Ctrl-C."""
    TERMINATED = 143
    """SIGTERM; the best iterate so far is printed and saved."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after "nmd-lab"; by default those of the command line.
    """
    parser = _parser()
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        nearest = difflib.get_close_matches(unknown[0].partition("=")[0], arguments.options, n=1)
        hint = f": did you mean {nearest[0]}?" if nearest else "."
        parser.error(f"{unknown[0]} is unknown{hint}")
    try:
        code: int = arguments.run(arguments)
    except KeyboardInterrupt:
        print("nmd-lab: interrupted: finished fits are kept", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except (
        ArithmeticError, ImportError, LookupError, MemoryError, OSError, RuntimeError, TypeError,
        ValueError,
    ) as error:  # fmt: skip
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        print(f"nmd-lab: error: {' '.join(text.split())}", file=sys.stderr)
        return ExitCode.BAD_INPUT
    return code


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the three commands."""
    parser = argparse.ArgumentParser(
        prog="nmd-lab", description="Nonlinear matrix decomposition X ≈ f(WH)."
    )
    parser.add_argument("--version", action="version", version=f"nmd-lab {__version__}")
    commands = parser.add_subparsers(required=True, metavar="{fit,study,show}")
    _add_fit(commands)

    study = commands.add_parser("study", help="do the fits of a study that are not done yet")
    study.add_argument("config", help="TOML file; see examples/study.toml")
    study.add_argument("--out", required=True, metavar="FILE.nc", help="file for the results")
    study.add_argument(
        "--jobs", type=int, metavar="N", help="number of processes; -1: one for each processor"
    )
    study.add_argument(
        "--time-limit", type=float, metavar="S", help="largest duration of each fit in seconds"
    )
    study.add_argument("--retry", action="store_true", help="repeat fits that failed")
    study.add_argument("--quiet", action="store_true", help="no progress bar")
    study.set_defaults(run=_run_study)

    show = commands.add_parser("show", help="print a saved fit, or the table of a study")
    show.add_argument("file", metavar="FILE.nc", help="file of a fit or a study")
    show.set_defaults(run=_run_show)
    for command in (study, show):
        command.set_defaults(options=list(command._option_string_actions))
    return parser


def _add_fit(commands: Any) -> None:
    """Add the command "fit", with an option for each argument of `complete`."""
    fit = commands.add_parser("fit", help="fit one model", allow_abbrev=False)
    fit.add_argument("data", help=".npy, .npz, .mtx, .csv, .tsv, .txt or .nc file")
    fit.add_argument("--rank", type=_value, required=True, help="number of components")
    fit.add_argument("--out", metavar="FILE.nc", help="file for the fit")
    fit.add_argument(
        "--decompose",
        action="store_true",
        help="take absent entries of a sparse matrix as zeros, not as missing",
    )
    fit.add_argument("--variable", help="name of the array in an .npz or .nc file")
    for name in ("row", "column", "value"):
        fit.add_argument(f"--{name}", help=f"column of a long table that holds the {name}s")
    fit.add_argument("--sample-dims", nargs="+", help="dimensions that make the rows")
    fit.add_argument("--quiet", action="store_true", help="no progress bar")
    descriptions = _descriptions(decompose)
    for name, parameter in inspect.signature(complete).parameters.items():
        if name in NO_GENERATED_OPTION or parameter.kind is parameter.VAR_KEYWORD:
            continue
        fit.add_argument(
            f"--{name.replace('_', '-')}",
            type=_value,
            default=argparse.SUPPRESS,
            metavar="VALUE",
            help=descriptions.get(name, "see nmd_lab.complete").replace("%", "%%"),
        )
    fit.set_defaults(run=_run_fit, options=list(fit._option_string_actions))


def _descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Return the type and the first sentence of each parameter in a docstring."""
    text = inspect.getdoc(function) or ""
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    descriptions: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section):
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        sentence = " ".join(body.split()).split(". ")[0].rstrip(".")
        descriptions |= {name.strip(): f"{kind}: {sentence}" for name in names.split(",")}
    return descriptions


def _value(text: str) -> Any:
    """Return the value of an option: None, a truth value, a number or else the text itself."""
    constants = {"none": None, "true": True, "false": False}
    if text.lower() in constants:
        return constants[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _run_fit(arguments: argparse.Namespace) -> int:
    """Run the command "fit"."""
    from nmd_lab.studies.configuration import named_model

    values = vars(arguments)
    accepted = set(inspect.signature(complete).parameters).difference(NO_GENERATED_OPTION)
    options = {name: value for name, value in values.items() if name in accepted}
    for name in ("nonlinearity", "loss"):
        if name in options:
            options[name] = named_model(name, options[name])
    if arguments.sample_dims:
        options["sample_dims"] = arguments.sample_dims
    read_options = {name: values[name] for name in ("variable", "row", "column", "value")}
    X = read_matrix(arguments.data, **read_options)
    function = decompose if arguments.decompose else complete
    with interruptible() as interruption:  # until the fit is saved
        fit = function(X, arguments.rank, progress=not arguments.quiet, **options)
        print(fit)
        if arguments.out:
            fit.save(arguments.out)
            print(f"saved as {arguments.out}")
    return ExitCode.TERMINATED if interruption.signal == signal.SIGTERM else ExitCode.OK


def _run_study(arguments: argparse.Namespace) -> int:
    """Run the command "study"."""
    from nmd_lab.studies.configuration import read_configuration

    study, options = read_configuration(arguments.config)
    numbers = {"n_jobs": arguments.jobs, "time_limit": arguments.time_limit}
    options |= {name: value for name, value in numbers.items() if value is not None}
    options |= {"retry": True} if arguments.retry else {}
    results = study.run(arguments.out, progress=not arguments.quiet, **options)
    _print_study(results)
    print(f"saved as {arguments.out}")
    incomplete = results.status.isin(["failed", "timed out"]).any()
    return ExitCode.INCOMPLETE if incomplete else ExitCode.OK


def _run_show(arguments: argparse.Namespace) -> int:
    """Run the command "show"."""
    dataset = netcdf.read(arguments.file)
    if "study" in json.loads(dataset.attrs[RESULT_ATTRIBUTE]):
        _print_study(dataset)
        return ExitCode.OK
    fit = Decomposition.from_dataset(dataset)
    print(fit)
    for name, value in fit.parameters.items():
        print(f"  {name}: {value}")
    return ExitCode.OK


def _print_study(results: Any) -> None:
    """Print the table of a study, and the number of fits without a result."""
    from nmd_lab.studies.summary import table

    print(f"<nmd_lab.Study>  {', '.join(f'{dim}: {n}' for dim, n in results.sizes.items())}")
    print(table(results, conditions={}).joined().to_string())
    status, reasons = results["status"].values, results["stop_reason"].values
    fits = results["fit"].values
    for name in ("left out", "timed out", "failed"):
        mask = status == name
        reason_of = dict(zip(fits[mask], reasons[mask], strict=True))  # by fit, since cells share
        if reason_of:
            print(f"{len(reason_of)} fits {name}, for example: {next(iter(reason_of.values()))}")


if __name__ == "__main__":
    sys.exit(main())

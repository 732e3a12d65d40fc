"""The command ``nmd-lab``: fits and studies for machines without a notebook.

::

    nmd-lab fit data.csv --rank 10 --nonlinearity relu --out fit.nc
    nmd-lab study study.toml --out study.nc --jobs 2
    nmd-lab show fit.nc

Progress and errors go to stderr, results to stdout and files.  The exit code is 0 if all went
well, 2 for arguments or data that make no sense, 3 if some fits of a study have no result, and 130
after Ctrl-C.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from nmd_lab.data.readers import read_matrix
from nmd_lab.result.decomposition import Decomposition

from ._version import __version__
from .fit import complete, decompose
from .result import netcdf

OK, BAD_INPUT, INCOMPLETE, INTERRUPTED = 0, 2, 3, 130

NO_OPTIONS = ("X", "rank", "mask", "weights", "callback", "progress", "sample_dims")
"""Arguments of a fit that have no option, or one of their own."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after "nmd-lab"; by default those of the command line.
    """
    parser = _parser()
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        near = difflib.get_close_matches(unknown[0].partition("=")[0], arguments.options, n=1)
        parser.error(f"{unknown[0]} is unknown" + (f": did you mean {near[0]}?" if near else "."))
    try:
        code: int = arguments.run(arguments)
    except KeyboardInterrupt:
        print("nmd-lab: interrupted: what is finished is kept", file=sys.stderr)
        return INTERRUPTED
    except (
        ArithmeticError, ImportError, LookupError, MemoryError, OSError, RuntimeError, TypeError,
        ValueError,
    ) as error:  # fmt: skip
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        print(f"nmd-lab: error: {' '.join(text.split())}", file=sys.stderr)
        return BAD_INPUT
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nmd-lab", description="Nonlinear matrix decomposition X ≈ f(WH)."
    )
    parser.add_argument("--version", action="version", version=f"nmd-lab {__version__}")
    commands = parser.add_subparsers(required=True, metavar="{fit,study,show}")
    _add_fit(commands)

    study = commands.add_parser("study", help="do the fits of a study that are not done yet")
    study.add_argument("config", help="TOML file; see examples/study.toml")
    study.add_argument("--out", required=True, metavar="FILE.nc", help="where the results go")
    study.add_argument("--jobs", type=int, metavar="N", help="processes; -1: all processors")
    study.add_argument("--time-limit", type=float, metavar="S", help="seconds for each fit")
    study.add_argument("--retry", action="store_true", help="do failed fits again")
    study.add_argument("--quiet", action="store_true", help="no progress bar")
    study.set_defaults(run=_run_study)

    show = commands.add_parser("show", help="print what a file of results holds")
    show.add_argument("file", metavar="FILE.nc")
    show.set_defaults(run=_run_show)
    for command in (study, show):
        command.set_defaults(options=list(command._option_string_actions))
    return parser


def _add_fit(commands: Any) -> None:
    """Add the command that fits, with an option for each argument of `complete`."""
    fit = commands.add_parser("fit", help="fit one model", allow_abbrev=False)
    fit.add_argument("data", help=".npy, .npz, .mtx, .csv, .tsv, .txt or .nc file")
    fit.add_argument("--rank", type=_value, required=True, help="number of components")
    fit.add_argument("--out", metavar="FILE.nc", help="where the fit goes")
    fit.add_argument(
        "--decompose",
        action="store_true",
        help="absent entries of a sparse matrix are zeros that count, not missing",
    )
    fit.add_argument("--variable", help="which array of an .npz or .nc file")
    for name in ("row", "column", "value"):
        fit.add_argument(f"--{name}", help=f"column of a long table that holds the {name}s")
    fit.add_argument("--sample-dims", nargs="+", help="dimensions that make the rows")
    fit.add_argument("--quiet", action="store_true", help="no progress bar")
    about = _documentation(decompose)
    for name, parameter in inspect.signature(complete).parameters.items():
        if name in NO_OPTIONS or parameter.kind is parameter.VAR_KEYWORD:
            continue
        fit.add_argument(
            f"--{name.replace('_', '-')}",
            type=_value,
            default=argparse.SUPPRESS,
            metavar="VALUE",
            help=about.get(name, "see nmd_lab.complete").replace("%", "%%"),
        )
    fit.set_defaults(run=_run_fit, options=list(fit._option_string_actions))


def _documentation(function: Any) -> dict[str, str]:
    """Return the first sentence that a docstring says of each parameter."""
    text = inspect.getdoc(function) or ""
    parameters = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    entries = re.split(r"\n(?=\S)", parameters)
    about: dict[str, str] = {}
    for entry in entries:
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        sentence = " ".join(body.split()).split(". ")[0].rstrip(".")
        about |= {name.strip(): f"{kind}: {sentence}" for name in names.split(",")}
    return about


def _value(word: str) -> Any:
    """Return a number, None or a word."""
    if word.lower() in ("none", "true", "false"):
        return {"none": None, "true": True, "false": False}[word.lower()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def _run_fit(arguments: argparse.Namespace) -> int:
    from .studies.configuration import named_model

    given = vars(arguments)
    known = inspect.signature(complete).parameters
    options = {n: v for n, v in given.items() if n in known and n not in NO_OPTIONS}
    for name in ("nonlinearity", "loss"):
        if name in options:
            options[name] = named_model(name, options[name])
    if arguments.sample_dims:
        options["sample_dims"] = arguments.sample_dims
    X = read_matrix(
        arguments.data,
        **{name: given[name] for name in ("variable", "row", "column", "value")},
    )
    verb = decompose if arguments.decompose else complete
    fit = verb(X, arguments.rank, progress=not arguments.quiet, **options)
    print(fit)
    if arguments.out:
        fit.save(arguments.out)
        print(f"saved as {arguments.out}")
    return OK


def _run_study(arguments: argparse.Namespace) -> int:
    from .studies.configuration import read_configuration

    study, options = read_configuration(arguments.config)
    given = {"n_jobs": arguments.jobs, "time_limit": arguments.time_limit}
    options |= {name: value for name, value in given.items() if value is not None}
    options |= {"retry": True} if arguments.retry else {}
    results = study.run(arguments.out, progress=not arguments.quiet, **options)
    _print_study(results)
    print(f"saved as {arguments.out}")
    return INCOMPLETE if results.status.isin(["failed", "timed out"]).any() else OK


def _run_show(arguments: argparse.Namespace) -> int:
    dataset = netcdf.read(arguments.file)
    if "study" in json.loads(dataset.attrs[netcdf.ATTRIBUTE]):
        _print_study(dataset)
        return OK
    fit = Decomposition.from_dataset(dataset)
    print(fit)
    for name, value in fit.parameters.items():
        print(f"  {name}: {value}")
    return OK


def _print_study(results: Any) -> None:
    """Print the table of a study, and what came to grief."""
    from .studies.summary import table

    print(f"<nmd_lab.Study>  {', '.join(f'{dim}: {n}' for dim, n in results.sizes.items())}")
    print(table(results, conditions={}).joined().to_string())
    status, reasons = results["status"].values, results["stop_reason"].values
    fits = results["fit"].values
    for word in ("left out", "timed out", "failed"):
        where = status == word
        bad = dict(zip(fits[where], reasons[where], strict=True))
        if bad:
            first = next(iter(bad.values()))
            print(f"{len(bad)} fits {word}, for example: {first}")


if __name__ == "__main__":
    sys.exit(main())

"""The options of ``nmd-lab fit``, ``sample`` and ``impute``: types, defaults and help."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from ._derived_options import options_of
from .data.frames import description, refused_columns
from .data.labels import is_frame
from .fit import complete, decompose
from .sampling import sample
from .solver.options import COMPLETION_DEFAULTS, FitOptions, Options
from .solver.settings import ADMM, Compute

WORDS = {"auto": "auto", "true": True, "false": False}
"""Words of the command line for values of Python."""

TABLES = Group("Reading the data", sort_key=2)
MODEL = Group("Model", sort_key=3)
SOLVER = Group("Solver", sort_key=4)
SAMPLER = Group("Sampler", sort_key=4)


@Parameter(name="*", group=TABLES)
@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """How the file is read.

    Attributes
    ----------
    variable
        Name of the array in an .npz or .nc file with several.
    row
        Column of a long table that holds the row labels.
    column
        Column of a long table that holds the column labels.
    value
        Column of a long table that holds the values.
    header
        Whether the first line of a table holds labels; found out if not given.
    index
        Whether the first column of a table holds labels; found out if not given.
    sample_dims
        Dimensions of an .nc array that make the rows.
    """

    variable: str | None = None
    row: str | None = None
    column: str | None = None
    value: str | None = None
    header: Annotated[bool | None, Parameter(negative="--no-header")] = None
    index: Annotated[bool | None, Parameter(negative="--no-index")] = None
    sample_dims: Annotated[tuple[str, ...] | None, Parameter(consume_multiple=True)] = None

    def of_reader(self) -> dict[str, Any]:
        """Return the arguments of `nmd_lab.data.readers.read_file`."""
        flags = {name: getattr(self, name) for name in ("header", "index")}
        names = {name: getattr(self, name) for name in ("variable", "row", "column", "value")}
        return names | {name: "auto" if flag is None else flag for name, flag in flags.items()}


TYPES: dict[str, Any] = {
    "dtype": Literal["float32", "float64"],
    "random_state": Annotated[int | None, Parameter(name=["--seed", "--random-state"])],
}
"""Types of options of which an annotation says too much for a command line."""

TEXTS = {
    "nonlinearity": "relu, square, minmax, modulus, identity or another name; with bounds: "
    '"minmax(1, 5)".',
    "loss": "frobenius, l1, kl or another name.",
    "dtype": "Working precision; by default that of the data.",
}
"""Help where the first sentence of the documentation is meant for Python."""

TEXTS_OF_COPIES = TEXTS | {"tune": "Number of first sweeps, which are left out; by default 100."}
"""The same where the draws that are kept are no option."""

TEXTS_OF_A_FIT = TEXTS | {
    "nonlinearity": TEXTS["nonlinearity"]
    + "  By default auto, with a number for --alpha identity, with --decompose relu.",
    "alpha": "Ridge: the objective has the term alpha/2 (‖W‖² + ‖H‖²).  auto: chosen by held-out "
    "entries.  By default auto, with --decompose 0.",
    "offsets": "Offsets added to WH: a mean, one for each row, each column, or both.  By default "
    "auto, with --decompose none.",
    "validation": "Share of the observed entries to hold out for early stopping.",
}
"""The same for a fit, and defaults that are not those of both functions."""

OF_THE_MODEL = {
    "nonlinearity", "loss", "alpha", "offsets", "offset_alpha", "w_constraint", "h_constraint",
    "noise", "dtype",
}  # fmt: skip
OF_THE_FILE = {
    "X", "rank", "observed", "weights", "at_most", "at_least", "upper", "limit_noise",
    "sample_dims", "work_dir", "progress", "solver", "compute",
}  # fmt: skip
"""Arguments that a command takes from its file, or has options of its own for."""

fits = partial(options_of, complete, decompose, hints=[FitOptions], types=TYPES)
samples = partial(options_of, sample, types=TYPES, texts=TEXTS)


@fits(names=OF_THE_MODEL, leave_out=(), group=MODEL, texts=TEXTS_OF_A_FIT)
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What is fitted."""


@options_of(ADMM, Compute, leave_out=OF_THE_FILE, group=SOLVER, types=TYPES, texts=TEXTS)
@fits(leave_out=OF_THE_FILE | OF_THE_MODEL, group=SOLVER, texts=TEXTS_OF_A_FIT)
@dataclass(frozen=True, kw_only=True)
class SolverOptions:
    """How it is fitted.

    Attributes
    ----------
    paper
        The paper's algorithm and nothing else.
    """

    paper: Annotated[bool, Parameter(show_default=False)] = False


@samples(names=OF_THE_MODEL, leave_out=(), group=MODEL)
@dataclass(frozen=True, kw_only=True)
class SampledModelOptions:
    """What is sampled."""


computes = partial(options_of, Compute, group=SAMPLER, types=TYPES, texts=TEXTS)


@computes(leave_out=OF_THE_FILE | {"device", "memory_limit"})
@samples(leave_out=OF_THE_FILE | OF_THE_MODEL, group=SAMPLER)
@dataclass(frozen=True, kw_only=True)
class SamplerOptions:
    """How it is sampled."""


@computes(leave_out=OF_THE_FILE | {"device", "memory_limit"})
@samples(leave_out=OF_THE_FILE | OF_THE_MODEL | {"draws"}, group=SAMPLER, texts=TEXTS_OF_COPIES)
@dataclass(frozen=True, kw_only=True)
class ImputerOptions:
    """How it is sampled, where --draws are copies of the table."""


FEWEST_DRAWS: int = signature(sample).parameters["draws"].default
"""Draws of the sampler behind the copies of a table."""


def in_shell(text: str) -> str:
    """Return an error message with the bounds of MinMax and `complete` as the shell has them."""
    text = text.replace(" or MatrixCompletion", "")
    text = text.replace("use complete()", "leave out --decompose")
    return re.sub(r"nonlinearity=nmd\.MinMax(\([^)]*\))", r'--nonlinearity "minmax\1"', text)


def check_columns(X: Any) -> None:
    """Raise ValueError if columns of a table hold no numbers, with the words that mend it."""
    refused = refused_columns(X) if is_frame(X) else {}
    if not refused:
        return
    names = ", ".join(repr(name) for names in refused.values() for name in names)
    remedies = [f"leave {names} out of the file"]
    if "limits" in refused:
        remedies.append("or give limits to nmd_lab.complete in Python, which says how")
    raise ValueError(f"the table has {description(X, refused)}: {', '.join(remedies)}.")


def is_to_be_chosen(rank: int | str, options: dict[str, Any], decompose: bool) -> bool:
    """Return whether a fit with these options chooses something by held-out entries."""
    defaults = {"alpha": Options.alpha} if decompose else COMPLETION_DEFAULTS
    names = ("alpha", "nonlinearity", "loss")
    return "auto" in (rank, *((defaults | options).get(name) for name in names))


def arguments_of(*groups: Any) -> dict[str, Any]:
    """Return the arguments that differ from their defaults, with values of Python."""
    changed: dict[str, Any] = {}
    for group in filter(None, groups):
        values = {f.name: getattr(group, f.name) for f in fields(group)}
        changed |= {f.name: values[f.name] for f in fields(group) if values[f.name] != f.default}
    for name in {"homotopy", "polish"} & changed.keys():
        changed[name] = WORDS[changed[name]]
    if compute := _taken(changed, Compute):
        changed["compute"] = Compute(**compute)
    solver, paper = _taken(changed, ADMM), changed.pop("paper", False)
    if solver and paper:
        other = next(iter(solver)).replace("_", "-")
        raise ValueError(f"--paper does not go with --{other}: leave out one of the two.")
    if solver or paper:
        changed["solver"] = "paper" if paper else ADMM(**solver)
    return changed


def _taken(options: dict[str, Any], settings: type[ADMM | Compute]) -> dict[str, Any]:
    """Take from the options those of a group of settings."""
    return {f.name: options.pop(f.name) for f in fields(settings) if f.name in options}


def checkpoint_of(options: dict[str, Any]) -> Path | None:
    """Return the checkpoint that the options name."""
    return options["compute"].checkpoint if "compute" in options else None

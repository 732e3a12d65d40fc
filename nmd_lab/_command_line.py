"""The options of ``nmd-lab fit`` and ``nmd-lab sample``, with their types, defaults and help."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from .data.labels import is_frame
from .data.refused_columns import description, refused_columns
from .solver.options import COMPLETION_DEFAULTS, Options
from .solver.sampler.options import SampleOptions
from .solver.settings import ADMM, Compute

WORDS = {"auto": "auto", "true": True, "false": False}
"""Words of the command line for values of Python."""

TABLES = Group("Reading the data", sort_key=2)
MODEL = Group("Model", sort_key=3)
SOLVER = Group("Solver", sort_key=4)
SAMPLER = Group("Sampler", sort_key=4)

Switch = Literal["auto", "true", "false"]
Seed = Annotated[int | None, Parameter(name=["--seed", "--random-state"])]
FactorConstraintName = Literal["nonnegative", "orthonormal", "simplex", "sparse"]


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
        given = {name: getattr(self, name) for name in ("variable", "row", "column", "value")}
        return given | {name: "auto" if flag is None else flag for name, flag in flags.items()}


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What is fitted.

    Attributes
    ----------
    nonlinearity
        relu, square, minmax, modulus, identity or auto; with bounds: "minmax(1, 5)".  By default
        auto, with a number for --alpha identity, with --decompose relu.
    loss
        frobenius, l1, kl or auto.
    alpha
        Ridge: the objective has the term alpha/2 (‖W‖² + ‖H‖²).  auto: chosen by held-out entries.
        By default auto, with --decompose 0.
    offsets
        Offsets added to WH: a mean, one for each row, each column, or both.  auto: chosen with
        --alpha auto, else none.  By default auto, with --decompose none.
    offset_alpha
        Ridge of the offsets of rows and columns.  auto: chosen with --alpha auto, else that of
        --alpha.
    w_constraint
        Rows of W: nonnegative, simplex (nonnegative, with sum 1), orthonormal (columns of W) or
        sparse (an l1 penalty).
    h_constraint
        The same for the columns of H.
    dtype
        Working precision; by default that of the data.
    """

    nonlinearity: str | None = None
    loss: str = "frobenius"
    alpha: Literal["auto"] | float | None = None
    offsets: Literal["auto", "none", "global", "rows", "columns", "both"] | None = None
    offset_alpha: Literal["auto"] | float = "auto"
    w_constraint: FactorConstraintName | None = None
    h_constraint: FactorConstraintName | None = None
    dtype: Literal["float32", "float64"] | None = None


@Parameter(name="*", group=SOLVER)
@dataclass(frozen=True, kw_only=True)
class SolverOptions:
    """How it is fitted.

    Attributes
    ----------
    max_iter
        Largest number of iterations of a start.
    tol
        Tolerance of the stopping rules; 0: exactly --max-iter iterations.
    time_limit
        Time limit in seconds.
    random_state
        Seed.
    threads
        Largest number of threads.
    device
        Device of PyTorch for the passes over the data, such as cuda.
    checkpoint
        File that keeps the state of the fit; if it exists, the fit goes on from it.
    checkpoint_every
        Seconds between two checkpoints.
    memory_limit
        Largest memory that the arrays of a fit may take beside the data, in GiB.
    init
        Starting factors.
    n_init
        Number of starts; the best fit is kept.
    validation
        Share of the observed entries to hold out for early stopping.
    patience
        Iterations without a lower validation error after which a start ends.
    paper
        The paper's algorithm and nothing else.
    rho
        Rule for the penalty ρ, or a fixed ρ.
    initial_rho
        ρ of the first iteration.
    split
        Entries on which T = WH is imposed.
    refine
        Quasi-Newton steps between the iterations, as by default.
    homotopy
        For minmax: begin with a wide interval that shrinks.
    polish
        Descent on the objective itself at the end.
    epsilon
        Relative ridge that keeps the factor steps solvable.
    """

    max_iter: int = Options.max_iter
    tol: float = Options.tol
    time_limit: float | None = None
    random_state: Seed = None
    threads: int | None = None
    device: str | None = None
    checkpoint: Path | None = None
    checkpoint_every: float = Compute.checkpoint_every
    memory_limit: float | None = None
    init: Literal["auto", "svd", "randomized", "nndsvd", "random"] = "auto"
    n_init: int = Options.n_init
    validation: float | None = None
    patience: int = ADMM.patience
    paper: Annotated[bool, Parameter(show_default=False)] = False
    rho: Literal["auto", "balanced", "paper"] | float = "auto"
    initial_rho: float | None = None
    split: Literal["auto", "everywhere", "observed"] = "auto"
    refine: Annotated[bool, Parameter(negative="--no-refine", show_default=False)] = True
    homotopy: Switch = "auto"
    polish: Switch = "auto"
    epsilon: float = ADMM.epsilon


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class SampledModelOptions:
    """What is sampled.

    Attributes
    ----------
    nonlinearity
        relu, square, minmax, modulus or identity; with bounds: "minmax(1, 5)".
    loss
        frobenius, l1, kl, or ordinal for ordered levels.
    noise
        Where the noise of the Frobenius loss is; auto: before f if values are at its limits.
    offsets
        Offsets added to WH: a mean, one for each row, each column, or both; auto: both, and none
        for an even nonlinearity.
    dtype
        Working precision; by default that of the data.
    """

    nonlinearity: str = "identity"
    loss: str = "frobenius"
    noise: Literal["auto", "before", "after"] = "auto"
    offsets: Literal["auto", "none", "global", "rows", "columns", "both"] = "auto"
    dtype: Literal["float32", "float64"] | None = None


@Parameter(name="*", group=SAMPLER)
@dataclass(frozen=True, kw_only=True)
class SamplerOptions:
    """How it is sampled.

    Attributes
    ----------
    draws
        Sweeps after tuning, of each chain.
    tune
        Sweeps before them, which are not kept; by default 100.
    chains
        Number of chains.
    keep
        Draws to keep of each chain; by default all, or as many as take 1 GiB.
    time_limit
        Time limit in seconds, of all chains together.
    random_state
        Seed.
    threads
        Largest number of threads.
    checkpoint
        File that keeps chains and draws; if it exists, the chains go on from it.
    checkpoint_every
        Seconds between two checkpoints.
    init
        Where a chain begins.
    """

    draws: int = SampleOptions.draws
    tune: int | None = None
    chains: int = SampleOptions.chains
    keep: int | None = None
    time_limit: float | None = None
    random_state: Seed = None
    threads: int | None = None
    checkpoint: Path | None = None
    checkpoint_every: float = Compute.checkpoint_every
    init: Literal["auto", "random", "svd"] = "auto"


def in_shell(text: str) -> str:
    """Return an error message with the bounds of MinMax and `complete` as the shell has them."""
    text = text.replace("use complete()", "leave out --decompose")
    return re.sub(r"nonlinearity=nmd\.MinMax(\([^)]*\))", r'--nonlinearity "minmax\1"', text)


def with_categories(X: Any, names: Sequence[str]) -> Any:
    """Return a table with some of its columns as categories."""
    if names and not is_frame(X):
        raise ValueError(f"categories={names[0]!r} is meant for tables: leave it out.")
    by_text = {str(name): name for name in X.columns} if names else {}
    for name in names:
        if name not in by_text:
            raise ValueError(f"categories={name!r} is no column of the table: it has {[*by_text]}.")
    return X.astype({by_text[name]: "category" for name in names}) if names else X


def check_columns(X: Any, command: Literal["fit", "sample"]) -> None:
    """Raise ValueError if columns of a table hold no numbers, with the words that mend it."""
    refused = refused_columns(X) if is_frame(X) else {}
    if not refused:
        return
    classes = [*refused.get("text", []), *refused.get("booleans", [])]
    others = [name for names in refused.values() for name in names if name not in classes]
    remedies = []
    if classes:
        words = shlex.join(["--categories", *map(str, classes)])
        remedies.append(f"give {words}" if command == "fit" else f"use nmd-lab fit with {words}")
    if others:
        remedies.append(f"leave {', '.join(map(repr, others))} out of the file")
    if "limits" in refused:
        remedies.append("or give limits to nmd_lab.complete in Python, which says how")
    raise ValueError(f"the table has {description(X, refused)}: {', '.join(remedies)}.")


def is_to_be_chosen(rank: int | str, options: dict[str, Any], decompose: bool) -> bool:
    """Return whether a fit with these options chooses something by held-out entries."""
    defaults = {"alpha": Options.alpha} if decompose else COMPLETION_DEFAULTS
    names = ("alpha", "nonlinearity", "loss")
    return "auto" in (rank, *((defaults | options).get(name) for name in names))


def given(
    options: ModelOptions | SolverOptions | SampledModelOptions | SamplerOptions,
) -> dict[str, Any]:
    """Return the arguments that differ from their defaults, with values of Python."""
    values = {f.name: getattr(options, f.name) for f in fields(options)}
    changed = {f.name: values[f.name] for f in fields(options) if values[f.name] != f.default}
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

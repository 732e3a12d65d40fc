"""What goes with what: one table of data, models and features, which each call asks once.

A call names what it has, such as "zeros" and "offsets".  Any two of these go together unless
`INCOMPATIBLE` has them, with the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nmd_lab._runtime.checks import is_auto
from nmd_lab.data.inputs import Form
from nmd_lab.model.losses import as_loss
from nmd_lab.model.model import make_model
from nmd_lab.model.nonlinearities import as_nonlinearity
from nmd_lab.problem.columns import is_mixed
from nmd_lab.request.constraints import Orthonormal
from nmd_lab.request.options import FACTOR_CONSTRAINTS, Asked, Options

DATA = {
    "dense": "an array in memory",
    "missing": "a sparse X whose absent entries are missing",
    "zeros": "a sparse X whose absent entries are zeros",
    "file": "data that are read from a file by blocks",
    "cluster": "data that are on the workers of a cluster",
    "sample": "sample()",
}
"""Forms of data for a fit, and the sampler, as sentences and the table name them."""

MACHINE = ("device", "work_dir", "memory_limit")
"""Settings of `Compute`, other than `client`, that not all data go with."""

VALUES = "give values, for example those that complete() chooses for some of the rows"
IN_MEMORY = "give X as an array in memory"
BREAKS = "leave out one of the two, since its quasi-Newton steps would break the constraint"

INCOMPATIBLE = {
    (one, other): remedy
    for (some, others), remedy in {
        ("dense, missing, zeros", "work_dir"): "leave it out, or give a memmap, a zarr array, a "
        "dataset of HDF5 or an unloaded DataArray",
        ("zeros", "choice"): "give a value or a dense X, or use complete() or MatrixCompletion",
        ("zeros", "kinds, validation, learned, weights"): "use complete(), or a dense X",
        ("zeros", "offsets"): "use complete(), or offsets='none'",
        ("zeros", "split"): "use complete(), or split='everywhere'",
        ("file", "rank, choice"): VALUES,
        ("file", "kinds"): "give one loss and one nonlinearity, or X as an array in memory",
        ("file", "learned"): "give its parameters or knots, or X as an array in memory",
        ("file", "device"): "leave one of them out",
        ("file", "validation"): "leave entries out of X, or " + IN_MEMORY,
        ("file", "limits"): IN_MEMORY,
        ("cluster", "rank, choice"): VALUES,
        ("cluster", "kinds"): "give one loss, one nonlinearity and numbers",
        ("cluster", "learned"): "give its parameters or knots",
        ("cluster", "limits"): IN_MEMORY,
        ("missing", "device"): "leave it out, or give an array",
        ("cluster", "device, work_dir, memory_limit"): "leave one of them out",
        ("sample", "client"): "give X, or some of its rows, as an array in memory",
        ("sample", "device, work_dir, memory_limit"): "leave it out",
        ("kinds", "homotopy"): "leave it out",
        ("no interval", "homotopy"): "use MinMax, or homotopy='auto'",
        ("constraint", "homotopy, polish"): BREAKS,
        ("orthonormal W", "orthonormal H"): "give one of the two, since all singular values of WH "
        "would be 1",
        ("kinds, limits, split", "device"): "leave device out, and give an array in the place of a "
        "tensor",
    }.items()
    for one in some.split(", ")
    for other in others.split(", ")
}
"""What does not go together, with the remedy."""


def refuse(present: Mapping[str, str]) -> None:
    """Raise ValueError if two things that a call has do not go together.

    `present` has the words of the table, with the text that names each in this call.
    """
    for (data, feature), remedy in INCOMPATIBLE.items():
        if data in present and feature in present:
            raise ValueError(f"{present[feature]} does not go with {present[data]}: {remedy}.")


def features_of_data(
    form: Form, asked: Asked, *, zeros: bool = False, on_cluster: bool = False, scratch: Any = None
) -> dict[str, str]:
    """Return form of X, model and machine of fits and posteriors, by word, in the text of the call.

    X is read from its file by blocks if there is a `scratch`.
    """
    words = {
        "zeros": form.is_sparse and zeros,
        "missing": form.is_sparse and not zeros and scratch is None,
        "cluster": on_cluster,
        "file": scratch is not None,
    }
    present = {word: DATA[word] for word, there in words.items() if there}
    present = present or {"dense": DATA["dense"]}
    nonlinearity, loss, limits = asked.nonlinearity, asked.loss, asked.given_limits
    on_machine = {name: getattr(asked.compute, name) for name in MACHINE}
    present |= {name: f"{name}={each!r}" for name, each in on_machine.items() if each is not None}
    if asked.compute.client is not None:
        present["client"] = "client="
    if is_mixed(nonlinearity) or is_mixed(loss):
        present["kinds"] = "a loss or nonlinearity for each column"
    elif form.table is not None:
        present["kinds"] = "X with binary, ordinal, categorical or date columns"
    elif not is_auto(loss) and as_loss(loss).learns:
        present["learned"] = f"loss={loss!r}, which learns a parameter,"
    elif not is_auto(nonlinearity) and as_nonlinearity(nonlinearity).learns:
        present["learned"] = f"nonlinearity={nonlinearity!r}, which is learned,"
    if asked.weights is not None or form.is_weighted:
        present["weights"] = "weights="
    if limits:
        present["limits"] = f"{limits.named}="
    elif form.is_limited:
        present["limits"] = "X with limits"
    return present


def features_of_fit(rank: int | None, options: Options) -> dict[str, str]:
    """Return what a fit has, by word, in the text of the call; `rank` is None if it is chosen."""
    present = {"rank": "rank='auto'"} if rank is None else {}
    f, loss = options.nonlinearity, options.loss
    choosable = {"nonlinearity": f, "loss": loss, "alpha": options.alpha}
    if free := [name for name, value in choosable.items() if value is None or is_auto(value)]:
        present["choice"] = f"{free[0]}='auto'"
    if options.validation.splitter is not None:
        present["validation"] = "validation="
    if options.offsets not in ("none", "auto"):
        present["offsets"] = f"offsets={options.offsets!r}"
    if options.solver.split == "observed":
        present["split"] = "split='observed'"
    for word in ("homotopy", "polish"):
        if getattr(options.solver, word) is True:
            present[word] = f"{word}=True"
    likely = "identity" if is_mixed(f) or is_auto(f) else f
    model = make_model(likely, "frobenius" if is_mixed(loss) or is_auto(loss) else loss)
    if model.with_wider_bounds(1.0) is None:
        may = "may have" if is_auto(f) else "has"
        present["no interval"] = f"nonlinearity={f!r}, which {may} no interval to widen"
    for name, constraint in zip(FACTOR_CONSTRAINTS, options.factor_constraints, strict=True):
        text = f"{name}={getattr(options, name)!r}"
        if constraint is not None:
            present.setdefault("constraint", text)
        if isinstance(constraint, Orthonormal):
            present[f"orthonormal {name[0].upper()}"] = text
    return present

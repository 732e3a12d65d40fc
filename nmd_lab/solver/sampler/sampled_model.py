"""The model of a posterior: nonlinearities and losses of all entries, or of each column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from scipy.special import ndtri

from nmd_lab._runtime.checks import is_auto
from nmd_lab.data.labels import Labels
from nmd_lab.data.observations import Observations
from nmd_lab.data.units import ends_of_columns, is_small_table
from nmd_lab.model.kind import Kind, make_kind
from nmd_lab.model.losses import Loss
from nmd_lab.model.model import Model, make_model
from nmd_lab.model.monotone import Monotone
from nmd_lab.model.ordinal import Ordinal
from nmd_lab.solver.bounds import with_bounds
from nmd_lab.solver.columns import NUMBER, is_mixed, mixed_model

from .noise_levels import NoiseBy
from .options import SampleOptions

SHARE = 0.5
"""Share of the quantiles in the learned f of a column.  With 0 a skewed column is predicted badly;
with 1 columns that are linear in one another are not so any more."""

ENTRIES_OF_A_COLUMN = 20
"""Observed entries for each column of a small table from which it has units and a noise of its own:
with 65 % of eight real tables hidden, one noise has errors up to fifteen times as large."""


def sampled_model(
    observations: Observations,
    nonlinearity: Any,
    loss: Any,
    options: SampleOptions,
    noise_by: NoiseBy,
    *,
    is_table: bool,
) -> Model:
    """Return the model of checked arguments; see `nmd_lab.sample`."""
    if noise_by != "columns":
        return _of_all("identity" if is_auto(nonlinearity) else nonlinearity, loss, observations)
    functions = nonlinearity
    if is_auto(nonlinearity) or isinstance(nonlinearity, Mapping):
        learns = is_table and options.noise == "auto"
        functions = _learned(loss, observations) if learns else {}
        functions |= {} if is_auto(nonlinearity) else dict(nonlinearity)
    model = _of_columns(mixed_model(functions, loss, observations))
    _refuse_classes_as_numbers(model, observations.labels)
    return model


def settled_noise_by(
    observations: Observations, nonlinearity: Any, loss: Any, wanted: Any, *, is_table: bool
) -> NoiseBy:
    """Return whose noise levels there are; "columns" have units of their own, too."""
    if is_mixed(nonlinearity) or is_mixed(loss) or observations.labels.table is not None:
        if wanted not in ("auto", "columns"):
            raise ValueError(
                f"noise_by={wanted!r} does not go with columns of several kinds: leave it out."
            )
        return "columns"
    if not is_auto(wanted):
        return cast(NoiseBy, wanted)
    if not (is_table and is_auto(nonlinearity) and loss == NUMBER):
        return "one"
    m, n = observations.shape
    enough = is_small_table(observations) and observations.n_observed >= ENTRIES_OF_A_COLUMN * n
    return "columns" if enough or 2 * observations.n_observed >= m * n else "one"


def _learned(loss: Any, observations: Observations) -> dict[Any, Monotone]:
    """Return a learned f of each column of numbers without ends, limits or a loss of its own."""
    labels, n = observations.labels, observations.shape[1]
    names, learns = list(labels.flat(labels.columns)), np.ones(n, dtype=bool)
    if labels.table is not None:
        names = [column.name for column in labels.table.of_matrix]
        learns = np.array([column.kind == "number" for column in labels.table.of_matrix])
    if isinstance(loss, Mapping):
        learns &= [name not in loss for name in names]
    elif not (is_auto(loss) or loss == NUMBER):
        learns[:] = False
    learns &= ~np.isfinite(ends_of_columns(observations)).any(axis=1)
    if observations.limits is not None:
        sparse = observations.as_sparse()
        learns[sparse.indices[sparse.limits.codes != 0]] = False
    return {name: Monotone(share=SHARE) for name, each in zip(names, learns, strict=True) if each}


def _of_all(nonlinearity: Any, loss: Any, observations: Observations) -> Model:
    """Return the model of one nonlinearity and one loss."""
    f = with_bounds(nonlinearity, observations)
    model = make_model(f, loss)
    d = model.loss
    _refuse_nonlinearity(model.only)
    d.check_data(*observations.range())
    if d.classes == "ordered":
        levels = observations.different_values()
        return make_model(f, d.for_data(levels))
    if type(d).for_data is not Loss.for_data:
        return make_model(f, d.for_data(*observations.observed()))
    return model


def _of_columns(model: Model) -> Model:
    """Return the model of several kinds with yes and no as two ordered levels."""
    assert model.which is not None
    if model.which.ndim == 2:
        raise ValueError("loss= for each entry does not go with sample(): give one a column.")
    kinds = []
    for kind in (
        model.kinds[k] for k in model.which
    ):  # columns of one kind have noise of their own
        loss = kind.loss
        if loss.classes == "two":
            share = float(loss.expected(np.array(kind.centre)) - loss.parameters[0])
            share /= 1 - loss.parameters[0]
            loss = Ordinal([loss.parameters[0], 1.0], [-float(ndtri(share))], learns=True)
        if loss.classes == "ordered":  # T has the unit of its noise
            kind = make_kind(kind.nonlinearity, loss)._replace(weight=kind.weight)
            _refuse_nonlinearity(kind)
        kinds.append(kind)
    return Model(tuple(kinds), np.arange(len(kinds)))


def _refuse_classes_as_numbers(model: Model, labels: Labels) -> None:
    """Raise ValueError for a column of booleans, levels or categories with a loss of numbers."""
    if labels.table is None:
        return
    for column, kind in zip(labels.table.of_matrix, model.kinds, strict=True):
        if column.kind in ("boolean", "ordered", "categories") and kind.loss.classes != "ordered":
            raise ValueError(
                f"loss={kind.loss.name!r} of column {column.name!r} is for numbers, and its values "
                "are classes: leave it out, or convert the column to numbers."
            )


def _refuse_nonlinearity(kind: Kind) -> None:
    """Raise ValueError for a nonlinearity of ordered levels."""
    if kind.loss.classes == "ordered" and kind.nonlinearity.form != "identity":
        raise ValueError(
            f"nonlinearity={kind.nonlinearity!r} does not go with ordered levels in sample(): "
            "leave it out, since cut points are learned."
        )

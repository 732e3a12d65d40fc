"""What is asked of a DataFrame before it is sampled, and the ends of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nmd_lab.data.matching import plain_label
from nmd_lab.data.observations import Observations
from nmd_lab.data.typed_table import refuse_repeats
from nmd_lab.data.units import ends_of_columns
from nmd_lab.model.kind import make_kind
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import MinMax

from .noise import CLIPPED, NoiseKind


def refuse_table(observations: Observations) -> None:
    """Raise ValueError for a name that comes twice, one row, or a column without a value.

    If most cells are missing, some columns may be, too, as in a table of ratings.
    """
    refuse_repeats(observations.labels.coords.indexes[observations.labels.columns[0]])
    if observations.shape[0] == 1:
        raise ValueError("X has one row, and relations of columns need several: add some.")
    labels, table = observations.labels, observations.labels.table
    empty = observations.empty_rows_and_columns()[1]
    counts = np.bincount(observations.entries().columns, minlength=observations.shape[1])
    if table is not None:
        counts = counts[table.first_columns]  # those of the columns of the frame
    if empty.size and 2 * counts.sum() >= counts.size * observations.shape[0]:
        name = plain_label(labels.flat(labels.columns)[empty[0]])
        name = name if table is None else table.of_matrix[empty[0]].name
        raise ValueError(f"X has no observed value in column {name!r}: drop the column.")


def with_ends(
    model: Model, noises: tuple[NoiseKind, ...], observations: Observations, nonlinearity: Any
) -> tuple[Model, tuple[str, ...]]:
    """Return kinds and noises with predictions within the ends at which many values lie.

    At 90 such columns of 27 real tables, with a fifth of the cells hidden, this lowers the
    continuous ranked probability score by 5 % and the error by 2 %, and leaves other columns alone.
    To draw T beyond the end, as of a limit, would lower them by 11 and 3 %, but raise the score of
    the others, by 18 % in ames: a zero may be just a zero (no pool), and hide no number.
    """
    ends = ends_of_columns(observations)
    names = observations.labels.flat(observations.labels.columns).tolist()
    named = nonlinearity if isinstance(nonlinearity, Mapping) else ()
    kinds, shown = list(model.kinds), list[str](noises)
    for j, (low, high) in enumerate(ends):
        if noises[j] == "gaussian" and np.isfinite([low, high]).any() and names[j] not in named:
            units = {name: getattr(kinds[j], name) for name in ("centre", "size", "weight")}
            kinds[j] = make_kind(MinMax(low, high), kinds[j].loss)._replace(**units)
            shown[j] = CLIPPED
    return Model(tuple(kinds), model.which), tuple(shown)

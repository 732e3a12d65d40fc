"""A posterior as a file for other programs: the data with their holes filled, and intervals."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._atomic import write_atomically
from nmd_lab.data.base import Observations
from nmd_lab.data.labels import Labels
from nmd_lab.result.entries import entries_at
from nmd_lab.result.exports import LARGEST_TABLE, WRITERS, as_text, check_export, table_of

from .posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd


class Filled(NamedTuple):
    """Data with their holes filled, as matrices (m, n).

    Attributes
    ----------
    filled : ndarray
        Observed entries as they are, and the posterior mean at missing ones.
    lower, upper : ndarray
        Ends of the intervals of new observations at missing entries; the observed value elsewhere.
    """

    filled: NDArray[np.floating]
    lower: NDArray[np.floating]
    upper: NDArray[np.floating]


def check_posterior_export(path: str | os.PathLike[str], shape: tuple[int, ...]) -> Path:
    """Return the absolute path of a file for a posterior, if it can be written."""
    ending = Path(path).suffix.lower()
    if ending not in WRITERS:
        raise ValueError(
            f"out={str(path)!r} has an unknown ending: give .nc (the posterior), or .npz, .csv or "
            ".parquet (the data with their holes filled, and intervals)."
        )
    size = 3 * int(np.prod(shape, dtype=np.int64))
    if ending != ".nc" and size > LARGEST_TABLE:
        raise ValueError(f"out={str(path)!r} would hold {size} numbers: give .nc, which has W, H.")
    return check_export(path, "out")


def fill(posterior: Posterior, observations: Observations, level: float = 0.9) -> Filled:
    """Return the data with their holes filled by the posterior mean, with intervals."""
    filled = np.full(observations.shape, np.nan)
    i, j, x = observations.entries()
    filled[i, j] = x
    lower, upper = filled.copy(), filled.copy()
    rows, columns = np.nonzero(np.isnan(filled))
    if rows.size:
        holes = entries_at(rows, columns)
        ends = posterior.predict_interval(holes, level=level)
        filled[rows, columns] = posterior.predict(holes)
        lower[rows, columns], upper[rows, columns] = ends.T
    return Filled(filled, lower, upper)


def export_posterior(
    posterior: Posterior,
    observations: Observations,
    path: str | os.PathLike[str],
    level: float = 0.9,
) -> None:
    """Write a posterior in the format that the ending says; an older file is kept if this fails."""
    target = check_posterior_export(path, observations.shape)
    if target.suffix.lower() == ".nc":
        posterior.save(target)
        return
    content = io.BytesIO()
    filled = fill(posterior, observations, level)
    if target.suffix.lower() == ".npz":
        arrays: dict[str, Any] = filled._asdict()
        np.savez_compressed(content, **arrays)
    elif target.suffix.lower() == ".csv":
        _side_by_side(filled, posterior.labels).to_csv(content)
    else:
        _side_by_side(filled, posterior.labels).to_parquet(content)
    write_atomically(target, [content.getvalue()])


def _side_by_side(filled: Filled, labels: Labels) -> pd.DataFrame:
    """Return one table in which each column is followed by the ends of its intervals."""
    tables = [table_of(labels.label(matrix), labels.rows) for matrix in filled]
    first = tables[0]
    names = [
        f"{as_text(label)}{suffix}"
        for label in first.columns
        for suffix in ("", " lower", " upper")
    ]
    values = np.stack([table.to_numpy() for table in tables], axis=2).reshape(len(first), -1)
    return type(first)(values, index=first.index, columns=names)

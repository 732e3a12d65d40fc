"""The known entries of X, matrices that hold some of them, and their corruption by a study.

Noise and the entries that are hidden depend on the seed and on their kind only.  So every method,
rank and loss sees the same missing entries and the same noise, and comparisons are paired.  Entries
that are hidden at a small level stay hidden at a larger one, and a growing study keeps its draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import hash as hash_of
from numpy.typing import NDArray
from scipy.stats import rankdata

from nmd_lab import _version, datasets
from nmd_lab.data.entries import FloatArray, ObservedEntries
from nmd_lab.data.folds import first_of_cells
from nmd_lab.data.inputs import NO_LIMITS, GivenLimits, dense_values, observe
from nmd_lab.data.labels import Picture, is_frame, picture_of
from nmd_lab.data.matching import like
from nmd_lab.data.sparse import SparseObservations, is_sparse
from nmd_lab.data.units import Units, column_units, facts_of, units_of_columns

BoolArray = NDArray[np.bool_]


@dataclass(eq=False)
class KnownEntries:
    """The known entries of X.

    Attributes
    ----------
    X : ndarray, DataFrame, DataArray, scipy.sparse matrix or SparseObservations
        Data in the form that the fits get.
    observations : SparseObservations
        The entries row by row, with weights, limits, and the dimensions and coordinates of X.
    shape : (int, int) or None
        Height and width of the picture that each row is, if the user gave them.
    arguments : dict
        Arguments of a fit that belong to the data: `weights`, `sample_dims` and so on.
    table : TypedTable or None
        Typed columns of X, None if all are numbers.
    classes : list of TypedColumn
        Columns of booleans, levels and categories.
    """

    X: Any
    observations: SparseObservations
    shape: tuple[int, int] | None
    arguments: dict[str, Any]

    def __post_init__(self) -> None:
        """Look up the columns."""
        self.table = table = self.observations.labels.table
        self.classes = [] if table is None else [each for each in table.columns if each.is_class]

    @cached_property
    def entries(self) -> ObservedEntries:
        """Rows, columns and values of the entries."""
        return self.observations.entries()

    @cached_property
    def picture(self) -> Picture | None:
        """How a row of X makes a picture, by the given shape or by labels, if it makes one."""
        labels = self.observations.labels
        row = labels.label(np.broadcast_to(0.0, labels.matrix_shape))
        return picture_of(row.isel(dict.fromkeys(labels.rows, 0)), self.shape)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all that decides the results, the version of the library too."""
        kind = type(self.X).__name__, self.shape, self.arguments.get("sample_dims")
        columns = self.observations.shape[1] if self.table is None else self.table.describe()
        return str(hash_of((_version.__version__, kind, columns, self.observations.fingerprint())))

    @cached_property
    def numbers(self) -> BoolArray:
        """Mask of the known entries that are numbers, and no limits, classes or levels."""
        if self.table is None:
            return self.observations.exact
        is_class: BoolArray = np.array([column.is_class for column in self.table.of_matrix])
        return self.observations.exact & ~is_class[self.entries.columns]

    @cached_property
    def units(self) -> Units:
        """Mean and standard deviation of the column of each entry; 0 and 1 if all have one unit."""
        facts = facts_of(observe(self.X), by_column=True) if is_frame(self.X) else None
        if self.table is None and not (facts and units_of_columns(facts)):
            return Units(0.0, 1.0)
        known = self.observations.select(self.observations.exact)
        return column_units(known).at(self.entries.columns)

    def matrix(self, values: FloatArray, mask: BoolArray, *, encoded: bool = False) -> Any:
        """Return X with new values of the known entries, and only those where the mask is True.

        Encoded, a DataFrame has the columns of the matrix.
        """
        entries = self.observations.with_values(values).select(mask)
        return like(self.X, entries, entries.values if encoded else None)


def read_known_entries(
    X: Any, shape: tuple[int, int] | None = None, limits: GivenLimits = NO_LIMITS, **data: Any
) -> KnownEntries:
    """Return the known entries of X; the arguments are those of `Study`, `data` for `observe`."""
    if is_sparse(X) and data.get("sample_dims") is not None:
        raise TypeError("sample_dims does not go with a sparse X: leave it out.")
    observations = observe(X, limits=limits, **data)
    found = {name: v for name, v in (data | vars(limits)).items() if v is not None}
    found.pop("observed", None)
    if is_sparse(X) and found:
        X, found = observations, {}  # which have all
    elif (labels := observations.labels).table is not None and not is_sparse(X):
        found = {name: dense_values(name, v, X, labels) for name, v in found.items()}
    entries = KnownEntries(like(X, observations), observations.as_sparse(), shape, found)
    if shape is not None:
        _ = entries.picture  # a wrong shape is refused here
    return entries


class Corruption(NamedTuple):
    """One way to hide entries, or one kind of noise, at one level; for example ("random", 0.2)."""

    kind: str
    level: float

    def generator(self, seed: int) -> np.random.Generator:
        """Return a random number generator, which is the same for all levels."""
        digest = hashlib.sha256(self.kind.encode()).digest()[:8]
        return np.random.default_rng([seed, int.from_bytes(digest, "little")])


NOTHING_HIDDEN, NO_NOISE = Corruption("random", 0.0), Corruption("gaussian", 0.0)


def hidden_entries(data: KnownEntries, missing: Corruption, seed: int) -> BoolArray:
    """Return a mask of the known entries that is True where they are hidden."""
    if missing.level == 0:
        return np.zeros(data.entries.values.size, dtype=bool)
    hidden = HIDE[missing.kind](data, missing.level, missing.generator(seed))
    rows, columns, _ = data.entries
    return hidden[first_of_cells(rows, columns, data.table)] & data.observations.exact


def noisy_values(data: KnownEntries, noise: Corruption, seed: int) -> FloatArray:
    """Return the known values with noise, in the precision of X."""
    values = data.entries.values
    if noise.level == 0:
        return values
    noisy = NOISE[noise.kind](values.astype(float), noise.level, noise.generator(seed))
    # A limit stays what it is.
    return np.where(data.observations.exact, noisy.astype(values.dtype), values)


def refuse_for_classes(corruptions: Iterable[Corruption]) -> None:
    """Raise ValueError for what adds to values or orders them, which classes do not allow."""
    for kind, level in corruptions:
        if level and (kind in NOISE or kind == "by_value"):
            argument = "noise" if kind in NOISE else "missing"
            raise ValueError(
                f"{argument}={{{kind!r}: {level:g}}} is for numbers, and X has columns of "
                "booleans or categories: leave it out, or these columns."
            )


def _by_value(data: KnownEntries, share: float, rng: np.random.Generator) -> BoolArray:
    """Hide entries with probabilities in proportion to the rank of their value."""
    values = data.entries.values
    weights = rankdata(values) / values.size
    return _single(data, share, rng.exponential(size=values.size) / weights)


def _lines(data: KnownEntries, axis: int, share: float, rng: np.random.Generator) -> BoolArray:
    """Hide whole rows (axis 0) or columns of X (axis 1)."""
    size, table = data.observations.shape[axis], data.table
    lines = np.arange(size) if axis == 0 or table is None else np.unique(table.first_of_cell)
    hidden = np.zeros(size, dtype=bool)
    hidden[lines] = _lowest(rng.random(size)[lines], share)
    return hidden[data.entries[axis]]


def _blocks(data: KnownEntries, share: float, rng: np.random.Generator) -> BoolArray:
    """Hide square patches of each picture; without a picture, X itself is one."""
    (rows, columns, _), shape, picture = data.entries, data.observations.shape, data.picture
    if picture is None:
        return _patches(shape, share, rng)[rows, columns]
    masks = [_patches(picture.shape, share, rng).ravel() for _ in range(shape[0])]
    return np.stack(masks)[rows, picture.positions[columns]]


def _single(data: KnownEntries, share: float, draws: FloatArray) -> BoolArray:
    """Hide the entries with the lowest draws, the last ones of each row and column at the end."""
    rows, columns, _ = data.entries
    draws = draws[first_of_cells(rows, columns, data.table)]
    largest = [pd.Series(draws).groupby(i).transform("max") for i in (rows, columns)]
    spared = (draws == largest[0]) | (draws == largest[1])
    return _lowest(np.where(spared, draws + draws.max() + 1, draws), share)


def _lowest(draws: FloatArray, share: float) -> BoolArray:
    """Return a mask of the lowest draws, whose number is the given fraction of all."""
    hidden = np.zeros(draws.size, dtype=bool)
    count = min(round(share * draws.size), draws.size - 1)
    hidden[np.argpartition(draws, count)[:count]] = True
    return hidden


def _patches(shape: tuple[int, int], share: float, rng: np.random.Generator) -> BoolArray:
    """Return a mask with square patches at random places, until the fraction is reached."""
    side = max(1, min(shape) // 4)  # a quarter of the shorter side of a picture
    hidden = np.zeros(shape, dtype=bool)
    # One seed for each picture, so that others do not depend on its number of patches
    places = np.random.default_rng(rng.integers(2**63))
    while hidden.sum() < share * hidden.size:
        top, left = places.integers(0, [length - side + 1 for length in shape])
        hidden[top : top + side, left : left + side] = True
    return hidden


def _salt_and_pepper(values: FloatArray, share: float, rng: np.random.Generator) -> FloatArray:
    """Set a fraction of the entries to the smallest or largest value of the data."""
    low, high = float(values.min()), float(values.max())
    return datasets.salt_and_pepper(values, share, low=low, high=high, random_state=rng)


def _outliers(values: FloatArray, share: float, rng: np.random.Generator) -> FloatArray:
    """Add Gaussian errors to a fraction of the entries."""
    draws, errors = rng.random(values.size), rng.standard_normal(values.size)
    # Five standard deviations of X are far outside ordinary errors.
    return values + np.where(draws < share, 5.0 * values.std() * errors, 0.0)


# Ways to hide entries; the level is the fraction of the known entries, rows, columns or pixels
HIDE: dict[str, Callable[[KnownEntries, float, np.random.Generator], BoolArray]] = {
    "random": lambda data, share, rng: _single(data, share, rng.random(data.entries.values.size)),
    "rows": lambda data, share, rng: _lines(data, 0, share, rng),
    "columns": lambda data, share, rng: _lines(data, 1, share, rng),
    "blocks": _blocks,
    "by_value": _by_value,
}

# Kinds of noise.  The level of "gaussian" is a standard deviation in the units of X, that of
# "salt_and_pepper" and "outliers" a fraction of the entries.  That of "poisson" is the number of
# counts for one unit of X, so a higher level means less noise.
NOISE: dict[str, Callable[..., FloatArray]] = {
    "gaussian": lambda values, level, rng: datasets.gaussian(values, level, random_state=rng),
    "salt_and_pepper": _salt_and_pepper,
    "poisson": lambda values, level, rng: datasets.poisson(values, level, random_state=rng),
    "outliers": _outliers,
}

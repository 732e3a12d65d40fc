"""`Choice`: what a person decides about the choice by held-out entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Literal

import numpy as np

from nmd_lab._runtime.checks import (
    check_integer,
    check_number,
    check_share,
    check_word,
    refuse_class,
)
from nmd_lab.data.inputs import is_mask

METRICS = ("deviance", "rmse", "mae", "log_score")
BLOCKS = "blocks"
SPLITTERS = ", a fraction, a splitter of scikit-learn, held-out entries, a mask, or a list of masks"


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """How rank, ridge and what else is "auto" are chosen: among what, on which entries, by what.

    Parameters
    ----------
    ranks : sequence of int, optional
        Ranks that may be chosen, if the rank is "auto"; by default those of a list up to 100, and
        some between them.
    alphas : sequence of float, optional
        Ridges that may be chosen, in the units of X, if `alpha` is "auto"; by default any.
    splitter : optional
        Which entries are held out.  By default some of those observed, at random, or as blocks if
        the missing entries of X are blocks.  These judge the choice, and the last fit has all
        entries:

        - "blocks": moved copies of the missing regions of X, also where they are not taken for
          blocks;
        - a splitter of scikit-learn, such as ``KFold(5)``, ``GroupKFold(5)`` or
          ``TimeSeriesSplit(5)``, which splits the rows: see the notes;
        - a list of masks, arrays of bool in the shape of X with True where an entry is held out.

        These are left out of the last fit, too, which they stop early:

        - a fraction of the observed entries, a float between 0 and 1;
        - a mask;
        - held-out entries in the shape of X, NaN or absent elsewhere.
    groups : str or array_like (m,), optional
        Groups of the rows for a splitter that keeps them together, such as ``GroupKFold``: labels,
        or the name of a column or of an index level of a DataFrame, or of a coordinate.
    metric : {"deviance", "rmse", "mae", "log_score"}, default "deviance"
        What is to be lowest at held-out entries.  "deviance": the mean loss; "rmse", "mae": the
        root mean squared, or mean absolute, difference to the expected value, in the units of X (of
        each column, in a table of several kinds); "log_score": minus the mean log-likelihood, if
        the loss has one.

    Raises
    ------
    ValueError, TypeError
        If a value makes no sense.

    See Also
    --------
    complete, decompose, MatrixCompletion : Take it as ``validation=``.
    Decomposition.selection : What was tried, what was chosen, and what was as good.

    Notes
    -----
    A row of which nothing is known has no factor, so that whole rows cannot be held out.  In the
    test rows of a split, a fifth of the columns is held out, the same ones in all these rows, and
    others in the next split.  The other cells of the test rows stay, since they describe
    each row.  The training rows alone have values of a held-out column: those of other
    groups, or of earlier times.  Rows in neither set, such as those after the test rows of
    ``TimeSeriesSplit``, are left out.  Each split is a fit for each setting.  If fewer than 2000
    entries are held out, the splits are repeated with other columns, in at most ten fits.

    A splitter without a `random_state` gets one from that of the fit.  Early stopping is by the
    root mean squared error, whatever the metric.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> choice = nmd.Choice(ranks=[1, 2, 4], metric="mae")
    >>> choice
    Choice(ranks=(1, 2, 4), metric='mae')
    >>> fit = nmd.complete(wine, validation=choice, random_state=0)
    >>> sorted(set(fit.selection["rank"].values.tolist()))
    [1, 2, 4]
    """

    ranks: Sequence[int] | None = None
    alphas: Sequence[float] | None = None
    splitter: Any = None
    groups: Any = None
    metric: Literal["deviance", "rmse", "mae", "log_score"] = "deviance"

    def __post_init__(self) -> None:
        """Check the values; candidates become ascending tuples."""
        if self.ranks is not None:
            object.__setattr__(self, "ranks", _candidates("ranks", self.ranks, check_integer, 1))
        if self.alphas is not None:
            object.__setattr__(self, "alphas", _candidates("alphas", self.alphas, check_number, 0))
        check_word("metric", self.metric, METRICS)
        _check_splitter("splitter", self.splitter)
        if self.groups is not None and not self.splits_rows:
            raise ValueError(
                f"groups= does not go with splitter={_short(self.splitter)}: give a splitter of "
                "scikit-learn that keeps groups of rows together, such as GroupKFold(5)."
            )

    @property
    def splits_rows(self) -> bool:
        """Whether the splitter is one of scikit-learn."""
        return hasattr(self.splitter, "split") and hasattr(self.splitter, "get_n_splits")

    @property
    def has_masks(self) -> bool:
        """Whether the splitter is a list of masks."""
        return isinstance(self.splitter, list | tuple) and _are_matrices(self.splitter)

    @property
    def stops_early(self) -> bool:
        """Whether held-out entries are left out of the last fit, too."""
        is_blocks = isinstance(self.splitter, str)
        return not (self.splitter is None or is_blocks or self.splits_rows or self.has_masks)

    @property
    def is_share(self) -> bool:
        """Whether a fraction of the observed entries is held out."""
        return isinstance(self.splitter, Real)

    @property
    def only_chooses(self) -> bool:
        """Whether something of it has no meaning where nothing is chosen; early stopping has."""
        values = (self.ranks, self.alphas, self.groups, None if self.stops_early else self.splitter)
        return self.metric != "deviance" or any(each is not None for each in values)

    def refuse_unsuitable(
        self, rank: int | None, alpha: float | None, shape: tuple[int, int], *, is_open: bool
    ) -> None:
        """Raise ValueError if it does not suit X and what is given; None is to be chosen."""
        for name, candidates, value in (("rank", self.ranks, rank), ("alpha", self.alphas, alpha)):
            if candidates is not None and value is not None:
                raise ValueError(
                    f"{name}s={list(candidates)} of nmd.Choice are for {name}='auto', and "
                    f"{name}={value!r} is given: leave one of them out."
                )
        largest = max(self.ranks or (1,))
        if largest > min(shape):
            raise ValueError(
                f"ranks={list(self.ranks or ())} has {largest}, which exceeds the smaller side of "
                f"X, {min(shape)}: give smaller ranks."
            )
        if self.only_chooses and not is_open:
            raise ValueError(
                f"validation={self!r} has nothing to choose, since rank, alpha, nonlinearity and "
                "loss are given: make one of them 'auto', or leave it out."
            )

    def describe(self) -> Any:
        """Return None, a number or a text, for `Decomposition.parameters`."""
        if self.only_chooses:
            return repr(self)
        if self.is_share:
            return self.splitter
        return None if self.splitter is None else _short(self.splitter)

    def __repr__(self) -> str:
        names = [f.name for f in fields(self) if _differs(getattr(self, f.name), f.default)]
        return f"Choice({', '.join(f'{name}={_short(getattr(self, name))}' for name in names)})"


def as_choice(validation: Any) -> Choice:
    """Return the choice that an argument `validation` stands for."""
    refuse_class("validation", validation)
    if isinstance(validation, Choice):
        return validation
    _check_splitter("validation", validation)
    return Choice(splitter=validation)


def _candidates(
    name: str, values: Any, check: Callable[..., Any], smallest: int
) -> tuple[Any, ...]:
    """Return candidates as an ascending tuple."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name}={values!r} is no sequence: give a list of numbers.")
    numbers = sorted({check(name, each, smallest) for each in values})
    if not numbers:
        raise ValueError(f"{name}={values!r} is empty: give at least one number, or leave it out.")
    return tuple(numbers)


def _check_splitter(name: str, splitter: Any) -> None:
    """Raise an error if a value is no splitter, as far as that is known without X."""
    refuse_class(name, splitter)
    if isinstance(splitter, str):
        check_word(name, splitter, [BLOCKS], SPLITTERS)
    elif isinstance(splitter, Real | np.bool_):
        check_share(name, splitter, zero=False)
    elif isinstance(splitter, list | tuple) and _are_matrices(splitter):
        for position, mask in enumerate(splitter):
            if not is_mask(mask):
                raise TypeError(
                    f"{name} has a matrix that is no mask at position {position}: give a list of "
                    "arrays of bool, True where an entry is held out, or one matrix alone."
                )


def _are_matrices(values: Sequence[Any]) -> bool:
    """Return whether a sequence has matrices, and not the rows of one."""
    return len(values) > 0 and all(getattr(each, "ndim", 0) >= 2 for each in values)


def _differs(one: Any, other: Any) -> bool:
    """Return whether two values are others; arrays are only compared by identity."""
    return one is not other and not (isinstance(one, str) and one == other)


def _short(value: Any) -> str:
    """Return a value as text, without the numbers of an array."""
    if hasattr(value, "__array__") or hasattr(value, "tocsr"):
        return f"given {type(value).__name__}"
    if isinstance(value, list | tuple) and len(value) and not isinstance(value[0], Real):
        return f"{len(value)} given" if hasattr(value[0], "ndim") else "given list"
    return repr(value)

"""Steps of the parts that look at observations, or make others from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmd_lab.data.base import Observations, Transform
from nmd_lab.data.fingerprint import fingerprint
from nmd_lab.data.split import flat_positions, split

from .part import Part, set_up


def summarize(part: Part, name: str) -> tuple[Any, ...]:
    """Return what the client has to know of a part."""
    own: Observations = part.rows[name]
    weights = own.weight_reader()
    kind = (
        *(own.dtype, own.n_stored, own.n_observed),
        *(own.pattern is not None, own.absent_are_zeros),
        None if weights is None else weights.dtype,
    )
    ends = own.range() if own.n_observed else (np.inf, -np.inf)
    return kind, ends, own.counts(0)


def sum_of_blocks(part: Part, name: str, function: Callable[..., Any]) -> tuple[Any]:
    """Return the sum over the blocks of a part."""
    own: Observations = part.rows[name]
    return (own.sum_of_blocks(function),)


def row_sums(part: Part, name: str, transform: Transform) -> tuple[Any]:
    """Return the sum of transform(X) over the stored entries of each row."""
    return (part.rows[name].row_sums(transform),)


def different_values(part: Part, name: str) -> tuple[Any]:
    """Return the different observed values of a part."""
    own: Observations = part.rows[name]
    return (own.different_values() if own.n_observed else np.zeros(0, own.dtype),)


def row_counts(part: Part, name: str) -> tuple[Any]:
    """Return the number of observed entries of each row."""
    return (part.rows[name].counts(1),)


def empty_rows(part: Part, name: str) -> tuple[Any]:
    """Return the positions in X of the rows without an observed entry."""
    return (np.flatnonzero(part.rows[name].counts(1) == 0) + part.place.rows.start,)


def hash_of(part: Part, name: str) -> tuple[str]:
    """Return the hash of a part."""
    return (fingerprint(part.rows[name]),)


@set_up
def map_values(part: Part, name: str, made: str, transform: Transform) -> tuple[()]:
    """Make observations of transform(X)."""
    part.rows[made] = part.rows[name].mapped(transform)
    return ()


@set_up
def make_sparse(part: Part, name: str, made: str) -> tuple[()]:
    """Make sparse observations."""
    part.rows[made] = part.rows[name].as_sparse()
    return ()


@set_up
def hold_out_share(
    part: Part, name: str, rest: str, held: str, share: float, seed: int
) -> tuple[()]:
    """Make observations without a share of them, and that share."""
    own: Observations = part.rows[name]
    if own.n_observed:
        one, other = split(own, share, np.random.default_rng(seed))
    else:
        one = other = own
    part.rows[rest], part.rows[held] = one, other.as_sparse()
    return ()


@set_up
def hold_out_given(part: Part, name: str, rest: str, held: str, given: Observations) -> tuple[()]:
    """Make observations without those at the positions of given ones."""
    own = part.rows[name]
    theirs, mine = (flat_positions(each) for each in (given, own))
    keep = ~np.isin(mine, theirs, assume_unique=True)
    part.rows[rest] = own if keep.all() else own.select(keep)
    part.rows[held] = given.as_sparse()
    return ()

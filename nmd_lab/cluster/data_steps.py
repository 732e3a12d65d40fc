"""Steps of the partitions that look at observations, or make others from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmd_lab.data.observations import Observations, Transform, fingerprint
from nmd_lab.data.split import flat_positions, split

from .partition import Partition, set_up


def summarize(partition: Partition, name: str) -> tuple[Any, ...]:
    """Return what the client has to know of a partition."""
    observations: Observations = partition.rows[name]
    weights = observations.weight_reader()
    kind = (
        *(observations.dtype, observations.n_stored, observations.n_observed),
        *(observations.pattern is not None, observations.absent_are_zeros),
        None if weights is None else weights.dtype,
    )
    ends = observations.range() if observations.n_observed else (np.inf, -np.inf)
    return kind, ends, observations.counts(0)


def sum_of_blocks(partition: Partition, name: str, function: Callable[..., Any]) -> tuple[Any]:
    """Return the sum over the blocks of a partition."""
    observations: Observations = partition.rows[name]
    return (observations.sum_of_blocks(function),)


def row_sums(partition: Partition, name: str, transform: Transform) -> tuple[Any]:
    """Return the sum of transform(X) over the stored entries of each row."""
    return (partition.rows[name].row_sums(transform),)


def different_values(partition: Partition, name: str) -> tuple[Any]:
    """Return the different observed values of a partition."""
    observations: Observations = partition.rows[name]
    return (
        observations.different_values()
        if observations.n_observed
        else np.zeros(0, observations.dtype),
    )


def row_counts(partition: Partition, name: str) -> tuple[Any]:
    """Return the number of observed entries of each row."""
    return (partition.rows[name].counts(1),)


def empty_rows(partition: Partition, name: str) -> tuple[Any]:
    """Return the positions in X of the rows without an observed entry."""
    return (np.flatnonzero(partition.rows[name].counts(1) == 0) + partition.place.rows.start,)


def hash_of(partition: Partition, name: str) -> tuple[str]:
    """Return the hash of a partition."""
    return (fingerprint(partition.rows[name]),)


@set_up
def map_values(partition: Partition, name: str, result: str, transform: Transform) -> tuple[()]:
    """Make observations of transform(X)."""
    partition.rows[result] = partition.rows[name].mapped(transform)
    return ()


@set_up
def make_sparse(partition: Partition, name: str, result: str) -> tuple[()]:
    """Make sparse observations."""
    partition.rows[result] = partition.rows[name].as_sparse()
    return ()


@set_up
def hold_out_share(
    partition: Partition, name: str, rest: str, held: str, share: float, seed: int
) -> tuple[()]:
    """Make observations without a share of them, and that share."""
    observations: Observations = partition.rows[name]
    if observations.n_observed:
        one, other = split(observations, share, np.random.default_rng(seed))
    else:
        one = other = observations
    partition.rows[rest], partition.rows[held] = one, other.as_sparse()
    return ()


@set_up
def hold_out_given(
    partition: Partition, name: str, rest: str, held: str, chosen: Observations
) -> tuple[()]:
    """Make observations without those at the positions of given ones."""
    observations = partition.rows[name]
    theirs, mine = (flat_positions(each) for each in (chosen, observations))
    keep = ~np.isin(mine, theirs, assume_unique=True)
    partition.rows[rest] = observations if keep.all() else observations.select(keep)
    partition.rows[held] = chosen.as_sparse()
    return ()

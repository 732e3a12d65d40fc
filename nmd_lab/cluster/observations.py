"""Observations whose rows lie on the workers of a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.labels import Labels
from nmd_lab.data.observations import FloatArray, Observations, Transform, has_offsets
from nmd_lab.data.split import rows_of
from nmd_lab.solver.constraints.steps import ConstrainedColumns

from .cluster import Cluster
from .partition import (
    DATA,
    different_values,
    empty_rows,
    hash_of,
    hold_out_given,
    hold_out_share,
    make_sparse,
    map_values,
    row_counts,
    row_sums,
    sum_of_blocks,
    summarize,
)
from .passes import optimality_on_cluster
from .rows import ClusterRows, Named, as_result, stacked
from .starts import ClusterMatrix, PartitionFiles, allow_rows, centred_sums, make_residual
from .sweeps import HeldOutOnCluster, sweep_on_cluster


@dataclass(frozen=True)
class Summary:
    """What the client knows of a matrix on the workers.

    Attributes
    ----------
    dtype : dtype
        Type of the values.
    n_stored, n_observed : int
        Numbers of stored and of observed entries.
    sparse : bool
        Whether entries that are not stored are missing.
    absent_are_zeros : bool
        Whether entries that are not stored are zeros.
    weights : dtype or None
        Type of the weights, bool for a mask; None if every weight is one.
    ends : (float, float)
        Smallest and largest observed value.
    column_counts : ndarray of int (n,)
        Number of observed entries of each column.
    """

    dtype: np.dtype[Any]
    n_stored: int
    n_observed: int
    sparse: bool
    absent_are_zeros: bool
    weights: np.dtype[Any] | None
    ends: tuple[float, float]
    column_counts: NDArray[np.integer]


def summary_of(answers: list[Any], labels: Labels) -> Summary:
    """Return the summary of all partitions."""
    kinds, ends = [kind for kind, _, _ in answers], [each for _, each, _ in answers]
    stored, observed = np.sum([kind[1:3] for kind in kinds], axis=0).tolist()
    weights = [kind[5] for kind in kinds if kind[5] is not None]
    return Summary(
        np.dtype(kinds[0][0]),
        stored,
        observed,
        kinds[0][3],
        kinds[0][4],
        max(weights, key=lambda dtype: dtype.itemsize) if weights else None,
        (min(low for low, _ in ends), max(high for _, high in ends)),
        sum((counts for _, _, counts in answers), np.zeros(labels.matrix_shape[1], np.intp)),
    )


NO_PATTERN = (np.empty(0, np.intp), np.empty(0, np.intp))
"""What stands for the pattern of sparse data, which the client does not have."""


class WeightsElsewhere:
    """What stands for weights that the client does not have: their type."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype


@dataclass(frozen=True)
class ClusterObservations(Observations):
    """A partly observed matrix whose rows lie on workers.

    Attributes
    ----------
    cluster : Cluster
        The workers.
    labels : Labels
        Dimensions and coordinates for results.
    summary : Summary
        What the client knows of the entries.
    named : Named or None
        Matrix of the partitions; None for X itself.
    """

    cluster: Cluster
    labels: Labels
    summary: Summary
    named: Named | None = None

    limits = None

    @classmethod
    def of(
        cls, cluster: Cluster, labels: Labels, named: Named | None = None
    ) -> ClusterObservations:
        """Return the observations that the partitions hold, after a look at all of them."""
        name = DATA if named is None else named.name
        return cls(cluster, labels, summary_of(cluster.map(summarize, name), labels), named)

    @property
    def name(self) -> str:
        """Name of the matrix on the workers."""
        return DATA if self.named is None else self.named.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.summary.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.labels.matrix_shape

    @property
    def n_observed(self) -> int:
        """Number of observed entries."""
        return self.summary.n_observed

    @property
    def n_stored(self) -> int:
        """Number of entries that a solver stores."""
        return self.summary.n_stored

    @property
    def pattern(self) -> Any:
        """None if all entries are stored; otherwise an empty pattern, as the partitions have it."""
        return NO_PATTERN if self.summary.sparse else None

    @property
    def absent_are_zeros(self) -> bool:
        """Whether entries without a stored value are observed and equal to 0."""
        return self.summary.absent_are_zeros

    @property
    def weights(self) -> Any:  # type: ignore[override]
        """None if every weight is one; otherwise an object that has their type."""
        return None if self.summary.weights is None else WeightsElsewhere(self.summary.weights)

    def weight_reader(self) -> Any:
        """Return what `weights` is."""
        return self.weights

    def sum_of_blocks(self, function: Callable[[FloatArray, FloatArray], Any]) -> Any:
        """Return the sum of a function of the values and weights of a block."""
        return self.cluster.sum(sum_of_blocks, self.name, function)[0]

    def row_sums(self, transform: Transform) -> FloatArray:
        """Return the sum of transform(X) over the stored entries of each row."""
        return np.concatenate(
            [each for (each,) in self.cluster.map(row_sums, self.name, transform)]
        )

    def different_values(self) -> FloatArray:
        """Return the different observed values, sorted."""
        values = [each for (each,) in self.cluster.map(different_values, self.name)]
        return np.unique(np.concatenate(values))

    def centred(
        self, transform: Transform, mean: float, rows: FloatArray | None, columns: FloatArray | None
    ) -> Any:
        """Return transform(X) minus offsets as a `ClusterMatrix`, and 0."""
        fill = 0.0
        incomplete = self.n_observed < self.shape[0] * self.shape[1]
        if incomplete and not has_offsets(mean, rows, columns):
            mean = fill = self.sum_of(lambda x, _: transform(x)) / self.n_observed
        named = Named(self.cluster, "residual")
        self.cluster.map(
            *(make_residual, self.name, named.name, transform, mean, columns, fill),
            of_each=self._rows_of_each(rows),
            changes=True,
        )
        return ClusterMatrix(named, self.shape, self.dtype), 0.0

    def centred_sums(
        self,
        transform: Transform,
        mean: float,
        rows: FloatArray | None,
        columns: FloatArray | None,
        *,
        axis: int,
    ) -> FloatArray:
        """Return the sums of `centred` over all rows (axis 0) or over all columns (axis 1)."""
        step = (centred_sums, self.name, transform, mean, columns, axis)
        answers = self.cluster.map(*step, of_each=self._rows_of_each(rows))
        sums = [each for (each,) in answers]
        return np.concatenate(sums) if axis else np.sum(sums, axis=0)

    @property
    def elsewhere(self) -> Self:  # type: ignore[override]
        """These observations, which know what is done on the workers."""
        return self

    def sweep(self, problem: Any, rank: int, now: Any = None) -> Any:
        """Return the sweep of a problem, with T and U at their start, or as they were read."""
        return sweep_on_cluster(problem, self.cluster, self.name, rank, now)

    def held_out_score(self, model: Any) -> HeldOutOnCluster:
        """Return what compares a model with these entries, which are held out."""
        return HeldOutOnCluster(self.cluster, self.name, model)

    def optimality(
        self, problem: Any, W: ClusterRows, H: FloatArray, penalties: Sequence[float]
    ) -> float:
        """Return the distance of factors from the first-order conditions."""
        return optimality_on_cluster(problem, self.cluster, self.name, W, H, penalties)

    def stacked(self, pieces: Sequence[Any], dtype: Any) -> ClusterRows:
        """Return a W of pieces beside each other."""
        return stacked(self.cluster, pieces, dtype)

    def allow(self, W: ClusterRows, solved: slice, W_constraint: ConstrainedColumns | None) -> None:
        """Put the nearest allowed rows in the place of those of a start."""
        self.cluster.map(allow_rows, self.name, W.name, solved, W_constraint, changes=True)

    def result(self, W: ClusterRows) -> Any:
        """Return W for a result, as an array or an array of Dask."""
        return as_result(W)

    def computing(self) -> AbstractContextManager[Any]:
        """Return a context in which arrays of Dask are computed on the workers."""
        import dask

        context: AbstractContextManager[Any] = dask.config.set(scheduler=self.cluster.client.get)
        return context

    def checkpoint_files(self, path: Path) -> PartitionFiles:
        """Return the files of the partitions beside a checkpoint."""
        return PartitionFiles(self.cluster, path)

    def _rows_of_each(self, rows: FloatArray | None) -> dict[int, tuple[Any, ...]]:
        """Return the offsets of the rows of each partition."""
        if rows is None:
            return {}
        return {place.number: (rows[place.rows],) for place in self.cluster.places}

    def range(self) -> tuple[float, float]:
        """Return the smallest and the largest observed value."""
        return self.summary.ends

    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return the number of observed entries of each column (axis 0) or row (axis 1)."""
        if axis == 0:
            return self.summary.column_counts
        return np.concatenate([each for (each,) in self.cluster.map(row_counts, self.name)])

    def empty_rows_and_columns(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the positions of the rows and of the columns without an observed entry."""
        rows = np.concatenate([each for (each,) in self.cluster.map(empty_rows, self.name)])
        return rows, np.flatnonzero(self.summary.column_counts == 0)

    def mapped(self, transform: Transform) -> ClusterObservations:
        """Return observations of transform(X), with the same pattern, weights and labels."""
        return self._changed(map_values, transform)

    def as_sparse(self) -> ClusterObservations:
        """Return the observed entries as sparse data."""
        return self if self.summary.sparse else self._changed(make_sparse)

    def split(
        self, share: float, rng: np.random.Generator
    ) -> tuple[ClusterObservations, ClusterObservations]:
        """Return the observations without a share of each partition, and that share.

        Each row, and each column in each partition, keeps an entry.
        """
        seeds = rng.integers(2**63, size=len(self.cluster))
        of_each = {place.number: (int(seeds[place.number]),) for place in self.cluster.places}
        return self._divided(hold_out_share, share, of_each=of_each)

    def without(self, held_out: Observations) -> tuple[ClusterObservations, ClusterObservations]:
        """Return the observations at other positions than those of a matrix, and that matrix."""
        of_each = {place.number: (rows_of(held_out, place.rows),) for place in self.cluster.places}
        return self._divided(hold_out_given, of_each=of_each)

    def _divided(
        self, function: Callable[..., Any], *arguments: Any, of_each: dict[int, tuple[Any, ...]]
    ) -> tuple[ClusterObservations, ClusterObservations]:
        """Return the two observations that a step makes from these."""
        rest, held = (Named(self.cluster, kind, in_rows=True) for kind in ("rest", "held-out"))
        names = (self.name, rest.name, held.name)
        self.cluster.map(function, *names, *arguments, of_each=of_each, changes=True)
        one, other = (ClusterObservations.of(self.cluster, self.labels, n) for n in (rest, held))
        return one, other

    def content(self) -> Iterator[tuple[str, Iterable[NDArray[Any]]]]:
        """Yield a heading with the hashes of all partitions."""
        hashes = [each for (each,) in self.cluster.map(hash_of, self.name)]
        yield hashlib.sha256("".join(hashes).encode()).hexdigest(), []

    def zero_unobserved(self, W: Any, H: FloatArray) -> tuple[Any, FloatArray]:
        """Return two factors with 0 for columns without an observed entry.

        A row of W that begins at 0 stays 0 where nothing is observed.
        """
        H = H.copy()
        H[:, self.summary.column_counts == 0] = 0
        return W, H

    def _changed(self, function: Callable[..., Any], *arguments: Any) -> ClusterObservations:
        """Return observations that a step makes from these."""
        named = Named(self.cluster, "data", in_rows=True)
        self.cluster.map(function, self.name, named.name, *arguments, changes=True)
        return ClusterObservations.of(self.cluster, self.labels, named)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ValueError(
            "this needs all entries of X in one place, and they lie on the workers of a cluster: "
            "give X as an array, or leave client= out."
        )

    reader = transformed = observed = observed_blocks = entries = _refuse
    select = csr_rows = to_array = with_values = with_stored = stored_positions = _refuse

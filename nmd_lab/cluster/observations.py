"""Observations whose rows lie on the workers of a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray, GivenOffsets, IntArray, Transform, has_offsets
from nmd_lab.data.labels import Labels
from nmd_lab.data.observations import Observations
from nmd_lab.data.split import rows_of, split, without
from nmd_lab.solver.holding_out import score_of
from nmd_lab.solver.lowrank import RowBlocks
from nmd_lab.solver.problem import sweep_of
from nmd_lab.solver.refinement.stages import OPTIMALITY_PENALTIES, optimality

from .checkpoints import PartitionFiles
from .cluster import Cluster
from .criteria import HeldOutOnCluster, optimality_on_cluster
from .partition import DATA, Partition, Summary, ask, divide, make, random_share, summarize
from .rows import ClusterMatrix, ClusterRows, Named, as_result, stacked
from .sweeps import sweep_on_cluster


def make_residual(
    partition: Partition,
    data: str,
    name: str,
    transform: Transform,
    fill: float,
    offsets: GivenOffsets,
) -> tuple[()]:
    """Make the rows of transform(X) minus offsets, as `Observations.centred`."""
    matrix, constant = partition.rows[data].centred(transform, offsets)
    partition.objects[name] = RowBlocks(matrix, constant + fill)
    return ()


def centred_sums(
    partition: Partition, data: str, transform: Transform, axis: int, offsets: GivenOffsets
) -> tuple[FloatArray]:
    """Return the sums of rows or columns of transform(X) minus offsets."""
    return (partition.rows[data].centred_sums(transform, offsets, axis),)


def allow_rows(
    partition: Partition, data: str, name: str, solved: slice, constraint: Any
) -> tuple[()]:
    """Put the nearest rows that are allowed in the place of those of a start."""
    W, observations = partition.objects[name].copy(), partition.rows[data]
    observations.allow(W, solved, constraint, observations.empty_rows_and_columns()[0])
    partition.objects[name] = W
    return ()


NO_PATTERN = (np.empty(0, np.intp), np.empty(0, np.intp))
"""What stands for the pattern of sparse data, which the client does not have."""


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
        Summary of the entries at the client.
    named : Named or None
        Matrix of the partitions; None for X itself.
    """

    cluster: Cluster
    labels: Labels
    summary: Summary
    named: Named | None = None

    limits = None
    remote: ClassVar[bool] = True

    @classmethod
    def of(
        cls, cluster: Cluster, labels: Labels, named: Named | None = None
    ) -> ClusterObservations:
        """Return the observations that the partitions hold, after a look at all of them."""
        name = DATA if named is None else named.name
        parts = [each for (each,) in cluster.map(summarize, name)]
        return cls(cluster, labels, Summary.of(parts), named)

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
        """None if every weight is one; otherwise an empty array of their type."""
        return None if self.summary.weights is None else np.empty(0, self.summary.weights)

    def weight_reader(self) -> Any:
        """Return what `weights` is."""
        return self.weights

    def sum_of_blocks(self, function: Callable[[FloatArray, FloatArray], Any]) -> Any:
        """Return the sum of a function of the values and weights of a block."""
        return self.cluster.sum(ask, self.name, "sum_of_blocks", function)[0]

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        """Return the answers of a method of the observations of all partitions."""
        return [each for (each,) in self.cluster.map(ask, self.name, method, *arguments)]

    def row_sums(self, transform: Transform) -> FloatArray:
        """Return the sum of transform(X) over the stored entries of each row."""
        return np.concatenate(self._ask("row_sums", transform))

    def centred(self, transform: Transform, offsets: GivenOffsets) -> Any:
        """Return transform(X) minus offsets as a `ClusterMatrix`, and 0."""
        fill = 0.0
        incomplete = self.n_observed < self.shape[0] * self.shape[1]
        if incomplete and not has_offsets(offsets):
            fill = self.sum_of(lambda x, _: transform(x)) / self.n_observed
            offsets = fill, None, None
        named = Named(self.cluster, "residual")
        step = (make_residual, self.name, named.name, transform, fill)
        self.cluster.map(*step, of_each=self._each_offsets(offsets), changes=True)
        return ClusterMatrix(named, self.shape, self.dtype), 0.0

    def centred_sums(self, transform: Transform, offsets: GivenOffsets, axis: int) -> FloatArray:
        """Return the sums of `centred` over all rows (axis 0) or over all columns (axis 1)."""
        step = (centred_sums, self.name, transform, axis)
        sums = [each for (each,) in self.cluster.map(*step, of_each=self._each_offsets(offsets))]
        return np.concatenate(sums) if axis else np.sum(sums, axis=0)

    def _each_offsets(self, offsets: GivenOffsets) -> dict[int, tuple[Any, ...]]:
        """Return the offsets for the rows of each partition."""
        mean, rows, columns = offsets
        return {
            place.number: ((mean, None if rows is None else rows[place.rows], columns),)
            for place in self.cluster.places
        }

    def stacked(self, pieces: Sequence[Any], dtype: Any) -> ClusterRows:  # type: ignore[override]
        """Return a W of pieces side by side."""
        return stacked(self.cluster, pieces, dtype)

    def allow(self, W: ClusterRows, solved: slice, constraint: Any, empty: IntArray) -> None:
        """Set columns of W to the nearest allowed ones; the partitions have their empty rows."""
        self.cluster.map(allow_rows, self.name, W.name, solved, constraint, changes=True)

    def gathered(self, W: ClusterRows) -> Any:
        """Return W for a result, as an array or an array of Dask."""
        return as_result(W)

    def computing(self) -> AbstractContextManager[Any]:
        """Return a context in which arrays of Dask are computed on the workers."""
        import dask

        context: AbstractContextManager[Any] = dask.config.set(scheduler=self.cluster.client.get)
        return context

    def checkpoint_files(self, path: Path) -> PartitionFiles:
        """Return the files of the partitions that belong to a checkpoint."""
        return PartitionFiles(self.cluster, path)

    def range(self) -> tuple[float, float]:
        """Return the smallest and the largest observed value."""
        return self.summary.smallest, self.summary.largest

    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return the number of observed entries of each column (axis 0) or row (axis 1)."""
        counts = [self.summary.column_counts] if axis == 0 else self._ask("counts", 1)
        return np.concatenate(counts)

    def empty_rows_and_columns(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the positions of the rows and of the columns without an observed entry."""
        places = zip(self.cluster.places, self._ask("empty_rows_and_columns"), strict=True)
        rows = np.concatenate([empty + place.rows.start for place, (empty, _) in places])
        return rows, np.flatnonzero(self.summary.column_counts == 0)

    def mapped(self, transform: Transform) -> ClusterObservations:
        """Return observations of transform(X), with the same pattern, weights and labels."""
        return self._mapped_by("mapped", transform)

    def as_sparse(self) -> ClusterObservations:
        """Return the observed entries as sparse data."""
        return self if self.summary.sparse else self._mapped_by("as_sparse")

    def divided(
        self, parts: Callable[..., Any], of_each: list[tuple[Any, ...]]
    ) -> tuple[ClusterObservations, ClusterObservations]:
        """Return the two observations that a function makes of the rows of each partition."""
        rest, held = (Named(self.cluster, kind, in_rows=True) for kind in ("rest", "held-out"))
        names = (self.name, rest.name, held.name)
        self.cluster.map(divide, *names, parts, of_each=dict(enumerate(of_each)), changes=True)
        one, other = (ClusterObservations.of(self.cluster, self.labels, n) for n in (rest, held))
        return one, other

    def content(self) -> Iterator[tuple[str, Iterable[NDArray[Any]]]]:
        """Yield a heading with the hashes of all partitions."""
        hashes = self._ask("fingerprint")
        yield hashlib.sha256("".join(hashes).encode()).hexdigest(), []

    def zero_unobserved(self, W: Any, H: FloatArray) -> tuple[Any, FloatArray]:
        """Return two factors with 0 for columns without an observed entry.

        A row of W that begins at 0 stays 0 where nothing is observed.
        """
        H = H.copy()
        H[:, self.summary.column_counts == 0] = 0
        return W, H

    def _mapped_by(self, method: str, *arguments: Any) -> ClusterObservations:
        """Return observations that a method makes from those of each partition."""
        named = Named(self.cluster, "data", in_rows=True)
        self.cluster.map(make, self.name, named.name, method, *arguments, changes=True)
        return ClusterObservations.of(self.cluster, self.labels, named)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ValueError(
            "this needs all entries of X in one place, and they lie on the workers of a cluster: "
            "give X as an array, or leave client= out."
        )

    reader = transformed = observed = observed_blocks = entries = _refuse
    select = csr_rows = to_array = with_values = stored_positions = _refuse


@split.register
def _(
    observations: ClusterObservations, test_size: Any, rng: np.random.Generator
) -> tuple[ClusterObservations, ClusterObservations]:
    """Hold out a fraction of each partition: each row, and each column in each, keeps an entry."""
    seeds = rng.integers(2**63, size=len(observations.cluster)).tolist()
    return observations.divided(random_share, [(test_size, seed) for seed in seeds])


@without.register
def _(
    observations: ClusterObservations, held_out: Observations
) -> tuple[ClusterObservations, ClusterObservations]:
    """Let each partition hold out its rows of a matrix."""
    rows = [(rows_of(held_out, place.rows),) for place in observations.cluster.places]
    return observations.divided(without, rows)


@score_of.register
def _(held_out: ClusterObservations, model: Any) -> HeldOutOnCluster:
    return HeldOutOnCluster(held_out.cluster, held_out.name, model)


@sweep_of.register
def _(observations: ClusterObservations, problem: Any, rank: int, now: Any = None) -> Any:
    return sweep_on_cluster(problem, observations.cluster, observations.name, rank, now)


@optimality.register
def _(observations: ClusterObservations, problem: Any, W_aug: Any, H_aug: Any) -> float:
    where = observations.cluster, observations.name
    return optimality_on_cluster(problem, *where, W_aug, H_aug, OPTIMALITY_PENALTIES)

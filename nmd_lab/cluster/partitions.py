"""Partitions of the rows of X on the workers of a client, and matrices whose rows lie with them.

What never changes, such as rows of X and of a W, is a future of each partition.  T and U, which
each pass changes, are an actor of each partition (`sweeps.PartitionSweep`).  All tasks of a
partition run on one worker.  They return small arrays, such as sums over rows.  An actor is lost
with its worker, which ends the fit.

The matrices are a W, what an SVD starts from, and its factors.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from nmd_lab._runtime.machine import one_thread
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations


class Partitions:
    """The partitions of a matrix on the workers of a client.

    Attributes
    ----------
    ranges : list of slice
        Rows of each partition.
    workers : list of str
        Address of the worker of each partition, as many for each thread.
    """

    def __init__(self, client: Any, sizes: Sequence[int]) -> None:
        self.client = client
        self.ranges = [slice(*ends) for ends in pairwise(accumulate(sizes, initial=0))]
        threads = [worker for worker, n in self.threads().items() for _ in range(n)]
        if not threads:
            raise ConnectionError("the cluster has no worker: start one before the fit.")
        self.workers = [threads[k * len(threads) // len(sizes)] for k in range(len(sizes))]

    def __len__(self) -> int:
        return len(self.ranges)

    def map(
        self,
        function: Callable[..., Any],
        *local: Sequence[Any],
        shared: tuple[Any, ...] = (),
        actor: bool = False,
    ) -> list[Any]:
        """Return futures of a function of each partition, of local and of shared arguments."""
        arguments = self._submit(partial(tuple, shared)) if shared else ()
        futures: list[Any] = []
        for worker, count in Counter(self.workers).items():  # which has partitions side by side
            here = slice(len(futures), len(futures) + count)
            columns: list[Any] = [[each] * count for each in (function, arguments)]
            columns += [each[here] for each in local]
            with silent():
                futures += self.client.map(run, *columns, workers=worker, actor=actor, pure=False)
        return futures

    def answers(
        self, function: Callable[..., Any], *local: Sequence[Any], shared: tuple[Any, ...] = ()
    ) -> list[Any]:
        """Return the values of a function of each partition."""
        return self.results(self.map(function, *local, shared=shared))

    def sum(
        self, function: Callable[..., Any], *local: Sequence[Any], shared: tuple[Any, ...] = ()
    ) -> Any:
        """Return the sums of the answers of all partitions, which the workers add up."""
        answers = self.map(function, *local, shared=shared)
        while len(answers) > 1:
            groups = [answers[i : i + 4] for i in range(0, len(answers), 4)]  # of four to a task
            answers = [self._submit(add_answers, *group) for group in groups]
        return self.results(answers)[0]

    def results(self, futures: list[Any]) -> list[Any]:
        """Return the results of futures."""
        from distributed import TimeoutError as OutOfTime

        results: list[Any] = []
        while len(results) < len(futures):
            try:
                # Each second it looks whether scheduler and workers are there.
                results.append(futures[len(results)].result(timeout=1.0))
            except (OutOfTime, UnboundLocalError):  # the latter if the wait was cancelled
                if futures[len(results)].status == "error":  # the task itself ran out of time
                    raise
                self._check()
            except Exception as error:
                error.__traceback__ = None  # Dask keeps the error, and with its frames all futures
                self._check()
                raise
        return results

    def threads(self) -> dict[str, int]:
        """Return the number of threads of each worker there is."""
        try:
            threads: dict[str, int] = self.client.nthreads()
        except (OSError, RuntimeError, AttributeError) as error:  # the last two if it is closed
            raise ConnectionError(
                "the scheduler of the cluster is gone: start a cluster, and call nmd_lab.resume() "
                "with the checkpoint if there is one."
            ) from error
        return threads

    def _check(self) -> None:
        """Raise ConnectionError if the scheduler or a worker of a partition is gone."""
        if not self.threads().keys() >= set(self.workers):
            raise ConnectionError(
                "a worker of the cluster is gone, and with it a part of the fit: call "
                "nmd_lab.resume() with the checkpoint if there is one, or start the fit again."
            ) from None

    def _submit(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a task."""
        with silent():
            return self.client.submit(task, *arguments, pure=False)


@contextmanager
def silent() -> Iterator[None]:
    """Let Dask not warn of arrays that the client sends."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")
        yield


def run(function: Callable[..., Any], shared: tuple[Any, ...], *local: Any) -> Any:
    """Return the value of a function, with the object of an actor in the place of the actor."""
    from distributed import Actor, get_worker

    at_hand = [
        get_worker().state.actors[each.key] if isinstance(each, Actor) else aligned(each)
        for each in (*local, *shared)
    ]
    with one_thread():
        return function(*at_hand)


def add_answers(*answers: Any) -> Any:
    """Return the sum of arrays or numbers, or the sums of those in tuples, in their order."""
    if isinstance(answers[0], tuple):
        return tuple(add_answers(*each) for each in zip(*answers, strict=True))
    return sum(answers[1:], start=answers[0])


def aligned(argument: Any) -> Any:
    """Return an argument, an array aligned in memory, as those of a single machine are.

    An array that came over a network may not be, for which kernels would be compiled again.
    """
    is_array = isinstance(argument, np.ndarray)
    return np.require(argument, requirements="A") if is_array else argument


class RowProducts(NamedTuple):
    """Sums over the rows of a W and of its change D in the pass that made it.

    Attributes
    ----------
    gram, cross, squares : ndarray (rank, rank)
        Wᵀ W, Wᵀ D and Dᵀ D.
    value : float
        Penalty of a constraint on W.
    """

    gram: FloatArray
    cross: FloatArray
    squares: FloatArray
    value: float


class ClusterEntries:
    """T and U on the workers.

    Attributes
    ----------
    sweeps : list of Future or None
        The `PartitionSweep` of each partition, an actor; None if it is not made yet.
    stored : list of Future or None
        Arrays that were read from a checkpoint, for each partition.
    """

    def __init__(self, stored: list[Any] | None = None) -> None:
        self.stored = stored
        self.sweeps: list[Any] | None = None


@dataclass(eq=False)
class ClusterRows(NDArrayOperatorsMixin):
    """A matrix (m, k), or one column of it (m,), whose rows lie on the workers.

    Attributes
    ----------
    blocks : list of Future
        Rows of each partition, which never change.
    columns : ndarray (width, k)
        Columns of the matrix in those of the blocks: it is the blocks times this.
    products : RowProducts or None
        Sums over its rows, if a pass has made it.
    """

    partitions: Partitions
    blocks: list[Any]
    columns: FloatArray
    dtype: np.dtype[Any]
    ndim: int = 2
    products: RowProducts | None = None

    def with_columns(self, columns: FloatArray, ndim: int = 2) -> ClusterRows:
        """Return other columns of the same blocks."""
        return ClusterRows(self.partitions, self.blocks, columns, self.dtype, ndim)

    @property
    def parts(self) -> list[Any]:
        """Futures of the rows of each partition."""
        if np.array_equal(self.columns, np.eye(len(self.columns))):
            return self.blocks
        return self.partitions.map(columns_of, self.blocks, shared=(self.columns,))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and columns."""
        return (len(self), self.columns.shape[1]) if self.ndim == 2 else (len(self),)

    def __len__(self) -> int:
        return int(self.partitions.ranges[-1].stop)

    def __getitem__(self, where: Any) -> Any:
        """Return columns, which stay where they are, or rows as an array."""
        if isinstance(where, tuple) and len(where) == 2 and where[0] == slice(None):
            if isinstance(where[1], slice):
                return self.with_columns(self.columns[where])
            return self.with_columns(self.columns[:, [where[1]]], ndim=1)
        if isinstance(where, np.ndarray) and where.dtype.kind in "iu" and where.ndim == 1:
            return self.at(where)
        return np.asarray(self)[where]

    def __setitem__(self, where: tuple[slice, slice], zero: float) -> None:
        """Set columns to 0."""
        assert zero == 0
        self.columns = self.columns.copy()
        self.columns[where] = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Multiply by numbers where the rows are; do everything else with an array."""
        if "out" in options:  # rows on the workers are not changed in place
            return NotImplemented
        others = [each for each in inputs if not isinstance(each, ClusterRows)]
        is_scaled = ufunc is np.multiply or (ufunc in (np.divide, np.ldexp) and inputs[0] is self)
        if is_scaled and [*map(np.ndim, others)] == [0] and method == "__call__" and not options:
            return self.with_columns(ufunc(self.columns, *others), self.ndim)
        arrays = [np.asarray(each) if isinstance(each, ClusterRows) else each for each in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Bring the rows to the client."""
        rows = np.concatenate(self.partitions.results(self.parts))
        rows = rows if self.ndim == 2 else rows[:, 0]
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def at(self, positions: NDArray[np.integer]) -> FloatArray:
        """Return rows at some positions."""
        ranges, positions = self.partitions.ranges, positions % len(self)
        which = np.searchsorted([each.stop for each in ranges], positions, side="right")
        local = [positions[which == k] - each.start for k, each in enumerate(ranges)]
        rows = np.concatenate(self.partitions.answers(getitem, self.parts, local))
        rows = rows[np.argsort(np.argsort(which, kind="stable"))]
        return rows if self.ndim == 2 else rows[:, 0]

    def copy(self) -> ClusterRows:
        """Return the matrix itself, whose rows never change."""
        return self


def columns_of(block: FloatArray, columns: FloatArray) -> FloatArray:
    """Return a block times columns."""
    return np.asarray(block @ columns.astype(block.dtype))


def stack(dtype: Any, *pieces: Any) -> FloatArray:
    """Return the pieces of a partition side by side."""
    return np.ascontiguousarray(Observations.stacked(pieces, dtype))

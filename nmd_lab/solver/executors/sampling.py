"""The client's side of a sampler on a cluster.

The client has the rows, the columns and the hyperparameters, and runs the chain.  Workers have the
entries and T, and draw rows and columns (`sampling_steps`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.base import FloatArray, Transform
from nmd_lab.model.ordinal import Ordinal
from nmd_lab.solver.sampler.model import Model
from nmd_lab.solver.sampler.sides import BLOCK_ROWS, Key
from nmd_lab.solver.sampler.state import ChainState
from nmd_lab.solver.sampler.streams import COLUMNS
from nmd_lab.solver.sampler.t_draw import remembers_T
from nmd_lab.solver.sampler.work import operator

from .cluster import Cluster
from .observations import ClusterObservations
from .part import nothing
from .rows import Named
from .sampling_columns import (
    T_by_columns,
    draw_columns,
    entries_by_columns,
    load_columns,
    multiply_transposed,
    pick,
)
from .sampling_steps import (
    Drawn,
    draw_rows,
    give_T,
    level_likelihoods,
    look_at_levels,
    make_model,
    make_T,
    multiply,
)
from .tasks import Tasks

PARTS_OF_WORKER = 2
"""Number of parts of the columns for each worker."""


@dataclass(frozen=True)
class ClusterModel(Model):
    """A model whose entries lie on workers.

    Attributes
    ----------
    observations : ClusterObservations
        Entries, all of which are observed.
    """

    observations: ClusterObservations

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.observations.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries and of the factors."""
        return self.observations.dtype

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        return self.observations.n_stored


@dataclass(frozen=True)
class ColumnsOfRows:
    """A range of columns, whose entries come from parts of the rows."""

    rows: Cluster
    name: str
    first: int
    last: int
    n_bytes: int

    @property
    def n_rows(self) -> int:
        """Number of columns, which are the rows of a part."""
        return self.last - self.first

    def on(self, tasks: Tasks, worker: str) -> list[Any]:
        """Begin to take the entries from the parts of the rows."""
        self.rows.map(nothing)  # makes those again that are lost
        given = self.rows.by_worker(entries_by_columns, self.name, self.first, self.last)
        return [[future for _, future in given], self.first, self.last]


class ClusterWork:
    """Work with entries on workers; see `nmd_lab.solver.sampler.work.Work`."""

    def __init__(
        self, model: ClusterModel, named: Named, level_counts: NDArray[np.integer]
    ) -> None:
        self._model, self._named, self._level_counts = model, named, level_counts
        self._name = named.name
        self._rows = model.observations.cluster
        self._ends = _ends_of_columns(model.observations)
        counts = model.observations.counts(0)
        sources = [
            ColumnsOfRows(self._rows, self._name, first, last, 12 * int(counts[first:last].sum()))
            for first, last in itertools.pairwise(self._ends)
        ]
        self._columns = Cluster(self._rows.client, sources, load_columns, beside=self._rows)
        # without memory, T is the same whatever it was before
        self._forgets = model.kind != "after" or not remembers_T(model.pair.only.structure)

    def first_T(self) -> Named | None:
        """Return what stands for T before the first sweep; None where it is X itself."""
        return None if self._model.kind == "gaussian" else self._new_T()

    def _new_T(self, T: list[FloatArray] | None = None) -> Named:
        """Return what stands for T, as it was kept or before the first sweep."""
        named = Named(self._rows, "T")
        own = {} if T is None else {number: (each,) for number, each in enumerate(T)}
        self._rows.map(make_T, self._name, named.name, own=own, changes=True)
        return named

    def draw_rows(self, state: ChainState, seed: int) -> tuple[float, float]:
        """Draw T, and then the rows."""
        drawn, of_T = self._drawn(state, seed), _name_of(state.T)
        changes = of_T is not None
        answers = self._rows.map(
            *(draw_rows, self._name, of_T, drawn),
            own=self._own_rows(state) if changes else None,
            changes=changes,
            replaces=changes and self._forgets,
            timed=True,
        )
        rows, misfit, losses = (np.concatenate(each) for each in zip(*answers, strict=True))
        state.rows = rows
        return float(misfit.sum()), float(losses.sum())

    def draw_columns(self, state: ChainState, seed: int) -> None:
        """Draw the columns."""
        partner = self._model.partner_of_columns(state.rows)
        key = Key(seed, state.sweep, COLUMNS)
        attempts = itertools.count()

        def pieces() -> dict[int, tuple[Any, ...]]:
            if next(attempts):
                self._rows.map(nothing)  # makes those again that are lost
            return self._pieces_of_T(state.T.name)

        answers = self._columns.map(
            *(draw_columns, partner, state.column_prior, state.rho, key),
            own=None if state.T is None else pieces,
            timed=True,
        )
        state.columns = np.concatenate([own for (own,) in answers])

    def _pieces_of_T(self, of_T: str) -> dict[int, tuple[Any, ...]]:
        """Return futures of T for each part of the columns."""
        given = self._rows.by_worker(T_by_columns, self._name, of_T, self._ends)
        tasks = Tasks(self._rows.client)
        return {
            number: ([tasks.submit(worker, pick, future, number) for worker, future in given],)
            for number in range(len(self._columns))
        }

    def matrix(self, transform: Transform, fill: float) -> Any:
        """Return transform(X) plus a number as a linear operator."""

        def product(V: FloatArray) -> FloatArray:
            answers = self._rows.map(multiply, self._name, transform, fill, V)
            return np.concatenate([own for (own,) in answers])

        def transposed_product(V: FloatArray) -> FloatArray:
            n = self._model.shape[1]
            answers = self._columns.map(multiply_transposed, transform, fill, n, V)
            return np.concatenate([own for (own,) in answers])

        return operator(self._model.shape, product, transposed_product)

    def level_counts(self) -> NDArray[np.integer]:
        """Return the number of entries of each level of ordinal data."""
        return self._level_counts

    def look_at_levels(self, state: ChainState) -> None:
        """Compute WH with offsets."""
        step = (look_at_levels, self._name, self._drawn(state, 0))
        self._rows.map(*step, own=self._own_rows(state), changes=True, replaces=True)

    def log_likelihood(self, level: int, low: float, high: float) -> float:
        """Return the log-likelihood of the entries of a level."""
        answers = self._rows.map(level_likelihoods, self._name, level, low, high)
        return float(np.concatenate([own for (own,) in answers]).sum())

    def kept(self, state: ChainState) -> dict[str, Any]:
        """Return the state of a chain; T comes to the client."""
        T = None
        if state.T is not None:
            T = [own for (own,) in self._rows.map(give_T, state.T.name)]
        return state.kept() | {"T": T}

    def restore(self, state: ChainState, kept: dict[str, Any]) -> None:
        """Set what `kept` has returned."""
        T = kept.pop("T")
        state.restore(kept)
        if T is not None:
            state.T = self._new_T(T)

    def _drawn(self, state: ChainState, seed: int) -> Drawn:
        """Return what the draws of the parts depend on."""
        cuts = None if state.cuts is None else state.cuts.ends
        given = (state.columns, state.row_prior, state.rho, state.beta, cuts)
        return Drawn(*given, seed, state.sweep)

    def _own_rows(self, state: ChainState) -> dict[int, tuple[Any, ...]]:
        """Return the rows of each part."""
        return {place.number: (state.rows[place.rows],) for place in self._rows.places}


def work_on_cluster(
    stored: ClusterObservations, fields: dict[str, Any], ordinal: Ordinal | None
) -> tuple[ClusterModel, ClusterWork]:
    """Return the model of entries on workers, and what is done with them."""
    named = Named(stored.cluster, "model")
    step = (make_model, stored.name, named.name, fields, ordinal)
    answers = stored.cluster.map(*step, changes=True)
    counts = np.sum([own for (own,) in answers], axis=0)
    model = ClusterModel(**fields, observations=stored)
    return model, ClusterWork(model, named, counts)


def _name_of(T: Named | None) -> str | None:
    return None if T is None else T.name


def _ends_of_columns(observations: ClusterObservations) -> Sequence[int]:
    """Return the ends of ranges of columns with about equally many entries.

    Those of dense data begin where a block of a single machine does.
    """
    n = observations.shape[1]
    unit = BLOCK_ROWS if observations.pattern is None else 1
    parts = PARTS_OF_WORKER * len(observations.cluster.client.nthreads())
    sums = np.cumsum(observations.counts(0))
    wanted = np.linspace(0, sums[-1], parts + 1)[1:-1]
    inner = np.searchsorted(sums, wanted) // unit * unit
    ends: list[int] = np.unique(np.concatenate([[0], inner, [n]])).tolist()
    return ends

"""The problem of a posterior: data, model and priors, from data and arguments.

It has the form in which the sweeps use it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_rank, check_size, is_auto
from nmd_lab._runtime.machine import all_threads
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import AT_MOST
from nmd_lab.data.matching import mixed_with
from nmd_lab.data.observations import Observations
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.units import Facts, smallest_value, units_of_groups
from nmd_lab.kernels.products import Block, CsrStorage
from nmd_lab.model.column_model import ColumnModel, make_column_model
from nmd_lab.model.loss import Loss
from nmd_lab.model.model import Model, groups
from nmd_lab.problem.problem import OffsetColumns, Scaling, scaling_for
from nmd_lab.request.options import SampleOptions

from .latent_draws import DRAWS_OF_X, LEVEL, Batch, Levels, latent_kernel
from .ordered_rows import PHIS, RowOrder
from .priors import Prior
from .random_numbers import NO_KEYS
from .row_updates import Labels, OtherFactor, RowUpdate, each_share
from .sampled_model import NoiseKind, knows_T, noise_of, sampled_model


@dataclass(frozen=True)
class SampledProblem:
    """What is sampled.

    Attributes
    ----------
    scaling : Scaling
        Units of the problem, and the model in the units of X.
    noises : tuple of NoiseKind
        Where the noise of each kind is.
    rank, threads : int
        Number of components, and the largest one of threads.
    offset_columns : OffsetColumns
        Whether rows and columns have offsets, and the global offset, a constant.
    prior : Prior
        Scales of the priors.
    observations : SparseObservations
        Data, in the units of the problem.
    keys : ndarray of int64 (m,)
        What stands for the positions of new rows in random streams; empty for others.
    order : RowOrder or None
        Order of the rows, if they have one.
    """

    scaling: Scaling
    noises: tuple[NoiseKind, ...]
    rank: int
    offset_columns: OffsetColumns
    prior: Prior
    observations: SparseObservations
    threads: int
    keys: NDArray[np.int64] = field(default_factory=lambda: NO_KEYS)
    order: RowOrder | None = None

    @cached_property
    def model(self) -> Model:
        """Nonlinearities, losses and units: one kind for all entries, or one for each column."""
        return self.scaling.scaled_model()

    @property
    def kinds(self) -> list[tuple[NoiseKind, ColumnModel, Any]]:
        """Where the noise of each kind is, its nonlinearity and loss, and where its entries are."""
        return list(zip(self.noises, self.model.column_models, self.entries_of_kinds, strict=True))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.observations.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries and of the factors."""
        return self.observations.dtype

    @cached_property
    def storage(self) -> CsrStorage:
        """Positions of the stored entries."""
        return CsrStorage(self.shape, self.observations.indptr, self.observations.indices)

    @cached_property
    def values(self) -> FloatArray:
        """X at the entries (n_entries,); positions of ordered levels, counted from 0."""
        values = np.ascontiguousarray(self.observations.values)
        ordered = [(kind.loss, at) for _, kind, at in self.kinds if kind.loss.classes == "ordered"]
        codes = values.copy() if ordered else values
        loss: Any
        for loss, at in ordered:
            codes[at] = loss.codes(values[at])
        return codes

    @property
    def is_limited(self) -> bool:
        """Whether only limits are known of some entries."""
        return self.observations.limits is not None

    @cached_property
    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value that each entry may have; positions of ordered levels."""
        stored = self.observations
        if (limits := stored.limit_reader()) is None:
            return self.values, self.values
        weighted = stored.weights is not None and stored.weights.dtype != bool
        smallest = -math.inf if self.model.is_mixed else smallest_value(stored.range()[0])
        x, (low, high) = stored.values, np.empty((2, stored.values.size), self.dtype)
        for noise, kind, at in self.kinds:
            loss, codes = kind.loss, limits.codes[at]
            if noise == "after":
                _refuse_limits(loss, weighted=weighted)
            low[at], high[at] = limits.at(at).ends(x[at], max(smallest, loss.domain[0]))
            if loss.classes == "ordered":
                first = np.searchsorted(loss.level_values, low[at])
                low[at] = np.where(codes == AT_MOST, 0, first)
                high[at] = np.searchsorted(loss.level_values, high[at], side="right") - 1
        return low, high

    @cached_property
    def units(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Units of the components of a row and of a column."""
        prior, rank, offsets = self.prior, self.rank, self.offset_columns
        return prior.units(rank, offsets.before), prior.units(rank, offsets.after)

    def units_of_full_rank(self) -> tuple[int, Scaling, tuple[NoiseKind, ...]]:
        """Return the rank of a table with all components, and units in which levels are numbers."""
        column_models, noises = list(self.model.column_models), list(self.noises)
        for k, (noise, kind, at) in enumerate(self.kinds):
            if noise == "ordinal":
                x = np.asarray(kind.loss.level_values)[self.values[at].astype(np.intp)]
                centre, size = (float(x.mean()), float(x.std())) if x.size else (0.0, 1.0)
                numbers = make_column_model("identity", "frobenius")
                column_models[k] = numbers._replace(centre=centre, size=size or 1.0)
                noises[k] = "gaussian"
        scaling = Scaling(Model(tuple(column_models), self.model.model_index))
        (m, n), rank = self.shape, self.rank
        # With more columns or work a sweep would take long: then it has as many as the others
        if n <= min(64, m) and m * n**3 <= 1 << 30:
            rank = n
        return rank, scaling, tuple(noises)

    @property
    def numbers(self) -> int:
        """Number of numbers in a draw of all rows and columns."""
        counts = zip(self.units, self.shape, strict=True)
        return sum(units.size * count for units, count in counts)

    @property
    def work_bytes(self) -> int:
        """Memory of T, and of positions in a table of several members, and of rows in order."""
        of_row = 8 * (5 * self.rank**2 + 3 * PHIS.size)  # of the precision, and densities of φ
        of_column = 8 * self.rank**2  # of the squares of loadings
        m, n = self.shape
        of_order = 0 if self.order is None else m * of_row + n * of_column
        return (30 if self.model.is_mixed else 10) * self.values.nbytes + of_order

    def factor(self, vectors: FloatArray, *, for_rows: bool) -> OtherFactor:
        """Return what rows, or columns, depend on: vectors of the other ones, and their offsets."""
        before, after = self.offset_columns.before, self.offset_columns.after
        own_offset, has_offset = (before, after) if for_rows else (after, before)
        rank = vectors.shape[1] - has_offset  # a member of full rank has its own
        seen = np.ones((len(vectors), rank + own_offset), vectors.dtype)
        seen[:, :rank] = vectors[:, :rank]
        constants = vectors[:, rank] if has_offset else np.zeros(len(vectors), vectors.dtype)
        return OtherFactor(seen, constants + vectors.dtype.type(self.offset_columns.mean))

    def augmented(self, rows: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A and B with A Bᵀ = WH with offsets."""
        vectors, constants = self.factor(columns, for_rows=True)
        A = np.hstack([rows, np.ones((len(rows), 1), rows.dtype)])
        return A, np.hstack([vectors, constants[:, None]])

    def kinds_of(self, columns: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the position of the kind of each of some columns."""
        return columns if self.model.is_mixed else np.zeros_like(columns)

    @cached_property
    def columns(self) -> tuple[CsrStorage, NDArray[np.integer]]:
        """The stored entries column by column, and their positions among those by row."""
        return self.storage.transposed()

    @cached_property
    def entries_of_kinds(self) -> list[Any]:
        """Positions of the stored entries of each kind."""
        if not self.model.is_mixed:
            return [slice(None)]
        storage, order = self.columns
        return np.split(order, storage.indptr[1:-1])

    @cached_property
    def column_groups(self) -> Labels:
        """0 for a column of numbers and 1 for one of levels; 0 if all are of one of the two.

        The offset of a number is nearly 0 in its units, and that of a rare level is not: with one
        prior for both, the numbers would draw rare levels to their cut points of the start.
        """
        levels = np.broadcast_to([noise == "ordinal" for noise in self.noises], self.shape[1])
        return np.unique(levels, return_inverse=True)[1]

    @cached_property
    def counts(self) -> NDArray[np.integer]:
        """Number of the stored entries that have the same noise levels."""
        if self.model.is_mixed:
            return np.diff(self.columns[0].indptr)
        return np.array([self.storage.n_entries])

    @cached_property
    def noise_levels(self) -> tuple[NDArray[Any], ...]:
        """Return arrays (n_kinds,) by which ρ and β are drawn: of_T, after, exact, shapes, units.

        Kinds whose ρ is drawn, whose noise is after f, and whose log-likelihood has no drawn cut
        points; counts of β for each entry, and the units of 1/β.
        """
        noises, losses = np.array(self.noises), [kind.loss for kind in self.model.column_models]
        of_T, after = noises != "ordinal", noises == "after"
        exact = of_T | [len(loss.level_values) == 2 for loss in losses]  # no cuts are drawn
        shapes = np.where(after, [loss.noise_model.shape for loss in losses], 0.0)
        units = self.prior.spreads_of_X ** [loss.noise_model.power for loss in losses]
        return of_T, after, exact, shapes, units

    @cached_property
    def batches(self) -> list[Batch]:
        """The entries at which T is drawn: all row by row, or the columns of like kinds."""
        alike: dict[Any, tuple[ColumnModel, list[int]]] = {}
        for k, (noise, kind, _) in enumerate(self.kinds):
            if self.counts[k] and (self.is_limited or not knows_T(noise, kind.nonlinearity)):
                kind = LEVEL if noise == "ordinal" else kind
                arguments = tuple(np.asarray(each).tobytes() for each in kind.arguments)
                alike.setdefault((noise, kind.structure, arguments), (kind, []))[1].append(k)
        found, shift, weights = list[Batch](), 0, self.observations.weights
        keys = self.keys
        if keys.size:
            keys = mixed_with(keys[self.observations.rows], self.storage.indices)
        for (noise, *_), (kind, some) in alike.items():
            at: Any = slice(None)
            starts = self.storage.indptr.astype(np.int64, copy=False)
            if self.model.is_mixed:
                at = np.concatenate([self.entries_of_kinds[k] for k in some])
                starts = np.concatenate([[0], np.cumsum(self.counts[some])])
            here = np.empty(0, self.dtype) if weights is None else weights[at]
            known = here, self.limits[0][at], self.limits[1][at]
            key = shift, keys[at] if keys.size else keys
            kernel = latent_kernel(noise, kind.structure)
            found.append(Batch(kernel, kind.arguments, some, at, starts, known, key))
            shift += len(some)
        return found

    @cached_property
    def levels(self) -> list[Levels | None]:
        """The entries of each level of each kind; None for numbers."""
        found, weights = list[Levels | None](), self.observations.weights
        for _, kind, at in self.kinds:
            number, (low, high) = len(kind.loss.level_values), (each[at] for each in self.limits)
            here = None if weights is None else weights[at]
            found.append(Levels(low, high, number, here) if number else None)
        return found

    @cached_property
    def weights_of_T(self) -> FloatArray | None:
        """Weights of T at the entries; where the noise is after f they belong to the loss alone."""
        after = np.array([noise == "after" for noise in self.noises])
        if (weights := self.observations.weights) is None or after.all():
            return None
        if not after.any():
            return weights
        return np.where(after[self.storage.indices], 1, weights).astype(self.dtype)

    @cached_property
    def units_of_kinds(self) -> NDArray[np.float64]:
        """Centre and size of each kind (n_kinds, 2)."""
        return np.array([(kind.centre, kind.size) for kind in self.model.column_models])

    @cached_property
    def updates(self) -> tuple[RowUpdate, RowUpdate]:
        """The updates of all rows and of all columns."""
        threads, weights = self.threads, self.weights_of_T
        transposed, order = self.columns
        of_columns = None if weights is None else weights[order]
        return (
            RowUpdate(self.storage, None, weights, threads),
            RowUpdate(transposed, order, of_columns, threads, self.model.is_mixed),
        )

    @cached_property
    def season_of_entries(self) -> NDArray[np.int64]:
        """Position of the phase and column of each stored entry in the season, flat."""
        assert self.order is not None
        phases = self.order.phases[self.observations.rows]
        return np.asarray(phases * self.shape[1] + self.storage.indices)

    def products(self, rows: FloatArray, columns: FloatArray) -> FloatArray:
        """Return WH with offsets at every stored entry, flat."""
        A, B = self.augmented(rows, columns)
        if (most := self.updates[0].most) is not None:
            return np.asarray((A @ B.T).ravel()[most])
        storage, out = self.storage, np.empty(self.storage.n_entries, A.dtype)

        def share(first: int, last: int) -> None:
            entries = slice(int(storage.indptr[first]), int(storage.indptr[last]))
            storage.products(Block(slice(first, last), entries), A, B, out[entries])

        each_share(storage.indptr, self.threads, share)
        return out


def prepare_sample(
    observations: Observations, facts: Facts, options: SampleOptions, *, is_table: bool = False
) -> SampledProblem:
    """Return the problem of checked arguments; see `nmd_lab.sample`."""
    rank, (smallest, largest) = options.rank, facts.range
    if is_auto(rank):  # an upper bound: components that nothing speaks for stay small
        (m, n), table = observations.shape, observations.labels.table
        if table is not None:
            n = sum(len(c.categories) if c.kind == "values" else 1 for c in table.columns)
        rank = max(1, min(m, n - 1, 20))
    rank = check_rank(rank, observations.shape)
    size = check_size("X", max(-smallest, largest), observations.dtype)
    model = sampled_model(observations, facts, options, is_table=is_table)
    wanted = options.noise
    if model.is_mixed:
        _, columns, x = observations.entries()
        order, ends = groups(columns, len(model.column_models))
        noises = []
        for k, (f, loss, *_) in enumerate(model.column_models):
            chosen = "auto" if loss.classes == "ordered" or f.linear else wanted
            noises.append(noise_of(chosen, f, loss, x[order[ends[k] : ends[k + 1]]]))
    else:
        noises = [noise_of(wanted, model.nonlinearity, model.loss, observations.observed()[0])]
    return problem_of(observations, options, rank, scaling_for(model, size), tuple(noises))


def problem_of(
    observations: Observations,
    options: SampleOptions,
    rank: int,
    scaling: Scaling,
    noises: tuple[NoiseKind, ...],
) -> SampledProblem:
    """Return the problem of some observations, in the units of the sampler."""
    observations, model = scaling.scaled_observations(observations), scaling.scaled_model()
    by_column = model.is_mixed
    stored, offsets = observations.as_sparse(), options.offsets
    if offsets == "auto":
        offsets = "columns" if by_column else "none" if model.even else "both"
    mean = 0.0
    if by_column:
        _, columns, x = stored.entries()
        spreads = units_of_groups(columns, x, stored.shape[1]).deviation
        prior = Prior(1.0, spreads, most_precise=1e4)  # near copies of columns have some noise
    elif noises[0] == "ordinal":
        prior = Prior(1.0, np.ones(1))
    else:
        to_T, count = model.pseudo_inverse, stored.n_observed
        mean = 0.0 if offsets == "none" else stored.sum_of(lambda x, _: to_T(x)) / count
        squares = stored.sum_of(lambda x, _: np.square(to_T(x) - mean)) / count
        mean_of_X = stored.sum_of(lambda x, _: x) / count
        squares_of_X = stored.sum_of(lambda x, _: np.square(x - mean_of_X)) / count
        of_X = math.sqrt(squares_of_X) or max(map(abs, stored.range())) or 1.0
        prior = Prior(math.sqrt(squares) or abs(mean) or 1.0, np.array([of_X]))
    return SampledProblem(
        observations=stored,
        threads=options.compute.threads or all_threads(),
        scaling=scaling,
        noises=noises,
        rank=rank,
        offset_columns=OffsetColumns(offsets, mean),
        prior=prior,
    )


def problem_of_rows(
    observations: SparseObservations,
    model: Model,
    noises: tuple[Any, ...],
    offsets: tuple[str, float],
    **others: Any,
) -> SampledProblem:
    """Return the problem of rows of which all but what is drawn for them is known."""
    return SampledProblem(
        scaling=Scaling(model),
        noises=noises,
        prior=Prior(1.0, np.ones(len(noises))),
        observations=observations,
        offset_columns=OffsetColumns(*offsets),
        threads=all_threads(),
        **others,
    )


def _refuse_limits(loss: Loss, *, weighted: bool) -> None:
    """Raise ValueError if x with the noise of a loss cannot be drawn within limits."""
    noise = loss.noise_model
    if noise not in DRAWS_OF_X or (not noise.shape and weighted):
        words = " with weights" if noise in DRAWS_OF_X else ""
        raise ValueError(
            f"at_most= and at_least= do not go with loss={loss.name!r}{words} in sample(): "
            "use loss='frobenius', 'l1' or 'kl', or complete()."
        )

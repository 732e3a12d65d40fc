"""The draws of a posterior: with the labels of X as one Dataset, and as plain arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.data.matching import RowPlaces
from nmd_lab.data.observations import Observations
from nmd_lab.data.typed_table import TypedTable
from nmd_lab.model.model import Model, each_group

from .predictive import KINDS, Array, Predictive, Tempering

Positions = NDArray[np.integer]

CHAIN, DRAW, SWEEP, PROBE, CUT, PART = "chain", "draw", "sweep", "probe", "cut", "part"
GROUP, LIMIT, SEASON = "group", "limit", "phase"
"""Dimensions of the draws and of the trace; the dimensions of X get other names if they clash."""

LIMITS = ("limit_row", "limit_column", "limit_code", "limit_value", "limit_upper")
"""Positions, codes (of `EntryLimits`), values and upper values of the entries with limits."""

JOINT = ("joint_means", "joint_precisions", "joint_shares", "joint_cuts")
"""Draws of the joint distribution of a row, from which tables are completed (`JointDraws`)."""

ALL = slice(None)
"""Every draw."""

OF_NUMBERS = ("gaussian", "clipped", "before")
"""Kinds of noise of numbers, to which an ensemble gives a spread."""

N_FILLING_DRAWS = 60
"""Draws of all chains from which new rows are filled; a mean of 60 is within 1 % of that of 300."""


class RowMixture(NamedTuple):
    """The prior of a row in each draw: a mixture of Gaussians, one for each group of rows.

    Attributes
    ----------
    shares : ndarray (draws, groups)
        Fractions of the rows in the groups.
    means, precisions : ndarray (draws, groups, d) and (draws, groups, d, d)
        Means and inverse covariances.
    """

    shares: NDArray[np.float64]
    means: NDArray[np.float64]
    precisions: NDArray[np.float64]

    @property
    def centres(self) -> NDArray[np.float64]:
        """Mean of a row in each draw (draws, d), over the groups."""
        return np.asarray(np.einsum("sc,sca->sa", self.shares, self.means))

    @property
    def covariances(self) -> NDArray[np.float64]:
        """Covariance of a row in each draw (draws, d, d), within and between groups."""
        within = np.einsum("sc,scab->sab", self.shares, np.linalg.inv(self.precisions))
        centred = self.means - self.centres[:, None]
        between = np.einsum("sc,sca,scb->sab", self.shares, centred, centred)
        return np.asarray(within + between)


MIN_REPEATS = 5
"""Smallest count of a value that repeats."""

N_PRIOR_CELLS = 10
"""Number of cells by which both counts of a ratio are larger, so that few decide little."""


class RepeatedValues(NamedTuple):
    """Values that repeat in a column, such as 0 for no pool, which new numbers hold too.

    The predictive distribution of a number is smooth.  Around each value that repeats is an
    interval, up to the middle to the next observed value.  On each side it has as many other
    observed cells as there are of the value, at most a twentieth of all others and none beyond the
    middle to the next value that repeats.  A number in an interval becomes that of the observed
    cell there whose rank is that of the number among replicates.

    Numbers are weighed by a ratio of their interval: the count of its observed cells over the one
    that replicates of these cells expect (A. Gelman, X.-L. Meng and H. Stern, "Posterior predictive
    assessment of model fitness via realized discrepancies", Statistica Sinica 6, 733-807, 1996).

    Attributes
    ----------
    edges : ndarray (2 K,)
        Ends of the intervals around K values.
    observed : ndarray (cells,)
        Observed numbers in their order.
    starts : ndarray (2 K + 2,)
        Position of the first observed number of each interval, and the number of all.
    accepted : ndarray (2 K + 1,)
        Probability with which a number in the interval is accepted.
    replicates : ndarray (numbers,)
        Replicates in their order.
    """

    edges: Array
    observed: Array
    starts: NDArray[np.intp]
    accepted: Array
    replicates: Array

    @classmethod
    def of(cls, observed: Array, replicates: Array) -> RepeatedValues:
        """Return the intervals for observed numbers (cells,) and replicates of any number."""
        observed, size = np.sort(observed), observed.size
        values, first, counts = np.unique(observed, return_index=True, return_counts=True)
        at = np.flatnonzero(counts >= MIN_REPEATS)
        v, first, after = values[at], first[at], first[at] + counts[at]
        # An interval has at most one of 20 other cells of the column on each side of its value.
        near = np.minimum(counts[at], (size - counts[at]) // 20)
        middles = np.concatenate([[-np.inf], 0.5 * (observed[1:] + observed[:-1]), [np.inf]])
        low = middles[np.maximum(first - near, 0)]
        high = middles[np.minimum(after + near, size)]
        between = 0.5 * (v[1:] + v[:-1])
        low[1:], high[:-1] = np.maximum(low[1:], between), np.minimum(high[:-1], between)

        edges = np.column_stack([low, high]).ravel()
        replicates = np.sort(replicates, axis=None)
        starts, of_replicates = (
            np.concatenate([[0], np.searchsorted(each, edges, side="right"), [each.size]])
            for each in (observed, replicates)
        )
        expected = np.diff(of_replicates) * (size / replicates.size)
        ratios = (np.diff(starts) + N_PRIOR_CELLS) / (expected + N_PRIOR_CELLS)
        return cls(edges, observed, starts, ratios / ratios.max(), replicates)

    def near(self, x: Array, rng: np.random.Generator) -> Array:
        """Return numbers of which those in an interval are those of observed cells there."""
        of = np.searchsorted(self.edges, x)
        around = np.flatnonzero(of % 2)
        of, x = of[around], x.copy()
        ends = np.searchsorted(self.replicates, self.edges, side="right")[[of - 1, of]]
        low = np.searchsorted(self.replicates, x[around])
        high = np.searchsorted(self.replicates, x[around], side="right")
        rank = rng.integers(low, high, endpoint=True) - ends[0]
        first, last = self.starts[of], self.starts[of + 1]
        x[around] = self.observed[first + rank * (last - first) // (ends[1] - ends[0] + 1)]
        return x

    def draw(
        self, smooth: Callable[[NDArray[np.intp]], Array], size: int, rng: np.random.Generator
    ) -> Array:
        """Return a new number of each cell; `smooth` draws some cells without repeated values."""
        found, total, again = np.empty(size), np.zeros(size), np.arange(size)
        for _ in range(30):  # if no draw of a cell is accepted, one is taken by its weight
            x = smooth(again)
            at = np.searchsorted(self.edges, x)
            weight = self.accepted[at]
            total[again] += weight
            is_accepted = rng.random(again.size) < weight
            is_taken = is_accepted | (rng.random(again.size) * total[again] < weight)
            found[again[is_taken]] = self.near(x[is_taken], rng)
            again = again[~is_accepted]
            if not again.size:
                break
        return found


@dataclass(frozen=True, eq=False)
class Draws:
    """The draws of all chains, one chain after another, without labels.

    Attributes
    ----------
    W, H : ndarray (draws, m, rank) and (draws, n, rank)
        Factors; a row of H is a column of X.
    numbers : dict of ndarray (draws, size)
        Other variables of `Posterior.draws`, as far as the model has them.
    n_chains : int
        Number of chains.
    model : Model
        Nonlinearities, losses and units.
    noises : tuple of str
        Kind of the noise: one for all columns, or one for each.
    mean : float
        Global offset.
    dtype : dtype
        Type of predictions: that of X.
    scale : (float, float) or None
        Ends of intervals, where X has few values, such as ratings.
    table : TypedTable or None
        Typed columns of X.
    repeated : dict of RepeatedValues
        Values that new observations of a column repeat, by its position.
    places : RowPlaces or None
        Places of the rows in their order, if they have one.
    order : str, list of str or None
        Names of what they are labelled by.
    """

    W: FloatArray
    H: FloatArray
    numbers: Mapping[str, FloatArray]
    n_chains: int
    model: Model
    noises: tuple[str, ...]
    mean: float
    dtype: np.dtype[Any]
    scale: tuple[float, float] | None
    table: TypedTable | None
    repeated: Mapping[int, RepeatedValues] = field(default_factory=dict)
    places: RowPlaces | None = None
    order: str | list[str] | None = None

    @property
    def is_ordered_by_name(self) -> bool:
        """Whether the rows are in an order that their labels or columns say, not an array."""
        return self.places is not None and not str(self.order).startswith("given ")

    @property
    def rank(self) -> int:
        """Number of components."""
        return int(self.W.shape[2])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns of X."""
        return self.W.shape[1], self.H.shape[1]

    def __len__(self) -> int:
        return len(self.W)

    def evenly(self, number: int = N_FILLING_DRAWS) -> Draws:
        """Return about so many of the draws, in proportion to those of each member."""
        chains, draws = self.n_chains, len(self) // self.n_chains
        if (count := -(-number // chains)) >= draws:
            return self
        member = self.numbers.get("member", np.zeros(len(self))).reshape(chains, draws)
        order = np.argsort(member, axis=1, kind="stable")  # each member in its order
        evenly = ((np.arange(count) + 0.5) * draws / count).astype(np.intp)
        some = (np.sort(order[:, evenly]) + draws * np.arange(chains)[:, None]).ravel()
        numbers = {name: array[some] for name, array in self.numbers.items()}
        return replace(self, W=self.W[some], H=self.H[some], numbers=numbers)

    @property
    def row_vectors(self) -> FloatArray:
        """Rows of W, with their offsets if there are some (draws, m, rank [+ 1])."""
        offsets = self.numbers.get("row_offsets")
        return self.W if offsets is None else np.concatenate([self.W, offsets[:, :, None]], axis=2)

    def with_rows(self, vectors: FloatArray, places: RowPlaces | None = None) -> Draws:
        """Return the draws with other rows, given as `row_vectors`, and their places."""
        numbers = {name: a for name, a in self.numbers.items() if name != "row_group"}
        if "row_offsets" in numbers:
            numbers["row_offsets"] = vectors[:, :, self.rank]
        W = np.ascontiguousarray(vectors[:, :, : self.rank])
        return replace(self, W=W, numbers=numbers, places=places)

    @property
    def row_prior(self) -> RowMixture:
        """The prior of a row of W, with its offset, in each draw."""
        if "row_precision" not in self.numbers:
            raise ValueError(
                "draws lacks 'row_precision', the prior of rows: draw with nmd.sample()."
            )
        shares = self.numbers.get("row_share", np.ones((len(self), 1)))
        means = self.numbers["row_mean"].reshape(*shares.shape, -1)
        precisions = self.numbers["row_precision"].reshape(*means.shape, -1)
        return RowMixture(*(each.astype(np.float64) for each in (shares, means, precisions)))

    @cached_property
    def predictives(self) -> list[Predictive]:
        """The distribution of a new observation given each draw: one, or one for each column."""
        return [self._predictive(k) for k in range(len(self.noises))]

    def predictive_of(self, column: int) -> Predictive:
        """Return the distribution of a new observation of a column."""
        return self.predictives[column if self.model.is_mixed else 0]

    def _predictive(self, k: int) -> Predictive:
        """Return a distribution of new observations, in the units of their column."""
        models, numbers, levels, cuts = self.model.column_models, self.numbers, None, None
        kind, noise, beta = models[k], self.noises[k], numbers.get("beta")
        sd = float(kind.size) / np.sqrt(numbers["rho"][:, [k]].astype(float))
        if "cut_points" in numbers and kind.loss.classes == "ordered":
            levels, padded = np.array(kind.loss.level_values), numbers["cut_points"]
            cuts = padded.reshape(len(self), len(models), -1)[:, k, : levels.size - 1].astype(float)
        return KINDS[noise](
            kind.nonlinearity,
            kind.loss,
            sd=sd * numbers.get("spread", 1.0) if noise in OF_NUMBERS else sd,
            beta=None if beta is None else beta[:, [k]].astype(float),
            cuts=cuts,
            levels=levels,
            tempering=self.tempering(np.array([k])),
            repeated=self.repeated.get(k),
        )

    def tempering(self, positions: Positions) -> Tempering:
        """Return the temperature of levels or classes, whose columns have these positions in X."""
        if "temperature" not in self.numbers:
            return Tempering()
        temperature = float(self.numbers["temperature"][:, positions[0]].mean())
        frequency = self.numbers["frequency"][0, positions].astype(float)
        return Tempering(temperature, None if frequency[0] == 1 else frequency)  # ordered levels

    def by_noise(self, columns: Positions, v: Array) -> Iterator[tuple[Predictive, Any, Array]]:
        """Yield each distribution, the entries that have it, and v there, in units of the column.

        `columns` has the column of each entry, and `v` WH plus offsets there, along its last axis.
        """
        if not self.model.is_mixed:
            yield self.predictives[0], slice(None), v
            return
        if columns.size and columns.min() < 0:
            raise ValueError(
                "columns holds a label that X does not have, whose kind is not known: give "
                "columns of X."
            )
        for j, at in each_group(columns, len(self.predictives)):
            kind = self.model.column_models[j]
            in_units = float(kind.centre) + float(kind.size) * v[..., at]
            yield self.predictives[j], at, np.ascontiguousarray(in_units)

    def has_indicators(self, positions: Positions) -> bool:
        """Return whether columns of X are the indicators of categories."""
        return self.table is not None and self.table.of_matrix[int(positions[0])].has_indicators

    def is_level(self, columns: Positions) -> NDArray[np.bool_]:
        """Return whether columns of X are levels."""
        return np.broadcast_to(np.array(self.noises) == "ordinal", self.shape[1])[columns]

    def linear_at(self, i: Positions, j: Positions, draws: slice = ALL) -> NDArray[np.float64]:
        """Return WH plus offsets in some draws at single entries, as an array (draws, entries)."""
        factors = zip(self.W[draws], self.H[draws], strict=True)
        out = np.array([np.einsum("pr,pr->p", w[i], h[j]) for w, h in factors], np.float64)
        out[:, (i < 0) | (j < 0)] = 0  # -1: a row or column that X did not have
        out += self.mean
        for added in self._offsets(i, j, draws):
            out += added
        return out

    def linear_block(self, i: Positions, j: Positions) -> NDArray[np.float64]:
        """Return WH plus offsets in each draw for rows i and columns j, as (draws, entries)."""
        out = np.matmul(self.W[:, i], self.H[:, j].transpose(0, 2, 1)).astype(np.float64)
        out += self.mean
        for added in self._offsets(i[:, None], j[None, :]):
            out += added
        return np.asarray(out.reshape(len(self), -1))

    def _offsets(self, i: Positions, j: Positions, draws: slice = ALL) -> Iterator[FloatArray]:
        """Yield offsets of rows i and of columns j, and the season there; 0 for what X lacked."""
        for name, at in (("row_offsets", i), ("column_offsets", j)):
            if name in self.numbers:
                yield np.where(at < 0, 0, self.numbers[name][draws, at])
        if (season := self.season) is not None:
            phases = np.zeros_like(i) if self.places is None else self.places.phases[i]
            yield np.where((i < 0) | (j < 0), 0, season[draws, phases, j])

    def linear_at_unknown_column(self, i: Positions) -> NDArray[np.float64]:
        """Return v in rows i (draws, rows) of a column that is one of X, at random in each draw."""
        columns, n = np.random.default_rng(0).integers(self.shape[1], size=len(self)), len(self)
        v = [self.linear_at(i, np.full_like(i, columns[s]), slice(s, s + 1)) for s in range(n)]
        return np.concatenate(v)

    @property
    def season(self) -> FloatArray | None:
        """Offsets by phase of the season and column (draws, period, n)."""
        if "season" not in self.numbers:
            return None
        season = self.numbers["season"].reshape(len(self), -1, self.shape[1])
        return season if self.places is not None else season.mean(axis=1, keepdims=True)

    def drawn_at(self, i: Positions, j: Positions, draw: int | None = None) -> NDArray[np.float64]:
        """Return v of new observations in one draw, or in all, at single entries (draws, entries).

        It is WH plus offsets, with the spread that an ensemble gives to numbers.
        """
        if draw is None:
            return self.with_spread(self.linear_at(i, j), j)
        here = slice(draw, draw + 1)
        v = self.linear_at(i, j, here)
        if "spread" not in self.numbers:
            return v
        other = int(self._partners[draw])
        return self.with_spread(v, j, self.linear_at(i, j, slice(other, other + 1)), here)

    @property
    def _partners(self) -> Positions:
        """Another draw for each one, at random, but always the same."""
        return np.random.default_rng(0).permutation(len(self))

    def with_spread(
        self, v: Array, columns: Positions, others: Array | None = None, draws: slice = ALL
    ) -> Array:
        """Return v of draws (draws, entries), where numbers have their spread.

        A draw becomes a weighted mean of itself and of another one.  That keeps the mean of all,
        and more of the modes of the mixture than a common factor of the deviations would.
        """
        if (spread := self.numbers.get("spread")) is None:
            return v
        others = v[self._partners] if others is None else others
        # The squares of a share and of the rest add to that of the spread
        share = 0.5 + 0.5 * np.sqrt(np.maximum(2 * spread[draws] ** 2 - 1, 0))
        is_number = np.broadcast_to(np.isin(self.noises, OF_NUMBERS), self.shape[1])[columns]
        return np.where(is_number, share * v + (1 - share) * others, v)

    def batch(self, columns: int = 1) -> int:
        """Return how many entries, or rows of so many columns, are computed together."""
        levels = (0 if each.levels is None else each.levels.size for each in self.predictives)
        # Each draw of an entry has 16 points of its noise, or three numbers of each level.
        numbers = len(self) * columns * max(16, 3 * max(levels))
        return max((64 << 20) // (8 * numbers), 1)  # 64 MiB of doubles


ROWS, COLUMNS, NOISES = "rows", "columns", "noises"
"""What stands for the dimensions of rows and of columns, and for those of noise levels."""

VARIABLES: dict[str, tuple[str, ...]] = {
    "W": (ROWS, COMPONENT),
    "H": (COLUMNS, COMPONENT),
    "row_offsets": (ROWS,),
    "column_offsets": (COLUMNS,),
    "rho": (NOISES,),
    "beta": (NOISES,),
    "cut_points": (NOISES, CUT),
    "row_mean": (GROUP, PART),
    "row_precision": (GROUP, PART, f"{PART}_"),
    "row_share": (GROUP,),
    "row_group": (ROWS,),
    "phi": (PART,),
    "season": (SEASON, COLUMNS),
    "member": (),
    "spread": (),
    "temperature": (NOISES,),
    "frequency": (NOISES,),
}
"""Variables of the draws; offsets, beta, cut points and groups where the model has them."""

TRACE = ("log_likelihood", "prediction")
"""Variables of the trace."""

PLACES = RowPlaces._fields
"""Coordinates of rows in an order."""

PROBES = ("probe_row", "probe_column")
"""Coordinates of the trace: positions of the entries whose predictions it has."""

TAKEN = {CHAIN, DRAW, SWEEP, PROBE, CUT, PART, f"{PART}_", GROUP, LIMIT, SEASON, COMPONENT}
TAKEN |= {*LIMITS, *JOINT, *VARIABLES, *TRACE, *PROBES, *PLACES}
"""Names that dimensions and coordinates of X do not have in the draws."""


def label_draws(labels: Labels, arrays: dict[str, Any], *, by_column: bool) -> xr.Dataset:
    """Return the draws as a Dataset with the labels of X, without copies of the factors.

    Noise levels, if there are several, are those of the columns.
    """
    renamed, outer = labels.rename(labels.clashes(TAKEN)), arrays["W"].shape[:2]
    dims_of = {ROWS: renamed.rows, COLUMNS: renamed.columns}
    dims_of[NOISES] = renamed.columns if by_column else ()
    dataset, sizes = xr.Dataset(), renamed.sizes | {GROUP: -1, SEASON: -1}  # as many as there are
    for name, dims in VARIABLES.items():
        if (array := arrays.get(name)) is not None:
            along = [dim for each in dims for dim in dims_of.get(each, (each,))]
            shape = [sizes.get(dim, array.shape[-1]) for dim in along]
            dataset[name] = (CHAIN, DRAW, *along), array.reshape(*outer, *shape)
    dataset["H"] = dataset["H"].transpose(CHAIN, DRAW, COMPONENT, *renamed.columns)
    counts: dict[str, Any] = {n: np.arange(dataset.sizes[n]) for n in (CHAIN, DRAW, COMPONENT)}
    of_rows = tuple(renamed.sizes[dim] for dim in renamed.rows)
    for name in set(PLACES) & set(arrays):
        counts[name] = renamed.rows, arrays[name].reshape(of_rows)
    dataset = dataset.assign_coords(renamed.coords_along(*map(str, dataset.dims)))
    return dataset.assign_coords(counts)


def label_trace(arrays: dict[str, Any]) -> xr.Dataset:
    """Return what was recorded at each sweep, (chain, sweep) and (chain, sweep, probe)."""
    nothing = np.empty((len(arrays["W"]), 0))
    trace = xr.Dataset({"log_likelihood": ((CHAIN, SWEEP), arrays.get("log_likelihood", nothing))})
    if arrays.get("predictions") is not None:
        trace["prediction"] = (CHAIN, SWEEP, PROBE), arrays["predictions"]
        positions = {name: (PROBE, np.asarray(arrays[f"{name}s"])) for name in PROBES}
        trace = trace.assign_coords(positions)
    return trace.assign_coords({dim: np.arange(trace.sizes[dim]) for dim in (CHAIN, SWEEP)})


def plain_draws(posterior: Any) -> Draws:
    """Return the draws of a posterior without labels, as views where that is possible."""
    variables, sizes = posterior.draws.variables, posterior.draws.sizes
    n_draws, rank = sizes[CHAIN] * sizes[DRAW], sizes[COMPONENT]
    numbers = {
        str(name): v.values.reshape(n_draws, math.prod(v.shape[2:]))
        for name, v in variables.items()
        if v.dims[:2] == (CHAIN, DRAW) and name not in ("W", "H")
    }
    places: list[Any] = [variables[name].values.ravel() for name in PLACES if name in variables]
    by_component = variables["H"].values.reshape(n_draws, rank, -1)
    return Draws(
        W=variables["W"].values.reshape(n_draws, -1, rank),
        H=np.ascontiguousarray(by_component.transpose(0, 2, 1)),
        numbers=numbers,
        n_chains=sizes[CHAIN],
        model=posterior._model,
        noises=posterior._noises,
        mean=posterior.mean,
        dtype=np.dtype(posterior.parameters.get("dtype", "float64")),
        scale=posterior.parameters.get("scale"),
        table=posterior._labels.table,
        places=RowPlaces(*places) if places else None,
        order=posterior.parameters.get("order"),
    )


def with_rows(posterior: Any, draws: Draws, labels: Labels) -> Any:
    """Return a posterior of other rows, given their draws and their labels."""
    outer = posterior.draws["W"].shape[:2]
    shared = [name for name, dims in VARIABLES.items() if ROWS not in dims and name != "H"]
    arrays = {name: each.values for name, each in posterior.draws.items() if name in shared}
    arrays["W"] = draws.W.reshape(*outer, *draws.W.shape[1:])
    arrays |= {"H": draws.H, "row_offsets": draws.numbers.get("row_offsets")}
    if draws.places is not None:
        arrays |= draws.places._asdict()
    return replace(
        posterior,
        _labels=labels,
        _limits=None,
        draws=label_draws(labels, arrays, by_column=draws.model.is_mixed),
        trace=posterior.trace[["log_likelihood"]],
        parameters=posterior.parameters | {"new_rows": draws.shape[0]},
    )


def limits_of(observations: Observations) -> xr.Dataset:
    """Return the entries with limits."""
    sparse = observations.as_sparse()
    at = np.flatnonzero(sparse.limits.codes)
    limits, x = sparse.limits.at(at), sparse.values[at]
    uppers = x if limits.uppers is None else limits.uppers
    arrays = sparse.rows[at], sparse.indices[at], limits.codes, x, uppers
    return xr.Dataset({name: (LIMIT, array) for name, array in zip(LIMITS, arrays, strict=True)})

"""What sweeps of the sampler make of parameters and tables that are drawn from the prior.

This is the test of J. Geweke, "Getting it right: joint distribution tests of posterior simulators",
2004, begun anew many times.  Parameters and data are drawn from their joint distribution.  Sweeps
of the sampler then alternate with new data for its parameters.  Each step leaves the distribution
as it is, if each draw of the sampler has its law, so that any number has the same distribution
before and after.

Parameters and tables of all kinds are drawn from the prior of the sampler with NumPy and SciPy.
Nothing there is shared with the sampler but the meaning of the model, and what it takes from the
data of a table and then holds: the units of columns and the first cut points.  Both are those of a
template.  The prior of the other cut points is flat, and `ImaginedLevels` makes it a proper one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from part_oracles import forward
from scipy import stats
from scipy.special import ndtr

from nmd_lab.data.inputs import GivenLimits, observe
from nmd_lab.data.matching import RowPlaces
from nmd_lab.data.units import facts_of
from nmd_lab.request.options import SampleOptions
from nmd_lab.sampler.chain import ChainState, one_sweep
from nmd_lab.sampler.latent_draws import Levels, first_cuts
from nmd_lab.sampler.ordered_rows import PHIS, RowOrder
from nmd_lab.sampler.priors import FREEDOM, Groups, RowPrior
from nmd_lab.sampler.problem import SampledProblem, prepare_sample

Array = np.ndarray


class Column(NamedTuple):
    """A column: its template, f, its loss, and the limit below which values are not known."""

    template: tuple[float, ...]
    f: str = "identity"
    loss: str = "frobenius"
    limit: float = np.nan


COLUMNS = {
    "number": Column((90.0, 100.0, 120.0, 140.0)),
    "limited": Column((-0.2, 0.0, 0.1, 0.3), limit=-0.1),
    "relu": Column((0.0, 0.0, 10.0, 25.0), "relu"),
    "yes/no": Column((1.0, 0.0), loss="logistic"),
    "levels": Column((0.0, 1.0, 2.0, 2.0), loss="ordinal"),
    "four levels": Column((0.0, 1.0, 2.0, 3.0), loss="ordinal"),
    "limited levels": Column((0.0, 1.0, 2.0, 3.0), loss="ordinal", limit=1.0),
    "count": Column((0.0, 1.0, 3.0, 9.0), "relu", "kl"),
    "limited count": Column((0.0, 1.0, 3.0, 9.0), "relu", "kl", limit=2.0),
    "laplace": Column((-10.0, 0.0, 5.0, 20.0), loss="l1"),
    "limited laplace": Column((-10.0, 0.0, 5.0, 20.0), loss="l1", limit=-1.0),
    "rough relu": Column((-0.05, 0.0, 0.1, 0.25), "relu"),
    "limited rough relu": Column((-0.05, 0.0, 0.1, 0.25), "relu", limit=0.05),
    "modulus": Column((0.5, 1.0, 2.0, 4.0), "modulus", "l1"),
    "square": Column((0.2, 1.0, 2.0, 4.0), "square"),
}
"""Columns of all kinds; classes are a yes/no each, as they are for the sampler."""


class Case(NamedTuple):
    """A table, or an array of like columns that have one noise, and its model."""

    columns: tuple[str, ...]
    groups: int = 1
    rows: int = 8
    rank: int = 1
    offsets: str = "auto"
    holes: float = 0.2
    weighted: bool = False
    in_order: bool = False
    period: int = 0
    is_array: bool = False
    noise: str = "auto"
    dtype: str = "float64"


class ImaginedLevels(Levels):
    """Levels with two more entries of each level, with WH = 0, which are the prior of the cuts."""

    def __init__(self, low: Array, high: Array, number: int, weights: Any) -> None:
        more = np.repeat(np.arange(number), 2)
        if weights is not None:
            weights = np.append(weights, np.ones(more.size))
        low, high = np.append(low, more), np.append(high, more)
        super().__init__(low, high, number, weights)

    def draw(self, v: Array, *about: Any, tune: bool) -> float:
        """Do a step of each cut point, given WH with offsets at the true entries."""
        return super().draw(np.append(v, np.zeros(2 * self.counts.size)), *about, tune=tune)


class Line(NamedTuple):
    """Entries that have the same noise levels, with their kind and limit."""

    at: Array
    noise: str
    kind: Any
    limit: float


@dataclass
class Table:
    """A problem whose data are drawn again and again, with the scales of its priors."""

    problem: SampledProblem
    limit: Array
    n_groups: int
    places: RowPlaces | None = None

    @classmethod
    def of(cls, case: Case) -> Table:
        """Return the problem of a template, with other priors and data that may be overwritten."""
        columns = [COLUMNS[name] for name in case.columns]
        X = np.column_stack([np.resize(each.template, case.rows) for each in columns])
        limit = np.array([each.limit for each in columns])
        rng = np.random.default_rng(5)
        holes = rng.random(X.shape) < case.holes
        at_most = np.broadcast_to(~np.isnan(limit), X.shape)
        weights = rng.uniform(0.5, 2, X.shape) if case.weighted else None
        if weights is not None:  # a likelihood to a power is that of no counts
            weights[:, [each.loss == "kl" for each in columns]] = 1
        limits = GivenLimits(at_most=at_most & ~holes) if at_most.any() else GivenLimits()
        functions, losses = ([getattr(each, name) for each in columns] for name in ("f", "loss"))
        if case.is_array:
            limit, functions, losses = limit[:1], functions[0], losses[0]
        X = np.where(holes, np.nan, X).astype(case.dtype)
        observations = observe(X, weights=weights, limits=limits)
        asked = {name: getattr(case, name) for name in ("rank", "groups", "offsets", "noise")}
        options = SampleOptions(nonlinearity=functions, loss=losses, **asked)
        facts = facts_of(observations, by_column=not case.is_array)
        problem = prepare_sample(observations, facts, options)
        prior = replace(problem.prior, share=0.5, strength=4.0, noise_shape=3.0, noise_rate=1.0)
        prior = replace(prior, most_precise=np.inf)
        copied = problem.observations.with_values(problem.observations.values.copy())
        problem = replace(problem, prior=prior, observations=copied, threads=1)
        if not case.in_order:
            return cls(problem, limit, case.groups)
        times = rng.permutation(np.cumsum(rng.choice([1.0, 2, 6], case.rows)))  # uneven steps
        series, phases = np.arange(case.rows) % 2, np.arange(case.rows) % max(case.period, 1)
        places = RowPlaces(times, series, phases)
        return cls(
            replace(problem, order=RowOrder.of(places, period=case.period)), limit, 1, places
        )

    @cached_property
    def entries(self) -> tuple[Array, Array]:
        """Rows and columns of the stored entries."""
        storage: Any = self.problem.storage
        rows = np.arange(self.problem.shape[0])
        return np.repeat(rows, np.diff(storage.indptr)), storage.indices

    @cached_property
    def lines(self) -> list[Line]:
        """The columns of a table, or all entries of an array."""
        problem, (_, j) = self.problem, self.entries
        number = j if problem.model.is_mixed else 0 * j
        kinds = zip(problem.noises, problem.model.column_models, self.limit, strict=True)
        return [Line(np.flatnonzero(number == k), *kind) for k, kind in enumerate(kinds)]


def gaussian(mean: Array, precision: Array, rng: np.random.Generator) -> Array:
    """Return a draw from N(mean, precision⁻¹)."""
    return rng.multivariate_normal(mean, np.linalg.inv(precision), check_valid="ignore")


def draw_vectors(
    count: int, units: Array, strength: float, rng: np.random.Generator
) -> tuple[Array, RowPrior]:
    """Return vectors of a factor, and mean and precision, from the prior."""
    d = units.size
    root = rng.standard_normal((d, d))
    precision = root @ root.T  # Wishart with d degrees of freedom
    mean = gaussian(np.zeros(d), strength * precision, rng)
    vectors = np.array([gaussian(mean, precision, rng) for _ in range(count)])
    prior = RowPrior((mean * units)[None], (precision / np.outer(units, units))[None])
    return vectors * units, prior


def draw_ordered(
    places: RowPlaces, units: Array, rng: np.random.Generator
) -> tuple[Array, RowPrior]:
    """Return vectors of rows in order, whose covariance is φ to the power of the distance."""
    phi, zero = rng.choice(PHIS, units.size), np.zeros(places.times.size)
    distance = np.abs(places.times[:, None] - places.times) / places.median_step
    distance[places.series[:, None] != places.series] = np.inf
    each = [rng.multivariate_normal(zero, p**distance, check_valid="ignore") for p in phi]
    prior = RowPrior(np.zeros((1, units.size)), np.diag(units**-2)[None], phi=phi)
    return np.column_stack(each) * units, prior


def draw_grouped(
    count: int, number: int, units: Array, rng: np.random.Generator
) -> tuple[Array, RowPrior, Groups]:
    """Return vectors of rows in groups, the priors of the groups and what these share."""
    d = units.size
    nu, root = d + rng.choice(FREEDOM), rng.standard_normal((d, d))
    scale, strength = root @ root.T, rng.gamma(0.5, 2.0)
    law = stats.wishart(nu, np.linalg.inv(nu * scale))
    precisions = law.rvs(number, random_state=rng).reshape(number, d, d)
    means = np.array([gaussian(np.zeros(d), strength * each, rng) for each in precisions])
    shares = rng.dirichlet(np.full(number, 1 / number))
    labels = rng.choice(number, count, p=shares)
    vectors = np.array([gaussian(means[c], precisions[c], rng) for c in labels])
    squares = np.outer(units, units)
    prior = RowPrior(means * units, precisions / squares, shares)
    return vectors * units, prior, Groups(labels, scale * squares, strength, nu)


def draw_cuts(number: int, start: float, rng: np.random.Generator) -> Array:
    """Return ends of levels from the prior that imagined levels are, by rejection."""
    while True:
        more = np.sort(rng.uniform(start, max(start, 0) + 6, number - 1))
        ends = np.concatenate([[-np.inf, start], more, [np.inf]])
        masses = np.diff(ndtr(ends))[1:]  # that of the first level is the same for all
        if rng.random() < np.prod(masses * masses.size / ndtr(-start)) ** 2:
            return ends


def column_classes(problem: SampledProblem) -> Array:
    """Return 1 for columns of levels beside numbers, and 0 for all others; each has a prior."""
    noises = np.broadcast_to(problem.noises, problem.shape[1])
    levels = np.array([noise == "ordinal" for noise in noises])
    return (levels & ~levels.all()).astype(np.int64)


def draw_levels(table: Table, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return ρ and β from the prior."""
    problem, prior = table.problem, table.problem.prior
    rho, beta = rng.gamma(prior.noise_shape, size=(2, len(problem.noises))) / prior.noise_rate
    rho /= prior.spread**2
    for j, line in enumerate(table.lines):
        power = {"l1": 1, "frobenius": 2}.get(line.kind.loss.name)
        is_drawn = line.noise == "after" and power is not None
        beta[j] = beta[j] / prior.spreads_of_X[j] ** power if is_drawn else 1
        rho[j] = 1 if line.noise == "ordinal" else rho[j]
    return rho, beta


def draw_parameters(table: Table, rng: np.random.Generator) -> ChainState:
    """Return a state whose parameters are from the prior, before there are data."""
    problem, prior = table.problem, table.problem.prior
    (m, n), units = problem.shape, problem.units
    groups = Groups.apart(np.zeros(m, np.int64), units[0] ** 2, prior.strength)
    if table.places is not None:
        rows, of_rows = draw_ordered(table.places, units[0], rng)
    elif table.n_groups == 1:
        rows, of_rows = draw_vectors(m, units[0], prior.strength, rng)
    else:
        rows, of_rows, groups = draw_grouped(m, table.n_groups, units[0], rng)
    of_class = column_classes(problem)
    each = [
        draw_vectors((of_class == k).sum(), units[1], prior.strength, rng)
        for k in range(of_class.max() + 1)
    ]
    columns = np.empty((n, units[1].size))
    for k, (vectors, _) in enumerate(each):
        columns[of_class == k] = vectors
    of_columns = RowPrior(*(np.concatenate([p[i] for _, p in each]) for i in range(3)))
    rho, beta = draw_levels(table, rng)
    season = None
    if problem.order is not None and (period := problem.order.period):
        rate = prior.noise_rate * prior.spread**2
        precision = rng.gamma(1.0, size=n) / rate
        season = rng.standard_normal((period, n)) / np.sqrt(precision)
    ends, steps = first_cuts(problem.levels)
    for row, each in zip(ends, problem.levels, strict=True):
        if each is not None:
            row[: each.counts.size + 1] = draw_cuts(each.counts.size - 1, row[1], rng)
    rows, columns = rows.astype(problem.dtype), columns.astype(problem.dtype)
    return ChainState(
        *(rows, columns, rho, beta, problem.values.copy()),
        row_prior=of_rows,
        column_prior=of_columns,
        groups=groups,
        ends=ends,
        steps=steps,
        seed=int(rng.integers(2**62)),
        sweep=4,  # groups are there already
        in_order=table.places is not None,
        season=season,
        x=problem.values.copy() if problem.is_limited else None,
    )


def products(table: Table, state: ChainState) -> Array:
    """Return WH with offsets and the season as a matrix."""
    problem, rank = table.problem, table.problem.rank
    v: Array = state.rows[:, :rank] @ state.columns[:, :rank].T + problem.offset_columns.mean
    if problem.offset_columns.before:
        v = v + state.rows[:, rank:]
    if problem.offset_columns.after:
        v = v + state.columns[:, rank]
    if state.season is not None:
        v = v + state.season[table.places.phases]
    return v


def draw_data(table: Table, state: ChainState, rng: np.random.Generator) -> None:
    """Draw T and X given the parameters, and put them into the problem and the state."""
    problem, (i, j), given = table.problem, table.entries, table.problem.observations.weights
    v = products(table, state)[i, j]
    for k, (at, noise, kind, limit_here) in enumerate(table.lines):
        weights = np.ones(at.size) if given is None else given[at]
        of_T = 1.0 if noise == "after" else weights
        T = v[at] + rng.standard_normal(at.size) / np.sqrt(state.rho[k] * of_T)
        T = kind.centre + kind.size * T
        if noise == "ordinal":
            x = np.searchsorted(state.ends[k, 1 : problem.levels[k].counts.size], T).astype(float)
        else:
            x = forward((kind.nonlinearity.name,), T.copy())
        if noise == "after":
            x = AFTER[kind.loss.name](x, state.beta[k] * weights, rng)
        state.T[at] = (T - kind.centre) / kind.size
        if problem.is_limited:
            below = x <= limit_here
            low = 0.0 if noise == "ordinal" or kind.loss.name == "kl" else -np.inf
            limit = np.where(below, limit_here, x)
            problem.limits[0][at], problem.limits[1][at] = np.where(below, low, x), limit
            state.x[at] = limit if noise == "ordinal" else x
            x = limit
        problem.values[at] = x
    for name in ("levels", "batches"):  # those of the data before
        vars(problem).pop(name, None)


AFTER: dict[str, Callable[[Array, Array, np.random.Generator], Array]] = {
    "kl": lambda y, _, rng: rng.poisson(y).astype(float),
    "l1": lambda y, beta, rng: rng.laplace(y, 1 / beta),
    "frobenius": lambda y, beta, rng: rng.normal(y, 1 / np.sqrt(beta)),
}
"""The noise after f of each loss; the second argument is β times the weight."""


# Before and after sweeps ----------------------------------------------------------------------


def forget(table: Table, state: ChainState) -> None:
    """Put NaN in the place of what a sweep is to draw anew, whatever it was before.

    T of counts, and of squares with noise, is a step from the old T.
    """
    if state.T is None:
        return
    problem, noises = table.problem, np.empty(table.problem.storage.n_entries, object)
    is_step = np.zeros(noises.size, bool)
    for line in table.lines:
        is_square = line.noise == "after" and line.kind.nonlinearity.name == "square"
        noises[line.at], is_step[line.at] = line.noise, is_square or line.kind.loss.name == "kl"
    drawn = noises != "gaussian"
    if problem.is_limited:
        limited = problem.limits[0] < problem.limits[1]
        state.x[limited & (noises != "ordinal")] = np.nan
        drawn = np.where(noises == "after", ~limited, drawn | limited)  # x is drawn given T
    state.T[drawn & ~is_step] = np.nan


def numbers(table: Table, state: ChainState) -> dict[str, float]:
    """Return numbers of parameters, T and data."""
    problem, v, (i, j) = table.problem, products(table, state), table.entries
    x = problem.values if state.x is None else state.x
    centre, size = problem.units_of_kinds[problem.kinds_of(j)].T
    all_T = centre + size * state.T
    x = np.where(np.isnan(x), all_T, x)  # where noise is not after f, only T is drawn
    found = {}
    for k, (at, noise, kind, limit) in enumerate(table.lines):
        here, T = v[i[at], j[at]], all_T[at]
        found[f"v {k}"] = v[0, k]
        found[f"size of v {k}"] = np.abs(v[:, k]).mean()
        found[f"slope {k}"] = np.mean((here - here.mean()) * x[at])
        if noise == "ordinal":  # T is older than the cut points
            ends = state.ends[k][: problem.levels[k].counts.size + 1]
            low = high = x[at].astype(int)
            if problem.is_limited:
                low = problem.limits[0][at].astype(int)
            found[f"level {k}"] = np.mean(high)
            mass = ndtr(ends[high + 1] - here) - ndtr(ends[low] - here)
            found[f"likelihood {k}"] = mass.mean()
            found |= {f"cut {k} {c}": ends[c] - ends[c - 1] for c in range(2, ends.size - 1)}
            continue
        residual = (T - kind.centre) / kind.size - here
        found[f"rho {k}"] = state.rho[k]
        found[f"misfit {k}"] = state.rho[k] * np.square(residual).mean()
        found[f"bias {k}"] = np.sqrt(state.rho[k]) * residual.mean()
        found[f"spread {k}"] = np.square(residual).mean()
        if noise != "gaussian" or not np.isnan(limit):
            found |= {f"T {k}": T.mean(), f"least T {k}": T.min(), f"least {k}": x[at].min()}
        if noise == "after":
            y = forward((kind.nonlinearity.name,), T)
            found |= {f"beta {k}": state.beta[k], f"loss {k}": np.abs(x[at] - y).mean()}
    if state.season is not None:
        found["season"] = np.square(state.season[:, 0]).mean()
        found["step of season"] = np.diff(state.season[:, 0]).sum()
    return found | of_priors(state, column_classes(problem))


def of_priors(state: ChainState, of_class: Array) -> dict[str, float]:
    """Return numbers of the priors of rows and columns, and of the groups."""
    found = {}
    labels = state.groups.labels
    pairs = {
        "rows": (state.rows, state.row_prior, labels),
        "columns": (state.columns, state.column_prior, of_class),
    }
    for name, (vectors, prior, of_group) in pairs.items():
        centred = vectors - prior.mean[of_group]
        squares = np.einsum("ia,iab,ib->i", centred, prior.precision[of_group], centred)
        one = of_group[0]
        found[f"fit of {name}"] = squares.sum()
        found[f"precision of {name}"] = np.linalg.slogdet(prior.precision[one])[1]
        found[f"mean of {name}"] = prior.mean[one, 0]
        found[f"offset of {name}"] = prior.mean[one, -1]
        found[f"size of {name}"] = np.square(vectors[:, 0]).sum()
    if (phi := state.row_prior.phi) is not None:
        memory = -np.log(1 - phi)
        found["memory"], found["longest memory"] = memory[0], memory.max()
        found["step"] = np.square(np.diff(state.rows[::2, 0])).mean()
    groups, shares = state.groups, state.row_prior.shares
    if shares.size > 1:
        found["used groups"] = np.unique(labels).size
        found["same group"] = np.mean(labels == labels[0])
        found["largest share"], found["share"] = shares.max(), shares[labels[0]]
        found["scale"] = np.linalg.slogdet(groups.scale)[1]
        found["strength"] = groups.strength
        precisions = np.linalg.slogdet(state.row_prior.precision)[1]
        found["unlike precisions"] = np.ptp(precisions)
        found["smallest precision"] = precisions.min()
        found["unlike means"] = np.ptp(state.row_prior.mean[:, 0])
    return found


def run(case: Case, begins: int, sweeps: int, seed: int = 0) -> dict[str, Array]:
    """Return each number before all sweeps and after each, (begin, 1 + sweep)."""
    table, found = Table.of(case), []
    for begin in range(begins):
        rng = np.random.default_rng([seed, begin])
        state = draw_parameters(table, rng)
        draw_data(table, state, rng)
        trace = [numbers(table, state)]
        for _ in range(sweeps):
            forget(table, state)
            state = one_sweep(table.problem, state)
            trace.append(numbers(table, state))
            draw_data(table, state, rng)
        found.append(trace)
    return {
        name: np.array([[each[name] for each in trace] for trace in found]) for name in found[0][0]
    }


def p_values(found: dict[str, Array]) -> dict[str, float]:
    """Return the probability of ranks that sweeps change as much, for a sampler that is right.

    Mean and spread of the ranks of a number among all its values are the same before and after.
    """
    together = {}
    for name, values in found.items():
        assert np.isfinite(values).all(), name
        u = 2 * stats.rankdata(values).reshape(values.shape) / values.size - 1
        for moment, power in (("mean", 1), ("spread", 2)):
            change = (u[:, 1:] ** power).mean(axis=1) - u[:, 0] ** power
            if np.ptp(change) > 0:
                together[f"{moment} of {name}"] = float(stats.ttest_1samp(change, 0).pvalue)
    return together

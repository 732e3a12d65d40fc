"""What sweeps of the sampler make of parameters and tables that are drawn from the prior.

This is the test of J. Geweke, "Getting it right: joint distribution tests of posterior simulators",
2004, begun anew many times.  Parameters and data are drawn from their joint distribution.  Sweeps
of the sampler then alternate with new data for its parameters.  Each step leaves the distribution
as it is, if each draw of the sampler has its law, so that any number has the same distribution
before and after.
"""

import numpy as np
from part_oracles import forward
from prior_tables import (
    Array,
    Case,
    Table,
    column_classes,
    draw_data,
    draw_parameters,
    entries,
    in_units,
    lines,
    products,
)
from scipy import stats
from scipy.special import ndtr

from nmd_lab.sampler.chain import ChainState, one_sweep


def forget(table: Table, state: ChainState) -> None:
    """Put NaN in the place of what a sweep is to draw anew, whatever it was before.

    T of counts, and of squares with noise, is a step from the old T.
    """
    if state.T is None:
        return
    problem, noises = table.problem, np.empty(table.problem.storage.n_entries, object)
    is_step = np.zeros(noises.size, bool)
    for line in lines(table):
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
    problem, v, (i, j) = table.problem, products(table, state), entries(table)
    x = problem.values if state.x is None else state.x
    all_T = in_units(table, state)
    x = np.where(np.isnan(x), all_T, x)  # where noise is not after f, only T is drawn
    found = {}
    for k, (at, noise, kind, limit) in enumerate(lines(table)):
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

"""Ensembles of chains with groups of rows: weights by stacking, turns, and the draws of a table."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.datasets import load_wine

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.data.units import facts_of
from nmd_lab.request.options import SampleOptions
from nmd_lab.sampler import joint_normal, run
from nmd_lab.sampler.ensemble import PRIOR, Size, stacked
from nmd_lab.sampler.problem import prepare_sample
from nmd_lab.sampler.run import SIZES, ensemble_for, first_chain

QUICK = {"draws": 40, "tune": 5, "random_state": 0}


def curve(m=200, seed=0):
    """Return a generated table of a curve, with missing cells."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, m)
    columns = [f(angle) for f in (np.cos, np.sin, lambda a: np.cos(2 * a), lambda a: np.sin(2 * a))]
    X = np.column_stack(columns) + 0.05 * rng.normal(size=(m, 4))
    return pd.DataFrame(np.where(rng.random(X.shape) < 0.1, np.nan, X), columns=list("abcd"))


def mixed():
    """Return a table of numbers, ordered levels and classes, with missing cells."""
    wine = load_wine(as_frame=True).frame
    ash = pd.cut(wine["ash"], 4, labels=False)
    frame = wine.assign(
        ash=pd.Categorical(ash, ordered=True), target=pd.Categorical(wine["target"])
    )
    return frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)


def prepared(frame, **options):
    asked = SampleOptions(**QUICK | options, compute=nmd.Compute(threads=1))
    observations = observe(frame, **asked.of_data)
    problem = prepare_sample(
        observations, facts_of(observations, by_column=True), asked, is_table=True
    )
    rng = np.random.default_rng(1)
    return ensemble_for(problem, observations, asked, rng)


def test_weights_maximise_the_log_score_of_the_mixture():
    """Members of one size have equal weights."""
    logs = np.random.default_rng(0).normal(size=(4, 60)) * [[1.0], [0.5], [2.0], [1.0]]
    densities = np.exp([logs[0], np.logaddexp(logs[1], logs[3]) - np.log(2), logs[2]])

    def loss(z):
        w = np.exp(z - z.max())
        w /= w.sum()
        return -np.log(w @ densities).sum() - PRIOR * np.log(w).sum()

    best = np.exp(minimize(loss, np.zeros(3), tol=1e-12).x)[[0, 1, 2, 1]] / [1, 2, 1, 2]
    np.testing.assert_allclose(
        stacked(logs, tuple(map(Size, (1, 8, 30, 8)))), best / best.sum(), atol=1e-3
    )


def test_the_densities_of_hidden_cells_are_those_of_scipy():
    ensemble = prepared(mixed(), rank=5)
    problem, hidden = ensemble.trials[0], ensemble.hidden
    state = first_chain(problem, ensemble.observations, "auto", np.random.default_rng(0))
    state.rho[:] = np.random.default_rng(1).gamma(5.0, size=state.rho.size)
    found = hidden.scores(problem, state).log_densities
    rows, columns = state.rows[hidden.rows], state.columns[hidden.columns]
    v = np.sum(rows * columns[:, : problem.rank], axis=1) + columns[:, problem.rank]
    for at in range(hidden.values.size):
        j, x = hidden.columns[at], hidden.values[at]
        if hidden.is_level[at]:
            centre, size = problem.units_of_kinds[j]
            low, high = state.ends[j, [int(x), int(x) + 1]]
            expected = np.log(np.diff(norm.cdf([low, high], centre + size * v[at]))[0] + 1e-12)
        else:
            sd = state.rho[j] ** -0.5
            expected = norm.logpdf(x, v[at], sd) + 0.5 * np.log(2 * np.pi)
        assert found[at] == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert 0 < hidden.is_level.sum() < hidden.values.size


def test_hidden_cells_are_whole_and_come_back():
    """All indicators of a category are hidden together; the draws are those of all cells."""
    ensemble = prepared(mixed())
    both = ensemble.trials[0], ensemble.problems[0]
    n_cells = [problem.storage.n_entries for problem in both]
    assert n_cells[1] - n_cells[0] == ensemble.hidden.values.size
    classes = pd.Series(ensemble.hidden.rows[ensemble.hidden.columns >= 13]).value_counts()
    assert set(classes) == {3}


@pytest.mark.parametrize("most", [None, 400])
def test_rare_levels_stay_visible(most, monkeypatch):
    """A cut point next to a level without cells would drift, also of some rows of a large table."""
    if most is not None:
        monkeypatch.setattr(run, "MAX_CELLS", most)
        monkeypatch.setattr(run, "MIN_ROWS", 40)
    frame = mixed()
    rare = frame["ash"].cat.categories[-1]
    frame.loc[frame["ash"].eq(rare).to_numpy().nonzero()[0][5:], "ash"] = np.nan
    ensemble = prepared(frame)
    levels = [problem.levels[2].counts for problem in (ensemble.trials[1], ensemble.problems[1])]
    assert levels[0][-1] == levels[1][-1] == 5
    assert levels[0].sum() < levels[1].sum()
    assert most is None or 40 < ensemble.trials[1].shape[0] < 120


@pytest.mark.parametrize("draws", [7, 300])
def test_members_draw_in_proportion_to_their_weights_at_any_time(draws):
    posterior = nmd.sample(curve(), **QUICK | {"draws": draws})
    member = posterior.draws["member"].values[0]
    counts = np.bincount(member, minlength=len(SIZES))
    assert member.size == draws
    assert np.count_nonzero(counts) <= max(3, draws // 40)
    for stop in range(1, draws):
        so_far = np.bincount(member[:stop], minlength=len(SIZES))
        assert np.abs(so_far - stop * counts / draws).max() < 2.0


def test_members_with_groups_have_the_draws_of_repeated_rows():
    """In a generated table of twenty repeated rows, the member without groups has few draws."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(20, 8)), 10, axis=0) + 0.1 * rng.normal(size=(200, 8))
    posterior = nmd.sample(pd.DataFrame(X), rank=4, draws=120, random_state=0)
    assert (posterior.draws["member"] == 0).mean() < 0.1


def test_copies_begin_with_the_groups_of_the_ensemble(monkeypatch):
    """Rows of a group are alike when a chain of copies begins; those of random groups are not."""
    begun, tuned, X = [], joint_normal._tuned, curve()
    spy = lambda chain, *_: begun.append(chain.groups.labels.copy()) or tuned(chain, *_)  # noqa: E731
    monkeypatch.setattr(joint_normal, "_tuned", spy)
    nmd.sample(X, **QUICK)
    assert len(begun) == 1 + joint_normal.N_CHAINS
    for labels in begun[1:]:
        inside = X - X.groupby(labels).transform("mean")
        assert inside.var().sum() < 0.6 * X.var().sum()


def test_groups_that_are_asked_for_have_one_chain():
    posterior = nmd.sample(curve(), groups=3, **QUICK)
    assert posterior.draws.sizes["group"] == 3
    assert "member" not in posterior.draws


def test_members_are_tuned_with_some_rows_of_a_large_table(monkeypatch):
    """All rows are drawn: of a generated table, as well as by members tuned with all of them."""
    frame, whole = curve(600), curve(600).fillna(0)
    few = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.1)
    at = few.isna() & frame.notna()
    errors = []
    for most in (250_000, 800):
        monkeypatch.setattr(run, "MAX_CELLS", most)
        monkeypatch.setattr(run, "MIN_ROWS", 150)
        filled = nmd.impute(few, draws=40, random_state=0)
        errors.append(float(((filled - whole)[at] ** 2).mean().mean() ** 0.5))
    ensemble = prepared(few)
    assert ensemble.trials[0].shape[0] == 800 * 600 // few.notna().to_numpy().sum()
    assert ensemble.problems[0].shape[0] == 600
    assert errors[1] < 1.25 * errors[0] < whole.to_numpy().std()


def test_a_given_fit_starts_a_large_table(monkeypatch):
    monkeypatch.setattr(run, "MAX_CELLS", 400)
    frame = curve()
    fit = nmd.complete(frame, 2, alpha=1.0, random_state=0)
    assert nmd.sample(frame, 2, init=fit, **QUICK).draws.sizes["draw"] == QUICK["draws"]


def test_a_large_table_that_is_stopped_early_has_all_rows(monkeypatch):
    monkeypatch.setattr(run, "MAX_CELLS", 400)
    monkeypatch.setattr(run, "MIN_ROWS", 40)
    posterior = nmd.sample(mixed(), time_limit=1e-9, **QUICK)
    assert (posterior.stop_reason.code, len(posterior._draws)) == ("time_limit", 1)
    assert posterior.draws.sizes["row"] == 178
    assert np.isfinite(posterior.draws["W"]).all()


@pytest.mark.parametrize("number", [40, 41, 500])
def test_fewer_draws_have_each_member_in_its_proportion(number):
    posterior = nmd.sample(curve(), chains=2, **QUICK | {"draws": 200})
    of_all = posterior._draws
    fewer = of_all.evenly(number)
    for chain in range(2):
        before, after = (each.numbers["member"].reshape(2, -1)[chain] for each in (of_all, fewer))
        assert after.size == min(-(-number // 2), 200)
        counts = (np.bincount(each, minlength=len(SIZES)) / each.size for each in (before, after))
        assert np.abs(np.subtract(*counts)).max() < 1 / after.size + 1e-9
    H = of_all.H.reshape(2, 200, -1)
    kept = fewer.H.reshape(2, after.size, -1)
    assert all((kept[chain][:, None] == H[chain]).all(axis=2).any(axis=1).all() for chain in (0, 1))


def test_new_rows_have_the_draws_of_their_members():
    X = mixed().sample(frac=1, random_state=0)
    truth = load_wine(as_frame=True).frame.loc[X.index[130:], "flavanoids"]
    posterior = nmd.sample(X[:130], draws=120, random_state=0)
    new = X[130:].assign(flavanoids=np.nan)
    found = posterior.fold_in(new)
    assert found.draws["member"].identical(posterior.draws["member"])
    error, fewer = (
        np.sqrt(np.mean((p.impute(new)["flavanoids"] - truth) ** 2)) for p in (found, posterior)
    )
    assert fewer == pytest.approx(error, rel=0.15)
    again = nmd.impute(pd.concat([X[:130], new]), draws=120, random_state=0)["flavanoids"]
    assert error < 1.3 * np.sqrt(np.mean((again[130:] - truth) ** 2)) < 0.6 * truth.std()


# Groups of rows ---------------------------------------------------------------------------------


def test_new_rows_have_the_groups():
    """In a generated table with two groups of rows, in which columns relate in two ways."""
    rng = np.random.default_rng(2)
    a, sign = rng.normal(size=200), rng.choice([-1, 1], 200)
    truth = np.column_stack([a, sign * a, 3 * sign, 3 * sign, a]) + 0.1 * rng.normal(size=(200, 5))
    X = np.where(rng.random(truth.shape) < 0.15, np.nan, truth)
    posterior = nmd.sample(X[:150], 3, groups=3, draws=150, tune=100, random_state=0)
    new = np.where(np.arange(5) == 1, np.nan, truth[150:])
    found = posterior.fold_in(new).predict(np.arange(50), 1)
    assert nmd.metrics.rmse(truth[150:, 1], found) < 0.3

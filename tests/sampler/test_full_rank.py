"""Members of full rank: exact relations of columns, and their draws in the form of the others."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

import nmd_lab as nmd
from nmd_lab.sampler.chain import draw_of, linear_at, one_sweep
from nmd_lab.sampler.ensemble import with_rank
from nmd_lab.sampler.run import first_chain

from .test_ensemble import prepared


def answers(m=300, seed=0):
    """Return a generated survey: eight answers of three levels, two classes, and their score."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, (m, 8))
    frame = pd.DataFrame({f"q{j}": pd.Categorical(codes[:, j], ordered=True) for j in range(8)})
    frame["group"] = pd.Categorical(np.array(["a", "b", "c"])[rng.integers(0, 3, m)])
    return frame.assign(score=codes.sum(axis=1) + 0.0)


def after_sweeps(ensemble, k=0):
    trial, rng = ensemble.trials[k], np.random.default_rng(0)
    start = trial, ensemble.observations, ensemble.init(k, "auto"), rng
    state = first_chain(*start, tuning=3, n_groups=ensemble.sizes[k].groups)
    for _ in range(4):
        state = one_sweep(trial, state)
    return state


def test_an_answer_follows_from_the_score_as_in_regression():
    """No few components know that a column is the sum of eight others."""
    frame, hidden = answers(), np.random.default_rng(1).random(300) < 0.2
    seen, codes = frame.assign(q0=frame["q0"].mask(hidden)), frame["q0"].cat.codes.to_numpy()
    posterior = nmd.sample(seen, draws=80, random_state=0)
    expected = posterior.probabilities("q0").to_numpy()[hidden] @ np.arange(3)
    error = np.sqrt(np.mean((expected - codes[hidden]) ** 2))
    factors = nmd.sample(seen, 6, draws=80, random_state=0)
    of_factors = factors.probabilities("q0").to_numpy()[hidden] @ np.arange(3)
    others = seen.drop(columns=["q0", "group"]).astype(float)
    line = LinearRegression().fit(others[~hidden], codes[~hidden])
    assert np.abs(line.predict(others[hidden]) - codes[hidden]).max() < 1e-6
    assert error < 0.3
    assert error < 0.5 * np.sqrt(np.mean((of_factors - codes[hidden]) ** 2))


def test_cut_points_give_the_probabilities_of_numbers_with_normal_noise():
    """A level is what lies between the middles of its neighbours, in the units of the member."""
    ensemble = prepared(answers())
    full, state = ensemble.trials[0], after_sweeps(ensemble)
    before = state.columns.copy(), state.rho.copy()
    kept = ensemble.in_form(0, state)
    np.testing.assert_array_equal(state.columns, before[0])
    np.testing.assert_array_equal(state.rho, before[1])
    i, j = np.arange(20), np.full(20, 3)
    centre, size = full.units_of_kinds[3]
    mean = centre + size * linear_at(full, state, i, j)
    ends = np.array([-np.inf, 0.5, 1.5, np.inf])
    expected = np.diff(norm.cdf(ends, mean[:, None], size / np.sqrt(state.rho[3])))
    v = linear_at(ensemble.problem, kept, i, j)
    found = np.diff(norm.cdf(kept.ends[3], v[:, None]))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    numbers = linear_at(ensemble.problem, kept, i, np.full(20, 11))
    np.testing.assert_allclose(numbers, linear_at(full, state, i, np.full(20, 11)))


def test_added_components_change_no_prediction():
    ensemble = prepared(answers())
    draw = draw_of(ensemble.in_form(0, after_sweeps(ensemble)))
    rank = ensemble.problems[0].rank
    more = with_rank(draw, rank, 3)
    products = [
        each["rows"] @ each["columns"][:, :-1].T + each["columns"][:, -1] for each in (draw, more)
    ]
    np.testing.assert_allclose(*products, rtol=1e-6)
    assert more["row_means"].shape == (8, rank + 3)
    assert (np.linalg.slogdet(more["row_precisions"])[0] == 1).all()


@pytest.mark.parametrize(
    ("options", "has_some"),
    [({}, True), ({"rank": 4}, False), ({"init": "svd"}, False), ({"offsets": "both"}, False),
     ({"at_most": pd.DataFrame({name: name == "score" for name in answers()}, range(20))}, False)],
)  # fmt: skip
def test_some_members_are_of_full_rank_unless_something_else_is_asked_for(options, has_some):
    ensemble = prepared(answers(), **options)
    assert any(size.is_full for size in ensemble.sizes) == has_some
    assert ensemble.problem.rank == (12 if has_some else options.get("rank", 9))


def test_units_do_not_depend_on_the_hidden_cells():
    """A member goes on with all cells where it stood without the hidden ones."""
    ensemble = prepared(answers())
    for trial, problem in zip(ensemble.trials, ensemble.problems, strict=True):
        assert np.array_equal(trial.units_of_kinds, problem.units_of_kinds)
        assert trial.storage.n_entries < problem.storage.n_entries

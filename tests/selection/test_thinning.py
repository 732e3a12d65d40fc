"""The rank of sparse counts whose absent entries are zeros, by thinning."""

import numpy as np
import pytest
from helpers import NONNEGATIVE
from oracles import distance, forward
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.data.folds import thinned
from nmd_lab.data.inputs import observe
from nmd_lab.fit.held_out import row_losses
from nmd_lab.kernels import envelope as tiles
from nmd_lab.model.model import make_model

RANKS = {"validation": nmd.Choice(ranks=[1, 3])}


def counts(seed=0, m=200, n=120, rank=3, mean=1.0, dtype=float):
    """Return Poisson counts whose means have a rank; rank 0: all means are equal."""
    rng = np.random.default_rng(seed)
    means = rng.gamma(0.5, size=(m, rank)) @ rng.gamma(0.5, size=(rank, n)) if rank else np.ones(1)
    X = rng.poisson(np.broadcast_to(mean * means / means.mean(), (m, n)))
    return sparse.csr_array(X.astype(dtype))


def folds(X, seed=0):
    return thinned(observe(X, absent_are_zeros=True), np.random.default_rng(seed))


def dense(observations):
    return observations.to_csr().toarray()


def test_the_shares_of_a_fold_sum_to_the_counts():
    X = counts(mean=0.2)
    found = folds(X)
    assert len(found) > 1
    total = np.zeros(X.shape)
    for fold in found:
        share = dense(fold.held_out) / 9
        np.testing.assert_allclose(dense(fold.rest) + share, X.toarray(), atol=1e-12)
        total += share
        assert share.sum() == pytest.approx(0.1 * X.sum(), rel=0.2)
    assert (np.round(total) <= X.toarray()).all()  # no event is held out twice


def test_all_events_of_few_counts_are_held_out():
    X = counts(m=12, n=8)
    found = folds(X)
    assert len(found) == 10
    np.testing.assert_allclose(sum(dense(fold.held_out) for fold in found), 9 * X.toarray())
    fit = nmd.decompose(X, "auto", "relu", random_state=0)
    assert "entries could be held out" in fit.selection.attrs["note"]


def test_the_shares_of_poisson_counts_are_independent():
    X = counts(m=400, n=300, rank=0, mean=4.0)
    (fold,) = folds(X)
    rest, others = dense(fold.rest).ravel(), dense(fold.held_out).ravel()
    assert rest.mean() == pytest.approx(3.6, abs=0.02)
    assert others.mean() == pytest.approx(3.6, abs=0.06)
    assert (others / 9).var() == pytest.approx(0.4, rel=0.02)
    assert abs(np.corrcoef(rest, others)[0, 1]) < 4 / np.sqrt(rest.size)


@pytest.mark.parametrize(("f", "loss"), [("identity", "kl"), ("relu", "frobenius")])
def test_the_error_of_a_row_is_that_of_all_its_entries(f, loss, monkeypatch):
    monkeypatch.setattr(tiles, "ROWS", 4)
    monkeypatch.setattr(tiles, "ENTRIES", 30)
    X, rng = counts(m=23, n=31, mean=0.5), np.random.default_rng(1)
    W, H = rng.gamma(1, size=(23, 2)), rng.gamma(1, size=(2, 31))
    W = W if loss == "kl" else W - 1
    both = [observe(each, absent_are_zeros=True) for each in (X, counts(1, m=23, n=31, mean=0.5))]
    found = row_losses(*both, make_model(f, loss), W, H)
    Y = forward(f, W @ H)
    if loss == "kl":  # one more event in each row
        of_columns = dense(both[1]).sum(axis=0) + 0.5
        Y += of_columns / of_columns.sum()
    np.testing.assert_allclose(found, distance(loss, X.toarray(), Y).mean(axis=1))


@pytest.mark.parametrize(("f", "loss"), [("identity", "kl"), ("relu", "frobenius")])
def test_the_rank_of_the_means_is_found(f, loss):
    fits = [nmd.decompose(counts(seed), "auto", f, loss, random_state=seed) for seed in range(2)]
    assert [fit.rank for fit in fits] == [3, 3]
    trials = fits[0].selection
    assert trials.attrs["options"] == "rank"
    assert trials.attrs["held_out_drawn"] == "by thinning"
    assert trials["rank"].values.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.isfinite(trials["error"]).all()
    assert "rank 3 was chosen" in trials.attrs["sentence"]


@pytest.mark.parametrize("mean", [0.3, 1.0])
def test_counts_of_one_mean_have_rank_one(mean):
    for seed in range(3):
        fit = nmd.decompose(counts(seed, rank=0, mean=mean), "auto", "identity", "kl")
        assert fit.rank == 1


def test_the_chosen_arguments_repeat_the_fit_and_a_seed_the_choice():
    X = counts(dtype=np.float32)
    fit = nmd.decompose(X, "auto", "identity", "kl", **RANKS, random_state=0)
    assert fit.W.dtype == np.float32
    again = nmd.decompose(X, **fit.chosen, random_state=0)
    np.testing.assert_allclose(again.reconstruct(), fit.reconstruct(), rtol=1e-5)
    same = nmd.decompose(X, "auto", "identity", "kl", **RANKS, random_state=0)
    for name in ("rank", "error", "n_iter"):
        np.testing.assert_array_equal(same.selection[name], fit.selection[name])


def test_constraints_hold_in_trials_and_fit():
    fit = nmd.decompose(counts(), "auto", "identity", "kl", **NONNEGATIVE, **RANKS, random_state=0)
    assert fit.rank == 3
    assert min(fit.W.min(), fit.H.min()) >= 0
    assert fit.selection["rank"].values.tolist() == [1, 3]


def test_a_time_limit_ends_the_search_with_the_best_so_far():
    fit = nmd.decompose(counts(), "auto", "identity", "kl", time_limit=0.0, random_state=0)
    assert fit.rank == 1
    assert fit.selection.attrs["reason"].endswith("when the search was stopped")


def test_the_rank_of_words_is_not_decided_by_those_at_a_mean_of_0():
    """Each document has few of many words, so that held-out words are often new in it."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(8, 0.1), 300) @ rng.dirichlet(np.full(1000, 0.05), 8)
    X = sparse.csr_array(rng.poisson(50 * topics).astype(float))
    X = X[np.asarray(X.sum(axis=1)).ravel() > 0][:, np.asarray(X.sum(axis=0)).ravel() > 0]
    fit = nmd.decompose(X, "auto", "identity", "kl", **NONNEGATIVE, random_state=0)
    assert 6 <= fit.rank <= 10

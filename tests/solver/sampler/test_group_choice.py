"""Whether a table has groups of rows: cells hidden from short chains decide."""

import numpy as np
import pandas as pd

import nmd_lab as nmd

QUICK = {"draws": 2, "tune": 2, "random_state": 0}


def n_groups(posterior):
    return posterior.draws.sizes.get("group", 1)


def curve(m=200, seed=0):
    """Return a generated table of a curve, with holes."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, m)
    columns = [f(angle) for f in (np.cos, np.sin, lambda a: np.cos(2 * a), lambda a: np.sin(2 * a))]
    X = np.column_stack(columns) + 0.05 * rng.normal(size=(m, 4))
    return pd.DataFrame(np.where(rng.random(X.shape) < 0.1, np.nan, X), columns=list("abcd"))


def plane(m=60, seed=0):
    """Return a generated table of a linear model with one component and heavy tails."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(m, 1)) * np.ones(8) + 0.5 * rng.normal(size=(m, 8))
    return pd.DataFrame(X, columns=list("abcdefgh"))


def test_a_curve_has_groups():
    assert n_groups(nmd.sample(curve(), **QUICK)) == 8


def test_groups_that_predict_worse_are_left_out():
    chosen = [n_groups(nmd.sample(plane(seed=seed), **QUICK)) for seed in range(4)]
    assert min(chosen) == 1


def test_groups_that_are_asked_for_are_taken():
    assert n_groups(nmd.sample(plane(), groups=2, **QUICK)) == 2


def test_the_choice_repeats_and_leaves_the_seed_to_the_chains():
    X = curve()
    posteriors = [nmd.sample(X, groups=groups, **QUICK) for groups in ("auto", "auto", 8)]
    for other in posteriors[1:]:
        np.testing.assert_array_equal(posteriors[0].draws["W"], other.draws["W"])


def test_a_time_limit_holds_for_the_choice_too():
    posterior = nmd.sample(curve(), time_limit=1e-9, **QUICK)
    assert posterior.stop_reason.code == "time_limit"
    assert posterior._n_draws == 1

"""Levels and cut points are data of a kernel, not a part of its type."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from numba.core import event
from scipy.special import ndtri

import nmd_lab as nmd
from nmd_lab.losses import Ordinal
from nmd_lab.model.ordinal import MIN_GAP, best_cut_points


def answers(n_levels):
    """Return a table of a number and an answer with ordered levels, one of them missing."""
    rng = np.random.default_rng(n_levels)
    number = rng.normal(size=60)
    code = np.clip(np.round(number + n_levels / 2), 0, n_levels - 1).astype(int)
    code[3] = -1
    levels = pd.Categorical.from_codes(code, [*range(n_levels)], ordered=True)
    return pd.DataFrame({"number": number, "answer": levels, "other": number + rng.normal(size=60)})


def test_other_levels_and_kinds_of_columns_compile_nothing():
    def imputed(X):
        return nmd.complete(X, 1, alpha=0.1, max_iter=30).impute(X)

    def decided(X):
        return X.assign(other=X["number"] > 0)

    yes, whole = decided(answers(3)), decided(answers(3)).drop(columns="answer")
    for X in (answers(3), yes, whole):  # with holes and without
        imputed(X)
    others = [answers(4), decided(answers(7)), yes.loc[:, ::-1], whole.assign(more=yes["other"])]
    with event.install_recorder("numba:compile") as compiled:
        for X in others:
            assert imputed(X).notna().all(axis=None)
    assert compiled.buffer == []


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
def test_a_copy_has_numbers_of_its_own(copied):
    loss = Ordinal([1, 2, 3, 4], cut_points=[-1.0, 0.0, 2.0])
    other = copied(loss)
    x, y = np.repeat([1.0, 2.0, 3.0, 4.0], 3), np.tile([-1.5, 0.1, 2.5], 4)
    expected = loss(x, y)
    assert other.numbers[1] != loss.numbers[1]
    del loss
    np.testing.assert_array_equal(other(x, y), expected)
    chances = other.probabilities(y)[np.arange(12), other.codes(x)]
    np.testing.assert_allclose(expected, -np.log(chances))


def test_cut_points_of_a_level_that_was_absent_are_found():
    codes, y = np.random.default_rng(0).integers(4, size=400), np.zeros(400)
    ties = np.array([-0.5, -0.5 + MIN_GAP, 0.6])
    cuts = best_cut_points(codes, y, np.ones(400), ties)
    below = np.searchsorted(np.sort(codes), [1, 2, 3]) / codes.size
    np.testing.assert_allclose(cuts, ndtri(below), atol=1e-4)

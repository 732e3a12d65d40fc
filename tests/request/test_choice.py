"""`Choice`: what it is, what it refuses, and that one object stands for every `validation`."""

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold

import nmd_lab as nmd

X = np.random.default_rng(0).normal(size=(20, 3)) @ np.random.default_rng(1).normal(size=(3, 12))
MASK = np.random.default_rng(2).random(X.shape) < 0.1
VALUES = np.where(MASK, X, np.nan)
KEPT = {"alpha": 0.1, "max_iter": 3, "random_state": 0}


def test_candidates_ascend_and_the_object_is_frozen():
    choice = nmd.Choice(ranks=[4, 1, 4], alphas=np.array([1.0, 0.1]))
    assert (choice.ranks, choice.alphas) == ((1, 4), (0.1, 1.0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        choice.ranks = (2,)


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (nmd.Choice(), "Choice()"),
        (nmd.Choice(splitter="blocks"), "Choice(splitter='blocks')"),
        (nmd.Choice(splitter=MASK), "Choice(splitter=given ndarray)"),
        (nmd.Choice(splitter=[MASK, MASK]), "Choice(splitter=2 given)"),
    ],
)
def test_its_text_is_short(choice, text):
    assert repr(choice) == text


def test_copies_and_estimators_keep_it():
    choice = nmd.Choice(ranks=[1, 2], splitter=GroupKFold(2), groups=np.arange(20) % 4)
    for other in (copy.deepcopy(choice), pickle.loads(pickle.dumps(choice))):
        assert repr(other) == repr(choice)
    model = nmd.MatrixCompletion(validation=choice, random_state=0)
    assert model.get_params()["validation"] is choice
    assert clone(model).get_params()["validation"].ranks == (1, 2)
    assert "validation=Choice" in repr(model)
    assert clone(model).fit(X).n_components_ in (1, 2)


def test_batches_after_the_first_choose_nothing():
    model = nmd.MatrixCompletion(validation=nmd.Choice(ranks=[1, 2], metric="mae"), random_state=0)
    model.partial_fit(X[:15])
    rank = model.n_components_
    assert model.partial_fit(X[15:]).n_components_ == rank


@pytest.mark.parametrize(
    "validation", [0.2, VALUES, sparse.csr_array(np.nan_to_num(VALUES)), MASK, None]
)
def test_what_validation_takes_is_read_into_the_same_object(validation):
    given = nmd.complete(X, 2, validation=validation, **KEPT)
    by_object = nmd.complete(X, 2, validation=nmd.Choice(splitter=validation), **KEPT)
    np.testing.assert_array_equal(given.W, by_object.W)
    assert given.parameters["validation"] == by_object.parameters["validation"]


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (nmd.Choice(splitter=0.2), 0.2),
        (MASK, "given ndarray"),
        (nmd.Choice(ranks=[1, 2], metric="mae"), "Choice(ranks=(1, 2), metric='mae')"),
        (KFold(3), f"Choice(splitter={KFold(3)!r})"),
    ],
)
def test_saved_fits_keep_it_as_plain_text_or_number(choice, text, read_back):
    fit = nmd.complete(X, alpha=0.1, validation=choice, max_iter=3, random_state=0)
    again = read_back(fit).parameters["validation"]
    assert again == fit.parameters["validation"] == json.loads(json.dumps(text))


def test_noise_has_a_rank_that_may_be_chosen_and_hopeless_trials_do_not_tie():
    noise = np.random.default_rng(0).normal(size=(60, 15))
    fit = nmd.complete(noise, validation=nmd.Choice(ranks=[3, 7]), random_state=0)
    assert fit.rank in (3, 7)
    rng = np.random.default_rng(0)
    low = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(30, 8))
    table = nmd.complete(10 * low, random_state=0).selection
    assert not table["tied"].values[table["error"].values > 3 * table["error"].values.min()].any()

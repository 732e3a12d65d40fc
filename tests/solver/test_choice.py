"""`Choice`: what it is, what it refuses, and that one object stands for every `validation`."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

import nmd_lab as nmd
from nmd_lab.solver.choice import as_choice
from nmd_lab.solver.selection.trials import Trials

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
        (nmd.Choice(ranks=range(1, 4), metric="mae"), "Choice(ranks=(1, 2, 3), metric='mae')"),
        (nmd.Choice(splitter=0.2), "Choice(splitter=0.2)"),
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
def test_saved_fits_keep_it_as_plain_text_or_number(choice, text, tmp_path):
    fit = nmd.complete(X, alpha=0.1, validation=choice, max_iter=3, random_state=0)
    fit.save(tmp_path / "fit.nc")
    again = nmd.load(tmp_path / "fit.nc").parameters["validation"]
    assert again == fit.parameters["validation"] == json.loads(json.dumps(text))


BAD = {
    "ranks of zero": ({"ranks": [0]}, r"^ranks=0 is too small: give a whole number >= 1\.$"),
    "ranks of text": ({"ranks": "auto"}, "^ranks='auto' is no sequence: give a list of numbers"),
    "one rank": ({"ranks": 3}, "^ranks=3 is no sequence: give a list"),
    "no rank": ({"ranks": []}, r"^ranks=\[\] is empty: give at least one number"),
    "fractions": ({"ranks": [1.5]}, r"^ranks=1\.5 is not an integer"),
    "negative ridge": ({"alphas": [-1]}, "^alphas=-1 is out of range: give a finite number >= 0"),
    "metric": ({"metric": "rsme"}, "^metric='rsme' is unknown: did you mean 'rmse'"),
    "share": ({"splitter": 1.5}, r"^splitter=1\.5 is out of range: give a share above 0"),
    "share of True": ({"splitter": True}, "^splitter=True is not a number: give a share"),
    "word": ({"splitter": "block"}, "^splitter='block' is unknown: did you mean 'blocks'"),
    "class": ({"splitter": KFold}, "^splitter=KFold is a class: give an object of it"),
    "masks of values": ({"splitter": [MASK, X]}, "^splitter has a matrix that is no mask at posit"),
    "groups alone": ({"groups": "a"}, "^groups= does not go with splitter=None: give a splitter"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_values_are_refused_in_one_sentence(case):
    arguments, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        nmd.Choice(**arguments)


REFUSED = {
    "a rank, too": ({"ranks": [1, 2]}, {"rank": 2}, r"^ranks=\[1, 2\] of nmd\.Choice are for ra"),
    "a ridge, too": ({"alphas": [1]}, {"alpha": 0.1}, r"^alphas=\[1\.0\] .* alpha=0\.1 is given"),
    "large ranks": ({"ranks": [1, 13]}, {}, r"^ranks=\[1, 13\] has 13, which exceeds"),
    "nothing open": ({"metric": "mae"}, {"rank": 2, "alpha": 0.1}, "has nothing to choose, since"),
    "no likelihood": (
        {"metric": "log_score"},
        {"loss": nmd.losses.Huber(1.0)},
        "^metric='log_score' needs a likelihood, which loss=Huber",
    ),
    "no holes": ({"splitter": "blocks"}, {}, "^splitter='blocks' moves the holes of X, which has"),
    "no groups": ({"splitter": GroupKFold(2)}, {}, r"cannot split the 20 rows .*: give groups=\.$"),
    "many splits": ({"splitter": TimeSeriesSplit(30)}, {}, "cannot split the 20 rows of X"),
    "shape": ({"splitter": MASK[:3]}, {}, r"^validation has shape \(3, 12\): give it the shape of"),
    "empty mask": ({"splitter": MASK & False}, {}, "^validation holds out no observed entry of X"),
    "second mask": ({"splitter": [MASK, MASK | True]}, {}, r"^splitter\[1\] holds out every obser"),
    "groups of columns": (
        {"splitter": GroupKFold(2), "groups": np.arange(12)},
        {},
        r"^groups has shape \(12,\): give a label for each of the 20 rows\.$",
    ),
    "groups with a hole": (
        {"splitter": GroupKFold(2), "groups": np.where(np.arange(20) == 4, np.nan, 1.0)},
        {},
        "^groups has no label for row 4: give one to each row",
    ),
    "groups with NA": (
        {"splitter": GroupKFold(2), "groups": pd.Series(["a", None] * 10, dtype="string")},
        {},
        "^groups has no label for row 1: give one to each row",
    ),
    "no split": ({"splitter": PredefinedSplit([-1] * 20)}, {}, "holds out nothing|no entry"),
    "no y": (
        {"splitter": StratifiedKFold(2, shuffle=True)},
        {},
        r"^splitter=StratifiedKFold\(n_splits=2, random_state=None, shuffle=True\) cannot split",
    ),
    "unknown name": (
        {"splitter": GroupKFold(2), "groups": "patient"},
        {},
        "^groups='patient' is no column, index level or coordinate of the rows of X",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_suit_a_call_is_refused_before_any_work(case, monkeypatch):
    monkeypatch.setattr(Trials, "run", None)
    choice, others, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        nmd.complete(X, validation=nmd.Choice(**choice), **others)


def test_a_word_or_splitter_may_stand_alone():
    assert as_choice("blocks").splitter == "blocks"
    splitter = KFold(3)
    assert as_choice(splitter).splitter is splitter
    assert as_choice(None).describe() is None


def test_a_mask_of_some_labels_says_which_one_it_lacks():
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(20)])
    mask = pd.DataFrame(MASK, index=frame.index).iloc[:15]
    with pytest.raises(ValueError, match=r"^validation lacks the label 'r15' of X: give a mask"):
        nmd.complete(frame, 1, alpha=0.1, validation=mask)


def test_noise_has_a_rank_that_may_be_chosen_and_hopeless_trials_do_not_tie():
    noise = np.random.default_rng(0).normal(size=(60, 15))
    fit = nmd.complete(noise, validation=nmd.Choice(ranks=[3, 7]), random_state=0)
    assert fit.rank in (3, 7)
    rng = np.random.default_rng(0)
    low = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(30, 8))
    table = nmd.complete(10 * low, random_state=0).selection
    assert not table["tied"].values[table["error"].values > 3 * table["error"].values.min()].any()

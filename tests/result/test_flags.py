"""What should worry about a fit is said where its condition holds, and only there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from chosen import selection, trials, with_selection

import nmd_lab
from nmd_lab._runtime.progress import StopReason
from nmd_lab.result.summary import flags_of, unfinished
from nmd_lab.warnings import NotConvergedWarning


@pytest.fixture
def plain(small):
    return nmd_lab.decompose(small, 3, alpha=0.5, max_iter=10, tol=0, random_state=5)


def chosen(plain, **about):
    return with_selection(plain, selection(trials([4, 8], [3]), **about))


def test_a_good_fit_has_none(plain):
    assert flags_of(plain) == []
    assert flags_of(chosen(plain, offsets_alone=2.75, error_where_seen=2.0, note="")) == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("time_limit", "time limit"),
        ("interrupted", "Interrupted"),
        ("not finite", "not finite"),
        ("converged", None),
        ("validation", None),
    ],
)
def test_how_it_stopped(code, words, plain):
    flags = flags_of(replace(plain, stop_reason=StopReason(code, "text")))
    assert len(flags) == (words is not None)
    assert all(words in flag for flag in flags)


def test_it_warns_of_what_the_warning_of_the_fit_warns(small, recwarn):
    for max_iter in (5, 3000):
        recwarn.clear()
        fit = nmd_lab.decompose(small, 4, "relu", max_iter=max_iter, random_state=0)
        warned = any(each.category is NotConvergedWarning for each in recwarn)
        assert warned == (unfinished(fit) > 0) == (max_iter == 5)
        assert any("Not converged" in flag for flag in flags_of(fit)) == warned


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"offsets_alone": 2.5}, "Offsets alone are as good (2.5)"),
        ({"offsets_alone": 2.51}, None),
        ({"error_where_seen": 0.62}, "Overfits: 0.62 off where seen, 2.5 held out."),
        ({"error_where_seen": 0.63}, None),
        ({"reason": "the lowest held-out error when the search was stopped"}, "search was stopped"),
    ],
)
def test_what_the_choice_knows(about, words, plain):
    flags = flags_of(chosen(plain, **about))
    assert len(flags) == (words is not None)
    assert all(words in flag for flag in flags)


def test_each_note_of_the_choice_is_a_flag(rng):
    X = np.outer(rng.normal(size=30), rng.normal(size=20)) + 0.1 * rng.normal(size=(30, 20))
    few = nmd_lab.complete(X[:12, :9], nonlinearity="identity", random_state=0)
    assert few.selection.held_out_entries < 500
    assert sum(flag.startswith("Only ") for flag in flags_of(few)) == 1
    many = nmd_lab.complete(X, nonlinearity="identity", random_state=0)
    assert many.selection.held_out_entries >= 500
    assert not any(flag.startswith("Only ") for flag in flags_of(many))


def test_notes_are_split_at_sentences_not_at_points(plain):
    note = (
        "Only 60 entries could be held out: by 0.5 per cent. Rank 8 is the largest that is tried."
    )
    assert flags_of(chosen(plain, note=note)) == [
        "Only 60 entries could be held out: by 0.5 per cent.",
        "Rank 8 is the largest that is tried.",
    ]

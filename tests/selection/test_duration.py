"""The duration of a choice is printed before it, if that is long."""

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.selection import choice as duration


@pytest.fixture
def long(monkeypatch):
    """Let every choice count as long."""
    monkeypatch.setattr(duration, "MIN_SECONDS_TOLD", 0.0)


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 12)) + 0.3 * rng.normal(size=(30, 12))
    return np.where(rng.random(X.shape) < 0.2, np.nan, X)


def test_a_long_choice_is_announced_once(long, capsys):
    nmd.complete(table(), random_state=0)
    said = capsys.readouterr().err
    assert said.count("The choice of settings takes about") == 1
    assert "time_limit=" in said


def test_a_short_choice_and_one_without_progress_say_nothing(monkeypatch, capsys):
    monkeypatch.setattr(duration, "MIN_SECONDS_TOLD", 1e9)
    nmd.complete(table(), random_state=0)
    monkeypatch.setattr(duration, "MIN_SECONDS_TOLD", 0.0)
    nmd.complete(table(), random_state=0, progress=False)
    assert capsys.readouterr().err == ""


def test_the_bar_of_a_choice_counts_its_trials_and_says_how_long_it_takes(long, capsys):
    fit = nmd.complete(table(), random_state=0, progress=True)
    said = capsys.readouterr().err
    assert f"{fit.selection.sizes['trial']}trial" in said
    assert "in all" in said
    assert "The choice of settings" not in said


def test_a_time_limit_bounds_what_is_said(monkeypatch, capsys):
    monkeypatch.setattr(duration, "N_FULL_ITERATIONS", 1e9)
    monkeypatch.setattr(duration, "MIN_SECONDS_TOLD", 1.0)
    nmd.complete(table(), random_state=0, time_limit=120.0)
    assert "takes about 60 s;" in capsys.readouterr().err  # half of the limit is for the choice

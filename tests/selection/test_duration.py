"""The duration of a choice is printed before it, if that is long."""

import numpy as np

import nmd_lab as nmd
from nmd_lab.selection import choice as duration


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 12)) + 0.3 * rng.normal(size=(30, 12))
    return np.where(rng.random(X.shape) < 0.2, np.nan, X)


def said(monkeypatch, capsys, least=0.0, **options):
    """Return a fit and what is printed, if a choice of so many seconds counts as long."""
    monkeypatch.setattr(duration, "MIN_SECONDS_TOLD", least)
    fit = nmd.complete(table(), random_state=0, **options)
    return fit, capsys.readouterr().err


def test_a_long_choice_is_announced_once_or_by_a_bar_and_a_short_one_never(monkeypatch, capsys):
    text = said(monkeypatch, capsys)[1]
    assert text.count("The choice of settings takes about") == 1
    assert "time_limit=" in text
    assert said(monkeypatch, capsys, least=1e9)[1] == ""
    assert said(monkeypatch, capsys, progress=False)[1] == ""
    fit, text = said(monkeypatch, capsys, progress=True)
    assert f"{fit.selection.sizes['trial']}trial" in text
    assert "in all" in text
    assert "The choice of settings" not in text


def test_a_time_limit_bounds_what_is_said(monkeypatch, capsys):
    monkeypatch.setattr(duration, "N_FULL_ITERATIONS", 1e9)
    text = said(monkeypatch, capsys, least=1.0, time_limit=120.0)[1]
    assert "takes about 60 s;" in text  # half of the limit is for the choice

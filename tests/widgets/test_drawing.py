"""What the page draws the plane with: the numbers give the values of the model for a real row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from explorer_page import act, done, plain

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.model.fitted_values import NO_OFFSETS, FittedValues
from nmd_lab.model.model import make_model
from nmd_lab.widgets import pictures
from nmd_lab.widgets.pictures import drawing_part, frame_of


def drawn(sent, k):
    """Return what the page draws for the row at position k, in the order of the pixels."""
    rank = sent["rank"]
    W = np.frombuffer(sent["W"], "<f4").reshape(-1, rank)
    H = np.frombuffer(sent["H"], "<f4").reshape(rank, -1)
    table = np.frombuffer(sent["table"], "<f4")
    return np.interp(W[k] @ H, np.linspace(sent["low"], sent["high"], table.size), table)


def decoded(sent):
    """Return the data of all rows as the page has them."""
    codes = np.frombuffer(sent["data"]["codes"], np.uint8).astype(float)
    low, high = sent["data"]["low"], sent["data"]["high"]
    return np.where(codes == 255, np.nan, low + codes / 254 * (high - low))


def digits(**settings):
    return done(plain(widgets.explore, datasets.digits(40), **{"iterations": 20} | settings))


def test_a_row_is_drawn_as_the_model_has_it():
    explorer = digits()
    expected = explorer.result.reconstruct().values
    for k in (0, 17):
        np.testing.assert_allclose(drawn(explorer.drawing, k), expected[k].ravel(), atol=1e-3)


@pytest.mark.parametrize(
    "name",
    ["identity", "minmax", "square", "modulus", "leaky_relu", "soft_threshold",
     "absolute_offset", "monotone", "sigmoid", "softplus", "exp", "tanh", "power"],
)  # fmt: skip
def test_every_f_is_drawn(name):
    draws = np.random.default_rng(0)
    W, H = draws.normal(size=(20, 3)), draws.normal(size=(3, 9))
    fitted = FittedValues(W, H, NO_OFFSETS, make_model(name, "frobenius"))
    sent = drawing_part(fitted, [], frame_of((20, 9), None), np.arange(20), None)
    expected = fitted.block()
    for k in range(20):
        np.testing.assert_allclose(drawn(sent, k), expected[k], atol=1e-3 * np.ptp(expected))


def test_offsets_are_added():
    X = np.random.default_rng(0).normal(3.0, 1.0, (30, 12)) + np.arange(12)
    fit = nmd.decompose(X, rank=2, nonlinearity="identity", offsets="both", alpha=0.1)
    explorer = widgets.explore(fit)
    expected = fit.reconstruct().values
    np.testing.assert_allclose(drawn(explorer.drawing, 4), expected[4], atol=1e-3)
    assert (explorer.drawing["height"], explorer.drawing["width"]) == (1, 12)
    assert explorer.drawing["data"] is None


def test_the_data_are_sent_in_bytes_with_their_holes():
    X = datasets.digits(40).copy()
    X[3, 5] = np.nan
    explorer = done(plain(widgets.explore, X, iterations=5))
    data = decoded(explorer.drawing).reshape(40, -1)
    np.testing.assert_allclose(data, X.values.reshape(40, -1), atol=1 / 254)


def test_a_component_that_is_off_is_not_drawn():
    explorer = digits()
    act(explorer, "component", k=1, what="off")
    expected = explorer.state.fit.state.fitted.without([1]).block([3])
    np.testing.assert_allclose(drawn(explorer.drawing, 3), expected.ravel(), atol=1e-3)


def test_nothing_is_sent_again_while_the_fit_stays():
    explorer, sent = digits(), []
    explorer.observe(sent.append, "drawing")
    act(explorer, "lasso", rows=[1, 2])
    act(explorer, "plane", a=1, b=2)
    assert sent == []


def test_wide_rows_and_columns_of_several_kinds_are_not_drawn(monkeypatch):
    mixed = pd.DataFrame({"a": np.arange(30.0), "b": list("xyz") * 10, "c": np.arange(30) % 2 == 0})
    assert done(widgets.explore(mixed, rank=2, iterations=5)).drawing is None
    monkeypatch.setattr(pictures, "MOST_COLUMNS", 63)
    assert digits().drawing is None

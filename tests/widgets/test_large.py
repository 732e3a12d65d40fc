"""Data that are too large for a page: the part that is explored, and what the page says of it."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from explorer_page import COLOUR, GREY, acted, done, executed, painted, picture, repeats, sentence
from helpers import people, with_holes
from PIL import Image

import nmd_lab as nmd
from nmd_lab import widgets
from nmd_lab.inpainting import similar_patches
from nmd_lab.widgets import background, given, pictures

QUICK = {"rank": 1, "alpha": 0.5, "nonlinearity": "identity", "iterations": 5}


@pytest.fixture(autouse=True)
def limits(monkeypatch):
    """Call small data large."""
    limits = {"MAX_ENTRIES": 1000, "ENTRIES": 400, "MIN_ROWS": 50, "MAX_PIXELS": 2000}
    for name, limit in limits.items():
        monkeypatch.setattr(given, name, limit)


def test_a_long_table_is_fitted_from_a_sample_of_its_rows(tmp_path):
    df = with_holes(people(300)[["cm", "dose", "town"]].reset_index(drop=True), 0.05)
    df = df.assign(id=np.arange(1, 301))
    before, explorer = df.copy(), done(widgets.explore(df, **QUICK))
    rows = df.sample(100, random_state=0).sort_index()
    known = 100 * rows[["cm", "dose", "town"]].notna().to_numpy().mean()
    assert sentence(explorer).startswith(f"100 of 300 rows × 3 columns, {known:.0f} % known: ")
    assert "left out: id (all different)" in sentence(explorer)  # by all of them
    assert explorer.grid["total"] == 100
    np.testing.assert_array_equal(explorer.result.W.indexes["row"], rows.index)
    repeats(explorer, df=df)
    exec(explorer.state.code("X"), names := {"X": df})
    exec(explorer.state.code("X"), names)  # the cell may run twice
    np.testing.assert_array_equal(names["fit"].W, explorer.result.W)
    filled = pd.read_csv(explorer.save(tmp_path / "filled.csv"))
    np.testing.assert_array_equal(filled["id"], rows["id"])
    assert filled.notna().to_numpy().all()
    known = rows["cm"].notna().to_numpy()
    np.testing.assert_allclose(filled["cm"][known], rows["cm"][known])
    pd.testing.assert_frame_equal(df, before)


@pytest.mark.parametrize("labelled", [False, True])
def test_a_long_matrix_is_fitted_from_a_sample_of_its_rows(labelled):
    X = np.random.default_rng(0).random((500, 4))
    X = xr.DataArray(X, dims=("case", "number")) if labelled else X
    explorer = done(widgets.explore(X, **QUICK))
    assert sentence(explorer).startswith("100 of 500 rows × 4 columns: ")
    assert explorer.result.W.shape == (100, 1)
    repeats(explorer, data=X)
    shown = np.sort(picture(explorer, "original")[0, :, 1, 0])
    assert np.isin(shown, np.asarray(X, np.float32)[:, 1]).all()
    assert np.unique(shown).size == 100


def test_images_in_rows_are_a_sample_of_them_and_a_wide_matrix_is_whole():
    images = xr.DataArray(np.random.default_rng(0).random((200, 4, 5)), dims=("n", "y", "x"))
    explorer = done(widgets.explore(images, **QUICK))
    assert sentence(explorer).startswith("50 of 200 images of 4 × 5: ")
    repeats(explorer, photos=images)
    wide = widgets.explore(np.random.default_rng(0).random((20, 300)), **QUICK)
    assert sentence(wide) == "a matrix of 20 × 300"


def test_a_quarter_of_the_pixels_is_filled_first_and_all_by_a_click():
    X, explorer = GREY, done(widgets.explore(GREY, groups=2))
    words = "1 in 4 pixels of a photograph of 80 × 100: "
    assert sentence(explorer).startswith(words)
    assert sentence(explorer).endswith("\nall take about 4 times as long fill all pixels")
    seen = np.random.default_rng(0).random((40, 50)) >= 0.1
    expected = nmd.inpaint(X[::2, ::2], seen, method="complete", groups=2, random_state=0)
    xr.testing.assert_identical(explorer.result, expected)
    names = {"X": X}
    for _ in range(2):  # the cell may run twice
        exec(explorer.state.code("X"), names)
        xr.testing.assert_identical(names["filled"], expected)
    acted(explorer, "take")
    assert sentence(explorer).startswith("a photograph of 80 × 100: ")
    assert explorer.result["picture"].shape == X.shape


def test_the_code_of_a_large_picture_in_a_file_takes_a_part_of_its_pixels(tmp_path):
    Image.fromarray(COLOUR).save(tmp_path / "roof.png")
    explorer = done(widgets.explore(tmp_path / "roof.png", groups=2))
    xr.testing.assert_identical(executed(explorer.code())["filled"], explorer.result)


def test_a_large_photograph_as_a_matrix_has_as_few_pixels():
    explorer = done(widgets.explore(COLOUR / 255, **QUICK))
    assert sentence(explorer).startswith("1 in 4 pixels of a photograph of 80 × 100: ")
    assert explorer.result.W.shape == (40, 1)
    repeats(explorer, photo=COLOUR / 255)


def test_pixels_that_the_model_does_not_see_are_drawn_as_often_as_there_are(monkeypatch):
    monkeypatch.setattr(pictures, "MAX_PIXELS", 20)  # each is the mean of 3 x 3
    explorer = widgets.explore(GREY, groups=2)
    painted(explorer, [(7, 7)])
    seen = picture(explorer, "seen")[0, ..., 0]
    assert seen.shape == (14, 17)
    np.testing.assert_array_equal(np.isnan(seen), ~explorer.state.mask[::3, ::3])
    assert np.isnan(seen[6:9, 6:9]).all()
    assert 0.05 < np.isnan(seen).mean() < 0.5
    assert not np.isnan(picture(explorer, "original")).any()


def test_the_status_of_a_filling_has_one_number_that_rises(monkeypatch):
    monkeypatch.setattr(similar_patches, "N_CORNERS", 20)
    for pause in ("INTERVAL", "PAUSE"):
        monkeypatch.setattr(background, pause, 0.0)
    explorer, heard = widgets.explore(GREY, groups=2), []
    explorer.observe(lambda change: heard.append(change.new["message"]), "status")

    def percents(words):
        found = [re.search(rf"{words}: (\d+) %$", each) for each in heard]
        return [int(each[1]) for each in found if each]

    done(explorer)
    assert percents("filling") == sorted(percents("filling"))
    assert len(set(percents("filling"))) > 3
    heard.clear()
    painted(explorer, [(20, 20)], 6, rain=True)
    again = "filled by the groups so far; all of it follows"
    assert percents(again) == sorted(percents(again))
    assert len(set(percents(again))) > 3
    assert not any("similar" in each for each in heard)


@pytest.mark.parametrize("shape", [(2000, 10), (9, 1999), (700, 1300)])
def test_a_pixel_of_a_matrix_with_many_rows_or_columns_is_the_mean_of_its_entries(shape):
    X = np.random.default_rng(0).normal(size=shape)
    X[1, 1] = np.nan
    frame = pictures.frame_of(shape, None)
    step, (m, n) = frame.step, shape
    blocks = [[X[i : i + step, j : j + step] for j in range(0, n, step)] for i in range(0, m, step)]
    expected = [[np.nanmean(block) for block in line] for line in blocks]
    assert step > 1
    np.testing.assert_allclose(pictures.at(frame, X), expected)

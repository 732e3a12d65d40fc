"""A fit in short: its one number, what should worry about it, where it comes from, its page in a
notebook, the small picture of its model there, and the trials from which it was chosen."""

import base64
import copy
import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from chosen import selection, trials, with_selection
from helpers import given
from PIL import Image
from scipy import sparse

import nmd_lab
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.labels import picture_of
from nmd_lab.result.files import result_of
from nmd_lab.result.summary import HEIGHT, WIDTH, flags_of, headline_of, small_picture, unfinished
from nmd_lab.warnings import NotConvergedWarning


@pytest.fixture
def chosen_fit(plain):
    """Return a fit with 24 trials; trial 4 did not finish, trial 14 (rank 8, alpha 3) is chosen."""
    rows = trials([2, 4, 8, 16, 32, 64], [0.3, 1, 3, 10])
    rows[4] |= {"error": float("nan"), "spread": float("nan"), "n_iter": 1}
    return with_selection(plain, selection(rows[:20], 10))


def test_the_trials_are_a_table_whose_attributes_say_how_and_why(chosen_fit):
    table, rows = chosen_fit.selection, chosen_fit.parameters["selection"]["trials"]
    assert table.sizes == {"trial": 20}
    numbers_and_text = list(nmd_lab.result.selection.VARIABLES)
    assert list(table.data_vars) == [*numbers_and_text, "tied"]
    for name in numbers_and_text:
        expected = pytest.approx([row[name] for row in rows], nan_ok=True)
        assert table[name].values.tolist() == expected
    kinds = {name: table[name].dtype.kind for name in table.data_vars}
    assert kinds == {"nonlinearity": "U", "loss": "U", "rank": "i", "alpha": "f", "offsets": "U",
                     "offset_alpha": "f", "error": "f", "spread": "f", "n_iter": "i",
                     "seconds": "f", "tied": "b"}  # fmt: skip
    assert int(table["rank"][table.attrs["chosen"]]) == 8
    table["error"][:] = 0.0  # it is its own
    assert chosen_fit.selection["error"].min() == 2.5
    assert table.attrs == {
        "chosen": 10,
        "reason": "the smallest rank whose error is within one standard error of the lowest",
        "measure": "root mean squared error",
        "held_out_entries": 7900,
        "held_out_parts": 1,
        "held_out_drawn": "at random",
        "options": "rank, alpha, offset_alpha, offsets, nonlinearity",
        "sentence": (
            "Of 20 trials, rank 8 and ridge alpha 3 were chosen, with a root mean squared error "
            "of 2.5 at 7900 held-out entries; no other rank that was tried is as good."
        ),
    }


def tied(plain, ranks, alphas, spreads, **others):
    """Return the table of trials with other spreads."""
    rows = trials(ranks, alphas)
    for row, spread in zip(rows, spreads, strict=True):
        row["spread"] = spread
    return with_selection(plain, selection(rows, **others)).selection


def test_what_cannot_be_told_from_the_lowest_error_is_tied(plain):
    ranks = [2, 4, 8, 16]  # their errors exceed the lowest by .25, .125, 0 and .125
    table = tied(plain, ranks, [3], [0.2, 0.13, 0.0, 0.2])
    assert table["tied"].values.tolist() == [False, True, True, True]
    assert "; ranks 4 and 16 are as good, as far as these entries can tell." in table.sentence
    one = tied(plain, ranks, [3], [0.2, 0.13, 0.0, 0.1])
    assert "; rank 4 is as good, as far as these entries can tell." in one.sentence
    unknown = tied(plain, ranks, [3], [np.nan, np.nan, 0.0, 0.1])
    assert unknown["tied"].values.tolist() == [False, False, True, False]


def test_the_sentence_names_what_was_chosen(plain):
    alphas = [1, 3, 10]
    alone = tied(plain, [8], alphas, [1.0, 0, 0.0], options=["alpha", "loss"])
    assert alone.sentence == (
        "Of 3 trials, ridge alpha 3 was chosen, with a root mean squared error of 2.5 at 7900 "
        "held-out entries; alpha 1 is as good, as far as these entries can tell."
    )
    f_alone = tied(plain, [8], alphas, [0.0] * 3, options=["nonlinearity"])
    assert "Of 3 trials, MinMax(0, 16) was chosen, with a" in f_alone.sentence
    assert f_alone.sentence.endswith("held-out entries.")
    many = tied(plain, range(4, 16), [3], [9.0] * 12)
    assert "; ranks 4 to 15 are as good" in many.sentence


def test_without_a_choice_the_table_is_empty(plain):
    assert plain.selection.sizes == {"trial": 0}
    assert plain.selection["error"].size == 0
    assert plain.selection.attrs == {}
    assert "chosen" not in repr(plain)
    assert "Trials" not in plain._repr_html_()


def test_what_a_trial_lacks_is_nan_or_no_text(plain):
    rows = trials([2], [1, 3])
    rows[0]["offset_alpha"] = None
    del rows[0]["offsets"], rows[0]["n_iter"]
    table = with_selection(plain, selection(rows)).selection
    np.testing.assert_array_equal(table["offset_alpha"], [np.nan, 1.5])
    np.testing.assert_array_equal(table["n_iter"], [np.nan, 7])
    assert table["offsets"].values.tolist() == ["", "both"]


def test_the_trials_survive(chosen_fit, read_back):
    others = {
        "file": read_back(chosen_fit),
        "dataset": result_of(chosen_fit._to_dataset()),
        "rotation": chosen_fit.rotate("svd"),
        "rows": chosen_fit.append(chosen_fit.W.isel({chosen_fit.W.dims[0]: [0]})),
        "copy": copy.deepcopy(chosen_fit),
    }
    for name, other in others.items():
        xr.testing.assert_identical(other.selection, chosen_fit.selection)
        assert other.selection.attrs == chosen_fit.selection.attrs, name
    assert np.isnan(others["file"].selection["error"][4])


def test_the_summary_says_what_was_chosen(plain):
    rows = trials([4, 8], [1, 3])
    text = repr(with_selection(plain, selection(rows)))
    seconds = sum(row["seconds"] for row in rows)
    tried = f"of 4 trials in {seconds:.2g} s"
    what = "rank 8, alpha 3, offset_alpha 1.5, offsets both, MinMax(0, 16)"
    assert f"  chosen: {what}; {tried}\n" in text
    assert text.endswith("\n  held-out error: 2.5, the lowest or as good, at 7900 entries")
    assert "s after the choice" in text
    of_two = selection(rows, options=["alpha", "loss"], offsets_alone=2.75)
    some = repr(with_selection(plain, of_two))
    assert f"  chosen: alpha 3, loss frobenius; {tried}\n" in some
    assert some.endswith("at 7900 entries; offsets alone 2.75")


def test_html_shows_the_best_trials_folded(chosen_fit):
    title, details = "Trials: the best of 20", ET.fromstring(chosen_fit._repr_html_())
    (folded,) = (d for d in details.iter("details") if d.find("summary").text.startswith(title))
    lines, text = next(folded.iter("table")).iter("tr"), "".join(folded.itertext())
    head, *rows = [["".join(cell.itertext()) for cell in line.iter("td")] for line in lines]
    assert head == ["rank", "alpha", "offset_alpha", "error", "spread", "n_iter", "seconds", ""]
    assert len(rows) == 8
    assert rows[0] == ["8", "3", "1.5", "2.5", "0", "13", "0.8", "chosen"]
    assert [row[-1] for row in rows[1:]] == [""] * 7
    errors = [float(row[3]) for row in rows]
    assert errors == sorted(errors)
    assert "root mean squared error of 7900 held-out entries (at random)" in text
    assert "chosenthe smallest rank" in text


def test_html_is_escaped(chosen_fit):
    evil = selection(trials([2, 4], [1.0], nonlinearity="<b>&"), reason="<script>")
    text = "".join(ET.fromstring(with_selection(chosen_fit, evil)._repr_html_()).itertext())
    assert "<script>" in text
    assert "<b>&" in text


@pytest.fixture
def fit(small):
    X = xr.DataArray(small, dims=("<b>rows</b>", 'a"b&c'))
    return nmd_lab.decompose(X, 3, given("minmax"), max_iter=300, tol=0, random_state=5)


def test_a_chosen_fit_has_the_error_of_its_trial_and_that_of_offsets_alone(plain):
    fit = with_selection(plain, selection(trials([4, 8], [3]), offsets_alone=2.75))
    found = headline_of(fit)
    assert float(found["value"]) == float(fit.selection["error"][fit.selection.chosen]) == 2.5
    assert found["text"] == "RMSE at 7900 held-out entries"
    assert found["rivals"] == "· offsets alone 2.75"
    assert headline_of(with_selection(plain, selection(trials([8], [3]))))["rivals"] == ""


def test_early_stopping_holds_out_too(small):
    fit = nmd_lab.decompose(small, 3, validation=0.2, max_iter=30, random_state=0)
    at = fit.history.validation_rmse.sel(iteration=fit.parameters["iteration"])
    assert headline_of(fit)["value"] == f"{float(at):.2g}"


def test_a_real_choice_knows_its_rival_and_the_error_where_seen(rng):
    X = np.outer(rng.normal(size=60), rng.normal(size=40)) + 0.1 * rng.normal(size=(60, 40))
    fit = nmd_lab.complete(X, nonlinearity="identity", random_state=0)
    about = fit.selection.attrs
    errors = fit.selection["error"].values
    assert errors[about["chosen"]] < 0.2 < 0.8 < about["offsets_alone"]
    assert about["offsets_alone"] in errors
    residual = X - fit.reconstruct().values
    assert about["error_where_seen"] == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-6)


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
        ({"offsets_alone": 2.75, "error_where_seen": 2.0, "note": ""}, None),
        (None, None),  # nothing was chosen
        ("time_limit", "time limit"),
        ("interrupted", "Interrupted"),
        ("not finite", "not finite"),
        ("converged", None),
        ("validation", None),
    ],
)
def test_what_may_be_wrong_with_a_fit_is_said(about, words, plain):
    """What the choice knows, or the code by which the fit stopped."""
    if isinstance(about, str):
        fit = replace(plain, stop_reason=StopReason(about, "text"))
    else:
        chosen = None if about is None else selection(trials([4, 8], [3]), **about)
        fit = plain if chosen is None else with_selection(plain, chosen)
    flags = flags_of(fit)
    assert len(flags) == (words is not None)
    assert all(words in flag for flag in flags)


def test_html_is_well_formed_and_says_what_the_fit_is(fit):
    lead, *_ = root = ET.fromstring(fit._repr_html_())
    number = f"{fit.relative_error:.2g} relative error where seen, nothing is held out"
    assert "".join(lead.itertext()).strip() == number
    text = "".join(root.itertext())
    both = ("<b>rows</b>: 20", 'a"b&c: 15', "component: 3", "MinMax(0, 1)", "frobenius",
            fit.stop_reason, "300 of 300")  # fmt: skip
    others = ("nmd_lab.Decomposition", f"{fit.relative_error:.4g}", "random_state", "rho", "auto",
              nmd_lab.__version__)  # fmt: skip
    for part in (*both, *others):
        assert part in text, part
    for part in (*both, "iterations: 300 in"):
        assert part in repr(fit), part
    assert not [*root.iter("b"), *root.iter("script")]
    assert [d.find("summary").text for d in root.iter("details")] == ["Details", "Parameters"]
    image = root.find(".//img")  # a PNG of a size that pages do not change
    assert image.attrib["alt"] == "model"
    assert "width: 72px; height: 96px" in image.attrib["style"]
    content = base64.b64decode(image.attrib["src"].split(",")[1])
    assert Image.open(io.BytesIO(content)).size == (15, 20)


def test_a_chosen_fit_shows_the_sentence_and_the_errors_by_rank(fit):
    chosen = with_selection(fit, selection(trials([2, 4, 8, 16], [1, 3])))
    root = ET.fromstring(chosen._repr_html_())
    text = "".join(root.itertext())
    assert chosen.selection.sentence in text
    assert "held-out error 2.75 → 2.5, rank 2 to 16, ring at 8" in text
    assert len(root.findall(".//circle")) == 4 + 1
    heights = [float(p.split(",")[1]) for p in root.find(".//polyline").attrib["points"].split()]
    assert np.argmax(heights) == 2


# What a fit says of its data -------------------------------------------------------------------


def test_provenance(small):
    one = nmd_lab.decompose(small, 3, max_iter=5, random_state=3)
    two = nmd_lab.decompose(small + 1e-12, 3, max_iter=5)
    assert one.parameters["random_state"] == 3
    assert one.parameters["shape"] == [20, 15]
    assert one.parameters["dtype"] == "float64"
    assert one.parameters["observations_hash"] != two.parameters["observations_hash"]
    assert one.parameters["versions"]["nmd_lab"] == nmd_lab.__version__
    labelled = nmd_lab.decompose(pd.DataFrame(small), 3, max_iter=5)
    assert labelled.parameters["observations_hash"] == one.parameters["observations_hash"]


def test_the_hash_of_sparse_data_knows_what_absent_means(small):
    X = sparse.csr_array(small)
    zeros = nmd_lab.decompose(X, 2, max_iter=2).parameters["observations_hash"]
    missing = nmd_lab.complete(X, 2, alpha=0, max_iter=2).parameters["observations_hash"]
    assert zeros != missing
    assert missing == nmd_lab.complete(X.tocoo(), 2, alpha=0).parameters["observations_hash"]


# Small pictures of models -------------------------------------------------------------------------


def of(matrix, columns=None, **options):
    columns = xr.DataArray(np.zeros(matrix.shape[1]), dims="column") if columns is None else columns
    return small_picture(len(matrix), columns, lambda i, j: matrix[np.ix_(i, j)], **options)


def test_a_small_matrix_is_shown_as_it_is_and_a_large_one_by_means(rng):
    matrix = rng.random((7, 5))
    np.testing.assert_array_equal(of(matrix), matrix)
    for shape in ((500, 700), (3, 10_000), (100_000, 1), (81, 121)):
        shown = of(np.broadcast_to(2.5, shape))
        assert shown.shape[0] <= HEIGHT
        assert shown.shape[1] <= WIDTH
        assert np.all(shown == 2.5)


def test_north_is_up_in_a_picture_of_places_with_falling_latitudes():
    at = {"lat": ("place", [30, 30, 10, 10]), "lon": ("place", [1, 2, 1, 2])}
    places = xr.DataArray([0.0, 1.0, 2.0, 3.0], dims="place", coords=at)
    assert picture_of(places, None)(places.values).tolist() == [[0, 1], [2, 3]]


def test_rows_that_are_pictures_stand_side_by_side():
    X = nmd_lab.datasets.digits(40)
    shown = of(X.values, X[0])
    assert shown.shape == (3 * 9 - 1, 8 * 9 - 1)
    np.testing.assert_array_equal(shown[:8, :8], X.values[0].reshape(8, 8))
    assert np.isnan(shown[8]).all()

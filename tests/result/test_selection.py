"""How a fit shows and keeps the trials from which its options were chosen."""

import copy
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import xarray as xr
from chosen import selection, trials, with_selection

import nmd_lab
from nmd_lab.result.files import result_of

UNFINISHED = {"error": float("nan"), "spread": float("nan"), "n_iter": 1}


@pytest.fixture
def fit(plain):
    """Return a fit with 24 trials; trial 4 did not finish, trial 14 (rank 8, alpha 3) is chosen."""
    rows = trials([2, 4, 8, 16, 32, 64], [0.3, 1, 3, 10])
    rows[4] |= UNFINISHED
    return with_selection(plain, selection(rows[:20], 10))


def test_the_trials_are_a_table_whose_attributes_say_how_and_why(fit):
    table, rows = fit.selection, fit.parameters["selection"]["trials"]
    assert table.sizes == {"trial": 20}
    numbers_and_text = list(nmd_lab.result.selection.VARIABLES)
    assert list(table.data_vars) == [*numbers_and_text, "tied"]
    for name in numbers_and_text:
        assert table[name].values.tolist() == pytest.approx(
            [row[name] for row in rows], nan_ok=True
        )
    kinds = {name: table[name].dtype.kind for name in table.data_vars}
    assert kinds == {"nonlinearity": "U", "loss": "U", "rank": "i", "alpha": "f", "offsets": "U",
                     "offset_alpha": "f", "error": "f", "spread": "f", "n_iter": "i",
                     "seconds": "f", "tied": "b"}  # fmt: skip
    assert int(table["rank"][table.attrs["chosen"]]) == 8
    table["error"][:] = 0.0  # it is its own
    assert fit.selection["error"].min() == 2.5
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


def test_the_trials_survive(fit, read_back):
    others = {
        "file": read_back(fit),
        "dataset": result_of(fit._to_dataset()),
        "rotation": fit.rotate("svd"),
        "rows": fit.append(fit.W.isel({fit.W.dims[0]: [0]})),
        "copy": copy.deepcopy(fit),
    }
    for name, other in others.items():
        xr.testing.assert_identical(other.selection, fit.selection)
        assert other.selection.attrs == fit.selection.attrs, name
    assert np.isnan(others["file"].selection["error"][4])


def test_the_summary_says_what_was_chosen(plain):
    rows = trials([4, 8], [1, 3])
    text = repr(with_selection(plain, selection(rows)))
    seconds = sum(row["seconds"] for row in rows)
    tried = f"of 4 trials in {seconds:.2g} s"
    assert (
        f"  chosen: rank 8, alpha 3, offset_alpha 1.5, offsets both, MinMax(0, 16); {tried}\n"
        in text
    )
    assert text.endswith("\n  held-out error: 2.5, the lowest or as good, at 7900 entries")
    assert "s after the choice" in text
    some = repr(
        with_selection(plain, selection(rows, options=["alpha", "loss"], offsets_alone=2.75))
    )
    assert f"  chosen: alpha 3, loss frobenius; {tried}\n" in some
    assert some.endswith("at 7900 entries; offsets alone 2.75")


def test_html_shows_the_best_trials_folded(fit):
    details, title = ET.fromstring(fit._repr_html_()).iter("details"), "Trials: the best of 20"
    (folded,) = (each for each in details if each.find("summary").text.startswith(title))
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


def test_html_is_escaped(fit):
    evil = selection(trials([2, 4], [1.0], nonlinearity="<b>&"), reason="<script>")
    text = "".join(ET.fromstring(with_selection(fit, evil)._repr_html_()).itertext())
    assert "<script>" in text
    assert "<b>&" in text

"""`sample` of tables whose columns are of several kinds, from outside."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from people import people, with_holes

import nmd_lab as nmd

QUICK = {"draws": 20, "tune": 10, "random_state": 0, "progress": False}
pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NotConvergedWarning")


def test_holes_are_filled_better_than_by_the_column_alone(full, frame, posterior):
    hidden = frame.isna().to_numpy()
    guess, x = posterior.reconstruct().to_pandas()["dose"], full["dose"]
    assert np.std((guess - x)[frame["dose"].isna()]) < 0.6 * np.std(x)
    for name, least in (("smokes", 0.7), ("mood", 0.6), ("town", 0.6), ("sex", 0.8)):
        at = hidden[:, full.columns.get_loc(name)]
        p = posterior.probabilities(name)
        assert list(p.index) == list(frame.index)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
        chosen = p.idxmax(axis=1)
        assert np.mean((chosen == full[name])[at]) > least


def test_intervals_have_the_units_of_their_column_and_hold_what_was_hidden(full, frame, posterior):
    for name in ("kg", "visits"):
        rows = frame.index[frame[name].isna()]
        low, high = posterior.predict_interval(rows, name).T
        x = full.loc[rows, name].astype(float)
        assert 0.75 <= np.mean((low <= x) & (x <= high)) <= 1
        sd = posterior.predict_std(rows, name)
        assert np.all((high - low > 2 * sd) & (high - low < 5 * sd))
        assert posterior.probability(rows[0], name, above=low[0])[0] == pytest.approx(
            0.95, abs=0.01
        )
    levels = posterior.predict_interval(0, ["smokes", "mood", "town=Ulm"])
    assert np.isin(levels, [0, 1, 2]).all()
    assert np.isfinite(posterior.log_density(frame.iloc[:9])).all()


def test_what_is_shown(frame, posterior):
    """The kinds are those of the columns, not of the indicators that the sampler has for them."""
    text = repr(posterior)
    assert "a model for each column, 3 with a learned f" in text
    assert ("1 binary ('smokes'), 1 ordinal ('mood'), 2 categorical ('town', 'sex')") in text
    assert "1 ordinal (" in posterior._repr_html_()
    few = repr(nmd.sample(frame[["kg", "cm", "town"]], 1, **QUICK))
    assert "ordinal" not in few
    assert "1 categorical ('town')" in few


def test_an_unseen_class_of_a_new_row_is_missing(posterior):
    new = with_holes(people(2, seed=7), 0.3)
    unseen = new.iloc[:2].assign(town=pd.Categorical(["Rom", None]))
    with pytest.warns(nmd.warnings.NMDWarning, match=r"\['Rom'\] in column 'town'") as caught:
        rows = posterior.fold_in(unseen)
    assert len(caught) == 1
    xr.testing.assert_equal(rows.draws, posterior.fold_in(unseen.assign(town=None)).draws)
    with pytest.warns(nmd.warnings.NMDWarning, match="'Rom'"):
        towns = rows.impute(unseen)["town"]
    assert towns.iloc[0] == "Rom"
    assert set(towns.cat.categories) == {"Rom", towns.iloc[1]}
    assert towns.iloc[1] == rows.probabilities("town").iloc[1].idxmax()


@pytest.mark.parametrize(("missing", "noise"), [(0.3, ("clipped",) * 8), (0.7, "gaussian")])
def test_a_frame_has_noise_by_column_where_most_of_it_is_observed(missing, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1)) * np.ones(8) + 0.3 * rng.normal(size=(30, 8))
    holed = pd.DataFrame(np.where(rng.random(X.shape) < missing, np.nan, X))
    assert nmd.sample(holed, **QUICK).noise == noise

"""Studies of tables of several kinds, with weights and with limits.

Hidden entries and noise: their number and places, the same for all methods and levels.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from helpers import people, stored, with_holes

import nmd_lab as nmd
from nmd_lab.studies.known_entries import HIDE, Corruption, hidden_entries, noisy_values
from nmd_lab.studies.known_entries import read_known_entries as known

ONE = nmd.Compute(threads=1)


@pytest.fixture(scope="module")
def frame():
    """Return a table of every kind with some holes."""
    table = people(60)[["cm", "dose", "smokes", "mood", "town"]]
    return with_holes(table.rename(columns={"cm": "kg", "smokes": "yes"}), 0.1)


@pytest.fixture(scope="module")
def study(frame):
    study = nmd.Study(
        frame, method=["admm", "sample", "mean_fill"], rank=2, alpha=1, max_iter=15, tol=0,
        draws=20, tune=10, n_splits=1, missing=0.3,
    )  # fmt: skip
    study.run(progress=False)
    return study


def errors_by_hand(frame, X, numbers, classes):
    """Return the errors of predicted numbers and most probable classes at hidden cells."""
    hidden = frame.notna() & X.isna()
    squares, wrong = [], []
    for name in ("kg", "dose"):
        at = hidden[name]
        squares.append(((numbers[name][at] - frame[name][at]) / frame[name].std(ddof=0)) ** 2)
    for name in ("yes", "town"):
        wrong.append((classes[name] != frame[name])[hidden[name]])
    levels = classes["mood"].astype(frame["mood"].dtype).cat.codes - frame["mood"].cat.codes
    return {
        "held_out_rmse": np.sqrt(pd.concat(squares).mean()),
        "held_out_misclassified": pd.concat(wrong).mean(),
        "held_out_level_error": levels[hidden["mood"]].abs().mean(),
    }


def test_errors_are_those_of_filled_cells(frame, study):
    cell, results = study.cell(algorithm="admm"), study.results.sel(algorithm="admm", seed=0)
    assert cell.arguments == {
        "rank": 2, "alpha": 1, "max_iter": 15, "tol": 0, "random_state": 0, "compute": ONE
    }  # fmt: skip
    assert cell.X.dtypes.equals(frame.dtypes)
    assert cell.X.notna().sum().sum() == pytest.approx(0.7 * frame.notna().sum().sum(), rel=0.05)
    pd.testing.assert_frame_equal(cell.X, frame.where(cell.X.notna()))
    filled = nmd.complete(cell.X, **cell.arguments).impute(cell.X)
    for name, expected in errors_by_hand(frame, cell.X, filled, filled).items():
        assert float(results[name]) == pytest.approx(expected, rel=1e-9)


def test_a_posterior_has_intervals_of_numbers_alone(frame, study):
    cell, results = study.cell(algorithm="sample"), study.results.sel(algorithm="sample", seed=0)
    posterior = nmd.sample(cell.X, **cell.arguments)
    numbers = posterior.reconstruct().to_pandas()
    names = ("yes", "mood", "town")
    classes = {name: posterior.probabilities(name).idxmax(axis=1) for name in names}
    for name, expected in errors_by_hand(frame, cell.X, numbers, classes).items():
        assert float(results[name]) == pytest.approx(expected, rel=1e-6)
    inside, density = [], []
    for name in ("kg", "dose"):
        rows = frame.index[frame[name].notna() & cell.X[name].isna()]
        x = frame.loc[rows, name]
        low, high = posterior.predict_interval(rows, name).T
        inside.append((low <= x) & (x <= high))
        of_units = posterior.log_density(rows, name, x) + np.log(frame[name].std(ddof=0))
        density.append(pd.Series(of_units))
    assert float(results.held_out_coverage_90) == pytest.approx(pd.concat(inside).mean())
    assert float(results.held_out_log_density) == pytest.approx(pd.concat(density).mean())


def test_methods_for_numbers_get_columns_in_standard_deviations(study):
    X = study.cell(algorithm="mean_fill").X
    assert list(X.columns) == ["kg", "dose", "yes", "mood", "town=Ulm", "town=Bonn", "town=Köln"]
    np.testing.assert_allclose(X.std(ddof=0), 1, atol=0.3)
    # so a mean of all is close to that of each column
    error = study.results.held_out_rmse.sel(algorithm="mean_fill").item()
    assert error == pytest.approx(1, abs=0.2)


def test_an_error_of_classes_can_choose_the_best(study):
    assert "fraction of wrong classes" in study.results.held_out_misclassified.attrs["long_name"]
    assert study.best("misclassified").parameters["algorithm"] in ("admm", "sample")
    table = nmd.Study(study.cell(algorithm="admm").X[["yes", "town"]], method="mean_fill")
    assert np.isfinite(table.run(progress=False).held_out_misclassified).all()
    assert "held_out_rmse" not in table.results
    assert table.best().parameters == {}


@pytest.mark.parametrize("kind", [kind for kind in HIDE if kind != "by_value"])
def test_a_cell_is_hidden_as_a_whole(kind, frame):
    data = known(frame)
    hidden = hidden_entries(data, Corruption(kind, 0.4), 0)
    rows, columns, _ = data.entries
    cells = hidden[columns <= 4]  # the first indicator of a category is its cell
    assert cells.mean() == pytest.approx(0.4, abs=0.1)
    is_town = columns >= 4
    towns = pd.Series(hidden[is_town]).groupby(rows[is_town]).nunique()
    assert (towns == 1).all()
    if kind == "columns":
        by_column = pd.Series(hidden).groupby(columns).mean()
        assert set(by_column) == {0, 1}
        assert by_column[:5].sum() == 2
    if kind == "random":
        most = hidden_entries(data, Corruption(kind, 0.6), 0)
        assert len(np.unique(rows[~most])) == len(np.unique(rows))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"noise": {"gaussian": 0.1}}, r"noise=\{'gaussian': 0.1\} is for numbers"),
     ({"missing": {"random": 0.1, "by_value": 0.2}}, r"missing=\{'by_value': 0.2\} is for")],
)  # fmt: skip
def test_classes_have_neither_noise_nor_an_order(arguments, message, frame):
    with pytest.raises(ValueError, match=message):
        nmd.Study(frame, rank=2, **arguments)
    nmd.Study(frame[["kg", "dose"]], rank=2, **arguments)


def test_weights_of_cells_count_in_all_errors(frame):
    weights = np.random.default_rng(0).uniform(0, 2, frame.shape)
    study = nmd.Study(frame, method="mean_fill", weights=weights, n_splits=1)
    results, cell = study.run(progress=False), study.cell()
    assert cell.arguments["weights"].shape == cell.X.shape == (60, 7)
    rows, columns, x = (each[cell.hidden] for each in cell.data.entries)
    model = cell.predict(cell.fit())[cell.hidden]
    w = weights[rows, np.minimum(columns, 4)]
    at = columns < 2
    spread = frame[["kg", "dose"]].std(ddof=0).to_numpy()[columns[at]]
    squares = ((model - x)[at] / spread) ** 2
    expected = np.sqrt(np.average(squares, weights=w[at]))
    assert results.held_out_rmse.item() == pytest.approx(expected)
    levels = columns == 3
    distance = np.abs(np.rint(model) - x)[levels]
    expected = np.average(distance, weights=w[levels])
    assert results.held_out_level_error.item() == pytest.approx(expected)


def test_weights_and_limits_of_every_form():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 2)) @ rng.normal(size=(2, 20)) + 3
    X[rng.random(X.shape) < 0.3] = np.nan
    weights = rng.uniform(0.5, 2, X.shape)
    weights[3, :5] = 0
    limits = {"at_most": ~np.isnan(X) & (weights > 0) & (rng.random(X.shape) < 0.1)}
    at, options = ~np.isnan(X), {
        "method": ["admm", "soft_impute"], "rank": 2, "alpha": 0.1, "max_iter": 15, "tol": 0,
        "nonlinearity": "identity", "n_splits": 1,
        "solver": nmd.ADMM(split="observed", limit_noise=0.3),
    }  # fmt: skip
    thin = stored(X)
    dense = nmd.Study(X, weights=weights, **limits, **options)
    results = dense.run(progress=False)
    others = nmd.Study(thin, weights=weights, **limits, **options).run(progress=False)
    for name in ("held_out_rmse", "observed_mae", "objective"):
        of_both = [each[name].sel(algorithm="admm") for each in (results, others)]
        np.testing.assert_allclose(*of_both, rtol=1e-7)
    cell = dense.cell(algorithm="admm")
    visible, limited = ~np.isnan(cell.X), limits["at_most"]
    np.testing.assert_array_equal(cell.X[limited], X[limited])  # never hidden
    hidden, exact = (at & each & (weights > 0) for each in (~visible, ~limited))
    assert hidden.sum() == pytest.approx(0.2 * exact.sum(), rel=0.1)
    model = nmd.complete(cell.X, **cell.arguments).reconstruct().values
    for entry_set, of_set in (("held_out", hidden), ("observed", visible & ~limited)):
        squares = (model - X)[of_set] ** 2
        expected = np.sqrt(np.average(squares, weights=weights[of_set]))
        found = results[f"{entry_set}_rmse"].sel(algorithm="admm").item()
        assert found == pytest.approx(expected, rel=1e-9)
    assert cell.arguments["weights"] is weights
    assert "at_most" not in dense.cell(algorithm="soft_impute").arguments


FACES = nmd.datasets.digits(80)


@pytest.fixture(scope="module")
def known_faces():
    X = FACES.copy()
    X.values[np.random.default_rng(5).random(X.shape) < 0.2] = np.nan
    return known(X)


@pytest.mark.parametrize("kind", HIDE)
@pytest.mark.parametrize("pictures", [False, True])
def test_shares_are_kept_and_nested(kind, pictures, known_faces):
    known_faces = known_faces if pictures else known(known_faces.observations.to_array())
    assert (known_faces.picture is not None) == pictures
    masks = [
        hidden_entries(known_faces, Corruption(kind, share), 3) for share in (0, 0.1, 0.3, 0.8)
    ]
    assert not masks[0].any()
    for share, mask in zip((0.1, 0.3, 0.8), masks[1:], strict=True):
        assert mask.mean() == pytest.approx(share, abs=0.05)
    for fewer, more in itertools.pairwise(masks):
        assert not (fewer & ~more).any()
    other = hidden_entries(known_faces, Corruption(kind, 0.3), 4)
    again = hidden_entries(known_faces, Corruption(kind, 0.3), 3)
    assert (other != masks[2]).any()
    np.testing.assert_array_equal(again, masks[2])


@pytest.mark.parametrize("kind", ["random", "by_value"])
def test_each_row_and_column_keeps_an_entry(kind, known_faces):
    kept = ~hidden_entries(known_faces, Corruption(kind, 0.95), 0)
    (rows, columns, _), (m, n) = known_faces.entries, known_faces.observations.shape
    # 80 rows and 64 columns need at least 80 entries; 5 % are 205
    assert len(np.unique(rows[kept])) == m
    assert len(np.unique(columns[kept])) == n


def test_rows_and_columns_are_whole(known_faces):
    for axis, kind in enumerate(("rows", "columns")):
        indices = known_faces.entries[axis]
        hidden = hidden_entries(known_faces, Corruption(kind, 0.25), 0)
        assert not set(indices[hidden]) & set(indices[~hidden])
        assert len(set(indices[hidden])) == round(0.25 * known_faces.observations.shape[axis])


def test_blocks_are_patches_of_each_picture():
    hidden = hidden_entries(known(FACES), Corruption("blocks", 0.2), 0).reshape(-1, 8, 8)
    for holes in hidden:
        # every hidden pixel is in a hidden patch of 2 x 2
        patches = holes[:-1, :-1] & holes[1:, :-1] & holes[:-1, 1:] & holes[1:, 1:]
        covered = np.zeros((8, 8), bool)
        for i, j in np.argwhere(patches):
            covered[i : i + 2, j : j + 2] = True
        np.testing.assert_array_equal(covered, holes)
    assert len({holes.tobytes() for holes in hidden}) > 70
    study = nmd.Study(FACES.values, rank=2, missing={"blocks": 0.2}, shape=(8, 8))
    np.testing.assert_array_equal(study.cell(seed=0).hidden.reshape(-1, 8, 8), hidden)
    # a photograph is one picture
    photo = known(np.ones((40, 60)))
    holes = hidden_entries(photo, Corruption("blocks", 0.3), 0).reshape(40, 60)
    runs = np.diff(np.flatnonzero(np.diff(np.pad(holes, 1).astype(int).ravel())))[::2]
    assert runs.min() >= 10


def test_large_values_go_missing_more(known_faces):
    hidden = hidden_entries(known_faces, Corruption("by_value", 0.3), 0)
    values = known_faces.entries.values
    ranks = np.argsort(np.argsort(values + 1e-9 * np.random.default_rng(0).random(values.size)))
    lower, upper = (hidden[(ranks < values.size / 2) == half].mean() for half in (True, False))
    # chances in proportion to the rank: 1 to 3 for few, less for a third
    assert 2 < upper / lower < 3


def test_noise_is_that_of_the_data_sets_with_the_same_numbers_at_each_level():
    known_faces = known(FACES)
    x = known_faces.entries.values
    clean, half, gaussian = (
        noisy_values(known_faces, Corruption("gaussian", size), 0) - x for size in (0, 0.1, 0.2)
    )
    assert not clean.any()
    assert gaussian.std() == pytest.approx(0.2, rel=0.05)
    np.testing.assert_allclose(2 * half, gaussian, atol=1e-12)
    for kind, amount in (("salt_and_pepper", 0.4), ("poisson", 50)):
        noise, of_set = Corruption(kind, amount), getattr(nmd.datasets, kind)
        noisy = noisy_values(known_faces, noise, 0)
        np.testing.assert_array_equal(noisy, of_set(x, amount, random_state=noise.generator(0)))
    outliers = noisy_values(known_faces, Corruption("outliers", 0.05), 0) - x
    assert (outliers != 0).mean() == pytest.approx(0.05, abs=0.01)
    assert outliers[outliers != 0].std() == pytest.approx(5 * x.std(), rel=0.15)


def test_all_methods_and_arguments_get_the_same_data():
    study = nmd.Study(
        FACES, method=["admm", "svd"], rank=[2, 5], loss=["l1", "kl"], noise={"outliers": 0.1}
    )
    first = study.cell(algorithm="admm", rank=2, loss="l1", seed=1).X
    for labels in ({"algorithm": "svd"}, {"rank": 5}, {"loss": "kl"}):
        cell = study.cell(**({"algorithm": "admm", "rank": 2, "loss": "l1", "seed": 1} | labels))
        assert first.identical(cell.X)
    assert not first.identical(study.cell(algorithm="admm", rank=2, loss="l1", seed=2).X)
    # ... whatever else the grid holds
    other = nmd.Study(FACES, rank=2, noise={"gaussian": 1, "outliers": 0.1}, random_state=1)
    assert first.identical(other.cell(noise="outliers 0.1", seed=1).X)

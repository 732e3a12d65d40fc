"""What a problem asks of its loss, losses for each column, and the bounds of MinMax."""

import functools

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.data.labels import valid_range
from nmd_lab.data.observations import BLOCK
from nmd_lab.model.model import make_model
from nmd_lab.problem.columns import mixed_model
from nmd_lab.problem.problem import Problem

ROWS = np.random.default_rng(0).random((3, BLOCK)) + 0.5
ROWS[1, ::7] = np.nan


class Cubic(nmd.losses.Loss):
    """A loss of the user's own, whose reference is a sum."""

    name = "cubic"
    reference_is_sum = True

    def reference(self, x, weights):
        sizes.append(x.size)
        return float(np.sum(weights * np.abs(x) ** 3))


class Largest(nmd.L1):
    """A loss whose reference is no sum, though that of its base is one."""

    def reference(self, x, weights):
        sizes.append(x.size)
        return float(np.max(weights * np.abs(x)))


sizes: list[int] = []
"""How many entries each call got."""


def reference_for(loss):
    return Problem(observe(ROWS), make_model("identity", loss)).reference


@pytest.mark.parametrize(
    ("loss", "expected"), [(Cubic(), np.nansum(ROWS**3)), (Largest(), np.nanmax(ROWS))]
)
def test_only_a_sum_gets_the_entries_in_blocks(loss, expected):
    sizes.clear()
    assert reference_for(loss) == pytest.approx(expected, rel=1e-12)
    assert sum(sizes) == np.count_nonzero(~np.isnan(ROWS))
    assert (max(sizes) <= BLOCK) == loss.reference_is_sum


def test_a_subclass_without_a_reference_of_its_own_inherits_the_claim():
    class Same(nmd.Frobenius):
        """Nothing of its own."""

    assert Same.reference_is_sum
    assert not nmd.KL.reference_is_sum
    assert reference_for(Same()) == reference_for(nmd.Frobenius())


def table(m=40):
    """Return numbers of two kinds, 0/1 and counts, with missing cells."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(m, 3)) * [10, 8, 900] + [170, 70, 3000]
    columns = {"height": z[:, 0], "weight": z[:, 1], "smoker": (rng.random(m) < 0.4) * 1.0}
    X = pd.DataFrame(columns | {"visits": rng.poisson(2.0, m) * 1.0, "income": z[:, 2]})
    return X.mask(rng.random(X.shape) < 0.2)


def test_zero_stands_for_the_best_constant():
    X, losses = table(), {"smoker": "logistic", "visits": "kl", "income": "l1"}
    model = mixed_model({"visits": "exp"}, losses, observe(X))
    constants = model.expected(np.zeros(5), columns=np.arange(5))
    X = X.to_numpy()
    for j in (0, 1, 2, 3):  # the mean is best for squares, probabilities and counts
        assert constants[j] == pytest.approx(np.nanmean(X[:, j]), rel=1e-5)
    found, best = (np.nansum(np.abs(X[:, 4] - c)) for c in (constants[4], np.nanmedian(X[:, 4])))
    assert found == pytest.approx(best, rel=1e-5)


def test_positions_of_entries_are_positions_of_columns():
    X = table().to_numpy()
    which = np.array([0, 0, 1, 0, 0])
    options = {"alpha": 0.5, "random_state": 0, "max_iter": 30}
    fit = nmd.complete(X, 2, loss=(["frobenius", "logistic"], np.tile(which, (40, 1))), **options)
    probability = fit.reconstruct().values[:, 2]
    assert np.all((probability > 0) & (probability < 1))
    with pytest.raises(ValueError, match="a loss for each entry"):
        fit.probabilities(2)


@pytest.fixture
def ratings(rng):
    return rng.integers(1, 11, size=(14, 11)) / 2


OURS = {
    "decompose": nmd.decompose,
    "complete": functools.partial(nmd.complete, alpha=0),
    "soft_impute": nmd.baselines.soft_impute,
}


@pytest.mark.parametrize("way", OURS)
def test_a_name_without_bounds_is_refused_outside_0_and_1(way, ratings):
    said = (
        r"nonlinearity='minmax' .* 0 and 1, and X goes from 0.5 to 5: .*nmd\.MinMax\(0\.5, 5\)\.$"
    )
    with pytest.raises(ValueError, match=said):
        OURS[way](ratings, 2, nonlinearity="minmax", max_iter=2)
    assert OURS[way](ratings / 5, 2, nonlinearity="minmax", max_iter=2).nonlinearity == nmd.MinMax()


def documented(X, **attrs):
    return xr.DataArray(X, attrs=attrs)


def test_the_documented_range_is_taken(ratings):
    table = pd.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "rating": [4.0, 3.0, 5.0]})
    table.attrs["valid_range"] = [0.5, 5]
    frame = pd.DataFrame(ratings)
    frame.attrs |= {"valid_min": 0.5, "valid_max": 5.0}
    for X in (
        documented(ratings, valid_range=[0.5, 5]),
        documented(ratings, valid_min=0.5, valid_max=5),
        documented(ratings / 5, valid_range=np.array([0.5, 5])),
        frame,
        nmd.observations_from_table(table),
    ):
        assert nmd.complete(X, 1, "minmax", alpha=0, max_iter=2).nonlinearity == nmd.MinMax(0.5, 5)
    with pytest.raises(ValueError, match="nonlinearity='minmax'"):
        nmd.complete(documented(ratings, valid_range=[5, 0.5]), 2, "minmax")


def test_grey_levels_are_known(ratings):
    grey = (ratings * 50).astype(np.uint8)
    for X in (grey, xr.DataArray(grey), sparse.csr_array(grey), sparse.coo_array(grey)):
        assert nmd.complete(X, 2, "minmax", alpha=0, max_iter=2).nonlinearity == nmd.MinMax(0, 255)
    assert valid_range(grey // 4) is None
    with pytest.raises(ValueError, match="nonlinearity='minmax'"):
        nmd.complete(grey // 4, 2, "minmax")


def test_values_outside_the_bounds_of_an_object_are_counted_once(ratings):
    X = ratings.copy()
    X[0, :3], X[1, 0], X[2, 2] = 7, -1, np.nan
    said = (r"^X has 1 value below and 3 above the bounds of MinMax\(0\.5, 5\), of 153 observed: "
            r".*widen these unless such values are noise\.$")  # fmt: skip
    with pytest.warns(nmd.warnings.OutOfBoundsWarning, match=said) as caught:
        nmd.complete(X, 2, nmd.MinMax(0.5, 5), alpha=0, n_init=3, max_iter=3)
    assert sum(w.category is nmd.warnings.OutOfBoundsWarning for w in caught) == 1
    assert caught[0].filename == __file__
    zeros = sparse.csr_array(np.where(ratings > 3, ratings, 0))
    said = f"X has {(ratings <= 3).sum()} values below"
    with pytest.warns(nmd.warnings.OutOfBoundsWarning, match=said):
        nmd.decompose(zeros, 2, nmd.MinMax(0.5, 5), max_iter=3)


def test_a_study_takes_the_bounds_of_the_data_before_noise(ratings):
    study = nmd.Study(
        documented(ratings, valid_range=[0.5, 5]), rank=2, max_iter=3,
        alpha=1.0, nonlinearity=["minmax", nmd.MinMax(0, 1)], noise={"gaussian": [0, 2.0]},
    )  # fmt: skip
    for name, noise, bounds in (("minmax", 2.0, (0.5, 5)), ("MinMax(0, 1)", 0, (0, 1))):
        fit = study.cell(nonlinearity=name, noise=noise, seed=0).fit()
        assert fit.nonlinearity == nmd.MinMax(*bounds)
    results = study.run(progress=False)
    assert (results.status == "done").all()
    said = results.warnings.sel(nonlinearity="minmax").values
    assert not any("OutOfBounds" in each for each in said.ravel())
    left_out = nmd.Study(ratings, rank=2, nonlinearity="minmax", alpha=1.0, max_iter=3)
    left_out = left_out.run(progress=False)
    assert (left_out.status == "left out").all()
    assert "nonlinearity='minmax' has the bounds 0 and 1" in str(left_out.stop_reason.values)

"""The tree of a posterior for ArviZ: identified quantities, and cells with their likelihood."""

import numpy as np
import pandas as pd
import pytest
from made_draws import LEVELS, made_up, plain
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.datasets import load_iris

import nmd_lab
from nmd_lab.result.predictive import level_masses


@pytest.fixture(scope="module")
def table():
    """Numbers, yes and no, levels and classes with hidden cells, and a posterior of the others."""
    frame = load_iris(as_frame=True).frame.iloc[::2]
    names = {"target": "species", "petal width (cm)": "petal/width", "petal length (cm)": "large"}
    frame = frame.rename(columns=names).astype({"species": "category"})
    levels = pd.cut(frame["sepal length (cm)"], 3, labels=["s", "m", "l"])
    frame = frame.assign(level=levels, large=(frame["large"] > 4).astype("boolean"))
    seen, hidden = nmd_lab.split_observed(frame, 0.2, random_state=0)
    return nmd_lab.sample(seen, draws=60, chains=2, groups=1, random_state=0), seen, hidden


def test_tree_of_identified_quantities():
    probes = {"probe_rows": [0, 1, 2], "probe_columns": [3, 2, 0]}
    kept = {"log_likelihood": np.zeros((2, 40)), "predictions": np.zeros((2, 40, 3))}
    posterior = made_up(np.zeros((3, 4)), **kept, **probes)
    tree = posterior.to_datatree()
    assert set(tree.children) == {"posterior", "sample_stats"}
    drawn = tree["posterior"]
    assert all(each.dims[:2] == ("chain", "draw") for each in drawn.data_vars.values())
    assert {"W", "H"} & set(drawn.data_vars) == set()
    v, *_ = plain(posterior)
    prediction = drawn["prediction"].sel(prediction_of="1, 2")
    np.testing.assert_allclose(prediction.values.ravel(), v[:, 1, 2], rtol=1e-5)
    np.testing.assert_allclose(drawn["noise"].sel(noise_of="all"), posterior.draws.rho**-0.5)
    np.testing.assert_array_equal(drawn["singular_values"], posterior.singular_values)
    assert tree["sample_stats"]["lp"].sizes == {"chain": 2, "draw": 40}
    with_factors = posterior.to_datatree(factors=True)["posterior"]
    assert with_factors["W"].identical(posterior.draws.W)


def test_tree_of_a_table_has_its_cells(table):
    posterior, _, hidden = table
    tree = posterior.to_datatree(hidden)
    observed, drawn = tree["observed_data"], tree["posterior_predictive"]
    assert set(observed.data_vars) == {name.replace("/", " per ") for name in hidden}
    numbers = hidden["sepal width (cm)"].dropna()
    np.testing.assert_allclose(observed["sepal width (cm)"], numbers)
    new = drawn["sepal width (cm)"]
    wanted = posterior.predict(numbers.index, "sepal width (cm)")
    error = new.std(("chain", "draw")) / np.sqrt(120)
    assert float((np.abs(new.mean(("chain", "draw")) - wanted) / error).mean()) < 1.5
    codes = hidden["species"].dropna().cat.codes
    np.testing.assert_array_equal(observed["species"], codes)
    p = posterior.probabilities("species", codes.index)
    shares = np.stack([(drawn["species"] == k).mean(("chain", "draw")) for k in range(3)], axis=1)
    np.testing.assert_allclose(shares, p, atol=0.2)
    assert tree["posterior"]["cut_point"].sizes["cut_point_of"] == 1  # the others are fixed
    logs = tree["log_likelihood"]["cells"].stack(s=("chain", "draw"))
    mean = logsumexp(logs.values, axis=1) - np.log(120)
    at = [f"{row}, sepal width (cm)" for row in numbers.index]
    wanted = posterior.log_density(numbers.index, ["sepal width (cm)"] * len(at), numbers)
    np.testing.assert_allclose(mean[np.isin(logs["cell"], at)], wanted, rtol=1e-6)
    of_codes = np.log(p.to_numpy()[np.arange(len(codes)), codes])
    at = [f"{row}, species=0" for row in codes.index]
    np.testing.assert_allclose(mean[np.isin(logs["cell"], at)], of_codes, rtol=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "after", "ordinal"])
def test_log_likelihood_of_an_array_is_its_log_density(noise):
    X = np.array(LEVELS)[np.random.default_rng(0).integers(4, size=(3, 4))]
    posterior = made_up(X, "minmax" if noise == "after" else "identity", noise=noise)
    logs = posterior.to_datatree(X)["log_likelihood"]["cells"].stack(s=("chain", "draw"))
    mean = logsumexp(logs.values, axis=1) - np.log(60)
    np.testing.assert_allclose(mean, posterior.log_density(X), rtol=1e-6)


def test_levels_far_above_and_below_keep_their_probability_in_a_draw():
    masses = level_masses(np.array([[-1.0, 0.0, 1.0]]), np.array([[-12.0, 12.0]]))[:, 0]
    expected = [1, *-np.diff([*norm.sf([11, 12, 13]), 0])]
    np.testing.assert_allclose(masses, np.transpose([expected, expected[::-1]]), rtol=1e-12)

"""A posterior whose rows have noise levels: in each row it is that of one noise for all."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from made_draws import made_up

import nmd_lab as nmd
from nmd_lab.result.new_draws import at_rows

M, N, OUTER = 4, 6, (2, 30)
X = xr.DataArray(np.zeros((M, N)), dims=("face", "pixel"), coords={"face": list("abcd")})
HOLES = X.where(np.arange(N) == 0)
RNG = np.random.default_rng(1)
RHO = RNG.uniform(2, 6, (*OUTER, M)) * [0.1, 1.0, 10.0, 1.0]
BETA = RNG.uniform(3, 9, (*OUTER, M)) * [1.0, 0.1, 10.0, 1.0]
LAW = {
    "rho_shape": np.full(OUTER, 3.0),
    "rho_rate": np.full(OUTER, 2.0),
    "row_mean": np.zeros((*OUTER, 1, 4)),
    "row_precision": np.broadcast_to(np.eye(4), (*OUTER, 1, 4, 4)),
}
KINDS = [
    ("identity", "frobenius", "gaussian"),
    ("relu", "frobenius", "before"),
    ("minmax", "frobenius", "before"),
    ("square", "frobenius", "before"),
    ("softplus", "frobenius", "before"),
    ("relu", "frobenius", "after"),
    ("relu", "l1", "after"),
    ("relu", "kl", "after"),
]


def by_rows(f="identity", loss="frobenius", noise="gaussian", labels=X):
    beta = BETA if noise == "after" and loss != "kl" else None
    return made_up(labels, f, loss, noise, rho=RHO, beta=beta, **LAW)


def of_row(posterior, i):
    """The posterior of one row, whose noise levels are those of all its entries."""
    draws = posterior.draws.isel(face=[i])
    levels = {k: draws[k].values[:, :, 0] for k in ("rho", "beta") if k in draws}
    return nmd.Posterior.from_arrays(
        posterior.labels.__class__(("face", "pixel"), (1, N), ("face",)),
        draws["W"].values,
        np.moveaxis(draws["H"].values, 2, 3),
        nonlinearity=posterior.nonlinearity,
        loss=posterior.loss,
        noise=posterior.noise,
        mean=posterior.mean,
        row_offsets=draws["row_offsets"].values,
        column_offsets=draws["column_offsets"].values,
        **levels,
    )


SUMMARIES = {
    "predict": lambda p, i, j: p.predict(i, j),
    "std": lambda p, i, j: p.predict_std(i, j),
    "interval": lambda p, i, j: p.predict_interval(i, j),
    "probability": lambda p, i, j: p.probability(i, j, above=0.4),
    "reconstruct": lambda p, i, j: p.reconstruct().values[i, j],
    "uncertainty": lambda p, i, j: p.uncertainty().values[i, j],
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_is_predicted_with_its_own_noise(kind):
    posterior, j = by_rows(*kind), np.arange(N)
    for i in range(M):
        alone = of_row(posterior, i)
        for name, summary in SUMMARIES.items():
            ours = summary(posterior, np.full(N, i), j)
            theirs = summary(alone, np.zeros(N, int), j)
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, err_msg=f"{name} of {i}")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[0] != "softplus"])
def test_log_density(kind):
    posterior, j, x = by_rows(*kind), np.arange(N), np.array([0.0, 0.2, 0.5, 0.9, 3.0, 0.4])
    x = np.ceil(x) if kind[1] == "kl" else x
    for i in range(M):
        ours = posterior.log_density(i, j, x)
        np.testing.assert_allclose(ours, of_row(posterior, i).log_density(0, j, x))


def test_one_block_after_another_is_the_whole(monkeypatch):
    posterior, (i, j) = by_rows("relu", "l1", "after"), np.indices((M, N)).reshape(2, -1)
    whole = posterior.predict_interval(i, j), posterior.uncertainty()
    monkeypatch.setattr("nmd_lab.result.intervals.NUMBERS", 500)
    monkeypatch.setattr("nmd_lab.result.draws.NUMBERS", 500)
    np.testing.assert_allclose(posterior.predict_interval(i, j), whole[0])
    np.testing.assert_allclose(posterior.uncertainty(), whole[1])


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[1], KINDS[5], KINDS[6]])
def test_copies_have_the_noise_of_their_rows(kind):
    posterior = by_rows(*kind)
    copies = np.stack(posterior.impute(HOLES, 4000, random_state=0))
    low, high = posterior.predict_interval(*np.indices((M, N)).reshape(2, -1), 0.8).T
    held = (low.reshape(M, N) <= copies) & (copies <= high.reshape(M, N))
    assert (held.mean(axis=0) > 0.78).all()  # at a limit an interval may hold more
    sd = posterior.uncertainty().values[:, 1:]
    np.testing.assert_allclose(copies.std(axis=0)[:, 1:], sd, rtol=0.15)


def test_an_unknown_label_has_the_mean_noise_of_all_rows():
    posterior = by_rows("relu", "frobenius", "before")
    rho = posterior.draws["rho"]
    one = made_up(X, "relu", noise="before", rho=1 / (1 / rho).mean("face").values)
    ours, theirs = (p.predict("z", 2, unknown="offsets") for p in (posterior, one))
    np.testing.assert_allclose(ours, theirs)


def test_a_file_keeps_the_levels_of_rows_with_several_dimensions(tmp_path):
    stacked = xr.DataArray(np.zeros((2, 2, N)), dims=("user", "face", "pixel"))
    labels = nmd.sample(
        stacked + 1, 1, sample_dims=("user", "face"), draws=2, tune=0, progress=False
    ).labels
    posterior = by_rows("relu", "l1", "after", labels)
    assert posterior.draws["rho"].dims == ("chain", "draw", "user", "face")
    posterior.save(tmp_path / "posterior.nc")
    loaded = nmd.load(tmp_path / "posterior.nc")
    assert loaded.draws.identical(posterior.draws)
    assert loaded.fitted.noise_by == "rows"
    np.testing.assert_array_equal(loaded.uncertainty(), posterior.uncertainty())


def test_some_rows_keep_their_levels():
    posterior = by_rows("relu", "l1", "after")
    some = at_rows(posterior, np.array([2, 0]))
    np.testing.assert_array_equal(some.draws["rho"], RHO[:, :, [2, 0]])
    np.testing.assert_array_equal(some.draws["beta"], BETA[:, :, [2, 0]])
    both = at_rows(posterior, np.array([-1, 3, -1]), some)
    np.testing.assert_array_equal(both.draws["rho"], RHO[:, :, [2, 3, 0]])


def test_the_summary_has_the_range_of_the_noise():
    sd = (RHO**-0.5).mean(axis=(0, 1))
    assert f"noise 1/√ρ: {sd.min():.3g} to {sd.max():.3g}, by row" in repr(by_rows())


def test_correlations_are_those_of_a_row_with_the_mean_noise():
    posterior = by_rows()
    one = made_up(X, rho=1 / np.mean(1 / RHO, axis=2), **LAW)
    xr.testing.assert_allclose(posterior.correlations(), one.correlations())


def test_a_report_says_that_each_row_has_its_own_noise():
    posterior = by_rows()
    page = posterior.report(HOLES)._repr_html_()
    assert "The noise is normal, and each row has its own." in page


def test_levels_of_columns_without_their_kinds_are_refused():
    with pytest.raises(ValueError, match=r"rho has shape \(2, 30, 6\): give \(2, 30, 4\)"):
        made_up(X, rho=np.ones((*OUTER, N)))


def test_draws_without_the_law_of_levels_have_no_new_rows():
    law = {name: each for name, each in LAW.items() if not name.startswith("rho")}
    posterior = made_up(X, rho=RHO, **law)
    with pytest.raises(ValueError, match="draws lacks 'rho_shape'"):
        posterior.fold_in(np.ones((1, N)))


def test_new_rows_take_their_turn_in_impute():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 30))
    sd = np.where(np.arange(40) % 4, 0.1, 1.0)[:, None]
    data = xr.DataArray(data + sd * rng.normal(size=data.shape), dims=("face", "pixel"))
    data = data.assign_coords(face=[f"f{k}" for k in range(40)])
    options = {"draws": 60, "tune": 60, "random_state": 0, "progress": False}
    posterior = nmd.sample(data[:32], 3, noise_by="rows", **options)
    new = data[32:].where(rng.random((8, 30)) < 0.8)
    width = np.ptp(posterior.intervals(new).values, axis=2).mean(axis=1)
    assert width[[0, 4]].min() > 3 * width[[1, 2, 3, 5, 6, 7]].max()
    copies = np.stack(posterior.impute(new, 50, random_state=0))
    spread = np.where(new.isnull(), copies.std(axis=0), np.nan)
    assert np.nanmean(spread[[0, 4]]) > 3 * np.nanmean(spread[[1, 2, 3, 5, 6, 7]])

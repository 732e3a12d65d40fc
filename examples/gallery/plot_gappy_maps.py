"""
Fill gaps in maps over time: sea surface temperature
====================================================

Clouds hide parts of a satellite's maps.  DINEOF (Beckers and Rixen, 2003) fills such gaps by a
singular value decomposition that is repeated on its own result, with the number of components
chosen by hidden values.  ``nmd.complete`` fills them with one fit whose
rank and ridge are chosen, and ``nmd.sample`` with a posterior of low rank.  The intervals of the
posterior assume that cells are hidden independently; under whole regions they are too narrow.

The data are real: mean sea surface temperature anomalies of 50 winters (1963 to 2012) in the
Pacific, which the package ``eofs`` ships.  The gaps are generated: smooth regions of each map,
which cover 40 % of the sea.  Cells are smaller towards the poles: ``weights=`` has their areas.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from eofs.examples import example_data_path
from scipy.interpolate import griddata
from scipy.ndimage import gaussian_filter

import nmd_lab as nmd

maps = xr.load_dataset(example_data_path("sst_ndjfm_anom.nc"))["sst"]
rng = np.random.default_rng(0)
clouds = maps.copy(data=[gaussian_filter(rng.normal(size=(18, 30)), 2.5) for _ in maps.time])
table = maps.stack(cell=("latitude", "longitude"))
sea = table.notnull().all("time").values
truth = table[:, sea]
clouds = clouds.stack(cell=("latitude", "longitude")).values[:, sea]
hidden = clouds > np.quantile(clouds, 0.6, axis=1, keepdims=True)
seen = truth.where(~hidden)
area = np.cos(np.deg2rad(truth.latitude)).broadcast_like(truth).transpose("time", "cell")
print(f"{truth.shape[0]} winters, {truth.shape[1]} cells, {hidden.mean():.0%} hidden")

# %%
# Two baselines: DINEOF, and interpolation between the visible cells of a map
# ---------------------------------------------------------------------------


def dineof(table, rank, sweeps=300):
    """Return a table whose gaps are filled by a repeated singular value decomposition."""
    gaps, filled = np.isnan(table), np.where(np.isnan(table), 0, table)
    for _ in range(sweeps):
        U, s, Vt = np.linalg.svd(filled, full_matrices=False)
        new = ((U[:, :rank] * s[:rank]) @ Vt[:rank])[gaps]
        change = np.sqrt(np.mean((new - filled[gaps]) ** 2))
        filled[gaps] = new
        if change < 1e-4 * np.nanstd(table):
            break
    return filled


given = seen.values
check = ~np.isnan(given) & hidden[rng.permutation(50)] & (rng.random((50, 1)) < 0.3)
trials = {
    rank: np.mean((dineof(np.where(check, np.nan, given), rank) - given)[check] ** 2)
    for rank in range(1, 9)
}
rank = min(trials, key=trials.get)
places = np.column_stack([truth.latitude, truth.longitude])
models = {"0 (no anomaly)": np.zeros(truth.shape), f"DINEOF, rank {rank}": dineof(given, rank)}
models["interpolation in space"] = np.stack([
    np.where(np.isnan(inside), nearest, inside)
    for inside, nearest in (
        [griddata(places[~gap], line[~gap], places, method) for method in ("linear", "nearest")]
        for line, gap in zip(given, hidden)
    )
])  # fmt: skip

# %%
# A fit and a posterior of low rank
# ---------------------------------

flat = seen.reset_index("cell")
options = {"weights": area.values, "sample_dims": "time", "random_state": 0}
models["nmd.complete"] = nmd.complete(flat, nonlinearity="identity", **options).reconstruct().values
posterior = nmd.sample(flat, 12, **options)
everywhere = np.indices(truth.shape).reshape(2, -1)
models["nmd.sample"] = posterior.predict(*everywhere).reshape(truth.shape)
std = posterior.predict_std(*everywhere).reshape(truth.shape)


def rmse(model):
    """Return the root mean squared error of the hidden cells, by area."""
    squares = (model - truth.values) ** 2
    return float(np.sqrt(np.average(squares[hidden], weights=area.values[hidden])))


errors = {name: rmse(model) for name, model in models.items()}
for name, error in errors.items():
    print(f"{name:24} RMSE of hidden cells {error:.3f} °C")
inside = np.abs(models["nmd.sample"] - truth.values)[hidden] < 1.645 * std[hidden]
print(f"90 % intervals cover {inside.mean():.0%} of the hidden cells")

# %%
# The winter of the El Niño of 1997 and 1998
# ------------------------------------------

winter = int(np.flatnonzero(truth.time.dt.year == 1998)[0])
pictures = {
    "visible": seen.values, "true": truth.values, "nmd.complete": models["nmd.complete"],
    "standard deviation of nmd.sample": np.where(hidden, std, np.nan),
}  # fmt: skip
figure, axes = plt.subplots(2, 2, figsize=(11, 6), layout="constrained", sharex=True, sharey=True)
for ax, (title, values) in zip(axes.flat, pictures.items()):
    picture = truth.copy(data=values)[winter].unstack("cell")
    limits = (
        {"cmap": "magma", "vmin": 0}
        if "deviation" in title
        else {"cmap": "RdBu_r", "vmin": -3, "vmax": 3}
    )
    picture.plot.pcolormesh(ax=ax, x="longitude", cbar_kwargs={"label": "°C"}, **limits)
    ax.set(title=title, xlabel="longitude, °E", ylabel="latitude, °N")
plt.show()

assert errors["nmd.complete"] < errors["nmd.sample"] < min(list(errors.values())[:3])
assert 0.6 < inside.mean() < 0.9

"""
Maps with gaps, over time
=========================

A satellite sees a part of the sea each day, and clouds hide the rest.  DINEOF (Beckers and Rixen,
2003) fills such maps by a singular value decomposition that is repeated on its own result, with
the number of components chosen by hidden values.  With the right number it is as good as a
posterior.  ``nmd.sample`` needs no choice, and says how sure each filled value is.

A cell near a pole is smaller than one at the equator:  ``weights=`` takes the area of each cell.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from scipy.ndimage import gaussian_filter

import nmd_lab as nmd

rng = np.random.default_rng(0)
lat, lon, days = np.linspace(30, 75, 24), np.linspace(-30, 10, 32), np.arange(90)
patterns = np.stack([gaussian_filter(rng.normal(size=(24, 32)), 4, mode="wrap") for _ in range(4)])
patterns /= patterns.std(axis=(1, 2), keepdims=True)
series = np.cumsum(rng.normal(size=(90, 4)), axis=0) * [0.5, 0.35, 0.25, 0.15]
field = 12 - 0.15 * (lat[:, None] - 30) + np.tensordot(series, patterns, axes=1)
truth = xr.DataArray(
    field + 0.2 * rng.normal(size=field.shape),
    dims=("time", "lat", "lon"), coords={"time": days, "lat": lat, "lon": lon}, name="temperature",
)  # fmt: skip
clouds = np.stack([gaussian_filter(rng.normal(size=(24, 32)), 3) for _ in days])
cloudy = clouds > np.quantile(clouds, 0.45)
given = truth.where(~cloudy)
area = np.cos(np.deg2rad(truth.lat)).broadcast_like(truth)
print(f"{100 * cloudy.mean():.0f} % of the values are below clouds")


# %%
# The baseline: DINEOF in a few lines
# -----------------------------------
# The number of components is chosen by values that are hidden below the clouds of other days.


def dineof(table, rank, tol=1e-4, sweeps=800):
    """Return a table whose gaps are filled by a repeated singular value decomposition."""
    holes, filled = np.isnan(table), np.where(np.isnan(table), 0, table)
    for _ in range(sweeps):
        U, s, Vt = np.linalg.svd(filled, full_matrices=False)
        new = ((U[:, :rank] * s[:rank]) @ Vt[:rank])[holes]
        change = np.sqrt(np.mean((new - filled[holes]) ** 2))
        filled[holes] = new
        if change < tol * np.nanstd(table):
            break
    return filled


table = given.values.reshape(90, -1)
mean = np.nanmean(table, axis=0)  # of each cell
others = cloudy[rng.permutation(90)].reshape(table.shape)
check = ~np.isnan(table) & others & (rng.random((90, 1)) < 0.3)
trials = {
    rank: np.mean((dineof(np.where(check, np.nan, table - mean), rank) - table + mean)[check] ** 2)
    for rank in range(2, 8)
}
rank = min(trials, key=trials.get)
baseline = (mean + dineof(table - mean, rank)).reshape(truth.shape)

# %%
# The posterior, with the same table and the areas as weights
# -----------------------------------------------------------

posterior = nmd.sample(given, 12, weights=area, sample_dims="time", draws=150, random_state=0)
everywhere = np.indices(table.shape).reshape(2, -1)  # days and cells
filled = truth.copy(data=posterior.predict(*everywhere).reshape(truth.shape))
std = truth.copy(data=posterior.predict_std(*everywhere).reshape(truth.shape))


def rmse(model):
    """Return the root mean squared error below clouds, by area."""
    squares = (model - truth.values) ** 2
    return float(np.sqrt(np.average(squares[cloudy], weights=area.values[cloudy])))


errors = {f"DINEOF, {rank} components": rmse(baseline), "nmd.sample": rmse(filled.values)}
for name, error in errors.items():
    print(f"{name:22} RMSE below clouds {error:.3f}")
inside = np.abs(filled - truth).values[cloudy] < 1.645 * std.values[cloudy]
print(f"intervals of 90 % hold {100 * inside.mean():.0f} % of the values below clouds")

day = int(np.argmax(cloudy.mean(axis=(1, 2))))
figure, axes = plt.subplots(2, 2, figsize=(9.5, 6.5), layout="constrained")
pictures = {"given": given[day], "true": truth[day], "filled": filled[day]}
ends = {"vmin": float(truth[day].min()), "vmax": float(truth[day].max()), "cmap": "viridis"}
for ax, (title, picture) in zip(axes.flat, pictures.items()):
    picture.plot.pcolormesh(ax=ax, add_colorbar=title == "true", **ends)
    ax.set_title(f"{title}, day {day}")
std[day].plot.pcolormesh(ax=axes[1, 1], cmap="magma")
axes[1, 1].set_title("standard deviation of a filled value")
plt.show()

assert errors["nmd.sample"] < 1.1 * min(errors.values())
assert 0.8 < inside.mean() < 0.97

"""
A picture that its sensor has clipped
=====================================

Light may have a low rank.  What a sensor records of it has not, because the sensor clips what is
too dark or too bright.  The nonlinearity MinMax, min(1, max(0, t)), is a model of the sensor.

Here is a computed interference pattern of four plane waves.  Of its pixels, 60 % are missing.
Interpolation knows that neighbouring pixels are alike, which no low-rank model does, and is closer.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import griddata

import nmd_lab as nmd

rng = np.random.default_rng(0)
y, x = np.mgrid[:180, :240] / 180
field = np.zeros(x.shape, complex)
for angle, phase, number in zip(*rng.uniform(0, 2 * np.pi, (2, 4)), rng.uniform(1.5, 3.5, 4)):
    field += np.exp(1j * (2 * np.pi * number * (np.cos(angle) * x + np.sin(angle) * y) + phase))
light = 0.5 + 0.6 * (np.abs(field) ** 2 / 4 - 1)
picture = np.clip(light + 0.02 * rng.normal(size=light.shape), 0, 1)
hidden = rng.random(picture.shape) < 0.6
given = np.where(hidden, np.nan, picture)

# %%
# A linear model and MinMax, both with rank and ridge chosen by held-out pixels, and interpolation
# -------------------------------------------------------------------------------------------------
#
# Which pixels a choice holds out depends on the seed.  The error of MinMax is the mean of three.

linear = nmd.complete(given, nonlinearity="identity", random_state=0)
fits = [nmd.complete(given, random_state=seed) for seed in range(3)]  # find that MinMax fits
bounded = fits[0]
grid = np.mgrid[: picture.shape[0], : picture.shape[1]]
pixels, values = grid[:, ~hidden].T, picture[~hidden]
interpolated = griddata(pixels, values, tuple(grid), "linear")
nearest = griddata(pixels, values, tuple(grid), "nearest")  # outside the hull of the given pixels
models = {
    "linear": linear.reconstruct().values.clip(0, 1),
    "MinMax": bounded.reconstruct().values,
    "interpolation": np.where(np.isnan(interpolated), nearest, interpolated),
}


def rmse(model):
    """Return the error at the missing pixels."""
    return np.sqrt(np.mean((model - picture)[hidden] ** 2))


of_seeds = [rmse(fit.reconstruct().values) for fit in fits]
errors = {name: rmse(model) for name, model in models.items()} | {"MinMax": np.mean(of_seeds)}
print("MinMax by seed:", *np.round(of_seeds, 4))
for name, error in errors.items():
    print(f"{name:13} RMSE at the missing pixels {error:.4f}")

figure, axes = plt.subplots(2, 3, figsize=(12, 6.4), layout="constrained")
offsets = bounded.offsets.mean + bounded.offsets.columns
product = bounded.W.values @ bounded.H.values + offsets  # inside f
pictures = {"as the sensor sees it": picture, "given": given}
pictures |= {f"{name}: {rmse(model):.4f}": model for name, model in models.items()}
pictures["MinMax inside f, from dark to bright"] = product
for ax, (title, image) in zip(axes.flat, pictures.items()):
    low, high = (0, 1) if image is not product else (light.min(), light.max())
    ax.imshow(image, cmap=nmd.plots.gray_with_holes(), vmin=low, vmax=high)
    ax.set_title(title)
    ax.axis("off")
plt.show()

# %%
# What interpolation does not have: inside f the model keeps the light itself.  WH goes below 0 and
# above 1 where the sensor was blind.

clipped = light > 1.1
print(f"where the light is above 1.1, its mean is {light[clipped].mean():.2f},", end=" ")
print(f"and that of WH {product[clipped].mean():.2f}")

assert all(fit.nonlinearity.name == "minmax" for fit in fits)
assert errors["interpolation"] < errors["MinMax"] < 0.85 * errors["linear"]
assert product[clipped].mean() > 1.05

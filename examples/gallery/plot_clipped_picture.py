"""
A picture that its sensor has clipped
=====================================

Light may have a low rank.  What a sensor records of it has not, because the sensor clips what is
too dark or too bright.  The nonlinearity MinMax, min(1, max(0, t)), is a model of the sensor.

Here is an interference pattern of four plane waves.  Of its pixels, 60 % are missing.
"""

import matplotlib.pyplot as plt
import numpy as np

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
# A linear model and MinMax, both with rank and ridge chosen by held-out pixels
# ------------------------------------------------------------------------------

linear = nmd.complete(given, nonlinearity="identity", random_state=0)
bounded = nmd.complete(given, random_state=0)  # finds that MinMax fits
models = {"linear": linear.reconstruct().values.clip(0, 1), "MinMax": bounded.reconstruct().values}
errors = {name: np.sqrt(np.mean((model - picture)[hidden] ** 2)) for name, model in models.items()}
for name, error in errors.items():
    print(f"{name:7} RMSE at the missing pixels {error:.4f}")

figure, axes = plt.subplots(2, 2, figsize=(9, 6.8), layout="constrained")
pictures = {"as the sensor sees it": picture, "given": given}
pictures |= {f"{name}: {errors[name]:.3f}": model for name, model in models.items()}
for ax, (title, image) in zip(axes.flat, pictures.items()):
    ax.imshow(image, cmap=nmd.plots.gray_with_holes(), vmin=0, vmax=1)
    ax.set_title(title)
    ax.axis("off")
plt.show()

# %%
# Inside f the model keeps the light itself: WH goes below 0 and above 1 where the sensor was blind.

product = bounded.W.values @ bounded.H.values + bounded.offsets.mean
clipped = light > 1.1
print(f"where the light is above 1.1, the mean of WH is {product[clipped].mean():.2f}")

assert bounded.nonlinearity.name == "minmax"
assert errors["MinMax"] < 0.85 * errors["linear"]

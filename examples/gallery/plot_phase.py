"""
Phase retrieval: signs of squares or magnitudes
===============================================

An instrument may measure squares or magnitudes of amplitudes.  The amplitudes have a low rank,
and their squares have not.  The nonlinearities Square and Modulus find
the signs as well.  The data are generated.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

t = np.linspace(0, 1, 120)
modes = np.stack([np.sin(2 * np.pi * 2 * t), np.cos(2 * np.pi * 3 * t), t - 0.5])
rng = np.random.default_rng(0)
amplitudes = rng.normal(size=(90, 3)) @ modes
power = amplitudes**2

# %%
# Rank 3 describes the squares exactly under f(t) = t².  A linear model needs rank 6.

fit = nmd.decompose(power, 3, "square", n_init=5, tol=1e-6, max_iter=2000, random_state=0)
values = np.linalg.svd(power, compute_uv=False)
linear = np.sqrt(np.sum(values[3:] ** 2) / np.sum(values**2))
print(f"linear model of rank 3: relative error {linear:.3f}")
print(f"square of rank 3:       relative error {float(fit.relative_error):.1e}")

# %%
# The sign of each row and of each column of WH is free.  Those of the columns are chosen so that
# neighbours in time agree; that of the row is the true one.

H = fit.H.values
signs = np.cumprod(np.sign([1.0, *np.sum(H[:, 1:] * H[:, :-1], axis=0)]))
product = fit.W.values[0] @ (H * signs)
product *= np.sign(product @ amplitudes[0])
figure, axes = plt.subplots(2, 1, figsize=(8, 5), layout="constrained", sharex=True)
axes[0].plot(t, power[0])
axes[0].set(ylabel="measured power")
axes[1].plot(t, amplitudes[0], lw=4, alpha=0.3, label="true amplitude")
axes[1].plot(t, product, label="recovered")
axes[1].set(xlabel="time", ylabel="amplitude")
axes[1].legend()
plt.show()

assert float(fit.relative_error) < 1e-3
assert np.abs(product - amplitudes[0]).max() < 0.05 * np.abs(amplitudes[0]).max()

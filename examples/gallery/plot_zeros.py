"""
ReLU: data with many zeros in few components
============================================

Half of the pixels of handwritten digits (``sklearn.datasets.load_digits``) are zero.  A linear
model requires components for them.  With ReLU, X ≈ max(0, WH), any WH below 0 describes a zero.

At each rank the error of the nonlinear model is compared with the best linear one, the singular
value decomposition, and with non-negative matrix factorisation (NMF).  These are errors of the
fitted pixels; held-out pixels are at the end of the page.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import NMF

import nmd_lab as nmd

digits = nmd.datasets.digits()
size = np.linalg.norm(digits)
ranks = [4, 8, 16, 24]

# %%
# The three models
# ----------------
# The SVD is the best linear model of its rank; NMF has the same form with non-negative factors.

values = np.linalg.svd(digits.values, compute_uv=False)
errors = {"SVD": [np.sqrt(np.sum(values[rank:] ** 2)) / size for rank in ranks]}
errors["NMF"] = [
    NMF(rank, init="nndsvda", max_iter=1000).fit(digits.values).reconstruction_err_ / size
    for rank in ranks
]
fits = {rank: nmd.decompose(digits, rank, "relu", random_state=0) for rank in ranks}
errors["ReLU"] = [float(fit.relative_error) for fit in fits.values()]

for name, row in errors.items():
    print(f"{name:5}", *(f"rank {rank}: {error:.3f}  " for rank, error in zip(ranks, row)))

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, row), marker in zip(errors.items(), "os^"):
    ax.plot(ranks, row, marker + "-", label=name)
ax.set(xlabel="rank", ylabel="relative error", ylim=(0, None), xticks=ranks)
ax.legend()
plt.show()

# %%
# Where SVD needs 24 components, ReLU needs about 16.
#
# Pixels that were held out
# -------------------------
# ReLU describes fitted pixels with fewer components.  Its error at held-out ones is hardly lower
# than that of a linear model with offsets and a chosen ridge.

held_out = np.random.default_rng(0).random(digits.shape) < 0.3
held_out_errors = {}
for name, f in {"linear": "identity", "ReLU": "relu"}.items():
    model = nmd.complete(digits.where(~held_out), 16, f, random_state=0).reconstruct()
    held_out_errors[name] = float(np.sqrt(np.mean((model - digits).values[held_out] ** 2)))
    print(f"{name:6} RMSE of held-out pixels, rank 16: {held_out_errors[name]:.3f}")

assert errors["ReLU"][2] < 1.15 * errors["SVD"][3]
assert 0.95 * held_out_errors["linear"] < held_out_errors["ReLU"] < held_out_errors["linear"]

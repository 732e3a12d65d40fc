"""Complete two photographs and decompose handwritten digits, and compare with simple baselines.

    python examples/demo.py --out out

writes pictures, a table of errors and the fits to the folder.  The errors are taken on missing
pixels, which choose nothing of our models: the ridge of each model is chosen on a tenth of the
*observed* pixels, which are held out for this.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # pictures go to files, with or without a screen

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from tqdm import tqdm

import nmd_lab as nmd
from nmd_lab import baselines, datasets, plots
from nmd_lab.metrics import rmse

SEED = 0
RIDGES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
PHOTOGRAPH_RANK, PHOTOGRAPH_MISSING = 30, 0.6
DIGITS_RANK, DIGITS_MISSING = 16, 0.3


@dataclass
class Table:
    """A text table of errors, which is printed at the end and saved."""

    lines: list[str]

    def heading(self, text: str, *columns: str) -> None:
        self.lines += ["", text, f"  {'method':<42}" + "".join(f"{c:>14}" for c in columns)]

    def row(self, method: str, *values: float | str) -> None:
        cells = (f"{v:>14.4f}" if isinstance(v, float) else f"{v:>14}" for v in values)
        self.lines.append(f"  {method:<42}" + "".join(cells))


def hide(X: xr.DataArray, share: float, seed: int) -> xr.DataArray:
    """Return X with NaN in a random share of its entries."""
    return X.where(np.random.default_rng(seed).random(X.shape) >= share)


def held_out_error(X: xr.DataArray, observed: xr.DataArray, fit: nmd.Decomposition) -> float:
    """Return the root mean squared error on the hidden entries."""
    return rmse(X, fit.reconstruct(), mask=np.isnan(observed))


def choose_ridge(observed: xr.DataArray, rank: int, f: nmd.Nonlinearity) -> float:
    """Return the ridge with the lowest error on a held-out tenth of the observed entries."""
    training = hide(observed, 0.1, SEED + 1)
    validation = np.isnan(training) & ~np.isnan(observed)
    errors = {}
    for alpha in tqdm(RIDGES, desc="  choosing the ridge", unit="fit"):
        fit = nmd.complete(training, rank, f, alpha=alpha, max_iter=200, progress=False)
        errors[alpha] = rmse(observed, fit.reconstruct(), mask=validation)
    return min(errors, key=errors.__getitem__)


def complete_photograph(name: str, table: Table, out: Path) -> None:
    """Fill the missing pixels of a photograph, a matrix of grey levels."""
    photograph = datasets.photograph(name)
    observed = hide(photograph, PHOTOGRAPH_MISSING, SEED)
    print(f"\nCompleting the photograph {name!r} from 40 % of its pixels")
    completed = {}
    for f in (nmd.Identity(), nmd.MinMax(0, 1)):
        alpha = choose_ridge(observed, PHOTOGRAPH_RANK, f)
        fit = nmd.complete(observed, PHOTOGRAPH_RANK, f, alpha=alpha, max_iter=300, progress=True)
        completed[f"complete, {f!r}, rank {fit.rank}, ridge {alpha:g}"] = fit
    svd = baselines.truncated_svd(observed, PHOTOGRAPH_RANK)
    # To be generous to the linear baseline, its rank is chosen on the missing pixels themselves.
    best = min(
        (baselines.truncated_svd(observed, rank) for rank in (1, 2, 3, 5, 8, 12, 20)),
        key=lambda fit: held_out_error(photograph, observed, fit),
    )
    fits = {
        "mean fill": baselines.mean_fill(observed),
        f"SVD of the mean-filled image, rank {svd.rank}": svd,
        f"SVD of the mean-filled image, best rank {best.rank}": best,
    } | completed
    m, n = photograph.shape
    table.heading(f"Photograph {name!r} ({m} x {n}), 60 % missing", "RMSE", "PSNR [dB]")
    for method, result in fits.items():
        error = held_out_error(photograph, observed, result)
        table.row(method, error, f"{-20 * np.log10(error):.1f}")
    table.lines.append(
        "  few values lie at the bounds, so here the linear model does as well as MinMax"
    )
    fit.save(out / f"photograph_{name}.nc")

    panels = {
        "original": photograph,
        "observed: 40 % of the pixels": observed,
        f"SVD of the mean-filled image, rank {svd.rank}": svd.reconstruct().clip(0, 1),
        f"completed with MinMax, rank {fit.rank}": fit.reconstruct(),
    }
    figure, axes = plt.subplots(2, 2, figsize=(11, 7.8), layout="constrained")
    for ax, (title, image) in zip(axes.flat, panels.items(), strict=True):
        ax.imshow(image, cmap=plots.gray_with_holes(), vmin=0, vmax=1, interpolation="none")
        ax.set_title(title)
        ax.axis("off")
    save(figure, out / f"photograph_{name}.png")
    save(plots.components(fit).figure, out / f"photograph_{name}_layers.png")
    save(plots.convergence(fit).figure, out / f"photograph_{name}_convergence.png")


def decompose_digits(table: Table, out: Path) -> None:
    """Decompose digits into a few components, and predict held-out pixels."""
    digits = datasets.digits()
    observed = hide(digits, DIGITS_MISSING, SEED)
    models = {"ReLU": nmd.ReLU(), "MinMax": nmd.MinMax(0, 1)}
    print(f"\nDecomposing {len(digits)} handwritten digits, and completing them")
    fits, errors = {}, {}
    fits["SVD"] = baselines.truncated_svd(digits, DIGITS_RANK)
    errors["SVD"] = held_out_error(digits, observed, baselines.truncated_svd(observed, DIGITS_RANK))
    for name, f in models.items():
        fits[name] = nmd.decompose(digits, DIGITS_RANK, f, progress=True, random_state=SEED)
        alpha = choose_ridge(observed, DIGITS_RANK, f)
        completed = nmd.complete(observed, DIGITS_RANK, f, alpha=alpha, max_iter=300)
        errors[name] = held_out_error(digits, observed, completed)

    m, n = digits.shape
    table.heading(f"Handwritten digits ({m} x {n}), rank {DIGITS_RANK}", "all seen", "30 % missing")
    table.row("mean fill", relative_error(digits, baselines.mean_fill(digits)),
              held_out_error(digits, observed, baselines.mean_fill(observed)))  # fmt: skip
    for name, fit in fits.items():
        table.row(name, relative_error(digits, fit), errors[name])
    table.lines.append("  all seen: ‖X − model‖ / ‖X‖; missing: RMSE on the missing pixels")
    fits["MinMax"].save(out / "digits.nc")

    draw_digits(digits, fits, out / "digits.png")
    for name in models:
        save(plots.components(fits[name]).figure, out / f"digits_components_{name.lower()}.png")
    save(plots.scatter(fits["MinMax"], 1, 2, labels="digit").figure, out / "digits_scatter.png")


def relative_error(X: xr.DataArray, fit: nmd.Decomposition) -> float:
    return nmd.metrics.relative_error(X, fit.reconstruct())


def draw_digits(digits: xr.DataArray, fits: dict[str, nmd.Decomposition], path: Path) -> None:
    """Draw one digit of each kind, and its reconstruction by each model."""
    examples = [int(np.flatnonzero(digits.digit == kind)[3]) for kind in range(10)]
    rows = {"original": digits} | {
        f"{name}\n{relative_error(digits, fit):.3f}": fit.reconstruct()
        for name, fit in fits.items()
    }
    figure, axes = plt.subplots(len(rows), 10, figsize=(10, 1.05 * len(rows) + 0.4),
                                layout="constrained")  # fmt: skip
    for row, (name, images) in zip(axes, rows.items(), strict=True):
        for ax, index in zip(row, examples, strict=True):
            ax.imshow(images.values[index].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_alpha(0.2)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    figure.suptitle(
        f"Handwritten digits, rank {DIGITS_RANK}, with the relative error of each model"
    )
    save(figure, path)


def save(figure: plt.Figure, path: Path) -> None:
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the results")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    began = time.perf_counter()
    table = Table(
        ["Errors, smaller is better. RMSE is over the missing pixels, which no method saw."]
    )
    for name in datasets.PHOTOGRAPHS:
        complete_photograph(name, table, out)
    decompose_digits(table, out)
    text = "\n".join(table.lines) + "\n"
    (out / "table.txt").write_text(text, encoding="utf-8")
    print(f"\n{text}\nPictures, table and saved results are in {out}/", end=" ")
    print(f"({time.perf_counter() - began:.0f} s).")


if __name__ == "__main__":
    main()

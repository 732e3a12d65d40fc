"""Predict ratings, complete pictures, decompose digits, and compare with simple baselines.

    python examples/demo.py --out out

writes pictures, a table of errors and the fits to the folder.  The errors are taken on missing
pixels, which choose nothing of our models: ``nmd.complete(X)`` chooses rank, ridge, offsets and
nonlinearity on a tenth of the *observed* pixels, which are held out for this.
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
from scipy.interpolate import griddata

import nmd_lab as nmd
from nmd_lab import baselines, datasets, plots
from nmd_lab.metrics import rmse

SEED = 0
MISSING = 0.6
SVD_RANKS = (1, 2, 3, 5, 8, 12, 20)
DIGITS_RANK, DIGITS_MISSING = 16, 0.3


@dataclass
class Table:
    """A text table of errors, which is printed at the end and saved."""

    lines: list[str]

    def heading(self, text: str, *columns: str) -> None:
        self.lines += ["", text, f"  {'method':<46}" + "".join(f"{c:>14}" for c in columns)]

    def row(self, method: str, *values: float | str) -> None:
        cells = (f"{v:>14.4f}" if isinstance(v, float) else f"{v:>14}" for v in values)
        self.lines.append(f"  {method:<46}" + "".join(cells))


def hide(X: xr.DataArray, share: float, seed: int) -> xr.DataArray:
    """Return X with NaN in a random share of its entries."""
    return X.where(np.random.default_rng(seed).random(X.shape) >= share)


def held_out_error(X: xr.DataArray, observed: xr.DataArray, model: xr.DataArray) -> float:
    """Return the root mean squared error on the hidden entries; all values are from 0 to 1."""
    return rmse(X, model.clip(0, 1), observed=np.isnan(observed))


def interpolation(observed: xr.DataArray) -> xr.DataArray:
    """Return a picture whose holes are interpolated linearly; outside the hull, the nearest."""
    grid = tuple(np.mgrid[: observed.shape[0], : observed.shape[1]])
    seen = observed.notnull().values
    pixels, values = np.argwhere(seen), observed.values[seen]
    linear, nearest = (griddata(pixels, values, grid, method) for method in ("linear", "nearest"))
    return observed.copy(data=np.where(np.isnan(linear), nearest, linear))


def best_svd(X: xr.DataArray, observed: xr.DataArray) -> nmd.Decomposition:
    """Return the SVD of the mean-filled X whose rank is best on the missing entries themselves.

    This is generous: no one who completes X can know that rank.
    """
    fits = [baselines.truncated_svd(observed, rank) for rank in SVD_RANKS]
    return min(fits, key=lambda fit: held_out_error(X, observed, fit.reconstruct()))


def default_fit(observed: xr.DataArray, **options: str) -> nmd.Decomposition:
    """Return the completion whose rank, ridge and so on are chosen, and print what was chosen."""
    fit = nmd.complete(observed, random_state=SEED, **options)
    print(*repr(fit).splitlines()[-2:], sep="\n")
    return fit


def label(fit: nmd.Decomposition) -> str:
    """Return the chosen model as text."""
    return f"nmd.complete: {fit.nonlinearity.label.split(':')[0]}, rank {fit.rank}"


def fringes(waves: int = 4, contrast: float = 0.6, noise: float = 0.02) -> xr.DataArray:
    """Return the interference pattern of plane waves, as a sensor sees it.

    The light is a matrix of low rank.  The sensor adds noise and clips what is below 0 or above 1.
    """
    rng = np.random.default_rng(SEED)
    y, x = np.mgrid[:180, :240] / 180
    field = np.zeros(x.shape, complex)
    angles, phases = rng.uniform(0, 2 * np.pi, (2, waves))
    for angle, phase, number in zip(angles, phases, rng.uniform(1.5, 3.5, waves), strict=True):
        along = np.cos(angle) * x + np.sin(angle) * y
        field += np.exp(1j * (2 * np.pi * number * along + phase))
    light = 0.5 + contrast * (np.abs(field) ** 2 / waves - 1)
    seen = np.clip(light + noise * rng.normal(size=light.shape), 0, 1)
    return xr.DataArray(seen, dims=("y", "x"), attrs={"long_name": "brightness"})


def complete_fringes(table: Table, out: Path) -> None:
    """Fill the missing pixels of a generated picture that its sensor has clipped."""
    picture = fringes()
    observed = hide(picture, MISSING, SEED)
    clipped = float(((picture == 0) | (picture == 1)).mean())
    print("\nCompleting a generated picture that its sensor has clipped, from 40 % of its pixels")
    svd, linear = best_svd(picture, observed), default_fit(observed, nonlinearity="identity")
    fit = default_fit(observed)
    fits = {"mean fill": baselines.mean_fill(observed), svd_label(svd): svd,
            label(linear): linear, label(fit): fit}  # fmt: skip
    m, n = picture.shape
    heading = f"Generated fringes of light ({m} x {n}), {100 * clipped:.0f} % clipped, 60 % missing"
    add_rows(table, heading, picture, observed, fits)
    table.lines += [
        "  the light has a low rank, the clipped picture has not: MinMax models the sensor;",
        "  only interpolation knows that neighbouring pixels are alike",
    ]
    panels = {
        "as the sensor sees it": picture,
        "observed: 40 % of the pixels": observed,
        label(linear): linear.reconstruct().clip(0, 1),
        label(fit): fit.reconstruct(),
    }
    draw_pictures(panels, out / "fringes.png")
    save(fit.plot.selection()[0].figure, out / "fringes_selection.png")


def rate(table: Table, out: Path) -> None:
    """Predict ratings of films, with intervals that hold what they promise."""
    frame = datasets.movielens_small()
    ratings = nmd.observations_from_table(frame, row="user", column="item", value="rating")
    train, test = nmd.split_observed(ratings, test_size=0.1, random_state=SEED)
    values = test.values
    print(f"\nPredicting {values.size} ratings from {train.n_observed} others, with intervals")
    offsets = nmd.complete(train, 1, alpha=1e6, offset_alpha=5.0, offsets="both", random_state=SEED)
    posterior = nmd.sample(train, 10, draws=150, random_state=SEED)
    low, high = posterior.predict_interval(test, level=0.9).T
    inside = np.mean((low <= values) & (values <= high))

    table.heading(f"Ratings of films ({ratings.shape[0]} x {ratings.shape[1]})", "RMSE")
    for method, fit in {"offsets of users and films": offsets, "nmd.sample": posterior}.items():
        table.row(method, float(np.sqrt(np.mean((fit.predict(test).values - values) ** 2))))
    table.lines.append(f"  intervals of 90 % hold {100 * inside:.0f} % of the ratings")

    figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
    posterior.plot.calibration(test, ax=ax)
    save(figure, out / "ratings_calibration.png")


def complete_photograph(name: str, table: Table, out: Path) -> None:
    """Fill the missing pixels of a photograph, a matrix of grey levels."""
    photograph = datasets.photograph(name)
    observed = hide(photograph, MISSING, SEED)
    print(f"\nCompleting the photograph {name!r} from 40 % of its pixels")
    svd, fit = best_svd(photograph, observed), default_fit(observed)
    fits = {"mean fill": baselines.mean_fill(observed), svd_label(svd): svd, label(fit): fit}
    m, n = photograph.shape
    heading = f"Photograph {name!r} ({m} x {n}), 60 % missing"
    add_rows(table, heading, photograph, observed, fits)
    table.lines += [
        "  few values lie at the bounds, so here a linear model is enough;",
        "  only interpolation knows that neighbouring pixels are alike",
    ]
    fit.save(out / f"photograph_{name}.nc")
    panels = {
        "original": photograph,
        "observed: 40 % of the pixels": observed,
        svd_label(svd): svd.reconstruct().clip(0, 1),
        label(fit): fit.reconstruct().clip(0, 1),
    }
    draw_pictures(panels, out / f"photograph_{name}.png")
    save(plots.components(fit).figure, out / f"photograph_{name}_layers.png")
    save(plots.convergence(fit).figure, out / f"photograph_{name}_convergence.png")


def svd_label(svd: nmd.Decomposition) -> str:
    return f"SVD of the mean-filled data, best rank {svd.rank}"


def add_rows(
    table: Table,
    heading: str,
    X: xr.DataArray,
    observed: xr.DataArray,
    fits: dict[str, nmd.Decomposition],
) -> None:
    """Add the errors of completed pictures to the table."""
    table.heading(heading, "RMSE", "PSNR [dB]")
    models = {method: fit.reconstruct() for method, fit in fits.items()}
    for method, model in (models | {"linear interpolation": interpolation(observed)}).items():
        error = held_out_error(X, observed, model)
        table.row(method, error, f"{-20 * np.log10(error):.1f}")


def draw_pictures(panels: dict[str, xr.DataArray], path: Path) -> None:
    """Draw four pictures with their titles."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 7.8), layout="constrained")
    for ax, (title, image) in zip(axes.flat, panels.items(), strict=True):
        ax.imshow(image, cmap=plots.gray_with_holes(), vmin=0, vmax=1, interpolation="none")
        ax.set_title(title)
        ax.axis("off")
    save(figure, path)


def decompose_digits(table: Table, out: Path) -> None:
    """Decompose digits into a few components, and predict held-out pixels."""
    digits = datasets.digits()
    observed = hide(digits, DIGITS_MISSING, SEED)
    models = {"ReLU": nmd.ReLU(), "MinMax": nmd.MinMax(0, 1)}
    print(f"\nDecomposing {len(digits)} handwritten digits, and completing them")
    fits, errors = {}, {}
    fits["SVD"] = baselines.truncated_svd(digits, DIGITS_RANK)
    errors["SVD"] = held_out_error(
        digits, observed, baselines.truncated_svd(observed, DIGITS_RANK).reconstruct()
    )
    for name, f in models.items():
        fits[name] = nmd.decompose(digits, DIGITS_RANK, f, progress=True, random_state=SEED)
        same_rank = nmd.complete(observed, DIGITS_RANK, f, random_state=SEED)
        errors[name] = held_out_error(digits, observed, same_rank.reconstruct())
    linear, chosen = default_fit(observed, nonlinearity="identity"), default_fit(observed)
    svd = best_svd(digits, observed)
    completed = {svd_label(svd): svd, label(linear): linear, label(chosen): chosen}

    m, n = digits.shape
    table.heading(f"Handwritten digits ({m} x {n})", "all seen", "30 % missing")
    means = baselines.mean_fill(observed).reconstruct()
    table.row("mean fill", relative_error(digits, baselines.mean_fill(digits)),
              held_out_error(digits, observed, means))  # fmt: skip
    for name, fit in fits.items():
        table.row(f"{name}, rank {DIGITS_RANK}", relative_error(digits, fit), errors[name])
    for name, fit in completed.items():
        table.row(name, "", held_out_error(digits, observed, fit.reconstruct()))
    table.lines += [
        "  all seen: ‖X − model‖ / ‖X‖ of what was fitted; missing: RMSE on the missing pixels",
        "  f matters where all is seen; with a chosen ridge, linear predictions are nearly as good",
    ]
    fits["MinMax"].save(out / "digits.nc")

    draw_digits(digits, fits, out / "digits.png")
    for name in models:
        save(plots.components(fits[name]).figure, out / f"digits_components_{name.lower()}.png")
    save(plots.scatter(fits["MinMax"], 1, 2, labels="digit").figure, out / "digits_scatter.png")


def relative_error(X: xr.DataArray, fit: nmd.Decomposition) -> float:
    return nmd.metrics.relative_error(X, fit.reconstruct().clip(0, 1))


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
        [
            "Errors, smaller is better. RMSE is over the missing pixels, which no method saw. All",
            "values are from 0 to 1, and so are all predictions, which are clipped for this.",
        ]
    )
    rate(table, out)
    for name in datasets.PHOTOGRAPHS:
        complete_photograph(name, table, out)
    decompose_digits(table, out)
    complete_fringes(table, out)
    text = "\n".join(table.lines) + "\n"
    (out / "table.txt").write_text(text, encoding="utf-8")
    print(f"\n{text}\nPictures, table and saved results are in {out}/", end=" ")
    print(f"({time.perf_counter() - began:.0f} s).")


if __name__ == "__main__":
    main()

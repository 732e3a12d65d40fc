"""Four jobs: decompose digits, complete ratings, impute a table, complete a photograph by patches.

    python examples/demo.py --out out

prints a few lines for each job, and writes a report and figures to the folder.  Errors are those
of held-out cells and pixels, which no method sees.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # pictures go to files, with or without a screen

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import sparse
from scipy.interpolate import griddata
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

import nmd_lab as nmd
from nmd_lab import baselines, datasets
from nmd_lab.metrics import rmse

CLASSES = ["species", "island", "sex"]
HELD_OUT = 0.2
SEEDS = (0, 1, 2)


def decompose(out: Path) -> None:
    """Describe digits by 16 components, and predict held-out pixels by as many as are chosen."""
    digits = datasets.digits()
    fits = {
        "MinMax": nmd.decompose(digits, 16, nmd.MinMax(0, 1), random_state=0),
        "ReLU": nmd.decompose(digits, 16, "relu", random_state=0),
        "SVD": baselines.truncated_svd(digits, 16),
        "NMF": baselines.nmf(digits, 16, tol=1e-3, random_state=0),
    }
    train, test = nmd.split_observed(digits, test_size=0.2, random_state=0)
    held_out = {
        "MinMax": nmd.complete(train, nonlinearity=nmd.MinMax(0, 1), random_state=0),
        "linear": nmd.complete(train, nonlinearity="identity", random_state=0),
        "soft-impute": baselines.soft_impute(train, 64, shrinkage=1.5, max_iter=50),
    }
    heading("Decompose: digits by 16 components")
    line("relative error", {name: f"{fit.relative_error:.3f}" for name, fit in fits.items()})
    errors = {name: f"{rmse(test, fit.reconstruct()):.3f}" for name, fit in held_out.items()}
    line("RMSE of held-out pixels, rank chosen", errors)
    save(fits["ReLU"].plot.components(shape=(8, 8)).figure, out / "digits_components.png")


def complete(out: Path) -> None:
    """Complete a sparse matrix of ratings, and suggest films."""
    frame = datasets.movielens_small()
    frame = frame[frame.groupby("item")["item"].transform("size") >= 40]
    ratings = nmd.observations_from_table(frame, row="user", column="item", value="rating")
    train, test = nmd.split_observed(ratings, test_size=0.1, random_state=0)
    fit = nmd.complete(train, random_state=0)
    offsets = nmd.complete(train, 1, alpha=1e6, offset_alpha=5.0, offsets="both", random_state=0)
    residuals = train.values - offsets.predict(train).values
    left = sparse.csr_array((residuals, train.indices, train.indptr), shape=train.shape)
    soft = baselines.soft_impute(left, 20, shrinkage=12, max_iter=40, random_state=0)
    both = offsets.predict(test).values + soft.predict(test.rows, test.indices)
    posterior = nmd.sample(train, 20, draws=100, random_state=0)
    predictions = {
        "nmd.complete": fit.predict(test).values,
        "nmd.sample": posterior.predict(test).values,
        "offsets and soft-impute": both,
        "offsets of user and film": offsets.predict(test).values,
    }
    count = f"{ratings.shape[0]} users, {ratings.n_observed} ratings"
    heading(f"Complete: {count} of films, a tenth held out")
    chosen = f"rank {fit.rank}, ridge {fit.parameters['alpha']:.3g}"
    print(f"  nmd.complete chose {chosen} out of {fit.selection.sizes['trial']} trials")
    off = {name: np.sqrt(np.mean((x - test.values) ** 2)) for name, x in predictions.items()}
    line("RMSE, in stars", {name: f"{value:.3f}" for name, value in off.items()})
    low, high = posterior.predict_interval(test, level=0.9).T
    inside = np.mean((low <= test.values) & (test.values <= high))
    print(f"  90 % intervals of nmd.sample cover {100 * inside:.0f} % of the held-out ratings")
    user = int(frame["user"].iloc[0])
    best = posterior.top(user, k=3, by="lower", exclude=ratings)
    titles = frame.drop_duplicates("item").set_index("item")["title"]
    print(f"  suggested to user {user}: {', '.join(titles[best['item'].values])}")
    figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
    posterior.plot.calibration(test, ax=ax)
    save(figure, out / "ratings_calibration.png")


def with_imputer(imputer: Any, frame: pd.DataFrame) -> pd.DataFrame:
    """Impute a table by scikit-learn: standardised numeric columns, indicators of categories."""
    numbers = frame.drop(columns=CLASSES)
    scaled = (numbers - numbers.mean()) / numbers.std()
    blocks = {name: pd.get_dummies(frame[name], dtype=float) for name in CLASSES}
    known = [blocks[name].where(frame[name].notna(), np.nan).iloc[:, 1:] for name in CLASSES]
    filled = imputer.fit_transform(pd.concat([scaled, *known], axis=1).to_numpy())
    result, first = frame.copy(), numbers.shape[1]
    result[numbers.columns] = filled[:, :first] * numbers.std().values + numbers.mean().values
    for name in CLASSES:
        width = blocks[name].shape[1] - 1
        shares = filled[:, first : first + width]
        shares = np.column_stack([1 - shares.sum(axis=1), shares])  # of the first class: the rest
        result[name] = blocks[name].columns.take(shares.argmax(axis=1))
        first += width
    return result


def scores(filled: pd.DataFrame, truth: pd.DataFrame, held_out: np.ndarray) -> list[float]:
    """Return the RMSE of held-out numeric cells, in SD, and the fraction of correct categories."""
    numbers = truth.columns.difference(CLASSES, sort=False)
    asked = pd.DataFrame(held_out, truth.index, truth.columns)
    off = ((filled[numbers] - truth[numbers]) / truth[numbers].std()).to_numpy()[asked[numbers]]
    right = (filled[CLASSES].astype(str) == truth[CLASSES].astype(str)).to_numpy()[asked[CLASSES]]
    return [float(np.sqrt(np.mean(off**2))), float(right.mean())]


def impute(out: Path) -> None:
    """Impute held-out cells of the penguins, and compare with other imputers."""
    truth, found = datasets.penguins(), {}
    rivals = {
        "KNNImputer": lambda _: KNNImputer(),
        "IterativeImputer": lambda seed: IterativeImputer(random_state=seed),
        "IterativeImputer with trees": lambda seed: IterativeImputer(
            ExtraTreesRegressor(30, random_state=seed), max_iter=5, random_state=seed
        ),
    }
    covered = []
    for seed in SEEDS:
        held_out = (np.random.default_rng(seed).random(truth.shape) < HELD_OUT) & truth.notna()
        held_out = held_out.to_numpy()
        seen = truth.mask(held_out)
        filled, posterior = nmd.impute(seen, return_posterior=True, random_state=seed)
        found.setdefault("nmd.impute", []).append(scores(filled, truth, held_out))
        ends, numbers = posterior.intervals(seen, level=0.9), seen.columns.difference(CLASSES)
        low, high = (ends.xs(end, axis=1, level=1)[numbers] for end in ("low", "high"))
        inside = (low <= truth[numbers]) & (truth[numbers] <= high)
        at = held_out[:, seen.columns.get_indexer(numbers)]
        covered.append(float(inside.to_numpy()[at].mean()))
        for name, make in rivals.items():
            found.setdefault(name, []).append(
                scores(with_imputer(make(seed), seen), truth, held_out)
            )
    posterior.report(seen, held_out=truth.where(held_out)).save(out / "penguins.html")
    heading(f"Impute: {len(truth)} penguins, a fifth of the cells held out, {len(SEEDS)} times")
    means = {name: np.mean(runs, axis=0) for name, runs in found.items()}
    spreads = {name: np.std(runs, axis=0, ddof=1) for name, runs in found.items()}
    errors = {name: f"{mean[0]:.2f} ± {spreads[name][0]:.2f}" for name, mean in means.items()}
    line("RMSE of numeric cells, in SD", errors)
    line("correct categories", {name: f"{100 * mean[1]:.0f} %" for name, mean in means.items()})
    print(
        f"  90 % intervals of nmd.impute cover {100 * np.mean(covered):.0f} % of the numeric cells"
    )


def inpaint(out: Path) -> None:
    """Complete a photograph by patches, and compare with interpolation."""
    photograph = datasets.photograph("china")[85:277, 224:416]
    truth, at = photograph.values, np.indices(photograph.shape)
    found: dict[str, list[float]] = {}
    covered = []
    for seed in SEEDS:
        held_out = np.random.default_rng(seed).random(truth.shape) < 0.6
        filled = nmd.inpaint(photograph, ~held_out, random_state=seed)
        places = np.argwhere(~held_out)
        linear, nearest = (
            griddata(places, truth[~held_out], tuple(at), kind) for kind in ("linear", "nearest")
        )
        pictures = {
            "nmd.inpaint": filled["picture"].values,
            "linear interpolation": np.where(np.isnan(linear), nearest, linear),
        }
        for name, picture in pictures.items():
            found.setdefault(name, []).append(rmse(truth, picture, observed=held_out))
        off = np.abs(filled["picture"].values - truth)
        covered.append(np.mean((off <= 1.645 * filled["std"].values)[held_out]))
    heading(f"Complete a photograph by patches: 60 % of the pixels held out, {len(SEEDS)} times")
    values = {name: f"{np.mean(e):.3f} ± {np.std(e, ddof=1):.3f}" for name, e in found.items()}
    line("RMSE, of 0 to 1", values)
    inside = f"{100 * np.mean(covered):.0f} %"
    print(f"  90 % intervals of nmd.inpaint cover {inside} of the held-out pixels")
    draw({"seen": np.where(held_out, np.nan, truth)} | pictures | {"photograph": truth}, out)


def draw(pictures: dict[str, Any], out: Path) -> None:
    """Draw images in a row."""
    figure, axes = plt.subplots(1, len(pictures), figsize=(12, 3.4), layout="constrained")
    for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
        ax.imshow(picture, cmap=nmd.plots.gray_with_holes(), vmin=0, vmax=1)
        ax.set_title(name)
        ax.axis("off")
    save(figure, out / "photograph_filled.png")


def save(figure: Any, path: Path) -> None:
    """Write a figure, and close it."""
    figure.savefig(path, dpi=120)
    plt.close(figure)


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}")


def line(measure: str, values: dict[str, str]) -> None:
    """Print the numbers of several methods in one line."""
    print(f"  {measure}: {', '.join(f'{value} {name}' for name, value in values.items())}")


def main() -> None:
    """Do the four jobs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the results")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    for job in (decompose, complete, impute, inpaint):
        job(out)
    print(f"\nA report and figures are in {out}/ ({time.perf_counter() - began:.0f} s).")


if __name__ == "__main__":
    main()

"""Clicks: precision at 10 of decompose, implicit, LensKit and popularity on MovieLens 100K.

    python benchmarks/clicks.py DATA --write

DATA is the folder of ml-100k; implicit and LensKit have a virtual environment of their own.
A click is a rating of 4 or 5 in u1.base, and films that a user has rated there are not recommended.
The best of 18 settings of each method is chosen by a tenth of the training clicks, and fitted to
all of them with 5 seeds.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common.pages import table, write_tables
from scipy import sparse

import nmd_lab as nmd

SEEDS = range(5)
LIKED = 4


def decompose(clicks: Any, seed: int, rank: int, sign: str | None = None, **options: Any) -> Any:
    """Return the scores of a fit with the Kullback-Leibler loss."""
    signs = {"w_constraint": sign, "h_constraint": sign}
    fit = nmd.decompose(clicks, rank, "identity", "kl", random_state=seed, **signs, **options)
    return fit.W.values @ fit.H.values


def implicit_als(clicks: Any, seed: int, rank: int, **options: Any) -> Any:
    """Return the scores of implicit's alternating least squares."""
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(factors=rank, random_state=seed, num_threads=1, **options)
    model.fit(clicks.astype(np.float32), show_progress=False)
    return model.user_factors @ model.item_factors.T


def lenskit_als(clicks: Any, seed: int, rank: int, **options: Any) -> Any:
    """Return the scores of LensKit's alternating least squares."""
    import pandas as pd
    from lenskit.als import ImplicitMFScorer
    from lenskit.data import from_interactions_df
    from lenskit.training import TrainingOptions

    users, items = clicks.nonzero()
    clicked = from_interactions_df(pd.DataFrame({"user_id": users, "item_id": items}))
    model = ImplicitMFScorer(embedding_size=rank, **options)
    model.train(clicked, TrainingOptions(rng=seed))
    scores = np.full(clicks.shape, -np.inf)
    places = np.ix_(np.asarray(model.users.ids()), np.asarray(model.items.ids()))
    scores[places] = np.asarray(model.user_embeddings) @ np.asarray(model.item_embeddings).T
    return scores


def popularity(clicks: Any, seed: int) -> Any:
    """Return the number of clicks of each film."""
    return np.tile(clicks.sum(axis=0), (clicks.shape[0], 1))


RANKS = {"rank": (10, 20, 40)}
OF_FIT = RANKS | {"alpha": (0, 5, 20), "max_iter": (30, 100)}
OF_IMPLICIT = RANKS | {"alpha": (1, 5, 20), "regularization": (0.1, 10)}
OF_LENSKIT = RANKS | {"weight": (1, 5, 20), "regularization": (0.1, 10)}
METHODS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "`decompose`": (decompose, OF_FIT),
    "`decompose`, nonnegative": (partial(decompose, sign="nonnegative"), OF_FIT),
    "implicit": (implicit_als, OF_IMPLICIT),
    "LensKit": (lenskit_als, OF_LENSKIT),
    "popularity": (popularity, {}),
}


def precision(scores: Any, known: Any, hidden: Any) -> float:
    """Return the mean fraction of hidden clicks among the first 10, for users that have some."""
    users = np.flatnonzero(hidden.sum(axis=1))
    first = np.argsort(-np.where(known[users], -np.inf, scores[users]), axis=1, kind="stable")
    return float(np.take_along_axis(hidden[users], first[:, :10], axis=1).mean())


def rows_of_table(folder: Path) -> Iterator[list[str]]:
    """Return for each method the chosen setting, and precision at 10 with its spread."""
    ratings = [np.loadtxt(folder / f"u1.{part}", int) for part in ("base", "test")]
    shape = tuple(1 + np.concatenate(ratings)[:, :2].max(axis=0))
    seen = np.zeros(shape, bool)
    seen[ratings[0][:, 0], ratings[0][:, 1]] = True
    liked = [rating[rating[:, 2] >= LIKED, :2] for rating in ratings]
    training, test = (sparse.csr_array((np.ones(len(x)), x.T), shape=shape) for x in liked)
    fold = np.random.default_rng(0).random(len(liked[0])) < 0.1
    few = sparse.csr_array((training.data[~fold], liked[0][~fold].T), shape=shape)
    held = sparse.csr_array((training.data[: fold.sum()], liked[0][fold].T), shape=shape).toarray()
    for name, (scores_of, grid) in METHODS.items():
        settings = [
            dict(zip(grid, each, strict=True)) for each in itertools.product(*grid.values())
        ]
        found = [
            precision(scores_of(few, 0, **each), seen & (held == 0), held) for each in settings
        ]
        best = settings[int(np.argmax(found))]
        tests = [precision(scores_of(training, k, **best), seen, test.toarray()) for k in SEEDS]
        words = ", ".join(f"{option} {value}" for option, value in best.items())
        yield [name, words, f"{max(found):.3f}", f"{np.mean(tests):.3f} ± {np.std(tests):.3f}"]


def main() -> None:
    """Print the table, or write it into docs/clicks.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of ml-100k")
    parser.add_argument("--write", action="store_true", help="write the table into docs/clicks.md")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    head = ["method", "chosen setting", "validation", "test, mean ± SD of 5 seeds"]
    text = table(head, rows_of_table(given.data))
    if given.write:
        write_tables("how_to", "clicks", text)
    else:
        print(text)


if __name__ == "__main__":
    main()

"""Some fifty generated sets, most of them unkind: noise, constants, outliers, few entries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .problems import Array, Problem, hide

Random = np.random.Generator


def low_rank(rng: Random, shape: tuple[int, int], rank: int) -> Array:
    """Return a product of Gaussian factors whose entries have variance 1."""
    m, n = shape
    X = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    return X / X.std()


def noisy(
    snr: float, shape: tuple[int, int] = (100, 80), rank: int = 4, mean: float = 0.0
) -> Callable[[Random], Array]:
    """Return a maker of low rank and noise, with a ratio of the standard deviations."""
    return lambda rng: mean + low_rank(rng, shape, rank) + rng.normal(size=shape) / snr


def noise(shape: tuple[int, int], mean: float = 0.0) -> Callable[[Random], Array]:
    """Return a maker of noise."""
    return lambda rng: mean + rng.normal(size=shape)


def constant(value: float, shape: tuple[int, int] = (60, 40)) -> Callable[[Random], Array]:
    """Return a maker of a constant."""
    return lambda rng: np.full(shape, value)


def outlier(size: float, snr: float = 3.0) -> Callable[[Random], Array]:
    """Return a maker of low rank and noise with one entry far off."""

    def make(rng: Random) -> Array:
        X = noisy(snr)(rng)
        X[3, 5] = size
        return X

    return make


def additive(shape: tuple[int, int] = (100, 80)) -> Callable[[Random], Array]:
    """Return a maker of offsets of rows and columns with noise."""
    return lambda rng: (
        3
        + rng.normal(size=(shape[0], 1))
        + rng.normal(size=shape[1])
        + 0.5 * rng.normal(size=shape)
    )


def counts(shape: tuple[int, int] = (100, 80)) -> Callable[[Random], Array]:
    """Return a maker of Poisson counts with nonnegative rates of rank 3."""
    return lambda rng: rng.poisson(
        rng.gamma(1, 1, (shape[0], 3)) @ rng.gamma(1, 1, (3, shape[1]))
    ).astype(float)


def clipped(rng: Random) -> Array:
    """Return the positive part of low rank and noise."""
    return np.maximum(noisy(3)(rng), 0)


MAKERS: dict[str, tuple[Callable[[Random], Array], float]] = {
    **{
        f"low rank, SNR {snr:g}, {100 * share:.0f} % missing": (noisy(snr), share)
        for snr in (0.3, 1, 3, 10)
        for share in (0.1, 0.5, 0.8, 0.95)
    },
    **{
        f"low rank + 5, SNR {snr:g}, 50 % missing": (noisy(snr, mean=5), 0.5) for snr in (0.3, 1, 3)
    },
    **{
        f"noise {m}x{n} + {mean:g}, {100 * share:.0f} % missing": (noise((m, n), mean), share)
        for m, n, mean, share in (
            (100, 80, 0, 0.1),
            (100, 80, 5, 0.5),
            (100, 80, 0, 0.9),
            (30, 20, 0, 0.3),
            (300, 20, 5, 0.5),
            (20, 300, 0, 0.5),
        )
    },
    "constant 1": (constant(1.0), 0.5),
    "constant 0": (constant(0.0), 0.5),
    "constant -1e6": (constant(-1e6), 0.3),
    "constant 3, 95 % missing": (constant(3.0), 0.95),
    "one outlier, 10": (outlier(10.0), 0.3),
    "one outlier, 100": (outlier(100.0), 0.3),
    "one outlier, 1e4": (outlier(1e4), 0.3),
    "one outlier, -100, 70 % missing": (outlier(-100.0), 0.7),
    "one outlier, 100, noise": (outlier(100.0, snr=0.3), 0.3),
    "1 % observed, 300x200": (noisy(3, (300, 200), 2), 0.99),
    "1 % observed, 300x200, + 5": (noisy(3, (300, 200), 2, 5.0), 0.99),
    "1 % observed, 1000x400": (noisy(3, (1000, 400), 2), 0.99),
    "1 % observed, offsets": (additive((500, 300)), 0.99),
    "1 % observed, noise": (noise((300, 200)), 0.99),
    "2 rows": (noisy(3, (2, 100), 1), 0.2),
    "3 rows": (noisy(3, (3, 200), 1), 0.3),
    "5 rows": (noisy(3, (5, 200), 2), 0.4),
    "8 rows, noise": (noise((8, 50)), 0.3),
    "2 columns": (noisy(3, (100, 2), 1), 0.2),
    "3 columns": (noisy(3, (200, 3), 1), 0.3),
    "5 columns": (noisy(3, (200, 5), 2), 0.4),
    "1 column": (noise((50, 1), 2.0), 0.3),
    "6x5": (noisy(10, (6, 5), 1), 0.2),
    "offsets": (additive(), 0.5),
    "counts": (counts(), 0.5),
    "clipped at 0": (clipped, 0.5),
}
"""Sets by name: a function of a Generator, and the fraction of holes."""


def generate(name: str, seed: int = 0) -> Problem:
    """Return a generated set by its name; an outlier is observed, and nothing is empty."""
    make, share = MAKERS[name]
    rng = np.random.default_rng([seed, list(MAKERS).index(name)])
    X = make(rng)
    hidden = rng.random(X.shape) < share
    hidden |= ~hidden.any()
    hidden.flat[int(np.argmax(np.abs(X - np.median(X))))] = False
    return hide(X, hidden)

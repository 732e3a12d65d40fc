"""Posteriors of made-up draws, and their distributions by brute force."""

from dataclasses import fields

import numpy as np
from oracles import forward

import nmd_lab
from nmd_lab.data.labels import labels_of
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.model import make_model

A, B = -0.4, 0.9
CUTS, LEVELS = np.array([-0.8, 0.1, 1.2]), (1.0, 2.0, 3.5, 5.0)
GRID = np.linspace(-9, 9, 40_001)
"""Standard normal numbers for the brute-force integrals over T."""


def made_up(
    X, f="identity", loss="frobenius", noise="gaussian", chains=2, draws=30, rank=3, seed=0, **more
):
    """A posterior with random factors, offsets and noise levels for data of the labels of X."""
    rng = np.random.default_rng(seed)
    labels = X if hasattr(X, "matrix_shape") else labels_of(X)
    m, n = labels.matrix_shape
    outer = (chains, draws)

    def normal(*shape, scale=1.0):
        return (scale * rng.normal(size=(*outer, *shape))).astype(np.float32)

    arrays = {
        "W": normal(m, rank, scale=0.3) + 0.5,
        "H": normal(n, rank, scale=0.3) + 0.5,
        "rho": rng.uniform(2, 6, outer),
        "row_offsets": normal(m, scale=0.3),
        "column_offsets": normal(n, scale=0.3),
        "mean": -0.3,
    }
    if noise == "after":
        arrays["beta"] = rng.uniform(3, 9, outer)
    if noise == "ordinal":
        arrays["rho"] = np.ones(outer)
        arrays["cut_points"] = CUTS + 0.05 * rng.normal(size=(*outer, 3))
        more["levels"] = LEVELS
    f = nmd_lab.MinMax(A, B) if f == "minmax" else f
    return posterior_of(labels, nonlinearity=f, loss=loss, noise=noise, **arrays | more)


def posterior_of(labels, nonlinearity="identity", loss="frobenius", noise="gaussian", **more):
    """A posterior of arrays and of other fields."""
    names = {each.name for each in fields(nmd_lab.Posterior)} - {"mean"} & more.keys()
    loss = LOSSES["ordinal"](more.pop("levels")) if noise == "ordinal" else loss
    others = {"stop_reason": "", "noise": noise, "_model": make_model(nonlinearity, loss)}
    others |= {name: more.pop(name) for name in names}
    return nmd_lab.Posterior._from_arrays(labels, more, **others)


def plain(posterior):
    """v, rho, beta and cut points of all draws: WH plus offsets by textbook products."""
    draws = posterior.draws.stack(s=("chain", "draw")).transpose("s", ...)
    rank = draws.sizes["component"]
    size = draws.sizes["s"]
    W = np.moveaxis(draws.W.values, draws.W.dims.index("component"), -1).reshape(size, -1, rank)
    H = draws.H.values.reshape(size, rank, -1).astype(float)
    v = W.astype(float) @ H + posterior.mean
    if "row_offsets" in draws:
        v = v + draws.row_offsets.values.reshape(size, -1, 1)
    if "column_offsets" in draws:
        v = v + draws.column_offsets.values.reshape(size, 1, -1)
    beta = draws.beta.values if "beta" in draws else None
    return v, draws.rho.values, beta, draws.cut_points.values if "cut_points" in draws else None


def values_of_f(posterior, v, rho):
    """f(T) on a grid of T (draws, points), and the weights of the points."""
    name = posterior.nonlinearity.name
    f = forward(name, v[:, None] + GRID / np.sqrt(rho)[:, None], A, B)
    weights = np.exp(-(GRID**2) / 2)
    return f, weights / weights.sum()

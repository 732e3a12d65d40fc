"""Published errors of predicted ratings, with their protocol and what else they use."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """A published root mean squared error.

    Attributes
    ----------
    data : str
        The ratings.
    protocol : str
        How training and test ratings were made.
    method : str
        The method.
    rmse : str
        The error, as published.
    uses : str
        What the method sees besides the training ratings.
    source : str
        Where the number is from.
    """

    data: str
    protocol: str
    method: str
    rmse: str
    uses: str
    source: str


NOTHING = "ratings alone"
GCMC = "[Berg, Kipf and Welling, 2017](https://arxiv.org/abs/1706.02263)"
RENDLE = "[Rendle, Zhang and Koren, 2019](https://arxiv.org/abs/1905.01395)"
SURPRISE = "[its README](https://github.com/NicolasHug/Surprise)"
MYFM = "[its README](https://github.com/tohtsky/myFM)"
NOTEBOOKS = "[its notebooks](https://github.com/tohtsky/myFM/tree/main/examples)"
DGL = "[examples of DGL](https://github.com/dmlc/dgl/tree/master/examples/pytorch/gcmc)"

EVERYTHING = "time, side tables, who rated what"

FIGURES = (
    Figure("MovieLens 100K", "u1", "GC-MC", ".910", NOTHING, GCMC),
    Figure("MovieLens 100K", "u1", "GC-MC with features", ".905", "side tables", GCMC),
    Figure("MovieLens 100K", "u1", "GC-MC, done again", ".9088", NOTHING, DGL),
    Figure("MovieLens 100K", "u1", "myFM", ".8808", EVERYTHING, NOTEBOOKS),
    Figure("MovieLens 100K", "u3", "myFM, rank 8", ".8959", NOTHING, MYFM),
    Figure("MovieLens 100K", "5 folds, 80/20", "Surprise SVD", ".9355", NOTHING, SURPRISE),
    Figure("MovieLens 1M", "90/10", "GC-MC", ".832", NOTHING, GCMC),
    Figure("MovieLens 1M", "90/10", "GC-MC, done again", ".8377", NOTHING, DGL),
    Figure("MovieLens 1M", "90/10", "myFM", ".8140", EVERYTHING, NOTEBOOKS),
    Figure("MovieLens 10M", "90/10", "SGD MF, rank 512", ".7720", NOTHING, RENDLE),
    Figure("MovieLens 10M", "90/10", "Bayesian MF, rank 512", ".7633", NOTHING, RENDLE),
    Figure("MovieLens 10M", "90/10", "Bayesian SVD++", ".7563", "who rated what", RENDLE),
    Figure("MovieLens 10M", "90/10", "Bayesian timeSVD++, flipped", ".7485",
           "time, who rated what", RENDLE),
)  # fmt: skip
"""Figures in the order of the table."""

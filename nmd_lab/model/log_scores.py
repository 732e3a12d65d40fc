"""Log scores: minus the log-likelihood of each entry under the noise that its loss stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from .binary import Logistic
from .kind import FloatArray
from .loss import Loss
from .losses import KL, L1, Frobenius
from .model import Model
from .ordinal import Ordinal
from .positive import NegativeBinomial

Scores = Callable[[FloatArray, FloatArray], FloatArray]
"""A function of the losses and the values x of some entries."""


def _gaussian(losses: FloatArray, x: FloatArray) -> FloatArray:
    """Return the scores under the variance that makes them lowest, twice the mean loss."""
    mean = _positive_mean(losses)
    scores: FloatArray = 0.5 * np.log(4 * np.pi * mean) + 0.5 * losses / mean
    return scores


def _laplace(losses: FloatArray, x: FloatArray) -> FloatArray:
    """Return the scores under the scale that makes them lowest, the mean loss."""
    mean = _positive_mean(losses)
    scores: FloatArray = np.log(2 * mean) + losses / mean
    return scores


def _poisson(losses: FloatArray, x: FloatArray) -> FloatArray:
    scores: FloatArray = losses + x - xlogy(x, x) + gammaln(x + 1)
    return scores


def _itself(losses: FloatArray, x: FloatArray) -> FloatArray:
    return losses


SCORES: dict[type[Loss], Scores] = {
    Frobenius: _gaussian,
    L1: _laplace,
    KL: _poisson,
    **dict.fromkeys((Logistic, Ordinal, NegativeBinomial), _itself),
}
"""How scores follow from losses, for the losses that have a likelihood."""


def without_likelihood(model: Model) -> Loss | None:
    """Return a loss of a model that has no likelihood; None if all have one."""
    return next((kind.loss for kind in model.kinds if type(kind.loss) not in SCORES), None)


def log_scores(loss: Loss, losses: FloatArray, x: FloatArray) -> FloatArray:
    """Return the score of each entry of one loss."""
    return SCORES[type(loss)](losses, x)


def log_scores_of(
    model: Model, losses: FloatArray, x: FloatArray, positions: tuple[NDArray[Any], NDArray[Any]]
) -> FloatArray:
    """Return the score of each entry of a model from its losses, in the units of its columns."""
    if model.which is None:
        return log_scores(model.loss, losses, x)
    which, scores = model.which_at(*positions), np.empty(losses.size)
    for position, kind in enumerate(model.kinds):
        at = which == position
        of_kind = SCORES[type(kind.loss)]
        unit = kind.weight if of_kind in (_itself, _poisson) else 1.0  # probabilities have none
        scores[at] = of_kind(losses[at] / unit, x[at])
    return scores


def _positive_mean(losses: FloatArray) -> float:
    mean = float(np.mean(losses)) if losses.size else 1.0
    return max(mean, float(np.finfo(float).tiny))

"""Held-out entries, and the error at them, for early stopping."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import errors_about, new_stream
from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.data.matched import match_data
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.data.split import split
from nmd_lab.model.mixed import AnyPair, MixedPair
from nmd_lab.model.proximal import Pair

from .options import Options
from .storage import CsrStorage


class HeldOut:
    """Observed entries that are not used in the fit; the model is compared with them.

    Parameters
    ----------
    observations : SparseObservations
        Positions and values of the entries.  A limit is compared with the nearest value that it
        allows.
    pair : Pair or MixedPair
        Nonlinearity and loss, in the units of X.
    """

    def __init__(self, observations: SparseObservations, pair: AnyPair) -> None:
        self.pair = pair
        self.values: NDArray[Any] = observations.values
        self.weights, self.limits = observations.weights, observations.limits
        self.storage = CsrStorage(observations.shape, observations.indptr, observations.indices)
        self.positions = observations.rows, observations.indices

    def rmse(self, W_aug: FloatArray, H_aug: FloatArray, pair: AnyPair | None = None) -> float:
        """Return the root mean squared error of the expected values.

        It is in the units of X; for a mixed pair, in the units of each column.  Another pair has
        learned parameters.
        """
        pair, t = self.pair if pair is None else pair, self.storage.all_products(W_aug, H_aug)
        if isinstance(pair, MixedPair):
            model = pair.expected(t, *self.positions)
            errors = pair.in_units(self._targets(model) - model, *self.positions)
        else:
            model = pair.loss.expected(pair.nonlinearity(t))
            errors = self._targets(model) - model
        squares = np.square(errors, dtype=np.float64)
        return float(np.sqrt(np.average(squares, weights=self.weights)))

    def losses(self, W_aug: FloatArray, H_aug: FloatArray) -> FloatArray:
        """Return the weighted loss of each entry, in the units of X."""
        pair, t = self.pair, self.storage.all_products(W_aug, H_aug)
        losses: FloatArray
        if isinstance(pair, MixedPair):
            x = self._targets(pair.expected(t, *self.positions)).astype(np.float64)
            losses = pair.losses(x, t.astype(np.float64), *self.positions)
        else:
            model = pair.nonlinearity(t).astype(np.float64)
            losses = pair.loss(self._targets(model).astype(np.float64), model)
        return losses if self.weights is None else self.weights * losses

    def _targets(self, model: FloatArray) -> FloatArray:
        """Return the values to compare a model with."""
        if self.limits is None:
            return self.values
        smallest = self.pair.limits.smallest if isinstance(self.pair, Pair) else -np.inf
        return self.limits.nearest(self.values, model, smallest)


def hold_out(
    observations: Observations, options: Options, rng: np.random.Generator
) -> tuple[Observations, SparseObservations | None]:
    """Return the observations for the fit, and the held-out entries.

    Parameters
    ----------
    observations : Observations
        All observations.
    options : Options
        `validation`: share of the observations to hold out, or a matrix with the held-out entries.
    rng : Generator
        Random numbers.  The choice of a share has a stream of its own.

    Raises
    ------
    ValueError, TypeError
        If no entry is held out, or none is left for the fit, or if `validation` is not a matrix of
        the shape of X, or if the absent entries of a sparse X are zeros.
    """
    validation = options.validation
    if validation is None:
        return observations, None
    if observations.absent_are_zeros:
        raise ValueError(
            "validation= does not go with a sparse X whose absent entries are zeros: use "
            "complete(), or a dense X."
        )
    if options.holds_out_share:
        rest, held_out = split(observations, float(validation), new_stream(rng))
        if not held_out.n_observed:
            raise ValueError(
                f"validation={validation} holds out none of the {rest.n_observed} observed "
                "entries, since each row and column keeps one: give validation=None, or more data."
            )
    else:
        held_out = _given(validation, observations)
        rest = _without(observations, held_out)
    return rest, held_out.as_sparse()


def _given(validation: Any, observations: Observations) -> SparseObservations:
    """Return given held-out entries at their positions in X."""
    with errors_about("validation"):
        matched = match_data(observations.labels, validation, owner="X")
    return matched.as_sparse(observations.labels)


def _without(observations: Observations, held_out: Observations) -> Observations:
    """Return the observations at all positions that are not held out."""
    own, held = (_positions(each) for each in (observations, held_out))
    keep = ~np.isin(own, held, assume_unique=True)
    if keep.all():
        return observations
    if not keep.any():
        raise ValueError(
            "validation holds out every observed entry of X: give fewer entries, or a share "
            "between 0 and 1."
        )
    return observations.select(keep)


def _positions(observations: Observations) -> NDArray[np.int64]:
    """Return the position of each observed entry in the flat matrix."""
    rows, columns, _ = observations.entries()
    return rows.astype(np.int64) * observations.shape[1] + columns

"""New rows of a posterior, with their own uncertainty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab._runtime.checks import as_generator
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import Labels
from nmd_lab.data.matching import MatchedData
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.split import without_rows
from nmd_lab.model.model import Model, make_model
from nmd_lab.model.ordinal import Ordinal

from .draws import CHAIN, DRAW
from .draws_dataset import label_draws
from .entries import Unknown, check_unknown
from .fold_in import check_values, match_rows, observe_rows
from .intervals import PosteriorPredictions

SHARED = {"rho", "beta", "cut_points", "row_mean", "row_precision", "row_share"}
"""Draws that say the same of new rows."""


class NewRowsOfPosterior(PosteriorPredictions):
    """Rows that the chains have not seen."""

    def fold_in(
        self,
        X: Any,
        *,
        observed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        unknown: Unknown = "error",
        random_state: Any = 0,
    ) -> Self:
        """Return the posterior of new rows, given the draws of H; these do not learn from them.

        Parameters
        ----------
        X : array_like, DataFrame, DataArray, Series or scipy.sparse matrix
            New rows, with the columns of this posterior: all, or with labels some.
        observed, weights : array_like, optional
            Mask of the observed entries, and weights.
        unknown : {"error", "offsets"}, default "error"
            What is done with rows without entries and with columns that the fit does not have.
            "error": a sentence names them.  "offsets": the row is drawn from its prior, and
            unknown columns are left out.
        random_state : int, Generator or None, default 0
            Seed.

        Returns
        -------
        Posterior
            Draws of the new rows; a draw has the same H as that of this posterior.

        Raises
        ------
        ValueError, TypeError
            If X is invalid, or has rows without entries or other columns.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine[:150], 3, draws=50, random_state=0)
        >>> new = posterior.fold_in(wine[150:].assign(alcohol=float("nan")))
        >>> low, high = new.predict_interval(177, "alcohol")[0]
        >>> (
        ...     bool(low < 13.5 < high),
        ...     bool(new.predict_std(177, "alcohol") > new.predict_std(177, "ash")),
        ... )
        (True, True)
        """
        check_unknown(unknown)
        new_data = observe_rows(self._labels, X, observed=observed, weights=weights)
        observations, columns = match_rows(self._labels, new_data, unknown)
        check_values(self._model, columns, observations)
        m, n = observations.shape[0], self._shape[1]
        seen = MatchedData(observations, np.arange(m), columns).as_sparse(Labels.plain((m, n)))
        rows = self._draw_rows(seen, int(as_generator(random_state).integers(2**62)))
        labels = labels_of_new_rows(self._labels, new_data.labels)
        return self._with_rows(labels, rows, new_rows=m)

    def _with_rows(self, labels: Labels, vectors: FloatArray, **parameters: Any) -> Self:
        """Return the posterior of other rows, given their vectors (draws, m, rank [+ 1])."""
        outer = self.draws.sizes[CHAIN], self.draws.sizes[DRAW]
        rows = vectors.reshape(*outer, *vectors.shape[1:])
        _, H, _, column_offsets = self._stacked
        arrays = {name: self.draws[name].values for name in SHARED & set(self.draws)}
        arrays |= {"W": rows[..., : self.rank], "H": H.reshape(*outer, *H.shape[1:])}
        if "row_offsets" in self.draws:
            arrays["row_offsets"] = rows[..., self.rank]
        if column_offsets is not None:
            arrays["column_offsets"] = column_offsets.reshape(*outer, -1)
        posterior: Self = replace(
            cast(Any, self),
            _labels=labels,
            draws=label_draws(labels, arrays, by_column=self._kinds is not None),
            trace=self.trace[["log_likelihood"]],
            parameters=self.parameters | parameters,
        )
        return posterior

    def _unknown_row(self) -> Self:
        """Return the posterior of a row of which nothing is observed, drawn from its prior."""
        shares, means, precisions = self._row_prior
        rng, each = np.random.default_rng(0), np.arange(self._n_draws)
        below = np.cumsum(shares, axis=1) / shares.sum(axis=1, keepdims=True)
        group = np.sum(below[:, :-1] < rng.random((self._n_draws, 1)), axis=1)
        roots = np.linalg.cholesky(precisions[each, group]).swapaxes(1, 2)
        normal = rng.standard_normal((*roots.shape[:2], 1))
        vectors = means[each, group] + np.linalg.solve(roots, normal)[..., 0]
        rows = vectors[:, None].astype(self.draws["W"].dtype)
        return self._with_rows(
            without_rows(self._labels, 1), rows[:, None].astype(self.draws["W"].dtype)
        )

    @property
    def _model(self) -> Model:
        """The model of the columns."""
        if self.noise == "ordinal":
            return make_model("identity", Ordinal(cast(Any, self.levels)))
        return super()._model

    def _draw_rows(self, observations: SparseObservations, seed: int) -> FloatArray:
        """Return draws of new rows."""
        from nmd_lab.solver.sampler.chain import draw_new_rows

        noises = [self.noise] if isinstance(self.noise, str) else self.noise
        drawn = draw_new_rows(
            observations,
            self._H_draws(observations.dtype),
            seed,
            model=self._model,
            noises=tuple("gaussian" if noise == "clipped" else noise for noise in noises),
            rank=self.rank,
            **{name: name in self.draws for name in ("row_offsets", "column_offsets")},
            mean=self.mean,
            by_column=self._kinds is not None,
        )
        return np.stack([vectors.astype(self.draws["W"].dtype) for vectors in drawn])

    def _H_draws(self, dtype: Any) -> Iterator[Any]:
        from nmd_lab.solver.sampler.chain import DrawOfH
        from nmd_lab.solver.sampler.priors import RowPrior

        _, H, _, of_columns = self._stacked
        rho, beta, cuts = (self._flat(name) for name in ("rho", "beta", "cut_points"))
        shares, means, precisions = self._row_prior
        assert rho is not None
        n_kinds = rho.shape[1]
        for s in range(self._n_draws):
            columns = H[s] if of_columns is None else np.column_stack([H[s], of_columns[s]])
            yield DrawOfH(
                columns.astype(dtype),
                rho[s].astype(np.float64),
                np.ones(n_kinds) if beta is None else beta[s].astype(np.float64),
                RowPrior(means[s], precisions[s], shares[s].astype(np.float64)),
                None if cuts is None else cuts[s].reshape(n_kinds, -1),
            )


def at_rows(posterior: P, positions: NDArray[np.integer], others: P | None = None) -> P:
    """Return the posterior of some rows; where a position is -1, of the next row of others."""
    rows = posterior._row_vectors[:, positions]
    if others is not None:
        rows[:, positions < 0] = others._row_vectors
    return posterior._with_rows(without_rows(posterior._labels, positions.size), rows)


P = TypeVar("P", bound=NewRowsOfPosterior)


def labels_of_new_rows(labels: Labels, new_labels: Labels) -> Labels:
    """Return the labels of new rows beside the columns of a posterior."""
    columns, coords = without_rows(labels, 1), new_labels.coords
    others = [name for name, c in coords.coords.items() if not set(c.dims) <= {*new_labels.rows}]
    return replace(
        columns,
        dims=(*new_labels.rows, *labels.columns),
        shape=(*(new_labels.sizes[dim] for dim in new_labels.rows), *columns.shape[1:]),
        rows=new_labels.rows,
        coords=coords.drop_vars(others).merge(columns.coords),
        valid_range=None,
    )

"""The fields of a fitted model, as plain matrices."""

from __future__ import annotations

from typing import Any

import xarray as xr

from nmd_lab._stop_reason import StopReason
from nmd_lab.data.base import FloatArray
from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.model.fitted_values import FittedValues, Offsets
from nmd_lab.model.losses import Loss
from nmd_lab.model.model import Model, make_model
from nmd_lab.model.nonlinearities import Nonlinearity


class Factors:
    """The base of a result: its fields, as plain matrices.

    `Decomposition` documents the fields.
    """

    W: xr.DataArray
    H: xr.DataArray
    nonlinearity: Nonlinearity
    loss: Loss
    history: xr.Dataset
    stop_reason: StopReason
    labels: Labels
    parameters: dict[str, Any]
    offsets: Offsets
    kinds: Model | None = None

    @property
    def rank(self) -> int:
        """Number of components."""
        return self.W.sizes[COMPONENT]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns of X."""
        return self.W.size // self.rank, self.H.size // self.rank

    @property
    def fitted(self) -> FittedValues:
        """f(WH) at positions: ``fitted.at(rows, columns)``, ``fitted.block(rows, columns)``."""
        model = self.kinds or make_model(self.nonlinearity, self.loss)
        return FittedValues(*self.factors, self.offsets, model)

    @property
    def factors(self) -> tuple[FloatArray, FloatArray]:
        """W (m, rank) and H (rank, n) as plain matrices."""
        return self.W.values.reshape(-1, self.rank), self.H.values.reshape(self.rank, -1)

    def to_pandas(self) -> tuple[Any, Any]:
        """Return W and H as two tables with their labels.

        Returns
        -------
        W : pandas.DataFrame (m, rank)
            Rows of X by component.
        H : pandas.DataFrame (rank, n)
            Components by column of X.  Several dimensions make the levels of one index.

        Examples
        --------
        >>> import pandas as pd, nmd_lab as nmd
        >>> X = pd.DataFrame([[1.0, 2.0], [2.0, 4.0]], index=["ann", "bo"], columns=["p", "q"])
        >>> W, H = nmd.complete(X, 1, alpha=0, random_state=0).to_pandas()
        >>> list(W.index), list(H.columns), (W @ H).loc["bo", "q"].round(6)
        (['ann', 'bo'], ['p', 'q'], np.float64(4.0))
        """
        W, H = (
            factor.stack({name: dims}) if len(dims) > 1 else factor
            for factor, name, dims in (
                (self.W, "row", self.labels.rows),
                (self.H, "column", self.labels.columns),
            )
        )
        return W.transpose(..., COMPONENT).to_pandas(), H.transpose(COMPONENT, ...).to_pandas()

"""`Posterior`, the labelled result of a sampler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from nmd_lab._runtime.checks import check_share, check_word
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import Labels, any_frame
from nmd_lab.model.losses import Loss, as_loss
from nmd_lab.model.mixed import Mixed
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import Nonlinearity, as_nonlinearity

from . import draws_dataset
from .convergence import PosteriorDiagnostics
from .draws_dataset import label_draws, label_trace
from .factor_analysis import PosteriorFactorAnalysis
from .predictive import KINDS
from .report import PosteriorReport, make_report
from .summary import posterior_lines, posterior_summary
from .tables import PosteriorTables

if TYPE_CHECKING:
    from nmd_lab.plots import PosteriorPlotAccessor


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(PosteriorFactorAnalysis, PosteriorTables, PosteriorDiagnostics):
    """Draws of W, H and the noise levels from their posterior distribution, with the labels of X.

    Attributes
    ----------
    nonlinearity : Nonlinearity
        Nonlinearity f.
    loss : Loss
        Loss d, which defines the noise after f.
    noise : {"gaussian", "clipped", "before", "after", "ordinal"} or tuple of them
        Where the noise is, for v = WH plus offsets and T ~ N(v, 1/ρ).  "gaussian": x ~ N(v, 1/ρ).
        "clipped": this, or x = f(T) with a learned f; a new observation is f(T) between two ends.
        "before": x = f(T).  "after": x is f(T) plus noise of precision β, or a count of mean f(T).
        "ordinal": x is level k if T lies between the cut points k - 1 and k.  A table of several
        kinds has one for each column.
    draws : xarray.Dataset
        Draws along `chain` and `draw`: W (rows, component), H (component, columns), rho, and
        where the model has them row_offsets, column_offsets, beta and cut_points, and the prior of
        the rows of W: row_mean and row_precision of each group (the offset is the last part), and
        if there are several, row_share and row_group, the group of each row, and in an ensemble the
        member that made the draw.  All are in the units of X; in a table of several kinds, T is in
        units of its column, which has rho, beta and cut points for itself.  Components of different
        draws are not the same components.
    trace : xarray.Dataset
        Numbers of each sweep after tuning, along `chain` and `sweep`: log_likelihood, and
        `prediction` at some entries, along `probe`.
    stop_reason : StopReason
        Why the sampler ended.
    mean : float
        Global offset.
    levels : tuple of float or None
        Values of the levels of ordinal data, from small to large.
    parameters : dict
        Options of the sampler, and the origin of data and software.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import nmd_lab as nmd
    >>> wine = load_wine(as_frame=True).data
    >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
    >>> posterior.draws.H.dims, posterior.trace.sizes["sweep"]
    (('chain', 'draw', 'component', 'column'), 50)
    >>> posterior.noise[0], posterior.nonlinearity[0].name, posterior.loss[0], posterior.levels
    ('clipped', 'monotone', Frobenius(), None)
    >>> posterior.mean, posterior.stop_reason.code, posterior.parameters["draws"]
    (0.0, 'draws', 50)
    """

    _labels: Labels
    nonlinearity: Nonlinearity | Mixed
    loss: Loss | Mixed
    noise: str | tuple[str, ...]
    draws: xr.Dataset
    trace: xr.Dataset
    stop_reason: StopReason
    mean: float = 0.0
    levels: tuple[float, ...] | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    _kinds: Model | None = None
    _limits: xr.Dataset | None = None

    def __post_init__(self) -> None:
        """Convert a string `stop_reason`, and check the kind of the noise."""
        object.__setattr__(self, "stop_reason", StopReason.of(self.stop_reason))
        for noise in self._noises:
            check_word("noise", noise, KINDS)

    @classmethod
    def _from_arrays(
        cls,
        labels: Labels,
        W: FloatArray,
        H: FloatArray,
        rho: FloatArray,
        *,
        nonlinearity: str | Nonlinearity | Mixed = "identity",
        loss: str | Loss | Mixed = "frobenius",
        kinds: Model | None = None,
        noise: str | tuple[str, ...] = "gaussian",
        mean: float = 0.0,
        levels: Iterable[float] | None = None,
        log_likelihood: ArrayLike | None = None,
        predictions: ArrayLike | None = None,
        probe_rows: ArrayLike | None = None,
        probe_columns: ArrayLike | None = None,
        stop_reason: str = "",
        parameters: dict[str, Any] | None = None,
        limits: xr.Dataset | None = None,
        **draws: Any,
    ) -> Self:
        """Return a posterior from plain arrays, which it keeps without copies.

        Parameters
        ----------
        labels : Labels
            Labels of X.
        W, H : ndarray (chain, draw, m, rank) and (chain, draw, n, rank)
            Factors; a row of H is a column of X.
        rho : ndarray (chain, draw), or (chain, draw, n) with `kinds`, or (chain, draw, m)
            Precision of T, in a table of several kinds that of each column; as beta.
        nonlinearity, loss, kinds, noise, mean, levels, stop_reason, parameters, limits
            Fields of the posterior.
        row_offsets, column_offsets : ndarray (chain, draw, m) and (chain, draw, n), optional
            Offsets.
        beta : ndarray (chain, draw), optional
            Precision of the noise after f.
        cut_points : ndarray (chain, draw, K - 1) or (chain, draw, n, K - 1), optional
            Cut points of ordinal data; those of a column with fewer end with NaN.
        row_mean, row_precision : ndarray (chain, draw, [group,] d) and (..., d, d), optional
            Mean and precision of the prior of a row of W, with its offset if it has one.
        row_share, row_group : ndarray (chain, draw, group) and (chain, draw, m), optional
            Fractions of the groups of rows, and the group of each row; not needed for one group.
        member : ndarray of int (chain, draw), optional
            Member of the ensemble that made each draw.
        spread : ndarray (chain, draw), optional
            Spread of new numbers, as a share of that of the mixture of the members.
        temperature : ndarray (chain, draw, n), optional
            Temperature of the probabilities of levels and classes.
        frequency : ndarray (chain, draw, n), optional
            Fraction of the second level among the cells of a column of two levels, 1 for other
            columns.  The temperature acts on the ratio of a probability to it.
        log_likelihood : ndarray (chain, sweep), optional
            Log-likelihood at each sweep after tuning.
        predictions : ndarray (chain, sweep, n_probes), optional
            Predictions at some entries.
        probe_rows, probe_columns : ndarray of int (n_probes,), optional
            Positions of these entries.
        """
        arrays = {"W": W, "H": H, "rho": rho, **draws}
        if log_likelihood is None:
            log_likelihood = np.empty((rho.shape[0], 0))
        return cls(
            labels,
            nonlinearity if isinstance(nonlinearity, Mixed) else as_nonlinearity(nonlinearity),
            loss if isinstance(loss, Mixed) else as_loss(loss),
            noise,
            label_draws(labels, arrays, by_column=kinds is not None),
            label_trace(log_likelihood, predictions, probe_rows, probe_columns),
            StopReason.of(stop_reason),
            float(mean),
            None if levels is None else tuple(map(float, levels)),
            dict(parameters or {}),
            kinds,
            limits,
        )

    @property
    def plot(self) -> PosteriorPlotAccessor:
        """Plots of the posterior, such as ``posterior.plot.trace()``; they need matplotlib.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> posterior.plot.trace().get_xlabel()
        'sweep'
        """
        from nmd_lab.plots import PosteriorPlotAccessor

        return PosteriorPlotAccessor(self)

    def to_datatree(self, held_out: Any = None, *, factors: bool = False) -> xr.DataTree:
        """Return the draws as the groups of a tree, as ArviZ expects them.

        Parameters
        ----------
        held_out : array_like, masked array, DataFrame, DataArray or scipy.sparse, optional
            Cells that were hidden before `sample`, with what was observed there, as for
            `reliability`.  ``az.loo`` needs the data that `sample` has seen in their place.
        factors : bool, default False
            Whether `posterior` has W and H, whose components are not identified.

        Returns
        -------
        xarray.DataTree
            Group `posterior`, along `chain` and `draw`: predictions of some cells, singular values
            and effective rank of WH, and where the model has them standard deviations of the noise
            before f (`noise`), precisions of that after f and cut points.  Group `sample_stats`:
            lp, the log-likelihood of each sweep.  With `held_out`, groups `observed_data` and
            `posterior_predictive`, with a variable for each column of a table, and
            `log_likelihood`, with the variable `cells`.  Levels and classes have their positions.

        Raises
        ------
        ValueError, TypeError
            As for `predict`, of which `held_out` is the test data.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
        >>> posterior = nmd.sample(train, 3, draws=50, random_state=0)
        >>> tree = posterior.to_datatree(test)  # for az.plot_ppc_dist(tree, var_names="alcohol")
        >>> tree["posterior"].sizes["draw"], tree["log_likelihood"].sizes["cell"]
        (50, 231)
        """
        return draws_dataset.to_datatree(self, held_out, factors=factors)

    @any_frame
    def report(
        self, X: Any, held_out: Any = None, *, level: float = 0.9, n: int | None = None
    ) -> PosteriorReport:
        """Return what was missing in X, what it is filled with, and how far to trust this.

        Parameters
        ----------
        X : array_like, masked array, DataFrame or DataArray
            Data with missing entries, by the rule of `impute`.
        held_out : array_like, masked array, DataFrame, DataArray or scipy.sparse, optional
            Cells that were hidden before `sample`, with what was observed there, as for
            `reliability`.  The report then contains the errors of their predictions, and the
            fraction of them that the intervals cover.
        level : float, default 0.9
            Probability of the intervals, in (0, 1).
        n : int, optional
            Number of completed copies, as for `impute`; by default that of `nmd_lab.impute`.

        Returns
        -------
        PosteriorReport
            Markdown as text, HTML in a notebook; ``save("report.html")`` writes it.

        Raises
        ------
        ValueError, TypeError
            As for `impute` and `reliability`.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
        >>> posterior = nmd.sample(train, 3, draws=50, random_state=0)
        >>> report = posterior.report(train, held_out=test)
        >>> report.summary
        '178 rows and 13 columns; 231 of 2314 cells (10.0 %) are missing.'
        >>> report.columns[["column", "missing", "filled by"]].values.tolist()[0]
        ['alcohol', 20, 'mean']
        """
        return make_report(self, X, held_out, check_share("level", level, zero=False), n)

    _to_dataset = draws_dataset.to_dataset
    _in_lines, _in_short = posterior_lines, posterior_summary

"""The fields of a posterior, and what its draws say of single entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import xarray as xr
from numpy.typing import ArrayLike

from nmd_lab._runtime.checks import check_word
from nmd_lab.data.labels import COMPONENT, Labels, any_frame
from nmd_lab.model.losses import LOSSES

from . import convergence, predict
from .draws import Draws, label_draws, label_trace, plain_draws
from .entries import Entries, Unknown, entries_of
from .fill import intervals_at
from .fitted import Fitted
from .netcdf import dataset_of_posterior
from .predictive import KINDS, Array
from .summary import posterior_facts, posterior_formula, posterior_summary


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Drawn(Fitted):
    """The fields of a posterior, which `Posterior` documents, and its distribution at entries.

    No method but `uncertainty` forms the whole matrix.  None draws random numbers.
    """

    noise: str | tuple[str, ...]
    draws: xr.Dataset
    trace: xr.Dataset
    mean: float = 0.0
    _limits: xr.Dataset | None = None
    _joint: xr.Dataset | None = None

    _owner: ClassVar[str] = "the posterior"

    def __post_init__(self) -> None:
        """Convert a string `stop_reason`, and check the kind of the noise."""
        super().__post_init__()
        for noise in self._noises:
            check_word("noise", noise, KINDS)

    @classmethod
    def _from_arrays(cls, labels: Labels, arrays: dict[str, Any], **fields: Any) -> Self:
        """Return a posterior from plain arrays, which it keeps without copies.

        Parameters
        ----------
        labels : Labels
            Labels of X.
        arrays : dict
            W, H : ndarray (chain, draw, m, rank) and (chain, draw, n, rank)
                Factors; a row of H is a column of X.
            rho : ndarray (chain, draw), or (chain, draw, n) of several kinds, or (chain, draw, m)
                Precision of T, in a table of several kinds that of each column; as beta.
            row_offsets, column_offsets : ndarray (chain, draw, m) and (chain, draw, n), optional
                Offsets.
            beta : ndarray (chain, draw), optional
                Precision of the noise after f.
            cut_points : ndarray (chain, draw, K - 1) or (chain, draw, n, K - 1), optional
                Cut points of ordinal data; those of a column with fewer end with NaN.
            row_mean, row_precision : ndarray (chain, draw, [group,] d) and (..., d, d), optional
                Mean and precision of the prior of a row of W, with its offset if it has one.
            row_share, row_group : ndarray (chain, draw, group) and (chain, draw, m), optional
                Fractions of the groups of rows, and the group of each row; not needed for one.
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
            mean : float, optional
                Global offset.
        **fields
            Other fields of the posterior.
        """
        draws = label_draws(labels, arrays, by_column=fields["_model"].is_mixed)
        trace, mean = label_trace(arrays), float(arrays.get("mean", 0.0))
        return cls(_labels=labels, draws=draws, trace=trace, mean=mean, **fields)

    @property
    def _noises(self) -> tuple[str, ...]:
        """Kind of the noise: one for all columns, or one for each."""
        return (self.noise,) if isinstance(self.noise, str) else self.noise

    @property
    def levels(self) -> tuple[float, ...] | None:
        """Values of ordinal data, from small to large."""
        return self._model.loss.level_values if self.noise == "ordinal" else None

    @property
    def loss(self) -> Any:
        """Loss d, which defines the noise after f."""
        return super().loss if self.levels is None else LOSSES["frobenius"]()

    @property
    def _draws(self) -> Draws:
        """The draws without labels."""
        return plain_draws(self)

    _values = _draws

    @property
    def rank(self) -> int:
        """Number of components.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> posterior.rank
        3
        """
        return self.draws.sizes[COMPONENT]

    @any_frame
    def predict(
        self, rows: Any, columns: ArrayLike | None = None, *, unknown: Unknown = "error"
    ) -> Any:
        """Return the expected value at rows and columns, or at the entries of test data.

        It is the mean over the draws of E f(T), the expected value of a new observation; for
        ordinal data, the expected level.

        Parameters
        ----------
        rows : label, int or array_like
            Labels or positions of rows; see the notes.  Or, without `columns`, test data: an array
            with NaN, masked array, DataFrame, DataArray, scipy.sparse matrix or SparseObservations
            of the shape of X, or with labels that X has, in any order.
        columns : label, int or array_like, optional
            Labels or positions of columns.  They broadcast with the rows.
        unknown : {"error", "offsets"}, default "error"
            What is done with labels that X did not have.  "error": a sentence names them.
            "offsets": the prediction is f of the offsets that there are: f(mean + c_j) in an
            unknown row, f(mean + b_i) in an unknown column, f(mean) for both; f(0) without offsets.

        Returns
        -------
        ndarray, 1-D, or the type of the test data
            One prediction for each pair of row and column, in the units of X.  For test data: a
            prediction at each of their observed entries, in their own type, shape and labels; NaN,
            or no stored entry, where they have none.

        Raises
        ------
        KeyError
            If X had no such labels; the message names them.
        IndexError
            If a position lies outside X.
        TypeError
            If something else than a position is given where X has no labels.
        ValueError
            If a label occurs more than once in X, or if the test data have another shape than X, or
            a label that X does not have.

        Notes
        -----
        All methods with rows or columns take labels or positions, by one rule.  An integer is a
        position from 0, where negative ones count from the end, and all else is a label: text, a
        date, or a tuple of the index levels of a `pandas.MultiIndex`.  But where labels of X are
        integers, an integer is a label, as for ``.loc``; only the labels 0, 1, 2, ... of a table
        that was given none are positions at the same time.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> alcohol, color = posterior.predict(0, ["alcohol", "color_intensity"])
        >>> bool(12 < alcohol < 15), bool(2 < color < 10)
        (True, True)
        """
        entries = self._entries(rows, columns, unknown)
        return entries.back(predict.means(self._draws, entries))

    def predict_std(
        self, rows: Any, columns: ArrayLike | None = None, *, noise: bool = True
    ) -> Any:
        """Return the standard deviation of a new observation.

        Parameters
        ----------
        rows, columns
            As for `predict`.
        noise : bool, default True
            Whether the noise of an observation counts.  False: the standard deviation over the
            draws of E f(T) alone, which goes to 0 with more data.

        Returns
        -------
        ndarray, 1-D, or the type of the test data
            Standard deviations in the units of X.

        Raises
        ------
        TypeError, IndexError, ValueError
            As for `predict`; also if a loss of your own has no noise model.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> with_noise, without = (
        ...     posterior.predict_std(0, "ash", noise=each)[0] for each in (True, False)
        ... )
        >>> bool(with_noise > without > 0)
        True
        """
        entries = self._entries(rows, columns)
        return entries.back(predict.stds(self._draws, entries, noise))

    def predict_interval(
        self,
        rows: Any,
        columns: ArrayLike | None = None,
        level: float = 0.9,
        *,
        noise: bool = True,
        unknown: Unknown = "error",
    ) -> Array:
        """Return equal-tailed intervals that cover a new observation with a given probability.

        Parameters
        ----------
        rows, columns
            As for `predict`.
        level : float, default 0.9
            Probability of the interval, in (0, 1).
        noise : bool, default True
            Whether the noise of an observation counts.  False: an interval for E f(T).
        unknown : {"error", "offsets"}, default "error"
            What is done with rows and columns that X did not have.  "error": a sentence names them.
            "offsets": such a row is drawn from the prior of rows, and such a column is in each draw
            one of those of X, at random, if all are of one kind.

        Returns
        -------
        ndarray (n_entries, 2)
            Lower and upper ends in the units of X.  If X has few different values, and several at
            both ends of this scale, such as ratings, they are within it.  For test data, the
            entries are their observed ones, sorted by row and column.

        Raises
        ------
        TypeError, IndexError, ValueError
            As for `predict_std`; also if `level` is not in (0, 1).

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> low, high = posterior.predict_interval(0, "alcohol", level=0.95)[0]
        >>> bool(low < wine["alcohol"][0] < high)
        True
        """
        return intervals_at(self._draws, self._entries(rows, columns, unknown), level, noise)

    def probability(self, rows: Any, columns: ArrayLike | None = None, *, above: float) -> Any:
        """Return the probability that a new observation is larger than a number.

        Parameters
        ----------
        rows, columns
            As for `predict`.
        above : float
            The number, in the units of X.

        Returns
        -------
        ndarray, 1-D, or the type of the test data
            Probabilities of an observation > `above`.

        Raises
        ------
        TypeError, IndexError, ValueError
            As for `predict_std`.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> bool(posterior.probability(0, "alcohol", above=13)[0] > 0.5)
        True
        """
        entries = self._entries(rows, columns)
        return entries.back(predict.probabilities_above(self._draws, entries, above))

    def log_density(
        self, rows: Any, columns: ArrayLike | None = None, values: ArrayLike | None = None
    ) -> Array:
        """Return the logarithm of the predictive density of observations.

        Parameters
        ----------
        rows, columns
            As for `predict`.
        values : array_like, optional
            Observations, which broadcast with the positions.  Dates count as days since 1970.
            Test data have their own.

        Returns
        -------
        ndarray, 1-D
            Logarithm of the density over the draws.  Where the noise has atoms (limits, ordinal
            values, counts) it is that of the probability.  For test data, the entries are their
            observed ones, sorted by row and column.

        Raises
        ------
        TypeError, IndexError, ValueError
            As for `predict_std`; also if ordinal data hold a value that is no level.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> near, far = posterior.log_density(0, "alcohol", [14.0, 11.0])
        >>> bool(near > far)
        True
        """
        return predict.log_densities(self._draws, self._labels, rows, columns, values)

    def level_probabilities(self, rows: Any, columns: ArrayLike | None = None) -> Array:
        """Return the probability of each level of ordinal data.

        Parameters
        ----------
        rows, columns
            As for `predict`.

        Returns
        -------
        ndarray (n_entries, K)
            Probabilities of the K `levels`.

        Raises
        ------
        ValueError
            If the data are not ordinal.
        TypeError, IndexError
            As for `predict`.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> table = nmd.datasets.make_ratings(60, 40, 700, random_state=0)
        >>> ratings = nmd.observations_from_table(table)
        >>> posterior = nmd.sample(ratings, 2, loss="ordinal", draws=50, random_state=0)
        >>> shares = posterior.level_probabilities([0, 1], [2, 3])  # of the stars 1 to 5
        >>> shares.shape, shares.sum(axis=1).round(6)
        ((2, 5), array([1., 1.]))
        """
        return predict.level_probabilities(self._draws, self._entries(rows, columns))

    def uncertainty(self, *, noise: bool = True) -> xr.DataArray:
        """Return the standard deviation of a new observation of each entry.

        Parameters
        ----------
        noise : bool, default True
            Whether the noise of an observation counts, as for `predict_std`.

        Returns
        -------
        xarray.DataArray
            What `predict_std` gives at each entry, with the dimensions and coordinates of X.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> posterior.uncertainty().sel(row=0).idxmax().item()  # in milligrams
        'proline'
        """
        return self._labels.label(predict.stds(self._draws, None, noise))

    @property
    def rhat(self) -> xr.Dataset:
        """Split R-hat of each variable of the trace; near 1 if the chains agree.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> bool(posterior.rhat.log_likelihood > 0.9), posterior.rhat.prediction.dims
        (True, ('probe',))
        """
        return convergence.of_trace(self.trace, convergence.split_rhat)

    @property
    def ess(self) -> xr.Dataset:
        """Effective sample size of each variable of the trace.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> bool(posterior.ess.prediction.median() > 10)
        True
        """
        return convergence.of_trace(self.trace, convergence.effective_sample_size)

    @property
    def converged(self) -> bool:
        """Whether at most 5 % of the probed predictions differ between the parts of the chains.

        A prediction differs if split R-hat of a new observation is above 1.05: then its mean moves
        by more than a third of the standard deviation of an observation from one half of a chain to
        another.  `sample` warns by the same rule.  False if the chains are too short for it.  The
        log-likelihood, which converges later, does not count.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> posterior.converged
        True
        """
        return self._unsettled <= convergence.MAX_UNSETTLED

    @property
    def _unsettled(self) -> float:
        return convergence.unsettled(self._draws, self.trace)

    @property
    def singular_values(self) -> xr.DataArray:
        """Singular values of WH in each draw, largest first, along chain, draw and component.

        Components themselves may turn into one another from draw to draw.  The singular values do
        not change by this.  The coordinate `effective_rank` is the number of components that count
        in each draw: the exponential of the entropy of the normalised singular values (Roy and
        Vetterli, 2007), the rank if all are equal, and 1 if one is much larger than the others.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> values = posterior.singular_values
        >>> values.dims, bool((values.effective_rank <= 3).all())
        (('chain', 'draw', 'component'), True)
        """
        return convergence.labelled_singular_values(self._draws, self.draws)

    def _entries(self, rows: Any, columns: Any, unknown: Unknown | None = None) -> Entries:
        """Return the entries of rows and columns, or of test data."""
        return entries_of(self._labels, rows, columns, unknown, self._owner)

    _to_dataset = dataset_of_posterior
    _formula, _facts, _in_short = posterior_formula, posterior_facts, posterior_summary

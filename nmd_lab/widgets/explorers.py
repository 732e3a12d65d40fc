"""The four explorers: each is the same widget with another view."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr

from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior.posterior import Posterior

from .explorer import Explorer
from .states.completion import CompletionState
from .states.decomposition import DecompositionState
from .states.ratings import DEFAULT_COLUMNS
from .states.study import StudyState
from .views.completion import CompletionView
from .views.decomposition import DecompositionView
from .views.opening import view_of_result
from .views.study import StudyView

if TYPE_CHECKING:
    from nmd_lab.studies import Study


class ModelExplorer(Explorer):
    """The base of explorers that fit a model: it can be chosen, and asked how sure it is."""

    view: DecompositionView | CompletionView

    @property
    def posterior(self) -> Any:
        """Draws from the posterior; None until the sampler has stopped."""
        return self.state.posterior

    def choose(self) -> None:
        """Choose all settings that may be "auto", and fit with them, as "find everything" does.

        Raises
        ------
        ValueError
            If another setting is wrong.
        """
        self.view.choose()

    def how_sure(self) -> None:
        """Draw from the posterior with the present settings, as How sure? does.

        Raises
        ------
        ValueError
            If a setting is wrong, or not chosen yet.
        """
        self._note = None
        self.view.how_sure()


class DecompositionExplorer(ModelExplorer):
    """Decompose a matrix: choose a model, watch the fit, hide pixels, and look at the result.

    Parameters
    ----------
    X : array_like, pandas.DataFrame or xarray.DataArray (m, n), or ndarray (m, n, 3), optional
        Data, or a picture in colours; by default a data set of `nmd_lab.datasets`, which is chosen
        in the explorer.
    shape : (int, int), optional
        Height and width of the picture that each row is; by default from the labels of X, or from
        the values of an array.
    **settings
        Starting values of the controls: data, noise, level, missing, shape, seed, nonlinearity,
        low, high, loss, rank, alpha, rho, tol, iterations, draws.  By default, nonlinearity, rank
        and alpha are "auto": chosen by held-out entries, and then shown in the controls; and a
        tenth of the entries (missing) is hidden, at which models are compared.

    Attributes
    ----------
    result : Decomposition or None
        Result so far.
    state : DecompositionState
        Data, settings and fit.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> model = {"nonlinearity": "relu", "rank": 8, "alpha": 0.5}
    >>> digits = nmd.datasets.digits(100)
    >>> explorer = nmd.widgets.DecompositionExplorer(digits, iterations=20, **model)
    >>> explorer.start()
    >>> explorer.join(60), explorer.result.n_iter
    (True, 20)
    """

    view: DecompositionView

    def __init__(
        self, X: Any = None, shape: tuple[int, int] | None = None, **settings: Any
    ) -> None:
        super().__init__(DecompositionView(DecompositionState(X, shape, **settings)))

    def brush(
        self,
        points: Iterable[Sequence[float]],
        radius: float = 5.0,
        *,
        hide: bool = True,
        picture: int = 0,
    ) -> None:
        """Hide or reveal pixels, and fit again from the present factors, as the brush does.

        Parameters
        ----------
        points : iterable of (float, float)
            Centres (y, x) of discs, in pixels that are shown.
        radius : float, default 5
            Radius of the discs, in the same pixels.
        hide : bool, default True
            Whether the pixels are hidden; otherwise they are revealed.
        picture : int, default 0
            Number of the picture, if rows are pictures.

        Raises
        ------
        ValueError
            If nothing would be left to see.
        """
        self.view.brush(picture, points, radius, hide=hide)
        self._refresh()


class CompletionExplorer(ModelExplorer):
    """Complete ratings or any partly observed matrix, and look at single rows.

    Parameters
    ----------
    ratings : DataFrame, scipy.sparse matrix, SparseObservations or array_like, optional
        A long table with one observation a line, or anything that `nmd_lab.complete` takes; by
        default a data set of the library, which is chosen in the explorer.
    row, column, value : str, default "user", "item" and "rating"
        Columns of a long table that hold the labels and the values.  Where a default name is not in
        the table, a usual one takes its place, such as userId, movieId or stars.
    titles : mapping, optional
        Titles by column label; by default the table's column "title", if there is one.
    **settings
        Starting values of the controls: data, validation, seed, nonlinearity, low, high, rank,
        alpha, offsets, offset_alpha, split, patience, iterations, draws.  By default,
        nonlinearity, rank, alpha, offsets and offset_alpha are "auto": chosen by held-out entries
        at Run, which then shows them in the controls.

    Attributes
    ----------
    result : Decomposition or None
        Result so far.
    state : CompletionState
        Data, settings, fit and sampler.
    posterior : Posterior or None
        Draws that "How sure?" has made.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> explorer = nmd.widgets.CompletionExplorer(data="generated", rank=3, alpha=5.0)
    >>> explorer.start()
    >>> explorer.join(60), explorer.result.rank
    (True, 3)
    >>> explorer.how_sure()
    >>> explorer.join(60), explorer.posterior.predict_interval(0, [0, 1]).shape
    (True, (2, 2))
    """

    view: CompletionView

    def __init__(
        self,
        ratings: Any = None,
        *,
        row: str = DEFAULT_COLUMNS["row"],
        column: str = DEFAULT_COLUMNS["column"],
        value: str = DEFAULT_COLUMNS["value"],
        titles: Mapping[Any, str] | None = None,
        **settings: Any,
    ) -> None:
        names = {"row": row, "column": column, "value": value}
        super().__init__(
            CompletionView(CompletionState(ratings, titles=titles, **names, **settings))
        )


class StudyExplorer(Explorer):
    """Look at the results of a study from any side, and at the fit behind each point.

    Parameters
    ----------
    study : Study, Dataset or path-like
        A study that was run, its results, or the path of their file.  Only a Study can repeat
        fits, since the results hold no data.
    **settings
        Starting values of the controls: metric, x, color, panel, iterations.

    Attributes
    ----------
    result : Decomposition, Dataset or None
        The repeated fit, or else the cells of the point that was clicked.
    state : StudyState
        Results, layout of the chart, and the repeated fit.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> study = nmd.Study(nmd.datasets.digits(40), rank=[1, 2, 3], alpha=1.0, max_iter=10)
    >>> _ = study.run(progress=False)
    >>> explorer = nmd.widgets.StudyExplorer(study)
    >>> explorer.start()
    >>> explorer.join(60), explorer.result.n_iter
    (True, 10)
    """

    def __init__(self, study: Study | xr.Dataset | str | os.PathLike[str], **settings: Any) -> None:
        super().__init__(StudyView(StudyState(study, **settings), study))


class FitExplorer(Explorer):
    """Look at a fit or a posterior that was made or saved before.

    A fit is shown with its reconstruction, history and components, a posterior with its mean and
    standard deviation.

    Parameters
    ----------
    fit : Decomposition, Posterior or path-like
        The fit or the posterior, or the path of the file that its `save` wrote.
    shape : (int, int), optional
        Height and width of the picture that each row is; by default from the labels of the fit.

    Attributes
    ----------
    result : Decomposition or Posterior
        The fit or the posterior.
    state : FittedState
        The fit or the posterior, and the layout of its pictures.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> fit = nmd.decompose(nmd.datasets.digits(50), 4, random_state=0, max_iter=20)
    >>> nmd.widgets.FitExplorer(fit).result is fit
    True
    """

    def __init__(
        self,
        fit: Decomposition | Posterior | str | os.PathLike[str],
        shape: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(view_of_result(fit, shape))

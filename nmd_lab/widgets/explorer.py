"""The explorer of everything: data, fits, posteriors, studies, and their files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmd_lab._runtime.disk import check_target, write_atomically

from .opening import view_of, view_of_file, view_opened
from .page import Page
from .saved import ending_of, page_of
from .view import View


class Explorer(Page):
    """Explore data, watch their fit and choose a model; or look at what was made of them.

    Parameters
    ----------
    X : Decomposition, Posterior, Study, Dataset, path-like, DataFrame, matrix or None
        What to explore: data, or the path of their file as `nmd-lab fit` reads it; a fit, a
        posterior, a study, their Dataset, or the path of their file; or None for data sets of the
        library, which the explorer offers.  A long table with one observation a line and a sparse
        matrix are shown as ratings, any other data as a matrix, as pictures or as a table;
        an array (height, width, 3) or one whose neighbouring entries are alike as a photograph.
    **options
        Starting values of the controls.  By default, what can be chosen is "auto", and a tenth of
        the entries is hidden, at which models are compared.

        - Without X: `data`, the name of a data set of the library.
        - A matrix: `shape` (height and width of the picture that each row is), missing, seed,
          nonlinearity, low, high, loss, rank, alpha, rho, tol, iterations, draws.
        - A photograph by patches: missing, method, groups, seed; with other options it is a matrix.
        - Ratings: `row`, `column` and `value` (names of the columns of a long table), `titles` (a
          mapping by column label), validation, seed, nonlinearity, low, high, rank, alpha, offsets,
          offset_alpha, split, patience, iterations, draws.
        - A study: metric, x, color, panel.  A fit or a posterior: `shape`.
        - A file of data, in addition: `variable`, `row`, `column`, `value`, `header` and `index`;
          see `nmd_lab.data.readers.read_matrix`.

    Attributes
    ----------
    result, value : Decomposition, Posterior, Dataset or None
        Result so far; `observe` and `interact` hear of a new one when a run ends.
    posterior : Posterior or None
        Draws that "How sure?" has made.
    state : object
        Data, settings and fit.
    rank, alpha, nonlinearity : object
        Settings; None where there is no such setting.  A value that is set changes the control.
    selection : dict or None
        What was picked: positions "row" and "column", and the list "rows".

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no file at the path, or it can not be read; or if a setting is wrong.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> model = {"nonlinearity": "relu", "rank": 8, "alpha": 0.5, "iterations": 20}
    >>> explorer = nmd.widgets.Explorer(nmd.datasets.digits(100), **model)
    >>> explorer.start()
    >>> explorer.join(60), explorer.result.history.sizes["iteration"]
    (True, 20)

    >>> ratings = nmd.widgets.Explorer(data="generated", rank=3, alpha=5.0)
    >>> ratings.start()
    >>> ratings.join(60)
    True
    >>> ratings.how_sure()
    >>> ratings.join(60), ratings.posterior.predict_interval(0, [0, 1]).shape
    (True, (2, 2))
    """

    def __init__(self, X: Any = None, **options: Any) -> None:
        is_path = isinstance(X, str | os.PathLike)
        view = view_of_file(Path(X), **options) if is_path else view_of(X, **options)
        super().__init__(view)
        if view.said:
            self._tell(view.said)

    def _view_opened(self, message: Mapping[str, Any], buffers: Sequence[Any]) -> View:
        return view_opened(message, buffers)

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the page to a file of HTML, or the result to a file of NetCDF.

        Parameters
        ----------
        path : path-like, optional
            Name of the file; by default that which the page shows at first.  The ending decides:
            ".html" is the page, which any browser opens without Python and without a network;
            ".nc" is the result, which `nmd_lab.load` and `explore` read.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ValueError
            If the ending is another one, if there is no result yet, or if the explorer would
            replace a file of another origin.

        Notes
        -----
        A page contains what was shown, with the pictures, the points and the cells behind it, and
        answers to a reader who moves over it or switches a component off.  Nothing is fitted there,
        and code in it names files without their folders.

        Examples
        --------
        >>> import tempfile
        >>> import nmd_lab as nmd
        >>> explorer = nmd.widgets.explore(nmd.datasets.digits(60), rank=4, iterations=10)
        >>> explorer.start()
        >>> explorer.join(60), explorer.save(f"{tempfile.mkdtemp()}/digits.html").name
        (True, 'digits.html')
        """
        path = Path(path or self.view.filename).expanduser()
        ending = ending_of(path)
        if self.view.result is None and (ending == ".nc" or self.view.opens):
            raise ValueError("there is no result yet: fit first.")
        if check_target(path).exists() and path.absolute() not in self._saved:
            raise ValueError(f"{path.name} exists already: give another name.")
        if ending == ".nc":
            self.view.write(path)
        else:
            page = page_of(self)
            write_atomically(path, lambda file: file.write(page))
        self._saved.add(path.absolute())
        self._tell(f"saved as {path.absolute()}")
        return path

    @property
    def posterior(self) -> Any:
        """Draws from the posterior; None until the sampler has stopped."""
        return getattr(self.state, "posterior", None)

    def how_sure(self) -> None:
        """Draw from the posterior with the present settings, as How sure? does.

        Raises
        ------
        ValueError
            If a setting is wrong or not chosen yet, or if there are no data.
        """
        self._note = None
        self.view.act("sample")

    def brush(
        self,
        points: Iterable[Sequence[float]],
        radius: float = 5.0,
        *,
        rain: bool = False,
        picture: int = 0,
    ) -> None:
        """Hide pixels, and fit again from the present factors, as the brush does.

        Parameters
        ----------
        points : iterable of (float, float)
            Centres (y, x) of discs, in pixels that are shown.
        radius : float, default 5
            Radius of the discs, in the same pixels.
        rain : bool, default False
            Whether 70 % of the pixels are hidden in place of all: a model can fill them.
        picture : int, default 0
            Number of the picture, if rows are pictures.

        Raises
        ------
        ValueError
            If nothing would be left to see, or if there is no matrix.
        """
        self.view.act("brush", picture=picture, points=points, radius=radius, rain=rain)
        self._refresh()


def explore(X: Any = None, **options: Any) -> Explorer:
    """Open an explorer in JupyterLab: look at data, watch a fit of X ≈ f(WH), and choose a model.

    The data decide about the page: a matrix or pictures, a photograph, which `inpaint` fills, a
    table, ratings (a long table or a sparse matrix), a `Decomposition`, `Posterior` or `Study`.
    The explorer compares models on a tenth of the entries, which it hides, and shows the Python
    code that repeats its fit.

    Parameters
    ----------
    X : Decomposition, Posterior, Study, Dataset, path-like, DataFrame, matrix or None
        Data or results, or the path of their file.  None: data sets of the library.
    **options
        Starting values of the controls, most often `nonlinearity`, `loss`, `rank`, `alpha`,
        `iterations`, `draws`, `seed`, `shape` (height and width of the picture in each row), and
        `row`, `column` and `value` (names of the columns of a long table of ratings).  By default
        they are "auto".  `nmd_lab.widgets.Explorer` lists all.

    Returns
    -------
    Explorer
        A widget.  `Explorer.result` is the fit so far, and `Explorer.posterior` its posterior.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no file at the path, if it cannot be read, or if a setting is invalid.

    See Also
    --------
    nmd_lab.widgets.Explorer : The class, with all controls and methods.
    nmd_lab.Study : Compare models over a grid.

    Notes
    -----
    Explorers require ``pip install "nmd-lab[lab]"``.  Fits run in the background, so that the page
    stays responsive; a run ends with the stop button or with :meth:`Explorer.stop`.

    Examples
    --------
    Pictures, with a fit of eight components under ReLU:

    >>> import nmd_lab as nmd
    >>> explorer = nmd.widgets.explore(nmd.datasets.digits(20))
    >>> explorer.view.title
    '20 pictures of 8 × 8'

    A table of measurements:

    >>> from sklearn.datasets import load_wine
    >>> nmd.widgets.explore(load_wine(as_frame=True).data, rank=3).rank
    3

    A finished fit:

    >>> fit = nmd.decompose(nmd.datasets.digits(100), 5, "relu", random_state=0)
    >>> nmd.widgets.explore(fit, shape=(8, 8)).result is fit
    True
    """
    return Explorer(X, **options)

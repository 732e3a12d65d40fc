"""The explorer of everything: the state that suits data, a result, a study, or their files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import xarray as xr
from PIL import Image

from nmd_lab import datasets
from nmd_lab._runtime.checks import check_word
from nmd_lab._runtime.machine import check_target, write_atomically
from nmd_lab.data.labels import RESULT_ATTRIBUTE, is_frame, pandas_of
from nmd_lab.data.readers import read_file
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.typed_table import columns_of_pairs
from nmd_lab.datasets.film_ratings import small_folder
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.files import load, result_of
from nmd_lab.result.posterior import Posterior
from nmd_lab.studies import Study

from .given import call, is_photograph
from .matrix import MatrixState
from .page import Page, page_of
from .photographs import PhotographState
from .ratings import DEFAULT_COLUMNS, RatingsState, table_columns
from .results import ResultState, StudyState
from .state import State

# Options that select the content of a file
FILE_OPTIONS = ("variable", "row", "column", "value", "header", "index")
AS_TABLE = "no, a table", "Show the lines as rows, with texts as classes"
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")  # endings of files with a picture


def is_result(path: Path) -> bool:
    """Return whether a file holds a result."""
    unreadable = suppress(LookupError, OSError, RuntimeError, TypeError, ValueError)
    with unreadable, xr.open_dataset(path) as opened:
        return path.suffix == ".nc" and RESULT_ATTRIBUTE in opened.attrs
    return False


def read_data(path: Path, **reading: Any) -> tuple[Any, str, str]:
    """Return the data in a file, a line about them, and the code that reads them.

    A picture is grey, or (height, width, 3).
    """
    if path.suffix.lower() not in PICTURES:
        code = call("read_matrix", f'"{path.as_posix()}"', **reading)
        return *read_file(path, **reading), code
    try:
        with Image.open(path) as opened:
            picture = np.asarray(opened.convert("RGB"))
    except OSError as error:
        raise ValueError(f"{path.name} holds no image that can be read: {error}.") from error
    height, width, _ = picture.shape
    size = f"{height} x {width} pixels"
    code = f'np.asarray(Image.open("{path.as_posix()}").convert("RGB"))'
    if (picture == picture[..., :1]).all():
        return picture[..., 0] / 255, f"a grey image of {size}", f"{code}[..., 0] / 255"
    return picture / 255, f"an image of {size} in colours", f"{code} / 255"


FILMS = "MovieLens, small"
LIBRARY = {  # data sets that an explorer offers without data, and the code that loads them
    "digits": "nmd.datasets.digits()",
    "photograph of a flower": 'nmd.datasets.photograph(name="flower", size=(213, 320))',
    "photograph of a palace": 'nmd.datasets.photograph(name="china", size=(213, 320))',
    FILMS: "nmd.datasets.movielens_small()",
    "generated": "nmd.datasets.make_ratings("
    "n_users=400, n_items=300, n_ratings=12000, random_state=0)",
}


def library() -> dict[str, str]:
    """Return those of the library that need no download."""
    has_films = small_folder() is not None
    return {name: code for name, code in LIBRARY.items() if has_films or name != FILMS}


def state_of_library(data: str = "digits", **options: Any) -> State:
    """Return the state for a data set of the library, which offers the others."""
    sets = library()
    check_word("data", data, sets)
    state = state_of(eval(sets[data], {"nmd": SimpleNamespace(datasets=datasets)}), **options)
    state.data_code, state.offered = sets[data], (data, *sets.keys() - {data})
    return state


def state_of(X: Any, **options: Any) -> State:
    """Return the state that suits what `explore` takes, but no path."""
    if X is None:
        return state_of_library(**options)
    if isinstance(X, xr.Dataset) and RESULT_ATTRIBUTE in X.attrs:
        X = result_of(X)
    if isinstance(X, Decomposition | Posterior):
        return ResultState(X, **options)
    if isinstance(X, Study) or (isinstance(X, xr.Dataset) and RESULT_ATTRIBUTE in X.attrs):
        return StudyState(X, **options)
    asked = {name: options.get(name, default) for name, default in DEFAULT_COLUMNS.items()}
    table = pandas_of(X)
    if table_columns(table, asked) is not None or is_sparse(X):
        return RatingsState(X, **options)
    likely = columns_of_pairs(table, sure=False) if is_frame(table) else None
    if likely is None:
        return state_of_matrix(X, **options)
    state = RatingsState(X, **likely | options)
    who, what, _ = likely.values()
    state.about = f"read as ratings of {what} by {who}"
    if columns_of_pairs(table) is None:  # otherwise it is surely no table
        state.about, state.buttons["take"] = f"ratings of {what} by {who}?", AS_TABLE
        state.actions["take"] = lambda _: MatrixState(X, take=True)
    return state


def state_of_matrix(X: Any, *, by_patches: bool = True, **options: Any) -> State:
    """Return the state for a matrix; a photograph by patches, unless the options forbid it.

    The options of a model of its rows and columns do, such as `rank`.
    """
    if not is_photograph(X):
        return MatrixState(X, **options)
    by_patches &= set(options) <= {field.name for field in PhotographState.fields}
    state: State = (PhotographState if by_patches else MatrixState)(X, **options)
    about = "by patches", "Fill the picture by groups of its patches"
    if by_patches:
        about = "as a matrix", "Fit the rows and columns of pixels by f(WH)"

    def turn(_: Any) -> State:
        turned = state_of_matrix(X, by_patches=not by_patches)
        turned.said = about[0]
        return turned

    state.buttons["turn"], state.actions["turn"] = about, turn
    return state


def state_of_file(name: str | os.PathLike[str], **options: Any) -> State:
    """Return the state for a file of results or of data."""
    if is_result(path := Path(name)):
        X, said, code = load(path), "", call("nmd.load", f'"{path.as_posix()}"')
    else:
        reading = {name: options.pop(name) for name in FILE_OPTIONS if name in options}
        X, said, code = read_data(path, **reading)
    state = state_of(X, **options)
    state.data_code = code
    state.said = "; ".join(filter(None, [said, state.said]))
    return state


def state_opened(message: Mapping[str, Any], buffers: Sequence[Any]) -> State:
    """Return the state for a file that has a path on this machine, or that was uploaded."""
    name = message["data"] if "data" in message else message["name"]
    if "data" in message:
        state = state_of_library(name)
    elif not buffers:
        state = state_of_file(Path(name).expanduser())
    else:
        with tempfile.TemporaryDirectory(prefix="nmd-lab-") as folder:
            path = Path(folder) / Path(name).name
            path.write_bytes(bytes(buffers[0]))
            try:
                state = state_of_file(path)
            except ValueError as error:
                raise ValueError(str(error).replace(f"{path.parent.as_posix()}/", "")) from error
        state.data_code = state.data_code and state.data_code.replace(path.as_posix(), path.name)
    state.said = state.said or f"{name} is shown"
    return state


class Explorer(Page):
    """Explore data, watch their fit and choose a model; or look at what was made of them.

    Parameters
    ----------
    X : Decomposition, Posterior, Study, Dataset, path-like, DataFrame, matrix or None
        What to explore: data, or the path of their file as `nmd-lab fit` reads it; a fit, a
        posterior, a study, their Dataset, or the path of their file; or None for data sets of the
        library, which the explorer offers.  A long table with one observation a line and a sparse
        matrix are shown as ratings, any other data as a matrix, as images or as a table;
        an array (height, width, 3) or one whose neighbouring entries are alike as a photograph.
    **options
        Starting values of the controls.  By default, what can be chosen is "auto", and models are
        compared on a tenth of the entries, which is held out.

        - Without X: `data`, the name of a data set of the library.
        - A matrix: `shape` (height and width of the image that each row is), missing, seed,
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
        Draws that "draw intervals" has made, or the background after a fit.
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

    _state_opened = staticmethod(state_opened)

    def __init__(self, X: Any = None, **options: Any) -> None:
        is_path = isinstance(X, str | os.PathLike)
        super().__init__((state_of_file if is_path else state_of)(X, **options))
        if self.state.said:
            self._tell(self.state.said)

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the page to a file of HTML, the result to one of NetCDF, or the filled table.

        Parameters
        ----------
        path : path-like, optional
            Name of the file; by default that which the page shows at first.  The ending decides:
            ".html" is the page, which any browser opens without Python and without a network;
            ".nc" is the result, which `nmd_lab.load` and `explore` read; ".csv", ".parquet" and
            ".xlsx" are the table with its missing cells filled.

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
        A page contains what was shown, with the images, the points and the cells behind it, and
        answers to a reader who moves over it, or switches a component of images off.  Nothing is
        fitted there, and code in it names files without their folders.

        Examples
        --------
        >>> import tempfile
        >>> import nmd_lab as nmd
        >>> explorer = nmd.widgets.explore(nmd.datasets.digits(60), rank=4, iterations=10)
        >>> explorer.start()
        >>> explorer.join(60), explorer.save(f"{tempfile.mkdtemp()}/digits.html").name
        (True, 'digits.html')
        """
        path = Path(path or self.state.filename).expanduser()
        ending, known = path.suffix.lower(), self.state.endings
        if ending not in chain(*known.values()):
            text = self.state.endings_text
            raise ValueError(f"path={os.fspath(path)!r} has an unknown ending: give {text}.")
        if self.state.result is None and (ending != ".html" or self.state.opens):
            raise ValueError("there is no result yet: fit first.")
        if check_target(path).exists() and path.absolute() not in self._saved:
            raise ValueError(f"{path.name} exists already: give another name.")
        if ending == ".html":
            page = page_of(self)
            write_atomically(path, lambda file: file.write(page))
        else:
            self.state.write(path)
        self._saved.add(path.absolute())
        self._tell(f"saved as {path.absolute()}")
        return path

    @property
    def posterior(self) -> Any:
        """Draws from the posterior; None until the sampler has stopped."""
        return self.state.posterior

    def how_sure(self) -> None:
        """Draw from the posterior with the present settings, as "draw intervals" does.

        Raises
        ------
        ValueError
            If a setting is wrong or not chosen yet, or if there are no data.
        """
        self._note = None
        self.state.act("sample")

    def brush(
        self,
        points: Iterable[Sequence[float]],
        radius: float = 5.0,
        *,
        rain: bool = False,
        picture: int = 0,
    ) -> None:
        """Mask pixels, and fit again from the present factors, as the brush does.

        Parameters
        ----------
        points : iterable of (float, float)
            Centres (y, x) of discs, in pixels that are shown.
        radius : float, default 5
            Radius of the discs, in the same pixels.
        rain : bool, default False
            Whether 70 % of these pixels are masked in place of all: a model can fill them.
        picture : int, default 0
            Number of the image, if rows are images.

        Raises
        ------
        ValueError
            If nothing would be left to see, or if there is no matrix.
        """
        self.state.act("brush", picture=picture, points=points, radius=radius, rain=rain)
        self._refresh()


def explore(X: Any = None, **options: Any) -> Explorer:
    """Open an explorer in JupyterLab: look at data, watch a fit of X ≈ f(WH), and choose a model.

    The data decide about the page: a matrix or images, a photograph, which `inpaint` fills, a
    table, ratings (a long table or a sparse matrix), a `Decomposition`, `Posterior` or `Study`.
    The explorer compares models on a tenth of the entries, which it holds out, and shows the Python
    code that repeats its fit.  Of data with more than two million entries it takes a random sample
    of the rows, of a photograph with more than a million pixels a part of them.

    Parameters
    ----------
    X : Decomposition, Posterior, Study, Dataset, path-like, DataFrame, matrix or None
        Data or results, or the path of their file.  None: data sets of the library.
    **options
        Starting values of the controls, most often `nonlinearity`, `loss`, `rank`, `alpha`,
        `iterations`, `draws`, `seed`, `shape` (height and width of the image in each row), and
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
    Explorers need ``pip install anywidget ipywidgets pillow``.  Fits run in the background, so that
    the page stays responsive; a run ends with the stop button or with :meth:`Explorer.stop`.

    Examples
    --------
    Images of digits:

    >>> import nmd_lab as nmd
    >>> explorer = nmd.widgets.explore(nmd.datasets.digits(20))
    >>> explorer.state.title
    '20 images of 8 × 8'

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

"""The explorer of everything: data, fits, posteriors, studies, and their files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from PIL import Image

from nmd_lab.data.frames import DROPPED, description, refused_columns
from nmd_lab.data.labels import RESULT_ATTRIBUTE, is_frame
from nmd_lab.data.long_table import RepeatedPairs
from nmd_lab.data.readers import read_file
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.typed_table import MOST_CATEGORIES
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.files import result_of
from nmd_lab.result.posterior import Posterior
from nmd_lab.studies import Study

from .code import MATRICES, call, load_matrix, name_in_notebook, ratings_choices
from .history import History
from .matrix_state import DecompositionState, FittedState
from .matrix_view import DecompositionView, ResultView
from .page import Page
from .photograph_state import PhotographState, is_photograph
from .photograph_view import PhotographView
from .ratings import DEFAULT_COLUMNS, table_columns
from .ratings_state import CompletionState
from .ratings_view import CompletionView
from .settings import FitState
from .study_state import StudyState
from .study_view import StudyView
from .view import View

# Options that select the content of a file
FILE_OPTIONS = ("variable", "row", "column", "value", "header", "index")
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")  # endings of files with a picture


class Way(NamedTuple):
    """A way to put data right."""

    mended: Callable[[], Any]  # returns the data after it
    code: str  # behind the code of the data before it


Ways = dict[str, Way]  # by the words of their buttons


class MendingView(View):
    """A question, and a button for each answer; `again` gives the view of what it makes."""

    can_fit = False

    def __init__(self, fault: str, ways: Ways, X: Any, again: Callable[[Any], View]) -> None:
        super().__init__(FitState({}, {}), "fit.nc")
        self.fault, self.ways, self.said = fault, ways, "first a question about the data"

        def mend(message: Mapping[str, Any]) -> View:
            way = ways[message["way"]]
            view, name = again(way.mended()), self.data_code or name_in_notebook(X)
            view.data_code = None if name is None else f"{name}{way.code}"
            view.state.imports = self.state.imports
            return view

        self.actions["mend"] = mend

    def parts(self, history: History) -> dict[str, Any]:
        """Return the question."""
        return {"facts": {"asked": {"fault": self.fault, "ways": list(self.ways)}}}

    def cannot_run(self) -> str:
        """Return why nothing runs here."""
        return self.fault


def ways_with_text(frame: Any) -> tuple[str, Ways] | None:
    """Return what is wrong with columns of text, and what can be done; None for other faults."""
    refused = refused_columns(frame)
    if not refused or not set(refused) <= set(DROPPED):
        return None
    names = [name for some in refused.values() for name in some]
    listed = ", ".join(map(str, names))
    most = min(MOST_CATEGORIES, len(frame) // 2)
    classes = [name for name in refused.get("identifiers", []) if frame[name].nunique() <= most]
    others = [name for name in names if name not in classes]
    kind = " of text" * (set(refused) == {"identifiers"})
    count = f"{len(names)} columns" if len(names) > 1 else "column"
    left_out = Way(lambda: frame.drop(columns=names), f".drop(columns={names!r})")
    ways: Ways = {f"leave out the {count}{kind} ({listed})": left_out}
    if classes:
        rest = f", leave out {', '.join(map(str, others))}" if others else ""
        types = dict.fromkeys(classes, "category")
        treat = f"treat {', '.join(map(str, classes))} as classes{rest}"
        dropped = f".drop(columns={others!r})" if others else ""
        ways[treat] = Way(
            lambda: frame.drop(columns=others).astype(types), f"{dropped}.astype({types!r})"
        )
    return f"The table has {description(frame, refused)}.", ways


def ways_with_repeats(fault: RepeatedPairs) -> tuple[str, Ways]:
    """Return what is wrong with a long table, and what can be done."""
    frame, pair, value = fault.frame, list(fault.pair), fault.value
    count = int((~frame[frame.duplicated(pair)].duplicated(pair)).sum())
    cells = f"{count} cells have" if count > 1 else "One cell has"
    last = partial(frame.drop_duplicates, pair, keep="last")
    last_code = f'.drop_duplicates({pair!r}, keep="last")'

    def mean() -> Any:
        means = frame.groupby(pair)[value].transform("mean")
        return frame.assign(**{value: means}).drop_duplicates(pair, keep="last")

    means_code = f'X.groupby({pair!r})[{value!r}].transform("mean")'
    mean_code = f".pipe(lambda X: X.assign(**{{{value!r}: {means_code}}})){last_code}"
    ways: Ways = {"take the mean": Way(mean, mean_code), "take the last": Way(last, last_code)}
    return f"{cells} several values: lines with the same {pair[0]} and {pair[1]}.", ways


def kind_of_result(path: Path) -> str | None:
    """Return "fit" or "study" for a file of a result, None for any other file."""
    if path.suffix != ".nc" or not path.is_file():
        return None
    try:
        with xr.open_dataset(path) as opened:
            return kind_of_dataset(opened)
    except (LookupError, OSError, RuntimeError, TypeError, ValueError):
        return None


def kind_of_dataset(dataset: xr.Dataset) -> str | None:
    """Return "fit" or "study" for the Dataset of a result, None for any other one."""
    if RESULT_ATTRIBUTE not in dataset.attrs:
        return None
    return "fit" if {"W", "H"} <= set(dataset.variables) else "study"


def read_picture(path: Path) -> tuple[Any, str, str]:
    """Return the picture in a file, grey or (height, width, 3), a line about it, and its code."""
    try:
        with Image.open(path) as opened:
            picture = np.asarray(opened.convert("RGB"))
    except OSError as error:
        raise ValueError(f"{path.name} holds no picture that can be read: {error}.") from error
    height, width, _ = picture.shape
    size = f"{height} x {width} pixels"
    code = f'np.asarray(Image.open("{path.as_posix()}").convert("RGB"))'
    if (picture == picture[..., :1]).all():
        return picture[..., 0] / 255, f"a grey picture of {size}", f"{code}[..., 0] / 255"
    return picture / 255, f"a picture of {size} in colours", f"{code} / 255"


def view_of(X: Any, **options: Any) -> View:
    """Return the view that suits what `explore` takes, but no path."""
    if isinstance(X, xr.Dataset) and kind_of_dataset(X) == "fit":
        X = result_of(X)
    if isinstance(X, Decomposition | Posterior):
        return ResultView(FittedState(X, **options))
    if isinstance(X, Study) or (isinstance(X, xr.Dataset) and kind_of_dataset(X) == "study"):
        return StudyView(StudyState(X, **options), X)
    asked = {name: options.get(name, default) for name, default in DEFAULT_COLUMNS.items()}
    is_rated = X is None and options.get("data") in ratings_choices()
    if is_rated or table_columns(X, asked) is not None or is_sparse(X):
        try:
            return CompletionView(CompletionState(X, **options))
        except RepeatedPairs as fault:
            return MendingView(*ways_with_repeats(fault), X, partial(view_of, **options))
    refused = ways_with_text(X) if is_frame(X) else None
    if refused is not None:
        return MendingView(*refused, X, partial(view_of, **options))
    return view_of_matrix(X, **options)


def view_of_matrix(X: Any, *, by_patches: bool = True, **options: Any) -> View:
    """Return the view of a matrix; that of a photograph by patches, unless the options forbid it.

    The options of a model of its rows and columns do, such as `rank`.
    """
    label = options.get("data") if X is None else None
    photo = load_matrix(label) if label in MATRICES else X
    source = {} if label is None else {"data": label}
    shown = {name: value for name, value in options.items() if name not in source}
    fields = {field.name for field in PhotographState.fields}
    if not is_photograph(photo):
        return DecompositionView(DecompositionState(X, **options))
    if by_patches and set(shown) <= fields:
        view: View = PhotographView(PhotographState(photo, **shown))
        view.data_code = MATRICES[label].code if label is not None else None
        about = "As a matrix", "Fit the rows and columns of pixels by f(WH)"
        other = partial(view_of_matrix, X, by_patches=False, **source)
    else:
        view = DecompositionView(DecompositionState(X, **options))
        about = "By patches", "Fill the picture by groups of its patches"
        other = partial(view_of_matrix, X, **source)

    def turn(_: Any) -> View:
        turned = other()
        turned.data_code, turned.state.imports = view.data_code, view.state.imports
        turned.said = about[0].lower()
        return turned

    view.buttons["turn"], view.actions["turn"] = about, turn
    return view


def view_of_file(path: Path, **options: Any) -> View:
    """Return the view of a file of results or of data."""
    kind = kind_of_result(path)
    if kind == "fit":
        return ResultView(FittedState(path, **options))
    if kind == "study":
        return StudyView(StudyState(path, **options), path)
    reading = {name: value for name, value in options.items() if name in FILE_OPTIONS}
    settings = {name: value for name, value in options.items() if name not in FILE_OPTIONS}
    if path.suffix.lower() in PICTURES:
        X, said, code = read_picture(path)
        imports = "import numpy as np\nfrom PIL import Image\n"
    else:
        try:
            file = read_file(path, **reading)
        except RepeatedPairs as fault:
            (row, column), value = fault.pair, fault.value
            again = partial(view_of, row=row, column=column, value=value, **settings)
            asking = MendingView(*ways_with_repeats(fault), None, again)
            if path.suffix.lower() == ".csv":
                asking.data_code = f'pd.read_csv("{path.as_posix()}")'
                asking.state.imports = "import pandas as pd\n"
            return asking
        X, said, imports = file.X, file.what, "from nmd_lab.data.readers import read_matrix\n"
        code = call("read_matrix", f'"{path.as_posix()}"', **reading)
    view = view_of(X, **settings)
    view.data_code, view.said, view.state.imports = code, said, imports
    return view


def view_opened(message: Mapping[str, Any], buffers: Sequence[Any]) -> View:
    """Return the view of a file that has a path on this machine, or that was uploaded."""
    name = message["name"]
    if not buffers:
        view = view_of_file(Path(name).expanduser())
    else:
        with tempfile.TemporaryDirectory(prefix="nmd-lab-") as folder:
            path = Path(folder) / Path(name).name
            path.write_bytes(bytes(buffers[0]))
            try:
                view = view_of_file(path)
            except ValueError as error:
                raise ValueError(str(error).replace(f"{path.parent.as_posix()}/", "")) from error
            if isinstance(view, ResultView):
                view = ResultView(FittedState(view.outcome))
            elif isinstance(view, StudyView):
                view = view_of(view.state.results.load())
        view.data_code = view.data_code and view.data_code.replace(path.as_posix(), path.name)
    view.said = view.said or f"{name} is shown"
    return view


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

        - A matrix: `shape` (height and width of the picture that each row is), data, missing, seed,
          nonlinearity, low, high, loss, rank, alpha, rho, tol, iterations, draws.
        - A photograph by patches: missing, method, groups, seed; with other options it is a matrix.
        - Ratings: `row`, `column` and `value` (names of the columns of a long table), `titles` (a
          mapping by column label), data, validation, seed, nonlinearity, low, high, rank, alpha,
          offsets, offset_alpha, split, patience, iterations, draws.
        - A study: metric, x, color, panel, iterations.  A fit or a posterior: `shape`.
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

    @property
    def posterior(self) -> Any:
        """Draws from the posterior; None until the sampler has stopped."""
        return self.state.posterior

    def choose(self) -> None:
        """Choose all settings that may be "auto", and fit with them, as "find everything" does.

        Raises
        ------
        ValueError
            If another setting is wrong, or if there are no data to fit.
        """
        self.view.act("choose")

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
        hide: bool = True,
        rain: bool = False,
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
        rain : bool, default False
            Whether 70 % of the pixels are hidden in place of all: a model can fill them.
        picture : int, default 0
            Number of the picture, if rows are pictures.

        Raises
        ------
        ValueError
            If nothing would be left to see, or if there is no matrix.
        """
        stroke = {"points": points, "radius": radius, "hide": hide, "rain": rain}
        self.view.act("brush", picture=picture, **stroke)
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
    'your X 20 × 64'

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

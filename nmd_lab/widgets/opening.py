"""The view that suits some data, a result, or a file of them; questions about faulty data."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from PIL import Image

from nmd_lab._runtime.checks import check_word
from nmd_lab.data.frames import DROPPED, description, refused_columns
from nmd_lab.data.labels import RESULT_ATTRIBUTE, is_frame
from nmd_lab.data.long_table import RepeatedPairs
from nmd_lab.data.readers import read_file
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.typed_table import MOST_CATEGORIES
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.files import load, result_of
from nmd_lab.result.posterior import Posterior
from nmd_lab.studies import Study

from .code import call, library, name_in_notebook
from .history import History
from .matrix_state import DecompositionState
from .matrix_view import DecompositionView
from .photograph_state import PhotographState, is_photograph
from .photograph_view import PhotographView
from .ratings import DEFAULT_COLUMNS, table_columns
from .ratings_state import CompletionState
from .ratings_view import CompletionView
from .result_view import FittedState, ResultView
from .settings import FitState
from .study_state import StudyState
from .study_view import StudyView
from .view import View

# Options that select the content of a file
FILE_OPTIONS = ("variable", "row", "column", "value", "header", "index")
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")  # endings of files with a picture


def is_result(path: Path) -> bool:
    """Return whether a file holds a result."""
    if path.suffix != ".nc" or not path.is_file():
        return False
    try:
        with xr.open_dataset(path) as opened:
            return RESULT_ATTRIBUTE in opened.attrs
    except (LookupError, OSError, RuntimeError, TypeError, ValueError):
        return False


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


def view_of_library(data: str | None = None, **options: Any) -> View:
    """Return the view of a data set of the library, which offers the others."""
    sets = library()
    name = next(iter(sets)) if data is None else data
    check_word("data", name, sets)
    view = view_of(sets[name].load(), **options)
    view.data_code, view.offered = sets[name].code, (name, *sets.keys() - {name})
    return view


def view_of(X: Any, **options: Any) -> View:
    """Return the view that suits what `explore` takes, but no path."""
    if X is None:
        return view_of_library(**options)
    if isinstance(X, xr.Dataset) and RESULT_ATTRIBUTE in X.attrs:
        X = result_of(X)
    if isinstance(X, Decomposition | Posterior):
        return ResultView(FittedState(X, **options))
    if isinstance(X, Study) or (isinstance(X, xr.Dataset) and RESULT_ATTRIBUTE in X.attrs):
        return StudyView(StudyState(X, **options), X)
    asked = {name: options.get(name, default) for name, default in DEFAULT_COLUMNS.items()}
    if table_columns(X, asked) is not None or is_sparse(X):
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
    if not is_photograph(X):
        return DecompositionView(DecompositionState(X, **options))
    by_patches &= set(options) <= {field.name for field in PhotographState.fields}
    if by_patches:
        view: View = PhotographView(PhotographState(X, **options))
        about = "as a matrix", "Fit the rows and columns of pixels by f(WH)"
    else:
        view = DecompositionView(DecompositionState(X, **options))
        about = "by patches", "Fill the picture by groups of its patches"

    def turn(_: Any) -> View:
        turned = view_of_matrix(X, by_patches=not by_patches)
        turned.data_code, turned.offered = view.data_code, view.offered
        turned.state.imports, turned.said = view.state.imports, about[0]
        return turned

    view.buttons["turn"], view.actions["turn"] = about, turn
    return view


def view_of_file(path: Path, **options: Any) -> View:
    """Return the view of a file of results or of data."""
    if is_result(path):
        view = view_of(load(path), **options)
        view.data_code = call("nmd.load", f'"{path.as_posix()}"')
        return view
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
    if "data" in message:
        view = view_of_library(message["data"])
        view.said = f"{message['data']} is shown"
        return view
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
        view.data_code = view.data_code and view.data_code.replace(path.as_posix(), path.name)
    view.said = view.said or f"{name} is shown"
    return view


class Way(NamedTuple):
    """A way to put data right."""

    mended: Callable[[], Any]  # returns the data after it
    code: str  # behind the code of the data before it


Ways = dict[str, Way]  # by the words of their buttons


class MendingView(View):
    """A question, and a button for each answer; `again` gives the view of what it makes."""

    def __init__(self, fault: str, ways: Ways, X: Any, again: Callable[[Any], View]) -> None:
        super().__init__(FitState({}, {}), "fit.nc")
        self.buttons = {}
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

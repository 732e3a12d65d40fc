"""The view that suits data, results or a file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from PIL import Image

from nmd_lab.data.labels import RESULT_ATTRIBUTE, is_frame
from nmd_lab.data.long_table import RepeatedPairs
from nmd_lab.data.readers import read_file
from nmd_lab.data.sparse import is_sparse
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.loading import result_of
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.studies import Study
from nmd_lab.widgets.states.code import call
from nmd_lab.widgets.states.completion import CompletionState
from nmd_lab.widgets.states.data_choices import ratings_choices
from nmd_lab.widgets.states.decomposition import DecompositionState
from nmd_lab.widgets.states.ratings import DEFAULT_COLUMNS, table_columns
from nmd_lab.widgets.states.study import StudyState

from .completion import CompletionView
from .decomposition import DecompositionView
from .mending import MendingView, ways_with_repeats, ways_with_text
from .result import FittedState, FitView, PosteriorView, ResultView
from .study import StudyView
from .view import View

FILE_OPTIONS = ("variable", "row", "column", "value", "header", "index")
"""Options that say what to read of a file."""


PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")  # endings of files with a picture
PICTURE_IMPORT = "import numpy as np\nfrom PIL import Image\n"  # imports of `picture_code`
READER_IMPORT = "from nmd_lab.data.readers import read_matrix\n"  # import of what `file_code` calls


def file_code(path: Path, options: Mapping[str, Any]) -> str:
    """Return the code that reads the matrix in a file."""
    return call("read_matrix", f'"{path.as_posix()}"', **options)


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


def read_picture(path: Path) -> tuple[Any, str]:
    """Return the picture in a file, grey or in colours (height, width, 3), and a line about it."""
    try:
        with Image.open(path) as opened:
            picture = np.asarray(opened.convert("RGB"))
    except OSError as error:
        raise ValueError(f"{path.name} holds no picture that can be read: {error}.") from error
    height, width, _ = picture.shape
    is_gray = bool((picture == picture[..., :1]).all())
    size = f"{height} x {width} pixels"
    if is_gray:
        return picture[..., 0] / 255, f"a grey picture of {size}"
    return picture / 255, f"a picture of {size} in colours"


def picture_code(path: Path, X: Any) -> str:
    """Return the code that reads a picture as `read_picture` has read it."""
    code = f'np.asarray(Image.open("{path.as_posix()}").convert("RGB"))'
    return f"{code}[..., 0] / 255" if X.ndim == 2 else f"{code} / 255"


def view_of(X: Any, **options: Any) -> View:
    """Return the view that suits what `explore` takes, but no path."""
    if isinstance(X, xr.Dataset) and kind_of_dataset(X) == "fit":
        X = result_of(X)
    if isinstance(X, Decomposition | Posterior):
        return view_of_result(X, **options)
    if isinstance(X, Study) or (isinstance(X, xr.Dataset) and kind_of_dataset(X) == "study"):
        return StudyView(StudyState(X, **options), X)
    asked = {name: options.get(name, default) for name, default in DEFAULT_COLUMNS.items()}
    is_rated = X is None and options.get("data") in ratings_choices()
    if is_rated or table_columns(X, asked) is not None or is_sparse(X):
        try:
            return CompletionView(CompletionState(X, **options))
        except RepeatedPairs as fault:
            return MendingView(*ways_with_repeats(fault), partial(view_of, **options))
    refused = ways_with_text(X) if is_frame(X) else None
    if refused is not None:
        return MendingView(*refused, partial(view_of, **options))
    return DecompositionView(DecompositionState(X, **options))


def view_of_result(fit: Any, shape: tuple[int, int] | None = None) -> ResultView:
    """Return the view of a fit or a posterior, or of the file of either."""
    state = FittedState(fit, shape)
    return FitView(state) if state.posterior is None else PosteriorView(state)


def view_of_file(path: Path, **options: Any) -> View:
    """Return the view of a file of results or of data."""
    kind = kind_of_result(path)
    if kind == "fit":
        return view_of_result(path, **options)
    if kind == "study":
        return StudyView(StudyState(path, **options), path)
    reading = {name: value for name, value in options.items() if name in FILE_OPTIONS}
    settings = {name: value for name, value in options.items() if name not in FILE_OPTIONS}
    if path.suffix.lower() in PICTURES:
        X, said = read_picture(path)
        code = picture_code(path, X)
    else:
        try:
            file = read_file(path, **reading)
        except RepeatedPairs as fault:
            (row, column), value = fault.pair, fault.value
            again = partial(view_of, row=row, column=column, value=value, **settings)
            return MendingView(*ways_with_repeats(fault), again)
        X, said, code = file.X, file.what, file_code(path, reading)
    view = view_of(X, **settings)
    view.data_code, view.said = code, said
    view.state.imports = READER_IMPORT if path.suffix.lower() not in PICTURES else PICTURE_IMPORT
    return view


def view_of_upload(name: str, content: bytes) -> View:
    """Return the view of a file that was uploaded; it is written to a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="nmd-lab-") as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(content)
        try:
            view = view_of_file(path)
        except ValueError as error:
            raise ValueError(str(error).replace(f"{path.parent.as_posix()}/", "")) from error
        if isinstance(view, ResultView):
            view = view_of_result(view.result)
        elif isinstance(view, StudyView):
            view = view_of(view.state.results.load())
    view.data_code = view.data_code and view.data_code.replace(path.as_posix(), path.name)
    return view


def view_opened(message: Mapping[str, Any], buffers: Sequence[Any]) -> View:
    """Return the view of a file that was uploaded, or that has a path on this machine."""
    name = message["name"]
    if buffers:
        view = view_of_upload(name, bytes(buffers[0]))
    else:
        view = view_of_file(Path(name).expanduser())
    view.said = view.said or f"{name} is shown"
    return view

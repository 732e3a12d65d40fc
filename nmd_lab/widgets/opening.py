"""The view that suits some data, a result, or a file of them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from PIL import Image

from nmd_lab._runtime.checks import check_word
from nmd_lab.data.labels import RESULT_ATTRIBUTE, is_frame
from nmd_lab.data.long_table import RepeatedPairs
from nmd_lab.data.readers import read_file
from nmd_lab.data.sparse import is_sparse
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.files import result_of
from nmd_lab.result.posterior import Posterior
from nmd_lab.studies import Study

from .code import call, library
from .matrix_state import DecompositionState, FittedState
from .matrix_view import DecompositionView
from .mending import MendingView, ways_with_repeats, ways_with_text
from .photograph_state import PhotographState, is_photograph
from .photograph_view import PhotographView
from .ratings import DEFAULT_COLUMNS, table_columns
from .ratings_state import CompletionState
from .ratings_view import CompletionView
from .result_view import ResultView
from .study_state import StudyState
from .study_view import StudyView
from .view import View

# Options that select the content of a file
FILE_OPTIONS = ("variable", "row", "column", "value", "header", "index")
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")  # endings of files with a picture


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
    if isinstance(X, xr.Dataset) and kind_of_dataset(X) == "fit":
        X = result_of(X)
    if isinstance(X, Decomposition | Posterior):
        return ResultView(FittedState(X, **options))
    if isinstance(X, Study) or (isinstance(X, xr.Dataset) and kind_of_dataset(X) == "study"):
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
            if isinstance(view, ResultView):
                view = ResultView(FittedState(view.outcome))
            elif isinstance(view, StudyView):
                view = view_of(view.state.results.load())
        view.data_code = view.data_code and view.data_code.replace(path.as_posix(), path.name)
    view.said = view.said or f"{name} is shown"
    return view

"""The view that suits some data, a result, or a file of them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from PIL import Image

from nmd_lab._runtime.checks import check_word
from nmd_lab.data.labels import RESULT_ATTRIBUTE, is_frame
from nmd_lab.data.readers import read_file
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.typed_table import DROPPED, description, refused_columns
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.files import load, result_of
from nmd_lab.result.posterior import Posterior
from nmd_lab.studies import Study

from .code import call, library, name_in_notebook
from .matrix_state import DecompositionState
from .matrix_view import DecompositionView
from .photograph_state import PhotographState, is_photograph
from .photograph_view import PhotographView
from .ratings import DEFAULT_COLUMNS, table_columns
from .ratings_state import CompletionState
from .ratings_view import CompletionView
from .result_view import FittedState, ResultView
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
        return StudyView(StudyState(X, **options))
    asked = {name: options.get(name, default) for name, default in DEFAULT_COLUMNS.items()}
    if table_columns(X, asked) is not None or is_sparse(X):
        return CompletionView(CompletionState(X, **options))
    refused = refused_columns(X) | empty_columns(X) if is_frame(X) else {}
    names = [name for some in refused.values() for name in some]
    if not names or set(refused) - set(DROPPED) or len(names) == X.shape[1]:
        return view_of_matrix(X, **options)
    view = view_of_matrix(X.drop(columns=names), **options)
    view.mending = f".drop(columns={names!r}, errors='ignore')"
    view.data_code = f"{name_in_notebook(X) or 'X'}{view.mending}"
    view.said = f"left out: {description(X, refused)}"
    return view


def empty_columns(X: Any) -> dict[str, list[Any]]:
    """Return the columns without a value by their kind, unless most cells are missing."""
    known = X.notna().to_numpy()
    names = list(X.columns[~known.any(axis=0)]) if 2 * known.sum() >= X.size else []
    return {"empty": names} if names else {}


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
        imports = "from PIL import Image\n"
    else:
        X, said = read_file(path, **reading)
        imports = "from nmd_lab.data.readers import read_matrix\n"
        code = call("read_matrix", f'"{path.as_posix()}"', **reading)
    view = view_of(X, **settings)
    view.data_code, view.state.imports = f"{code}{view.mending}", imports
    view.said = "; ".join(filter(None, [said, view.said]))
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

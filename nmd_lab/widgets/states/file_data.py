"""What is in a file, for an explorer that is given a path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from PIL import Image

from nmd_lab.data.labels import RESULT_ATTRIBUTE

from .code import call

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

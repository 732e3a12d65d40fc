"""An experiment in a notebook: the page's section, with its figures in place."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import xarray as xr

from .page import section

IMAGE = re.compile(r"!\[.*?\]\((.*?)\)")


def show(name: str, results: xr.Dataset) -> None:
    """Display the section of docs/paper.md that these results make.

    Parameters
    ----------
    name : str
        The experiment.
    results : Dataset
        What its `run` returned.
    """
    from IPython.display import Image, Markdown, display

    with tempfile.TemporaryDirectory() as folder:
        text = section(name, results, Path(folder) / "figures")
        for k, part in enumerate(IMAGE.split(text)):  # words and paths of images in turn
            display(Image((Path(folder) / part).read_bytes()) if k % 2 else Markdown(part.strip()))

"""A study in a TOML file, for machines without a notebook.

For example (``examples/study.toml``)::

    [data]
    dataset = "digits"  # or: file = "matrix.csv", beside this file
    n = 100

    [study]
    method = ["admm", "svd"]
    nonlinearity = ["identity", "relu", "minmax(0, 1)"]
    loss = ["frobenius", "l1"]
    rank = [4, 8, 16]
    missing = [0.2, 0.5]
    noise.salt_and_pepper = [0, 0.1]
    n_splits = 3
    max_iter = 100

    [run]
    n_jobs = 2

``[data]`` names a function of `nmd_lab.datasets` with its arguments, or a `file` with those of
`nmd_lab.data.readers.read_matrix`; ``[study]`` holds the arguments of `Study`, and ``[run]`` those of
`Study.run`.
"""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import xarray as xr

from nmd_lab import datasets
from nmd_lab._checks import check_words
from nmd_lab.data.labels import is_frame
from nmd_lab.data.long_table import observations_from_table
from nmd_lab.data.readers import read_matrix
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.nonlinearities import NONLINEARITIES

from .study import Study

RUN = ("n_jobs", "time_limit", "retry")
"""What ``[run]`` may say."""


def read_configuration(path: str | os.PathLike[str]) -> tuple[Study, dict[str, Any]]:
    """Return the study that a TOML file describes, and how to run it.

    Parameters
    ----------
    path : path-like
        The file; names of other files in it are relative to its folder.

    Returns
    -------
    Study, dict
        The study, and keyword arguments of its `run`.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        In one sentence, if there is no such file or it makes no sense; a misspelt key is named
        with the nearest right one.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"config={str(path)!r} does not exist: check the name.")
    try:
        words = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"config={str(path)!r} is not TOML: {error}.") from error
    check_words("section", words, ("data", "study", "run"))
    for section in ("data", "study"):
        if section not in words:
            raise ValueError(f"config={str(path)!r} has no section [{section}]: add it.")
    for section, content in words.items():
        if not isinstance(content, dict):
            raise ValueError(f"{section}={content!r} is no section: write [{section}].")
    run = words.get("run", {})
    check_words("run", run, RUN)
    arguments = {name: _with_models(name, value) for name, value in words["study"].items()}
    return Study(_data(words["data"], path.parent), **arguments), run


def named_model(name: str, word: Any) -> Any:
    """Return what a nonlinearity or loss in words stands for, such as "minmax(1, 5)".

    Parameters
    ----------
    name : {"nonlinearity", "loss"}
        Which of them.
    word : str
        Its name, with or without numbers; a name alone is returned as it is.

    Raises
    ------
    ValueError
        If there is no such model, or it does not take these numbers.
    """
    found = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", word) if isinstance(word, str) else None
    if found is None:
        return word
    known: dict[str, Any] = dict(NONLINEARITIES if name == "nonlinearity" else LOSSES)
    check_words(name, [found[1]], known)
    try:
        return known[found[1]](*(float(number) for number in found[2].split(",") if number.strip()))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}={word!r} makes no sense: {error}") from error


def _with_models(name: str, value: Any) -> Any:
    if name not in ("nonlinearity", "loss"):
        return value
    if isinstance(value, list):
        return [named_model(name, word) for word in value]
    return named_model(name, value)


def _data(words: dict[str, Any], folder: Path) -> Any:
    """Return the data that a section describes."""
    if ("file" in words) == ("dataset" in words):
        check_words("data", words, ["file", "dataset", "variable", "row", "column", "value"])
        raise ValueError("data has neither or both of file and dataset: give one of them.")
    if "file" in words:
        options = dict(words)
        check_words("data", options, ["file", *list(inspect.signature(read_matrix).parameters)[1:]])
        return read_matrix(folder / options.pop("file"), **options)
    options = dict(words)
    known = {name: getattr(datasets, name) for name in datasets.__all__}
    name = options.pop("dataset")
    check_words("dataset", [name], known)
    check_words("data", options, inspect.signature(known[name]).parameters)
    X = known[name](**options)
    if is_frame(X):  # ratings, one a line
        return observations_from_table(X)
    return X["X"] if isinstance(X, xr.Dataset) else X

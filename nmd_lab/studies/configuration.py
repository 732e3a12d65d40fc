"""A study that a TOML file describes, for the command line.

For example (``examples/study.toml``)::

    [data]
    dataset = "digits"  # or: file = "matrix.csv", beside this file
    n = 100

    [study]
    method = ["admm", "svd"]
    nonlinearity = ["identity", "relu", "minmax(0, 1)"]
    loss = ["frobenius", "l1"]
    rank = [4, 8, 16]
    alpha = [0, "auto"]  # "auto": the ridge is chosen by held-out entries of each fit
    missing = [0.2, 0.5]
    noise.salt_and_pepper = [0, 0.1]
    n_splits = 3
    max_iter = 100

    [run]
    n_jobs = 2

``[data]`` holds either a `dataset`, a function of `nmd_lab.datasets`, and its arguments, or a
`file` and further arguments of `nmd_lab.data.readers.read_matrix`.  ``[study]`` holds the arguments
of `Study`, and ``[run]`` those of `Study.run`.
"""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from ast import literal_eval
from pathlib import Path
from typing import Any

import xarray as xr

from nmd_lab import datasets
from nmd_lab._checks import check_word, check_words
from nmd_lab.data.labels import is_frame
from nmd_lab.data.long_table import observations_from_table
from nmd_lab.data.readers import read_matrix
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES

from .study import Study

RUN_ARGUMENTS = ("n_jobs", "time_limit", "retry")
"""Arguments of `Study.run` that ``[run]`` may hold."""


def read_configuration(path: str | os.PathLike[str]) -> tuple[Study, dict[str, Any]]:
    """Return the study that a TOML file describes, and the arguments of its run.

    Parameters
    ----------
    path : path-like
        TOML file; names of other files in it are relative to its folder.

    Returns
    -------
    study : Study
        The study.
    run : dict
        Keyword arguments of `Study.run`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError, TypeError
        If the file makes no sense; the message proposes the nearest name for a misspelt one.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"config={str(path)!r} does not exist: check the name.")
    try:
        sections = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"config={str(path)!r} is not TOML: {error}.") from error
    check_words("section", sections, ("data", "study", "run"))
    for section in ("data", "study"):
        if section not in sections:
            raise ValueError(f"config={str(path)!r} has no section [{section}]: add it.")
    for section, content in sections.items():
        if not isinstance(content, dict):
            raise ValueError(f"{section}={content!r} is no section: write [{section}].")
    run = sections.get("run", {})
    check_words("run", run, RUN_ARGUMENTS)
    arguments = {name: _with_models(name, value) for name, value in sections["study"].items()}
    return Study(_read_data(sections["data"], path.parent), **arguments), run


def named_model(name: str, text: Any) -> Any:
    """Return the nonlinearity or loss for a text such as "minmax(1, 5)".

    Parameters
    ----------
    name : {"nonlinearity", "loss"}
        Kind of model.
    text : str
        Name of the model, with or without parameters; a name alone is returned as it is.

    Raises
    ------
    ValueError
        If there is no such model, or it does not take these parameters.
    """
    call = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text) if isinstance(text, str) else None
    if call is None:
        return text
    model_name, numbers = call[1], call[2]
    models: dict[str, Any] = dict(NONLINEARITY_CLASSES if name == "nonlinearity" else LOSSES)
    check_word(name, model_name, models)
    try:
        finite = re.sub(r"\binf(inity)?\b", "1e999", numbers, flags=re.IGNORECASE)
        return models[model_name](*literal_eval(f"[{finite}]"))
    except (SyntaxError, TypeError, ValueError) as error:
        raise ValueError(f"{name}={text!r} makes no sense: {error}") from error


def _with_models(name: str, value: Any) -> Any:
    """Return an argument of the study, with objects for the models that have parameters."""
    if name not in ("nonlinearity", "loss"):
        return value
    if isinstance(value, list):
        return [named_model(name, text) for text in value]
    return named_model(name, value)


def _read_data(section: dict[str, Any], folder: Path) -> Any:
    """Return the data that the section ``[data]`` describes."""
    if ("file" in section) == ("dataset" in section):
        check_words("data", section, ["file", "dataset", "variable", "row", "column", "value"])
        raise ValueError("data has neither or both of file and dataset: give one of them.")
    options = dict(section)
    if "file" in options:
        check_words("data", options, ["file", *list(inspect.signature(read_matrix).parameters)[1:]])
        return read_matrix(folder / options.pop("file"), **options)
    functions = {name: getattr(datasets, name) for name in datasets.__all__}
    name = options.pop("dataset")
    check_word("dataset", name, functions)
    check_words("data", options, inspect.signature(functions[name]).parameters)
    X = functions[name](**options)
    if is_frame(X):  # a long table of ratings
        return observations_from_table(X)
    return X["X"] if isinstance(X, xr.Dataset) else X

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
`file`, the `categories` among its columns, and further arguments of
`nmd_lab.data.readers.read_matrix`.  ``[study]`` holds the arguments of `Study`, and ``[run]`` those
of `Study.run`.
"""

from __future__ import annotations

import inspect
import os
import tomllib
from pathlib import Path
from typing import Any

import xarray as xr

from nmd_lab import datasets
from nmd_lab._runtime.checks import check_word, check_words
from nmd_lab.data.labels import is_frame
from nmd_lab.data.long_table import observations_from_table
from nmd_lab.data.readers import read_file, read_matrix, with_categories
from nmd_lab.model.kind import named_model

from .study import Study


def read_configuration(path: str | os.PathLike[str]) -> tuple[Study, dict[str, Any]]:
    """Return the study that a TOML file describes, and the keyword arguments of `Study.run`.

    Names of other files in it are relative to its folder.  The message of an error proposes the
    nearest name for a misspelt one.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"config={str(path)!r} does not exist: check the name.")
    try:
        sections = {"run": {}} | tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"config={str(path)!r} is not TOML: {error}.") from error
    check_words("section", sections, ("data", "study", "run"))
    for name in ("data", "study", "run"):
        if not isinstance(sections.get(name), dict):
            raise ValueError(f"config={str(path)!r} has no section [{name}]: add it.")
    check_words("run", sections["run"], ("n_jobs", "time_limit"))
    arguments = sections["study"]
    for name in {"nonlinearity", "loss"} & arguments.keys():
        arguments[name] = named_model(name, arguments[name])
    return Study(_read_data(sections["data"], path.parent), **arguments), sections["run"]


def _read_data(section: dict[str, Any], folder: Path) -> Any:
    """Return the data that the section ``[data]`` describes."""
    file, dataset = section.pop("file", None), section.pop("dataset", None)
    if (file is None) == (dataset is None):
        check_words("data", section, ["file", "dataset"])
        raise ValueError("data has neither or both of file and dataset: give one of them.")
    if file is not None:
        names = list(inspect.signature(read_file).parameters)[1:]
        check_words("data", section, [*names, "categories"])
        categories = section.pop("categories", [])
        return with_categories(read_matrix(folder / file, **section), categories)
    functions = {name: getattr(datasets, name) for name in datasets.__all__}
    check_word("dataset", dataset, functions)
    check_words("data", section, inspect.signature(functions[dataset]).parameters)
    X = functions[dataset](**section)
    if is_frame(X):  # a long table of ratings
        return observations_from_table(X)
    return X["X"] if isinstance(X, xr.Dataset) else X

"""Notebook cells that repeat what was done, and the data sets that an explorer offers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from nmd_lab import datasets
from nmd_lab.datasets.movielens import small_folder
from nmd_lab.fit import complete, decompose
from nmd_lab.model.nonlinearity import Nonlinearity
from nmd_lab.solver.settings import ADMM, as_solver

from .settings import default_nonlinearity

# Lines that print the number of the page
PRINT_ERROR = 'print(f"relative error {fit.relative_error:.4g}")\n'
PRINT_HIDDEN = 'print(f"hidden {}: ±{{{}:.3g}}")\n'
WIDTH = 88  # longest call on one line


class Code(str):
    """Code that stands for itself, not for a text."""


def expression(value: Any) -> str:
    """Return the code of a value.

    >>> import nmd_lab as nmd
    >>> expression(nmd.MinMax(0, 1)), expression("l1")
    ('nmd.MinMax(0.0, 1.0)', '"l1"')
    """
    if isinstance(value, Nonlinearity):
        kind, inner = type(value), ", ".join(map(repr, value.parameters))
        where = "nmd.nonlinearities" if value.form in (None, "monotone") else "nmd"
        return f"{where}.{kind.__name__}({inner})"
    if isinstance(value, ADMM):
        values = {f.name: getattr(value, f.name) for f in fields(value)}
        changed = {f.name: values[f.name] for f in fields(value) if values[f.name] != f.default}
        return call("nmd.ADMM", **changed)
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value.item() if hasattr(value, "item") else value)


def call(function: str, *positional: str, **named: Any) -> str:
    """Return the code of a call, with an argument a line if it is too long for one."""
    arguments = [*positional, *(f"{name}={expression(value)}" for name, value in named.items())]
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= WIDTH:
        return line
    return f"{function}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def fit_call(fit: Any, verb: str, data: str, arguments: Mapping[str, Any]) -> str:
    """Return the code of a fit."""
    named = dict(arguments)
    if fit is not None:
        validated = named.get("validation") is not None
        named |= stopping_arguments(fit, named.get("solver", "auto"), validated=validated)
    function = {"decompose": decompose, "complete": complete}[verb]
    defaults = {name: each.default for name, each in inspect.signature(function).parameters.items()}
    if defaults["nonlinearity"] is None:
        defaults["nonlinearity"] = default_nonlinearity(named.get("alpha", defaults["alpha"]))
    defaults["solver"] = as_solver(defaults["solver"])
    named = {name: value for name, value in named.items() if value != defaults[name]}
    return f"fit = {call(f'nmd.{verb}', data, **named)}\n"


def stopping_arguments(fit: Any, solver: Any, *, validated: bool) -> dict[str, Any]:
    """Return the arguments that stop a repeated fit where the first one stopped."""
    # The iteration that overflowed is not part of the result, but it has to be repeated
    overflowed = fit.stop_reason.code == "not finite"
    iterations = fit._n_iter + overflowed
    patient = {"solver": replace(as_solver(solver), patience=iterations)} if validated else {}
    return {"max_iter": iterations, **patient}


def name_in_notebook(value: Any) -> str | None:
    """Return the name of the variable that holds an object in the notebook, or None."""
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    shell = get_ipython()
    variables = {} if shell is None else shell.user_ns
    return next(
        (name for name, held in variables.items() if held is value and not name.startswith("_")),
        None,
    )


class DataSet(NamedTuple):
    """A data set of `nmd_lab.datasets`."""

    name: str  # name of the function that loads it
    arguments: dict[str, Any]  # arguments of the function

    @property
    def code(self) -> str:
        """Code that loads the data."""
        return call(f"nmd.datasets.{self.name}", **self.arguments)

    def load(self) -> Any:
        """Return the data."""
        return getattr(datasets, self.name)(**self.arguments)


def library() -> dict[str, DataSet]:
    """Return the data sets that an explorer offers without data, none of which is downloaded."""
    sets = {
        "digits": DataSet("digits", {}),
        "photograph of a flower": DataSet("photograph", {"name": "flower", "size": (213, 320)}),
        "photograph of a palace": DataSet("photograph", {"name": "china", "size": (213, 320)}),
    }
    if small_folder() is not None:
        sets["MovieLens, small"] = DataSet("movielens_small", {})
    size = {"n_users": 400, "n_items": 300, "n_ratings": 12_000}
    return sets | {"generated": DataSet("make_ratings", {**size, "random_state": 0})}

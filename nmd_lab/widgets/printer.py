"""Notebook cells that repeat what an explorer did: calls, values and imports."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from IPython.core.getipython import get_ipython

from nmd_lab.api.fits import complete, decompose
from nmd_lab.model.nonlinearity import Nonlinearity
from nmd_lab.request.settings import ADMM, as_solver

IMPORTS = {  # what a line uses, and the import; the library stands below a blank line
    "np.": "import numpy as np\n",
    "pd.": "import pandas as pd\n",
    "": "\nimport nmd_lab as nmd\n",
    "Image.open(": "from PIL import Image\n",
    "read_matrix(": "from nmd_lab.data.readers import read_matrix\n",
}

# Lines that print the number of the page
PRINT_ERROR = 'print(f"relative error {fit.relative_error:.4g}")\n'
PRINT_HIDDEN = 'print(f"held-out {}: ±{{{}:.3g}}")\n'


def cell(lines: str) -> str:
    """Return a notebook cell: the imports that lines need, and the lines."""
    used = "".join(line for words, line in IMPORTS.items() if words in lines)
    return f"{used.lstrip()}\n{lines}"


def given_code(name: str, source: str | None, more: str = "") -> str:
    """Return the line that gives data a name; none where they have it already."""
    about = "" if source is not None and source.startswith("nmd.") else "  # your data"
    held = f"({source})" if more and " / " in (source or "") else source or "..."
    return "" if f"{source}{more}" == name else f"{name} = {held}{more}{about}\n"


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
        values = {f.name: (getattr(value, f.name), f.default) for f in fields(value)}
        return call("nmd.ADMM", **{name: x for name, (x, usual) in values.items() if x != usual})
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(expression, value))}]"
    return repr(value.item() if hasattr(value, "item") else value)


def call(function: str, *positional: str, **named: Any) -> str:
    """Return the code of a call, with an argument a line if it is too long for one."""
    arguments = [*positional, *(f"{name}={expression(value)}" for name, value in named.items())]
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= 88:
        return line
    return f"{function}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def default_nonlinearity(alpha: float | str) -> str:
    """Return the nonlinearity that `complete` has by default with a ridge."""
    return "auto" if alpha == "auto" else "identity"


def fit_call(fit: Any, verb: str, data: str, arguments: Mapping[str, Any]) -> str:
    """Return the code of a fit, with its components by size."""
    named = dict(arguments)
    if fit is not None:  # it stops where the first one did
        # The iteration that overflowed is not part of the result, but it has to be repeated
        named["max_iter"] = fit._n_iter + (fit.stop_reason.code == "not finite")
        if "validation" in named:
            named["solver"] = replace(as_solver(named["solver"]), patience=named["max_iter"])
    function = {"decompose": decompose, "complete": complete}[verb]
    defaults = {name: each.default for name, each in inspect.signature(function).parameters.items()}
    if defaults["nonlinearity"] is None:
        defaults["nonlinearity"] = default_nonlinearity(named.get("alpha", defaults["alpha"]))
    defaults["solver"] = as_solver(defaults["solver"])
    named = {name: value for name, value in named.items() if value != defaults[name]}
    return f"fit = {call(f'nmd.{verb}', data, **named)}.rotate()\n"


def name_in_notebook(value: Any) -> str | None:
    """Return the variable or the output that holds an object in the notebook, or None."""
    shell: Any = get_ipython()
    variables = {} if shell is None else shell.user_ns
    outputs = {f"Out[{number}]": held for number, held in variables.get("Out", {}).items()}
    held = (name for name, each in (variables | outputs).items() if each is value)
    return next((name for name in held if not name.startswith("_")), None)

"""The code that does by hand what an explorer did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nmd_lab.model.nonlinearities import Nonlinearity

WIDTH = 88
PRINT = 'print(f"relative error {fit.relative_error:.6g}")\n'


def expression(value: Any) -> str:
    """Return the code of a value.

    >>> import nmd_lab as nmd
    >>> expression(nmd.MinMax(0, 1)), expression("l1")
    ('nmd.MinMax(0.0, 1.0)', '"l1"')
    """
    if isinstance(value, Nonlinearity):
        inner = ", ".join(map(repr, value.parameters))
        return f"nmd.{type(value).__name__}({inner})"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value.item() if hasattr(value, "item") else value)


def call(function: str, *positional: str, **named: Any) -> str:
    """Return the code of a call, in several lines if one is too short.

    >>> call("nmd.complete", "X", rank=3, loss="l1")
    'nmd.complete(X, rank=3, loss="l1")'
    """
    parts = [*positional, *(f"{name}={expression(value)}" for name, value in named.items())]
    line = f"{function}({', '.join(parts)})"
    if len(line) <= WIDTH:
        return line
    return f"{function}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def fit_call(fit: Any, verb: str, data: str, arguments: Mapping[str, Any]) -> str:
    """Return the code of a fit, with as many iterations as it did and no other end.

    Parameters
    ----------
    fit : Decomposition or None
        The result, if there is one.
    verb : {"decompose", "complete"}
        The command.
    data : str
        The name of its matrix.
    arguments : mapping
        The other arguments.
    """
    named = dict(arguments)
    if fit is not None:
        named |= ending(fit, named.get("validation") is not None)
    lines = f"fit = {call(f'nmd.{verb}', data, **named)}\n"
    return lines + PRINT


def ending(fit: Any, validated: bool) -> dict[str, Any]:
    """Return the arguments that make a fit end where another one did."""
    overflowed = fit.stop_reason.code == "not finite"
    iterations = fit.n_iter + overflowed
    patience = {"patience": iterations} if validated else {}
    return {"max_iter": iterations, **patience}


def name_of(wanted: Any) -> str | None:
    """Return the name that an object has in the notebook, if any."""
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    shell = get_ipython()
    names = {} if shell is None else shell.user_ns
    return next((n for n, o in names.items() if o is wanted and not n.startswith("_")), None)

"""The choice of settings that are "auto": asked for, watched, and put into words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from nmd_lab._checks import is_auto
from nmd_lab._interruption import Interruption
from nmd_lab._threads import one_thread
from nmd_lab.result.selection import as_text
from nmd_lab.solver.options import COMPLETION_DEFAULTS
from nmd_lab.solver.prepare import prepare
from nmd_lab.solver.spec import Prepared, Spec
from nmd_lab.widgets.parts.texts import many

WITHOUT_RIDGE = ("none", "global")  # kinds of offsets that have no ridge
DIGITS = 4  # significant digits of chosen ridges, in the controls, the copied code and the fit


def complete_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of a call of `complete`, and its defaults of those that decide the model."""
    plain = {"rank": "auto", "nonlinearity": None, "loss": "frobenius"}
    named = plain | COMPLETION_DEFAULTS | dict(arguments)
    if named["nonlinearity"] is None:
        named["nonlinearity"] = default_nonlinearity(named["alpha"])
    return named


def default_nonlinearity(alpha: float | str) -> str:
    """Return the nonlinearity that `complete` has by default with a ridge."""
    return "auto" if alpha == "auto" else "identity"


def is_open(arguments: Mapping[str, Any]) -> bool:
    """Return whether trials have to decide an argument of a fit."""
    named = complete_arguments(arguments)
    return any(is_auto(named[name]) for name in ("rank", "nonlinearity", "loss", "alpha"))


def prepared(X: Any, arguments: Mapping[str, Any], **more: Any) -> Prepared:
    """Return what a fit of X begins with, given arguments of a call of `complete`."""
    return prepare(X, **{"absent_are_zeros": False} | complete_arguments(arguments) | more)


def choice_for(X: Any, arguments: Mapping[str, Any], *, asked: Interruption, **more: Any) -> Spec:
    """Return the specification with what was chosen for what is "auto"."""
    # Explorers go on until a fit has converged: no trial ends early after a path of ridges
    with one_thread():
        return prepared(X, {"init": "svd"} | dict(arguments), interruption=asked, **more).spec


def chosen_arguments(arguments: Mapping[str, Any], choice: Spec) -> dict[str, Any]:
    """Return the values of a choice for those arguments of a fit that are "auto"."""
    named = {"offset_alpha": "auto"} | complete_arguments(arguments)
    nonlinearity, d = choice.model.shown
    chosen = {"nonlinearity": nonlinearity, "loss": d.name} | _numbers(choice)
    return {name: value for name, value in chosen.items() if is_auto(named[name])}


def settings_of(choice: Spec) -> dict[str, Any]:
    """Return the chosen values as settings; those of an f with bounds include these."""
    f = choice.model.kinds[0].nonlinearity
    bounds = dict(zip(("low", "high"), f.parameters, strict=True)) if has_bounds(f) else {}
    return {"nonlinearity": f.name, **bounds} | _numbers(choice)


def _numbers(choice: Spec) -> dict[str, Any]:
    """Return rank, ridges and offsets of a choice."""
    return {
        "rank": int(choice.rank),
        "alpha": rounded(choice.alpha),
        "offsets": choice.offsets,
        "offset_alpha": rounded(choice.offset_alpha),
    }


def has_bounds(f: Any) -> bool:
    """Return whether a nonlinearity, or a class of them, has a lower and an upper bound."""
    return bool(f.parameter_names == ("a", "b"))


def rounded(number: float) -> float:
    """Return a number with so many significant digits as are shown.

    >>> rounded(16.185352), rounded(3.0)
    (16.19, 3.0)
    """
    return float(f"{number:.{DIGITS}g}")


def sentence_of(choice: Spec, names: Collection[str]) -> str:
    """Return what was chosen, and why, as a sentence."""
    values = settings_of(choice)
    if choice.model.which is not None:
        values["nonlinearity"] = "by column"
    if values["offsets"] in WITHOUT_RIDGE:
        names = [name for name in names if name != "offset_alpha"]
    parts = [f"{name.replace('_', ' ')} {as_text(values[name], DIGITS)}" for name in names]
    record = choice.selection
    assert record is not None
    rows = record["trials"]
    found = f"chosen: {', '.join(parts).replace('nonlinearity', 'f')}"
    if not rows:
        return f"{found}. Why: {record['reason']}."
    entries, error = record["held_out"]["entries"], rows[record["chosen"]]["error"]
    return (
        f"{found}. Why: {record['reason']} ({record['measure']} {as_text(error)} at {entries} "
        f"entries that were held out for {many(len(rows), 'trial')})."
    )

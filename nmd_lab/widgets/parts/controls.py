"""The controls of an explorer as the front end draws them, and what the user enters in them."""

from __future__ import annotations

import numbers
from typing import Any

from nmd_lab.widgets.states.fields import Field, FitState


def controls_part(state: FitState) -> list[dict[str, Any]]:
    """Return each field with its value, and what is wrong with it or why it has no effect."""
    problems, reasons = state.problems(), state.reasons()
    return [
        {
            "name": field.name,
            "label": field.label,
            "kind": field.kind,
            "options": _options(field, state),
            "group": field.group,
            "help": field.help or field.label,
            "auto": field.auto and field.kind in ("integer", "number"),
            "value": entered(state.values[field.name], field.kind),
            "problem": problems.get(field.name, ""),
            "reason": reasons.get(field.name, ""),
        }
        for field in state.fields
    ]


def _options(field: Field, state: FitState) -> list[list[str]]:
    """Return pairs of an option and its label."""
    options = state.options.get(field.name, field.options)
    return [[each, field.option_labels.get(each, each)] for each in options]


def entered(value: Any, kind: str) -> Any:
    """Return a value as an input shows it.

    >>> (
    ...     entered(3.0, "number"),
    ...     entered(12, "integer"),
    ...     entered("auto", "integer"),
    ...     entered(0.5, "share"),
    ... )
    ('3', '12', 'auto', 0.5)
    """
    if value is None:
        return ""
    if kind in ("integer", "number") and isinstance(value, numbers.Number):
        return f"{value:.12g}"
    return value if kind == "share" else str(value)


def value_of(value: Any, kind: str) -> Any:
    """Return what was entered: as a number where the kind asks for one and it is one.

    >>> value_of("12", "integer"), value_of("2.7", "integer"), value_of("1,5", "number")
    (12, '2.7', '1,5')
    """
    if kind not in ("integer", "number") or value == "auto":
        return value
    try:
        return int(value) if kind == "integer" else float(value)
    except (TypeError, ValueError):
        return value  # which the check of the setting refuses, with what was entered

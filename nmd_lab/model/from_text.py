"""Nonlinearities and losses from text, for files and the command line."""

from __future__ import annotations

import re
from ast import literal_eval
from typing import Any

from nmd_lab._checks import check_word

from .losses import LOSSES
from .nonlinearities import NONLINEARITY_CLASSES


def named_model(name: str, text: Any) -> Any:
    """Return the nonlinearity or loss for a text such as "minmax(1, 5)"; a name alone as it is."""
    if isinstance(text, list):
        return [named_model(name, each) for each in text]
    call = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text) if isinstance(text, str) else None
    if call is None:
        return text
    models: dict[str, Any] = dict(NONLINEARITY_CLASSES if name == "nonlinearity" else LOSSES)
    check_word(name, call[1], models)
    try:
        finite = re.sub(r"\binf(inity)?\b", "1e999", call[2], flags=re.IGNORECASE)
        return models[call[1]](*literal_eval(f"[{finite}]"))
    except (SyntaxError, TypeError, ValueError) as error:
        raise ValueError(f"{name}={text!r} makes no sense: {error}") from error

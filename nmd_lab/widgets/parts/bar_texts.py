"""The texts in the bar of an explorer beside its headline: the data and the model."""

from __future__ import annotations

from typing import Any

from nmd_lab.result.selection import as_text


def model_text(fit: Any) -> str:
    """Return rank, nonlinearity and ridge of a fit or a posterior in a few words."""
    words = [f"{fit.rank} component{'s' if fit.rank != 1 else ''}", _name(fit.nonlinearity)]
    alpha = fit.parameters.get("alpha")
    if isinstance(alpha, float | int) and alpha > 0:
        words.append(f"ridge {as_text(alpha, 3)}")
    return " · ".join(words)


def _name(f: Any) -> str:
    """Return the name of f: "linear" for the identity."""
    names = {"identity": "linear", "relu": "ReLU", "minmax": "MinMax", "mixed": "by column"}
    return names.get(f.name, str(f.name))


def size_text(name: str, shape: tuple[int, int], share: float = 1.0) -> str:
    """Return the name and the size of data, and the share that is known if that is not all.

    >>> size_text("ratings", (671, 9066), 0.0163)
    'ratings 671 × 9066, 1.6 % known'
    """
    more = f", {as_text(100 * share, 2)} % known" if share < 1 else ""
    return f"{name} {shape[0]} × {shape[1]}{more}"

"""All methods by name, ours first."""

from __future__ import annotations

from collections.abc import Mapping

from .ours import OURS
from .peers import PEERS, Method

METHODS: Mapping[str, Method] = {**OURS, **PEERS}


def is_ours(method: str) -> bool:
    """Return whether a method is of this library."""
    return method in OURS

"""Print the lowest versions that pyproject.toml allows: of the core and of the extras named."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]


def lowest(extras: list[str]) -> list[str]:
    """Return one pin for each requirement; every bound is a lower one, as test_packaging asks."""
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][name] for name in extras)]
    ours = f"{PROJECT['name']}["  # an extra that contains another one
    return [text.replace(">=", "==") for each in lists for text in each if ours not in text]


if __name__ == "__main__":
    print(*lowest(sys.argv[1:]), sep="\n")

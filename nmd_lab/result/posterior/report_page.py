"""A report as a page: Markdown as text, HTML in a notebook, either in a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from nmd_lab._atomic import check_target, write_atomically

if TYPE_CHECKING:
    import pandas as pd

HEAD = '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Imputation</title>\n'
STYLE = (
    "<style>body { font-family: sans-serif; max-width: 60em; margin: 2em auto; } "
    "td, th { text-align: left; padding: 0.1em 1em 0.1em 0; }</style>\n"
)
"""What comes before the content of a file of HTML."""


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorReport:
    """What was missing in a table, what it was filled with, and how far to trust this.

    ``str(report)`` is Markdown, and a notebook shows HTML.

    Attributes
    ----------
    summary : str
        Size of the table, and how much of it was missing.
    columns : pandas.DataFrame
        One line for each column: kind, observed and missing cells, what holes are filled by, and
        how unsure they are on average (`Posterior.reliability` says in which units).
    least_sure, surest : pandas.DataFrame
        Some filled cells, with intervals or probabilities.
    held_out : pandas.DataFrame or None
        One line for each column with held-out cells: means of what was observed and predicted,
        error as in `Posterior.reliability`, and the share that the intervals hold.
    convergence : str
        What the chains say of themselves.
    assumptions : tuple of str
        What the model takes for granted.
    methods : str
        A sentence for a paper.
    """

    summary: str
    columns: pd.DataFrame
    least_sure: pd.DataFrame
    surest: pd.DataFrame
    held_out: pd.DataFrame | None
    convergence: str
    assumptions: tuple[str, ...]
    methods: str

    def __repr__(self) -> str:
        """Return the report as Markdown."""
        blocks = []
        for title, content in self._sections:
            if isinstance(content, tuple):
                content = "\n".join(f"- {line}" for line in content)
            text = content if isinstance(content, str) else _markdown_table(content)
            blocks += [f"## {title}", text]
        return "\n\n".join(["# Imputation", *blocks]) + "\n"

    def _repr_html_(self) -> str:
        """Return the report as HTML, which notebooks show."""
        blocks = []
        for title, content in self._sections:
            blocks.append(f"<h3>{escape(title)}</h3>")
            if isinstance(content, str):
                blocks.append(f"<p>{escape(content)}</p>")
            elif isinstance(content, tuple):
                lines = "".join(f"<li>{escape(line)}</li>" for line in content)
                blocks.append(f"<ul>{lines}</ul>")
            else:
                blocks.append(content.map(_text).to_html(index=False, border=0))
        return "\n".join(["<h2>Imputation</h2>", *blocks])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as .html or .md; an older file is kept if this fails.

        Raises
        ------
        ValueError
            If the file has another ending.
        """
        ending = check_report(path).lower()
        page = str(self) if ending == ".md" else f"{HEAD}{STYLE}{self._repr_html_()}\n"
        write_atomically(path, lambda file: file.write(page.encode()))

    @property
    def _sections(self) -> list[tuple[str, Any]]:
        """Titles, and texts, lists or tables."""
        sections = [
            ("Data", self.summary),
            ("Columns", self.columns),
            ("Least sure cells", self.least_sure),
            ("Surest cells", self.surest),
            ("Held-out cells", self.held_out),
            ("Convergence", self.convergence),
            ("Assumptions", self.assumptions),
            ("For a methods section", self.methods),
        ]
        return [(title, content) for title, content in sections if content is not None]


def check_report(path: str | os.PathLike[str], name: str = "path") -> str:
    """Return the ending of a file for a report, if it can be written."""
    ending = check_target(path, name).suffix
    if ending.lower() not in (".html", ".md"):
        raise ValueError(f"{name}={str(path)!r} has an unknown ending: give .html or .md.")
    return ending


def _markdown_table(frame: pd.DataFrame) -> str:
    """Return a table of Markdown."""
    names: list[Any] = list(frame.columns)
    lines = [names, ["---"] * len(names), *frame.itertuples(index=False)]
    cells = ([_text(value).replace("|", "\\|") for value in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _text(value: Any) -> str:
    """Return a value for a table: few digits, and nothing for what is not there."""
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    return str(value)

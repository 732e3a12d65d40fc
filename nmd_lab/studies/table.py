"""A table of means and standard deviations that looks like one in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pandas as pd


class StudyTable(pd.DataFrame):
    """A DataFrame with the columns mean and sd; HTML joins them and prints the best in bold."""

    @property
    def _constructor(self) -> type[StudyTable]:
        return StudyTable

    def _repr_html_(self) -> str:
        if self.columns.nlevels < 2 or set(self.columns.get_level_values(-1)) != {"mean", "sd"}:
            return self.to_html()
        groups = list(dict.fromkeys(tuple(column)[:-1] for column in self.columns))
        columns = [self._cells(group) for group in groups]
        names = [str(name) for name in self.index.names if name is not None]
        head = ""
        for level in range(self.columns.nlevels - 1):
            title = str(self.columns.names[level] or "")
            cells = "".join(_th(name) for name in names) if level == 0 else ""
            if level > 0:
                cells = f'<th colspan="{max(1, len(names))}" style="text-align:right">'
                cells += f"{escape(title)}</th>"
            cells += "" if names or level > 0 else _th("")
            head += f"<tr>{cells}{''.join(_th(group[level]) for group in groups)}</tr>"
        body = ""
        for i, label in enumerate(self.index):
            words = label if isinstance(label, tuple) else (label,)
            cells = "".join(_th(word) for word in words)
            body += f"<tr>{cells}{''.join(column[i] for column in columns)}</tr>"
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"

    def _cells(self, group: tuple[Any, ...]) -> list[str]:
        """Return the cells of a column, the least mean in bold."""
        means, spreads = (np.asarray(self[(*group, part)], float) for part in ("mean", "sd"))
        best = np.nanmin(means) if np.isfinite(means).any() else np.nan
        cells = []
        for mean, spread in zip(means, spreads, strict=True):
            text = _number(mean) if np.isnan(spread) else f"{_number(mean)} ± {spread:.2g}"
            text = "–" if np.isnan(mean) else text
            text = f"<b>{text}</b>" if mean == best else text
            cells.append(f'<td style="text-align:right">{text}</td>')
        return cells


def _number(value: float) -> str:
    return f"{value:.4g}"


def _th(word: Any) -> str:
    text = str(word).replace("_", " ") if isinstance(word, str) else f"{word}"
    return f"<th>{escape(text)}</th>"

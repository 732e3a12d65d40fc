"""A table of means and standard deviations, with a compact form in notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pandas as pd

from .uncertainty import OF_A_POSTERIOR


class StudyTable(pd.DataFrame):
    """A DataFrame with pairs of columns "mean" and "sd", the last level of its columns.

    As HTML, a pair is one column "mean ± sd", and the smallest mean is in bold if it is the best.
    """

    @property
    def _constructor(self) -> type[StudyTable]:
        return StudyTable

    def joined(self) -> pd.DataFrame:
        """Return the table with one column of text "mean ± sd" for each pair of columns."""
        groups = self._groups()
        cells = np.array([self._texts(group) for group in groups]).T
        names = self.columns.names[:-1]
        return pd.DataFrame(cells, self.index, pd.MultiIndex.from_tuples(groups, names=names))

    def _repr_html_(self) -> str:
        if self.columns.nlevels < 2 or set(self.columns.get_level_values(-1)) != {"mean", "sd"}:
            return self.to_html()
        groups, names = self._groups(), [str(n) for n in self.index.names if n is not None]
        head = ""
        for level, title in enumerate(self.columns.names[:-1]):
            if level == 0:
                left = "".join(_th(name) for name in names) or _th("")
            else:
                width = max(1, len(names))
                left = f'<th colspan="{width}" style="text-align:right">{escape(str(title))}</th>'
            head += f"<tr>{left}{''.join(_th(group[level]) for group in groups)}</tr>"
        columns = [self._html(group) for group in groups]
        body = ""
        for i, label in enumerate(self.index):
            labels = label if isinstance(label, tuple) else [label]
            left = "".join(_th(each) for each in labels)
            body += f"<tr>{left}{''.join(column[i] for column in columns)}</tr>"
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"

    def _groups(self) -> list[tuple[Any, ...]]:
        """Return the labels of the pairs: those of the columns without "mean" and "sd"."""
        return list(dict.fromkeys(tuple(column)[:-1] for column in self.columns))

    def _numbers(self, group: tuple[Any, ...], statistic: str) -> Any:
        """Return the column of "mean" or "sd"."""
        return np.asarray(self[(*group, statistic)], dtype=float)

    def _texts(self, group: tuple[Any, ...]) -> list[str]:
        """Return the cells of a pair of columns as text."""
        pairs = zip(self._numbers(group, "mean"), self._numbers(group, "sd"), strict=True)
        return [_text(mean, spread) for mean, spread in pairs]

    def _html(self, group: tuple[Any, ...]) -> list[str]:
        """Return the cells of a pair of columns as HTML, the smallest mean in bold."""
        means = self._numbers(group, "mean")
        is_error = group[0] not in OF_A_POSTERIOR
        best = np.nanmin(means) if is_error and np.isfinite(means).any() else np.nan
        texts = [
            f"<b>{text}</b>" if mean == best else text
            for text, mean in zip(self._texts(group), means, strict=True)
        ]
        return [f'<td style="text-align:right">{text}</td>' for text in texts]


def _text(mean: float, spread: float) -> str:
    """Return "mean ± sd", with a dash for a missing mean."""
    if np.isnan(mean):
        return "–"
    return f"{mean:.4g}" if np.isnan(spread) else f"{mean:.4g} ± {spread:.2g}"


def _th(label: Any) -> str:
    """Return a cell of a header as HTML."""
    return f"<th>{escape(str(label).replace('_', ' '))}</th>"

"""The study explorer: a chart with points to click, and the fits behind each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from nmd_lab.result import serialization
from nmd_lab.result.summary import two_digits
from nmd_lab.studies.cell import POSTERIOR_SCORES
from nmd_lab.studies.plots import label_text
from nmd_lab.studies.summary import CONFIDENCE, labels_of, rank_test, ranked

from .background import many
from .charts import chart, series, table
from .history import History
from .study_state import NO_DIMENSION, ChartPoint, StudyState, is_numeric, measure_name
from .view import View
from .words import Number, Piece

CHOSEN = "_chosen"  # end of the names of variables that hold what fits chose by held-out entries
MOST_CELLS = 24  # largest number of fits of a point, or of points, that are listed


class StudyView(View):
    """The chart with its points, and the details of one."""

    state: StudyState
    filename = "study-copy.nc"

    def __init__(self, state: StudyState) -> None:
        super().__init__(state)
        self.buttons = {}
        self.points: list[ChartPoint] = []
        self._shown: dict[str, Any] | None = None
        self.actions["point"] = self._choose

    @property
    def result(self) -> xr.Dataset:
        """The results, or those of the point that was clicked."""
        state, chosen = self.state, self.state.selected
        if chosen is None:
            return state.results
        return self.memo("cells", lambda: state.cells(chosen), chosen)

    def cannot_run(self) -> str:
        """Return why nothing runs here."""
        return "a study is shown, not fitted: study.best() fits its best model"

    def write(self, path: Path) -> None:
        """Write the results, or those of the point, to a file."""
        serialization.write(self.result, path)

    @property
    def title(self) -> str:
        """The size of the study."""
        return f"a study of {many(math.prod(self.state.results.sizes.values()), 'fit')}"

    @property
    def _models(self) -> pd.DataFrame:
        """The errors of the models in all conditions, the best model first."""
        state, metric = self.state, self.state.values["metric"]
        return self.memo("models", lambda: ranked(state.results, metric), metric)

    def _labels(self, place: int = 0) -> dict[str, Any]:
        """Return the labels of a model, the best one by default."""
        return labels_of(self.state.results, self._models.index[place])

    @property
    def model(self) -> list[Piece]:
        """The model that is best over all conditions."""
        return [] if self._models.empty else [(f"best is {_words(self._labels())}", "")]

    def number(self, *, of_fit: bool = False) -> Number | None:
        """Return the lowest mean of the measure, and the difference from the next model."""
        if (best := self._best()) is None:
            return None
        conditions = len(best.scores)
        where = f", mean of {conditions} conditions" if conditions > 1 else ""
        metric = self.state.results[self.state.values["metric"]]
        name = measure_name(metric.attrs.get("long_name", metric.name))
        after = where + self._difference(self._models)
        return Number(best.mean, f"Its {name} is ", after, value=two_digits(best.mean))

    def _difference(self, models: pd.DataFrame) -> str:
        """Return the paired difference of the next model in words."""
        if len(models) < 2:
            return ""
        results, metric = self.state.results, self.state.values["metric"]
        if metric in POSTERIOR_SCORES:  # the lowest is not the best
            return ""
        tested = rank_test(results, metric, CONFIDENCE, {})
        more, *ends = tested[["difference", "low", "high"]].iloc[1]
        places = max(0, 1 - math.floor(math.log10(more))) if more > 0 else 2
        text = f"; {_words(self._labels(1))} is {more:.{places}f} worse"
        if results.sizes["seed"] < 2:
            return f"{text}, with one seed"
        text += "," if ends[0] > 0 else ", not"
        low, high = (f"{end:.{places}f}" for end in ends)
        paired = f"paired by {results.sizes['seed']} seeds"
        return f"{text} clearly (95 % interval {low} to {high}, {paired})"

    def _best(self) -> ChartPoint | None:
        """Return the best model over all conditions, as the sentence has it."""
        if self._models.empty:
            return None
        scores = self._models.iloc[0].to_numpy().reshape(-1, self.state.results.sizes["seed"])
        return ChartPoint("", "", 0.0, self._labels(), scores)

    def parts(self, history: History) -> dict[str, Any]:
        """Return the chart, the fits of the chosen point or of the best model, and all models."""
        chosen, values = self.state.selected, self.state.values
        wrong = {"color", "panel"} & set(self.state.problems())
        if self._shown is None or not wrong:  # meanwhile, the chart before it stays
            layout = (values[name] for name in ("metric", "x", "color", "panel"))
            self._shown = self.memo("chart", self._chart, *layout)
        labels = None if chosen is None else chosen.labels
        return {
            "dots": {"study": self._shown},
            "facts": {
                "point": next((k for k, p in enumerate(self.points) if p.labels == labels), None)
            },
            "tables": [*map(self._about, filter(None, [chosen or self._best()])), self._ranking()],
        }

    def _choose(self, message: Mapping[str, Any]) -> None:
        """Choose a point, or no point by a second click on it."""
        point, chosen = self.points[message["id"]], self.state.selected
        is_chosen = chosen is not None and point.labels == chosen.labels
        self.state.selected = None if is_chosen else point

    def _chart(self) -> dict[str, Any]:
        """Return the chart of the present layout, and keep its points."""
        state, values = self.state, self.state.values
        results, x, metric = state.results, values["x"], values["metric"]
        points = state.points()
        if not points:
            raise ValueError(f"{metric} is NaN everywhere: choose another measure.")
        self.points, joined = points, is_numeric(results, x)
        ticks = [
            [float(label) if joined else float(k), label_text(label)]
            for k, label in enumerate(results[x].values)
        ]
        averaged = [label_text(dim) for dim in state.averaged]
        return chart(
            f"mean over {' and '.join(averaged)}" if averaged else "",
            label_text(x),
            measure_name(results[metric].attrs.get("long_name", metric)),
            [],
            panels=_panels(points, joined, values["panel"]),
            color="" if values["color"] == NO_DIMENSION else label_text(values["color"]),
            ticks=ticks,
            joined=joined,
        )

    def _ranking(self) -> dict[str, Any]:
        """Return the table of the models, the best one first."""
        models, metric = self._models, measure_name(self.state.values["metric"])
        spread = models.T.groupby("seed").mean().std().fillna(0)
        rows = [
            [*map(label_text, self._labels(k).values()), f"{mean:.4g}", f"{spread.iloc[k]:.2g}"]
            for k, mean in enumerate(models.mean(axis=1))
        ]
        head = [*map(label_text, self._labels() if rows else ()), metric, "SD"]
        said = "the best model first; a click on a point shows its fits, a second click goes back"
        return _shortened(head, rows, said, "models")

    def _about(self, point: ChartPoint) -> dict[str, Any]:
        """Return the table of the fits behind a point."""
        cells, metric = self.state.cells(point), self.state.values["metric"]
        dims = [str(dim) for dim in cells.dims if cells.sizes[dim] > 1]
        chosen = [str(name) for name in cells.data_vars if str(name).endswith(CHOSEN)]
        names = [n for n in dict.fromkeys([metric, *chosen, "n_iter", "seconds"]) if n in cells]
        frame = cells[names].to_dataframe().reset_index()
        labels, values = (frame[each].to_numpy().tolist() for each in (dims, names))
        rows = [
            [*map(label_text, a), *map(_value_text, b, names)]
            for a, b in zip(labels, values, strict=True)
        ]
        caption = (
            f"{_labels_text(point.labels)}: {point.mean:.4g} (SD over seeds {point.spread:.2g})"
        )
        head = [measure_name(n.replace("n_iter", "iterations")) for n in dims + names]
        return _shortened(head, rows, caption, "fits")


def _panels(
    points: list[ChartPoint], joined: bool, panel_dim: str, shift: float = 0.1
) -> list[dict[str, Any]]:
    """Return the points of each panel, with their numbers; they are in order."""
    panels = []
    for panel, in_panel in groupby(enumerate(points), lambda each: each[1].panel):
        colors = [list(some) for _, some in groupby(in_panel, lambda each: each[1].color)]
        lines = []
        for k, found in enumerate(colors):
            ids, some = [i for i, _ in found], [point for _, point in found]
            offset = 0.0 if joined else shift * (k - (len(colors) - 1) / 2)
            means, spread = np.transpose([(point.mean, point.spread) for point in some])
            names = [_labels_text(point.labels) for point in some]
            places = [point.place + offset for point in some]
            ends = means - spread, means + spread
            lines.append(series(some[0].color, places, means, names, ends, ids))
        panels.append({"title": panel and f"{label_text(panel_dim)} {panel}", "series": lines})
    return panels


def _shortened(head: list[str], rows: list[list[str]], caption: str, what: str) -> dict[str, Any]:
    """Return a table with its first rows; the caption has their number."""
    if len(rows) > MOST_CELLS:
        caption += f" (the first {MOST_CELLS} of {len(rows)} {what})"
    return table(what, head, rows[:MOST_CELLS], caption=caption)


def _words(labels: Mapping[str, Any]) -> str:
    """Return the labels of a model on one line; a word needs no name."""
    each = (x if isinstance(x, str) else f"{dim} {label_text(x)}" for dim, x in labels.items())
    return label_text(", ".join(each))


def _labels_text(labels: Mapping[str, Any]) -> str:
    """Return the labels of a point on one line."""
    return ", ".join(f"{label_text(name)} {label_text(value)}" for name, value in labels.items())


def _value_text(each: Any, of: str) -> str:
    """Return a result of a cell: a number with four digits, or a text; seconds have their unit."""
    return f"{each:.4g}{' s' * (of == 'seconds')}" if isinstance(each, float | int) else str(each)

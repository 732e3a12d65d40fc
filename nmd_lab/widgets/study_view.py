"""The study explorer: a chart with points to click, the fits behind each, and one fit repeated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from nmd_lab.result import netcdf
from nmd_lab.studies.grid import CONDITIONS
from nmd_lab.studies.plots import label_text

from .background import Latest, many
from .charts import chart, curves_chart, series, table
from .history import History
from .study_state import NO_DIMENSION, ChartPoint, StudyState, is_numeric
from .view import View
from .words import Number, Piece, two_digits

CHOSEN = "_chosen"  # end of the names of variables that hold what fits chose by held-out entries
MOST_CELLS = 24  # largest number of fits of a point, or of points, that are listed
CLEARLY = 0.975  # quantile of Student's t beyond which a paired difference is called clear


class StudyView(View):
    """The chart with its points, the details of one, and the curves of its fit."""

    state: StudyState

    def __init__(self, state: StudyState, study: Any) -> None:
        attribute = "results" if state.study is None else "study"
        super().__init__(state, "study-fit.nc", (study if state.path is None else None, attribute))
        self.points: list[ChartPoint] = []
        self._shown: dict[str, Any] | None = None
        self._drawn = Latest[dict[str, Any]]()
        self._cells = Latest[xr.Dataset]()
        self.actions["point"] = self._choose

    @property
    def result(self) -> Any:
        """The repeated fit, or the cells of the point that was clicked, or None."""
        chosen = self.state.selected
        if self.state.fit.result is not None or chosen is None:
            return self.state.fit.result
        return self._cells(lambda: self.state.cells(chosen), chosen)

    def cannot_run(self) -> str:
        """Return why the fit of the point cannot be repeated, or an empty string."""
        return self.state.why_not() or super().cannot_run()

    def start(self) -> None:
        """Repeat the fit of the chosen point, or else of the lowest one."""
        best = self._best()
        if self.state.selected is None and best is not None:
            self.state.choose(best)
        super().start()

    def write(self, path: Path) -> None:
        """Write the repeated fit, or the cells of the point, to a file."""
        if isinstance(self.result, xr.Dataset):
            netcdf.write(self.result, path)
        else:
            self.result.save(path)

    @property
    def title(self) -> str:
        """The size of the study."""
        return f"a study of {many(math.prod(self.state.results.sizes.values()), 'fit')}"

    @property
    def model(self) -> list[Piece]:
        """The model that is best over all conditions."""
        best = self._best()
        return [] if best is None else [("best is ", ""), (_words(_model(best)), "again")]

    def number(self) -> Number | None:
        """Return the lowest mean of the measure, and the difference from the next model."""
        models = self._compared()
        if not models:
            return None
        scores, conditions = _scores(models[0]), len(models[0])
        where = _labels_text(_conditions(models[0][0])) if self._n_conditions > 1 else ""
        where = f", mean of {conditions} conditions" if conditions > 1 else where and f" at {where}"
        metric = self.state.results[self.state.values["metric"]]
        name = _hidden(metric.attrs.get("long_name", self.state.values["metric"]))
        error, words = float(scores.mean()), f"Its {name} is "
        return Number(error, words, where + self._difference(models), value=two_digits(error))

    def _difference(self, models: list[list[ChartPoint]]) -> str:
        """Return the paired difference of the next model in the same conditions in words."""
        best, places_of = models[0], [str(_conditions(point)) for point in models[0]]
        others = [each for each in models[1:] if [str(_conditions(p)) for p in each] == places_of]
        if not others:
            return ""
        other, labels = others[0][0], _model(best[0])
        changed = {k: label for k, label in _model(other).items() if label != labels.get(k)}
        by_seed = (_scores(others[0]) - _scores(best)).mean(axis=0)
        more = float(by_seed.mean())
        places = max(0, 1 - math.floor(math.log10(more))) if more > 0 else 2
        text = f"; {_words(changed)} is {more:.{places}f} worse"
        if by_seed.size < 2:
            return f"{text}, with one seed"
        error = float(by_seed.std(ddof=1) / np.sqrt(by_seed.size))
        clear = more > stats.t.ppf(CLEARLY, by_seed.size - 1) * error
        text += f"{',' if clear else ', not'} clearly"
        return f"{text} (paired, SE {error:.{places}f}, {by_seed.size} seeds)"

    @property
    def _n_conditions(self) -> int:
        """Number of the conditions that the chart tells apart."""
        return len({_labels_text(_conditions(point)) for point in self.points})

    def _compared(self) -> list[list[ChartPoint]]:
        """Return the points of each model that has most conditions, the lowest mean first."""
        by_model: dict[str, list[ChartPoint]] = {}
        for point in self.points:
            by_model.setdefault(str(_model(point)), []).append(point)
        most = max(map(len, by_model.values()), default=0)
        complete = [points for points in by_model.values() if len(points) == most]
        return sorted(complete, key=lambda points: float(_scores(points).mean()))

    def _best(self) -> ChartPoint | None:
        """Return the point of the best model where its conditions are hardest."""
        models = self._compared()
        return max(models[0], key=lambda point: point.mean) if models else None

    def parts(self, history: History) -> dict[str, Any]:
        """Return the chart, the details of the chosen point, and its curves."""
        chosen, values = self.state.selected, self.state.values
        wrong = {"color", "panel"} & set(self.state.problems())
        if self._shown is None or not wrong:  # meanwhile, the chart before it stays
            layout = (values[name] for name in ("metric", "x", "color", "panel"))
            self._shown = self._drawn(self._chart, *layout)
        labels = None if chosen is None else chosen.labels
        about = self._ranking() if chosen is None else self._about(chosen)
        return {
            "dots": {"study": self._shown},
            "facts": {
                "point": next((k for k, p in enumerate(self.points) if p.labels == labels), None)
            },
            "tables": [about],
            "curves": curves_chart({"relative_error": "seen"}, self.state.fit.recording),
        }

    def _choose(self, message: Mapping[str, Any]) -> None:
        """Choose a point, or no point by a second click on it."""
        point, chosen = self.points[message["id"]], self.state.selected
        is_chosen = chosen is not None and point.labels == chosen.labels
        self.state.choose(None if is_chosen else point)

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
            _hidden(results[metric].attrs.get("long_name", metric)),
            _panels(points, joined, values["panel"]),
            color="" if values["color"] == NO_DIMENSION else label_text(values["color"]),
            ticks=ticks,
            joined=joined,
        )

    def _ranking(self) -> dict[str, Any]:
        """Return the table of the points, the best of each condition first."""
        points = sorted(self.points, key=lambda each: (_labels_text(_conditions(each)), each.mean))
        dims = list(dict.fromkeys(dim for point in points for dim in point.labels))
        rows = [
            [label_text(point.labels.get(dim, "")) for dim in dims]
            + [f"{point.mean:.4g}", f"{point.spread:.2g}"]
            for point in points
        ]
        head = [*map(label_text, dims), _hidden(label_text(self.state.values["metric"])), "SD"]
        said = f"the best{' of each condition' if self._n_conditions > 1 else ''} first; "
        said += "a click on a point shows the fits behind it, and another one this list"
        return _shortened(head, rows, said, "points")

    def _about(self, point: ChartPoint) -> dict[str, Any]:
        """Return the table of the fits behind a point."""
        cells, metric = self.state.cells(point), self.state.values["metric"]
        dims = [str(dim) for dim in cells.dims if cells.sizes[dim] > 1]
        chosen = [str(name) for name in cells.data_vars if str(name).endswith(CHOSEN)]
        names = [n for n in dict.fromkeys([metric, *chosen, "n_iter", "seconds"]) if n in cells]
        frame = cells[names].to_dataframe().reset_index()
        labels, values = (frame[each].to_numpy().tolist() for each in (dims, names))
        rows = [
            [*map(label_text, a), *map(_value_text, b)] for a, b in zip(labels, values, strict=True)
        ]
        caption = f"{_labels_text(point.labels)}: {point.mean:.4g} (SD {point.spread:.2g})"
        head = [_hidden(name.replace("_", " ")) for name in [*dims, *names]]
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
    """Return the table of the details with its first rows; the caption has their number."""
    if len(rows) > MOST_CELLS:
        caption += f" (the first {MOST_CELLS} of {len(rows)} {what})"
    return table("details", head, rows[:MOST_CELLS], caption=caption)


def _scores(points: list[ChartPoint]) -> NDArray[np.floating]:
    """Return the errors (conditions, seeds) of points."""
    return np.concatenate([point.scores for point in points])


def _conditions(point: ChartPoint) -> dict[str, Any]:
    """Return the labels of a point that describe the data."""
    return {name: label for name, label in point.labels.items() if name in CONDITIONS}


def _model(point: ChartPoint) -> dict[str, Any]:
    """Return the labels of a point that describe the model."""
    return {name: label for name, label in point.labels.items() if name not in CONDITIONS}


def _words(labels: Mapping[str, Any]) -> str:
    """Return the labels of a model on one line; a word needs no name."""
    each = (x if isinstance(x, str) else f"{dim} {label_text(x)}" for dim, x in labels.items())
    return label_text(", ".join(each))


def _labels_text(labels: Mapping[str, Any]) -> str:
    """Return the labels of a point on one line."""
    return ", ".join(f"{label_text(name)} {label_text(value)}" for name, value in labels.items())


def _hidden(name: Any) -> str:
    """Return the name of a measure with the word that the explorers have."""
    return str(name).replace("held-out", "hidden").replace("held out", "hidden")


def _value_text(value: Any) -> str:
    """Return a result of a cell: a number with four digits, or a text."""
    return f"{value:.4g}" if isinstance(value, float | int) else str(value)

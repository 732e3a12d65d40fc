"""The study explorer: a chart with points to click, and the fits behind each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.result import serialization
from nmd_lab.result.summary import two_digits
from nmd_lab.studies import Study
from nmd_lab.studies.cell import POSTERIOR_SCORES
from nmd_lab.studies.grid import select
from nmd_lab.studies.summary import (
    CONFIDENCE,
    choices,
    label_text,
    labels_of,
    rank_test,
    ranked,
    trials,
    variable,
)

from .background import many
from .charts import chart, series, table
from .history import Field, FitState, History
from .view import View
from .words import Number, Piece, call

NO_DIMENSION = "none"  # option for a chart without colours or without panels


class ChartPoint(NamedTuple):
    """The best model at one position of the chart."""

    panel: str  # labels of panel and colour; empty without
    color: str
    place: float  # position along x
    labels: dict[str, Any]  # labels of the model, and of the conditions that the chart tells apart
    scores: NDArray[np.floating]  # errors of the model, for each condition and seed

    @property
    def mean(self) -> float:
        """Mean error over conditions and seeds."""
        return float(self.scores.mean())

    @property
    def spread(self) -> float:
        """Standard deviation of the error over seeds."""
        by_seed = self.scores.mean(axis=0)
        return float(by_seed.std(ddof=1)) if by_seed.size > 1 else 0.0


def chart_points(
    results: xr.Dataset, metric: str, x: str, color: str, panel: str
) -> list[ChartPoint]:
    """Return the points of a chart: at each position the model with the lowest mean error."""
    points = []
    shown = [dim for dim in dict.fromkeys((panel, color, x)) if dim != NO_DIMENSION]
    for at in np.ndindex(*(results.sizes[dim] for dim in shown)):
        here = results.isel({dim: [k] for dim, k in zip(shown, at, strict=True)})
        models = ranked(here, metric)
        if models.empty:
            continue
        conditions = [dim for dim in trials(here) if here.sizes[dim] == 1]
        labels = labels_of(here, models.index[0])
        labels |= {dim: here[dim].values.tolist()[0] for dim in conditions}
        texts = {dim: label_text(here[dim].values[0]) for dim in shown}
        place = here[x].values[0] if is_numeric(results, x) else at[shown.index(x)]
        scores = models.iloc[0].to_numpy().reshape(-1, here.sizes["seed"])
        names = texts.get(panel, ""), texts.get(color, "")
        points.append(ChartPoint(*names, float(place), labels, scores))
    return points


def measure_name(name: Any) -> str:
    """Return the name of a measure for a reader, with the word that the explorers have."""
    return label_text(name).replace("held-out", "hidden").replace("held out", "hidden")


def is_numeric(results: xr.Dataset, dim: str) -> bool:
    """Return whether the labels of a dimension are numbers."""
    return results[dim].dtype.kind in "iuf"


class StudyState(FitState):
    """The results of a study, and the layout of their chart."""

    def __init__(self, study: Study | xr.Dataset, **values: Any) -> None:
        self.input = study
        self.results = study.results if isinstance(study, Study) else study
        sizes = {str(dim): size for dim, size in self.results.sizes.items() if dim != "seed"}
        if not sizes:
            raise ValueError("results has no dimension but the seed: give a study that varies one.")
        columns = self.results.data_vars.items()
        metrics = [str(name) for name, column in columns if column.dtype.kind in "iuf"]
        named = {name: measure_name(name) for name in metrics}
        self.fields = [
            Field("metric", "Measure", "choice", metrics, "data", option_labels=named),
            Field("x", "Along x", "choice", [*sizes], "data"),
            Field("color", "Colour", "choice", [NO_DIMENSION, *sizes], "data"),
            Field("panel", "Panels", "choice", [NO_DIMENSION, *sizes], "data"),
        ]
        self.selected: ChartPoint | None = None
        x = max(sizes, key=lambda dim: (dim == "rank", is_numeric(self.results, dim), sizes[dim]))
        varied = [dim for dim in sizes if dim != x and sizes[dim] > 1]
        color = next(iter(varied), NO_DIMENSION)
        conditions = (dim for dim in trials(self.results) if dim in varied and dim != color)
        first = {"metric": variable(self.results, None), "x": x, "color": color}
        first["panel"] = next(conditions, NO_DIMENSION)
        super().__init__(first, values)

    def unused(self) -> list[str]:
        """Return the names of the settings that have no effect now."""
        return ["x", "color", "panel"] if len(self.results.sizes) <= 2 else []

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each checked setting that raises an error if it is wrong."""
        values = self.values

        def check_unused(name: str) -> None:
            others = {values["x"]} if name == "color" else {values["x"], values["color"]}
            if values[name] != NO_DIMENSION and values[name] in others:
                raise ValueError(f"{values[name]} is shown already: choose another, or none.")

        return super().checks() | {name: partial(check_unused, name) for name in ("color", "panel")}

    def points(self) -> list[ChartPoint]:
        """Return the points of the chart, see `chart_points`."""
        x, color, panel = (self.values[name] for name in ("x", "color", "panel"))
        return chart_points(self.results, self.values["metric"], x, color, panel)

    @property
    def averaged(self) -> list[str]:
        """The conditions and the seed over which a point is a mean."""
        shown, sizes = {self.values[name] for name in ("x", "color", "panel")}, self.results.sizes
        return [
            dim for dim in (*trials(self.results), "seed") if dim not in shown and sizes[dim] > 1
        ]

    def cells(self, point: ChartPoint) -> xr.Dataset:
        """Return the results of the cells that a point stands for."""
        dims = self.results.dims
        return select(self.results, {dim: v for dim, v in point.labels.items() if dim in dims})

    def set(self, name: str, value: Any) -> None:
        """Change a setting; another measure gives the chosen point other scores."""
        super().set(name, value)
        if name == "metric" and self.selected is not None:
            scores = self.cells(self.selected)[value].transpose(..., "seed").values
            self.selected = self.selected._replace(scores=scores.reshape(-1, scores.shape[-1]))

    def lines(self, source: str | None) -> str:
        """Return the lines that print the models with differences, or the mean of the point."""
        metric, is_error = self.values["metric"], self.values["metric"] not in POSTERIOR_SCORES
        lines = (
            f"results = {source or '...'}{'.results' if isinstance(self.input, Study) else ''}\n"
        )
        errors, means = f'results["{metric}"]', [*trials(self.results), "seed"]
        point = ""
        if self.selected is not None:
            at = {d: v for d, v in self.selected.labels.items() if d in self.results.dims}
            point = f"{lines}print({call(f'{errors}.sel', f'{at!r}')}.mean().item())\n"
        if isinstance(self.input, Study) and choices(self.results) and is_error:
            return f'print({source or "..."}.rank_test("{metric}").head(24).to_string())\n{point}'
        if point:
            return point
        mean = call(f"{errors}.mean", f"{means!r}", skipna=False)
        ranked = ".to_series().dropna().sort_values().head(24)" if choices(self.results) else ""
        return f"{lines}print({mean}{ranked})\n"


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

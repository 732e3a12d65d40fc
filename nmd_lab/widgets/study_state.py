"""State of the study explorer: the points of a chart, and the fit behind one of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.progress import Interruption
from nmd_lab.fit import complete
from nmd_lab.studies import Study
from nmd_lab.studies.grid import ALGORITHM, select
from nmd_lab.studies.plots import label_text
from nmd_lab.studies.summary import about, labels_of, ranked, trials, variable

from .code import PRINT_ERROR, call, expression, stopping_arguments
from .live_fit import Keep
from .model_state import ITERATIONS
from .settings import Field, FitState, choice_for, chosen_arguments, is_open, prepared

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


def is_numeric(results: xr.Dataset, dim: str) -> bool:
    """Return whether the labels of a dimension are numbers."""
    return results[dim].dtype.kind in "iuf"


class StudyState(FitState):
    """The results of a study, the layout of their chart, and a repeated fit."""

    fields = (
        Field("metric", "Measure", "choice", group="data"),
        Field("x", "Along x", "choice", group="data"),
        Field("color", "Colour", "choice", group="data"),
        Field("panel", "Panels", "choice", group="data"),
        ITERATIONS,
    )

    def __init__(self, study: Study | xr.Dataset, **values: Any) -> None:
        self.study = study if isinstance(study, Study) else None
        self.results = study.results if isinstance(study, Study) else study
        sizes = {str(dim): size for dim, size in self.results.sizes.items() if dim != "seed"}
        if not sizes:
            raise ValueError("results has no dimension but the seed: give a study that varies one.")
        columns = self.results.data_vars.items()
        metrics = [str(name) for name, column in columns if column.dtype.kind in "iuf"]
        self.options = {"metric": metrics, "x": [*sizes]}
        self.options |= {name: [NO_DIMENSION, *sizes] for name in ("color", "panel")}
        self.selected: ChartPoint | None = None
        self.fitted_point: ChartPoint | None = None  # whose fit is repeated
        self._chosen: dict[str, Any] = {}
        x = max(sizes, key=lambda dim: (dim == "rank", is_numeric(self.results, dim), sizes[dim]))
        varied = [dim for dim in sizes if dim != x and sizes[dim] > 1]
        color = next(iter(varied), NO_DIMENSION)
        conditions = (dim for dim in trials(self.results) if dim in varied and dim != color)
        first = {"metric": variable(self.results, None), "x": x, "color": color}
        first["panel"] = next(conditions, NO_DIMENSION)
        iterations = int(about(self.results)["constants"].get("max_iter", 500))
        super().__init__(first | {"iterations": iterations}, values)

    def unused(self) -> list[str]:
        """Return the names of the settings that have no effect now."""
        layout = ["x", "color", "panel"] if len(self.options["x"]) == 1 else []
        return [*layout, "iterations"] if self.why_not() else layout

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

    def labels(self, point: ChartPoint) -> dict[str, Any]:
        """Return the labels of the first cell of a point."""
        cells = self.cells(point)
        firsts = {str(dim): cells[dim].values[0] for dim in cells.dims}
        return {dim: x.item() if isinstance(x, np.generic) else x for dim, x in firsts.items()}

    def why_not(self) -> str | None:
        """Return why the fit of the chosen point cannot be repeated, or None if it can."""
        if self.study is None:
            return "results hold no data: give the Study itself to repeat a fit"
        if self.selected is None:
            return "click a point first"
        labels = self.labels(self.selected)
        method = self.study.cell(**labels).method
        if method is not complete:
            return f"{labels.get(ALGORITHM, method.__name__)} has no iterations to follow"
        return None

    @property
    def changed(self) -> bool:
        """Whether the chosen point is not the one whose fit is repeated."""
        if self.fitted_point is None or self.selected is None:
            return self.fitted_point is not self.selected
        return self.fitted_point.labels != self.selected.labels

    def choose(self, point: ChartPoint | None) -> None:
        """Choose a point, and set the iterations to those of its fit."""
        self.selected = point
        if point is not None and self.study is not None:
            arguments = self.study.cell(**self.labels(point)).arguments
            self.values["iterations"] = int(arguments.get("max_iter", 500))

    def start(self, *, looks: bool = False) -> None:
        """Repeat the fit of the chosen point with its first seed."""
        why = self.why_not()
        if why is not None or self.study is None or self.selected is None:
            raise ValueError(f"this fit cannot be repeated: {why}.")
        self.fitted_point = self.selected
        cell = self.study.cell(**self.labels(self.selected))
        chosen = self._chosen = {}

        def choose(asked: Interruption) -> Keep:
            choice = choice_for(cell.X, cell.arguments, asked=asked)
            return partial(chosen.update, chosen_arguments(cell.arguments, choice))

        self.fit.start(
            lambda: prepared(cell.X, cell.arguments | chosen),
            self.values["iterations"],
            choose=choose if is_open(cell.arguments) else None,
        )

    def code(self, name: str | None = None) -> str:
        """Return a notebook cell that repeats the fit, or that draws the chart if there is none."""
        study = name or "study"
        if self.fitted_point is not None and self.fit.result is not None:
            cell = call(f"{study}.cell", **self.labels(self.fitted_point))
            other = self._chosen | stopping_arguments(self.fit.result, "auto", validated=False)
            items = [f'"{option}": {expression(value)}' for option, value in other.items()]
            fit = call("nmd.complete", "cell.X", f"**cell.arguments | {{{', '.join(items)}}}")
            return f"import nmd_lab as nmd\n\ncell = {cell}\nfit = {fit}\n{PRINT_ERROR}"
        results = name or "results" if self.study is None else f"{study}.results"
        shown = {option: self.values[option] for option in ("metric", "color")}
        options = {option: value for option, value in shown.items() if value != NO_DIMENSION}
        chart = call("StudyPlots(results).error", f'"{self.values["x"]}"', **options)
        lines = (
            f"import nmd_lab as nmd\n{self.imports}from nmd_lab.studies.plots import StudyPlots\n\n"
        )
        lines += f"results = {results}\n{chart}\n"
        if self.selected is None:
            return lines
        chosen = call("results.sel", repr(self.labels(self.selected)))
        return f'{lines}print({chosen}["{self.values["metric"]}"].item())\n'

"""State of the study explorer: the points of a chart, and the fit behind one of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._interruption import Interruption
from nmd_lab.fit import complete
from nmd_lab.result import netcdf
from nmd_lab.studies import Study
from nmd_lab.studies.grid import ALGORITHM, select
from nmd_lab.studies.summary import about, labels_of, ranked, trials, variable

from .choice import Keep, choice_for, chosen_arguments, is_open, prepared
from .code import PRINT_ERROR, call, expression, stopping_arguments
from .fields import Field, FitState
from .model import ITERATIONS

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
    for panel_label, in_panel in _split(results, panel):
        for color_label, in_color in _split(in_panel, color):
            for index, label in enumerate(in_color[x].values):
                here = in_color.isel({x: [index]})
                models = ranked(here, metric)
                if models.empty:
                    continue
                scores = models.iloc[0].to_numpy().reshape(-1, here.sizes["seed"])
                labels = labels_of(here, models.index[0]) | {
                    dim: here[dim].values.tolist()[0]
                    for dim in trials(here)
                    if results.sizes[dim] == 1 or dim in (x, color, panel)
                }
                place = float(label) if is_numeric(results, x) else float(index)
                points.append(ChartPoint(panel_label, color_label, place, labels, scores))
    return points


def _split(results: xr.Dataset, dim: str) -> Iterator[tuple[str, xr.Dataset]]:
    """Yield the results at each label of a dimension, or all of them without a dimension."""
    if dim == NO_DIMENSION:
        yield "", results
        return
    for index, label in enumerate(results[dim].values):
        yield label_text(label), results.isel({dim: [index]})


def is_numeric(results: xr.Dataset, dim: str) -> bool:
    """Return whether the labels of a dimension are numbers."""
    return results[dim].dtype.kind in "iuf"


def label_text(label: Any) -> str:
    """Return a label for the user: short numbers, and spaces instead of underscores."""
    return f"{label:g}" if isinstance(label, float) else str(label).replace("_", " ")


class StudyState(FitState):
    """The results of a study, the layout of their chart, and a repeated fit."""

    fields = (
        Field("metric", "Measure", "choice", group="Picture"),
        Field("x", "Along x", "choice", group="Picture"),
        Field("color", "Colour", "choice", group="Picture"),
        Field("panel", "Panels", "choice", group="Picture"),
        ITERATIONS._replace(group="The fit of a point"),
    )

    def __init__(self, study: Study | xr.Dataset | str | os.PathLike[str], **values: Any) -> None:
        self.study, self.path = None, None
        if isinstance(study, Study):
            self.study, self.results = study, study.results
        elif isinstance(study, xr.Dataset):
            self.results = study
        else:
            self.path, self.results = Path(study), netcdf.read(study)
        constants = about(self.results)["constants"]
        dims = [str(dim) for dim in self.results.dims if dim != "seed"]
        if not dims:
            raise ValueError("results has no dimension but the seed: give a study that varies one.")
        columns = self.results.data_vars.items()
        metrics = [str(name) for name, column in columns if column.dtype.kind in "iuf"]
        self.options = {"metric": metrics, "x": dims}
        self.options |= {name: [NO_DIMENSION, *dims] for name in ("color", "panel")}
        self.selected: ChartPoint | None = None
        self.fitted_point: ChartPoint | None = None  # whose fit is repeated
        self._chosen: dict[str, Any] = {}
        first = {"metric": variable(self.results, None), **self._first_layout(dims)}
        super().__init__(first | {"iterations": int(constants.get("max_iter", 500))}, values)

    def _first_layout(self, dims: list[str]) -> dict[str, str]:
        """Return the dimensions along x and of the colours with which the chart starts."""
        results = self.results
        x = max(dims, key=lambda dim: (dim == "rank", is_numeric(results, dim), self._size(dim)))
        varied = [dim for dim in dims if dim != x and self._size(dim) > 1]
        color = next(iter(varied), NO_DIMENSION)
        conditions = (dim for dim in trials(self.results) if dim in varied and dim != color)
        return {"x": x, "color": color, "panel": next(conditions, NO_DIMENSION)}

    def _size(self, dim: str) -> int:
        """Return the number of labels of a dimension."""
        return int(self.results.sizes[dim])

    def reasons(self) -> dict[str, str]:
        """Return why settings have no effect now, by the name of each such setting."""
        why, layout = self.why_not(), dict[str, str]()
        if len(self.options["x"]) == 1:
            layout = dict.fromkeys(("x", "color", "panel"), "the study varies nothing else")
        return layout if why is None else layout | {"iterations": why}

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each checked setting that raises an error if it is wrong."""
        values = self.values

        def check_unused(name: str) -> None:
            others = {values["x"]} if name == "color" else {values["x"], values["color"]}
            if values[name] != NO_DIMENSION and values[name] in others:
                raise ValueError(f"{values[name]} is shown already: choose another, or none.")

        return super().checks() | {
            "color": lambda: check_unused("color"),
            "panel": lambda: check_unused("panel"),
        }

    def points(self) -> list[ChartPoint]:
        """Return the points of the chart, see `chart_points`."""
        x, color, panel = (self.values[name] for name in ("x", "color", "panel"))
        return chart_points(self.results, self.values["metric"], x, color, panel)

    @property
    def averaged(self) -> list[str]:
        """The conditions and the seed over which a point is a mean."""
        shown = {self.values[name] for name in ("x", "color", "panel")}
        dims = [*trials(self.results), "seed"]
        return [dim for dim in dims if dim not in shown and self._size(dim) > 1]

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

    def reset(self) -> None:
        """Forget the fit."""
        self.fitted_point = None
        super().reset()

    def code(self, name: str | None = None) -> str:
        """Return a notebook cell that repeats the fit, or that draws the chart if there is none."""
        lines, values = "import nmd_lab as nmd\n", self.values
        if self.fitted_point is not None and self.fit.result is not None:
            cell = call(f"{name or 'study'}.cell", **self.labels(self.fitted_point))
            other = self._chosen | stopping_arguments(self.fit.result, "auto", validated=False)
            items = [f'"{option}": {expression(value)}' for option, value in other.items()]
            fit = call("nmd.complete", "cell.X", f"**cell.arguments | {{{', '.join(items)}}}")
            return f"{lines}\ncell = {cell}\nfit = {fit}\n{PRINT_ERROR}"
        results = name or "results"
        if self.path is not None:
            lines += "from nmd_lab.result import netcdf\n"
            results = call("netcdf.read", f'"{self.path.as_posix()}"')
        elif self.study is not None:
            results = f"{name or 'study'}.results"
        color = {} if values["color"] == NO_DIMENSION else {"color": values["color"]}
        options = {"metric": values["metric"], **color}
        chart = call("StudyPlots(results).error", f'"{values["x"]}"', **options)
        lines += f"from nmd_lab.studies.plots import StudyPlots\n\nresults = {results}\n{chart}\n"
        if self.selected is None:
            return lines
        chosen = call("results.sel", repr(self.labels(self.selected)))
        return f'{lines}print({chosen}["{values["metric"]}"].item())\n'

"""State of the study explorer: the points of a chart, and the fits behind one of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.studies import Study
from nmd_lab.studies.cell import POSTERIOR_SCORES
from nmd_lab.studies.grid import select
from nmd_lab.studies.plots import label_text
from nmd_lab.studies.summary import choices, labels_of, ranked, trials, variable

from .code import call
from .settings import Field, FitState

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

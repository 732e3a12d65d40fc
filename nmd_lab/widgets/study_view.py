"""The study explorer: points to click, what is behind each, and its fit once more, live."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import numpy as np
import xarray as xr

from nmd_lab.result import netcdf

from ._charts import Curves, Dots, Panel, dots
from ._controls import button
from .code import name_of
from .explorer import Explorer
from .study_state import NONE, Point, StudyState, words

if TYPE_CHECKING:
    from nmd_lab.studies import Study

LISTED = 12
"""Cells of a point that are listed at most."""


class StudyExplorer(Explorer):
    """Look at a study from any side, and at the fit behind each point.

    Parameters
    ----------
    study : Study, Dataset or path-like
        A study that was run, its results, or their file.  With the Study itself the fit of a
        point can be repeated.
    **settings
        Where the controls begin: metric, x, color, panel.

    Attributes
    ----------
    result : Decomposition, Dataset or None
        The repeated fit, or else the cells of the point that was clicked.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> study = nmd.Study(nmd.datasets.digits(40), rank=[1, 2, 3], n_splits=2, max_iter=10)
    >>> _ = study.run(progress=False)
    >>> explorer = nmd.widgets.StudyExplorer(study)
    >>> explorer.start()
    >>> explorer.join(60), explorer.result.n_iter
    (True, 10)
    """

    def __init__(self, study: Study | xr.Dataset | str | os.PathLike[str], **settings: Any) -> None:
        self._given = study
        self._picture: Any = None
        self._points: list[Point] = []
        self._drawn = -1
        super().__init__(StudyState(study, **settings), "study-fit.nc")

    @property
    def state(self) -> StudyState:
        """What the explorer knows."""
        state: StudyState = self._state
        return state

    @property
    def result(self) -> Any:
        """The repeated fit, or the cells of the point that was clicked, or None."""
        if self.fit.result is not None:
            return self.fit.result
        chosen = self.state.selected
        return None if chosen is None else self.state.cells(chosen)

    def body(self) -> Sequence[Any]:
        """Return the picture with its points, what is known of one, and its fit."""
        self.chart = widgets.Image().add_class("nmd-chart").add_class("nmd-plot")
        self._buttons = widgets.Box().add_class("nmd-points")
        self._details = widgets.HTML().add_class("nmd-table").add_class("nmd-details")
        self.curves = widgets.Image().add_class("nmd-chart").add_class("nmd-curves")
        self._curves = Curves(
            [
                Panel("relative error", {"relative_error": "observed"}),
                Panel("residuals", {"primal_residual": "‖T − WH‖", "dual_residual": "dual"}),
            ]
        )
        return (
            widgets.Box([self.chart, self._buttons]).add_class("nmd-clickable"),
            self._details,
            self.curves,
        )

    def code(self) -> str:
        """Return a cell that repeats the fit, or draws the picture."""
        return self.state.code(name_of(self._given))

    def cannot_run(self) -> str:
        """Return why the fit of the point cannot be repeated, or an empty word."""
        return self.state.why_not() or super().cannot_run()

    def start(self) -> None:
        """Repeat the fit of the point that was clicked, or else of the lowest one."""
        if self.state.selected is None and self._points:
            self._choose(min(self._points, key=lambda point: point.mean))
        super().start()

    def write(self, path: Path) -> None:
        """Write the repeated fit, or the cells of the point."""
        if isinstance(self.result, xr.Dataset):
            netcdf.write(self.result, path)
        else:
            self.result.save(path)

    def draw(self) -> None:
        """Show the picture, the chosen point and its fit."""
        values = self.state.values
        key = tuple(values[name] for name in ("metric", "x", "color", "panel"))
        if key != self._picture and not {"color", "panel"} & set(self.model.problems()):
            self._picture = key
            self._draw_points()
        chosen = self.state.selected
        for point, each in zip(self._points, self._buttons.children, strict=True):
            selected = chosen is not None and point.labels == chosen.labels
            (each.add_class if selected else each.remove_class)("nmd-selected")
        self._details.value = (
            "click a point to see the fits behind it" if chosen is None else self._about(chosen)
        )
        numbers = self.fit.curves
        count = len(numbers.get("iteration", ()))
        self.curves.layout.display = None if count else "none"
        if count and count != self._drawn:
            self.curves.value = self._curves.draw(
                {name: (numbers["iteration"], each) for name, each in numbers.items()}
            )
        self._drawn = count

    def _draw_points(self) -> None:
        state, values = self.state, self.state.values
        results, x, metric = state.results, values["x"], values["metric"]
        self._points = state.points()
        joined = results[x].dtype.kind in "iuf"
        labels = results[x].values
        ticks = [
            (float(label) if joined else float(k), words(label)) for k, label in enumerate(labels)
        ]
        panels: dict[str, list[Dots]] = {}
        order: list[Point] = []
        for panel in dict.fromkeys(point.panel for point in self._points):
            colors = list(dict.fromkeys(p.color for p in self._points if p.panel == panel))
            for k, color in enumerate(colors):
                line = [p for p in self._points if (p.panel, p.color) == (panel, color)]
                shift = 0.0 if joined else 0.1 * (k - (len(colors) - 1) / 2)
                order += line
                panels.setdefault(panel, []).append(
                    Dots(
                        color,
                        [p.place + shift for p in line],
                        [p.mean for p in line],
                        [p.spread for p in line],
                    )
                )
        self._points = order
        if not panels:
            raise ValueError(f"{metric} is NaN everywhere: choose another measure.")
        name = str(results[metric].attrs.get("long_name", metric))
        titles = {p: p and f"{values['panel'].replace('_', ' ')} {p}" for p in panels}
        color = "" if values["color"] == NONE else values["color"].replace("_", " ")
        self.chart.value, places = dots(
            {titles[p]: lines for p, lines in panels.items()},
            x=x.replace("_", " "),
            y=name,
            color=color,
            ticks=ticks,
            joined=joined,
        )
        self._buttons.children = tuple(
            self._button(point, *places[titles[panel], line.label][k])
            for (panel, lines) in panels.items()
            for line in lines
            for k, point in enumerate(p for p in order if (p.panel, p.color) == (panel, line.label))
        )

    def _button(self, point: Point, left: float, top: float) -> Any:
        """Return the button over a point."""
        made = button("", "point", self._guarded(partial(self._choose, point)))
        made.tooltip = f"{_described(point.labels)}: {point.mean:.4g}"
        made.layout.left, made.layout.top = f"{left:.2f}%", f"{top:.2f}%"
        return made

    def _choose(self, point: Point) -> None:
        self.state.choose(point)
        self.controls["iterations"].input.value = self.state.values["iterations"]
        self._settings_changed()

    def _about(self, point: Point) -> str:
        """Return what is known of a point and its cells."""
        cells = self.state.cells(point)
        metric = self.state.values["metric"]
        extra = [str(dim) for dim in cells.dims if cells.sizes[dim] > 1]
        shown = [name for name in (metric, "n_iter", "seconds", "stop_reason") if name in cells]
        head = "".join(
            f"<th>{escape(name.replace('_', ' '))}</th>" for name in dict.fromkeys([*extra, *shown])
        )
        rows = ""
        stacked = list(np.ndindex(*(cells.sizes[dim] for dim in extra)))
        for index in stacked[:LISTED]:
            cell = cells.isel(dict(zip(extra, index, strict=True))).squeeze()
            numbers = [words(cell[dim].values.item()) for dim in extra]
            numbers += [_word(cell[name].values.item()) for name in dict.fromkeys(shown)]
            rows += "<tr>" + "".join(f"<td>{escape(number)}</td>" for number in numbers) + "</tr>"
        more = f"<div>and {len(stacked) - LISTED} more</div>" if len(stacked) > LISTED else ""
        title = f"{_described(point.labels)}: <b>{point.mean:.4g}</b> ± {point.spread:.2g}"
        return (
            f"<div>{title}</div><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table>{more}"
        )


def _described(labels: dict[str, Any]) -> str:
    return escape(", ".join(f"{n.replace('_', ' ')} {words(v)}" for n, v in labels.items()))


def _word(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | int) else str(value)

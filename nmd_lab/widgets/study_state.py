"""What the study explorer knows: the points of a picture of a study, and the fit behind one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.fit import complete
from nmd_lab.result import netcdf
from nmd_lab.solver.prepare import Prepared, prepare
from nmd_lab.studies import Study
from nmd_lab.studies.summary import about, candidates, trials, variable

from .code import PRINT, call, ending
from .fields import Field, SettingsState, check_option
from .live_fit import LiveFit

NONE = "none"
WORDS = ("status", "stop_reason", "warnings", "fit")


class Point(NamedTuple):
    """The best model at one place of the picture.

    Attributes
    ----------
    panel, color : str
        In which panel and colour it is; empty without one.
    place : float
        Where along x.
    labels : dict
        The model, and the conditions that the picture tells apart.
    scores : ndarray (conditions, seeds)
        Its errors.
    """

    panel: str
    color: str
    place: float
    labels: dict[str, Any]
    scores: NDArray[np.floating]

    @property
    def mean(self) -> float:
        """Mean over conditions and seeds."""
        return float(self.scores.mean())

    @property
    def spread(self) -> float:
        """Standard deviation over seeds."""
        by_seed = self.scores.mean(axis=0)
        return float(by_seed.std(ddof=1)) if by_seed.size > 1 else 0.0


class StudyState(SettingsState):
    """A study's results, how they are laid out, and a fit of one of its cells.

    Parameters
    ----------
    study : Study, Dataset or path-like
        A study that was run, its results, or their file.  Fits can be repeated with the first.
    **values
        Settings to begin with, see `fields`.

    Raises
    ------
    ValueError, FileNotFoundError
        If it is none of these, or was not run yet.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> study = nmd.Study(nmd.datasets.digits(40), rank=[1, 2, 3], n_splits=2, max_iter=10)
    >>> _ = study.run(progress=False)
    >>> [point.labels["rank"] for point in StudyState(study).points()]
    [1, 2, 3]
    """

    fields = (
        Field("metric", "Measure", "choice", group="Picture"),
        Field("x", "Along x", "choice", group="Picture"),
        Field("color", "Colour", "choice", group="Picture"),
        Field("panel", "Panels", "choice", group="Picture"),
        Field("iterations", "Iterations", "integer", (), "The fit of a point",
              "Of a run, and of a Continue"),
    )  # fmt: skip

    def __init__(self, study: Study | xr.Dataset | str | os.PathLike[str], **values: Any) -> None:
        self.study = study if isinstance(study, Study) else None
        self.path = Path(study) if isinstance(study, str | os.PathLike) else None
        if isinstance(study, Study):
            self.results = study.results
        else:
            self.results = study if isinstance(study, xr.Dataset) else netcdf.read(study)
        self.about = about(self.results)
        dims = [str(dim) for dim in self.results.dims if dim != "seed"]
        if not dims:
            raise ValueError("results has no dimension but the seed: give a study that varies one.")
        longest = max(dims, key=lambda dim: (dim == "rank", self._numeric(dim), self._size(dim)))
        others = [dim for dim in dims if dim != longest]
        color = next((dim for dim in others if self._size(dim) > 1), NONE)
        metrics = [str(name) for name in self.results.data_vars if name not in WORDS]
        self.options = {"metric": metrics, "x": dims}
        self.options |= {name: [NONE, *dims] for name in ("color", "panel")}
        constants = self.about["constants"]
        super().__init__(
            {
                "metric": variable(self.results, None),
                "x": longest,
                "color": color,
                "panel": NONE,
                "iterations": int(constants.get("max_iter", 500)),
            }
        )
        for name, value in values.items():
            self.set(name, value)
        self.fit = LiveFit()
        self.selected: Point | None = None
        self.running: Point | None = None

    def _numeric(self, dim: str) -> bool:
        return self.results[dim].dtype.kind in "iuf"

    def _size(self, dim: str) -> int:
        return int(self.results.sizes[dim])

    def reasons(self) -> dict[str, str]:
        """Return for each setting that has no effect now why that is so."""
        idle = {}
        if len(self.options["x"]) == 1:
            idle = dict.fromkeys(("x", "color", "panel"), "the study varies nothing else")
        if (why := self.why_not()) is not None:
            idle["iterations"] = why
        return idle

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return for settings what raises an error if they are wrong."""
        values = self.values
        taken = {values["x"]}

        def free(name: str) -> None:
            other = taken if name == "color" else taken | {values["color"]}
            if values[name] != NONE and values[name] in other:
                raise ValueError(f"{values[name]} is shown already: choose another, or none.")

        return {
            "color": lambda: free("color"),
            "panel": lambda: free("panel"),
            "iterations": lambda: check_option("max_iter", values["iterations"]),
        }

    def points(self) -> list[Point]:
        """Return what the picture shows; models that it does not tell apart compete."""
        x, color, panel = (self.values[name] for name in ("x", "color", "panel"))
        found = []
        for panel_label, part in self._parts(self.results, panel):
            for color_label, line in self._parts(part, color):
                for index, label in enumerate(line[x].values):
                    here = line.isel({x: [index]})
                    models = [
                        model
                        for model in candidates(here, self.values["metric"])
                        if np.isfinite(model.scores).all()
                    ]
                    if not models:
                        continue
                    best = min(models, key=lambda model: model.mean)
                    fixed = {
                        d: here[d].values[0] for d in trials(here) if self._size(d) == 1 or
                        d in (x, color, panel)
                    }  # fmt: skip
                    labels = {n: _plain(v) for n, v in (best.labels | fixed).items()}
                    place = float(label) if self._numeric(x) else float(index)
                    found.append(Point(panel_label, color_label, place, labels, best.scores))
        return found

    def _parts(self, results: xr.Dataset, dim: str) -> list[tuple[str, xr.Dataset]]:
        if dim == NONE:
            return [("", results)]
        return [
            (words(label), results.isel({dim: [k]})) for k, label in enumerate(results[dim].values)
        ]

    def cells(self, point: Point) -> xr.Dataset:
        """Return the cells that a point stands for."""
        part = self.results
        for dim, label in point.labels.items():
            if dim in part.dims:
                there = part[dim].values.tolist()
                part = part.isel({dim: [there.index(label)]})
        return part

    def labels(self, point: Point) -> dict[str, Any]:
        """Return the labels of the first cell of a point."""
        cells = self.cells(point)
        return {str(dim): _plain(cells[dim].values[0]) for dim in cells.dims}

    def why_not(self) -> str | None:
        """Return why the fit of a point cannot be repeated, or None if it can."""
        if self.study is None:
            return "results hold no data: give the Study itself to repeat a fit"
        if self.selected is None:
            return "click a point first"
        method = self.study.cell(**self.labels(self.selected)).task.method
        if method.function is not complete:
            return f"{method.name} has no iterations to follow"
        return None

    @property
    def changed(self) -> bool:
        """Whether another point is chosen than the one that the fit is of."""
        if self.running is None or self.selected is None:
            return self.running is not self.selected
        return self.running.labels != self.selected.labels

    def choose(self, point: Point | None) -> None:
        """Select a point."""
        self.selected = point
        if point is not None and self.study is not None:
            arguments = self.study.cell(**self.labels(point)).arguments
            self.values["iterations"] = int(arguments.get("max_iter", 500))

    def start(self) -> None:
        """Repeat the fit of the point, with its first seed.

        Raises
        ------
        ValueError
            If that is not possible.
        """
        why = self.why_not()
        if why is not None or self.study is None or self.selected is None:
            raise ValueError(f"this fit cannot be repeated: {why}.")
        self.running = self.selected
        cell = self.study.cell(**self.labels(self.selected))

        def make() -> Prepared:
            named = {"nonlinearity": "identity", "loss": "frobenius", **cell.arguments}
            rank, f, loss = (named.pop(name) for name in ("rank", "nonlinearity", "loss"))
            return prepare(cell.X, rank, f, loss, absent_are_zeros=False, **named)

        self.fit.start(make, self.values["iterations"])

    def proceed(self) -> None:
        """Go on with the fit that is there."""
        self.fit.proceed(self.values["iterations"])

    def reset(self) -> None:
        """Forget the fit."""
        self.running = None
        self.fit.reset()

    def code(self, name: str | None = None) -> str:
        """Return a cell that repeats the fit of the point, or one that draws the picture.

        Parameters
        ----------
        name : str, optional
            How the notebook calls what the explorer was given.
        """
        lines = "import nmd_lab as nmd\n"
        if self.running is not None and self.fit.result is not None:
            cell = call(f"{name or 'study'}.cell", **self.labels(self.running))
            end = ", ".join(f'"{n}": {v}' for n, v in ending(self.fit.result, False).items())
            fit = f"fit = nmd.complete(cell.X, **cell.arguments | {{{end}}})\n"
            return f"{lines}\ncell = {cell}\n{fit}{PRINT}"
        results = name or "results"
        if self.path is not None:
            lines += "from nmd_lab.result import netcdf\n"
            results = call("netcdf.read", f'"{self.path.as_posix()}"')
        elif self.study is not None:
            results = f"{name or 'study'}.results"
        values = self.values
        color = {} if values["color"] == NONE else {"color": values["color"]}
        picture = call("error", "results", f'"{values["x"]}"', metric=values["metric"], **color)
        lines += f"from nmd_lab.studies.plots import error\n\nresults = {results}\n{picture}\n"
        if self.selected is None:
            return lines
        chosen = call("results.sel", repr(self.labels(self.selected)))
        return f'{lines}print({chosen}["{values["metric"]}"].item())\n'


def words(label: Any) -> str:
    """Return a label as the user reads it."""
    return f"{label:g}" if isinstance(label, float) else str(label).replace("_", " ")


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label

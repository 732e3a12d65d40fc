"""The explorer of a finished fit: reconstruction, history and components."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.pictures import Picture, picture_of
from nmd_lab.plots._canvas import color_limit
from nmd_lab.result import netcdf
from nmd_lab.result.decomposition import Decomposition

from ._curves import Panel
from ._gallery import ComponentGallery, typical_rows
from ._images import gray, mosaic, png, signed, stride, thin
from ._live_chart import RESIDUALS, LiveChart
from ._tables import Cell, html_table
from ._trials_chart import trials_chart
from .code import PRINT_ERROR, call
from .explorer import Explorer
from .fields import FitState

Rows = NDArray[np.intp]


class FittedState(FitState):
    """A finished fit, without the data that it was made of.

    Parameters
    ----------
    fit : Decomposition or path-like
        The fit, or the path of its file.
    shape : (int, int), optional
        Height and width of the picture that each row is; by default from the labels.

    Attributes
    ----------
    decomposition : Decomposition
        The fit.
    picture : Picture or None
        Layout of a row as a picture, if the rows are pictures.
    is_picture : bool
        Whether the whole matrix is one picture.

    Raises
    ------
    FileNotFoundError, ValueError
        If the file does not exist or holds no fit.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> state = FittedState(nmd.decompose(nmd.datasets.digits(30), 3, random_state=0, max_iter=9))
    >>> state.window(None).shape
    (9, 64)
    """

    def __init__(
        self,
        fit: Decomposition | str | os.PathLike[str],
        shape: tuple[int, int] | None = None,
    ) -> None:
        self.path = None if isinstance(fit, Decomposition) else Path(fit)
        if not isinstance(fit, Decomposition):
            fit = Decomposition.from_dataset(netcdf.read(fit))
        self.decomposition = fit
        self.options = {}
        super().__init__({"iterations": self.decomposition.n_iter})
        row = self.decomposition.H.isel(component=0, drop=True)
        self.picture: Picture | None = picture_of(row, shape)
        self.is_picture = self.decomposition.labels.dims == ("y", "x") and shape is None
        self.fit.show(self.decomposition)

    @property
    def held_out(self) -> dict[int, float]:
        """Validation errors by iteration; empty if nothing was held out."""
        history = self.decomposition.history
        if "validation_rmse" not in history:
            return {}
        errors = history.validation_rmse.values.tolist()
        return dict(zip(history.iteration.values.tolist(), errors, strict=True))

    @property
    def curves(self) -> dict[str, list[float]]:
        """The history of the fit, as `LiveFit.curves`."""
        history = self.decomposition.history
        return {str(name): history[name].values.tolist() for name in history.variables}

    def window(self, component: int | None, count: int = 9) -> NDArray[np.floating]:
        """Return the part of f(WH) that is shown; the whole matrix is never formed.

        Parameters
        ----------
        component : int or None
            Component whose typical rows are shown; None: evenly spaced rows.
        count : int, default 9
            Largest number of rows, if they are pictures or of a component.
        """
        fit = self.decomposition
        m, n = fit.shape
        columns = np.arange(n) if self.picture is not None else np.arange(0, n, stride(n))
        if self.is_picture or (component is None and self.picture is None):
            rows = np.arange(0, m, stride(m))
        elif component is None:
            rows = np.unique(np.linspace(0, m - 1, min(count, m)).astype(np.intp))
        else:
            rows = typical_rows(fit.factors[0], component, min(count, m))
        return fit.predict(rows[:, None], columns).reshape(rows.size, columns.size)

    def code(self, name: str | None = None) -> str:
        """Return a notebook cell that shows the same without an explorer.

        Parameters
        ----------
        name : str, optional
            Name of the fit in the notebook.
        """
        given = name or "..."
        if self.path is not None:
            given = call("nmd.load", f'"{self.path.as_posix()}"')
        reading = "" if given == "fit" else f"fit = {given}\n"
        plots = "fit.plot.convergence()\nfit.plot.components()\n"
        if self.decomposition._choice:
            plots += "fit.plot.selection()\n"
        return f"import nmd_lab as nmd\n\n{reading}{PRINT_ERROR}{plots}"


class FitExplorer(Explorer):
    """Look at a fit that was made or saved before: reconstruction, history and components.

    Parameters
    ----------
    fit : Decomposition or path-like
        The fit, or the path of the file that `Decomposition.save` wrote.
    shape : (int, int), optional
        Height and width of the picture that each row is; by default from the labels of the fit.

    Attributes
    ----------
    result : Decomposition
        The fit.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> fit = nmd.decompose(nmd.datasets.digits(50), 4, random_state=0, max_iter=20)
    >>> nmd.widgets.FitExplorer(fit).result is fit
    True
    """

    state: FittedState

    def __init__(
        self,
        fit: Decomposition | str | os.PathLike[str],
        shape: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(FittedState(fit, shape), "fit-copy.nc")
        self.tools.layout.display = self.sidebar.layout.display = "none"

    def cannot_run(self) -> str:
        """Return why nothing runs here."""
        return "a fit holds no data: give the data to make a new one"

    def body(self) -> Sequence[Any]:
        """Return facts, the reconstruction, the curves, the trials and the components."""
        self._facts = widgets.HTML().add_class("nmd-table")
        self.plot = widgets.Image().add_class("nmd-plot")
        title = widgets.HTML("reconstruction f(W H)")
        tile = widgets.VBox([title, self.plot]).add_class("nmd-tile")
        curves = self.state.curves
        panels = [Panel("relative error", {"relative_error": "observed"})]
        if self.state.held_out:
            held_out = {"held_out": "held out"}
            panels.insert(0, Panel("error of held-out entries (RMSE)", held_out, "held_out"))
        if {"primal_residual", "dual_residual"} <= set(curves):
            panels.append(RESIDUALS)
        self._curves = LiveChart(panels[:2])
        self.chart = self._curves.view
        self.trials = widgets.Image(value=trials_chart(self.state.decomposition))
        self.trials.add_class("nmd-chart").add_class("nmd-trials")
        self.trials.layout.display = None if self.trials.value else "none"
        self.gallery = ComponentGallery(f"nmd-{self.model_id}", self._guarded, self._refresh)
        return (
            self._facts,
            widgets.Box([tile]).add_class("nmd-panels"),
            self.chart,
            self._curves.caption,
            self.trials,
            self.gallery.title,
            self.gallery.box,
            self.gallery.backgrounds,
        )

    def code(self) -> str:
        """Return a notebook cell that shows the fit without an explorer."""
        given = None if self.state.path is not None else self.state.decomposition
        return self.state.code(self._data_name(given, "decomposition"))

    def draw(self) -> None:
        """Show the fit, and the rows of the chosen component."""
        state, fit = self.state, self.state.decomposition
        self._facts.value = html_table(
            ("", ""), [[Cell(name), Cell(text)] for name, text in _facts(fit)]
        )
        self._curves.show(state.curves, state.held_out)
        self.gallery.draw(fit.factors, state)
        window = state.window(self.gallery.selected)
        pictures = [window]
        if state.picture is not None:
            pictures = [thin(state.picture(row)) for row in window]
        low, high = float(np.nanmin(window)), float(np.nanmax(window))
        drawn = [
            gray(each, low, high) if low >= 0 else signed(each, color_limit(window))
            for each in pictures
        ]
        self.plot.value = png(mosaic(drawn, math.ceil(math.sqrt(len(drawn)))))


def _facts(fit: Decomposition) -> list[tuple[str, str]]:
    """Return what a fit is, in pairs of a name and a text."""
    m, n = fit.shape
    return [
        ("model", f"X ≈ {fit.nonlinearity!r}(W H), loss {fit.loss.name}, rank {fit.rank}"),
        ("size", f"{m} x {n}"),
        ("relative error", f"{fit.relative_error:.4g}"),
        ("iterations", f"{fit.n_iter} in {float(fit.history.seconds[-1]):.2f} s"),
        ("ended", str(fit.stop_reason)),
        *fit._choice.items(),
    ]

"""The decomposition explorer: images, curves, components and errors of a fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from nmd_lab.plots._canvas import color_limit
from nmd_lab.solver.admm import State

from ._controls import Debounced
from ._curves import Panel
from ._decomposition_data import MatrixData
from ._gallery import ComponentGallery, typical_rows
from ._images import gray, mosaic, png, signed
from ._live_chart import RESIDUALS, LiveChart
from ._tables import Cell, html_table, number_text
from .choosing_explorer import ChoosingExplorer
from .decomposition_state import DecompositionState

IMAGES = ("original", "seen", "reconstruction", "residual")
"""Images side by side, by their titles."""


class DecompositionExplorer(ChoosingExplorer):
    """Decompose a matrix: choose a model, watch the fit, and look at the result.

    Parameters
    ----------
    X : array_like, pandas.DataFrame or xarray.DataArray (m, n), optional
        Data; by default a data set of `nmd_lab.datasets`, which is chosen in the explorer.
    shape : (int, int), optional
        Height and width of the picture that each row is; by default from the labels of X.
    **settings
        Starting values of the controls: data, noise, level, missing, seed, nonlinearity, low,
        high, loss, rank, alpha, penalty, iterations.  Rank and alpha may be "auto": chosen by
        held-out entries at Run, which then shows them in the controls.

    Attributes
    ----------
    result : Decomposition or None
        Result of the iterations so far.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> explorer = nmd.widgets.DecompositionExplorer(nmd.datasets.digits(100), iterations=20)
    >>> explorer.start()
    >>> explorer.join(60), explorer.result.n_iter
    (True, 20)
    """

    state: DecompositionState

    def __init__(
        self, X: Any = None, shape: tuple[int, int] | None = None, **settings: Any
    ) -> None:
        self._drawn: Any = None
        super().__init__(DecompositionState(X, shape, **settings), "fit.nc")

    def body(self) -> Sequence[Any]:
        """Return images, slider, curves, components and the table of errors."""
        self._titles = {name: widgets.HTML(name) for name in IMAGES}
        self.plots = {name: widgets.Image().add_class("nmd-plot") for name in IMAGES}
        tiles = [
            widgets.VBox([self._titles[name], self.plots[name]]).add_class("nmd-tile")
            for name in IMAGES
        ]
        self.slider = widgets.SelectionSlider(
            options=[0], description="Iteration", disabled=True, style={"description_width": "62px"}
        ).add_class("nmd-slider")
        self.slider.observe(Debounced(self._refresh), "value")
        labels = {"relative_error": "observed", "held_out": "held out"}
        errors = Panel("relative error", labels, lowest="held_out")
        self._curves = LiveChart([errors, RESIDUALS], hide_empty=False)
        self.chart = self._curves.view
        self.gallery = ComponentGallery(f"nmd-{self.model_id}", self._guarded, self._refresh)
        self._table = widgets.HTML().add_class("nmd-table").add_class("nmd-errors")
        return (
            widgets.Box(tiles).add_class("nmd-panels"),
            self.slider,
            self.chart,
            self._curves.caption,
            self.gallery.title,
            self.gallery.box,
            self.gallery.backgrounds,
            self._table,
        )

    def code(self) -> str:
        """Return a notebook cell that repeats the fit."""
        return self.state.code(self._data_name(self.state.X, "X"))

    def draw(self) -> None:
        """Show the chosen iteration, or the data alone before there is one."""
        self._show_slider()
        state, data = self._shown_state(), self._shown_data()
        shown = (state, self.gallery.selected, id(data))
        if shown != self._drawn:
            self._drawn = shown
            if data is not None:
                self._draw_images(state, data)
            self.gallery.draw(None if state is None else (state.W, state.H), data)
        hidden = self.state.hidden
        self._curves.show(
            self.fit.curves, self.fit.held_out, "" if hidden is None else hidden.sample
        )
        self._show_errors()

    def _shown_data(self) -> MatrixData | None:
        """Return the data of the fit, or those of the settings unless they are wrong."""
        if self.fit.phase != "ready":
            return self.state.fitted_data
        wrong = {"data", "level", "missing", "seed"} & set(self.state.problems())
        return None if wrong else self.state.data

    def _shown_state(self) -> State | None:
        """Return the last iterate while the fit runs, and the one of the slider afterwards."""
        if self.fit.phase == "running" or self.fit.state is None:
            return self.fit.state
        iteration = self.slider.value
        return self.fit.snapshots[iteration] if iteration else self.fit.state

    def _show_slider(self) -> None:
        """Offer the iterations that are kept, once the fit has stopped."""
        iterations = self.fit.snapshots.iterations
        running = self.fit.phase == "running"
        self.slider.disabled = running or len(iterations) < 2
        self.slider.tooltip = (
            "while it runs, the last iteration is shown" if running
            else "there are no iterations yet" if not iterations else "Iteration that is shown"
        )  # fmt: skip
        options = tuple(iterations) or (0,)
        if not running and tuple(self.slider.options) != options:
            self.slider.options = options
            self.slider.index = len(options) - 1

    def _draw_images(self, state: State | None, data: MatrixData) -> None:
        """Draw the matrix, what the fit sees of it, its reconstruction and the residual."""
        rows = None
        component = self.gallery.selected
        if state is not None and component is not None and not data.is_picture:
            rows = typical_rows(state.W, component, data.default_rows().size)
        shown = data.window(rows)
        windows: dict[str, Any] = {
            "original": data.original[shown[0]][:, shown[1]],
            "seen": data.observed[shown[0]][:, shown[1]],
        }
        titles = {name: name for name in IMAGES}
        if state is not None:
            model = self.state.model(state, *shown)
            windows["reconstruction"] = model
            windows["residual"] = windows["original"] - model
            titles["residual"] += f", ±{color_limit(windows['residual']):.2g}"
        columns = math.ceil(math.sqrt(len(data.pictures(windows["original"]))))
        low, high = data.limits
        for name, window in windows.items():
            limit = color_limit(window) if name == "residual" else max(-low, high)
            in_gray = name != "residual" and low >= 0
            pictures = [
                gray(picture, low, high) if in_gray else signed(picture, limit)
                for picture in data.pictures(window)
            ]
            self.plots[name].value = png(mosaic(pictures, columns))
        for name in IMAGES:
            self._titles[name].value = titles[name]
            self.plots[name].layout.visibility = "visible" if name in windows else "hidden"

    def _show_errors(self) -> None:
        """Show the errors of the finished fit and of the SVD; the lower ones stand out."""
        errors = self.state.errors
        if not errors:
            self._table.value = ""
            return
        lowest = [min(column) for column in zip(*errors.values(), strict=True)]
        rank = self.state.fitted_settings["rank"]
        rows = []
        for name, numbers in errors.items():
            cells = [
                Cell(number_text(number, 4), "nmd-best" if number == best else None)
                for number, best in zip(numbers, lowest, strict=True)
            ]
            rows.append([Cell(f"{name}, rank {rank}"), *cells])
        head = ("relative error (Frobenius)", "observed", "held out")
        self._table.value = html_table(head, rows)

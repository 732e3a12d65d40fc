"""The decomposition explorer: images, curves, components and errors of a fit."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import ipywidgets as widgets
import numpy as np

from nmd_lab.solver.admm import State

from ._charts import Panel
from ._controls import Debounced, button, toggle_class
from ._decomposition_data import MatrixData
from ._images import color_limit, gray, mosaic, png, signed, thin
from ._live_chart import RESIDUALS, LiveChart
from ._tables import Cell, html_table, number_text
from .decomposition_state import DecompositionState
from .explorer import Explorer

IMAGES = ("original", "seen", "reconstruction", "residual")
"""Images side by side, by their titles."""


class DecompositionExplorer(Explorer):
    """Decompose a matrix: choose a model, watch the fit, and look at the result.

    Parameters
    ----------
    X : array_like, pandas.DataFrame or xarray.DataArray (m, n), optional
        Data; by default a data set of `nmd_lab.datasets`, which is chosen in the explorer.
    shape : (int, int), optional
        Height and width of the picture that each row is; by default from the labels of X.
    **settings
        Starting values of the controls: data, noise, level, missing, seed, nonlinearity, low,
        high, loss, rank, alpha, penalty, iterations.

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
        self._selected: int | None = None
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
        self.chart = self._curves.image.add_class("nmd-curves")
        self._gallery = widgets.Box().add_class("nmd-gallery")
        self._backgrounds = widgets.HTML(layout={"display": "none"})
        self._gallery_title = widgets.HTML()
        self._table = widgets.HTML().add_class("nmd-table").add_class("nmd-errors")
        self._own_class = f"nmd-{self.model_id}"
        self.add_class(self._own_class)
        return (
            widgets.Box(tiles).add_class("nmd-panels"),
            self.slider,
            self.chart,
            self._curves.caption,
            self._gallery_title,
            self._gallery,
            self._backgrounds,
            self._table,
        )

    def code(self) -> str:
        """Return a notebook cell that repeats the fit."""
        return self.state.code(self._data_name(self.state.X, "X"))

    def draw(self) -> None:
        """Show the chosen iteration, or the data alone before there is one."""
        self._show_slider()
        state, data = self._shown_state(), self._shown_data()
        shown = (state, self._selected, id(data))
        if shown != self._drawn:
            self._drawn = shown
            if data is not None:
                self._draw_images(state, data)
            self._draw_gallery(state, data)
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
        if state is not None and self._selected is not None and not data.is_picture:
            rows = self.state.typical_rows(self._selected)
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

    def _draw_gallery(self, state: State | None, data: MatrixData | None) -> None:
        """Draw the components, each as a button."""
        self._show_buttons_of_components(0 if state is None else state.H.shape[0])
        if state is None or data is None:
            self._backgrounds.value = self._gallery_title.value = ""
            return
        rules = [self._background(state, k, data) for k in range(len(self._gallery.children))]
        self._backgrounds.value = f"<style>{''.join(rules)}</style>"
        chosen = self._selected
        self._gallery_title.value = (
            "components (red adds, blue takes away); click one to see where there is most of it"
            if chosen is None
            else f"component {chosen}: above are the rows with most of it; click it again for all"
        )

    def _show_buttons_of_components(self, rank: int, most: int = 60) -> None:
        """Show a button for each of at most `most` components."""
        count = min(rank, most)
        if len(self._gallery.children) != count:
            self._selected = None
            self._gallery.children = tuple(
                button(str(k), "component", self._guarded(partial(self._choose, k))).add_class(
                    f"nmd-c{k}"
                )
                for k in range(count)
            )
        for k, each in enumerate(self._gallery.children):
            each.tooltip = f"Component {k}: show where there is most of it"
            toggle_class(each, "nmd-selected", k == self._selected)

    def _background(self, state: State, k: int, data: MatrixData, side: int = 62) -> str:
        """Return the style rule that shows a component on its button of `side` pixels."""
        picture = self._component(state, k, data)
        height = side
        if data.picture is not None or data.is_picture:
            height = round(side * min(picture.shape[0] / picture.shape[1], 1.6))
        image = png(signed(picture, float(np.nanmax(np.abs(picture)))))
        return (
            f".{self._own_class} .nmd-c{k}{{background-image:"
            f"url(data:image/png;base64,{base64.b64encode(image).decode()});height:{height}px}}"
        )

    def _component(self, state: State, k: int, data: MatrixData) -> Any:
        """Return the picture of a component."""
        if data.is_picture:
            return thin(np.outer(state.W[::4, k], state.H[k, ::4]))
        if data.picture is not None:
            return thin(np.nan_to_num(data.picture(state.H[k])))
        return thin(state.H[k][None, :])

    def _choose(self, component: int) -> None:
        """Select a component, or no component if it is selected already."""
        self._selected = None if component == self._selected else component
        self._refresh()

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

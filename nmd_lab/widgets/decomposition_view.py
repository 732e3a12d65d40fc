"""The decomposition explorer: what its state knows, as pictures, curves and a table."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import ipywidgets as widgets
import numpy as np

from nmd_lab.solver.admm import State

from ._charts import Curves, Panel
from ._controls import Debounced, button
from ._images import gray, largest, mosaic, png, signed, thin
from .code import name_of
from .decomposition_state import DecompositionState
from .explorer import Explorer

PANELS = ("original", "seen", "reconstruction", "residual")
GALLERY = 60
"""Components that are shown at most."""


class DecompositionExplorer(Explorer):
    """Decompose a matrix by hand: choose a model, watch it fit, look at what it found.

    Parameters
    ----------
    X : array_like, pandas.DataFrame or xarray.DataArray (m, n), optional
        The data; without it, one of `nmd_lab.datasets` is chosen in the explorer.
    shape : (int, int), optional
        Height and width of the picture that each row is; by default from the labels of X.
    **settings
        Where the controls begin: data, noise, level, missing, seed, nonlinearity, low, high,
        loss, rank, alpha, penalty, iterations.

    Attributes
    ----------
    result : Decomposition or None
        The fit as far as it has come.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> explorer = nmd.widgets.DecompositionExplorer(nmd.datasets.digits(100), iterations=20)
    >>> explorer.start()
    >>> explorer.join(60), explorer.result.n_iter
    (True, 20)
    """

    def __init__(
        self, X: Any = None, shape: tuple[int, int] | None = None, **settings: Any
    ) -> None:
        self._selected: int | None = None
        self._shown: Any = None
        super().__init__(DecompositionState(X, shape, **settings), "fit.nc")

    def body(self) -> Sequence[Any]:
        """Return pictures, slider, curves, components and the table of errors."""
        self._titles = {name: widgets.HTML(name) for name in PANELS}
        self.plots = {name: widgets.Image().add_class("nmd-plot") for name in PANELS}
        panels = [
            widgets.VBox([self._titles[name], self.plots[name]]).add_class("nmd-tile")
            for name in PANELS
        ]
        self.slider = widgets.SelectionSlider(
            options=[0], description="Iteration", disabled=True, style={"description_width": "62px"}
        ).add_class("nmd-slider")
        self.slider.observe(Debounced(self._refresh), "value")
        self.chart = widgets.Image().add_class("nmd-chart").add_class("nmd-curves")
        self._curves = Curves(
            [
                Panel("relative error", {"relative_error": "observed", "held_out": "held out"}),
                Panel("residuals", {"primal_residual": "‖T − WH‖", "dual_residual": "dual"}),
            ]
        )
        self._gallery = widgets.Box().add_class("nmd-gallery")
        self._backgrounds = widgets.HTML(layout={"display": "none"})
        self._gallery_title = widgets.HTML()
        self._table = widgets.HTML().add_class("nmd-table").add_class("nmd-errors")
        self._key = f"nmd-{self.model_id}"
        self.add_class(self._key)
        return (
            widgets.Box(panels).add_class("nmd-panels"),
            self.slider,
            self.chart,
            self._gallery_title,
            self._gallery,
            self._backgrounds,
            self._table,
        )

    @property
    def state(self) -> DecompositionState:
        """What the explorer knows."""
        state: DecompositionState = self._state
        return state

    def code(self) -> str:
        """Return a cell that repeats the fit."""
        X = self.state.X
        name = name_of(X) if X is not None else None
        if X is not None and name is None:
            mine = name_of(self)
            name = f"{mine}.state.X" if mine else None
        return self.state.code(name)

    def draw(self) -> None:
        """Show the chosen iteration, or the data alone before there is one."""
        self._show_slider()
        state = self._state_shown()
        key = (state, self._selected, id(self._data()))
        if key != self._shown:
            self._shown = key
            self._draw_pictures(state)
            self._draw_gallery(state)
        if state is not None and self.fit.state is not None:
            self.state.judge(self.fit.state)
        curves = self.fit.curves
        iterations = curves.get("iteration", [])
        drawn = {name: (iterations, curves[name]) for name in curves}
        held_out = dict(self.state.held_out)
        drawn["held_out"] = list(held_out), list(held_out.values())
        if (count := (len(iterations), len(held_out))) != getattr(self, "_drawn", None):
            self._drawn = count
            self.chart.value = self._curves.draw(drawn)
        self._show_errors()

    def _data(self) -> Any:
        """Return the data that the pictures are of, or None if the settings make none."""
        if self.fit.phase != "ready":
            return self.state._fitted
        wrong = {"data", "level", "missing", "seed"} & set(self.model.problems())
        return None if wrong else self.state.data

    def _state_shown(self) -> State | None:
        if self.fit.phase == "running" or self.fit.state is None:
            return self.fit.state
        iteration = self.slider.value
        return self.fit.snapshots[iteration] if iteration else self.fit.state

    def _show_slider(self) -> None:
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

    def _draw_pictures(self, state: State | None) -> None:
        data, component = self._data(), self._selected
        if data is None:
            return
        rows = data.default_rows() if data.picture is not None else None
        if state is not None and component is not None and not data.is_picture:
            rows = self.state.typical_rows(component)
        window = data.window(rows)
        if rows is not None and data.picture is None:
            window = rows, window[1]
        parts: dict[str, Any] = {
            "original": data.original[window[0]][:, window[1]],
            "seen": data.observed[window[0]][:, window[1]],
        }
        titles = dict.fromkeys(PANELS, "")
        if state is not None:
            model = self.state.model(state, *window)
            parts["reconstruction"] = model
            parts["residual"] = parts["original"] - model
            titles["residual"] = f", ±{largest(parts['residual']):.2g}"
        columns = math.ceil(math.sqrt(len(data.pictures(parts["original"]))))
        low, high = data.limits
        for name, part in parts.items():
            limit = largest(part) if name == "residual" else max(-low, high)
            grays = name != "residual" and low >= 0
            pictures = [
                gray(picture, low, high) if grays else signed(picture, limit)
                for picture in data.pictures(part)
            ]
            self.plots[name].value = png(mosaic(pictures, columns))
        for name in PANELS:
            self._titles[name].value = f"{name}{titles[name]}"
            self.plots[name].layout.visibility = "visible" if name in parts else "hidden"

    def _draw_gallery(self, state: State | None) -> None:
        rank = 0 if state is None else min(state.H.shape[0], GALLERY)
        if len(self._gallery.children) != rank:
            self._selected = None
            self._gallery.children = tuple(
                button(str(k), "component", self._guarded(partial(self._choose, k)))
                for k in range(rank)
            )
            for k, each in enumerate(self._gallery.children):
                each.add_class(f"nmd-c{k}")
        for k, each in enumerate(self._gallery.children):
            each.tooltip = f"Component {k}: show where there is most of it"
            (each.add_class if k == self._selected else each.remove_class)("nmd-selected")
        if state is None:
            self._backgrounds.value = self._gallery_title.value = ""
            return
        data = self._data()
        rules = []
        for k in range(rank):
            picture = self._component(state, k, data)
            height = 62 if data.picture is None and not data.is_picture else None
            ratio = picture.shape[0] / picture.shape[1]
            url = base64.b64encode(png(signed(picture, float(np.nanmax(np.abs(picture)))))).decode()
            rules.append(
                f".{self._key} .nmd-c{k}{{background-image:url(data:image/png;base64,{url});"
                f"height:{height or round(62 * min(ratio, 1.6))}px}}"
            )
        self._backgrounds.value = f"<style>{''.join(rules)}</style>"
        chosen = self._selected
        self._gallery_title.value = (
            "components (red adds, blue takes away); click one to see where there is most of it"
            if chosen is None
            else f"component {chosen}: above are the rows with most of it; click it again for all"
        )

    def _component(self, state: State, k: int, data: Any) -> Any:
        """Return the picture of a component."""
        if data.is_picture:
            return thin(np.outer(state.W[::4, k], state.H[k, ::4]))
        if data.picture is not None:
            return thin(np.nan_to_num(data.picture(state.H[k])))
        return thin(state.H[k][None, :])

    def _choose(self, component: int) -> None:
        self._selected = None if component == self._selected else component
        self._refresh()

    def _show_errors(self) -> None:
        errors = self.state.errors
        if not errors:
            self._table.value = ""
            return
        least = [min(column) for column in zip(*errors.values(), strict=True)]
        rows = ""
        for name, numbers in errors.items():
            cells = (
                f'<td class="{"nmd-best" if number == best else ""}">'
                + ("–" if math.isnan(number) else f"{number:.4g}")
                + "</td>"
                for number, best in zip(numbers, least, strict=True)
            )
            rows += f"<tr><td>{name}, rank {self.state.running['rank']}</td>{''.join(cells)}</tr>"
        self._table.value = (
            "<table><thead><tr><th>relative error (Frobenius)</th><th>observed</th>"
            f"<th>held out</th></tr></thead><tbody>{rows}</tbody></table>"
        )

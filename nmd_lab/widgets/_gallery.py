"""The components of a fit as pictures on buttons, one of which can be chosen."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import ipywidgets as widgets
import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.pictures import Picture

from ._controls import button, replace_children, toggle_class
from ._images import png, signed, thin

Array = NDArray[np.floating]

HINT = "components (red adds, blue takes away); click one to see where there is most of it"


class Layout(Protocol):
    """How a matrix is shown."""

    @property
    def picture(self) -> Picture | None:
        """Layout of a row as a picture, if the rows are pictures."""

    @property
    def is_picture(self) -> bool:
        """Whether the whole matrix is one picture."""


class ComponentGallery:
    """A button for each component.

    Parameters
    ----------
    name : str
        Class that no other widget has, so that the style of the buttons stays in one explorer.
    guarded : callable
        Function that returns an action whose errors are shown.
    changed : callable
        Function without arguments that is called when another component is chosen.

    Attributes
    ----------
    selected : int or None
        The chosen component.
    box, title, backgrounds : widgets
        The buttons, the line above them, and their pictures.
    """

    def __init__(
        self,
        name: str,
        guarded: Callable[[Callable[[], Any]], Callable[[], None]],
        changed: Callable[[], None],
    ) -> None:
        self.selected: int | None = None
        self.box = widgets.Box().add_class("nmd-gallery").add_class(name)
        self.title = widgets.HTML()
        self.backgrounds = widgets.HTML(layout={"display": "none"})
        self._name, self._guarded, self._changed = name, guarded, changed

    def draw(self, factors: tuple[Array, Array] | None, layout: Layout | None) -> None:
        """Show the components of W and H, or nothing."""
        self._show_buttons(0 if factors is None else factors[1].shape[0])
        if factors is None or layout is None:
            self.backgrounds.value = self.title.value = ""
            return
        rules = [self._background(factors, k, layout) for k in range(len(self.box.children))]
        self.backgrounds.value = f"<style>{''.join(rules)}</style>"
        self.title.value = (
            HINT
            if self.selected is None
            else f"component {self.selected}: above are the rows with most of it; click it again "
            "for all"
        )

    def _show_buttons(self, rank: int, most: int = 60) -> None:
        """Show a button for each of at most `most` components."""
        count = min(rank, most)
        if len(self.box.children) != count:
            self.selected = None
            made = (
                button(str(k), "component", self._guarded(partial(self._choose, k)))
                for k in range(count)
            )
            replace_children(self.box, (each.add_class(f"nmd-c{k}") for k, each in enumerate(made)))
        for k, each in enumerate(self.box.children):
            each.tooltip = f"Component {k}: show where there is most of it"
            toggle_class(each, "nmd-selected", k == self.selected)

    def _background(
        self, factors: tuple[Array, Array], k: int, layout: Layout, side: int = 62
    ) -> str:
        """Return the style rule that shows a component on its button of `side` pixels."""
        picture = _component(factors, k, layout)
        height = side
        if layout.picture is not None or layout.is_picture:
            height = round(side * min(picture.shape[0] / picture.shape[1], 1.6))
        image = png(signed(picture, float(np.nanmax(np.abs(picture)))))
        return (
            f".{self._name} .nmd-c{k}{{background-image:"
            f"url(data:image/png;base64,{base64.b64encode(image).decode()});height:{height}px}}"
        )

    def _choose(self, component: int) -> None:
        """Select a component, or no component if it is selected already."""
        self.selected = None if component == self.selected else component
        self._changed()


def _component(factors: tuple[Array, Array], k: int, layout: Layout) -> Array:
    """Return the picture of a component."""
    W, H = factors
    if layout.is_picture:
        return thin(np.outer(W[::4, k], H[k, ::4]))
    if layout.picture is not None:
        return thin(np.nan_to_num(layout.picture(H[k])))
    return thin(H[k][None, :])


def typical_rows(W: Array, component: int, count: int) -> NDArray[np.intp]:
    """Return the rows with the largest absolute weights of a component, largest first."""
    order = np.argsort(-np.abs(W[:, component]), kind="stable")
    rows: NDArray[np.intp] = order[:count]
    return rows

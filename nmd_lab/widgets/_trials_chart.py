"""The chart of the trials from which the options of a fit were chosen."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np

from nmd_lab.plots.trials import selection
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.selection import TRIAL

from ._charts import DRAWING, STYLE, new_figure, style_axes, to_png

COLORS: dict[Any, str] = {
    "text.color": STYLE.text,
    "axes.facecolor": "white",
    "axes.edgecolor": STYLE.frame,
}
"""Colours of the chart, whatever the style of the user's plots is."""


def trials_chart(fit: Decomposition) -> bytes:
    """Return the chart as a PNG file; empty if the fit has no trials with an error.

    Parameters
    ----------
    fit : Decomposition
        A fit.
    """
    trials = fit.selection
    if not trials.sizes[TRIAL] or not np.isfinite(trials["error"].values).any():
        return b""
    with DRAWING, mpl.rc_context(COLORS):
        figure = new_figure(STYLE.dots_size)
        figure.set_layout_engine("constrained")
        axes = figure.subplots(1, 2, width_ratios=(1.25, 1))
        selection(fit, ax=axes)  # first, since it looks at the background
        for ax in axes:
            style_axes(ax)
        return to_png(figure)

"""What a posterior says beside data: how well its intervals hold, as a number and as a chart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmd_lab.data.observations import observe
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.plots.posterior import predictions
from nmd_lab.result.posterior.posterior import Posterior

from ._charts import DRAWING, STYLE, new_figure, style_axes, to_png
from ._doubt_maps import DoubtMaps

LEVEL = 0.9
"""Probability of the intervals."""

MOST_CHECKED, MOST_DRAWN = 5000, 500
"""Largest numbers of entries that are checked and drawn; of more, a random sample."""


class Findings(NamedTuple):
    """What a posterior says at known entries.

    Attributes
    ----------
    held_out : bool
        Whether the sampler has not seen the entries.
    n_entries : int
        Number of entries.
    coverage : float
        Share of the intervals that hold the observed value.
    rmse : float
        Root mean squared error of the posterior mean.
    chart : bytes
        PNG file: predicted against observed values, with intervals.
    maps : DoubtMaps
        Pictures of the posterior, if the data are pictures.
    """

    held_out: bool
    n_entries: int
    coverage: float
    rmse: float
    chart: bytes
    maps: DoubtMaps

    @property
    def summary(self) -> str:
        """The coverage in one line."""
        which = "held-out" if self.held_out else "known"
        return (
            f"{100 * self.coverage:.0f} % of the {100 * LEVEL:.0f} % intervals hold the {which} "
            "value"
        )

    @property
    def caption(self) -> str:
        """The line below the chart."""
        if not self.held_out:
            return (
                f"{self.n_entries} entries that the sampler has seen, RMSE {self.rmse:.4g}: hold "
                "some out to judge the intervals"
            )
        return f"{self.n_entries} held-out entries: RMSE of the posterior mean {self.rmse:.4g}"


def findings(posterior: Posterior, X: Any, held_out: Any) -> Findings:
    """Return what a posterior says at held-out entries, or at seen ones if there are none.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    X : matrix
        All observed entries.
    held_out : matrix or None
        Those that the posterior has not seen.
    """
    entries = None if held_out is None else observe(held_out).as_sparse()
    unseen = entries is not None and entries.n_observed > 0
    known = entries if entries is not None and unseen else observe(X).as_sparse()
    checked = _sample(known, MOST_CHECKED)
    rows, columns, x = checked.entries()
    low, high = posterior.predict_interval(rows, columns, level=LEVEL).T
    error = posterior.predict(rows, columns) - x
    found = Findings(
        unseen,
        x.size,
        float(np.mean((low <= x) & (x <= high))),
        float(np.sqrt(np.mean(error**2))),
        b"",
        DoubtMaps(posterior, X),
    )
    chart = interval_chart(posterior, _sample(checked, MOST_DRAWN), found.summary)
    return found._replace(chart=chart)


def _sample(entries: SparseObservations, most: int) -> SparseObservations:
    """Return observations, or a random sample of them that is always the same."""
    if entries.n_observed <= most:
        return entries
    kept = np.zeros(entries.n_observed, dtype=bool)
    kept[np.random.default_rng(0).choice(kept.size, most, replace=False)] = True
    return entries.select(kept)


def interval_chart(posterior: Posterior, X: SparseObservations, title: str) -> bytes:
    """Return a PNG file with predicted against observed values, and the intervals.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    X : SparseObservations
        Observed values; all of them are drawn.
    title : str
        Title.
    """
    with DRAWING:
        figure = new_figure(STYLE.dots_size)
        ax = figure.add_subplot()
        predictions(posterior, X, level=LEVEL, max_points=MOST_DRAWN, ax=ax)
        ax.set_title(title)
        ax.lines[-1].set_color(STYLE.text)
        style_axes(ax)
        figure.subplots_adjust(left=0.075, right=0.985, top=0.91, bottom=0.15)
        return to_png(figure)

"""The plots of a study as methods: ``study.plot``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xarray as xr

from .plots import cost, error, heatmap

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class StudyPlots:
    """The plots of one study.

    Parameters
    ----------
    results : Dataset
        Results of `Study.run`, or of a file that it wrote.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> study = nmd.Study(nmd.datasets.digits(50), rank=[1, 2], method=["admm", "svd"],
    ...                   max_iter=20)
    >>> results = study.run(progress=False)
    >>> study.plot.error("rank", color="solver").get_xlabel()
    'rank'
    """  # fmt: skip

    results: xr.Dataset

    def error(self, x: str, **options: Any) -> Axes:
        """Draw an error against a dimension; see `nmd_lab.studies.plots.error`."""
        return error(self.results, x, **options)

    def heatmap(self, x: str, y: str, **options: Any) -> Axes:
        """Draw an error over two dimensions; see `nmd_lab.studies.plots.heatmap`."""
        return heatmap(self.results, x, y, **options)

    def cost(self, **options: Any) -> Axes:
        """Draw an error against seconds; see `nmd_lab.studies.plots.cost`."""
        return cost(self.results, **options)

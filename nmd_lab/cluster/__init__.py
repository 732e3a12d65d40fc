"""Fits whose rows lie on the workers of a Dask cluster."""

from . import sweeps as sweeps  # which registers what a fit does there

"""Explorers for notebooks: run a fit, watch it, compare results, and copy the code.

>>> import nmd_lab as nmd
>>> model = {"nonlinearity": "relu", "rank": 4, "alpha": 0.0, "iterations": 10}
>>> explorer = nmd.widgets.Explorer(nmd.datasets.digits(50), **model)
>>> explorer.start()
>>> explorer.join(60), explorer.result.history.sizes["iteration"]
(True, 10)
"""

from nmd_lab._runtime.checks import needs_library

with needs_library("Explorers need ipywidgets: pip install anywidget ipywidgets pillow."):
    import anywidget  # noqa: F401
    import ipywidgets  # noqa: F401
    import PIL  # noqa: F401

from .explorer import Explorer, explore

__all__ = ["Explorer", "explore"]

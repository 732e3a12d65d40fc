"""Plots are drawn without a window and to the end, and figures do not stay."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _clean_figures():
    """Render every figure of a test, so that errors in layout show."""
    yield
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")

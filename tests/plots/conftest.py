"""Plots are drawn without a window, and figures do not stay."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _clean_figures():
    yield
    plt.close("all")

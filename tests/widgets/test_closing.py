"""Explorers that are closed, or never came to be, leave nothing behind."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import weakref

import pytest
from explorer_page import done, plain
from waiting import PATIENCE

pytest.importorskip("anywidget")

from ipywidgets.widgets.widget import _instances
from some import some

import nmd_lab as nmd
from nmd_lab import datasets, widgets


def decomposition():
    return plain(widgets.Explorer, datasets.digits(30), iterations=3)


def completion():
    return widgets.Explorer(data="generated", iterations=3, rank=2)


def fitted():
    fit = nmd.decompose(datasets.digits(30), 2, random_state=0, max_iter=3, tol=0)
    return widgets.Explorer(fit)


def study():
    made = nmd.Study(datasets.digits(30), rank=[1, 2], n_splits=1, max_iter=3, alpha=0)
    made.run(progress=False)
    return widgets.Explorer(made)


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")
@pytest.mark.parametrize("make", some([decomposition, completion, fitted, study], 2))
def test_a_closed_explorer_gives_all_models_back(make):
    make().close()  # what is made once for all
    gc.collect()
    before = len(_instances)
    explorer = make()
    assert len(_instances) == before + 1  # one model an explorer
    if explorer.view.can_fit:
        explorer.start()
        explorer.join(PATIENCE)
    gone = weakref.ref(explorer)
    explorer.close()
    explorer.close()  # a second time does no harm
    assert len(_instances) == before
    del explorer
    gc.collect()
    assert gone() is None


def test_refused_settings_leave_no_exception_behind(monkeypatch):
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    with pytest.raises(KeyError, match="'nosuch' is no setting"):
        plain(widgets.Explorer, datasets.digits(30), nosuch=3)
    gc.collect()
    assert ignored == []


@pytest.mark.exhaustive
def test_many_explorers_leave_little_behind():
    X = datasets.digits(30)

    def use():
        explorer = plain(widgets.Explorer, X, iterations=3, rank=2)
        done(explorer)
        explorer.close()

    use()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(50):
            use()
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 5e6

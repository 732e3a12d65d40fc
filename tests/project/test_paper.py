"""The paper's experiments: cells that are stored and resumed, printed numbers, the page."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import nmd_lab as nmd

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.paper import (  # noqa: E402
    cbcl_completion,
    data,
    fits,
    mnist_noise,
    page,
    poisson_logo,
    printed_updates,
    relu_over_time,
    report,
    scaling,
)
from benchmarks.paper.cells import Cell, run_cells  # noqa: E402

DONE: list[tuple[str, int]] = []


def work(*, solver: str, seed: int, power: int) -> dict[str, object]:
    """Score a cell, and remember that it was done."""
    if solver == "broken":
        raise FloatingPointError("killed")
    DONE.append((solver, seed))
    return {"score": seed**power, "curve": ("step", np.arange(seed + 1))}


def cells(*solvers: str, power: int = 2) -> list[Cell]:
    return [
        Cell({"solver": solver, "seed": seed}, {"power": power})
        for solver in solvers
        for seed in (1, 3)
    ]


@pytest.fixture(autouse=True)
def _nothing_done():
    DONE.clear()


def test_cells_become_an_array_by_coordinates(tmp_path):
    results = run_cells(tmp_path, cells("a", "b")[:-1], work, attrs={"data": "none"})
    assert results.sizes == {"solver": 2, "seed": 2, "step": 4}
    np.testing.assert_array_equal(results.score, [[1, 9], [1, np.nan]])
    np.testing.assert_array_equal(results.curve.sel(solver="a", seed=1), [0, 1, np.nan, np.nan])
    assert results.attrs["data"] == "none"
    assert len(results.attrs["code"]) == 1


def test_a_cell_is_not_computed_twice(tmp_path):
    first = run_cells(tmp_path, cells("a"), work)
    again = run_cells(tmp_path, cells("a"), work)
    assert DONE == [("a", 1), ("a", 3)]
    xr.testing.assert_identical(first, again)
    run_cells(tmp_path, cells("a", power=3), work)  # other options are another cell
    assert len(DONE) == 4


def test_a_killed_run_goes_on(tmp_path):
    with pytest.raises(FloatingPointError, match="killed"):
        run_cells(tmp_path, cells("a", "broken", "b"), work)
    assert DONE == [("a", 1), ("a", 3)]
    assert all(json.loads(path.read_text())["scores"] for path in tmp_path.iterdir())
    run_cells(tmp_path, cells("a", "b"), work)
    assert DONE == [("a", 1), ("a", 3), ("b", 1), ("b", 3)]


def test_a_torn_file_never_has_a_cell_s_name(tmp_path, monkeypatch):
    def torn(path: Path, text: str, encoding: str) -> None:
        path.write_bytes(text[:9].encode())
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", torn)
    with pytest.raises(KeyboardInterrupt):
        run_cells(tmp_path, cells("a"), work)
    assert list(tmp_path.iterdir()) == []


def test_processes_give_the_same(tmp_path):
    one = printed_updates.run(tmp_path / "one", quick=True)
    options = {"count": one.attrs["count"]}
    two = run_cells(
        tmp_path / "two",
        [Cell({"model": model}, options) for model in printed_updates.PRINTED],
        printed_updates.work,
        n_jobs=2,
        attrs=options,
    )
    xr.testing.assert_identical(one, two)


def test_the_page_has_every_section_and_every_figure(tmp_path, monkeypatch):
    pytest.importorskip("torch")  # Adam is in its figures
    monkeypatch.delenv("NMD_LAB_DATA", raising=False)
    quickly = ("printed_updates", "csf", "mnist_noise", "zeros_with_noise")
    page.write(tmp_path / "page.md", tmp_path / "cells", quick=True, experiments=quickly)
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    titles = [page.module(name).TITLE for name in quickly]
    assert re.findall(r"^## (.*)$", text, flags=re.MULTILINE) == titles
    assert "nan" not in text
    images = re.findall(r"!\[.*\]\((.*)\)", text)
    assert images == ["figures/csf.png", "figures/mnist_noise.png"]
    assert all((tmp_path / image).stat().st_size > 1000 for image in images)
    assert "in place of MNIST" in text
    assert "small versions" in text


def test_the_page_s_links_lead_to_its_sections():
    titles = [page.module(name).TITLE for name in page.EXPERIMENTS]
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\(#(.*?)\)", page.DIFFERENCES)) <= anchors


def test_every_experiment_has_a_notebook():
    names = {path.stem for path in (ROOT / "notebooks" / "paper").glob("*.ipynb")}
    assert names == set(page.EXPERIMENTS)
    with pytest.raises(ValueError, match="experiment 'mnist' is unknown"):
        page.module("mnist")


def test_the_printed_numbers_are_the_paper_s():
    assert cbcl_completion.PRINTED["ADMM"][0] == (0.1024, 2)
    assert cbcl_completion.PRINTED["WLRA"][5] == (0.1471, 9)
    assert cbcl_completion.PRINTED["RTRMC"][5] == (0.1081, 7)
    assert mnist_noise.PRINTED["minmax+l1"] == (0.15120, 0.29985, 0.36894, 0.45480, 0.51534)
    assert mnist_noise.PRINTED["relu+l1"][3] == 0.40343
    assert poisson_logo.PRINTED == {
        "minmax+kl": 9.89, "minmax+frobenius": 19.94, "minmax+l1": 12.84, "relu+kl": 29.48,
    }  # fmt: skip
    assert relu_over_time.PRINTED["cbcl", "adam"] == "0.1584 ± 0.0048"


def test_the_tables_hold_the_printed_numbers(tmp_path):
    solvers, shares = list(cbcl_completion.SOLVERS), list(cbcl_completion.MISSING)
    shape = (len(solvers), len(shares), 2)
    scores = xr.DataArray(
        np.linspace(0.1, 0.2, np.prod(shape)).reshape(shape),
        {"solver": solvers, "missing": shares, "seed": [0, 1]},
    )
    attrs = {"source": "real", "quick": False, "max_iter": 100}
    results = xr.Dataset({"rmse": scores, "seconds": scores, "alpha": scores}, attrs=attrs)
    text = cbcl_completion.section(results, tmp_path)
    rows = [line for line in text.splitlines() if "the paper's number*" in line]
    assert len(rows) == 4
    assert rows[0].startswith("| *ADMM, the paper's number* | 0.1024 ± 0.0002 | 0.1025 ± 0.0003 |")
    assert rows[0].endswith("| 0.1085 ± 0.0008 |")
    assert "- **Ours by default**" in text
    assert "| solver | CBCL, 0% | CBCL, 5% |" in text
    for other in ({"source": "stand-in"}, {"quick": True}):
        text = cbcl_completion.section(results.assign_attrs(other), tmp_path)
        assert "- **Ours by default**" not in text
        assert "the paper's number" not in text
    text = cbcl_completion.section(results.assign_attrs(source="stand-in"), tmp_path)
    assert "| solver | photograph patches (stand-in), 0% |" in text
    assert "CBCL" not in text


PAPER_NOTEBOOKS = ("cbcl_completion", "mnist_noise", "poisson_logo", "relu_over_time")


@pytest.mark.parametrize("name", PAPER_NOTEBOOKS)
def test_no_notebook_has_the_paper_s_numbers_beside_those_of_a_stand_in(name):
    notebook = json.loads((ROOT / "notebooks" / "paper" / f"{name}.ipynb").read_text("utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    shown = ["".join(output.get("data", {}).get("text/markdown", "")) for output in outputs]
    (section,) = [text for text in shown if text.startswith("## ")]
    head = next(line for line in section.splitlines() if line.startswith("| "))
    assert "(stand-in)" in head
    assert "the paper's number" not in section
    assert not re.search(r"(CBCL|MNIST|MIT logo)\b", head)


@pytest.mark.parametrize("there", [(), ("mnist",), ("cbcl",), ("cbcl", "mnist")])
def test_each_set_of_the_solvers_over_time_is_the_real_one_where_it_is_there(
    there, monkeypatch, tmp_path
):
    for name in there:
        (tmp_path / name).mkdir()
    monkeypatch.setenv("NMD_LAB_DATA", str(tmp_path))
    loaded = {}

    def load(name, source, **_):
        loaded[name] = source
        return data.Data(np.eye(3), source == "real", f"{source} {name}")

    def run_cells(folder, cells, work, attrs):
        return xr.Dataset({"error": 0.0}, attrs=attrs | {"cells": cells})

    monkeypatch.setattr(data, "load", load)
    monkeypatch.setattr(relu_over_time, "run_cells", run_cells)
    results = relu_over_time.run(tmp_path, quick=True)
    expected = {name: "real" if name in there else "stand-in" for name in relu_over_time.RANK}
    assert loaded == expected
    for cell in results.attrs["cells"]:
        assert cell.options["source"] == expected[cell.coordinates["dataset"]]
    assert results.attrs["source"] == ("real" if len(there) == 2 else "stand-in")
    assert relu_over_time.labels(results) == {
        name: data.label(name, source) for name, source in expected.items()
    }


def test_the_paper_s_settings_run_its_algorithm(rng):
    X = rng.random((12, 9))
    fit = nmd.decompose(X, 2, "relu", **fits.paper_settings(max_iter=7))
    assert fit.n_iter == 7
    assert fit.parameters["penalty"] == "paper"
    assert fit.parameters["epsilon"] == 1e-6
    W, H = fits.zero_filled_start(np.where(X < 0.2, np.nan, X), 2)
    U, sizes, Vt = np.linalg.svd(np.where(X < 0.2, 0, X))
    np.testing.assert_allclose(W @ H, U[:, :2] * sizes[:2] @ Vt[:2])
    np.testing.assert_allclose(W.T @ W, H @ H.T, atol=1e-12)


def test_alpha_is_chosen_on_entries_that_the_fit_did_not_see(rng):
    truth = rng.standard_normal((40, 1)) @ rng.standard_normal((1, 30))
    X = truth + 2 * rng.standard_normal(truth.shape)
    options = fits.default_settings(max_iter=50)
    much = fits.choose_alpha(X, 8, "identity", "frobenius", (0.0, 8.0), seed=1, **options)
    none = fits.choose_alpha(truth, 1, "identity", "frobenius", (0.0, 8.0), seed=1, **options)
    assert (much, none) == (8.0, 0.0)


@pytest.mark.parametrize("solver", ["paper", "default", "alpha"])
def test_the_completion_of_faces_has_no_ridge_but_the_one_of_its_own_choice(solver, monkeypatch):
    fitted = []

    def complete(*args, **options):
        fitted.append(nmd_complete(*args, **options))
        return fitted[-1]

    nmd_complete = nmd.complete
    monkeypatch.setattr(nmd, "complete", complete)
    options = {"missing": 0.2, "seed": 0, "source": "stand-in", "n": 30, "max_iter": 3}
    scores = cbcl_completion.work(solver=solver, **options)
    used = fitted[-1].parameters
    assert (used["alpha"], used["offsets"]) == (scores.get("alpha", 0), "none")
    assert fitted[-1].selection.sizes["trial"] == 0


def test_the_sparse_fits_of_scaling_are_plain():
    fit = scaling.fit_one("sparse", scaling.ratings(10_000), 2)
    assert (fit.parameters["alpha"], fit.parameters["offsets"], fit.n_iter) == (0, "none", 2)


@pytest.mark.parametrize("name", data.IN_PLACE_OF)
def test_stand_ins_have_the_nature_of_what_they_stand_for(name, monkeypatch):
    monkeypatch.delenv("NMD_LAB_DATA", raising=False)
    assert data.source_of(name) == "stand-in"
    stand_in = data.load(name, "stand-in")
    X = stand_in.X
    assert not stand_in.is_real
    assert data.IN_PLACE_OF[name] in stand_in.description
    assert X.max() == 1
    assert not X.flags.writeable
    if name == "mnist":
        assert X.shape[0] == 500
        assert np.mean(X == 0) > 0.4
    elif name == "cbcl":
        assert X.shape[1] == 361
        assert X.min() > 0
    else:
        assert np.linalg.matrix_rank(X) == 4
        assert X.min() == 0.5


@pytest.mark.data
def test_real_sets_are_the_paper_s(data_dir, monkeypatch):
    monkeypatch.setenv("NMD_LAB_DATA", str(data_dir))
    shapes = {"mnist": (500, 784), "cbcl": (2429, 361), "mit_logo": (250, 482)}
    for name, shape in shapes.items():
        assert data.source_of(name) == "real"
        assert data.load(name, "real").X.shape == shape
    logo = data.load("mit_logo", "real").X
    assert (np.linalg.matrix_rank(logo), logo.min(), logo.max()) == (4, 0.5, 1)


def test_reports():
    assert report.mean_std([0.1, 0.3, np.nan]) == "0.2000 ± 0.1414"
    assert report.mean_std([np.nan]) == "–"
    assert report.bold_if_least("a", 0.10004, 0.10001) == "**a**"
    assert report.bold_if_least("a", 0.1002, 0.1001) == "a"
    text = report.prose("\n    - one {x:.1f}\n      more\n    - two\n", x=2)
    assert text == "- one 2.0 more\n- two"
    curve = xr.DataArray([[3.0, np.nan, 5.0, 1.0]], dims=("seed", "iteration"))
    np.testing.assert_array_equal(report.least_so_far(curve), [[3, 3, 3, 1]])
    assert scaling.slope(np.array([1.0, 10, 100]), np.array([2.0, 20, 200])) == pytest.approx(1)

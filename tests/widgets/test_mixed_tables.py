"""Explorers of tables with several kinds of columns: what they show is what the library says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from explorer_page import act, done, picture, table

import nmd_lab as nmd
from nmd_lab import widgets
from nmd_lab.data.inputs import observe
from nmd_lab.solver.held_out import HeldOut


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(40, 2))
    place = np.digitize(hidden[:, 1], [-0.5, 0.5])
    return pd.DataFrame(
        {
            "income": 1000 * (hidden @ [1.0, 2.0]) + 30000,
            "age": hidden @ [5.0, -3.0] + 40,
            "member": hidden[:, 0] > 0,
            "place": pd.Categorical(np.array(["a", "b", "c"])[place]),
        }
    )


@pytest.fixture(scope="module")
def explorer(frame):
    settings = {"rank": 2, "alpha": 0.1, "nonlinearity": "identity", "iterations": 30}
    explorer = widgets.explore(frame, missing=0.2, **settings)
    done(explorer)
    return explorer


def shown(explorer):
    return picture(explorer, "reconstruction").reshape(40, 6)


def test_a_reconstruction_is_that_of_the_fit(explorer):
    model = explorer.result.reconstruct().values
    assert np.ptp(model, axis=0).min() > 0
    np.testing.assert_allclose(shown(explorer), model, rtol=1e-6)


def test_a_held_out_error_is_that_of_the_library(explorer):
    fit, data = explorer.result, explorer.state.fitted_data
    unseen = observe(np.where(np.isnan(data.observed), data.original, np.nan)).as_sparse()
    last = explorer.fit.state
    expected = HeldOut(unseen, fit.kinds).rmse(last.W_aug, last.H_aug)
    assert explorer.fit.recording.held_out[30] == pytest.approx(expected)
    assert expected < 0.8  # the best constants have about 1
    listed = float(table(explorer, "errors")["rows"][0][-1])
    assert listed == pytest.approx(expected, rel=1e-3)


def test_components_are_switched_off_in_every_column(explorer):
    act(explorer, "component", what="off", k=1)
    fit = explorer.result
    m, n = fit.shape
    alone = fit.predict(np.arange(m)[:, None], np.arange(n), without=[1]).reshape(m, n)
    np.testing.assert_allclose(shown(explorer), alone, rtol=1e-6)
    act(explorer, "component", what="off", k=1)


def test_a_finished_fit_does_not_open_empty(frame):
    fit = nmd.complete(frame, 2, alpha=0.1, max_iter=10, random_state=0)
    explorer = widgets.explore(fit)
    model = fit.reconstruct().values
    np.testing.assert_allclose(shown(explorer), model, rtol=1e-6)
    assert explorer.components["count"] == 2


@pytest.fixture(scope="module")
def posterior(frame):
    with pytest.warns(nmd.warnings.NotConvergedWarning):
        return nmd.sample(frame, 2, draws=10, tune=5, random_state=0, progress=False)


@pytest.mark.parametrize("given", ["posterior", "file", "dataset"])
def test_a_posterior_does_not_open_empty(given, posterior, tmp_path):
    if given == "file":
        posterior.save(tmp_path / "posterior.nc")
    X = {"file": tmp_path / "posterior.nc", "dataset": posterior.to_dataset()}
    explorer = widgets.explore(X.get(given, posterior))
    mean, spread = posterior.reconstruct().values, posterior.uncertainty(noise=False).values
    np.testing.assert_allclose(shown(explorer), mean, rtol=1e-6)
    found = picture(explorer, "spread").reshape(40, 6)
    np.testing.assert_allclose(found, spread, rtol=1e-5, atol=1e-4)
    assert "the chains have not settled" in explorer.status["warnings"][0]
    assert dict(table(explorer, "facts")["rows"])["draws"] == "10 in 1 chain"
    names = {"posterior": posterior}
    exec(explorer.code().replace("...", "posterior"), names)
    explorer.save(tmp_path / "copy.nc")
    assert nmd.load(tmp_path / "copy.nc").draws.identical(posterior.draws)


def test_a_table_that_is_mostly_missing_is_chosen_for_and_filled(frame):
    holes = frame.astype({"member": "boolean"})
    holes = holes.mask(np.random.default_rng(1).random(frame.shape) < 0.7)
    explorer = done(widgets.explore(holes, iterations=20))
    assert explorer.fit.phase == "finished", explorer.fit.message
    assert explorer.nonlinearity == "identity"
    assert explorer.status["notes"][0].startswith("chosen: f by column, rank ")
    assert not explorer.status["failed"]


def test_the_cells_that_the_model_is_least_sure_of_are_listed(frame):
    settings = {"rank": 2, "alpha": 0.1, "nonlinearity": "identity", "draws": 60}
    explorer = done(widgets.explore(frame, missing=0.2, **settings))
    assert [each["name"] for each in explorer.tables] == ["errors"]
    explorer.how_sure()
    assert explorer.join(60)
    seen, _ = nmd.split_observed(frame, 0.2, random_state=0)
    with pytest.warns(nmd.warnings.NotConvergedWarning):
        expected = nmd.sample(seen, draws=60, random_state=0)  # an f of their own for columns
    assert expected.draws.identical(explorer.posterior.draws)
    assert 'nmd.sample(seen, rank="auto"' in explorer.code_text.replace("\n    ", "")
    unsure, posterior = table(explorer, "unsure"), explorer.posterior
    (warning,) = explorer.status["warnings"]
    assert unsure["caption"].endswith(f"; ⚠ {warning}")
    observed = explorer.state.fitted_data.observed
    assert all(np.isnan(observed[row, column]) for row, column in unsure["ids"])
    numbers = [k for k, cells in enumerate(unsure["rows"]) if "sure" not in cells[2]]
    row, column = unsure["ids"][numbers[0]]
    low, high = posterior.predict_interval(row, column, level=0.9)[0]
    shown = unsure["rows"][numbers[0]][2].split(" – ")
    np.testing.assert_allclose(np.array(shown, dtype=float), [low, high], rtol=0.01)
    assert float(shown[0]) <= float(unsure["rows"][numbers[0]][1]) <= float(shown[1])
    categories = [cells for cells in unsure["rows"] if cells[0].startswith("place")]
    assert all(cells[1] in "abc" and cells[2].endswith("% sure") for cells in categories)
    act(explorer, "select", row=row, column=column)
    assert explorer.facts["cell"]["title"] == unsure["rows"][numbers[0]][0]

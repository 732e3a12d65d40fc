"""Compiled trials against the iterations of the engine, for every kind of offsets."""

import math

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.model.model import make_model
from nmd_lab.solver.engines.admm import Admm
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.options import Options
from nmd_lab.solver.request import make_problem
from nmd_lab.solver.scaling import scaling_for
from nmd_lab.solver.selection import compiled_trial as squares
from nmd_lab.solver.selection import trials
from nmd_lab.solver.selection.progress import Progress
from nmd_lab.solver.starts import iterations_of


def table(rng: np.random.Generator, holes: float = 0.3) -> np.ndarray:
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 8)) + 0.3 * rng.normal(size=(30, 8)) + 2
    X[rng.random(X.shape) < holes] = np.nan
    X[:, 3] = np.where(np.arange(30) < 29, np.nan, X[:, 3])
    X[4] = np.nan  # a row without any entry
    return X


@pytest.mark.parametrize("kind", ["none", "global", "rows", "columns", "both"])
@pytest.mark.parametrize("from_factors", [True, False])
def test_the_iterations_are_those_of_the_engine(kind, from_factors, rng):
    X, model = table(rng), make_model("identity", "frobenius")
    options = Options.of({"alpha": 0.7, "offset_alpha": 0.2, "offsets": kind})
    problem = make_problem(observe(X), scaling_for(model, 5.0), options, False)
    start = Start(rng.normal(size=(30, 3)), rng.normal(size=(3, 8)), from_factors)
    assert squares.suits(problem, start)
    found = squares.after_few(problem, start, 25)
    expected = iterations_of(Admm())(problem, start, 25)
    np.testing.assert_allclose(found.W @ found.H, expected.W @ expected.H, rtol=1e-9, atol=1e-11)
    for one, other in zip(found.offsets, expected.offsets, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9) if one is not None else None
    held_out = observe(np.where(np.isnan(X), 1.0, np.nan)).as_sparse()
    run = squares.run_of_squares(problem, start, held_out, Progress(math.inf, 1, keeps_best=True))
    W_aug, H_aug = problem.offset_columns.extend(run.start.W, run.start.H, run.start.offsets)
    errors = 1 - (W_aug @ H_aug)[held_out.rows, held_out.indices]
    np.testing.assert_allclose(run.losses, errors**2 / 2)
    assert len(run.curve) == run.progress.count


@pytest.mark.parametrize("validation", [None, nmd.Choice(metric="rmse", ranks=[1, 2, 5])])
def test_a_choice_is_that_of_trials_in_python(validation, rng, monkeypatch):
    X = table(rng)[:, [0, 1, 2, 4, 5, 6, 7]]
    compiled = nmd.complete(X, validation=validation, random_state=0)
    monkeypatch.setattr(trials, "suits", lambda *_: False)
    plain = nmd.complete(X, validation=validation, random_state=0)
    for name in ("rank", "offsets", "n_iter"):
        np.testing.assert_array_equal(compiled.selection[name], plain.selection[name])
    np.testing.assert_allclose(compiled.selection["error"], plain.selection["error"], rtol=1e-8)
    np.testing.assert_allclose(compiled.reconstruct(), plain.reconstruct(), rtol=1e-8)

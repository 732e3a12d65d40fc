"""The states of the explorers, without any widget."""

import re

import numpy as np
import pytest
import xarray as xr
from explorer_page import act, acted, done, ended, executed, plain, repeats, sentence, sure, table
from helpers import PATIENCE, check_all_refused, wait_for
from scipy import sparse

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.metrics import rmse
from nmd_lab.widgets.background import Background
from nmd_lab.widgets.explorer import library
from nmd_lab.widgets.matrix import MatrixState
from nmd_lab.widgets.ratings import RatingsState
from nmd_lab.widgets.words import MAX_CHECKED

GENERATED = datasets.make_ratings(400, 300, 12_000, random_state=0)
SETTINGS = [
    {},
    {"missing": 0.3, "seed": 3, "loss": "l1"},
    {"nonlinearity": "minmax", "low": 0.5, "high": 2.0, "alpha": 0.5},
    {"loss": "kl", "rho": 0.7},
    {"missing": 0.6, "nonlinearity": "identity"},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_copied_code_repeats_a_decomposition(settings, capsys):
    X = datasets.digits(100)
    state = plain(MatrixState, X, rank=4, iterations=8, **settings)
    assert state.problems() == {}
    fit = ended(state)
    again = executed(state.code("X"), X=X)["fit"]
    np.testing.assert_allclose(again.W, fit.W, rtol=1e-9)  # no bits: another thread and BLAS path
    hidden, said = np.isnan(state.data.observed), f"relative error {fit.relative_error:.4g}"
    if hidden.any():
        off = (fit.reconstruct().values - X.values.reshape(100, 64))[hidden]
        said = f"held-out entries: ±{np.sqrt(np.mean(off**2)):.3g}"
    assert capsys.readouterr().out.strip() == said


def test_the_rival_is_the_linear_model_of_the_same_entries(small):
    settings = {"rank": 2, "alpha": 0.1, "iterations": 20}
    state = plain(MatrixState, small, missing=0.2, **settings)
    fit = ended(state)
    seen = np.asarray(state.data.seen)
    hidden = np.isnan(seen)
    assert hidden.mean() == pytest.approx(0.2, abs=0.01)
    linear = nmd.complete(
        seen, 2, "identity", alpha=0.1, offsets="none", max_iter=fit._n_iter, random_state=0
    )
    means = np.broadcast_to(np.nanmean(seen, axis=0), seen.shape)
    expected = [
        rmse(small, each, observed=hidden)
        for each in (fit.reconstruct().values, linear.reconstruct().values, means)
    ]
    assert list(state.fit.errors) == ["this model", "linear", "average"]
    assert list(state.fit.errors.values()) == pytest.approx(expected)
    assert state.fit.held_out[20] == pytest.approx(state.fit.errors["this model"])
    state.set("missing", 0.0)
    ended(state)
    assert state.fit.errors == {}  # what a model has seen does not tell it from another


NAMES = {"user": "who", "item": "film", "rating": "stars"}
TABLE = datasets.make_ratings(20, 15, 80, random_state=0)[[*NAMES]].rename(columns=NAMES)
COLUMNS = {"row": "who", "column": "film", "value": "stars"}
SHORT = {"rank": 2, "alpha": 15.0, "iterations": 5, "validation": 0.0}
LONG = {"rank": 8, "alpha": 15.0, "iterations": 30, "patience": 3}


@pytest.mark.parametrize(
    ("X", "settings"),
    [
        (GENERATED, LONG | {"validation": 0.0}),
        (GENERATED, LONG | {"validation": 0.2}),
        (TABLE, SHORT | COLUMNS),
        (nmd.observations_from_table(TABLE, **COLUMNS), SHORT),
        (sparse.random_array((12, 9), density=0.5, rng=0, format="csr"), SHORT),
    ],
    ids=["all seen", "validated", "table", "observations", "sparse"],
)
def test_copied_code_repeats_a_completion(X, settings):
    state = RatingsState(X, **settings)
    ended(state)
    repeats(state, X=X)


@pytest.fixture(scope="module")
def study():
    made = nmd.Study(
        datasets.digits(40), method=["admm", "svd"], rank=[1, 3, 5], missing=[0.2, 0.5],
        n_splits=2, max_iter=10, alpha=0,
    )  # fmt: skip
    made.run(progress=False)
    return made


def test_a_chosen_point_has_the_scores_of_the_present_measure(study):
    explorer = widgets.explore(study, panel="missing")
    for point in explorer.dots["study"]["points"]:
        act(explorer, "set", name="metric", value="held_out_rmse")
        act(explorer, "point", id=point["id"])
        assert explorer.facts["point"] == point["id"]
        labels = explorer.state.selected
        for metric in ("seconds", "observed_rmse", "held_out_mae"):
            act(explorer, "set", name="metric", value=metric)
            cells = study.results[metric].sel(labels)
            mean, spread = float(cells.mean()), float(cells.std(ddof=1))
            caption = table(explorer, "fits")["caption"]
            assert caption.endswith(f": {mean:.4g} (SD over seeds {spread:.2g})")
            assert all(str(label) in caption for label in labels.values())
        explorer.state.selected = None


def test_a_study_has_paired_differences_and_says_where_the_grid_ends(study):
    explorer = widgets.explore(study)
    ranking, tested = table(explorer, "models"), study.rank_test("held_out_rmse")
    assert ranking["head"][-1] == "worse by, 95 %"
    ends = [f"{low:.2g} to {high:.2g}" for low, high in tested[["low", "high"]].values[1:]]
    assert [row[-1] for row in ranking["rows"]] == ["", *ends]
    best = tested.reset_index().iloc[0]
    ends = " (rank at the end of the grid)" * (best["rank"] in (1, 5))
    assert f"best is {best['algorithm']}, rank {best['rank']}{ends}. Its " in sentence(explorer)
    assert "bands: ± SD over seeds" in explorer.dots["study"]["title"]
    one = widgets.explore(study.results.isel(seed=[0]))
    assert "worse by" not in table(one, "models")["head"][-1]
    assert "SD" not in one.dots["study"]["title"]


def test_a_study_is_read_again_and_its_code_prints_the_numbers_of_the_page(study, tmp_path, capsys):
    explorer = widgets.explore(study)
    act(explorer, "save", filename=f"{tmp_path}/study.nc")
    assert not explorer.status["failed"], explorer.status["message"]
    xr.testing.assert_identical(nmd.load(tmp_path / "study.nc"), study.results)
    for shown in (explorer, widgets.explore(tmp_path / "study.nc")):
        exec(shown.code().replace("...", "study"), {"study": study})
        words = capsys.readouterr().out.split()
        numbers = [float(word) for word in words if re.fullmatch(r"-?[\d.]+", word)]
        assert pytest.approx(shown.status["headline"]["off"], rel=1e-4) in numbers
        act(shown, "point", id=1)
        exec(shown.code().replace("...", "study"), {"study": study})
        printed = capsys.readouterr().out.split()[-1]
        mean = study.results[shown.state.values["metric"]].sel(shown.state.selected).mean()
        assert float(printed) == pytest.approx(float(mean))
    assert "import netcdf" not in shown.code()


@pytest.mark.parametrize(
    ("settings", "name", "message"),
    [
        ({"rank": 16}, "rank", "rank=16 exceeds the smaller side of X, 15"),
        ({"nonlinearity": "minmax", "low": 2.0}, "high", "a > b"),
        ({"rho": "bal"}, "rho", "rho='bal' is unknown"),
        ({"seed": -1}, "seed", "random_state=-1"),
    ],
)
def test_a_wrong_setting_is_named_unless_it_has_no_effect(small, settings, name, message):
    state = plain(MatrixState, small, rank=2, low=5.0, high=7.0)
    assert state.problems() == {}
    for setting, value in {"low": 0.0, "high": 1.0, **settings}.items():
        state.set(setting, value)
    ((named, said),) = state.problems().items()
    assert named == name
    assert message in said
    negative = plain(MatrixState, small - 10.0, rank=2, loss="kl")
    assert "negative" in negative.problems()["loss"]
    check_all_refused([
        ("'ranks' is no setting", lambda name: state.set(name, 3), "ranks"),
        ("sparse", lambda X: plain(MatrixState, X), sparse.eye_array(4)),
    ])  # fmt: skip


# How sure? --------------------------------------------------------------------------------------


TUNE = 100
MODEL = {"rank": 2, "alpha": 15.0, "iterations": 5}


def sampled(state):
    state.how_sure()
    assert state.active.join(PATIENCE)
    assert state.posterior is not None, state.active.message
    return state.posterior


def stop_at(monkeypatch, sweep):
    """Press Stop at a sweep."""
    show = Background.show

    def shown(self, run, message, **now):
        if run.done == sweep:
            self.stop()
        show(self, run, message, **now)

    monkeypatch.setattr(Background, "show", shown)


@pytest.mark.parametrize("validation", [0.0, 0.2])
def test_the_code_repeats_the_draws(validation):
    state = RatingsState(
        GENERATED, **MODEL, draws=20, validation=validation, offsets="rows", seed=3
    )
    posterior = sampled(state)
    assert state.sample.phase == "finished"
    assert state.sample.done == state.sample.planned == TUNE + 20
    code = state.code(library()["generated"])
    assert "complete" not in code
    names = executed(code)
    assert names["posterior"].draws.identical(posterior.draws)
    found = state.sample.findings
    entries = names["held_out" if validation else "observed"]
    assert found.held_out == (validation > 0)
    i, j, x = entries.entries()
    low, high = posterior.predict_interval(i, j).T
    assert found.held[0.9] == pytest.approx(np.mean((low <= x) & (x <= high)), abs=0.01)
    assert found.summary.startswith(f"90 % intervals cover {100 * found.held[0.9]:.0f} % of")
    ax = posterior.plot.predictions(entries, max_points=MAX_CHECKED)  # as the code has it
    assert ax.get_title().startswith(f"{100 * found.held[0.9]:.0f} % of the 90 % intervals")


@pytest.mark.parametrize("keep_all", [True, False])
def test_stop_keeps_what_there_is(monkeypatch, keep_all):
    if not keep_all:
        monkeypatch.setattr("nmd_lab.request.options.KEPT_BYTES", 4 * 700 * 3 * 30)
    stop_at(monkeypatch, TUNE + 37)
    state = RatingsState(GENERATED, **MODEL, draws=500, offsets="none")
    posterior = sampled(state)
    assert state.sample.phase == "stopped"
    assert state.sample.message.startswith("stopped after 37 draws")
    assert (posterior.draws.sizes["draw"] == 37) == keep_all
    monkeypatch.undo()
    names = executed(state.code(library()["generated"]))
    assert names["posterior"].draws.identical(posterior.draws)


def test_stop_while_tuning_leaves_nothing(monkeypatch):
    stop_at(monkeypatch, 30)
    state = RatingsState(GENERATED, **MODEL)
    state.sample_now()
    assert state.sample.join(PATIENCE)
    assert (state.sample.phase, state.posterior) == ("stopped", None)
    assert state.sample.message.startswith("stopped before the first draw")
    assert "sample" not in state.code(library()["generated"])


def test_a_new_run_forgets_the_posterior():
    state = RatingsState(GENERATED, **MODEL, draws=3)
    sampled(state)
    state.start()
    assert state.posterior is None
    assert state.active is state.fit
    state.fit.join(PATIENCE)
    sampled(state)
    state.proceed()
    assert state.active is state.fit
    assert state.posterior is not None  # it does not depend on the fit
    state.fit.join(PATIENCE)
    assert "nmd.sample" in state.code(library()["generated"])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"rank": "auto"}, "the rank is not chosen yet"),
        ({"nonlinearity": "auto"}, "the nonlinearity is not chosen yet"),
        ({"rank": 301}, "rank=301 exceeds"),
        ({"draws": 0}, "draws=0"),
        ({"alpha": -1.0}, ""),
        ({"iterations": 0}, ""),
    ],
)
def test_why_there_can_be_no_draws(settings, reason):
    state = RatingsState(GENERATED, **MODEL | settings)
    why = state.cannot_sample()
    assert why.startswith(reason)
    assert bool(why) == bool(reason)


def test_a_posterior_does_not_see_what_is_hidden_or_painted_over():
    digits = nmd.datasets.digits(40)
    settings = {"rank": 2, "missing": 0.3, "alpha": 1.0, "draws": 10, "iterations": 5}
    explorer = sure(plain(widgets.explore, digits, **settings))
    seen, _ = nmd.split_observed(digits, 0.3, random_state=0)
    model = {"rank": 2, "nonlinearity": "relu", "offsets": "none"}
    expected = nmd.sample(seen, **model, draws=10, random_state=0)
    assert expected.draws.identical(explorer.posterior.draws)
    assert explorer.state.sample.findings.held_out
    explorer.brush([(4, 4)], 3.0)
    assert explorer.join(PATIENCE)
    sure(explorer)
    data = explorer.state.data
    assert not data.mask[0, 36]
    assert explorer.state.sample.unseen[0].size == np.count_nonzero(~data.mask)
    variables = {}
    code = explorer.code().replace("X = ...", "X = nmd.datasets.digits(40)")
    exec(code.replace("posterior.plot.predictions(held_out, max_points=5000)", ""), variables)
    assert variables["posterior"].draws.identical(explorer.posterior.draws)


def test_an_open_page_draws_in_the_background_and_a_new_run_ends_that():
    explorer = widgets.Explorer(GENERATED, **MODEL, draws=20)
    acted(explorer, "opened")
    wait_for(lambda: explorer.facts["lists"]["top"][0]["ends"])
    assert explorer.status["message"].startswith("not settled after 5 iterations")  # of the fit
    assert explorer.posterior.draws.sizes["draw"] == 20
    explorer.state.set("draws", 100_000)
    done(explorer)
    wait_for(lambda: explorer.state.sample.phase == "running")
    assert not explorer.status["buttons"]["run"]["disabled"]
    act(explorer, "sample")  # from now on it is shown, and can be stopped
    wait_for(lambda: "drawing: " in explorer.status["message"])
    acted(explorer, "stop")

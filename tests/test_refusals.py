"""What is refused, in one sentence that names the argument: one table of (call, sentence)."""

import copy
import inspect

import numpy as np
import pandas as pd
import pytest
from helpers import KINDS, check_all_refused, check_sentence
from scipy import sparse
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

import nmd_lab as nmd
from nmd_lab._runtime import checks
from nmd_lab.selection.trials import Trials

RNG = np.random.default_rng(0)
GOOD = np.abs(RNG.normal(size=(8, 6)))
LEVELS = np.column_stack(
    [GOOD[:, :2] - 1, GOOD[:, 2] > 0.5, 1.0 + np.digitize(GOOD[:, 3], [0.3, 1])]
)
STORED = sparse.csr_array(GOOD)
ALL, FITS, SAMPLE = ("decompose", "complete", "sample"), ("decompose", "complete"), ("sample",)
COMPLETE, BATCH, TABLES = ("complete",), ("decompose",), ("sample", "complete")
NUMBERS = [1.0, 2.0, 4.0, 3.0]
BOTH = {"w_constraint": "nonnegative", "h_constraint": "nonnegative"}
ONE_FIT = {"alpha": 0.1, "max_iter": 2, "progress": False}
MASK = RNG.random(GOOD.shape) < 0.2
EYE = sparse.csr_array(np.eye(6))
PEOPLE = pd.DataFrame(GOOD[:, :5], columns=["height", "weight", "smoker", "visits", "income"])
PEOPLE = {"X": PEOPLE.assign(smoker=LEVELS[:, 2], income=-1.0), "rank": 2, "alpha": 0.5}
PEOPLE |= {"nonlinearity": None}
OF_TWO = GroupKFold(2)
ORDINAL = {"loss": ["frobenius", "frobenius", "logistic", "ordinal"], "X": LEVELS, "rank": 2}


def changed(value, dtype=float):
    """Return good data with another value."""
    X = GOOD.astype(dtype)
    X[2, 3] = value
    return X


def choosing(rank="auto", **choice):
    """Return arguments of a call that chooses in some way."""
    return {"rank": rank, "validation": nmd.Choice(**choice)}


def counts(value, **others):
    """Return arguments by which the rank of sparse counts is to be chosen."""
    usual = {"rank": "auto", "nonlinearity": "identity", "loss": "kl"}
    return {"X": value * EYE} | usual | others


def impossible(result):
    """Return an object that is no constraint."""
    prox = lambda self, rows, step: result(rows)  # noqa: E731
    return {"w_constraint": type("Broken", (nmd.FactorConstraint,), {"prox": prox})()}


def table(column):
    """Return a table with a bad column."""
    return {"X": pd.DataFrame({"a": NUMBERS, "b": NUMBERS, "x": column}), "rank": 1}


REFUSED = [
    (ALL, "X", {"X": changed(-np.inf)}),
    (ALL, "X|observed", {"observed": np.zeros((8, 6), dtype=bool)}),
    (BATCH, "X has no observed entry in row 2: drop it, or use complete", {
        "X": np.where(np.arange(8)[:, None] == 2, np.nan, GOOD)}),
    (BATCH, "nonlinearity='monotone', which is learned, does not go", {
        "X": STORED, "nonlinearity": "monotone"}),
    (ALL, "X", {"X": changed(-1.0), "loss": "kl"}),
    (ALL, "X", {"X": None}),
    *((ALL, "rank", {"rank": value}) for value in (0, -1, 7, 2.5, True, "3", None, "automatic")),
    (ALL, "nonlinearity", {"nonlinearity": "rellu"}),
    (BATCH, "nonlinearity", {"nonlinearity": None}),
    (ALL, "loss", {"loss": "l2"}),
    (ALL, "init", {"init": "svdd"}),
    (FITS, "init", {"init": (np.ones((7, 3)), np.ones((3, 6)))}),
    (FITS, "init", {"init": (np.ones((8, 3)), np.ones((6, 3)))}),
    (FITS, "init", {"init": (np.ones((8, 2)), np.ones((2, 6)))}),
    (FITS, "init", {"init": (np.full((8, 3), np.nan), np.ones((3, 6)))}),
    (FITS, "init", {"init": (np.ones((8, 3)),)}),
    (SAMPLE, "init", {"init": GOOD}),
    (SAMPLE, "init", {"init": None}),
    (SAMPLE, "init", {"init": nmd.complete(GOOD[:7], 3, **ONE_FIT)}),
    (SAMPLE, "init", {"init": nmd.complete(GOOD, 2, **ONE_FIT)}),
    *((FITS, "n_init", {"n_init": value}) for value in (0, 1.5)),
    *((FITS, "max_iter", {"max_iter": value}) for value in (-1, 1.5)),
    *((FITS, "tol", {"tol": value}) for value in (-1e-3, np.nan)),
    *((FITS, "solver", {"solver": value}) for value in ("papre", {"rho": 1.0}, None)),
    *((ALL, "compute", {"compute": value}) for value in ({"threads": 1}, "cuda")),
    *((FITS, "alpha", {"alpha": value}) for value in (-0.1, np.nan, None, "automatic")),
    *((FITS, "offset_alpha", {"offset_alpha": value}) for value in (-0.1, np.inf, "automatic")),
    *((FITS, "validation", {"validation": value}) for value in (0, 1.0, -0.1, np.nan, True, "0.1")),
    (FITS, "did you mean 'nonnegative'", {"w_constraint": "nonnegativ"}),
    (FITS, "h_constraint=3 is unknown", {"h_constraint": 3}),
    (FITS, r"give Simplex\(\)", {"h_constraint": nmd.Simplex}),
    (FITS, "give one of the two", dict.fromkeys(BOTH, "orthonormal")),
    (FITS, "polish=True does not go with w_constraint", BOTH | {"solver": nmd.ADMM(polish=True)}),
    (FITS, "homotopy=True does not go", BOTH | {"solver": nmd.ADMM(homotopy=True)}),
    (FITS, "needs a ridge", {"init": "path", "alpha": 0}),
    (FITS, "constraints", {"init": "path", "alpha": 1, "w_constraint": "nonnegative"}),
    (ALL, "offsets", {"offsets": "row"}),
    *((ALL, "time_limit", {"time_limit": value}) for value in (-1.0, np.nan)),
    (ALL, "callback", {"callback": 3}),
    (ALL, "progress", {"progress": "yes"}),
    *((ALL, "dtype", {"dtype": value}) for value in (np.int32, "float33")),
    *((ALL, "random_state", {"random_state": value}) for value in ("seed", -1, 1.5)),
    (COMPLETE, "X .*infinity at row 2, column 3", {"X": sparse.csr_array(changed(np.inf))}),
    (COMPLETE, "'kl'", {"X": sparse.csr_array(changed(-1.0)), "loss": "kl"}),
    *((SAMPLE, "draws", {"draws": value}) for value in (0, 1.5)),
    (SAMPLE, "tune", {"tune": -1}),
    (SAMPLE, "chains", {"chains": 0}),
    (SAMPLE, "keep", {"keep": 0}),
    (SAMPLE, "^bounds='a' is no dict", {"bounds": "a"}),
    (FITS, r"^order= is not an option of a fit: use sample\(\)", {"order": "a"}),
    (SAMPLE, r"^bounds\['a'\]=\(1, 0\) is no pair", {"bounds": {"a": (1, 0)}}),
    (SAMPLE, "^bounds= goes with the columns of a table", {"bounds": {0: (0, 9)}}),
    (ALL, "is in no existing folder", {"compute": nmd.Compute(checkpoint="no folder/run.nc")}),
    (SAMPLE, "client", {"compute": nmd.Compute(client="active")}),
    (SAMPLE, "device", {"compute": nmd.Compute(device="cpu")}),
    (SAMPLE, "memory_limit", {"compute": nmd.Compute(memory_limit=1)}),
    (SAMPLE, "work_dir", {"compute": nmd.Compute(work_dir=".")}),
    *((SAMPLE, "noise", {"noise": value}) for value in ("befor", None)),
    (SAMPLE, "noise", {"noise": "before", "loss": "l1"}),
    (SAMPLE, "noise", {"noise": "before", "X": changed(-1.0), "nonlinearity": "relu"}),
    (SAMPLE, "nonlinearity", {"loss": "ordinal", "nonlinearity": "relu"}),
    (SAMPLE, "X", {"loss": nmd.losses.Ordinal([1, 2])}),
    (SAMPLE, "X", {"X": np.ones((8, 6)), "loss": "ordinal"}),
    (SAMPLE, "loss= for each entry", ORDINAL | {
        "loss": (["frobenius", "l1"], np.zeros((8, 4), int))}),
    (SAMPLE, "cut points are learned", ORDINAL | {"nonlinearity": ["relu"] * 4}),
    (SAMPLE, "noise", ORDINAL | {
        "noise": "before", "nonlinearity": ["square", "relu", "identity", "identity"]}),
    (SAMPLE, "loss='frobenius' of column 'x' is for numbers",
     table([True, False, True, False]) | {"loss": {"x": "frobenius"}}),
    (SAMPLE, "no observed value in column 'x': drop", table([np.nan] * 4)),
    (COMPLETE, "no observed value in column 'x': drop.*MatrixCompletion", table([np.nan] * 4)),
    (SAMPLE, "no observed value in column 'x'", table(pd.Categorical([None] * 4, ["p", "q"]))),
    (SAMPLE, "1200 categories in column 'x'.*merge",
     {"X": pd.DataFrame({"a": np.arange(1200.0), "x": pd.Categorical(range(1200))}), "rank": 1}),
    (SAMPLE, "infinity at row 1, column 2", table([1.0, np.inf, 2.0, 3.0])),
    (TABLES, "X has one row", {"X": pd.DataFrame({"a": [1.0], "b": [2.0]}), "rank": 1}),
    (TABLES, "column 'a' twice: make", {"X": pd.DataFrame(np.eye(3), columns=["a", "b", "a"])}),
    (SAMPLE, "with weights", {
        "X": GOOD.round(), "nonlinearity": "relu", "loss": "kl", "at_most": MASK,
        "weights": np.full(GOOD.shape, 2.0)}),
    # what validation= cannot choose or hold out
    (COMPLETE, r"^ranks=\[1, 2\] of nmd\.Choice are for rank", choosing(2, ranks=[1, 2])),
    (COMPLETE, r"^alphas=\[1\.0\] .* alpha=0\.1 is given", choosing(alphas=[1]) | {"alpha": 0.1}),
    (COMPLETE, r"^ranks=\[1, 7\] has 7, which exceeds", choosing(ranks=[1, 7])),
    (COMPLETE, "has nothing to choose, since", choosing(2, metric="mae") | {"alpha": 0.1}),
    (COMPLETE, "^metric='log_score' needs a likelihood, which loss=Huber",
     choosing(metric="log_score") | {"loss": nmd.losses.Huber(1.0)}),
    (COMPLETE, "^splitter='blocks' moves the missing regions of X", choosing(splitter="blocks")),
    (COMPLETE, "cannot split the 8 rows .*: give groups=", choosing(splitter=OF_TWO)),
    (COMPLETE, "cannot split the 8 rows of X", choosing(splitter=TimeSeriesSplit(30))),
    (COMPLETE, r"^splitter=StratifiedKFold\(.*shuffle=True\) cannot split",
     choosing(splitter=StratifiedKFold(2, shuffle=True))),
    (COMPLETE, "holds out nothing|no entry", choosing(splitter=PredefinedSplit([-1] * 8))),
    (COMPLETE, "holds out nothing, since each row and column keeps", {
        "X": GOOD[:, :1], "rank": 1, "validation": KFold(5)}),
    (COMPLETE, r"^validation has shape \(3, 6\): give it the shape of",
     choosing(splitter=MASK[:3])),
    (COMPLETE, "^validation holds out no observed entry of X", choosing(splitter=MASK & False)),
    (COMPLETE, r"^splitter\[1\] holds out every observed", choosing(splitter=[MASK, MASK | True])),
    (COMPLETE, r"^groups has shape \(6,\): give a label for each of the 8 rows",
     choosing(splitter=OF_TWO, groups=np.arange(6))),
    (COMPLETE, "^groups has no label for row 4: give one to each row",
     choosing(splitter=OF_TWO, groups=np.where(np.arange(8) == 4, np.nan, 1.0))),
    (COMPLETE, "^groups has no label for row 1: give one to each row",
     choosing(splitter=OF_TWO, groups=pd.Series(["a", None] * 4, dtype="string"))),
    (COMPLETE, "^groups='patient' is no column, index level or coordinate of the rows of X",
     choosing(splitter=OF_TWO, groups="patient")),
    (COMPLETE, r"^validation lacks the label 'r5' of X: give it all labels", {
        "X": pd.DataFrame(GOOD, [f"r{i}" for i in range(8)]),
        "validation": pd.DataFrame(MASK, [f"r{i}" for i in range(8)]).iloc[:5]}),
    *((COMPLETE, "holds out none of the 6 observed entries, since each", {
        "X": X, "rank": 1, "alpha": 0, "validation": 0.1})
      for X in (np.ones((1, 6)), np.ones((6, 1)), EYE, np.where(np.eye(6) > 0, 2.0, np.nan))),
    *((FITS, "^validation has no observed entry", {"validation": nothing})
      for nothing in (np.full(GOOD.shape, np.nan), sparse.csr_array(GOOD.shape))),
    (FITS, "^validation holds out every observed entry of X", {"validation": np.ones(GOOD.shape)}),
    (FITS, "^validation has 6 rows: give the 8 of X", {"validation": GOOD.T}),
    (FITS, "^validation has 1 dimensions", {"validation": GOOD[0]}),
    (FITS, "^validation has dtype", {"validation": GOOD.astype(str)}),
    (BATCH, "X has the value 0.5: give a rank", counts(0.5)),
    (BATCH, "X has the value -1: give a rank", counts(-1.0, loss="frobenius")),
    (BATCH, "L1.* is no loss of means: give a rank", counts(1.0, loss="l1")),
    (BATCH, "nonlinearity=.*Soft.*: give a rank", counts(1.0, nonlinearity="softplus")),
    (BATCH, "metric='mae' .*: give a rank", counts(1.0, validation=nmd.Choice(metric="mae"))),
    (BATCH, "limits: give a rank", counts(1.0, at_most=np.eye(6, dtype=bool))),
    *((BATCH, f"{name}='auto' does not go with a sparse X", counts(1.0, **{name: "auto"}))
      for name in ("alpha", "loss", "nonlinearity")),
    # parts of columns, constraints, and what does not go together
    (COMPLETE, "loss has the column 'sex'", PEOPLE | {"loss": {"sex": "logistic"}}),
    (COMPLETE, "In column 'height', X holds the value",
     PEOPLE | {"loss": {"height": "logistic"}}),
    (COMPLETE, "In column 'income'", PEOPLE | {"loss": {"income": "kl"}}),
    (COMPLETE, "loss has 3 parts: give one for each of the 5",
     PEOPLE | {"loss": ["frobenius"] * 3}),
    (COMPLETE, "position 1 in a list of 1",
     PEOPLE | {"loss": (["l1"], np.array([0, 0, 0, 1, 0]))}),
    (COMPLETE, "shape", PEOPLE | {"loss": (["l1"], np.zeros(3, int))}),
    (COMPLETE, "tan", PEOPLE | {"nonlinearity": {"height": "tan"}}),
    *((BATCH, "Broken", impossible(result))
      for result in (lambda r: r[:, :1], lambda r: r * np.nan, lambda r: r + 1)),
    *((BATCH, r"homotopy=True .*no interval.*MinMax.*'auto'", {
        "nonlinearity": f, "solver": nmd.ADMM(homotopy=True)})
      for f in ("relu", "square", "modulus", "identity", nmd.MinMax(0, np.inf))),
    (COMPLETE, "homotopy=True does not go with a loss", {
        "nonlinearity": "minmax", "alpha": 0.1, "loss": {},
        "solver": nmd.ADMM(homotopy=True)}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "named", "options"),
    [(verb, named, options) for verbs, named, options in REFUSED for verb in verbs],
)
def test_bad_calls_are_refused_before_any_work(verb, named, options, monkeypatch):
    worked, run = [], Trials.run
    monkeypatch.setattr(Trials, "run", lambda *given: worked.append("trial") or run(*given))
    arguments = {"X": GOOD, "rank": 3, "progress": False}
    arguments |= {} if verb == "sample" else {"nonlinearity": "relu"}
    arguments |= {"callback": lambda state: worked.append("iteration") or True} | options
    with pytest.raises(KINDS) as caught:
        getattr(nmd, verb)(**arguments)
    assert not worked
    check_sentence(caught.value, rf"(?<!\w)({named})(?!\w)")


SHORT = {"n_components": 2, "inference": "sample", "n_draws": 8, "n_tune": 4}
COMPLETION, NMD = nmd.MatrixCompletion, nmd.NMD


def bad(kind, words, *values):
    """Return a line of a table: values that are refused when a setting is made."""
    name = words.partition("=")[0]
    return rf"(?<!\w)({words})(?!\w)", lambda value: kind(**{name: value}), *values


def test_bad_settings_and_parameters_are_refused():
    sampler = lambda options: COMPLETION(**SHORT | options).fit(GOOD)  # noqa: E731
    model = lambda options: NMD(**{"n_components": 2} | options).fit(GOOD)  # noqa: E731
    check_all_refused([
        bad(nmd.ADMM, "rho", "balance", 0.0, -1.0, np.nan, np.inf, None),
        bad(nmd.ADMM, r"epsilon=.* is out of range: give a finite number >= 0\.$", -1e-9, np.inf),
        bad(nmd.ADMM, "epsilon=.* is not a number: give one >= 0", "1", None, False, 1j, [1]),
        bad(nmd.ADMM, r"initial_rho=0 is out of range: give a finite number > 0\.$", 0),
        bad(nmd.ADMM, r"split='observd' is unknown: did you mean 'observed'\?$", "observd"),
        bad(nmd.ADMM, r"refine=.* unknown: choose one of \[True, False\]", "auto", 1, np.ones(2)),
        bad(nmd.ADMM, "homotopy", None),
        bad(nmd.ADMM, "polish", "yes"),
        bad(nmd.ADMM, "patience", 0),
        bad(nmd.ADMM, "limit_noise", -1.0, "automatic"),
        bad(nmd.Compute, r"threads=.* is too small: give a whole number >= 1\.$", 0),
        bad(nmd.Compute, r"threads=.* is not an integer: give a whole .* 1\.$", 1.5, True, "3"),
        bad(nmd.Compute, "device", 3),
        bad(nmd.Compute, "memory_limit", 0),
        bad(nmd.Compute, "checkpoint_every", -1),
        bad(nmd.Compute, "work_dir", "no such folder"),
        bad(nmd.Compute, "checkpoint", 3),
        bad(nmd.losses.Quantile, r"q=.* fraction above 0 and below 1\.$", 0, 1, -0.1, np.nan),
        bad(nmd.losses.Quantile, "q=.* is not a number: give a fraction", "1", None, False, [1]),
        bad(nmd.Choice, "ranks", [0], "auto", 3, [], [1.5]),
        bad(nmd.Choice, "alphas", [-1]),
        bad(nmd.Choice, "metric", "rsme"),
        bad(nmd.Choice, "splitter", 1.5, True, "block", KFold, [MASK, GOOD]),
        bad(nmd.Choice, "groups", "a"),
        (r"\b[ab]\b", lambda bounds: nmd.MinMax(*bounds), (np.nan, 1), (0, np.nan), (1, 0)),
        ("nonlinearity='auto' .*give one by name", sampler, {"nonlinearity": "auto"}),
        ("loss='auto' .*give one by name", sampler, {"loss": "auto"}),
        (r"alpha=0\.5 is of a fit.*leave out alpha", sampler, {"alpha": 0.5}),
        ("offset_alpha=1 is of a fit", sampler, {"offset_alpha": 1}),
        ("solver='paper' is of a fit", sampler, {"solver": "paper"}),
        ("solver=ADMM.* is of a fit", sampler, {"solver": nmd.ADMM(split="observed")}),
        (r"validation=0\.1 is of a fit", sampler, {"validation": 0.1}),
        ("n_draws=0 is too small", sampler, {"n_draws": 0}),
        ("n_tune=-1 is too small", sampler, {"n_tune": -1}),
        ("inference='samples' is unknown.*sample", sampler, {"inference": "samples"}),
        ("order='a' is no dimension", sampler, {"order": "a"}),
        ("order= is of a posterior.*'sample'", sampler, {"inference": "fit", "order": "a"}),
        ("n_components=30 .* n_samples=8 and n_features=6", model, {"n_components": 30}),
        ("offsets='both'.*MatrixCompletion", model, {"offsets": "both"}),
        ("offsets='auto'.*'columns'", model, {"alpha": "auto", "offsets": "auto"}),
        ("nonlinearity='rellu'", model, {"nonlinearity": "rellu"}),
    ])  # fmt: skip


def test_other_calls_are_refused():
    square, ones = np.ones((2, 3)), np.ones((4, 2))
    few = {"max_iter": 2, "alpha": 0.3}
    fitted, sampled = NMD(3, **few).fit(GOOD), COMPLETION(**SHORT).fit(GOOD)
    completed = COMPLETION(2, **few).fit(GOOD)
    frame = pd.DataFrame(GOOD).add_prefix("c")
    started = COMPLETION(2, **few).partial_fit(frame)
    kinds = pd.DataFrame({"a": np.arange(8.0), "b": pd.Categorical(list("xyxyxyxy"))})
    labelled = pd.DataFrame(square, ["a", "b"])
    rmse, nobody = nmd.metrics.rmse, {"observed": square > 2}
    check_all_refused([
        ("^initial_rho=2.0 goes with a rule that has a name",
         lambda rho: nmd.ADMM(rho=rho, initial_rho=2.0), 1.0, nmd.PenaltyRule()),
        (r"Y has shape \(3, 2\): give it the shape of X", lambda Y: rmse(square, Y), square.T),
        ("X has 2 rows: give the 3 of Y", lambda X: rmse(X, square.T),
         sparse.csr_array(square)),
        ("Y has no value at 42 of the 48 observed entries of X", lambda Y: rmse(STORED, Y),
         sparse.csr_array(np.eye(8, 6))),
        (r"observed has shape \(3,\)", lambda m: rmse(square, square, observed=m), [True] * 3),
        (r"weights has shape \(3,\)", lambda w: rmse(square, square, weights=w), [1] * 3),
        ("weights holds a negative", lambda w: rmse(square, square, weights=w), -square),
        ("no observed entry", lambda given: rmse(square, square, **given), nobody,
         {"weights": 0 * square}),
        ("labels along 'row', such as 'z': select those of Y", lambda X: rmse(X, labelled),
         pd.DataFrame(square, ["a", "z"])),
        ("W has 2 columns: give the 3", fitted.inverse_transform, ones),
        *((f"{name}='auto' .* sparse X.*MatrixCompletion", lambda to: NMD(**to).fit(STORED), given)
          for name, given in [("n_components", {}), ("alpha", {"n_components": 2, "alpha": "auto"}),
                              ("loss", {"n_components": 2, "loss": "auto"})]),
        ("X has the column 0 twice: make", lambda of: of.fit(frame.set_axis([0] * 6, axis=1)),
         NMD(2), COMPLETION(2)),
        ("return_std=True .* inference='sample'",
         lambda at: completed.predict(*at, return_std=True), [[0], [1]], [GOOD]),
        (r"sparse: .* posterior_\.predict", sampled.predict, STORED),
        (r"sparse: .* decomposition_\.predict", completed.predict, STORED),
        ("exceeds the smaller of n_samples=2", COMPLETION(5, **few).partial_fit, GOOD[:2]),
        ("would be lost in transform", NMD(2, offsets="rows").partial_fit, GOOD),
        ("categories or dates in column 'b'.*use fit", COMPLETION(1).partial_fit, kinds),
        ("frame is a ndarray: give a DataFrame", lambda X: nmd.check_imputer(None, X), GOOD),
        ("give all batches alike", COMPLETION(2, **few).partial_fit(GOOD).partial_fit, STORED),
    ])  # fmt: skip
    with pytest.raises(ValueError, match="feature names should match"):  # scikit-learn's sentences
        started.partial_fit(frame.iloc[:, ::-1])
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'"):
        COMPLETION(**SHORT).partial_fit(GOOD)


def test_an_array_of_dask_is_not_sampled():
    lazy = pytest.importorskip("dask.array").from_array(GOOD)
    with pytest.raises(ValueError, match=r"X of Dask does not go with sample\(\): give X, or some"):
        nmd.sample(lazy, 3)


# Seeds, and names of options ---------------------------------------------------------------------


def test_generators():
    given = np.random.default_rng(3)
    assert checks.as_generator(given) is given
    for seeds in ((5, 5), (np.random.RandomState(0), np.random.RandomState(0))):
        one, two = (checks.as_generator(seed).random() for seed in seeds)
        assert one == two
    for state in (np.random.default_rng(0), np.random.RandomState(0)):
        before = copy.deepcopy(state).bytes(8)
        checks.check_seed(state)  # without a draw
        assert state.bytes(8) == before


OF_OTHERS = {
    "verbose": "progress", "n_components": "rank", "max_iterations": "max_iter",
    "n_iter": "max_iter", "seed": "random_state", "random_seed": "random_state",
    "lambda_": "alpha", "reg": "alpha", "regularization": "alpha", "callbacks": "callback",
    "n_jobs": "compute", "threads": "compute", "rho": "solver", "mask": "observed",
    "beta_loss": "loss", "max_iters": "max_iter",
}  # fmt: skip
"""Names in other libraries, and a typing error."""


def test_names_of_other_libraries():
    for name, option in OF_OTHERS.items():
        message = rf"^{name}= is not an option of a fit: did you mean '{option}'\?$"
        with pytest.raises(TypeError, match=message):
            nmd.decompose(np.ones((4, 3)), 1, **{name: 1})
    arguments = set(inspect.signature(nmd.decompose).parameters)
    assert set(checks.SYNONYMS.values()) <= arguments
    assert not set(checks.SYNONYMS) & arguments

"""Checks of arguments: accepted values, refused values, and the sentences."""

import copy
import inspect
import math

import numpy as np
import pytest
from refused import check_all_refused

import nmd_lab as nmd
from nmd_lab._runtime import checks


def number(given):
    value, bounds = given
    return checks.check_number("a", value, **bounds)


def word(value):
    return checks.check_word("f", value, ["relu", "square"], " or an object")


def test_what_is_refused():
    check_all_refused([
        (r"^n=.* is (too small|not an integer): give a whole number >= 1\.$",
         lambda n: checks.check_integer("n", n, 1), 0, 1.0, True, "3"),
        (r"^a=-1 is out of range: give a finite number >= 0\.$", number, (-1, {"smallest": 0})),
        (r"give a finite number > 0\.$", number, (0, {"above": 0})),
        (r"^a=nan is out of range: give a finite number\.$", number, (math.nan, {})),
        ("^a=.*inf is out of range", number, (math.inf, {}), (-math.inf, {})),
        ("^a=.* is not a number: give one >= 0", lambda a: checks.check_number("a", a, 0),
         "1", None, False, 1j, [1]),
        ("^a=.* is not a number: give a fraction", lambda a: checks.check_share("a", a),
         "1", None, False, 1j, [1]),
        ("^s=.* is out of range: give a fraction from 0", lambda s: checks.check_share("s", s),
         1, -0.1, math.nan),
        (r"fraction above 0 and below 1\.$", lambda s: checks.check_share("s", s, zero=False),
         1, -0.1, math.nan),
        ("^w=.* is unknown: ", lambda w: checks.check_word("w", w, ["auto", None, True]),
         "automatic!", 1, 0, False, np.ones(2), ["auto"], 1.0),
        (r"^f='rellu' is unknown: did you mean 'relu'\?$", word, "rellu"),
        (r"choose one of \['relu', 'square'\] or an object\.$", word, "xyz"),
        ("^f='b' is unknown", lambda f: checks.check_words("f", f, ["a"]), ["a", "b"]),
        (r"^alfa= is not an option of a fit: did you mean 'alpha'\?$",
         lambda names: checks.check_option_names(names, ["alpha", "tol"], "a fit"), ["alfa"]),
        ("^rank=4 exceeds the smaller side of X, 3: give a small",
         lambda rank: checks.check_rank(rank, (9, 3)), 4),
        ("^random_state=.* is not a seed", checks.as_generator, "seed", -1, 1.5),
        ("^random_state='x' is not a seed", checks.check_seed, "x"),
    ])  # fmt: skip


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

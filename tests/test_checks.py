"""Checks of arguments: what passes, what is refused, and what the sentence says."""

from __future__ import annotations

import copy
import inspect
import math

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab._runtime import checks


@pytest.mark.parametrize("value", [1, 7, np.int64(3), np.uint8(2)])
def test_integers(value):
    found = checks.check_integer("n", value, 1)
    assert found == value
    assert type(found) is int


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0, ValueError, r"^n=0 is too small: give a whole number >= 1\.$"),
        (1.0, TypeError, r"^n=1\.0 is not an integer: give a whole number >= 1\.$"),
        (True, TypeError, "^n=True is not an integer"),
        ("3", TypeError, "^n='3' is not an integer"),
    ],
)
def test_what_is_no_integer(value, error, message):
    with pytest.raises(error, match=message):
        checks.check_integer("n", value, 1)


@pytest.mark.parametrize("value", [0, 0.5, np.float32(0.25), np.int32(1)])
def test_numbers(value):
    assert checks.check_number("a", value, 0, 1) == float(value)


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (-1, {"smallest": 0}, r"^a=-1 is out of range: give a finite number >= 0\.$"),
        (2, {"smallest": 0, "largest": 1}, r"give a finite number from 0 to 1\.$"),
        (0, {"above": 0}, r"give a finite number > 0\.$"),
        (math.nan, {}, r"^a=nan is out of range: give a finite number\.$"),
        (math.inf, {}, "^a=inf is out of range"),
        (-math.inf, {"largest": 5}, "is out of range"),
    ],
)
def test_numbers_out_of_range(value, bounds, message):
    with pytest.raises(ValueError, match=message):
        checks.check_number("a", value, **bounds)


@pytest.mark.parametrize("value", ["1", None, False, 1j, [1]])
def test_what_is_no_number(value):
    with pytest.raises(TypeError, match=r"^a=.* is not a number: give one >= 0"):
        checks.check_number("a", value, 0)
    with pytest.raises(TypeError, match=r"^a=.* is not a number: give a share"):
        checks.check_share("a", value)


def test_shares():
    assert checks.check_share("s", 0) == 0.0
    assert checks.check_share("s", 1, one=True) == 1.0
    assert checks.check_share("s", np.float32(0.5), zero=False) == 0.5
    for value in (1, -0.1, math.nan):
        with pytest.raises(ValueError, match=f"^s={value} is out of range: give a share from 0"):
            checks.check_share("s", value)
        with pytest.raises(ValueError, match=r"give a share above 0 and below 1\.$"):
            checks.check_share("s", value, zero=False)


@pytest.mark.parametrize("value", ["auto", None, True, np.True_])
def test_words(value):
    checks.check_word("w", value, ["auto", None, True])


@pytest.mark.parametrize("value", ["automatic!", 1, 0, False, np.ones(2), ["auto"], 1.0])
def test_words_that_are_unknown(value):
    with pytest.raises(ValueError, match=r"^w=.* is unknown: "):
        checks.check_word("w", value, ["auto", None, True])


def test_the_nearest_word_or_all_of_them_are_named():
    with pytest.raises(ValueError, match=r"^f='rellu' is unknown: did you mean 'relu'\?$"):
        checks.check_word("f", "rellu", ["relu", "square"])
    with pytest.raises(ValueError, match=r"choose one of \['relu', 'square'\] or an object\.$"):
        checks.check_word("f", "xyz", ["relu", "square"], " or an object")
    with pytest.raises(ValueError, match=r"^f='b' is unknown"):
        checks.check_words("f", ["a", "b"], ["a"])
    with pytest.raises(
        TypeError, match=r"^alfa= is not an option of a fit: did you mean 'alpha'\?$"
    ):
        checks.check_option_names(["alfa"], ["alpha", "tol"], "a fit")


def test_ranks():
    assert checks.check_rank(3, (3, 9)) == 3
    assert checks.check_rank(10**9) == 10**9
    with pytest.raises(ValueError, match=r"^rank=4 exceeds the smaller side of X, 3: give a small"):
        checks.check_rank(4, (9, 3))


def test_generators():
    given = np.random.default_rng(3)
    assert checks.as_generator(given) is given
    one, two = (checks.as_generator(5).random() for _ in range(2))
    assert one == two
    legacy = [checks.as_generator(np.random.RandomState(0)).random() for _ in range(2)]
    assert legacy[0] == legacy[1]
    for value in ("seed", -1, 1.5):
        with pytest.raises((TypeError, ValueError), match=f"^random_state={value!r} is not a seed"):
            checks.as_generator(value)


def test_a_seed_is_checked_without_a_draw():
    for state in (np.random.default_rng(0), np.random.RandomState(0)):
        before = copy.deepcopy(state).bytes(8)
        checks.check_seed(state)
        assert state.bytes(8) == before
    with pytest.raises(TypeError, match=r"^random_state='x' is not a seed"):
        checks.check_seed("x")


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

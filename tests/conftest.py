"""Shared fixtures, and which tests `make test` leaves to `make test-all`."""

import copy
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fits
import hypothesis
import numpy as np
import pandas as pd
import pytest
from _pytest.doctest import DoctestModule
from helpers import Clock

import nmd_lab

# The duration of an example is no evidence: the machine may be busy.
hypothesis.settings.register_profile(
    "any speed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any speed")


# As without pyarrow, which most users have not.
pd.set_option("mode.string_storage", "python")

SMALL_TABLE = 4
"""A test with at most so many parameter sets runs with all of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make test-all`."""
    parser.addoption("--all", action="store_true", help="exhaustive tests, all parameter sets")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[Any]:
    """Look for no examples in tests: a file is imported twice for it, a faulty one in silence."""
    return [each for each in (yield) if not isinstance(each, DoctestModule)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Test every claim once without `--all`."""
    if not config.getoption("--all"):
        short = [item for item in items if not item.get_closest_marker("exhaustive")]
        left = repeats(short)
        once = [item for item in short if item not in left]
        config.hook.pytest_deselected(items=list(set(items) - set(once)))
        items[:] = once


def repeats(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the parameter sets of each test whose values all stand in a set that runs, too."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            tests[item.nodeid.partition("[")[0]].append(item)
    left = set()
    for sets in tests.values():
        if len(sets) > SMALL_TABLE:
            values = {
                item: {f"{name}={value!r}" for name, value in item.callspec.params.items()}
                for item in sets
            }
            left |= set(sets) - set(cover(values))
    return left


def cover(sets: dict[pytest.Item, set[str]]) -> Iterator[pytest.Item]:
    """Yield few parameter sets that have every value of every parameter."""
    missing = set().union(*sets.values())
    while missing:
        best = max(sets, key=lambda item: len(sets[item] & missing))
        missing -= sets[best]
        yield best


def pytest_sessionstart() -> None:
    """Hear Ctrl-C, which a shell in the background makes its children ignore."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def signals_are_given_back() -> Iterator[None]:
    """Find the test that changes the handlers of signals for those after it."""
    numbers = signal.SIGINT, signal.SIGTERM
    before = [signal.getsignal(number) for number in numbers]
    yield
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.fixture
def interactive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session in which somebody types commands."""
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock in place of the real one: 0.01 s pass each time that the library reads it."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


@pytest.fixture
def read_back(tmp_path: Path) -> Callable[..., Any]:
    """Return a function that saves a fit or a posterior, and loads it again."""

    def saved_and_loaded(result: Any) -> Any:
        result.save(tmp_path / "result.nc")
        return nmd_lab.load(tmp_path / "result.nc")

    return saved_and_loaded


@pytest.fixture
def full() -> pd.DataFrame:
    """A table of every kind."""
    return fits.of_people()[0]


@pytest.fixture
def frame() -> pd.DataFrame:
    """The same with holes."""
    return fits.of_people()[1]


@pytest.fixture
def posterior() -> Any:
    """Its posterior."""
    return fits.of_people()[2]


@pytest.fixture
def plain() -> nmd_lab.Decomposition:
    """A short fit of `small`."""
    return copy.deepcopy(fits.plain())


@pytest.fixture
def noisy() -> np.ndarray:
    """A 30 x 20 nonnegative matrix near rank 3 under ReLU."""
    return np.abs(nmd_lab.datasets.synthetic(30, 20, 3, noise=0.3, random_state=0).X.values)


@pytest.fixture
def small(rng: np.random.Generator) -> np.ndarray:
    """A 20 x 15 nonnegative matrix with zeros, near rank 3 under ReLU."""
    return fits.small(rng)

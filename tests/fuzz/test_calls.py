"""A fixed sample of the part `calls`, and faults that it must find."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import nmd_lab
from fuzz import call_uses, calls, fit_uses
from fuzz.case import Case, cases
from fuzz.containers import DENSE, SPARSE
from fuzz.faults import is_documented
from fuzz.ledger import known_as


@pytest.mark.exhaustive
@settings(
    max_examples=120,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(cases(calls.SHARES))
def test_no_call_shows_a_fault(case):
    found = calls.problem_of(case)
    assert found is None or known_as(found[0]), found


@pytest.mark.parametrize("container", [*DENSE, *SPARSE])
def test_every_container_gives_the_fit_of_every_other(container):
    case = Case("containers", shape=(9, 7), missing=0.3, container=container, other="csr")
    assert calls.problem_of(case) is None


def test_a_result_that_is_not_finite_is_found(monkeypatch):
    reconstruct = nmd_lab.Decomposition.reconstruct
    monkeypatch.setattr(nmd_lab.Decomposition, "reconstruct", lambda fit: reconstruct(fit) * np.nan)
    assert calls.problem_of(Case()) == ("reconstruct() is not finite",) * 2


def test_a_changed_input_is_found(monkeypatch):
    def complete(X, *arguments, **options):
        X += 1
        return nmd_lab.decompose(X, *arguments, **options)

    monkeypatch.setattr(nmd_lab, "complete", complete)
    assert calls.problem_of(Case()) == ("an input is changed",) * 2


@pytest.mark.parametrize("loss", ["frobenius", "l1", "kl"])
def test_a_wrong_objective_is_found(monkeypatch, loss):
    true = nmd_lab.Decomposition.objective.fget
    wrong = property(lambda fit: true(fit) * (1 + 1e-6))
    monkeypatch.setattr(nmd_lab.Decomposition, "objective", wrong)
    kind, _ = calls.problem_of(Case(loss=loss, rank=1)) or ("", "")
    assert kind == "objective is not that of W and H"


CANCELLED = Case("use", "decompose", (3, 21), rank=3, missing=0.8, container="unsorted", seed=825)
"""Its `predict` gets five entries of 0, in which rounding leaves 1e-18 of terms of size 1."""

UNDERFLOW = Case("use", "decompose", (1, 8), 1, "any size", nonlinearity="modulus", seed=1,
                 options={"offsets": "both", "dtype": "float32"})  # fmt: skip
"""WH is 1e-57 beside offsets of 1e-34, and becomes 0 in the W of `rotate("svd")`."""


@pytest.mark.parametrize("case", [CANCELLED, UNDERFLOW])
def test_rounding_is_no_fault(case):
    assert calls.problem_of(case) is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("error", [1e-3, np.nan])
def test_a_wrong_prediction_is_found(monkeypatch, seed, error):
    monkeypatch.setattr(call_uses, "USES", {"predict": fit_uses.USES["predict"]})
    at = nmd_lab.Decomposition.at
    wrong = lambda fit, *places: at(fit, *places) * (1 + error)  # noqa: E731 - a method
    monkeypatch.setattr(nmd_lab.Decomposition, "at", wrong)
    kind, _ = calls.problem_of(Case("use", seed=seed)) or ("", "")
    assert kind == "predict disagrees with reconstruct()"


@pytest.mark.parametrize("method", ["size", "svd", "varimax", "quartimax"])
def test_a_wrong_rotation_is_found(monkeypatch, method):
    monkeypatch.setattr(call_uses, "USES", {"rotate": fit_uses.USES["rotate"]})
    rotate = nmd_lab.Decomposition.rotate

    def wrong(fit, *_):
        rotated = rotate(fit, method)
        return dataclasses.replace(rotated, W=rotated.W * (1 + 1e-8))

    monkeypatch.setattr(nmd_lab.Decomposition, "rotate", wrong)
    kind, _ = calls.problem_of(Case("use")) or ("", "")
    assert kind == "rotate changes WH"


def test_another_seed_is_found(monkeypatch):
    seeds = iter(range(100))
    call = Case.call
    monkeypatch.setattr(
        Case, "call", lambda case, X, **others: call(case, X, **others, random_state=next(seeds))
    )
    case = Case("repeat", shape=(8, 7), rank=2, options={"init": "random"})
    assert calls.problem_of(case)[0] == "the same seed gives other bits"


def test_other_entries_are_found(monkeypatch):
    monkeypatch.setitem(DENSE, "mask", lambda values, seen: (values, {}))
    kind, _ = calls.problem_of(Case("containers", shape=(9, 7), missing=0.3)) or ("", "")
    assert kind == "equal containers give other bits"


def test_a_foreign_error_is_no_sentence():
    with pytest.raises(ValueError, match="could not broadcast") as caught:
        np.zeros(3)[:] = np.zeros(2)
    assert not is_documented(caught.value)
    with pytest.raises(ValueError, match="rank=0") as caught:
        nmd_lab.complete(np.eye(3), 0)
    assert is_documented(caught.value)


def test_a_fault_is_reduced_to_a_simple_case(monkeypatch):
    reconstruct = nmd_lab.Decomposition.reconstruct
    monkeypatch.setattr(nmd_lab.Decomposition, "reconstruct", lambda fit: reconstruct(fit) * np.nan)
    case = Case(shape=(20, 10), rank=3, values="normal", options={"alpha": 1.0, "tol": 0.0})
    reduced = calls.reduced(case, "reconstruct() is not finite")
    assert reduced == Case(shape=(1, 1), rank=1)

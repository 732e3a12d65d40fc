"""Why a fit stopped: a code for programs, a sentence for people."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import pytest

import nmd_lab as nmd
from nmd_lab._runtime.progress import StopReason
from nmd_lab.result.files import result_of


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
)
def test_copies_keep_both(copied):
    reason = StopReason("not finite", "not finite: iteration 2 overflowed")
    assert copied(reason) == reason
    assert copied(reason).code == "not finite"


def test_an_unknown_code_is_refused():
    with pytest.raises(ValueError, match=r"code='done' is unknown: choose one of \['converged'"):
        StopReason("done", "done")


def test_a_sentence_without_a_code_is_of_the_code_other(small):
    fit = nmd.decompose(small, 2, max_iter=2)
    assert fit.stop_reason.code == "max_iter"
    own = replace(fit, stop_reason="my method is done").stop_reason
    assert (own, own.code) == ("my method is done", "other")


REASONS = {
    "max_iter": {"max_iter": 3},
    "converged": {"tol": 1e3},
    "callback": {"callback": lambda state: True},
    "time_limit": {"time_limit": 0},
    "validation": {"validation": 0.2, "max_iter": 5000, "solver": nmd.ADMM(patience=1)},
}


@pytest.mark.parametrize("code", REASONS)
def test_every_ending_has_its_code_and_keeps_it_in_a_file(code, small, tmp_path):
    fit = nmd.complete(small, 3, "relu", alpha=0, random_state=0, **REASONS[code])
    assert fit.stop_reason.code == code
    fit.save(tmp_path / "fit.nc")
    again = nmd.load(tmp_path / "fit.nc")
    assert again.stop_reason == fit.stop_reason
    assert again.stop_reason.code == code


def test_a_file_of_a_newer_version_is_read(small):
    dataset = nmd.decompose(small, 2, max_iter=2)._to_dataset()
    description = json.loads(dataset.attrs["nmd_lab"])
    description |= {"stop_code": "enlightened", "stop_reason": "enlightened: it sees"}
    reason = result_of(dataset.assign_attrs(nmd_lab=json.dumps(description))).stop_reason
    assert (reason, reason.code) == ("enlightened: it sees", "other")

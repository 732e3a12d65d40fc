"""What fits, posteriors and studies print reads as a person would say it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.data.readers import read_file

PLURAL_OF_ONE = re.compile(
    r"(?<![\d.,x] )(?<![\d.,])\b1 (?:[a-z-]+ )?(?!is|was|has)[a-z]*[a-rt-z]s\b"
)
"""One of something that is more than one, such as "1 iterations"; "1 class" is right."""


def ones() -> list[object]:
    """Return results in which as much as possible is one."""
    table = pd.DataFrame({"a": np.arange(20.0), "b": [np.nan, *np.arange(19.0)]})
    fit = nmd.decompose([[2.0]], 1, max_iter=1)
    posterior = nmd.sample([[1.0, 2.0], [3.0, 4.0]], 1, draws=1, tune=1, random_state=0)
    of_table = nmd.sample(table, 1, draws=1, tune=1, random_state=0)
    one = nmd.Choice(ranks=[1], alphas=[0.1])
    chosen = nmd.complete(np.eye(6) + 1, nonlinearity="identity", validation=one, random_state=0)
    study = nmd.Study(np.eye(4) + 1, n_splits=1, rank=1, alpha=1, max_iter=1)
    study.run(progress=False)
    entry = nmd.observations_from_sparse(sparse.csr_array([[1.0]]))
    check = nmd.losses.check_loss(nmd.losses.Frobenius())
    report = of_table.report(table.iloc[:1], n=1)
    return [fit, posterior, report, chosen, study, study.best(), entry, check]


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")
def test_one_thing_is_not_many(tmp_path):
    (tmp_path / "x.csv").write_text("1.5\n", encoding="utf-8")
    about = read_file(tmp_path / "x.csv")[1]
    assert about.startswith("1 row x 1 column from x.csv")
    for value in [*ones(), about]:
        html = getattr(value, "_repr_html_", str)()
        text = f"{value!r} {re.sub('<[^>]*>', ' ', html)}"
        assert not [text[match.start() :][:60] for match in PLURAL_OF_ONE.finditer(text)]

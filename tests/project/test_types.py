"""Type checkers and editors see the options of a fit and what comes out."""

import re

import pytest
from site_modules import ROOT

SCRIPT = """
import numpy as np
import nmd_lab as nmd

X = np.eye(4)
nmd.decompose(X, 2, alpha=1.0, offsets="both", callback=lambda state: state.iteration > 3)
nmd.decompose(X, 2, alfa=1.0)
nmd.complete(X, 2, offsets="lines")
nmd.NMD(n_components=2, max_iters=3)
reveal_type(nmd.complete(X, 2))
"""


@pytest.mark.exhaustive
def test_misspelt_options_are_errors(tmp_path):
    mypy = pytest.importorskip("mypy.api")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    configuration = ROOT / "pyproject.toml"
    out, _, _ = mypy.run(["--config-file", str(configuration), str(script)])
    errors = dict(re.findall(r"script\.py:(\d+): error: (.*)", out))
    assert set(errors) == {"7", "8", "9"}, out
    assert 'Unexpected keyword argument "alfa" for "decompose"' in errors["7"]
    assert 'Argument "offsets" to "complete" has incompatible type' in errors["8"]
    assert 'Unexpected keyword argument "max_iters" for "NMD"' in errors["9"]
    assert 'Revealed type is "nmd_lab.result.decomposition.Decomposition"' in out

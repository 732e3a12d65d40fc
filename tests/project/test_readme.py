"""What the README shows runs as it is printed, each block in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

CHECKS = {
    "digits": """
import re
from pathlib import Path

readme = Path("README.md").read_text(encoding="utf-8")
printed = float(re.search(r"relative_error +# ([0-9.]+)", readme).group(1))
assert abs(fit.relative_error - printed) < 1e-3
errors = np.abs(filled - photograph).values[~seen]
assert np.sqrt(np.mean(errors**2)) < 0.11
assert completion.selection.sizes["trial"] > 5
""",
    "ratings": """
assert fit.score(test) < 0.96
assert fit.top(0, k=5, exclude=ratings).size == 5
assert fit.predict(frame["user"][:3], frame["item"][:3]).shape == (3,)
""",
    "how sure": """
import numpy as np

low, high = posterior.predict_interval(test, level=0.9).T
assert abs(np.mean((low <= test.values) & (test.values <= high)) - 0.9) < 0.05
error = np.sqrt(np.mean((posterior.predict(test).values - test.values) ** 2))
assert error < 0.9 * np.std(test.values)
chances = posterior.probability(0, [1, 2, 3], above=3.9)
assert chances.shape == (3,)
assert ((0 < chances) & (chances < 1)).all()
assert posterior.top(0, k=5, by="lower", exclude=train).size == 5
""",
    "tables": """
assert filled.dtypes.equals(holed.dtypes)
assert not filled.isna().any(axis=None)
hidden = holed.isna()
right = (filled == table)["target"][hidden["target"]]
assert right.mean() > 0.85
numbers = table.columns[:-1]
errors = (filled[numbers] - table[numbers]) / table[numbers].std()
assert np.sqrt(np.mean(errors.values[hidden[numbers]] ** 2)) < 0.75  # means have 1
ends = posterior.intervals(holed)
low, high = (ends.xs(end, axis=1, level=1)[numbers] for end in ("low", "high"))
inside = ((low <= table[numbers]) & (table[numbers] <= high)).values[hidden[numbers]]
assert abs(inside.mean() - 0.9) < 0.05
""",
    "larger than memory": """
assert X.n_stored == 12_000
assert fit.predict(frame["user"][:3], frame["item"][:3]).shape == (3,)
""",
    "scikit-learn": """
assert codes.shape == (1797, 16)
holes = np.isnan(pictures)
assert not np.isnan(whole).any()
np.testing.assert_array_equal(whole[~holes], pictures[~holes])
""",
    "studies": """
assert dict(results.sizes) == {
    "algorithm": 2, "nonlinearity": 2, "rank": 2, "missing": 2, "noise": 2, "seed": 3,
}
assert (results.status == "done").all()
""",
}
"""What is checked after each Python block, in the order of the blocks."""


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_every_python_block_is_checked():
    assert len(blocks("python")) == len(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_each_python_block_runs_alone(name, tmp_path):
    block = blocks("python")[list(CHECKS).index(name)]
    run = subprocess.run(
        [sys.executable, "-c", block + CHECKS[name]],
        cwd=tmp_path if name == "larger than memory" else ROOT,  # it writes files
        env=os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stderr


def test_the_install_line_comes_first_and_has_what_the_blocks_need():
    before, _, _ = README.partition("```python")
    (extras,) = re.findall(r'^pip install "\.\[(.*?)\]"', before, flags=re.MULTILINE)
    assert "plot" in extras.split(",")

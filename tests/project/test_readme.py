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
    "tables": """
assert filled.dtypes.equals(incomplete.dtypes)
assert not filled.isna().any(axis=None)
hidden = incomplete.isna()
right = (filled == table)["target"][hidden["target"]]
assert right.mean() > 0.85
numbers = table.columns[:-1]
errors = (filled[numbers] - table[numbers]) / table[numbers].std()
assert np.sqrt(np.mean(errors.values[hidden[numbers]] ** 2)) < 0.75  # means have 1
ends = posterior.intervals(incomplete)
low, high = (ends.xs(end, axis=1, level=1)[numbers] for end in ("low", "high"))
inside = ((low <= table[numbers]) & (table[numbers] <= high)).values[hidden[numbers]]
assert abs(inside.mean() - 0.9) < 0.05
assert len(copies) == 20
""",
    "ratings": """
import numpy as np

low, high = posterior.predict_interval(test, level=0.9).T
assert abs(np.mean((low <= test.values) & (test.values <= high)) - 0.9) < 0.05
error = np.sqrt(np.mean((posterior.predict(test).values - test.values) ** 2))
assert error < 0.9 * np.std(test.values)
assert posterior.top(0, k=5, by="lower", exclude=train).size == 5
""",
    "components": """
import re
from pathlib import Path

readme = Path("README.md").read_text(encoding="utf-8")
printed = float(re.search(r"relative_error +# ([0-9.]+)", readme).group(1))
assert abs(fit.relative_error - printed) < 1e-3
""",
}
"""What is checked after each Python block, in the order of the blocks."""


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_every_python_block_is_checked():
    assert len(blocks("python")) == len(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_each_python_block_runs_alone(name):
    block = blocks("python")[list(CHECKS).index(name)]
    run = subprocess.run(
        [sys.executable, "-c", block + CHECKS[name]],
        cwd=ROOT,
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


def test_it_is_short():
    assert len(README.splitlines()) <= 130
    assert len(README) <= 7500

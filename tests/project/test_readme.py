"""What the README shows runs as it is printed, each block in a process of its own."""

import os
import re

import pytest
from helpers import run_python
from site_modules import PAGES, ROOT, text_of

README = text_of("README.md")

CHECKS = {
    "decompose": """
import numpy as np

assert_printed("fit.relative_error", fit.relative_error)
assert_printed("truncated SVD", nmd.baselines.truncated_svd(digits, 16).relative_error)
assert_printed("NMF", nmd.baselines.nmf(digits, 16, random_state=0).relative_error)
train, test = nmd.split_observed(digits, test_size=0.3, random_state=0)
rivals = {
    "nmd.complete(train)` is": nmd.complete(train, random_state=0),
    "linear model": nmd.complete(train, nonlinearity="identity", random_state=0),
    "its best penalty": nmd.baselines.soft_impute(train, 40, shrinkage=1.0),
}
for name, model in rivals.items():
    assert_printed(name, float(np.sqrt(np.nanmean((model.reconstruct() - test) ** 2))))
""",
    "complete": """
error = nmd.metrics.rmse(test.values, fit.predict(test).values)
assert_printed("fit.predict(test))", error)
alone = {"alpha": 1e6, "offsets": "both", "offset_alpha": 3.0, "random_state": 0}
offsets = nmd.complete(train, 1, "identity", **alone).predict(test).values
assert_printed("offsets alone", nmd.metrics.rmse(test.values, offsets))
assert fit.top(15, k=5, exclude=ratings).size == 5
""",
    "explore": """
assert study.results["held_out_rmse"].dims == ("nonlinearity", "rank", "seed")
assert study.best().parameters["rank"] in (4, 8, 16)
explorer.close()
""",
    "impute": """
assert filled.dtypes.equals(incomplete.dtypes)
assert not filled.isna().any(axis=None)
held_out = incomplete.isna()
right = (filled == table)["target"][held_out["target"]]
assert right.mean() > 0.85
numbers = table.columns[:-1]
errors = (filled[numbers] - table[numbers]) / table[numbers].std()
assert np.sqrt(np.mean(errors.values[held_out[numbers]] ** 2)) < 0.75  # means have 1
ends = posterior.intervals(incomplete)
low, high = (ends.xs(end, axis=1, level=1)[numbers] for end in ("low", "high"))
inside = ((low <= table[numbers]) & (table[numbers] <= high)).values[held_out[numbers]]
assert abs(inside.mean() - 0.9) < 0.05
assert len(completed) == 20
""",
}
"""What is checked after each Python block, in the order of the blocks."""

PRINTED = """
import re
from pathlib import Path


def assert_printed(name, value):
    readme = Path("README.md").read_text(encoding="utf-8")
    printed = re.search(re.escape(name) + r"(?: +#)? ([0-9]+[.][0-9]+)", readme)[1]
    assert abs(value - float(printed)) < 1e-3, (name, value)
"""
"""Compares a number with the one that the README prints after a name."""


BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
EACH = [*zip(BLOCKS, CHECKS.values(), strict=True)]


@pytest.mark.parametrize(("block", "check"), EACH, ids=CHECKS)
def test_each_python_block_runs_alone(block, check):
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    run_python("-c", block + PRINTED + check, cwd=ROOT, env=environment)


def test_the_install_line_comes_first_and_has_what_the_blocks_need():
    before, _, _ = README.partition("```python")
    (extras,) = re.findall(r'^pip install -e "\.\[(.*?)\]"', before, flags=re.MULTILINE)
    assert {"lab", "io"} == set(extras.split(","))


def test_it_is_short_and_leads_with_the_mission():
    assert len(README) <= 7500
    first = " ".join(README.splitlines()[:25])
    for word in ("matrix decomposition", "complet", "Jupyter", "ADMM", "intervals"):
        assert word in first


@pytest.mark.parametrize("path", [ROOT / "README.md", *PAGES])
def test_no_page_claims_a_release_on_an_index(path):
    """The package is on no index, so nothing can be installed by its name."""
    text = text_of(path)
    assert not re.search(r"pip install [\"']?nmd[-_]lab|pypi|conda-forge", text, re.IGNORECASE)


def test_run_times_are_those_of_the_notebooks():
    found = re.findall(r"\]\((notebooks/\w+\.ipynb)\)[^|]*, (\d+) s \|", README)
    assert len(found) == 13
    for notebook, seconds in found:
        said = re.search(r"Run time: about ([\w ]+)\.", text_of(notebook))[1]
        assert said.replace("a minute", "60 seconds") == f"{seconds} seconds", notebook

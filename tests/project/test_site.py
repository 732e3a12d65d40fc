"""The pages of the site: every public name is in the reference, and every block of code runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from site_modules import site_module

import nmd_lab as nmd

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
NOT_RUN = "<!-- not run:"
NUMBER = re.compile(r"^(\w[\w.]*)  # (\d+\.\d+)", flags=re.MULTILINE)
"""The value of a name in a comment."""

pytestmark = [
    pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def test_every_public_name_is_in_the_reference_once():
    api = site_module("api")
    listed = [name for _, names in api.GROUPS.values() for name in names]
    assert len(listed) == len(set(listed))
    modules = set(api.MODULES)
    assert set(listed) | modules == set(nmd.__all__) - {"__version__"}
    for module, (_, names) in api.MODULES.items():
        for name in names or getattr(nmd, module).__all__:
            assert hasattr(getattr(nmd, module), name), f"{module}.{name}"
        if names and hasattr(getattr(nmd, module), "__all__"):
            public = set(getattr(nmd, module).__all__)
            constants = {name for name in public if name.isupper()} - set(names)
            assert public - constants == set(names), module


def blocks(page):
    """Return the Python blocks of a page that are to run."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in re.finditer(r"```python\n(.*?)```", text, flags=re.DOTALL):
        before = text[: match.start()].rstrip().rpartition("\n")[2]
        if before.startswith(NOT_RUN):
            assert len(before) > len(NOT_RUN) + 10, f"{page.name}: no reason is given"
        else:
            found.append(match[1])
    return found


def given():
    """Return what the blocks of pages take for granted."""
    rng = np.random.default_rng(0)
    truth = 3 + rng.normal(size=(60, 3)) @ rng.normal(size=(3, 30))
    seen = rng.random(truth.shape) < 0.7
    X, test = np.where(seen, truth, np.nan), np.where(seen, np.nan, truth)
    rows, columns = np.array([0, 1]), np.array([2, 3])
    return {"np": np, "nmd": nmd, "X": X, "rows": rows, "columns": columns, "test": test}


@pytest.mark.exhaustive
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda page: page.stem)
def test_blocks_of_code_run(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    names = given()
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), names)
        for expression, number in NUMBER.findall(block):
            assert eval(expression, names) == pytest.approx(float(number), abs=0.002), expression


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" in target:
                continue  # elsewhere
            if target.startswith("figures/shape_"):
                name = target.removeprefix("figures/shape_").removesuffix(".svg")
                assert name in site_module("shapes").SHAPES, f"{page.name}: {target}"
                continue
            kind, _, name = target.partition("/")
            if kind in ("gallery", "tutorials") and name != "index":
                folder = "examples/gallery" if kind == "gallery" else "notebooks"
                ending = ".py" if kind == "gallery" else ".ipynb"
                assert (ROOT / folder / f"{name}{ending}").exists(), f"{page.name}: {target}"
            elif kind != "gallery":
                path = page.parent / target
                assert path.exists() or path.with_suffix(".md").exists(), f"{page.name}: {target}"


def test_the_start_page_has_the_numbers_of_the_other_pages():
    start, readme = site_module("start"), (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    for line in start.lines_from_pages():
        assert line in page
        assert start.for_readme(line) in readme

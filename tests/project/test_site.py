"""The pages of the site and docstrings: public names are there, and blocks of code run."""

import inspect
import json
import re
from operator import attrgetter

import numpy as np
import pytest
from site_modules import PAGES, ROOT, site_module, text_of
from sklearn.datasets import load_wine

import nmd_lab as nmd
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES
from nmd_lab.request.options import INITS

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
    text = text_of(page)
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
    for page in [*PAGES, ROOT / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text_of(page)):
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


def test_the_readme_and_the_start_page_have_the_numbers_of_the_evidence():
    start = site_module("start")
    for line in [*start.lines_of_the_method(), *start.lines_of_predictions()]:
        assert line in text_of("docs/index.md")
        assert start.for_readme(line) in text_of("README.md")


def test_numbers_of_other_pages_are_those_of_the_evidence():
    """A sentence that repeats a measured number has the one of its page."""
    start, pages = site_module("start"), {}
    for name in ("limitations", "comparison", "decompose", "sampling", "judging"):
        pages[name] = " ".join(text_of(f"docs/{name}.md").split())
    rows = start.numbers_of("tables.md", "### Binary and categorical columns: accuracy").values()
    ours, trees = (100 * np.mean([row[n] for row in rows]) for n in ("nmd.sample", "trees"))
    assert f"higher accuracy ({trees:.1f} %; `impute` {ours:.1f} %)" in pages["limitations"]
    words = {2: "two", 9: "nine"}
    better = sum(row["trees"] > row["nmd.sample"] for row in rows)
    errors = start.numbers_of("tables.md", "### RMSE of numeric columns").values()
    lower = sum(row["trees"] < row["nmd.sample"] for row in errors)
    assert f"higher accuracy on {words[better]} of fifteen" in pages["comparison"]
    assert f"lower RMSE than `nmd.sample` on {words[lower]} of" in pages["comparison"]
    assert f"on {words[lower]} of sixteen tables" in pages["limitations"]
    ratio = re.search(r"\| noise \| nmd.inpaint \| BM3D \| ([\d.]+)", text_of("docs/pictures.md"))[
        1
    ]
    assert f"BM3D, by {100 * (float(ratio) - 1):.1f} %" in pages["limitations"]
    digits = re.search(r"Digits.*?([\d.]+) ± .*?([\d.]+)\*\* ±", text_of("README.md"))
    assert f"({digits[2]}; `sample` {digits[1]};" in pages["limitations"]
    solved, of, printed = re.search(
        r"\*\*(\d+) of (\d+)\*\* `decompose` \| (\d+)", text_of("README.md")
    ).groups()
    assert solved == of
    assert f"{printed} of {of} runs" in pages["decompose"]
    times = re.search(r"takes ([\d.]+ to [\d.]+ times) as long", text_of("docs/selection.md"))[1]
    assert f"[{times}](selection.md)" in pages["decompose"]
    mnar = re.search(r"cover_mnar  # ([\d.]+)", text_of("docs/judging.md"))[1]
    for name in ("limitations", "sampling"):
        assert f"90 % intervals cover {100 * float(mnar):.0f} %" in pages[name]


NOTEBOOK_NUMBER = re.compile(r"\[[^]]*\]\(tutorials/(\w+)\) 90 % intervals cover (\d+) %")


def test_coverage_that_a_page_takes_from_a_notebook_is_its_output():
    found = NOTEBOOK_NUMBER.findall(" ".join(text_of("docs/limitations.md").split()))
    assert len(found) == 2
    for notebook, percent in found:
        cells = json.loads(text_of(f"notebooks/{notebook}.ipynb"))["cells"]
        outputs = json.dumps([cell.get("outputs", []) for cell in cells])
        assert f"{percent}%" in outputs, notebook


def test_the_table_of_what_goes_with_what_is_that_of_the_code():
    assert site_module("support").text() in text_of("docs/scale.md"), "run python docs/support.py"


def test_the_number_of_sweeps_of_a_table_is_the_one_of_the_pages():
    totals = set()
    frame = load_wine(as_frame=True).data
    nmd.sample(frame, random_state=0, callback=lambda sweep: totals.add(sweep.total) or True)
    (total,) = totals
    for page in ("sampling", "theory"):
        assert f"about {total:,}" in text_of(f"docs/{page}.md")


# Docstrings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", nmd.__all__)
def test_a_public_name_is_explained(name: str) -> None:
    """A module in a sentence; the docstring of a verb has arguments, explanations are on pages."""
    text = inspect.getdoc(getattr(nmd, name)) or ""
    if inspect.ismodule(getattr(nmd, name)):
        assert len(text) > 40
        return
    assert ">>> import" in text, "an example that begins with its imports"
    assert "Examples\n--------" in text
    assert name not in ("decompose", "complete", "sample", "impute") or len(text.split()) <= 700


# Models and starts --------------------------------------------------------------------------------


def rows(heading):
    """Return the rows of the table under a heading: the name by the class."""
    section = text_of("docs/models.md").split(f"## {heading}\n")[1].split("\n## ")[0]
    row = r'^\| (?:`"(\w+)"`)? ?\| `nmd\.([\w.]+)\('
    return {found[2]: found[1] for found in re.finditer(row, section, re.MULTILINE)}


@pytest.mark.parametrize(
    ("heading", "known"), [("Nonlinearities", NONLINEARITY_CLASSES), ("Losses", LOSSES)]
)
def test_every_model_has_a_row_with_its_name(heading, known):
    table = rows(heading)
    assert {cls.__name__ for cls in known.values()} <= {path.split(".")[-1] for path in table}
    for path, name in table.items():
        cls = attrgetter(path)(nmd)
        if name:
            assert known[name] is cls


def test_every_start_has_a_row():
    page = text_of("docs/decompose.md").partition("`init=`")[2]
    table = re.search(r"(?:^\|.*\n)+", page, re.MULTILINE)[0]
    named = re.findall(r"^\| (.*?) \|", table, re.MULTILINE)[1:]
    assert {*re.findall(r'"(\w+)"', " ".join(named))} == {*INITS}

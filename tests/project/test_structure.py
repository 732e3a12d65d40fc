"""The layers of the package: what may import what.  CONTRIBUTING.md describes the layers."""

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from imports import imports_of, texts_of

from nmd_lab.model.losses import LOSSES
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "nmd_lab"

LAYERS = (
    {"_version", "_runtime", "warnings", "checkpoint"},
    {"model", "data"},
    {"request", "kernels", "devices", "losses", "nonlinearities", "metrics"},
    {"problem"},
    {"engines"},
    {"fit"},
    {"selection", "sampler"},
    {"result", "cluster"},
    {"api"},
    {"inpainting", "pooling", "estimators", "baselines", "plots", "datasets"},
    {"studies"},
    {"widgets", "cli", "__main__"},
)
"""Packages and modules from the bottom to the top; each imports from its own layer and below."""

STRANGERS = [("model", "data"), ("data", "model")]
"""Packages of one layer that do not import each other."""

LAZY = {
    ("nmd_lab.result.decomposition", "nmd_lab.plots"): "fit.plot, which needs matplotlib",
    ("nmd_lab.result.posterior", "nmd_lab.plots"): "posterior.plot, likewise",
    ("nmd_lab.result.fold_in", "nmd_lab.fit.new_rows"): "only new rows need the solver",
    ("nmd_lab.result.selection", "nmd_lab.request.settings"): "only a repeated fit needs it",
    ("nmd_lab.result.fill", "nmd_lab.sampler.sampled_model"): "a fit is filled without it",
    ("nmd_lab.result.fill", "nmd_lab.result.joint_copies"): "likewise",
    ("nmd_lab.result.fold_in", "nmd_lab.sampler.chain"): "only new rows need the sampler",
    ("nmd_lab.result.fold_in", "nmd_lab.sampler.ordered_rows"): "only new rows need the sampler",
    ("nmd_lab.result.fold_in", "nmd_lab.sampler.priors"): "likewise",
    ("nmd_lab.api.prepare", "nmd_lab.cluster.inputs"): "the one door to the cluster",
    ("nmd_lab.devices", "nmd_lab.devices.tensors"): "it needs PyTorch",
}
"""Imports of the package's own modules inside functions, with the reason of each."""

UP = [
    ("nmd_lab.result.decomposition", "nmd_lab.plots"),
    ("nmd_lab.result.posterior", "nmd_lab.plots"),
    ("nmd_lab.api.prepare", "nmd_lab.cluster.inputs"),
]
"""The three imports that go up, and the only ones that may close a cycle."""


def top_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def layer_of(module: str) -> int:
    return next(number for number, names in enumerate(LAYERS) if top_of(module) in names)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return texts_of(PACKAGE)


def problems(texts: Mapping[str, str]) -> list[str]:
    """Return each import that breaks a rule, in words."""
    found = []
    imports = [one for one in imports_of(texts) if one.source != "nmd_lab"]
    for source, target, lazy in imports:
        if target == "nmd_lab":
            found.append(f"{source} imports from nmd_lab itself, not from the module")
        elif lazy and (source, target) not in LAZY:
            found.append(f"{source} imports {target} in a function, which is not in the list")
        elif (source, target) not in UP:
            if layer_of(target) > layer_of(source):
                found.append(f"{source} imports {target} from above")
            if (top_of(source), top_of(target)) in STRANGERS:
                found.append(f"{source} imports {target}, which it should not import")
    graph: dict[str, set[str]] = {}
    for source, target, _ in imports:
        if (source, target) not in UP:
            graph.setdefault(source, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append(f"{error.args[1]} import one another")
    return found


def test_every_package_has_a_layer():
    names = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert names - {"__init__", "__pycache__", "py"} == set().union(*LAYERS)


def test_imports_go_down_and_close_no_cycle(texts):
    assert not problems(texts)
    lazy = {(one.source, one.target) for one in imports_of(texts) if one.lazy}
    assert set(LAZY) <= lazy


def test_no_file_is_long():
    texts = {p.relative_to(PACKAGE).as_posix(): p.read_text("utf-8") for p in PACKAGE.rglob("*.py")}
    lengths = {name: len(text.splitlines()) for name, text in texts.items()}
    assert not {name: n for name, n in lengths.items() if n > 600}


STILL = {"candidates", "columns", "sampled_model"}
"""Modules that make a concrete loss or nonlinearity; the list may only become shorter."""


def test_a_concrete_loss_or_f_is_known_to_model_alone():
    names = "|".join(cls.__name__ for cls in [*LOSSES.values(), *NONLINEARITY_CLASSES.values()])
    imports = re.compile(rf"^ *from \S*model\.\S* import .*\b({names})\b", re.MULTILINE).search
    paths = [p for p in PACKAGE.glob("*/**/*.py") if p.parent.name not in ("model", "baselines")]
    assert {path.stem for path in paths if imports(path.read_text("utf-8"))} == STILL

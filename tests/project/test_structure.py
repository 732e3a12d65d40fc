"""The layers of the package: what may import what.  CONTRIBUTING.md describes the layers."""

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from typing import NamedTuple

import pytest
from site_modules import PACKAGE

from nmd_lab.model.losses import LOSSES
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES

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
    ("nmd_lab.api.fits", "nmd_lab.cluster.observations"): "the one door to the cluster",
    ("nmd_lab.devices", "nmd_lab.devices.tensors"): "it needs PyTorch",
}
"""Imports of the package's own modules inside functions, with the reason of each."""

UP = [
    ("nmd_lab.result.decomposition", "nmd_lab.plots"),
    ("nmd_lab.result.posterior", "nmd_lab.plots"),
    ("nmd_lab.api.fits", "nmd_lab.cluster.observations"),
]
"""The three imports that go up, and the only ones that may close a cycle."""


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Import(NamedTuple):
    """One file of the package imports another.

    `lazy` is True if it does so inside a function, hence not when it is loaded.
    """

    source: str
    target: str
    lazy: bool


def imports_of(texts: Mapping[str, str]) -> list[Import]:
    """Return every import of one file of a package by another, from the texts of its files."""
    files = {name.removesuffix(".__init__") for name in texts}
    found = []
    for name, text in texts.items():
        tree, source = ast.parse(text), name.removesuffix(".__init__")
        functions = (each for each in ast.walk(tree) if isinstance(each, FUNCTIONS))
        inside = {id(node) for function in functions for node in ast.walk(function)}
        for node in ast.walk(tree):
            for target in targets(node, name.rpartition(".")[0]):
                while target and target not in files:  # a name in a file
                    target = target.rpartition(".")[0]
                if target not in ("", source):
                    found.append(Import(source, target, id(node) in inside))
    return found


def targets(node: ast.AST, package: str) -> Iterator[str]:
    """Yield the dotted names that a statement in a file of a package imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = resolve_name("." * node.level + (node.module or ""), package)
        yield from (f"{base}.{alias.name}" for alias in node.names)


def top_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def layer_of(module: str) -> int:
    return next(number for number, names in enumerate(LAYERS) if top_of(module) in names)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Return the text of each file by its dotted name; that of an `__init__.py` ends with it."""
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path.read_text("utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
    }


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


def test_no_file_is_long(texts):
    lengths = {name: len(text.splitlines()) for name, text in texts.items()}
    assert not {name: n for name, n in lengths.items() if n > 600}


STILL = {"columns", "options", "sampled_model"}
"""Modules that make a concrete loss or nonlinearity; the list may only become shorter."""


def test_a_concrete_loss_or_f_is_known_to_model_alone():
    names = "|".join(cls.__name__ for cls in [*LOSSES.values(), *NONLINEARITY_CLASSES.values()])
    imports = re.compile(rf"^ *from \S*model\.\S* import .*\b({names})\b", re.MULTILINE).search
    paths = [p for p in PACKAGE.glob("*/**/*.py") if p.parent.name not in ("model", "baselines")]
    assert {path.stem for path in paths if imports(path.read_text("utf-8"))} == STILL

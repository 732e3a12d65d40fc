"""The ratchet: no package has more lines of code or files than tests/project/size.toml says."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load_size():
    spec = importlib.util.spec_from_file_location("size", ROOT / "benchmarks" / "size.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def size():
    return load_size()


@pytest.fixture(scope="module")
def files():
    """The texts of all files below the two folders, whether git tracks them or not."""
    found = {}
    for folder in ("nmd_lab", "tests"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".mjs", ".js", ".css"):
                found[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    return found


def grown(sizes, limits):
    """Return each size that is above its limit; what has no limit may not be there."""
    nothing = {"lines": 0, "files": 0}
    return [
        f"{package}: {now[what]} {what}, {limits.get(package, nothing)[what]} allowed"
        for package, now in sizes.items()
        for what in now
        if now[what] > limits.get(package, nothing)[what]
    ]


def test_no_package_has_grown(size, files):
    assert not grown(size.sizes(files), size.ratchet())


def test_a_line_more_is_found(size, files):
    path = "nmd_lab/fit.py"
    longer = files | {path: files[path] + "\nONE_MORE = 1\nAND_ANOTHER = 2\n"}
    limits = size.sizes(files)
    assert grown(size.sizes(longer), limits) == [
        f"nmd_lab: {limits['nmd_lab']['lines'] + 2} lines, {limits['nmd_lab']['lines']} allowed"
    ]


def test_a_new_package_is_found(size, files):
    sizes = size.sizes(files | {"nmd_lab/extra/one.py": "x = 1\n"})
    assert any(line.startswith("nmd_lab/extra") for line in grown(sizes, size.sizes(files)))


def test_the_table_has_no_package_that_is_gone(size, files):
    assert set(size.ratchet()) == set(size.sizes(files))

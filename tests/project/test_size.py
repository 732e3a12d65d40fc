"""The ratchet: no package has more lines of code or files than in tests/project/size.toml."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def size():
    spec = importlib.util.spec_from_file_location("size", ROOT / "benchmarks" / "size.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def test_no_package_has_grown_and_none_of_the_table_is_gone(size, files):
    now, ratchet = size.sizes(files), size.ratchet()
    assert not grown(now, ratchet)
    assert set(ratchet) == set(now)

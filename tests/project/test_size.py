"""The ratchet: no package has more lines of code or files than in tests/project/size.toml."""

from site_modules import ROOT, text_of

from benchmarks import size


def grown(sizes, limits):
    """Return each size that is above its limit; what has no limit may not be there."""
    nothing = {"lines": 0, "files": 0}
    return [
        f"{package}: {now[what]} {what}, {limits.get(package, nothing)[what]} allowed"
        for package, now in sizes.items()
        for what in now
        if now[what] > limits.get(package, nothing)[what]
    ]


def test_no_package_has_grown_and_none_of_the_table_is_gone():
    """All files below the two folders count, whether git tracks them or not."""
    paths = [path for folder in ("nmd_lab", "tests") for path in (ROOT / folder).rglob("*")]
    code = [path for path in paths if path.suffix in (".py", ".mjs", ".js", ".css")]
    now = size.sizes({path.relative_to(ROOT).as_posix(): text_of(path) for path in code})
    ratchet = size.ratchet()
    assert not grown(now, ratchet)
    assert set(ratchet) == set(now)

"""The ratchet: no package has more lines of code or files than in tests/project/size.toml."""

from site_modules import ROOT, text_of

from benchmarks import size


def test_no_package_has_grown_and_none_of_the_table_is_gone():
    """All files below the two folders count, whether git tracks them or not."""
    paths = [path for folder in ("nmd_lab", "tests") for path in (ROOT / folder).rglob("*")]
    code = [path for path in paths if path.suffix in (".py", ".mjs", ".js", ".css")]
    now = size.sizes({path.relative_to(ROOT).as_posix(): text_of(path) for path in code})
    ratchet = size.ratchet()
    assert set(ratchet) == set(now)
    assert not [(p, what) for p in now for what in now[p] if now[p][what] > ratchet[p][what]]

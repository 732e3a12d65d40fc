"""docs/scale.md shows the real table of what goes with what."""

from pathlib import Path

from site_modules import site_module

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


def test_the_table_of_what_goes_with_what_is_that_of_the_code():
    written = site_module("support").text()
    assert written in PAGE.read_text(encoding="utf-8"), "run python docs/support.py"

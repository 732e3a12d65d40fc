"""What an explorer shows, step by step, as files keep it: texts, states and the sizes of arrays.

Numbers in bytes are left to the tests with oracles.  To renew a file, delete it and run its test.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

HERE = Path(__file__).parent
SCHEMA = Draft202012Validator(json.loads((HERE / "records.schema.json").read_text("utf-8")))
DECIMAL = re.compile(r"-?\d+(?:\.\d+)?e[-+]\d+|-?\d+\.\d+")
LISTED = 12  # items of a list up to which all are kept; of more, the first three and the number


def records(explorer: Any) -> dict[str, Any]:
    """Return all that a page gets, checked by the schema."""
    names = SCHEMA.schema["properties"]
    shown = {name: each for name, each in explorer.get_state().items() if name in names}
    assert shown.keys() == names.keys()
    SCHEMA.validate(shown)
    del shown["static_id"]
    return shown


def kept(record: Any) -> Any:
    """Return a record as JSON has it, without numbers in bytes, seconds, and R-hat of few draws."""
    if isinstance(record, dict):
        return {name: kept(each) for name, each in record.items()}
    if isinstance(record, list | tuple):
        some = record if len(record) <= LISTED else [*record[:3], f"{len(record)} in all"]
        return [kept(each) for each in some]
    if isinstance(record, bytes | memoryview):
        return f"{len(bytes(record))} bytes"
    if isinstance(record, str):
        here = record.replace(Path.cwd().as_posix(), "the folder")
        return re.sub(r"(?<=R-hat )[\d.]+", "of few draws", re.sub(r"[\d.]+ s$", "a moment", here))
    return float(f"{record:.4g}") if isinstance(record, float) else record


def compare(found: Any, expected: Any) -> None:
    """Compare with what a file has; decimal numbers, in texts too, may differ by 1 %."""
    one, other = (
        json.dumps(x, ensure_ascii=False, indent=1, sort_keys=True) for x in (found, expected)
    )
    assert DECIMAL.sub("#", one) == DECIMAL.sub("#", other)
    numbers = ([float(number) for number in DECIMAL.findall(text)] for text in (one, other))
    np.testing.assert_allclose(*numbers, rtol=0.01, atol=1e-3)


def changes(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return the entries that are not as they were, of records within records too."""
    found = {}
    for name, each in now.items():
        old = before.get(name)
        if each != old:
            both = isinstance(each, dict) and isinstance(old, dict)
            found[name] = changes(each, old) if both else each
    return found


@pytest.fixture
def step(request: pytest.FixtureRequest) -> Iterator[Callable[[str, Any], Any]]:
    """Compare the steps of a test with those of the file that has its name, or write a new one."""
    path = HERE / "snapshots" / f"{request.node.name.removeprefix('test_')}.json"
    expected = json.loads(path.read_text("utf-8")) if path.exists() else {}
    before, found = dict[str, Any](), dict[str, Any]()

    def step(name: str, explorer: Any) -> Any:
        """Compare what has changed since the step before; return the explorer."""
        nonlocal before
        now = kept(records(explorer))
        found[name], before = changes(now, before), now
        if expected:
            compare(found[name], expected[name])
        return explorer

    yield step
    if not expected:
        text = json.dumps(found, ensure_ascii=False, indent=1)
        path.write_text(f"{text}\n", encoding="utf-8")
    assert expected, f"{path.name} is new: look at it, and run again"

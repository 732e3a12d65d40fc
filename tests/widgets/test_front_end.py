"""The modules of the front end without a browser: their own tests, and what they are joined to."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from node import node
from waiting import PATIENCE

pytest.importorskip("anywidget")

from nmd_lab.widgets.page import FOLDER, MODULES, script, style

IMPORTED = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.mjs";', re.MULTILINE)

TESTS = sorted((Path(__file__).parent / "front").glob("*.test.mjs"))


def run(script):
    """Run a module in Node, and return what it prints."""
    command = [node(), "--input-type=module", "-e", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_own_tests_of_the_modules(path):
    command = [node(), "--test", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"pass (\d+)", done.stdout)[1]) >= 3


def test_the_joined_module_has_no_name_twice_and_one_export(tmp_path):
    joined = tmp_path / "joined.mjs"
    joined.write_text(script(), encoding="utf-8")
    code = f"import explorer from {joined.as_uri()!r}; console.log(Object.keys(explorer).join())"
    assert run(code) == "render"
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", script(), re.MULTILINE)
    assert len(names) == len(set(names)) > 30
    assert "import " not in re.sub(r"//.*", "", script())


def test_imports_come_before():
    """A module imports only from those before it, and only what they export."""
    for name in MODULES:
        text = (FOLDER / f"{name}.mjs").read_text(encoding="utf-8")
        for names, other in IMPORTED.findall(text):
            assert MODULES.index(other) < MODULES.index(name)
            exported = (FOLDER / f"{other}.mjs").read_text(encoding="utf-8")
            for each in names.split(","):
                pattern = rf"^export (function|class|const|let) {each.strip()}\b"
                assert re.search(pattern, exported, re.MULTILINE)


def test_no_address_is_asked_for():
    allowed = {"http://www.w3.org/2000/svg"}
    assert set(re.findall(r"https?://[^\s\"'`)]+", script() + style())) <= allowed


def test_what_is_exported_is_used_elsewhere_or_tested():
    texts = {path: path.read_text(encoding="utf-8") for path in [*FOLDER.glob("*.mjs"), *TESTS]}
    texts[Path(__file__)] = Path(__file__).read_text(encoding="utf-8")
    for path in FOLDER.glob("*.mjs"):
        exported = re.findall(
            r"^export (?:function|class|const|let) (\w+)", texts[path], re.MULTILINE
        )
        for name in exported:
            users = [each for each, text in texts.items() if re.search(rf"\b{name}\b", text)]
            assert len(users) > 1, f"{path.name} exports {name}, which nothing uses"


def in_node(code):
    """Return what an expression of the functions in axes.mjs gives, as JSON."""
    module = json.dumps((FOLDER / "axes.mjs").as_uri())
    names = "logTicks, wholeTicks, nearest"
    script = f"import {{ {names} }} from {module}; console.log(JSON.stringify({code}))"
    return json.loads(run(script))


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.11, 0.13), (0.2, 0.33), (1e-12, 1.0), (0.2, 40), (3, 3.0001), (1e-300, 1e300)],
)
def test_ticks_of_a_logarithmic_axis(low, high):
    ticks = in_node(f"logTicks({low}, {high})")
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))
    assert len(ticks) <= 6
    assert len(ticks) >= 2


@pytest.mark.parametrize("high", [1, 1.02, 7, 99, 2040, 123456])
def test_ticks_of_iterations_are_whole(high):
    ticks = in_node(f"wholeTicks(0, {high})")
    assert ticks[0] == 0
    assert len(ticks) in range(2, 8)
    steps = np.diff(ticks)
    assert np.all(steps == steps[0])
    assert steps[0] == int(steps[0]) >= 1


def test_the_nearest_point_is_found():
    x = [1, 2, 4, 8, 100]
    for number in (-5, 1, 1.4, 1.6, 3.1, 53, 55, 1000):
        k = in_node(f"nearest({x}, {number})")
        assert abs(x[k] - number) == min(abs(each - number) for each in x)

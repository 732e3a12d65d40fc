"""The modules of the front end without a browser: their own tests, and what they are joined to."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers import PATIENCE

from nmd_lab.widgets.page import script

TESTS = sorted((Path(__file__).parent / "front").glob("*.test.mjs"))


def run(*arguments):
    """Run Node, that of the machine or the one of Playwright, and return what it prints."""
    node = shutil.which("node")
    if node is None:
        playwright = pytest.importorskip("playwright", reason="node is missing")
        node = str(Path(playwright.__file__).parent / "driver" / "node")
    command = [node, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout.strip()


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_own_tests_of_the_modules(path):
    assert int(re.search(r"pass (\d+)", run("--test", path))[1]) >= 3


def test_the_joined_module_has_no_name_twice_and_one_export(tmp_path):
    joined = tmp_path / "joined.mjs"
    joined.write_text(script(), encoding="utf-8")
    code = f"import explorer from {joined.as_uri()!r}; console.log(Object.keys(explorer).join())"
    assert run("--input-type=module", "-e", code) == "render"
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", script(), re.MULTILINE)
    assert len(names) == len(set(names)) > 30
    assert "import " not in re.sub(r"//.*", "", script())

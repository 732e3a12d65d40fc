"""How much code there is, and how often what is to become rare stands in it.

    python benchmarks/size.py              # the working tree
    python benchmarks/size.py HEAD~20 HEAD # two commits side by side
    python benchmarks/size.py --tests HEAD # with the number of collected tests of the working tree
    python benchmarks/size.py --lower      # tests/project/size.toml: less where there is less now

tests/project/size.toml has the most lines of code and files that each package may have, and
`tests/project/test_size.py` compares.  It is lowered in the commit that deletes; it is raised by
hand, in a commit whose message says which user gains by it.

Lines are those with Python code, without docstrings, comments and blank lines.  Only files that git
tracks count.  What is read is the text of a commit, so that nothing of it is imported or run.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RATCHET = ROOT / "tests" / "project" / "size.toml"
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
FRONT_END = (".mjs", ".js", ".css")
Files = dict[str, str]


def git(*args: str) -> str:
    """Return what a command of git prints."""
    return subprocess.run(
        ["git", *args], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def read(commit: str | None) -> Files:
    """Return the texts of the files of a commit, or of the working tree (None)."""
    if commit is None:
        paths = [path for path in git("ls-files", "nmd_lab", "tests").split("\n") if path]
        present = [path for path in paths if (ROOT / path).is_file()]
        return {path: (ROOT / path).read_bytes().decode(errors="replace") for path in present}
    paths = git("ls-tree", "-r", "--name-only", commit, "nmd_lab", "tests").splitlines()
    asked = "".join(f"{commit}:{path}\n" for path in paths).encode()
    answer = subprocess.run(
        ["git", "cat-file", "--batch"], cwd=ROOT, input=asked, capture_output=True, check=True
    ).stdout
    files, start = {}, 0
    for path in paths:
        end = answer.index(b"\n", start)
        size = int(answer[start:end].split()[2])
        files[path] = answer[end + 1 : end + 1 + size].decode(errors="replace")
        start = end + 2 + size
    return files


def docstrings(tree: ast.AST) -> Iterator[ast.Expr]:
    """Yield the docstrings of a module, its classes and its functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            value = getattr(first, "value", None)
            if isinstance(first, ast.Expr) and isinstance(value, ast.Constant):
                yield first


def lines_of_code(text: str) -> int:
    """Return the number of lines that have code."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            code |= set(range(token.start[0], token.end[0] + 1))
    for each in docstrings(ast.parse(text)):
        code -= set(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    return len(code)


def under(files: Files, folder: str, suffix: str = ".py") -> Files:
    """Return the files below a folder."""
    return {p: t for p, t in files.items() if p.startswith(f"{folder}/") and p.endswith(suffix)}


def package_of(path: str) -> str:
    """Return the package that a file is counted in: the folder below ``nmd_lab`` or ``tests``."""
    folders = path.split("/")[:-1]
    return "/".join(folders[:2])


def sizes(files: Files) -> dict[str, dict[str, int]]:
    """Return the lines of code and the number of files of each package, and of all JavaScript."""
    found: dict[str, dict[str, int]] = {}
    for path, text in sorted(files.items()):
        if path.endswith(".py"):
            size = found.setdefault(package_of(path), {"lines": 0, "files": 0})
            size["lines"] += lines_of_code(text)
            size["files"] += 1
    front = [t for p, t in files.items() if p.startswith("nmd_lab/") and p.endswith(FRONT_END)]
    count = sum(1 for text in front for line in text.splitlines() if line.strip())
    found["JavaScript and CSS"] = {"lines": count, "files": len(front)}
    return found


def ratchet() -> dict[str, dict[str, int]]:
    """Return the largest sizes that tests/project/size.toml allows."""
    return tomllib.loads(RATCHET.read_text(encoding="utf-8")) if RATCHET.is_file() else {}


def lower() -> None:
    """Write the present sizes into the table where they are less."""
    limits, now = ratchet(), sizes(read(None))
    rows = {
        package: {what: min(size[what], limits.get(package, size)[what]) for what in size}
        for package, size in now.items()
        if package in limits or not limits
    }
    head = "# The most lines of code and files of each package: see benchmarks/size.py.\n"
    text = "".join(
        f'"{package}" = {{ lines = {size["lines"]}, files = {size["files"]} }}\n'
        for package, size in sorted(rows.items())
    )
    RATCHET.write_text(head + text, encoding="utf-8")


def lines(folder: str) -> Callable[[Files], str]:
    """Return a measure: the lines of code below a folder."""
    return lambda files: f"{sum(map(lines_of_code, under(files, folder).values())):,}"


def matches(pattern: str, folder: str = "nmd_lab") -> Callable[[Files], str]:
    """Return a measure: how often a pattern stands in files, and in how many."""

    def measure(files: Files) -> str:
        found = [len(re.findall(pattern, text)) for text in under(files, folder).values()]
        return f"{sum(found)} in {sum(map(bool, found))} files"

    return measure


MEASURES: dict[str, Callable[[Files], str]] = {
    "nmd_lab: lines of code": lines("nmd_lab"),
    "nmd_lab: lines of all Python": lambda files: (
        f"{sum(text.count(chr(10)) for text in under(files, 'nmd_lab').values()):,}"
    ),
    "nmd_lab: files": lambda files: str(len(under(files, "nmd_lab", ""))),
    "tests: lines of code": lines("tests"),
    "tests: files": lambda files: str(len(under(files, "tests", ""))),
    "tests: test functions": matches(r"(?m)^ *def test_", "tests"),
    "classes *Options": matches(r"(?m)^class \w*Options\b"),
    "mentions of `place`": matches(r"\bplace\b[.,):\]]"),
    "refusals: a does not go with b": matches(
        r"(?i)\b(?:not go with|not go together|be combined)\b"
    ),
    "`absent_are_zeros`": matches(r"\babsent_are_zeros\b"),
    "isinstance of Pair or MixedPair": matches(r"isinstance\([^)]*\b(?:Mixed)?Pair\b"),
    "imports of the cluster outside": lambda files: matches(
        r"(?m)^ *(?:from|import) .*\b(?:executors|nmd_lab\.cluster)\b"
    )({p: t for p, t in files.items() if not re.search("/(?:executors|cluster)/", p)}),
}


def collected() -> str:
    """Return how many tests `make test` and `make test-all` run here."""
    counts = []
    for which in ([], ["--all"]):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *which]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        counts.append(re.findall(r"(\d+)(?:/\d+)? tests", run.stdout)[-1])
    return " / ".join(counts)


def main(*commits: str) -> None:
    """Print the table of commits, or of the working tree; or lower the ratchet."""
    if "--lower" in commits:
        lower()
        return
    with_tests = "--tests" in commits
    names = [name for name in commits if name != "--tests"]
    trees = {name: read(name) for name in names} or {"working tree": read(None)}
    print(f"{'':34}" + "".join(f"{name:>22}" for name in trees))
    for title, measure in MEASURES.items():
        print(f"{title:34}" + "".join(f"{measure(files):>22}" for files in trees.values()))
    if with_tests:
        print(f"{'tests of make test / test-all':34}{collected():>22}")


if __name__ == "__main__":
    main(*sys.argv[1:])

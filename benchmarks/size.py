"""How much code there is, and how often what is to become rare stands in it.

    python benchmarks/size.py              # the working tree
    python benchmarks/size.py HEAD~20 HEAD # two commits side by side
    python benchmarks/size.py --tests HEAD # with the number of collected tests of the working tree

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
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
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
    """Print the table of commits, or of the working tree."""
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

"""How much code there is, and how often what is to become rare stands in it.

    python benchmarks/size.py              # the working tree
    python benchmarks/size.py HEAD~20 HEAD # two commits side by side
    python benchmarks/size.py --tests HEAD # with the number of collected tests of the working tree
    python benchmarks/size.py --packages   # with lines of code and files of each package
    python benchmarks/size.py --lower      # tests/project/size.toml: less where there is less now

tests/project/size.toml has the most lines of code and files that each package may have, and
`tests/project/test_size.py` compares.  It is lowered in the commit that deletes; it is raised by
hand, in a commit whose message names the user who gains by it.

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


def under(files: Files, folder: str, suffix: tuple[str, ...] = (".py", ".pyi")) -> Files:
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
        if path.endswith((".py", ".pyi")):
            size = found.setdefault(package_of(path), {"lines": 0, "files": 0})
            size["lines"] += lines_of_code(text)
            size["files"] += path.endswith(".py")  # a stub is no module of its own
    front = front_end(files)
    found["JavaScript and CSS"] = {"lines": sum(map(len, front)), "files": len(front)}
    return found


def front_end(files: Files) -> list[list[str]]:
    """Return the lines of each file of JavaScript and CSS that are not blank."""
    texts = [t for p, t in files.items() if p.startswith("nmd_lab/") and p.endswith(FRONT_END)]
    return [[line for line in text.splitlines() if line.strip()] for text in texts]


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


def trees(files: Files) -> dict[str, ast.Module]:
    """Return the parsed files of the library."""
    return {path: ast.parse(text) for path, text in under(files, "nmd_lab").items()}


def classes(files: Files) -> dict[str, ast.ClassDef]:
    """Return the classes of the library by their names."""
    nodes = (node for tree in trees(files).values() for node in ast.walk(tree))
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}


def bases(name: str, known: dict[str, ast.ClassDef]) -> set[str]:
    """Return a class of the library and all that it inherits from there."""
    if name not in known:
        return set()
    found = {name}
    for base in known[name].bases:
        while isinstance(base, ast.Subscript):
            base = base.value
        found |= bases(ast.unparse(base).split(".")[-1], known)
    return found


def inherited(*names: str) -> Callable[[Files], str]:
    """Return a measure: classes under some classes, themselves included."""

    def measure(files: Files) -> str:
        known = classes(files)
        return str(len(set().union(*(bases(name, known) for name in names))))

    return measure


def public_names(name: str) -> Callable[[Files], str]:
    """Return a measure: names without underscore of a class and of what it inherits."""

    def measure(files: Files) -> str:
        known, found = classes(files), set[str]()
        for each in bases(name, known):
            for node in known[each].body:
                if isinstance(node, ast.FunctionDef):
                    found.add(node.name)
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    found.add(node.target.id)
                elif isinstance(node, ast.Assign):
                    found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        return str(sum(not each.startswith("_") for each in found))

    return measure


def importers_of(base: str) -> Callable[[Files], str]:
    """Return a measure: files outside ``model/`` that import a concrete loss or f by name."""

    def measure(files: Files) -> str:
        known = classes(files)
        concrete = {name for name in known if base in bases(name, known) and name != base}
        exports = ("nmd_lab/model/", "nmd_lab/losses.py", "nmd_lab/nonlinearities.py")
        found = [
            path
            for path, tree in trees(files).items()
            if not path.startswith(exports)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and concrete & {alias.name for alias in node.names}
        ]
        return str(len(set(found)))

    return measure


def is_number(node: ast.AST | None) -> bool:
    """Return whether an expression is a number, or numbers joined by operators."""
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def constants(files: Files) -> str:
    """Return how many numbers have a name at the top of a module."""
    nodes = [node for tree in trees(files).values() for node in tree.body]
    assigned = [node for node in nodes if isinstance(node, ast.Assign | ast.AnnAssign)]
    count = 0
    for node in assigned:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        if all(map(is_number, values)):
            count += sum(len(t.elts) if isinstance(t, ast.Tuple) else 1 for t in targets)
    return str(count)


def short_files(files: Files) -> str:
    """Return how many files of the library have fewer than 30 lines."""
    return str(sum(text.count("\n") < 30 for text in under(files, "nmd_lab").values()))


OLD_RECORDS = r"Facts|Spec|Space|Setting|Prepared\w*|HeldOutData|\w*Options"
RECORDS = rf"(?m)^class (?:Asked|Known|DataSummary|Decided|{OLD_RECORDS})\b"

MEASURES: dict[str, Callable[[Files], str]] = {
    "library: lines of code": lines("nmd_lab"),
    "library: Python files": lambda files: str(len(under(files, "nmd_lab", (".py",)))),
    "library: files of fewer than 30 lines": short_files,
    "JavaScript and CSS: lines": lambda files: f"{sum(map(len, front_end(files))):,}",
    "tests: lines of code": lines("tests"),
    "tests: test functions": matches(r"(?m)^ *def test_", "tests"),
    "classes under the two results": inherited("Decomposition", "Posterior"),
    "names on Posterior": public_names("Posterior"),
    "names on Decomposition": public_names("Decomposition"),
    "records of one request": matches(RECORDS),
    "files that import a loss by name": importers_of("Loss"),
    "files that import an f by name": importers_of("Nonlinearity"),
    "`.single`": matches(r"\.single\b"),
    "`which is None`": matches(r"\bwhich is (?:not )?None"),
    "`.elsewhere`": matches(r"\.elsewhere\b"),
    "numeric module constants": constants,
    "`absent_are_zeros`": matches(r"\babsent_are_zeros\b"),
    "`**locals()`": matches(r"\*\*locals\(\)"),
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
    names = [name for name in commits if not name.startswith("--")]
    trees_of = {name: read(name) for name in names} or {"working tree": read(None)}
    print(f"{'':40}" + "".join(f"{name:>22}" for name in trees_of))
    for title, measure in MEASURES.items():
        print(f"{title:40}" + "".join(f"{measure(files):>22}" for files in trees_of.values()))
    if "--packages" in commits:
        counted = [sizes(files) for files in trees_of.values()]
        for package in sorted(set().union(*counted)):
            cells = [each.get(package, {"lines": 0, "files": 0}) for each in counted]
            texts = [f"{cell['lines']:,} in {cell['files']}" for cell in cells]
            print(f"{package:40}" + "".join(f"{text:>22}" for text in texts))
    if "--tests" in commits:
        print(f"{'tests of make test / test-all':40}{collected():>22}")


if __name__ == "__main__":
    main(*sys.argv[1:])

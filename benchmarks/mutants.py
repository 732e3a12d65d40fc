"""Whether the tests notice small faults: a sample of mutants, and which of them the tests kill.

    python benchmarks/mutants.py before.json           # draws mutants, runs the tests on each
    python benchmarks/mutants.py before.json after.json  # the same mutants with the tests of today

A mutant has one comparison, operator, constant, condition or statement changed in a function.  Each
runs with the tests of its own module only, until the first failure, in a copy of the working tree.
One whose lines are no longer in the file is "gone".  Takes an hour; benchmarks/mutants.md has
the table.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COUNT, SEED = 10, 0
SECONDS = 900
"""CPU time after which a mutant is "endless": other work on the machine does not add to it."""

CONTRACT = "engines/test_contract.py"
REFUSALS = "test_refusals.py::test_bad_calls_are_refused_before_any_work"
FOLDS = "selection/test_folds.py selection/test_thinning.py"
ROW_SUMS = "kernels/test_gram.py kernels/test_constraints.py"
LOSSES = "model/test_likelihoods.py"
PROXIMAL = "model/test_parts.py::test_exact"
TARGETS = {
    "fit/held_out.py": f"fit/test_held_out.py {REFUSALS}",
    "data/folds.py": f"{FOLDS} data/test_split.py",
    "model/losses.py": f"{LOSSES} {PROXIMAL} model/test_refusals.py",
    "kernels/row_steps.py": ROW_SUMS,
    "kernels/sweep.py": f"{CONTRACT} test_sparse.py {ROW_SUMS} cluster/test_fits.py",
    "engines/admm.py": f"{CONTRACT} request/test_penalty.py checkpoint/test_resume.py",
}
SWAPS: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}


Node = ast.expr | ast.stmt
"""A part of a program that has a place in its text."""


def changes(node: Node) -> Iterator[Node]:
    """Yield what may stand in place of a node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in SWAPS[type(node.ops[0])]:
            yield ast.Compare(node.left, [other()], node.comparators)
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        for other in SWAPS.get(type(node.op), []):
            changed = copy.copy(node)
            changed.op = other()
            yield changed
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield from (ast.Constant(node.value + step) for step in (1, -1))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    if isinstance(node, ast.IfExp):
        yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    first = node.targets[0] if isinstance(node, ast.Assign) else None
    changes_something = isinstance(first, ast.Attribute | ast.Subscript)
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if changes_something or is_call or isinstance(node, ast.AugAssign):
        yield ast.Pass()


def nodes_of(function: ast.FunctionDef) -> Iterator[Node]:
    """Yield expressions and statements that a call of a function runs, but no index."""
    waiting: list[ast.AST] = [*function.args.defaults, *function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node):
            yield node
        parts = ast.iter_fields(node)
        inner = [part for name, part in parts if name not in ("annotation", "returns", "slice")]
        for part in inner:
            many = part if isinstance(part, list) else [part]
            waiting += [each for each in many if isinstance(each, ast.AST)]


def mutants(source: str) -> list[dict[str, Any]]:
    """Return all mutants of a file: the old lines, the new ones, and where the old ones stand."""
    lines = source.encode().splitlines(keepends=True)
    outer = [
        function
        for node in ast.parse(source).body
        for function in (node.body if isinstance(node, ast.ClassDef) else [node])
        if isinstance(function, ast.FunctionDef)
    ]
    found = []
    for node in (node for function in outer for node in nodes_of(function)):
        for changed in changes(node):
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            old = b"".join(lines[first:last])
            text = ast.unparse(ast.fix_missing_locations(changed)).encode()
            if isinstance(changed, ast.expr):
                text = b"(" + text + b")"
            new = lines[first][: node.col_offset] + text + lines[last - 1][node.end_col_offset :]
            which = b"".join(lines[:first]).count(old)
            found.append({"old": old.decode(), "new": new.decode(), "which": which})
    return found


def mutated(source: str, mutant: dict[str, Any]) -> str | None:
    """Return a source with the new lines of a mutant; None if the old ones are not in it."""
    parts = source.split(mutant["old"])
    if len(parts) < mutant["which"] + 2:
        return None
    at = mutant["which"] + 1
    return mutant["old"].join(parts[:at]) + mutant["new"] + mutant["old"].join(parts[at:])


def limit_cpu_time() -> None:
    """End this process, and each that it starts, after some CPU time."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def run(folder: str, tests: str) -> str:
    """Return whether the tests of a module in a copy of the repository pass."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    options = ["-x", "-q", "-p", "no:nbval", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options]
    paths = [f"tests/{path}" for path in tests.split()]
    settings = {**os.environ, **one, "PYTHONPATH": folder}
    made = subprocess.run(
        [*command, *paths], cwd=folder, env=settings, capture_output=True, preexec_fn=limit_cpu_time
    )
    if made.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        return "endless"
    return "survived" if made.returncode == 0 else "killed"


def main(before: str, after: str | None = None) -> None:
    """Draw mutants, or take those of a file, and write the verdict of the tests on each."""
    sample = json.loads(Path(before).read_text()) if after else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("nmd_lab", "tests", "pyproject.toml"):
            copied = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copied(ROOT / name, Path(folder, name))
        for module, tests in TARGETS.items():
            path, source = Path(folder, "nmd_lab", module), ROOT / "nmd_lab" / module
            text = source.read_text() if source.is_file() else ""
            if not after:
                every = mutants(text)
                sample[module] = random.Random(SEED).sample(every, min(COUNT, len(every)))
            if run(folder, tests) != "survived":
                sys.exit(f"{module}: its tests fail without a mutant")
            for mutant in sample[module]:
                changed = mutated(text, mutant)
                mutant["outcome"] = "gone"
                if changed is not None:
                    path.write_text(changed)
                    mutant["outcome"] = run(folder, tests)
                    shutil.copy2(source, path)  # with its time: kernels in the cache stay valid
                print(module, mutant["outcome"], mutant["new"].strip(), flush=True)
            outcomes = [mutant["outcome"] for mutant in sample[module]]
            print(f"{module:32}{outcomes.count('killed'):3} of {len(outcomes)} killed", flush=True)
            Path(after or before).write_text(json.dumps(sample, indent=1))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(__doc__)
    else:
        main(*sys.argv[1:])

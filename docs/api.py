"""Write the pages of the reference: each public name, by what it is for.

`GROUPS` holds every name of ``nmd_lab.__all__``; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path

GROUPS: dict[str, tuple[str, list[str]]] = {
    "Fits": (
        "Functions that fit X ≈ f(WH), and what they return.",
        [
            "decompose",
            "complete",
            "sample",
            "resume",
            "load",
            "compare",
            "Decomposition",
            "Posterior",
        ],
    ),
    "Estimators": ("For pipelines and grid searches of scikit-learn.", ["NMD", "MatrixCompletion"]),
    "Nonlinearities": (
        "The function f, by name or as an object.",
        [
            *("Identity", "ReLU", "LeakyReLU", "SoftThreshold", "MinMax", "Modulus"),
            *("AbsoluteOffset", "Square", "Power", "Exp", "Softplus", "Sigmoid", "Tanh", "Wrap"),
            *("PiecewiseLinear", "Smooth", "Piece", "Nonlinearity"),
        ],
    ),
    "Losses": (
        "The loss d, by name or as an object.",
        [
            *("Frobenius", "L1", "KL", "Huber", "Quantile", "Logistic", "NegativeBinomial"),
            *("ItakuraSaito", "SquaredLog", "Ordinal", "Loss"),
        ],
    ),
    "A model of your own": (
        "The scalar problem that every fit solves, and checks of your own classes.",
        ["prox", "check_loss", "check_nonlinearity"],
    ),
    "Constraints on the factors": (
        "For `w_constraint=` and `h_constraint=`.",
        ["NonNegative", "Simplex", "Orthonormal", "SparseFactor", "FactorConstraint"],
    ),
    "Data": (
        "Sparse data, tables of entries, and held-out entries.",
        [
            *("SparseObservations", "SparseStore", "observations_from_sparse"),
            *("observations_from_table", "split_observed"),
        ],
    ),
    "Solver": ("What a callback sees, and the penalty ρ.", ["State", "PenaltyRule"]),
    "Studies": ("Many fits over a grid of settings.", ["Study"]),
    "Warnings": (
        "What the library says about a fit.",
        [
            *("NMDWarning", "NotConvergedWarning", "OverfitWarning", "OutOfBoundsWarning"),
            *("UnobservedWarning", "UnitsWarning", "CheckpointWarning"),
        ],
    ),
    "Help": ("What a report of a problem should have.", ["show_versions"]),
}

MODULES: dict[str, tuple[str, list[str]]] = {
    "datasets": (
        "Data to try things with.",
        [
            *("digits", "photograph", "movielens_small", "make_ratings", "synthetic", "gaussian"),
            *("poisson", "salt_and_pepper", "cbcl", "mit_logo", "mnist", "jester", "movielens"),
            *("movielens_100k", "movielens_1m"),
        ],
    ),
    "metrics": ("Errors of predictions.", ["rmse", "mae", "relative_error"]),
    "plots": ("Figures of fits and posteriors.", []),
    "baselines": ("Other methods, with results of the same form.", []),
    "studies": ("Parts of studies.", []),
    "widgets": ("Explorers for JupyterLab.", []),
}
"""Public modules, with what is listed of them; an empty list means all of `__all__`."""


def block(module: str, names: list[str]) -> str:
    """Return the table of some names, which makes a page for each."""
    lines = "\n".join(f"   {name}" for name in names)
    return (
        f"```{{eval-rst}}\n.. currentmodule:: {module}\n\n.. autosummary::\n"
        f"   :toctree: reference\n   :nosignatures:\n\n{lines}\n```\n"
    )


def write(path: Path) -> None:
    """Write the page of the reference."""
    import nmd_lab as nmd

    text = ["# Reference\n", "Every public name, with its arguments and a runnable example.\n"]
    for heading, (about, names) in GROUPS.items():
        text.append(f"## {heading}\n\n{about}\n\n{block('nmd_lab', names)}")
    for module, (about, given) in MODULES.items():
        names = given or sorted(set(getattr(nmd, module).__all__) - set(nmd.__all__))
        text.append(f"## nmd_lab.{module}\n\n{about}\n\n{block(f'nmd_lab.{module}', names)}")
    content = "\n".join(text)
    if not path.exists() or path.read_text(encoding="utf-8") != content:
        path.write_text(content, encoding="utf-8")

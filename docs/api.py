"""Write the pages of the reference: each public name, by what it is for.

`GROUPS` holds every name of ``nmd_lab.__all__``; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path

GROUPS: dict[str, tuple[str, list[str]]] = {
    "Fits": (
        "Functions that fit X ≈ f(WH), and their results.",
        [
            "decompose",
            "complete",
            "sample",
            "impute",
            "inpaint",
            "pool",
            "pool_test",
            "pool_covariance",
            "check_imputer",
            "resume",
            "load",
            "compare",
            "Decomposition",
            "Posterior",
        ],
    ),
    "Estimators": ("For pipelines and grid searches of scikit-learn.", ["NMD", "MatrixCompletion"]),
    "Settings": (
        "For `validation=`, `solver=` and `compute=`, and the state that a callback receives.",
        ["Choice", "ADMM", "Compute", "PenaltyRule", "State"],
    ),
    "Nonlinearities": (
        "The function f, by name or as an object.  All of them are in `nmd_lab.nonlinearities`.",
        ["Identity", "ReLU", "MinMax", "Modulus", "Square"],
    ),
    "Losses": (
        "The loss d, by name or as an object.  All of them are in `nmd_lab.losses`.",
        ["Frobenius", "L1", "KL"],
    ),
    "The scalar problem": ("The T-update of f and the loss, entry by entry.", ["prox"]),
    "Constraints on the factors": (
        "For `w_constraint=` and `h_constraint=`.",
        ["NonNegative", "Simplex", "Orthonormal", "SparseFactor", "FactorConstraint"],
    ),
    "Data": (
        "Sparse data, tables of entries, limits, held-out entries, and patches of images.",
        [
            *("SparseObservations", "observations_from_sparse"),
            *("observations_from_table", "observations_from_files", "split_observed"),
            "censored",
            *("patches", "from_patches"),
        ],
    ),
    "Studies": ("Many fits over a grid of settings.", ["Study"]),
    "Help": ("The versions for a report of a problem.", ["show_versions"]),
}

MODULES: dict[str, tuple[str, list[str]]] = {
    "nonlinearities": (
        "All nonlinearities, their base class, and the check of one of your own.",
        [
            *("Identity", "ReLU", "LeakyReLU", "SoftThreshold", "MinMax", "Modulus"),
            "Monotone",
            *("AbsoluteOffset", "Square", "Power", "Exp", "Softplus", "Sigmoid", "Tanh", "Wrap"),
            *("PiecewiseLinear", "Smooth", "Piece", "Nonlinearity", "check_nonlinearity"),
        ],
    ),
    "losses": (
        "All losses, their base class, and the check of one of your own.",
        [
            *("Frobenius", "L1", "KL", "Huber", "Quantile", "Logistic", "NegativeBinomial"),
            *("ItakuraSaito", "SquaredLog", "Ordinal", "Loss", "NoiseModel", "check_loss"),
        ],
    ),
    "warnings": (
        "All warnings of the library.",
        [
            *("NMDWarning", "NotConvergedWarning", "OverfitWarning", "OutOfBoundsWarning"),
            *("UnobservedWarning", "UnitsWarning", "CheckpointWarning"),
        ],
    ),
    "datasets": (
        "Real and generated data for examples.",
        [
            *(
                "digits",
                "photograph",
                "penguins",
                "movielens_small",
                "make_ratings",
                "synthetic",
                "gaussian",
            ),
            *("poisson", "salt_and_pepper", "movielens"),
            *("movielens_100k", "movielens_1m"),
        ],
    ),
    "metrics": ("Errors of predictions.", ["rmse", "mae", "relative_error", "energy_score"]),
    "plots": ("Figures of fits and posteriors.", []),
    "baselines": ("Other methods, with results of the same form.", []),
    "studies": ("Parts of studies.", []),
    "widgets": ("Explorers for JupyterLab.", []),
}
"""Public modules, with what is listed of them; an empty list means all of `__all__`."""

MORE = ["contributing", "changelog"]
"""Pages that stand below the reference."""


def block(module: str, names: list[str], *, pages: bool = True) -> str:
    """Return the table of some names, which makes a page for each, or leads to the present one."""
    lines = "\n".join(f"   {name}" for name in names)
    toctree = "   :toctree: reference\n" if pages else ""
    return (
        f"```{{eval-rst}}\n.. currentmodule:: {module}\n\n.. autosummary::\n"
        f"{toctree}   :nosignatures:\n\n{lines}\n```\n"
    )


def write(path: Path) -> None:
    """Write the page of the reference."""
    import nmd_lab as nmd

    text = ["# Reference\n", "Every public name, with its arguments and a runnable example.\n"]
    for heading, (about, names) in GROUPS.items():
        text.append(f"## {heading}\n\n{about}\n\n{block('nmd_lab', names)}")
    for module, (about, given) in MODULES.items():
        names = given or sorted(set(getattr(nmd, module).__all__) - set(nmd.__all__))
        shared = [name for name in names if name in nmd.__all__]
        own = [name for name in names if name not in shared]
        text.append(f"## nmd_lab.{module}\n\n{about}\n")
        if shared:
            text.append(f"Names of `nmd_lab`, too:\n\n{block('nmd_lab', shared, pages=False)}")
        text.append(block(f"nmd_lab.{module}", own))
    below = "\n".join(MORE)
    text.append(f"```{{toctree}}\n:hidden:\n\n{below}\n```\n")
    content = "\n".join(text)
    if not path.exists() or path.read_text(encoding="utf-8") != content:
        path.write_text(content, encoding="utf-8")

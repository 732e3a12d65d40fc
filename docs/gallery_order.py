"""The order of the gallery: what f does first, then holes, doubt, other noise, and tools."""

from __future__ import annotations

SUBJECTS = {
    "what f does": ["zeros", "counts", "phase", "angles", "compression", "clipped_picture"],
    "holes": ["ratings", "new_rows", "photograph", "gappy_maps", "detection_limits"],
    "tables": [
        "survey",
        "questionnaire",
        "registry",
        "mixed_table",
        "multiple_imputation",
        "pipeline",
    ],
    "other noise, other data": ["outliers", "own_loss", "graph", "parts"],
    "choosing and growing": ["choose_rank", "study", "batches"],
}
"""Names of scripts, without "plot_"."""

ORDER = [f"plot_{name}.py" for names in SUBJECTS.values() for name in names]


def by_subject(name: str) -> int:
    """Return the position of a script in the gallery."""
    return ORDER.index(name)

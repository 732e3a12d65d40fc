"""The order of the gallery: tables, ratings, fields and pictures, counts, components, models."""

from __future__ import annotations

SUBJECTS = {
    "tables with missing cells": [
        "mixed_table",
        "registry",
        "survey",
        "questionnaire",
        "detection_limits",
        "multiple_imputation",
        "pipeline",
    ],
    "ratings": ["ratings", "new_rows"],
    "fields and pictures": ["gappy_maps", "photograph", "dim_camera"],
    "counts": ["counts"],
    "components": ["zeros", "parts", "compression"],
    "choosing a model": ["choose_rank", "outliers", "own_loss"],
    "other functions f and losses": ["graph", "angles", "phase"],
}
"""Names of scripts, without "plot_"."""

ORDER = [f"plot_{name}.py" for names in SUBJECTS.values() for name in names]


def by_subject(name: str) -> int:
    """Return the position of a script in the gallery."""
    return ORDER.index(name)

"""The order of the gallery: tables, new rows, images, components, models."""

from __future__ import annotations

SUBJECTS = {
    "tables with missing cells": ["mixed_table", "survey", "questionnaire", "pipeline"],
    "ratings": ["new_rows"],
    "images": ["dim_camera"],
    "components": ["zeros", "parts", "compression"],
    "choosing a model": ["choose_rank", "outliers"],
    "other functions f and losses": ["graph", "angles", "phase"],
}
"""Names of scripts, without "plot_"."""

ORDER = [f"plot_{name}.py" for names in SUBJECTS.values() for name in names]


def by_subject(name: str) -> int:
    """Return the position of a script in the gallery."""
    return ORDER.index(name)

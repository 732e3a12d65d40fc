"""Ratings: every format, the set of the checkout, damaged files, generated ones, and downloads.

Where files are looked for, and downloads from a server of our own.
"""

import gzip
import hashlib
import http.server
import shutil
import sys
import threading
import zipfile
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import check_all_refused

import nmd_lab as nmd
from nmd_lab import datasets
from nmd_lab.datasets import film_ratings
from nmd_lab.datasets.film_ratings import CHECKOUT, SMALL, read_ratings
from nmd_lab.widgets.explorer import library

EXPECTED = pd.DataFrame(
    [(7, 31, 4.0, "Amélie (2001)"), (7, 4, 3.0, "Heat, The (1995)"), (2, 31, 5.0, "Amélie (2001)")],
    columns=["user", "item", "rating", "title"],
)


def lines(separator, *header):
    rows = EXPECTED[["user", "item", "rating"]].assign(time=881250949)
    body = (separator.join(map(str, row)) for row in rows.itertuples(index=False))
    return "\n".join([*header, *body, ""])


def write_set(folder, edition):
    if edition == "100k":
        (folder / "u.data").write_text(lines("\t").replace(".0", ""))
        items = "4|Heat, The (1995)|01-Jan-1995||\n31|Amélie (2001)|25-Apr-2001||\n"
        (folder / "u.item").write_text(items, encoding="latin-1")
    elif edition in ("1m", "10m"):
        (folder / "ratings.dat").write_text(lines("::"))
        movies = "4::Heat, The (1995)::Drama\n31::Amélie (2001)::Comedy\n"
        encoding = "latin-1" if edition == "1m" else "utf-8"
        (folder / "movies.dat").write_text(movies, encoding=encoding)
    else:
        (folder / "ratings.csv").write_text(lines(",", "userId,movieId,rating,timestamp"))
        movies = 'movieId,title,genres\n4,"Heat, The (1995)",Drama\n31,Amélie (2001),Comedy\n'
        (folder / "movies.csv").write_text(movies, encoding="utf-8")


@pytest.mark.parametrize("edition", ["100k", "1m", "latest-small", "10m", "20m", "25m", "32m"])
def test_every_edition_in_a_folder_and_in_an_archive(edition, tmp_path, monkeypatch):
    folder = tmp_path / f"movielens-{edition}"
    folder.mkdir()
    write_set(folder, edition)
    table = datasets.movielens(edition, folder)
    pd.testing.assert_frame_equal(
        table, EXPECTED, check_dtype=False, check_categorical=False, check_column_type=False
    )
    assert table["title"].tolist() == EXPECTED["title"].tolist()
    assert "Harper and Konstan" in table.attrs["terms"]
    monkeypatch.setenv("NMD_LAB_DATA", str(tmp_path))
    pd.testing.assert_frame_equal(datasets.movielens(edition), table)
    archive = tmp_path / f"ml-{edition}.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in sorted(folder.iterdir()):
            packed.write(file, f"ml-{edition}/{file.name}")
            file.unlink()
    pd.testing.assert_frame_equal(datasets.movielens(edition, archive), table)
    archive.rename(folder / archive.name)
    pd.testing.assert_frame_equal(datasets.movielens(edition), table)


DAMAGED = [
    ("100k", "u.data", "7\t31\n", r"u\.data' cannot be read: .*line 3 is no user, item and rating"),
    ("100k", "u.data", "7\t4\t3\t881250949\t1\n", r"u\.data' cannot be read: "),
    ("100k", "u.data", "2\t31\t9\t881250949\n", "line 3 is no user, item and rating from 1 to 5"),
    ("100k", "u.data", "7\t-4\t4\t881250949\n", "line 3 is no"),
    ("100k", "u.data", "x7\t31\t4\t881250949\n", "x7"),
    *(("25m", "ratings.csv", line, "line 4 is no .* and rating from 0.5 to 5 in 4 fields")
      for line in ("1,3,4,\n", "1,3,4\n", "1,3\n")),
    ("25m", "ratings.csv", "1,3,4,7,7\n", "4 fields in line 4"),
    ("1m", "ratings.dat", "1::3::4\n", "line 3 is no"),
    ("1m", "movies.dat", "31\n", r"movies\.dat' cannot be read: item 31 has no title"),
    ("1m", "movies.dat", "\nthirty::Amélie::Comedy\n", r"movies\.dat' cannot be read: .*thirty"),
]  # fmt: skip


@pytest.mark.parametrize(("edition", "name", "last", "words"), DAMAGED)
def test_a_damaged_file_is_refused(edition, name, last, words, tmp_path):
    write_set(tmp_path, edition)
    path, encoding = tmp_path / name, "latin-1"
    kept = path.read_text(encoding).splitlines(keepends=True)[:-1]
    path.write_text("".join(kept) + last, encoding)
    check_all_refused([(words, lambda: datasets.movielens(edition, tmp_path))])


def test_an_item_without_a_title_has_an_empty_one(tmp_path):
    write_set(tmp_path, "25m")
    (tmp_path / "movies.csv").write_text("movieId,title,genres\n4,Heat,Drama\n")
    assert datasets.movielens("25m", tmp_path)["title"].tolist() == ["", "Heat", ""]


def test_archives_that_break_off_or_hold_other_files_are_refused(tmp_path):
    whole = gzip.compress(b"userId,movieId,rating\n" + b"1,2,3.0\n" * 9999)
    (tmp_path / "ratings.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"ratings\.csv\.gz' cannot be read"):
        read_ratings(SMALL, tmp_path / "ratings.csv.gz")
    (tmp_path / "ratings.csv.gz").unlink()
    (tmp_path / "ml-25m.zip").write_text("<html>moved</html>")
    with pytest.raises(ValueError, match="not a zip archive"):
        datasets.movielens("25m", tmp_path / "ml-25m.zip")
    with zipfile.ZipFile(tmp_path / "ml-25m.zip", "w") as packed:
        packed.writestr("other.csv", "1,2,3\n")
    with pytest.raises(FileNotFoundError, match=r"holds no ratings\.csv"):
        datasets.movielens("25m", tmp_path)


def test_the_ratings_of_the_checkout():
    table = datasets.movielens_small()
    assert table.attrs["edition"] == "October 2016"
    assert table.columns.tolist() == ["user", "item", "rating", "title"]
    assert len(table) == 100_004
    assert (table["user"].nunique(), table["item"].nunique()) == (671, 9066)
    assert sorted(table["rating"].unique()) == [k / 2 for k in range(1, 11)]
    assert not table.duplicated(["user", "item"]).any()
    first = table[table["user"] == 1].iloc[0]
    assert (first["item"], first["rating"], first["title"]) == (31, 2.5, "Dangerous Minds (1995)")
    assert (table["title"] != "").all()


def test_generated_ratings_are_like_real_ones():
    table = datasets.make_ratings(600, 400, 30_000, 4, random_state=3)
    pd.testing.assert_frame_equal(table, datasets.make_ratings(600, 400, 30_000, 4, random_state=3))
    assert not table.duplicated(["user", "item"]).any()
    assert sorted(table["rating"].unique()) == [1, 2, 3, 4, 5]
    for who, count in (("user", 600), ("item", 400)):
        sizes = table.groupby(who).size()
        assert sizes.index.tolist() == list(range(count))
        assert sizes.mean() > 1.2 * sizes.median()  # the long tail
        assert sizes.nlargest(count // 10).sum() > 0.25 * 30_000
    assert table["rating"].std() == pytest.approx(1.05, abs=0.1)
    residual = table["rating"] - table["expected"]
    assert residual.std() == pytest.approx(np.hypot(0.75, 12**-0.5), abs=0.06)
    popularity = np.log(table.groupby("item").size())
    assert popularity.corr(table.groupby("item")["rating"].mean()) > 0.1


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("NMD_LAB_DATA", raising=False)


@pytest.fixture
def server(tmp_path, monkeypatch, no_data):
    """Serve a folder, and let all downloads come from there into an empty cache."""
    pooch = pytest.importorskip("pooch")
    folder = tmp_path / "served"
    folder.mkdir()
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{running.server_port}/"
        monkeypatch.setattr(film_ratings, "GROUPLENS", address)
        monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
        yield folder
        running.shutdown()


def serve_archive(server, monkeypatch, ratings="1,2,3.5,7\n", edition="25m"):
    archive = server / f"ml-{edition}.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(f"ml-{edition}/ratings.csv", "userId,movieId,rating,timestamp\n" + ratings)
        packed.writestr(f"ml-{edition}/movies.csv", "movieId,title,genres\n2,Heat,Drama\n")
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    served = replace(film_ratings.MOVIELENS[edition], sha256=checksum)
    monkeypatch.setitem(film_ratings.MOVIELENS, edition, served)
    return archive


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Let the package be one that was installed from a wheel, without the folder of a checkout."""
    monkeypatch.setattr(film_ratings, "CHECKOUT", tmp_path / CHECKOUT.name)


DOWNLOADS = {
    "25m": (partial(datasets.movielens, "25m"), "25M from http.*terms of use.*research", None),
    "latest-small": (datasets.movielens_small, "from http.*not for commerce", "September 2018"),
}


@pytest.mark.parametrize("edition", DOWNLOADS)
def test_a_download_is_verified_told_once_and_kept(edition, server, monkeypatch, installed):
    load, said, dated = DOWNLOADS[edition]
    archive = serve_archive(server, monkeypatch, edition=edition)
    with pytest.warns(nmd.warnings.NMDWarning, match=said):
        table = load()
    assert table.iloc[0].tolist() == [1, 2, 3.5, "Heat"]
    assert table.attrs.get("edition") == dated
    archive.unlink()
    assert len(load()) == 1  # from the cache, without a warning


def test_a_download_with_a_wrong_checksum_is_refused(server, monkeypatch):
    serve_archive(server, monkeypatch)
    with zipfile.ZipFile(server / "ml-25m.zip", "a") as packed:
        packed.writestr("more", "more")
    with (
        pytest.warns(nmd.warnings.NMDWarning, match="downloading"),
        pytest.raises(ValueError, match=r"ml-25m\.zip is not the file whose SHA-256 begins"),
    ):
        datasets.movielens("25m")


def test_small_ratings_under_nmd_lab_data_or_at_a_path(tmp_path, monkeypatch, installed):
    folder = tmp_path / "mine" / CHECKOUT.name
    shutil.copytree(CHECKOUT, folder)
    monkeypatch.setenv("NMD_LAB_DATA", str(folder.parent))
    assert len(datasets.movielens_small()) == 100_004
    monkeypatch.delenv("NMD_LAB_DATA")
    assert len(datasets.movielens_small(folder)) == 100_004


def test_ratings_and_titles_that_are_nowhere_say_how_to_get_them(tmp_path, installed, server):
    (tmp_path / "ratings.csv").write_text("userId,movieId,rating,timestamp\n1,2,3.5,7\n")
    small, large = datasets.movielens_small, partial(datasets.movielens, "25m")
    check_all_refused([
        ("does not exist: get MovieLens latest-small from", small, server),
        (r"does not exist: get .* from .*data/README\.md", large, server),
        (r"movies\.csv' does not exist: get MovieLens 25M", large, tmp_path),
    ])  # fmt: skip
    with (
        pytest.warns(nmd.warnings.NMDWarning, match="downloading"),
        pytest.raises(ConnectionError, match=r"get MovieLens latest-small from .* yourself"),
    ):
        small()


def test_the_explorer_offers_no_ratings_that_it_would_have_to_download(no_data, installed):
    assert [name for name, each in library().items() if "ratings" in each] == ["generated"]


def test_without_pooch_the_remedy_is_told(monkeypatch, no_data):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"takes pooch: pip install pooch"):
        datasets.movielens("20m")


def test_arrays_are_taken_for_1m_alone_and_after_text(tmp_path):
    (tmp_path / "movies.dat").write_text("2::Heat::Drama\n")
    np.savez(tmp_path / "ratings.npz", user=[7], movie=[2], rating=[4])
    assert datasets.movielens("1m", tmp_path)["user"].tolist() == [7]
    with pytest.raises(FileNotFoundError, match=r"ratings\.dat' does not exist"):
        datasets.movielens("10m", tmp_path)
    (tmp_path / "ratings.dat").write_text("1::2::3::9\n")
    assert datasets.movielens("1m", tmp_path)["user"].tolist() == [1]

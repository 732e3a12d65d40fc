"""Where files are looked for, and downloads from a server of our own."""

import hashlib
import http.server
import shutil
import sys
import threading
import zipfile
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from refused import check_all_refused

import nmd_lab as nmd
from nmd_lab import datasets
from nmd_lab.datasets import film_ratings
from nmd_lab.datasets.film_ratings import CHECKOUT
from nmd_lab.widgets.explorer import library


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("NMD_LAB_DATA", raising=False)


@pytest.fixture
def server(tmp_path, monkeypatch, no_data):
    """Serve a folder, and let all downloads come from there into an empty cache."""
    pooch = pytest.importorskip("pooch")
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(Quiet, directory=folder)
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

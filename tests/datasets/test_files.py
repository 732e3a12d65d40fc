"""Where files are looked for, downloads from a server of our own, and damaged pictures."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import shutil
import sys
import threading
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

import nmd_lab as nmd
from nmd_lab import datasets
from nmd_lab.datasets import _sources
from nmd_lab.datasets.movielens import CHECKOUT
from nmd_lab.widgets.code import ratings_choices

MOVIELENS_MODULE = sys.modules["nmd_lab.datasets.movielens"]  # the function has this name, too
HELD_BY_OWNERS = [datasets.cbcl, datasets.mit_logo]
READERS = [
    *HELD_BY_OWNERS,
    datasets.mnist,
    datasets.movielens_100k,
    datasets.movielens_1m,
    functools.partial(datasets.movielens, "25m"),
    functools.partial(datasets.jester, 1),
]


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
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{running.server_port}/"
        monkeypatch.setattr(_sources.Source, "address", property(lambda _: address), raising=False)
        monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
        yield folder
        running.shutdown()


def serve_archive(server, monkeypatch, ratings="1,2,3.5,7\n", edition="25m"):
    archive = server / f"ml-{edition}.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(f"ml-{edition}/ratings.csv", "userId,movieId,rating,timestamp\n" + ratings)
        packed.writestr(f"ml-{edition}/movies.csv", "movieId,title,genres\n2,Heat,Drama\n")
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    lines = [line for line in _sources.SHA256.split("\n") if not line.endswith(archive.name)]
    monkeypatch.setattr(_sources, "SHA256", "\n".join([*lines, f"{checksum}  {archive.name}"]))
    return archive


def test_a_download_is_verified_told_once_and_kept(server, monkeypatch, recwarn):
    archive = serve_archive(server, monkeypatch)
    with pytest.warns(
        nmd.warnings.NMDWarning, match=r"MovieLens 25M from http.*terms of use.*research"
    ):
        table = datasets.movielens("25m")
    assert table.iloc[0].tolist() == [1, 2, 3.5, "Heat"]
    archive.unlink()
    assert len(datasets.movielens("25m")) == 1  # from the cache, without a warning


def test_a_download_with_a_wrong_checksum_is_refused(server, monkeypatch):
    serve_archive(server, monkeypatch)
    with zipfile.ZipFile(server / "ml-25m.zip", "a") as packed:
        packed.writestr("more", "more")
    with (
        pytest.warns(nmd.warnings.NMDWarning, match="downloading"),
        pytest.raises(ValueError, match=r"ml-25m\.zip is not the file whose SHA-256 begins"),
    ):
        datasets.movielens("25m")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Let the package be one that was installed from a wheel, without the folder of a checkout."""
    monkeypatch.setattr(MOVIELENS_MODULE, "CHECKOUT", tmp_path / CHECKOUT.name)


def test_small_ratings_are_downloaded_and_verified(server, monkeypatch, installed):
    archive = serve_archive(server, monkeypatch, edition="latest-small")
    with pytest.warns(
        nmd.warnings.NMDWarning, match=r"MovieLens latest-small from http.*not for commerce"
    ):
        table = datasets.movielens_small()
    assert table.iloc[0].tolist() == [1, 2, 3.5, "Heat"]
    assert table.attrs["edition"] == "September 2018"
    archive.unlink()
    assert len(datasets.movielens_small()) == 1
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("other", "other")
    shutil.rmtree(server.parent / "cache")
    with (
        pytest.warns(nmd.warnings.NMDWarning, match="downloading"),
        pytest.raises(ValueError, match=r"is not the file whose SHA-256 begins"),
    ):
        datasets.movielens_small()


def test_small_ratings_under_nmd_lab_data_or_at_a_path(tmp_path, monkeypatch, installed):
    folder = tmp_path / "mine" / CHECKOUT.name
    shutil.copytree(CHECKOUT, folder)
    monkeypatch.setenv("NMD_LAB_DATA", str(folder.parent))
    assert len(datasets.movielens_small()) == 100_004
    monkeypatch.delenv("NMD_LAB_DATA")
    assert len(datasets.movielens_small(folder)) == 100_004


def test_small_ratings_that_are_nowhere_say_how_to_get_them(tmp_path, no_data, installed, server):
    with pytest.raises(FileNotFoundError, match=r"does not exist: get MovieLens latest-small from"):
        datasets.movielens_small(tmp_path)
    with (
        pytest.warns(nmd.warnings.NMDWarning, match="downloading"),
        pytest.raises(ConnectionError, match=r"get MovieLens latest-small from .* yourself"),
    ):
        datasets.movielens_small()


def test_the_explorer_offers_no_ratings_that_it_would_have_to_download(no_data, installed):
    assert list(ratings_choices()) == ["generated"]


def test_a_server_that_has_nothing_is_told(server):
    with (
        pytest.warns(nmd.warnings.NMDWarning, match="downloading MNIST"),
        pytest.raises(ConnectionError, match=r"t10k-images.*cannot be downloaded .*data/README"),
    ):
        datasets.mnist()


def test_without_pooch_the_remedy_is_told(monkeypatch, no_data):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"takes pooch: pip install 'nmd-lab\[data\]'"):
        datasets.movielens("20m")


@pytest.mark.parametrize("reader", READERS)
def test_a_missing_set_says_how_to_get_it(reader, tmp_path, no_data):
    with pytest.raises(FileNotFoundError, match=r"does not exist: get .* from .*data/README\.md"):
        reader(path=tmp_path)


@pytest.mark.parametrize("reader", HELD_BY_OWNERS)
def test_a_set_that_cannot_be_downloaded_says_so(reader, tmp_path, monkeypatch, no_data):
    with pytest.raises(FileNotFoundError, match=r"NMD_LAB_DATA not set: get .*data/README\.md"):
        reader()
    monkeypatch.setenv("NMD_LAB_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"does not exist: get .*data/README\.md"):
        reader()


def test_every_download_has_a_checksum():
    for source in (_sources.MNIST, _sources.JESTER, *_sources.MOVIELENS.values()):
        assert source.files
        for file in source.files:
            assert len(bytes.fromhex(_sources.sha256_of(file))) == 32


def write_digits(folder, images, labels=b"\x07\x02"):
    header = b"\0\0\x08"
    sizes = [b"".join(int(n).to_bytes(4) for n in shape) for shape in ((2, 28, 28), (2,))]
    for name, n_dims, size, content in (
        ("t10k-images-idx3-ubyte.gz", b"\x03", sizes[0], images),
        ("t10k-labels-idx1-ubyte.gz", b"\x01", sizes[1], labels),
    ):
        (folder / name).write_bytes(gzip.compress(header + n_dims + size + content))


def test_idx(tmp_path):
    write_digits(tmp_path, bytes(range(196)) * 8)
    X = datasets.mnist(tmp_path)
    np.testing.assert_array_equal(X.values.ravel() * 255, list(range(196)) * 8)
    assert X.digit.values.tolist() == [7, 2]
    assert "LeCun" in X.attrs["terms"]


def test_damaged_idx_files_are_refused(tmp_path):
    write_digits(tmp_path, bytes(1000))
    with pytest.raises(ValueError, match=r"holds 1000 bytes where its sizes \[2, 28, 28\]"):
        datasets.mnist(tmp_path)
    file = tmp_path / "t10k-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(ValueError, match="breaks off, or is not gzipped"):
        datasets.mnist(tmp_path)
    for content in (b"<html>moved</html>", b"\0\0\x08", b"\0\0\x08\x03\0", b""):
        file.write_bytes(gzip.compress(content))
        with pytest.raises(ValueError, match="not an idx file"):
            datasets.mnist(tmp_path)


def test_damaged_faces_are_refused(tmp_path):
    file = tmp_path / "CBCL.mat"
    savemat(file, {"X": np.arange(722.0).reshape(361, 2) / 722})
    faces = datasets.cbcl(tmp_path)
    assert faces.shape == (2, 361)
    assert float(faces[1].max()) == 721 / 722
    for content in (file.read_bytes()[:200], b"", b"<html>moved</html>"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="no MATLAB file with a matrix X of 361 rows"):
            datasets.cbcl(tmp_path)
    savemat(file, {"Y": np.ones(3)})
    with pytest.raises(ValueError, match="no MATLAB file"):
        datasets.cbcl(tmp_path)

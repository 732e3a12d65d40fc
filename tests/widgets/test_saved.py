"""An explorer as a file of HTML: its record, what it may contain, and that the explorer stays."""

import base64
import gzip
import hashlib
import io
import json
import re

import fits
import numpy as np
import pandas as pd
import pytest
from explorer_page import EVIL, KINDS, act, done, plain
from helpers import check_all_refused, people, with_holes
from PIL import Image

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.widgets import explorer as explorer_module


def digits(**settings):
    return done(plain(widgets.explore, datasets.digits(40), iterations=10, **settings))


def record_in(path):
    """Return the record that a file contains, with its bytes as text."""
    packed = re.search(r'id="record">([^<]*)<', path.read_text("utf-8"))[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_the_explorer_stays_as_it_was(tmp_path):
    shown = widgets.Explorer(fits.study())
    act(shown, "point", chart="study", id=1)
    picked = digits()
    act(picked, "lasso", rows=[3, 5])
    act(picked, "component", k=2, what="off")
    for name, explorer in {"study": shown, "digits": picked}.items():
        before, heard = explorer.get_state(), []
        explorer.observe(heard.append, ["result", "value"])
        explorer.save(tmp_path / f"{name}.html")
        after = explorer.get_state()
        told = {"message": explorer.status["message"]}
        assert after.pop("status") | before.pop("status") | told == explorer.status
        assert after == before
        assert heard == []
        assert explorer.status["message"] == f"saved as {tmp_path / name}.html"


def merged(old, changes):
    """Return a record with changes, as the page makes it."""
    if isinstance(changes, dict):
        return (old or {}) | {name: merged((old or {}).get(name), x) for name, x in changes.items()}
    same = isinstance(changes, list) and isinstance(old, list) and len(changes) == len(old)
    if same and changes and isinstance(changes[0], dict):
        return [merged(*pair) for pair in zip(old, changes, strict=True)]
    return changes


@pytest.mark.parametrize("kind", ["table", "ratings"])
def test_a_component_of_a_table_or_of_ratings_has_its_answers(kind, tmp_path):
    given = {"X": with_holes(people(60))} if kind == "table" else {"data": "generated"}
    explorer = done(widgets.explore(**given, rank=3, alpha=1.0, iterations=10))
    act(explorer, "component", k=1, what="off")
    shown = record_in(explorer.save(tmp_path / "page.html"))["shown"]
    assert explorer.components["off"] == [1]
    act(explorer, "component", k=1, what="off")
    ways = {"": [], "0": ["rows"], "2": ["rows"], "-0": ["rows", "off"], "-1": ["rows", "off"]}
    for way, clicks in ways.items():
        changes = shown["components"]["answers"][way]
        act(explorer, "component", what="on")
        for what in clicks:
            act(explorer, "component", k=abs(int(way)), what=what)
        components = merged(shown["components"], changes.get("components", {}))
        for name in ("off", "chosen"):
            assert components[name] == explorer.components[name]
        sentence = [each for each in explorer.status["sentence"] if each[1] != "take"]
        assert merged(shown["status"], changes.get("status", {}))["sentence"] == sentence
        now = json.loads(json.dumps(explorer.grid or explorer.facts["lists"], default=int))
        if explorer.grid:
            assert merged(shown["grid"], changes.get("grid", {})) == now
        else:
            found = merged(shown["facts"], changes.get("facts", {}))["lists"]
            for name in ("known", "top", "about"):
                assert found[name] == now[name]


def test_every_point_of_a_study_has_its_answer(tmp_path):
    explorer = widgets.Explorer(fits.study())
    record = record_in(explorer.save(tmp_path / "study.html"))
    for n in (0, 1):
        act(explorer, "point", chart="study", id=n)
        about = record["shown"]["facts"]["abouts"][n]
        assert about == json.loads(json.dumps(explorer.tables[0]))


def test_a_file_asks_for_nothing_and_names_of_the_data_are_harmless(tmp_path, monkeypatch):
    explorer = KINDS["table"]()
    monkeypatch.setattr(type(explorer.state), "title", EVIL)
    explorer._refresh()
    text = explorer.save(tmp_path / "table.html").read_text("utf-8")
    assert "<title>&lt;/script&gt;&lt;script&gt;" in text
    assert "<img" not in text
    assert text.count("<script") == text.count("</script>") == 2
    assert set(re.findall(r"https?://[^\s\"'`)]+", text)) == {"http://www.w3.org/2000/svg"}
    script = re.search(r'<script type="module">(.*?)</script>', text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Security-Policy" content="([^"]*)"', text)[1].split(";")
    sources = dict(map(str.split, policy))
    assert sources["default-src"] == "'none'"
    assert sources["script-src"] == f"'sha256-{digest}'"
    shown = record_in(tmp_path / "table.html")["shown"]
    assert EVIL in [column["name"] for column in shown["grid"]["columns"]]


def test_code_names_files_without_their_folders(tmp_path):
    path = tmp_path / "private" / "table.csv"
    path.parent.mkdir()
    pd.DataFrame(np.random.default_rng(0).normal(size=(30, 5))).to_csv(path, index=False)
    explorer = done(widgets.explore(path, rank=1, alpha=1.0, iterations=5))
    explorer.save(tmp_path / "private" / "fit.nc")
    record = record_in(explorer.save(tmp_path / "table.html"))
    assert "private" in explorer.code()
    assert re.search(r'read_matrix\(\s*"table.csv"', record["shown"]["code_text"])
    assert str(tmp_path) not in json.dumps(record)
    assert "private" not in json.dumps(record)


def test_a_photograph_is_compressed_and_its_holes_are_kept(tmp_path):
    photo = nmd.datasets.photograph("china", size=(160, 240)).values
    explorer = done(plain(widgets.explore, photo, rank=3, iterations=3, missing=0.2))
    path = explorer.save(tmp_path / "photo.html")
    record = record_in(path)
    seen, original = (record["shown"]["pictures"][name]["floats"] for name in ("seen", "original"))
    assert seen["image"] == original["image"]  # once in the file
    assert original["missing"] is None
    sent = (record["blobs"][each["blob"]] for each in (seen["missing"], original["image"]))
    packed, image = map(base64.b64decode, sent)
    holes = np.unpackbits(np.frombuffer(packed, np.uint8), count=photo.size)
    np.testing.assert_array_equal(holes, np.isnan(explorer.state.data.observed).ravel())
    pixels = np.asarray(Image.open(io.BytesIO(image)).convert("RGB"))[..., 1] / 254
    values = original["low"] + pixels * (original["high"] - original["low"])
    assert np.sqrt(np.mean((values - photo) ** 2)) < 0.02
    assert path.stat().st_size < 500_000


def test_a_wrong_path_is_refused_before_any_work(tmp_path, monkeypatch):
    explorer = digits()
    (tmp_path / "there.html").write_text("precious")
    monkeypatch.setattr(explorer_module, "page_of", pytest.fail)
    check_all_refused([
        (r"has an unknown ending: give \.html the page", explorer.save, tmp_path / "page.txt"),
        ("has an unknown ending", explorer.save, tmp_path / "page"),
        ("is in no existing folder: make it first", explorer.save, tmp_path / "no/page.html"),
        ("exists already: give another name", explorer.save, tmp_path / "there.html"),
    ])  # fmt: skip
    assert (tmp_path / "there.html").read_text() == "precious"


def test_there_must_be_a_result_and_no_run(tmp_path):
    explorer = plain(widgets.Explorer, datasets.digits(40), iterations=10**8, tol=0, rho=1.0)
    act(explorer, "save", filename=str(tmp_path / "page.html"))
    assert "there is no result yet: fit first." in explorer.status["message"]
    explorer.start()
    explorer.state.fit.phase = "running"
    with pytest.raises(ValueError, match=r"no result yet|a run has not ended"):
        explorer.save(tmp_path / "page.html")
    explorer.stop()
    assert explorer.join()
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    explorer = digits()
    assert nmd.load(explorer.save("fit.nc")).W.identical(explorer.result.W)
    path = explorer.save("page.html")
    assert explorer.status["message"] == f"saved as {tmp_path / 'page.html'}"  # where it is
    before = path.read_bytes()
    assert explorer.save(path).read_bytes() == before  # the same page gives the same file
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(OSError, match="free space, or give another path"):
        explorer.save(path)
    assert path.read_bytes() == before
    assert {each.name for each in tmp_path.iterdir()} == {"fit.nc", "page.html"}

"""One JupyterLab and one browser for all browser tests."""

import contextlib
import os

import pytest
from own_lab import FLAGS, PROGRAMS, Notebook, Shown, find_chromium, serve


@pytest.fixture(scope="session")
def chromium():
    path = find_chromium()
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Chromium is missing: continuous integration has to install it")
        pytest.skip("browser: install Chromium, for example with apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def one_page(tmp_path_factory, chromium):
    folder = tmp_path_factory.mktemp("lab")
    with serve(folder) as address:
        context = chromium.new_context()
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        opened = Notebook(context.new_page(), address, folder)
        yield opened
        opened.end_kernels()
        context.close()


@pytest.fixture
def notebook(one_page):
    """Share one page and, for what is only shown, one kernel; nothing may go wrong there."""
    one_page.page.set_viewport_size({"width": 1100, "height": 1500})
    one_page.errors.clear()
    yield one_page
    assert one_page.errors == []


@pytest.fixture(params=PROGRAMS)
def show(request, chromium, tmp_path):
    """Return a function that shows cells in one of the programs."""
    pytest.importorskip(request.param)
    way = PROGRAMS[request.param]
    with contextlib.ExitStack() as stack:
        if isinstance(way, str):
            notebook = request.getfixturevalue("notebook")

        def shown(*cells):
            if isinstance(way, str):
                notebook.open(f"{tmp_path.name}.ipynb", cells, way)
                return notebook
            address = stack.enter_context(way(tmp_path, cells))
            context = chromium.new_context(viewport={"width": 1100, "height": 1500})
            stack.callback(context.close)
            opened = Shown(context.new_page(), address)
            opened.page.goto(address)
            return opened

        yield shown

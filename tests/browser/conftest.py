"""One JupyterLab and one browser for all browser tests."""

import os

import pytest
from own_lab import FLAGS, Notebook, find_chromium, serve


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
    with serve(folder) as address, chromium.new_context() as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        opened = Notebook(context.new_page(), address, folder)
        yield opened
        opened.end_kernels()


@pytest.fixture
def notebook(one_page):
    """Share one page and, for what is only shown, one kernel; nothing may go wrong there."""
    one_page.page.set_viewport_size({"width": 1100, "height": 1500})
    one_page.errors.clear()
    yield one_page
    assert one_page.errors == []

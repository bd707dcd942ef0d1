"""The documentation builds without warnings, offline, and its reference has every parameter."""

import html
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import softdpg

pytest.importorskip("material")
pytestmark = pytest.mark.extended
ROOT = Path(__file__).parents[2]
CLASSES = [name for name in softdpg.__all__ if isinstance(getattr(softdpg, name), type)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning of the strict build (a dead link, a page that is not in the menu) fails it."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=ROOT,
        env=os.environ
        | {"NO_MKDOCS_2_WARNING": "1", "http_proxy": "http://0.0.0.0:1", "https_proxy": "http://0.0.0.0:1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return out


def test_every_internal_link_resolves(site):
    dead, seen = [], 0
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # served at any address, so its links are absolute
            continue
        for link in re.findall(r'(?:href|src)="([^"]+)"', page.read_text()):
            link = html.unescape(link)
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            seen += 1
            if not target.is_file() or (anchor and f'id="{anchor}"' not in target.read_text()):
                dead.append(f"{page.relative_to(site)}: {link}")
    assert seen > 500
    assert dead == []


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|iframe)[^>]+src="(\w+:[^"]+)"', page.read_text())
        loaded += re.findall(r'<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="(\w+:[^"]+)"', page.read_text())
        assert loaded == [], page


@pytest.mark.parametrize("name", CLASSES)
def test_reference_has_every_parameter_of_an_algorithm(site, name):
    page = (site / "api" / "algorithms.html").read_text()
    start = page.index(f'id="softdpg.algorithms.{getattr(softdpg, name).__module__.split(".")[-1]}.{name}"')
    rows = page[start:].split("</table>")[0]
    expected = [p for p in inspect.signature(getattr(softdpg, name)).parameters if not p.startswith("_init")]
    described = re.findall(r"<tr class=\"doc-section-item\">\s*<td>\s*<code>(\w+)</code>", rows)
    assert set(expected) <= set(described)
    assert len(expected) > 20


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_search_works_from_the_file_system(site, tmp_path):
    browser = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        f"--user-data-dir={tmp_path}",
    ]
    address = f"file://{site}/api/algorithms.html?q=sigma"
    done = subprocess.run(
        [*browser, "--virtual-time-budget=8000", "--dump-dom", address], capture_output=True, text=True, timeout=300
    )
    found = re.search(r"(\d+) matching documents", done.stdout)
    assert found
    assert int(found[1]) > 5
    assert "tutorials/tuning.html" in done.stdout


def test_no_page_shows_sphinx_roles_or_private_arguments(site):
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not re.search(r":(?:class|func|meth|mod|attr|data):", text), page
        assert "_init_setup_model" not in text, page

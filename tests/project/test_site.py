"""The built documentation in a real Chromium, if it is built: accessible, searchable from files, without a network.

The accessibility checker axe-core is run where it is installed: npm install --no-save axe-core.
"""

from pathlib import Path

import pytest

from tests.support.browser import browser, open_page

pytestmark = [pytest.mark.browser]
ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "docs"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
PAGES = ("index", "start/which_command", "reference/settings", "reference/api/workbench.advise", "results/gallery")
QUESTIONS = (
    *("row-sparse", "break-even density", "lazy update", "exact update", "dual ascent", "inconclusive", "disturbed"),
    *("factored gradient", "minimum detectable ratio", "roofline"),
)


@pytest.fixture(scope="module")
def opened():
    """A browser, for all tests of this file."""
    if not (SITE / "index.html").exists():
        pytest.skip("the documentation is not built; make docs-quick")
    with browser() as started:
        yield started


@pytest.mark.covering(targets=lambda case: {case["page"], (case["width"], case["scheme"])})
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width", [420, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accessibility_checker_finds_nothing(opened, page, width, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not installed; npm install --no-save axe-core")
    context = opened.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True, offline=True
    )
    shown = context.new_page()
    shown.goto((SITE / f"{page}.html").as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    shown.evaluate(AXE.read_text(encoding="utf-8"))
    found = shown.evaluate("axe.run()")["violations"]
    context.close()
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_search_finds_a_word_of_the_glossary_without_a_server(opened, question):
    page = open_page(opened)
    page.goto(f"{(SITE / 'search.html').as_uri()}?q={question.replace(' ', '+')}")
    results = page.locator("#search-results ul.search li a")
    results.first.wait_for(timeout=20_000)
    assert "glossary.html#term-" in (results.first.get_attribute("href") or "")
    assert page.refused == []
    page.close()

"""The report in a real Chromium without a network: it sorts, filters, fits the window, prints, and can be used by all.

The accessibility checker axe-core is run where it is installed: npm install --no-save axe-core.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import rows as maker
from tests.support.browser import browser, open_page
from workbench import store
from workbench.plots import style
from workbench.reports import report

pytestmark = [pytest.mark.browser]
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """A report of many kinds of cells."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    return report.html(
        store.frame(maker.rich()), path, title="Known law", command="workbench sweep a", machine={"a": 1}
    )


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    """One of few cells, that can be checked in seconds with all of it open."""
    path = tmp_path_factory.mktemp("small") / "report.html"
    rows = maker.sweep(densities=(0.01, 0.3))
    return report.html(store.frame(rows), path, title="Known law", command="sweep", machine={"a": 1})


@pytest.fixture(scope="module")
def many_file(tmp_path_factory):
    """One of eleven candidates at twelve densities, as a whole sweep of this machine has them."""
    path = tmp_path_factory.mktemp("many") / "report.html"
    others = (replace(maker.SPARSE, format="coo"), replace(maker.SPARSE, engine="vendor", gradient="dense"))
    laws = (
        *maker.BOTH_AT_THEIR_BEST,
        *others,
        replace(maker.SPARSE, update="lazy"),
        replace(maker.DENSE, storage="csr"),
    )
    rows = maker.sweep(laws, densities=[0.005 * 1.5**step for step in range(12)])
    return report.html(store.frame(rows), path, title="Many", command="sweep", machine={"a": 1})


@pytest.fixture(scope="module")
def opened():
    """A browser, for all tests of this file."""
    with browser() as started:
        yield started


def visited(opened, path, scheme="light", width=1280):
    """The page as a window of that width shows it, and what its console complained of."""
    context = opened.new_context(
        viewport={"width": width, "height": 1000}, color_scheme=scheme, bypass_csp=True, offline=True
    )
    page, complaints = context.new_page(), []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    return page, complaints


def test_it_asks_nothing_of_a_network_and_shows_its_verdict_and_charts(opened, page_file):
    page, failures = open_page(opened), []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.goto(page_file.as_uri())
    assert "Go sparse" in page.locator("body").inner_text()
    assert page.locator("details.section[open]").count() == 0
    page.evaluate("document.querySelectorAll('details.section').forEach((one) => (one.open = true))")
    charts = page.locator(".chart-wide svg")
    assert charts.count() >= 4
    assert all(chart.bounding_box()["width"] > 300 for chart in charts.all())
    assert (page.refused, failures) == ([], [])


PLOTLY = "window.Plotly = {newPlot: (place, data) => { place.textContent = `drawn ${data.length > 0}`; }};"


def test_an_interactive_report_draws_each_chart_when_it_comes_into_view(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "plotly_script", lambda: PLOTLY)
    frame, path = store.frame(maker.sweep(densities=(0.01, 0.3))), tmp_path / "report.html"
    report.html(frame, path, title="Known law", command="sweep", machine={}, interactive=True)
    page, complaints = open_page(opened), []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(path.as_uri())
    chart = page.locator(".chart-wide").first
    chart.scroll_into_view_if_needed()
    page.get_by_text("drawn true").first.wait_for()
    assert not chart.locator("> svg").is_visible(), "the picture is for paper and narrow windows"
    page.emulate_media(media="print")
    assert chart.locator("> svg").is_visible()
    assert (page.refused, complaints) == ([], []), "the page's security policy allows its own scripts"


def test_a_narrow_window_has_charts_of_its_own_layout_with_text_of_eleven_pixels(opened, small_file):
    page, _ = visited(opened, small_file, width=420)
    wide, narrow = page.locator(".chart-wide svg").first, page.locator(".chart-narrow svg").first
    assert not wide.is_visible()
    points = float(narrow.get_attribute("width").removesuffix("pt"))
    assert style.SMALL * narrow.bounding_box()["width"] / points >= 11


@pytest.mark.parametrize("width", [420, 1280, 1920])
def test_the_page_fits_the_window_and_complains_of_nothing(opened, page_file, width):
    page, complaints = visited(opened, page_file, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []


def test_many_candidates_fit_a_window_of_1400_pixels(opened, many_file):
    page, _ = visited(opened, many_file, width=1400)
    assert page.locator("table.standings thead th").count() >= 2 * 12
    for table in page.locator(".wide:has(table.standings)").all():
        assert table.evaluate("box => box.scrollWidth - box.clientWidth") <= 0


def test_the_first_column_stays_in_sight_while_a_table_is_moved(opened, many_file):
    page, _ = visited(opened, many_file, width=420)
    box = page.locator(".wide:has(table.standings)").first
    first, second = box.locator("tbody tr").first.locator("th, td").all()[:2]
    before = first.bounding_box()["x"]
    box.evaluate("box => { box.scrollLeft = 200 }")
    assert (first.bounding_box()["x"], second.bounding_box()["x"] < before) == (before, True)


def test_no_column_is_cut_off_in_print(opened, page_file):
    """A4 between its margins has 688 pixels."""
    page, _ = visited(opened, page_file, width=688)
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 688


def test_rows_are_filtered_and_sorted(opened, page_file):
    page, _ = visited(opened, page_file)
    page.locator("details#rows > summary").click()
    page.locator(".filter input").fill("csc, 3 %")
    shown = page.locator("table.rows tbody tr:visible")
    assert 0 < shown.count() < 10
    assert all("CSC" in text for text in shown.all_inner_texts())
    page.locator(".filter input").fill("")
    page.get_by_role("button", name="time a step").click()
    orders = [
        float(o)
        for o in page.locator("table.rows td:nth-child(4)").evaluate_all("e => e.map(c => c.dataset.order)")
        if o
    ]
    assert orders == sorted(orders)


def test_a_link_of_the_verdict_table_opens_the_samples_of_its_row(opened, page_file):
    page, _ = visited(opened, page_file)
    page.locator("table.standings td.wins a").first.click()
    assert page.locator("tr:target details[open]").count() == 1
    assert "workbench train" in page.locator("tr:target pre").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accessibility_checker_finds_nothing_serious(opened, small_file, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not installed; npm install --no-save axe-core")
    page, _ = visited(opened, small_file, scheme)
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    assert [(one["id"], one["impact"]) for one in found if one["impact"] in ("serious", "critical")] == []

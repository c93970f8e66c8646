"""In a real Chromium: notebooks in JupyterLab, with their panels clicked."""

import ast
import shutil
from pathlib import Path

import pytest

from tests.support import rows as made
from tests.support.browser import browser, chromium, jupyterlab, open_page
from tests.support.clocks import SECONDS, Stopwatch, until
from tests.support.notebook_page import Lab, with_parameters
from tests.support.panel_runs import text, write_run
from workbench.panels import lab
from workbench.panels.panel import Panel
from workbench.sweeps import run_folder

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "01_can_sparse_reduce_training_time.ipynb"
START = NOTEBOOK.with_name("00_start.ipynb")
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
LONG = {
    "dataset": '"uniform"',
    "density": "[0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3]",
    "width": "[4]",
    "more": '{"features": 512, "rows": 2000, "trial_seconds": 0.5, "rounds": 3, "threads": 1}',
}
"""Parameters of a sweep of small trials that goes on until it is stopped."""


MOST_CLICKS = 6


@pytest.fixture(scope="module")
def opened():
    """A browser, for all tests of this file."""
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The folder of JupyterLab, with one in it for each test."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def address(home):
    """Where JupyterLab listens."""
    with jupyterlab(home) as listening:
        yield listening


@pytest.fixture
def notebook(opened, address, home, request):
    """Opens a notebook beside a file of the user's, `news.svm`; a sweep left in its folder is ended."""
    folder = home / request.function.__name__[5:15]
    folder.mkdir()
    (folder / "news.svm").write_text("".join(f"{row % 2} {1 + row}:1 40:2\n" for row in range(30)))

    def make(text: str, width: int = 1400) -> Lab:
        (folder / "notebook.ipynb").write_text(text, encoding="utf-8")
        page = Lab(open_page(opened, width=width), folder)
        page.open(address, folder.name)
        return page

    yield make
    for page in opened.contexts[0].pages:
        page.close()  # or its panel goes on being drawn next to the next test
    for run in run_folder.list_runs(folder / "runs"):
        run_folder.stop_run(run)
        for _ in run_folder.watch_progress(run):
            pass


def made_twice(page: Lab) -> None:
    """A panel that was made twice comes back after a reload, with few bytes.

    Widgets left by the closed panel made the kernel fail to answer: "Loading widget..." and 2.3 MB of messages.
    """
    page.panel.evaluate("panel => panel.dataset.old = 'yes'")
    page.run_all()
    sizes = []
    page.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))))
    page.reload()
    page.wait("idle")
    assert page.page.get_by_text("Loading widget").count() == 0
    assert 50_000 < sum(sizes) < 300_000


def reloaded(page: Lab) -> None:
    """The sweep goes on while the page is loaded anew, and its panel comes back and follows it."""
    page.reload()
    page.wait("running")
    before = page.done()
    until(lambda: page.done() > before)


def stopped_by_another(page: Lab, run: Path) -> None:
    """A second panel of the run, in another process, offers no second sweep; what it stops both can resume."""
    known = {name: ast.literal_eval(value) for name, value in LONG.items()}
    other = Panel(lab.study(run_dir=str(run), **known.pop("more"), **known))
    try:
        other.step()
        assert (other.run.description, other.run.disabled) == ("Run", True), "one sweep at a time"
        other.stop.click()
        page.wait("stopped")
        page.panel.get_by_role("button", name="Resume", exact=True).wait_for()
        until(lambda: other.step() or not other.state.alive)
        assert "Stopped. Resume does the rest." in text(other)
        assert (other.run.description, other.run.disabled) == ("Resume", False)
    finally:
        other.close()


def test_made_twice_run_live_chart_reload_restart_a_second_panel_stop_and_a_file_is_profiled(notebook):
    """That a run which was stopped goes on is tested in `tests/sweeps`, that it is found in `test_panels.py`."""
    page = notebook(with_parameters(NOTEBOOK.read_text(encoding="utf-8"), LONG))
    run = page.folder / "runs" / "uniform"
    page.run_all()
    page.wait("idle")
    page.shot("1-opened")
    made_twice(page)

    page.click("Run")
    page.wait("running")
    first = page.chart()
    assert first.startswith("data:image/svg+xml")
    assert page.chart(other_than=first) != first
    page.shot("2-running")
    pid, rows = run_folder.read_progress(run).pid, len(run_folder.read_current_records(run))
    assert rows > 0
    reloaded(page)
    page.restart()
    page.wait("running")
    assert run_folder.read_progress(run).pid == pid  # the same supervisor: the restart did not touch it
    assert len(run_folder.read_current_records(run)) >= rows
    assert page.chart().startswith("data:image/svg+xml")
    page.shot("3-running-after-restart")

    stopped_by_another(page, run)
    assert page.done() >= rows
    page.shot("4-stopped")
    assert "Stopped." in page.exported()
    assert "30 rows x 40 columns" in page.profile("svmlight", page.folder / "news.svm", "5-profile")
    assert page.page.refused == []


def first_chart(page: Lab, since: Stopwatch) -> None:
    """From the opened notebook to the first chart of a file of the user's; what it took `since` is printed (-s)."""
    page.run_all()
    page.panel.get_by_label("Data", exact=True).click()
    page.page.keyboard.press("Control+a")
    page.page.keyboard.type("news.svm")
    page.click("Sweep")
    page.few_rounds()
    page.click("Run")
    shown = "img.chart[alt^='Time a step']:visible, .wb-live .js-plotly-plot:visible"
    page.panel.locator(shown).first.wait_for(timeout=1000 * SECONDS)
    print(f"\nFrom opening the notebook to the first chart of a file, of three rounds: {since}, {page.clicks} clicks")
    assert page.clicks <= MOST_CLICKS
    page.click("Stop")
    page.wait("stopped")


def accessible(page: Lab) -> None:
    """axe-core finds nothing in the panel, where it is installed."""
    if AXE.exists():
        page.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.panel.evaluate("panel => axe.run(panel)")["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def explored(page: Lab) -> None:
    """A run that is stored, with the records of one format beside those of dense."""
    page.click("Explore")
    page.panel.get_by_label("Another run or file").fill("kept")
    page.page.keyboard.press("Enter")
    page.panel.get_by_text("All 240 records of kept.").wait_for(timeout=1000 * SECONDS)
    page.shot("explored")
    accessible(page)
    page.panel.get_by_label("Sparse format", exact=True).select_option("csc")
    page.panel.get_by_text("Sparse format csc; dense stays.").wait_for(timeout=1000 * SECONDS)


def narrow(page: Lab) -> None:
    """At 420 px a long path in a message is broken."""
    page.click("Inspect")
    page.page.set_viewport_size({"width": 420, "height": 1000})
    page.page.wait_for_timeout(500)
    page.panel.get_by_label("Data", exact=True).first.fill(f"{'nowhere/' * 12}x.csv")
    page.page.keyboard.press("Tab")
    page.panel.locator(".wb-answer").get_by_role("button", name="Inspect", exact=True).click()
    problem = page.panel.locator(".wb-problem").first
    problem.wait_for()
    assert problem.evaluate("box => box.scrollWidth <= box.clientWidth")


def test_the_first_notebook_answers_by_its_buttons_and_a_file_has_its_chart_after_few_clicks(notebook):
    began = Stopwatch()
    page = notebook(START.read_text(encoding="utf-8"), width=1280)
    write_run(page.folder / "kept", made.rich(), "finished")
    first_chart(page, began)
    explored(page)
    page.click("Inspect")
    page.panel.locator(".wb-answer").get_by_role("button", name="Inspect", exact=True).click()
    page.panel.locator(".wb-answer table").first.wait_for()
    assert "a batch of 30 rows x 40 columns, 5 % stored" in page.panel.inner_text()
    page.shot("1-inspected")
    for answer in ("Advise", "Compare"):
        page.click(answer)
        page.panel.locator(".wb-answer .jupyter-widgets").first.wait_for()
        page.shot(answer)
    assert page.panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth")
    narrow(page)
    assert page.page.refused == []


def test_a_missing_browser_skips_here_and_fails_in_ci(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium on the PATH"):
        chromium()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="in CI the browser tests must run"):
        chromium()

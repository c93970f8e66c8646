"""A notebook in JupyterLab, in a browser: opened, run, saved, loaded anew, its panel clicked, as a user does."""

import re
from pathlib import Path

from tests.support.clocks import until


def with_parameters(text: str, changed: dict[str, str]) -> str:
    """The notebook's text with other values in its cell of parameters."""
    for name, value in changed.items():
        text, count = re.subn(
            rf'("{name}: \w+ = ).*?(  #)', lambda m, v=value: m[1] + v.replace('"', '\\"') + m[2], text
        )
        assert count == 1, name
    return text


COUNTING = "window.pressed = 0; addEventListener('pointerdown', event => window.pressed += event.isTrusted, true)"


class Lab:
    """The notebook in a browser, as a user handles it."""

    def __init__(self, page, folder: Path) -> None:
        self.page, self.folder, self.shots = page, folder, folder / "shots"
        page.add_init_script(COUNTING)
        self.shots.mkdir(exist_ok=True)

    @property
    def clicks(self) -> int:
        """How often the user pressed the pointer."""
        return self.page.evaluate("window.pressed")

    def open(self, address: str, folder: str) -> None:
        """Open the notebook of a folder, in a workspace of its own: others hold what was opened before."""
        self.page.goto(address.replace("/lab?", f"/lab/workspaces/{folder}/tree/{folder}/notebook.ipynb?"))
        self.idle()

    def idle(self) -> None:
        self.page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()

    def menu(self, menu: str, entry: str) -> None:
        self.page.get_by_role("menuitem", name=menu, exact=True).click()
        self.page.get_by_role("menuitem", name=entry).first.click()

    def run_all(self) -> None:
        self.menu("Run", "Run All Cells")
        self.found()

    def restart(self) -> None:
        """Restart the kernel, run all cells, and wait for the new panel in place of the old one."""
        self.panel.evaluate("panel => panel.dataset.old = 'yes'")
        self.menu("Kernel", "Restart Kernel and Run All Cells…")
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        self.found()

    def reload(self) -> None:
        """Save, load the page anew, and scroll to the panel, which comes back from the kernel."""
        self.saved("widget-view")
        self.page.reload()
        self.idle()
        self.page.locator(".jp-WindowedPanel-outer").first.hover()
        until(self._scrolled)
        self.found()

    def _scrolled(self) -> int:
        """Scroll on; how many panels are in sight, for cells that are not have no widgets."""
        self.page.mouse.wheel(0, 300)
        self.page.wait_for_timeout(200)
        return self.page.locator(".workbench-lab").count()

    def found(self) -> None:
        self.page.locator(".workbench-lab:not([data-old])").wait_for()
        self.panel.scroll_into_view_if_needed()

    @property
    def panel(self):
        return self.page.locator(".workbench-lab").first

    def click(self, button: str) -> None:
        self.panel.get_by_role("button", name=button, exact=True).click()

    def press(self, button: str) -> None:
        """The same by the keyboard."""
        self.panel.get_by_role("button", name=button, exact=True).focus()
        self.page.keyboard.press("Enter")

    def exported(self) -> str:
        """The saved notebook as a page for readers without a kernel: the first one that says that the run is over."""
        import nbconvert  # takes seconds, as nbformat does
        import nbformat

        self.page.locator("details", has_text="Stopped.").wait_for(state="attached")
        text = self.saved("Stopped.")
        return nbconvert.HTMLExporter().from_notebook_node(nbformat.reads(text, as_version=4))[0]

    def saved(self, sought: str) -> str:
        """The notebook's text once it is saved with what is sought in it."""

        def save() -> str:
            self.page.keyboard.press("Control+s")
            self.page.wait_for_timeout(500)
            text = (self.folder / "notebook.ipynb").read_text(encoding="utf-8")
            return text if sought in text else ""

        return until(save)

    def few_rounds(self) -> None:
        """Ask, by the keyboard, for too few rounds to decide: such a sweep does not wait for a quiet machine."""
        self.press("Change what is measured")
        field = self.panel.get_by_label("Rounds", exact=True)
        field.fill("3")
        field.press("Tab")

    def wait(self, status: str) -> None:
        """Wait for a status."""
        self.panel.locator(f".wb-{status}").wait_for()

    def chart(self, other_than: str = "") -> str:
        """The source of the chart's picture, once it is another one; with Plotly the live chart stands in its place."""
        self.panel.locator("img.chart:visible, .wb-live .js-plotly-plot:visible").first.wait_for()
        image = self.panel.locator("img.chart")
        return until(lambda: (source := image.get_attribute("src")) != other_than and source)

    def done(self) -> int:
        """Trials done, as the panel says."""
        return int(re.search(r"(\d+) of \d+ trials ·", self.panel.inner_text())[1])

    def profile(self, dataset: str, path: Path, shot: str) -> str:
        """Choose a file of the user's and wait for the chart of its profile; what the panel says then."""
        self.panel.get_by_label("Data set", exact=True).select_option(dataset)
        field = self.panel.get_by_label("Your file", exact=True)
        field.fill(str(path))
        field.press("Tab")
        self.panel.locator("img.chart[alt^='Columns, rows']").wait_for()
        self.panel.scroll_into_view_if_needed()
        self.shot(shot)
        return self.panel.inner_text()

    def shot(self, name: str) -> None:
        self.page.screenshot(path=self.shots / f"{name}.png")

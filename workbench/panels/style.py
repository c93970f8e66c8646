"""The look of a panel: JupyterLab's own colours, so that it follows the theme; fields in a grid that wraps."""

import threading
from collections.abc import Callable

# A thread that does one thing again and again; it ends with its panel, or with the kernel.


SECONDS_BETWEEN = 0.25


class Watcher:
    """Calls `step` again and again from `start` to `stop`, with so many `seconds` between."""

    def __init__(self, step: Callable[[], None], seconds: float = SECONDS_BETWEEN) -> None:
        """Prepare a thread that calls `step()` every `seconds`; `start` starts it."""
        self.step, self.seconds = step, seconds
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; no effect while it runs. A watcher that was stopped ends at once."""
        if not self.alive:
            self._thread = threading.Thread(target=self._look, name="panel watcher", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread, waiting up to 5 s for the step at work unless called from it."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _look(self) -> None:
        """Call `step` every `seconds` until `stop`; body of the thread."""
        while not self._ended.wait(self.seconds):
            self.step()


SHEET = """<style>
.workbench-lab { container-type: inline-size; max-width: 1200px; padding: 4px 2px; gap: 10px;
  overflow: visible; color: var(--jp-ui-font-color1, #222); }
.workbench-lab .wb-answer > .widget-vbox > * { margin-bottom: 8px; }
.workbench-lab .wb-grid { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 8px 20px;
  overflow: visible; width: 100%; }
.workbench-lab .wb-field, .workbench-lab .wb-field > * { width: auto; overflow: visible; margin: 0; }
.workbench-lab .wb-grid .widget-text, .workbench-lab .wb-grid .widget-dropdown { display: flex; flex-direction: column;
  align-items: stretch; width: auto; height: auto; margin: 0; }
.workbench-lab .wb-grid .widget-text > label, .workbench-lab .wb-grid .widget-dropdown > label { text-align: left;
  max-width: none; height: 22px; line-height: 22px; font-weight: 600; }
.workbench-lab .wb-grid .widget-hslider { display: grid; grid-template-columns: minmax(0, 1fr) auto; width: auto;
  height: auto; margin: 0; align-items: center; }
.workbench-lab .wb-grid .widget-hslider > label { grid-column: 1 / -1; text-align: left; max-width: none; height: 22px;
  line-height: 22px; font-weight: 600; }
.workbench-lab .wb-grid .widget-hslider .slider-container { margin: 0 12px 0 8px; }
.workbench-lab .wb-field > .widget-label { font-weight: 600; height: 22px; line-height: 22px; }
.workbench-lab .wb-grid input[type=text], .workbench-lab .wb-grid select { width: 100%; flex: none; height: 28px; }
.workbench-lab .wb-files, .workbench-lab .wb-files select { width: 100%; }
.workbench-lab .wb-field > .widget-toggle-button { margin: 2px 0 0; height: 24px; line-height: 24px; width: auto; }
.workbench-lab .wb-grid .wb-files select { height: 190px; }
.workbench-lab .wb-files { flex-direction: column; height: auto; margin: 2px 0; }
.workbench-lab .wb-files > label { text-align: left; width: auto; max-width: none; }
.workbench-lab .wb-field .widget-hbox { flex-wrap: wrap; column-gap: 14px; }
.workbench-lab .widget-checkbox { width: auto; margin: 0; }
.workbench-lab .widget-html, .workbench-lab .widget-html-content { line-height: 1.45; height: auto; width: 100%;
  margin: 0; }
.workbench-lab .wb-row { align-items: center; gap: 6px 12px; flex-wrap: wrap; overflow: visible; }
.workbench-lab .wb-row > .widget-html { width: auto; flex: 1 1 260px; }
.workbench-lab .wb-row > .jupyter-button { margin: 0; width: 110px; }
.workbench-lab .wb-row > .widget-hprogress { flex: 0 1 340px; margin: 0; }
.workbench-lab .widget-toggle-button { margin: 6px 0; align-self: flex-start; }
.workbench-lab .widget-toggle-buttons { flex-direction: column; }
.workbench-lab .widget-toggle-buttons > label { text-align: left; font-weight: 600; }
.workbench-lab .widget-toggle-button, .workbench-lab .widget-toggle-buttons button { width: auto; padding: 0 14px; }
.workbench-lab .wb-problem { border-left: 4px solid var(--jp-error-color1, #c62828); padding: 4px 10px;
  overflow-wrap: anywhere; }
.workbench-lab .wb-outdated { border-left-color: var(--jp-warn-color1, #b26a00); }
.workbench-lab .wb-old { opacity: 0.55; }
.workbench-lab .wb-status { font-weight: 600; padding: 4px 0; }
.workbench-lab .wb-now { color: var(--jp-ui-font-color2, #555); font-size: 90%; overflow-wrap: anywhere; }
.workbench-lab .wb-pictures { display: flex; flex-wrap: wrap; gap: 4px 20px; }
.workbench-lab figure { overflow-x: auto; }
.workbench-lab .chart { min-width: 560px; }
.workbench-lab .wb-pictures .chart { min-width: 400px; }
.workbench-lab .wb-pictures figure { min-width: 0; }
.workbench-lab figcaption { position: sticky; left: 0; }
.workbench-lab .wb-pictures figure { flex: 1 1 360px; max-width: 580px; }
.workbench-lab .wb-headlines { display: flex; flex-wrap: wrap; gap: 4px 40px; }
.workbench-lab .wb-headlines p { margin: 4px 0; flex: 1 1 340px; max-width: 520px; }
.workbench-lab .wb-number { font-size: 150%; }
.workbench-lab .verdict { font-size: 115%; margin: 4px 0; }
.workbench-lab .wb-told { font-size: 100%; margin: 8px 0 4px; }
.workbench-lab figcaption { color: var(--jp-ui-font-color2, #555); }
.workbench-lab .scroll { overflow-x: auto; }
.workbench-lab table { border-collapse: collapse; width: 100%; }
.workbench-lab caption { text-align: left; font-weight: 600; padding: 2px 0; }
.workbench-lab th, .workbench-lab td { text-align: left; padding: 3px 10px 3px 0; vertical-align: top;
  border-bottom: 1px solid var(--jp-border-color2, #ddd); }
.workbench-lab td:not(:last-child), .workbench-lab th[scope=row] { white-space: nowrap; }
.workbench-lab thead th { vertical-align: bottom; min-width: 60px; }
.workbench-lab td:last-child:not(:only-child) { min-width: 180px; }
.workbench-lab .wb-wrap td:not(:only-child) { white-space: normal; min-width: 60px; }
@container (max-width: 640px) { .workbench-lab .wb-grid { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
@container (max-width: 340px) { .workbench-lab .wb-grid { grid-template-columns: minmax(0, 1fr); } }
.workbench-lab .wb-cells td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.workbench-lab .wb-cells .wb-cell-waiting { color: var(--jp-ui-font-color3, #888); }
.workbench-lab .wb-reasons { margin: 4px 0; padding-left: 22px; }
.workbench-lab .wb-copy { margin-left: 8px; padding: 2px 10px; cursor: pointer; border: 1px solid
  var(--jp-border-color1, #bbb); background: var(--jp-layout-color2, #eee); color: var(--jp-ui-font-color1, #222); }
.workbench-lab .wb-cell-picker, .workbench-lab .wb-cell-picker select { width: 100%; max-width: 760px; }
:is([data-jp-theme-light="false"], .vscode-dark, html[theme="dark"])
  .workbench-lab svg[aria-label="graph of operators"] { filter: invert(1) hue-rotate(180deg); }
:is([data-jp-theme-light="false"], .vscode-dark, html[theme="dark"]) .workbench-lab select {
  background-image: linear-gradient(45deg, transparent 50%, #ddd 50%),
    linear-gradient(135deg, #ddd 50%, transparent 50%);
  background-position: right 13px center, right 8px center; background-size: 5px 5px; }
.workbench-lab code { overflow-wrap: anywhere; white-space: pre-wrap; }
.workbench-lab summary { cursor: pointer; }
.workbench-lab pre { white-space: pre-wrap; }
.workbench-lab :focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
</style>"""

_NAME_SLIDERS = (
    "const panel = this.closest('.workbench-lab') || document.body;"
    "const name = () => panel.querySelectorAll('.widget-hslider').forEach(slider => {"
    "const handle = slider.querySelector('.noUi-handle'), label = slider.querySelector('label');"
    "if (handle && label) handle.setAttribute('aria-label', label.textContent); });"
    "new MutationObserver(name).observe(panel, {childList: true, subtree: true}); name();"
)
NAMES = (
    f'<img alt="" hidden src="data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==" '
    f'onload="{_NAME_SLIDERS}">'
)
"""Gives the handles of sliders the name of their slider for screen readers, which ipywidgets leaves out."""

"""Lines that follow the state: plan, status, progress, troubles, exported files; each a widget and how to fill it."""

import html

import ipywidgets as widgets

from workbench.panels import pages
from workbench.panels.state import LabState, Trouble, emphasized, left, shorter

COPY = "navigator.clipboard.writeText(this.previousElementSibling.textContent);this.textContent='Copied'"
"""What the button next to the command does, where the page is shown: no kernel is asked."""
BARS = {"finished": "success", "stopped": "warning", "failed": "danger"}


def plan_line(state: LabState) -> str:
    """Return HTML on what Run would do, or on what is wrong with the choices."""
    planned = state.planned
    if planned is None:
        lines = emphasized(html.escape(state.problem))
        return f'<div class="wb-problem" role="alert"><strong>Not ready.</strong> {lines}</div>'
    configurations = "; ".join(map(html.escape, planned.configurations))
    due = str(planned).removesuffix(planned.sight).rstrip()
    sight = planned.sight if due != str(planned) else ""
    trials = f"<strong>{html.escape(due)}</strong> {html.escape(' '.join(filter(None, (sight, planned.without))))}"
    follow = html.escape(state.following)
    return f"<div>{trials} Configurations: {configurations}.{' <br>' if follow else ''}{follow}</div>"


def command_line(state: LabState) -> str:
    """Return HTML of the command that does what Run does, folded, with a copy button; "" if Run cannot start."""
    if state.planned is None:
        return ""
    return f"<details><summary>The same as a command</summary><div>{copied(state.command)}</div></details>"


def copied(command: str) -> str:
    """Return HTML of a command with a button that copies it."""
    button = f'<button type="button" class="wb-copy" onclick="{COPY}" aria-label="Copy the command">Copy</button>'
    return f"<code>{html.escape(command)}</code> {button}"


def outdated_line(state: LabState) -> str:
    """Return HTML that says how the shown results differ from the present settings; "" if they do not."""
    if not state.outdated:
        return ""
    differs = f"<strong>{pages.OUTDATED}</strong> The run has {html.escape(state.outdated)}."
    own = f" in {shorter(state.target)}; this run stays in {shorter(state.folder)}"
    where = "" if state.target == state.folder else html.escape(own)
    return f'<div class="wb-problem wb-outdated" role="status">{differs} Run measures what is chosen now{where}.</div>'


def status_line(state: LabState) -> str:
    """Return HTML on what the sweep is doing, marked up so that screen readers announce changes."""
    sign, text = _status(state)
    return f'<div role="status" aria-live="polite" class="wb-status wb-{state.status}">{sign} {html.escape(text)}</div>'


def _status(state: LabState) -> tuple[str, str]:
    """Return (symbol, sentence) of the run's status, such as ("✓", "Finished.")."""
    known = {
        "idle": ("○", "No run yet."),
        "starting": ("◔", "Starting."),
        "running": ("▶", "Running. Stop any time; finished trials stay."),
        "stopping": ("◔", "Stopping."),
        "stopped": ("■", "Stopped. Resume does the rest." if state.is_resumable else "Stopped."),
        "finished": ("✓", "Finished."),
    }
    if state.status in known:
        return known[state.status]
    return "✗", f"Failed. {state.progress.message if state.progress else ''}"


def progress_line(state: LabState) -> str:
    """Return HTML on the trials done, their results, the time left and what is measured now; "" without a run."""
    if state.progress is None:
        return ""
    progress = state.progress
    parts = [f"{progress.done} of {progress.total} trials"]
    if state.counts:
        parts.append(pages.counts(state.counts))
    parts += [text] if (text := left(progress)) else []
    lines = [*filter(None, [progress.now]), *progress.by_agent] if state.alive else []
    now = f'<div class="wb-now">Now: {"<br>".join(map(html.escape, lines))}</div>' if lines else ""
    return f"<div>{html.escape(' · '.join(parts))}</div>{now}"


def trouble_box(state: LabState) -> str:
    """Return HTML of the last error; "" if there is none."""
    return "" if state.trouble is None else trouble(state.trouble)


def trouble(found: Trouble) -> str:
    """Return HTML of an error's summary, with its traceback folded if it has one."""
    summary, details = (html.escape(text) for text in found)
    summary = emphasized(summary)
    folded = f"<details><summary>Traceback</summary><pre>{details}</pre></details>" if details else ""
    return f'<div class="wb-problem" role="alert"><strong>{summary}</strong>{folded}</div>'


def exported_line(state: LabState) -> str:
    """Return HTML with the paths of the exported files; "" if there are none."""
    if not state.exported:
        return ""
    files = ", ".join(f"<code>{html.escape(shorter(path))}</code>" for path in state.exported)
    return f'<div role="status">Written: {files}</div>'


LINES = (plan_line, command_line, status_line, progress_line, trouble_box, exported_line, outdated_line)


class Live:
    """The widgets of these lines, filled again whenever what they show changed."""

    def __init__(self, state: LabState) -> None:
        """Make a widget for each line and the progress bar, kept up to date with the traits of `state`."""
        self.state = state
        self.bar = widgets.IntProgress(
            description="Trials", tooltip="Trials done of all", style={"description_width": "initial"}
        )
        self.lines = {line: widgets.HTML() for line in LINES}
        shown = ["problem", "planned", "progress", "rows", "stopping", "trouble", "exported", "outdated"]
        state.observe(lambda _: self.fill(), names=shown)
        self.fill()

    def fill(self) -> None:
        """Set all lines and the progress bar from the state; unchanged lines are not sent again."""
        for line, widget in self.lines.items():
            if line is not plan_line or self.state.problem or self.state.planned:
                widget.value = line(self.state)
                widget.layout.display = None if widget.value else "none"
        progress = self.state.progress
        with self.bar.hold_sync():
            self.bar.layout.display = None if progress else "none"
            self.bar.max = max(progress.total, 1) if progress else 1
            self.bar.value = progress.done if progress else 0
            self.bar.bar_style = BARS.get(self.state.status, "info")

"""The grid of configurations in the panel: results, the one at work, reasons; and the command that does the same."""

import html
import re

import pytest

from tests.support import rows as made
from tests.support.panel_runs import write_run
from workbench.panels import lab
from workbench.panels import panel as panels_panel
from workbench.sweeps import grid, run_folder
from workbench.sweeps.spec import dump_spec


@pytest.fixture
def study(here):
    """A study of two densities whose run has begun; its configurations of steps by (density, format, on one thread)."""
    steps = {"updates": ["lazy"], "launches": ["kernels"], "holds": ["format"]}
    found = lab.study(dataset="uniform", densities=[0.01, 0.1], engines=["ours"], **steps)
    configurations_of_steps = [
        configuration
        for configuration in grid.expand_grid(found.spec()).configurations
        if configuration.launch == "kernels"
    ]
    return found, {
        (configuration.density, configuration.format, configuration.serial): grid.configuration_key(configuration)
        for configuration in configurations_of_steps
    }


def begun(study, rows, **known):
    write_run(study.folder, rows, **known)
    (study.folder / run_folder.SPEC).write_text(dump_spec(study.spec()))
    study.poll()
    return panels_panel.of_run(study)


def row(key, status="ok", seconds=0.002, **other):
    known = {"key": key, "status": status, "seconds_step": seconds if status == "ok" else None, "reason": None}
    return {**made.rich()[0], **known, **other}


def lines(shown):
    """The rows of the grid as texts."""
    body = shown.partition("<tbody>")[2].partition("</tbody>")[0]
    texts = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in body.split("</tr>") if line]
    return {name: [html.unescape(re.sub("<.*?>", "", text)) for text in result] for name, *result in texts}


def test_every_configuration_tells_what_came_of_it_with_its_reason_and_reasons_are_listed_once(study):
    state, keys = study
    refused = "It takes <1 TB>."
    timed = enumerate((0.002, 0.004, 0.009))
    rows = [row(keys[0.01, "csr", False], seconds=seconds, round=number) for number, seconds in timed]
    rows += [row(keys[density, "dense", True], "memory", reason=refused) for density in (0.01, 0.1)]
    shown = begun(state, rows, state="finished", current_key=keys[0.1, "csr", False])
    heads = re.findall(r'<th scope="col">(.*?)</th>', shown)
    assert heads == ["Settings", "CSR ours · fused gradient · lazy", "dense", "dense, 1 thread", "dense · epoch"]
    lost = f"▣ memory [1]{refused}"
    assert lines(shown) == {"1 %": ["✓ 4 ms × 3", "·", lost, "·"], "10 %": ["·", "·", lost, "·"]}
    folded = "<details><summary>▣ memory [1]</summary>It takes &lt;1 TB&gt;.</details>"
    assert shown.count(folded) == 2, "a click on the cell unfolds its reason"
    assert shown.count("<li>It takes &lt;1 TB&gt;.</li>") == 1


def test_the_configuration_at_work_is_marked_while_the_run_is_alive(study):
    state, keys = study
    shown = begun(state, [row(keys[0.01, "csr", False])], current_key=keys[0.01, "csr", False])
    assert lines(shown)["1 %"][0] == "✓ 2 ms × 1 ▶ now"
    assert "<details open>" in shown
    over = begun(state, [row(keys[0.01, "csr", False])], state="stopped", current_key=keys[0.01, "csr", False])
    assert "now" not in over
    assert "<details>" in over


def test_a_run_without_a_spec_or_with_a_damaged_one_has_no_grid(study):
    state, keys = study
    write_run(state.folder, [row(keys[0.01, "csr", False])])
    state.poll()
    assert panels_panel.of_run(state) == ""
    (state.folder / run_folder.SPEC).write_text("{")
    assert panels_panel.of_run(state) == ""


def test_the_panel_shows_the_command_of_its_choices_and_of_no_others(here, opened):
    panel = opened(lab.study(dataset="uniform", widths=4))
    shown = {line.__name__: widget for line, widget in panel.live.lines.items()}["command_line"]
    name = "can_sparse_reduce_training_time"
    assert f"workbench sweep --dataset uniform --widths 4 --run runs/{name}</code>" in shown.value
    panel.form.fields["densities"].inputs[0].value = "0.1, <b>"
    assert shown.value == ""
    panel.form.fields["densities"].inputs[0].value = "0.1"
    assert "--densities 0.1 --widths 4" in shown.value


def test_the_command_of_a_given_sweep_names_its_spec(here):
    study = lab.study_of({"name": "mine", "axes": {"dataset": "uniform"}})
    assert study.command == "workbench sweep runs/mine/spec.json --run runs/mine"

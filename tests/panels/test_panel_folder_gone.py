"""Stop and Export say in one line that the run folder is gone; the panel of a damaged run opens and says so."""

import shutil

import pytest

from tests.support import rows as made
from tests.support.panel_runs import text, write_run
from workbench import store
from workbench.panels import lab


@pytest.mark.parametrize("action", ["stop", "export"])
def test_a_run_folder_that_is_gone_is_told_in_a_line(here, action):
    study = lab.study()
    write_run(study.folder, made.sweep())
    shutil.rmtree(study.folder)
    getattr(study, action)()
    assert study.trouble.summary.endswith("is gone: press Run to measure again.")
    assert not study.trouble.details


@pytest.mark.parametrize("line", [b"\xff\xfe\n", b"[]\n"])
def test_the_panel_of_a_run_with_a_damaged_line_opens_and_says_what_to_do(here, opened, line):
    folder = here / "runs" / lab.NAME
    write_run(folder, made.sweep()[:4], "finished")
    with open(folder / store.FILE, "r+b") as file:
        rows = file.read()
        file.seek(0)
        file.write(line + rows)
    panel = opened(lab.study())
    panel.step()
    assert "line 1 is" in text(panel)
    assert "or remove that line." in text(panel)
    assert "Traceback" not in text(panel)

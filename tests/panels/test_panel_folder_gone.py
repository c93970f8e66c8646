"""Stop and Export say in one line that the run folder is gone."""

import shutil

import pytest

from tests.support import rows as made
from tests.support.panel_runs import write_run
from workbench.panels import lab


@pytest.mark.parametrize("action", ["stop", "export"])
def test_a_run_folder_that_is_gone_is_told_in_a_line(here, action):
    study = lab.study()
    write_run(study.folder, made.sweep())
    shutil.rmtree(study.folder)
    getattr(study, action)()
    assert study.trouble.summary.endswith("is gone: press Run to measure again.")
    assert not study.trouble.details

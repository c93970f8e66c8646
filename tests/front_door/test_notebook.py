"""The front door in a notebook, executed by nbclient: cards, pictures, progress, and the panel without a front end."""

import pytest

CELLS = (
    "import numpy as np, workbench as wb\nX = np.eye(32)[np.arange(128) % 32]; y = np.arange(128) % 2",
    "wb.profile(X)",
    'quick = {"engine": "ours", "execution": "step", "storage": "same", "rounds": 1, "trial_seconds": 0.01}\n'
    'result = wb.sweep(X, y, density=0.02, format="csr", update="lazy", **quick)\nresult',
    "result.verdict",
    "axes = result.plot()",
    "wb.lab(X, y)",
    "wb.train(X, y)",
    "wb.lab(X, y, show_widgets=True)",
)


@pytest.mark.slow
def test_cells_of_a_newcomer_show_cards_and_pictures(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")  # take seconds
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    _, profile, result, verdict, plotted, lab, _, panel = (cell.outputs for cell in notebook.cells)
    for outputs in (profile, result, verdict):
        assert any("workbench-card" in output.get("data", {}).get("text/html", "") for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in plotted)
    assert "there is no panel. Type wb.sweep(X, y)" in lab[0]["text"]
    views = [output for output in panel if "application/vnd.jupyter.widget-view+json" in output.get("data", {})]
    assert len(views) == 1, "the panel is shown once, though it is the value of the cell"

"""Notebooks: their form, and that papermill runs them; small, in a folder of their own."""

import ast
import importlib.util
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import workbench as wb
from tests.support.clocks import SECONDS
from workbench.settings import CHOICES
from workbench.study import suited

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LAB = ROOT / "notebooks" / "01_can_sparse_reduce_training_time.ipynb"
OTHERS = [path for path in NOTEBOOKS if path != LAB]
SHORT = [path for path in OTHERS if path.stem[:2] in ("08", "09")]
LONG = [pytest.param(path, marks=pytest.mark.exhaustive) for path in OTHERS if path not in SHORT]
"""Notebooks that are run on a file below: on what they generate they run with `--exhaustive`."""
FRAMEWORKS = ("keras", "tensorflow", "torch")
"""What a notebook may need that the project does without; its test is then skipped, as those of bridges are."""
START = ("absl::InitializeLog()", "oneDNN custom operations are on")
"""Lines that TensorFlow writes when it is loaded, whatever its level of logging."""
WB_ONLY = [path for path in NOTEBOOKS if path.stem[:2] in ("00", "01", "02", "03", "04", "05")]
"""Notebooks that read like what a person types: the front door, and other packages of the project by their bridges."""


FIRST = """\
from tests.support.sweeps import supervised_here
supervised_here().__enter__()
"""
"""What the kernel runs first: sweeps start no interpreter, and all share one fork server.

Notebooks whose sweeps are supervised by a separate process, as users have it: `panels/test_browser.py`.
"""
FRESH = """\
import os
os.chdir({folder!r})
get_ipython().reset()
"""
"""What it runs before each notebook: names and the record of cells are forgotten, as in a new kernel."""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """The kernel that runs all notebooks of this file, one after the other; nothing of the user's is read."""
    from jupyter_client.manager import KernelManager

    folder = tmp_path_factory.mktemp("kernel")
    (folder / "ipython" / "profile_default" / "startup").mkdir(parents=True)
    (folder / "ipython" / "profile_default" / "startup" / "first.py").write_text(FIRST)
    own = {"PYTHONPATH": ROOT, "WORKBENCH_CACHE": folder / "cache", "IPYTHONDIR": folder / "ipython"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_RUNTIME_DIR", str(folder / "runtime"))
        manager = KernelManager(kernel_name="python3")
        manager.start_kernel(cwd=folder, env=os.environ | {name: str(value) for name, value in own.items()})
        yield manager
        manager.shutdown_kernel(now=True)


@pytest.fixture
def here(tmp_path, monkeypatch, kernel) -> Path:
    """An empty folder to run in, also for the kernel, which has forgotten the names of the notebook before."""
    monkeypatch.chdir(tmp_path)
    client = kernel.client()
    client.start_channels()
    client.wait_for_ready(SECONDS)
    client.execute_interactive(FRESH.format(folder=str(tmp_path)), timeout=SECONDS, store_history=False)
    client.stop_channels()
    return tmp_path


@pytest.fixture
def execute(here, kernel, monkeypatch):
    """Runs a notebook with parameters; returns the one that papermill writes to `out.ipynb`."""
    import papermill

    client = kernel.client()
    monkeypatch.setattr(kernel, "client", lambda: client)  # nbclient leaves its client open in a kernel of others

    def run(path: Path, /, **parameters) -> "NotebookNode":
        options = {"progress_bar": False, "start_timeout": SECONDS, "km": kernel}
        try:
            papermill.execute_notebook(path, "out.ipynb", parameters=parameters, **options)
        finally:
            client.stop_channels()
        return read(Path("out.ipynb"))

    return run


def read(path: Path) -> "NotebookNode":
    import nbformat  # takes seconds: not when tests are collected

    return nbformat.read(path, as_version=4)


def inspected(path: Path) -> dict[str, dict]:
    """What papermill says of a notebook's parameters."""
    import papermill

    return papermill.inspect_notebook(path)


def tagged(notebook: "NotebookNode", tag: str) -> "list[NotebookNode]":
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", ())]


def needed(notebook: "NotebookNode") -> set[str]:
    """The frameworks that a notebook imports."""
    trees = [ast.parse(cell.source) for cell in notebook.cells if cell.cell_type == "code"]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name.partition(".")[0] for name in names} & set(FRAMEWORKS)


def unexpected(text: str) -> list[str]:
    """Lines of an error stream but those of TensorFlow's start."""
    return [line for line in text.splitlines() if line.strip() and not any(known in line for known in START)]


def problems(notebook: "NotebookNode") -> list[str]:
    """What a committed notebook must not have."""
    found = []
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if any(cell.outputs or cell.execution_count for cell in code):
        found.append("outputs")
    if "widgets" in notebook.metadata:
        found.append("widget state")
    trees = [ast.parse(cell.source) for cell in code]
    if any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda) for tree in trees for node in ast.walk(tree)):
        found.append("definitions")
    if len(tagged(notebook, "parameters")) != 1 or "parameters" not in code[0].metadata.get("tags", ()):
        found.append("parameters cell")
    if len(tagged(notebook, "gate")) != 1 or "gate" not in code[-1].metadata.get("tags", ()):
        found.append("gate cell")
    if notebook.metadata.kernelspec.name != "python3" or "version" in notebook.metadata.language_info:
        found.append("kernel of one machine")
    return found


def overwritten(notebook: "NotebookNode") -> list[str]:
    """Parameters that a later cell assigns, but in a block `if smoke:`, which makes everything small."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    (cell,) = tagged(notebook, "parameters")
    parameters = {node.target.id for node in ast.parse(cell.source).body if isinstance(node, ast.AnnAssign)}
    nodes = [node for other in code if other is not cell for node in ast.parse(other.source).body]
    small = [
        node for node in nodes if isinstance(node, ast.If) and ast.unparse(node.test) == "smoke" and not node.orelse
    ]
    stored = [
        inner.id
        for node in nodes
        if node not in small
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load)
    ]
    return [name for name in stored if name in parameters]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_cell_overwrites_a_parameter(path):
    """Notebook 05 named the axes of its charts `labels`, as the file of labels that the next sweep reads."""
    assert overwritten(read(path)) == []


def test_the_check_of_overwritten_parameters_can_fail():
    notebook = read(ROOT / "notebooks" / "05_graph.ipynb")
    last = notebook.cells[-1]
    for source in ("labels = 1", "for path in []: pass", "rounds += 1", "if smoke:\n    pass\nelse:\n    degrees = 1"):
        last.source = source
        assert len(overwritten(notebook)) == 1, source
    last.source = "if smoke:\n    rounds = 1"
    assert overwritten(notebook) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_committed_notebook_is_clean(path):
    import nbformat

    notebook = read(path)
    nbformat.validate(notebook)
    assert not problems(notebook)
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    assert path.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"  # as Jupyter saves it: small diffs


def test_the_check_of_notebooks_can_fail():
    notebook = read(LAB)
    notebook.metadata.widgets = {}
    notebook.cells[-1].source = "def f(): pass"
    notebook.cells[-1].metadata.tags = []
    notebook.cells[-1].execution_count = 1
    assert problems(notebook) == ["outputs", "widget state", "definitions", "gate cell"]


def test_parameters_are_literals_with_type_and_help_and_the_panels_own():
    lines = tagged(read(LAB), "parameters")[0].source.splitlines()
    values = {}
    for line, node in zip(lines, ast.parse("\n".join(lines)).body, strict=True):
        assert isinstance(node, ast.AnnAssign), line
        assert line.count("  # ") == 1, line
        values[node.target.id] = ast.literal_eval(node.value)
    rest = {"more": None, "smoke": False, "show_widgets": None}
    assert set(values) <= {*CHOICES} | set(rest)
    assert len(values) <= 8, "few are read before the first result; `more` takes the others"
    assert {name: values.pop(name) for name in rest} == rest
    given = {name: value for name, value in values.items() if value}
    assert suited.complete_with_suggestions(given) == suited.complete_with_suggestions({})


def test_papermill_lists_the_parameters_with_their_help():
    found = inspected(LAB)
    assert found["density"]["inferred_type_name"] == "list"
    assert all(entry["help"] for entry in found.values())


def outputs(notebook: "NotebookNode", cell: str) -> str:
    """Everything that the cell of that id put out, as text."""
    found = next(entry for entry in notebook.cells if entry.id == cell)
    return "".join(out.get("text", "") + "".join(out.get("data", {}).values()) for out in found.outputs)


def is_picture(shown: dict) -> bool:
    """Whether an output is a picture, or a page that carries one."""
    page = shown.get("text/html", "")
    return bool({"image/png", "image/svg+xml"} & set(shown)) or "data:image/svg+xml;base64" in page or "<svg" in page


@pytest.fixture
def logged():
    """Records that papermill logs during the test; pytest's own plugin for logs is off."""
    records, logger = [], logging.getLogger("papermill")
    handler = logging.Handler()
    handler.emit = records.append
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_parameters_of_the_others_are_literals_with_type_and_help(path, logged):
    lines = tagged(read(path), "parameters")[0].source.splitlines()
    for line, node in zip(lines, ast.parse("\n".join(lines)).body, strict=True):
        assert isinstance(node, ast.AnnAssign), line
        assert line.count("  # ") == 1, line
        ast.literal_eval(node.value)
    assert lines[-1].startswith("smoke: bool = False  # ")
    assert inspected(path)
    assert not logged, "papermill cannot read a line: a second = in it, say"


@pytest.mark.parametrize("path", SHORT + LONG, ids=lambda path: path.stem)
def test_papermill_runs_the_others_small_up_to_their_gate(execute, path):
    if missing := [name for name in sorted(needed(read(path))) if importlib.util.find_spec(name) is None]:
        pytest.skip(f"{path.name} needs {', '.join(missing)}: make peers")
    notebook = execute(path, smoke=True)
    assert tagged(notebook, "gate")[0].execution_count, "the last cell was reached and holds"
    said = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    errors = [out.text for out in said if out.output_type == "stream" and out.name == "stderr"]
    assert not unexpected("\n".join(errors))
    assert any(is_picture(out.get("data", {})) for out in said)


@pytest.mark.parametrize("path", WB_ONLY, ids=lambda path: path.stem)
def test_a_notebook_of_the_front_door_imports_no_internals(path):
    """What is typed there can be typed by anybody: `import workbench as wb`, and the checks of `workbench.bridges`."""
    trees = [ast.parse(cell.source) for cell in read(path).cells if cell.cell_type == "code"]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    own = {name for name in names if name.partition(".")[0] in ("workbench", "kernels")}
    assert own - {"workbench.bridges"} == {"workbench"}
    assert {alias.asname for node in nodes if isinstance(node, ast.Import) for alias in node.names} & {"wb"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_few_parameters_are_read_before_the_first_result(path):
    assert len(tagged(read(path), "parameters")[0].source.splitlines()) <= 8


def test_a_notebook_that_needs_a_framework_says_so_before_its_code_and_in_its_first_import():
    paths = [path for path in OTHERS if needed(read(path)) & set(FRAMEWORKS)]
    assert paths
    for path in paths:
        notebook = read(path)
        assert "pip install 'sparse-workbench[lab,peers]'" in notebook.cells[0].source
        first = next(cell.source for cell in notebook.cells if cell.cell_type == "code" and "import" in cell.source)
        assert "\nfrom workbench.bridges." in first, "whose error says how to install it"


def test_parameters_that_cannot_be_fail_at_once_with_a_clear_error(here, execute):
    """Values that cannot be are refused by the same call: see `test_sweep.py`."""
    from papermill.exceptions import PapermillExecutionError

    with pytest.raises(PapermillExecutionError) as error:
        execute(LAB, densty=[0.1])
    assert "Unknown parameter 'densty'. Did you mean 'density'?" in str(error.value)
    assert not (here / "runs").exists()


def _write_table(folder: Path) -> str:
    """A click log with labels and values as text, whose columns have names that cells use, in an awkward path."""
    path = folder / "my user's files" / "own table.csv"
    path.parent.mkdir(exist_ok=True)
    lines = [
        f"{'yes' if row % 3 == 0 else 'no'},p{row % 30},{row % 7 + 0.5},v{row * row % 41},{row % 5}"
        for row in range(600)
    ]
    path.write_text("\n".join(["label,path,data,model,density", *lines]) + "\n", encoding="utf-8")
    return str(path)


def _write_svmlight(folder: Path) -> str:
    """Rows of three classes, whose labels are 2, 5 and 9, with one value more in each."""
    path = folder / "own rows.svm"
    path.write_text("".join(f"{(2, 5, 9)[row % 3]} {1 + row % 3}:1 {4 + row % 50}:0.5 60:1\n" for row in range(400)))
    return str(path)


def _write_ratings(folder: Path) -> str:
    """Ratings of items by users, both named by text."""
    path = folder / "own ratings.csv"
    pairs = [(user, item) for user in range(40) for item in range(25) if (user * item + user) % 3]
    lines = [f"anna {user},item {item},{1 + (user + item) % 5}" for user, item in pairs]
    path.write_text("\n".join(["user,item,rating", *lines]) + "\n", encoding="utf-8")
    return str(path)


def _write_graph(folder: Path) -> dict[str, str]:
    """A list of edges among a few named nodes, and a file with the label of each, as text."""
    edges, labels = folder / "own edges.txt", folder / "own labels.txt"
    pairs = [(node, (node + 3 * step + node % 2) % 27) for node in range(27) for step in (1, 2, 4)]
    edges.write_text("".join(f"n{one} n{other}\n" for one, other in pairs))
    labels.write_text("".join(f"n{node} {('red', 'green', 'blue')[node % 3]}\n" for node in range(27)))
    return {"path": str(edges), "labels": str(labels), "reading": "named=true"}


SMALL = {"smoke": True, "dataset": "uniform", "density": [0.01, 0.1], "width": [4], "more": {"threads": 1}}
ONCE = {"rounds": 1, "trial_seconds": 0.05, "threads": 1, "format": "csr", "update": "lazy", "execution": "step"}
ONCE |= {"engine": "ours", "storage": "same"}
"""A sweep of few trials."""
OWN = {
    "00_start": lambda folder: {"source": _write_table(folder), "question": "advise", "seconds": 5.0},
    "01_can_sparse_reduce_training_time": lambda folder: {
        "path": _write_table(folder), "dataset": "table", "density": [0.1], "more": ONCE, "smoke": True
    },
    "02_your_own_data": lambda folder: {"path": _write_table(folder), "density": [None], "smoke": True},
    "03_recommender": lambda folder: {
        "path": _write_ratings(folder), "models": ["matrix_factorization"], "run_dir": "own runs", "smoke": True
    },
    "04_clicks": lambda folder: {
        "path": _write_table(folder), "models": ["logistic"], "run_dir": "own runs", "smoke": True
    },
    "05_graph": lambda folder: {**_write_graph(folder), "run_dir": "own runs", "smoke": True},
    "06_tensorflow_and_keras": lambda folder: {"path": _write_svmlight(folder), "smoke": True},
    "07_pytorch": lambda folder: {"path": _write_table(folder), "smoke": True},
}  # fmt: skip
"""Parameters of each notebook that takes files, with files of the user's, of the kind that it takes."""
LIKE_OTHERS = ("04_clicks", "05_graph", "06_tensorflow_and_keras", "07_pytorch")
"""Notebooks whose cells are as those of another: tables are read by 02, sweeps are those of 03; `tests/bridges` and
`tests/models` test the rest.
"""


def test_every_notebook_that_takes_a_file_is_run_on_one():
    takes = [
        path.stem
        for path in NOTEBOOKS
        if re.search(r"^(path|source): ", tagged(read(path), "parameters")[0].source, re.M)
    ]
    assert takes == list(OWN)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.exhaustive if path.stem in LIKE_OTHERS else ())
        for path in OTHERS
        if path.stem in OWN
    ],
    ids=lambda path: path.stem,
)
def test_papermill_runs_the_others_on_an_own_file_of_their_kind(here, execute, path):
    """Up to its gate; what compares gradients or graphs says no more that dense was not measured."""
    if missing := [name for name in sorted(needed(read(path))) if importlib.util.find_spec(name) is None]:
        pytest.skip(f"{path.name} needs {', '.join(missing)}: make peers")
    given = OWN[path.stem](here)
    notebook = execute(path, **given)
    assert tagged(notebook, "gate")[0].execution_count, "the last cell was reached and holds"
    shown = "\n".join(outputs(notebook, cell.id) for cell in notebook.cells if cell.cell_type == "code")
    assert "dense was not measured" not in shown
    for name in {"path", "labels", "source"} & set(given):
        assert Path(given[name]).name in "".join(
            cell.source for cell in notebook.cells if "injected-parameters" in cell.metadata.get("tags", ())
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "data", "run"),
    [
        pytest.param(lambda folder: SMALL, "uniform", "uniform", id="generated", marks=pytest.mark.exhaustive),
        pytest.param(OWN[LAB.stem], "my user's files/own table.csv", "own_table", id="own file"),
    ],
)
def test_papermill_runs_the_notebook_and_it_holds_charts_and_a_verdict(here, execute, parameters, data, run):
    given = parameters(here)
    notebook = execute(LAB, **given)
    assert "No front end is attached, so there is no panel" in outputs(notebook, "panel")
    assert re.search(r"Finished: (\d+) of \1 trials", outputs(notebook, "run"))
    verdict = outputs(notebook, "verdict")
    assert "epochs of the data" in verdict
    assert "memory" in verdict
    for cell in ("time-chart", "memory-chart", "phases-chart", "loss-chart"):
        assert is_picture(next(entry for entry in notebook.cells if entry.id == cell).outputs[0].data)
        assert len(outputs(notebook, cell)) < 300_000
    assert "<table>" in outputs(notebook, "break-even-table")
    assert "baseline" in outputs(notebook, "trial-table")
    assert tagged(notebook, "gate")[0].execution_count
    assert "widgets" not in notebook.metadata
    rows = here / "runs" / run / "trials.jsonl"
    before = rows.read_bytes()
    settings = ast.literal_eval(outputs(notebook, "study"))
    result = wb.sweep(data, **settings)  # as the cells do, without another kernel
    assert rows.read_bytes() == before, "nothing is measured twice"
    assert set(result.frame["status"]) <= {"ok", "disturbed"}


NEWCOMER = (
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
"""Cells as somebody types them who has not read much."""


@pytest.mark.slow
def test_cells_of_a_newcomer_show_cards_and_pictures_and_the_panel_once(here, execute):
    import nbformat

    typed = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in NEWCOMER])
    typed.metadata = read(LAB).metadata
    nbformat.write(typed, here / "typed.ipynb")
    _, profile, result, verdict, plotted, lab, _, panel = (cell.outputs for cell in execute(Path("typed.ipynb")).cells)
    for shown in (profile, result, verdict):
        assert any("workbench-card" in output.get("data", {}).get("text/html", "") for output in shown)
    assert any("image/png" in output.get("data", {}) for output in plotted)
    assert "there is no panel. Type wb.sweep(X, y)" in lab[0]["text"]
    views = [output for output in panel if "application/vnd.jupyter.widget-view+json" in output.get("data", {})]
    assert len(views) == 1, "the panel is shown once, though it is the value of the cell"

"""Arrows never turn back: who may import whom, and what must not be loaded by whom."""

import ast
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.processes import printed

ROOT = Path(__file__).parents[2]

# A package or module -> the parts of this project it may import, itself always. Everything above may import kernels,
# the table of settings and what writes files whole.
ALLOWED = {
    "kernels": set(),
    "workbench.json_text": set(),
    "workbench.option_text": set(),
    "workbench.spreadsheets": {"option_text"},
    "workbench.settings": set(),
    "workbench.atomic_files": set(),
    "workbench.heap": set(),
    "workbench.watching": set(),
    "workbench.formats": {"json_text"},
    "workbench.ops": {"formats"},
    "workbench.graph": {"formats", "ops", "json_text"},
    "workbench.autodiff": {"formats", "ops", "graph"},
    "workbench.executor": {"formats", "ops", "graph", "autodiff"},
    "workbench.metrics": {"formats"},
    "workbench.models": {"formats", "ops", "graph", "autodiff", "metrics", "option_text"},
    "workbench.optimizers": {"formats", "ops", "json_text"},
    "workbench.data": {"formats", "option_text", "json_text"},
    "workbench.recommend": {"formats", "data", "json_text"},
    "workbench.bridges": {"formats", "ops", "optimizers", "models", "metrics", "data", "training", "option_text"},
    "workbench.measure": {"formats"},
    "workbench.kvstore": {"formats", "ops", "optimizers", "json_text"},
    "workbench.module": {
        *("formats", "ops", "graph", "autodiff", "executor", "models", "optimizers", "data", "metrics", "kvstore"),
        "json_text",
    },
    "workbench.training": {
        *("formats", "ops", "graph", "autodiff", "executor", "models", "optimizers", "data", "metrics", "json_text"),
        *("spreadsheets", "recommend", "option_text"),
    },
    "workbench.store": {"json_text"},
    "workbench.analysis": {"store", "measure.posterior", "measure.rounds", "option_text"},
    "workbench.plots": {"store", "analysis"},
    "workbench.sweeps": {
        *("formats", "ops", "executor", "models", "optimizers", "data", "metrics", "training", "measure", "store"),
        *("analysis", "json_text", "option_text"),
    },
    "workbench.advising": {
        *("formats", "ops", "models", "optimizers", "data", "training", "measure", "store", "analysis", "sweeps"),
        *("bridges", "option_text"),
    },
    "workbench.reports": {"store", "analysis", "plots", "sweeps", "json_text", "spreadsheets"},
    "workbench.study": {"formats", "ops", "data", "models", "analysis", "sweeps", "option_text"},
    "workbench.panels": {
        *("store", "analysis", "plots", "reports", "sweeps", "study", "advising", "training", "json_text"),
        *("formats", "ops", "data", "models", "optimizers", "advising", "option_text"),
    },
    "workbench.cluster": {
        *("formats", "ops", "graph", "models", "optimizers", "data", "kvstore", "module", "training", "measure"),
        *("sweeps", "store", "json_text"),
    },
    "workbench.command": {
        *("formats", "ops", "data", "measure", "training", "store", "analysis", "sweeps", "reports"),
        *("metrics", "cluster", "recommend"),
        "study",
        "bridges",
        "advising",
        "option_text",
        "models",
        "optimizers",
    },
    "workbench.__main__": {"command"},
    "workbench.api": {
        *("formats", "data", "models", "bridges", "training", "store", "analysis", "plots", "sweeps", "advising"),
        *("reports", "study", "panels", "option_text", "recommend"),
    },
}  # fmt: skip

# A part of workbench.data -> the parts of it that it may import, `errors` and itself always.
DATA = {
    "errors": set(),
    "content": set(),
    "labels": set(),
    "batches": set(),
    "dataset": {"labels", "batches"},
    "contract": {"labels", "dataset", "content", "files", "part_files"},
    "part_files": {"labels", "dataset", "files"},
    "cache": {"labels", "dataset", "contract", "content"},
    "synthetic": {"labels", "dataset"},
    "profiles": {"dataset"},
    "files": {"labels", "dataset", "content"},
    "tables": {"labels", "files"},
    "stored": {"labels", "dataset", "contract", "files", "batches"},
    "text": {"labels", "dataset", "files", "batches"},
    "exports": {"dataset", "contract", "files", "stored"},
    "sources": {"labels", "dataset", "contract", "synthetic", "files", "tables", "stored", "text"},
}

HEAVY = ("cupy", "dask", "distributed", "torch", "tensorflow", "ipywidgets", "matplotlib", "sklearn", "pandas")


def part_of(module: str) -> str:
    """`workbench.sweeps.spec` -> `workbench.sweeps`; `kernels.products.csr_dense` -> `kernels`."""
    pieces = module.split(".")
    return "kernels" if pieces[0] == "kernels" else ".".join(pieces[:2])


def imports_of(source: str, inside: str) -> set[str]:
    """Modules of this project that the source imports, at any depth of the code."""
    return imports_in(ast.parse(source), inside)


def imports_in(tree: ast.AST, inside: str) -> set[str]:
    """The same of a source that is parsed."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{inside} has a relative import; write it in full"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] in ("kernels", "workbench", "benchmarks")}


def wrong_arrows(module: str, source: str) -> set[str]:
    """Imports that the table does not allow."""
    own = part_of(module)
    if own == "workbench":  # the package's own __init__ imports nothing
        return {name for name in imports_of(source, module) if name != "workbench"}
    lowest = {"kernels", "workbench.settings", "workbench.atomic_files", "workbench.heap", "workbench.watching"}
    below = set() if own in lowest else lowest
    allowed = {own} | {f"workbench.{name}" for name in ALLOWED[own]} | below
    imported = imports_of(source, module)
    known = {name for name in imported if part_of(name) in ALLOWED}  # not workbench.__version__
    known |= {name for name in imported if name.split(".")[0] == "benchmarks"}  # which is not installed
    return {name for name in known if not any(name == good or name.startswith(f"{good}.") for good in allowed)}


def wrong_arrows_of_data(module: str, source: str) -> set[str]:
    """Imports between parts of `workbench.data` that the table does not allow."""
    own = module.split(".")[2]
    parts = {name: name.split(".")[2] for name in imports_of(source, module) if name.startswith("workbench.data.")}
    return {name for name, part in parts.items() if part in DATA and part not in DATA[own] | {own, "errors"}}


def modules() -> list[tuple[str, Path]]:
    files = [file for package in ("kernels", "workbench") for file in sorted((ROOT / package).rglob("*.py"))]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files]
    return list(zip(names, files, strict=True))


def test_arrows_do_not_turn_back():
    wrong = {module: wrong_arrows(module, file.read_text(encoding="utf-8")) for module, file in modules()}
    assert not {module: names for module, names in wrong.items() if names}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kernels.products.csr_dense", "from workbench import formats"),
        ("workbench.analysis.breakeven", "from workbench.sweeps import spec"),
        ("workbench.plots.phases", "def draw():\n    import workbench.training"),
        ("workbench.command.cli", "from workbench import panels"),
        ("workbench.store", "from workbench.analysis.compare import contest_verdict"),
        ("workbench.settings", "from workbench import data"),
        ("kernels.plan", "from workbench import settings"),
        ("workbench.plots", "from benchmarks import tables"),
        ("kernels.plan", "def late():\n    import workbench.measure.clock"),
    ],
)
def test_arrow_check_can_fail(module, source):
    assert wrong_arrows(module, source)


def test_arrows_between_rooms_of_data_do_not_turn_back():
    for module, file in modules():
        if module.startswith("workbench.data."):
            assert not wrong_arrows_of_data(module, file.read_text(encoding="utf-8")), module


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("workbench.data.labels", "from workbench.data.dataset.record import Dataset"),
        ("workbench.data.stored.folder", "from workbench.data import text"),
        ("workbench.data.errors", "def late():\n    import workbench.data.cache"),
    ],
)
def test_the_check_of_arrows_between_rooms_of_data_can_fail(module, source):
    assert wrong_arrows_of_data(module, source)


def test_every_part_is_in_the_table():
    parts = {part_of(module) for module, _ in modules()} - {"workbench"}
    assert parts <= set(ALLOWED)
    assert {module.split(".")[2] for module, _ in modules() if module.startswith("workbench.data.")} == set(DATA)


def test_only_devices_imports_cupy():
    importers = []
    for module, file in modules():
        if "cupy" not in (source := file.read_text(encoding="utf-8")):
            continue
        tree = ast.parse(source)
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        if any(name.split(".")[0] in ("cupy", "cupyx") for name in names):
            importers.append(module)
    assert importers in ([], ["kernels.devices"])


def modules_after(statement: str) -> set[str]:
    """All modules that a fresh interpreter has loaded after the statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')"
    return set(printed(code).split())


def loaded_by(statement: str) -> set[str]:
    """The heavy packages among them."""
    return {name.split(".")[0] for name in modules_after(statement)} & set(HEAVY)


@pytest.mark.parametrize(
    "statement", ["import workbench", "import workbench.bridges, workbench.cluster", "import kernels as k; k.names()"]
)
def test_light_imports_load_nothing_heavy(statement):
    assert not loaded_by(statement)


def test_the_command_line_loads_no_numerics_before_a_command_needs_them():
    """Which is what lets its help come in a fraction of a second."""
    loaded = {name.split(".")[0] for name in modules_after("import workbench.command.cli")}
    assert not loaded & {"numpy", "numba", "scipy", "pydantic", "kernels", *HEAVY}


def test_a_sweep_never_loads_cupy_or_widgets():
    """Nor `scipy.stats`, which is as long to load as all else but pandas."""
    loaded = modules_after("import workbench.sweeps.trial, workbench.sweeps.runner")
    assert not loaded & {"cupy", "ipywidgets", "matplotlib", "scipy.stats"}
    assert "pandas" in loaded, "the check can fail"


def late_imports(source: str) -> set[str]:
    """Modules of this project that functions of the source import when they are called."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            found |= imports_in(node, node.name)
    return found


def test_kernels_import_each_other_at_the_top_of_their_files():
    late = {module: late_imports(file.read_text(encoding="utf-8")) for module, file in modules() if "kernels" in module}
    assert not {module: names for module, names in late.items() if names and module.startswith("kernels")}


def test_the_search_for_late_imports_can_fail():
    assert late_imports("def f():\n    from kernels.contract import checked") >= {"kernels.contract"}


def imported_when_run(source: str, inside: str, known: Collection[str]) -> set[str]:
    """Modules among `known` that the source imports at any depth, but not those that are imported for types alone."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = imports_in(tree, inside)
    packages = {name.rpartition(".")[0] for name in found if name in known}
    return {name for name in found - packages if name in known} - {inside}


def circle_of(imports: Mapping[str, Collection[str]]) -> list[str]:
    """A circle of modules each of which imports the next, by {module: modules that it imports}; empty if none."""
    try:
        list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        return error.args[1]
    return []


def test_no_modules_import_each_other_in_a_circle():
    files = dict(modules())
    sources = {module: file.read_text(encoding="utf-8") for module, file in files.items()}
    assert not circle_of({module: imported_when_run(text, module, files) for module, text in sources.items()})


def test_the_search_for_circles_can_fail():
    late = "if TYPE_CHECKING:\n    import kernels.c\ndef f():\n    from kernels import b"
    imports = {"kernels.a": imported_when_run(late, "kernels.a", {"kernels", "kernels.b", "kernels.c"})}
    assert imports == {"kernels.a": {"kernels.b"}}
    assert not circle_of(imports)
    assert set(circle_of(imports | {"kernels.b": {"kernels.a"}})) == {"kernels.a", "kernels.b"}

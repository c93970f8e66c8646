"""Fixtures that several files of tests share, what they need imported when they are asked for; and who runs what.

`make test` has a worker a core and two more (pytest-xdist), four at most. A file of tests is one worker's, with all
that its tests share.
"""

import gc
import os
import resource
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.covering import cover
from tests.support.processes import hear_signals, heard

os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "12")
"""As in processes that measure (`measure.blas.OWN`): idle threads of BLAS keep no core from the other workers."""

collect_ignore = ["bridges/probes", "support", "mutants"]
"""Helpers: collected as tests, the emulator among them would be there twice."""

LONGEST = (
    *("kernels/kernels", "kernels/dense_epochs", "kernels/epochs", "training/epoch_calls", "project/notebooks"),
    *("panels/browser", "gpu/gpu_emulated", "plots/plots", "training/dense_epochs", "cluster/sweeps"),
    *("benchmarks/fair", "reports/report_browser", "project/site", "front_door/rows", "front_door/docs"),
    *("panels/start", "sweeps/sweep", "files/hostile_files", "bridges/sklearn", "command/cli", "front_door/sweep"),
    *("project/input_validation", "benchmarks/bench", "kernels/dual_dense", "golden/golden", "reports/report"),
    *("examples/examples", "kernels/cold_starts"),
)
"""The files of tests that take longest, by folder and what they are about, in the order to start: the last to end ends
the run.

The first ones compile kernels and epochs for the CPU, each its own; what the others need of them they then find on
disk. Each process of a notebook's or a panel's sweep would compile the same meanwhile.
"""

LOAD_FRAMEWORKS = frozenset(
    (
        *(
            "bridges/keras",
            "bridges/keras_optimizers",
            "bridges/tensorflow",
            "bridges/pytorch",
            "bridges/pytorch_feeds",
            "bridges/traps",
        ),
        *("bridges/pytorch_compile", "bridges/pytorch_layers", "bridges/pytorch_optimizers", "bridges/pytorch_workers"),
        *(
            "bridges/pytorch_optimizers_saved",
            "benchmarks/bench_competitors",
            "front_door/load",
            "examples/examples",
            "advising/frameworks",
            "advising/first_layer",
            "recommend/recommender",
            "models/graph_convolution",
        ),
        *("models/formulas", "benchmarks/bench", "benchmarks/fair", "benchmarks/fit", "benchmarks/fit_candidates"),
        "benchmarks/momentum",
        *("gpu/gpu", "kernels/kernels"),
    )
)
"""The files of tests that import PyTorch or TensorFlow, which takes seconds: all are one worker's."""

MOST_WORKERS = 4
"""More would wait for the longest file."""

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"

SIGNALS = pytest.StashKey[tuple]()
"""What the process of the tests does where it is asked to end."""


@pytest.fixture(scope="session", autouse=True)
def _cache_of_the_run(tmp_path_factory):
    """Data sets that tests make are kept for other tests of this worker; the user's cache is not read or written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """The test has an empty cache of data sets for itself."""
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def kept_threads():
    """The count of threads is what it was when the test is over."""
    from kernels import threads

    before = threads.get_threads()
    yield
    threads.set_threads(before)


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder to be in: runs go to `runs` in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_other_runs(monkeypatch):
    """Sweeps that other tests run on this machine at the same time are not found."""
    from workbench.command import running

    monkeypatch.setattr(running, "_active_folders", list)


@pytest.fixture
def opened():
    """Makes panels, and closes them."""
    from workbench.panels.panel import Panel

    panels = []

    def make(study, **options) -> Panel:
        panels.append(Panel(study, **options))
        return panels[-1]

    yield make
    for panel in panels:
        panel.close()


@pytest.fixture
def no_charts(monkeypatch):
    """Panels and reports have empty pictures; to draw them takes most of the time of tests that look at none."""
    from markupsafe import Markup

    from workbench.panels import picture
    from workbench.plots import style
    from workbench.reports import report

    monkeypatch.setattr(style, "fit_ticks", lambda figure: None)
    monkeypatch.setattr(picture, "draw", lambda name, frame, **chosen: picture.Picture("A chart", "No picture.", b""))
    monkeypatch.setattr(report, "inline", lambda *given, **options: Markup("<svg></svg>"))


@pytest.fixture
def sweeps_here():
    """Sweeps that the test starts are supervised by its own process, and over at once."""
    from tests.support.sweeps import supervised_here

    with supervised_here():
        yield


def pytest_addoption(parser):
    parser.addoption("--golden", metavar="DIR", help="folder of recorded cases to run instead of tests/golden")
    parser.addoption(
        "--faults", type=int, default=0, metavar="N", help="seeds of faults for tests/cluster, by default a few"
    )
    parser.addoption("--bounds", action="store_true", help="compile kernels with a check of every access")
    parser.addoption("--exhaustive", action="store_true", help="run whole grids and the longest tests")


def pytest_configure(config: pytest.Config) -> None:
    """Nothing dies while tests are collected, so there is nothing to search for: see `pytest_collection_finish`.

    Tests send signals, also where whoever runs them ignores some, as a shell does for what it starts in the background.
    """
    gc.disable()
    hear_signals()
    _have_many_files()
    _load_triton_first()
    config.stash[SIGNALS] = heard()
    config.pluginmanager.register(_ModulesWithExamples())
    if config.getoption("--bounds"):
        from kernels import bounds

        bounds.switch_on()  # before a test imports what is compiled


@pytest.fixture(autouse=True)
def _no_wrong_access(request: pytest.FixtureRequest):
    """With `--bounds`, a test in which compiled code would have left an array fails, whatever else it saw."""
    yield
    if request.config.getoption("--bounds"):
        from kernels import bounds

        assert not bounds.take()


class _ModulesWithExamples:
    """A plugin, as pytest asks a `conftest.py` of the files in its own folder alone."""

    @staticmethod
    def pytest_ignore_collect(collection_path: Path) -> bool | None:
        """Leave out modules of the project without an example: each worker would import them, frameworks included."""
        is_module = collection_path.suffix == ".py" and collection_path.is_relative_to(ROOT)
        if is_module and collection_path.relative_to(ROOT).parts[0] in ("kernels", "workbench"):
            return True if ">>>" not in collection_path.read_text(encoding="utf-8") else None
        return None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than cores that this process may use: a worker waits for other processes for a quarter of its time.

    xdist counts the cores of the machine.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores + 2, MOST_WORKERS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Return a scheduler that gives a file to one worker, and all files that import frameworks to the same one.

    None, which leaves the choice to xdist, if files are not kept together.
    """
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FrameworksTogether(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "frameworks" if _short_name(Path(file)) in LOAD_FRAMEWORKS else file

    return FrameworksTogether(config, log)


def _short_name(path: Path) -> str:
    """Return the folder of a file of tests and what it is about, as the tables above have it."""
    return f"{path.parent.name}/{path.stem.removeprefix('test_')}"


class _OwnFirst(pytest.Dir):
    """The folder `tests`, whose entries each worker collects from a different one on.

    Each file is compiled for its assertions by the worker that comes to it first, and kept on disk; workers that came
    to the same file at the same time would all compile it.
    """

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        """Return the entries from this worker's share on, then those before it."""
        entries = list(super().collect())
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        start = len(entries) * worker // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        return entries[start:] + entries[:start]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect `tests` by `_OwnFirst`, and other folders as pytest does (None)."""
    return _OwnFirst.from_parent(parent, path=path) if path == TESTS else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases that others cover, and the longest tests, unless `--exhaustive`; begin with the longest files.

    Before -k and -m select: these choose among the cases that run anyway.
    """
    if not config.getoption("--exhaustive"):
        left_out = _covered_by_others(items) | {item for item in items if item.get_closest_marker("exhaustive")}
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
    places = {name: place for place, name in enumerate(LONGEST)}

    def place_of(item: pytest.Item) -> tuple[int, bool, tuple[str, ...]]:
        return places.get(_short_name(item.path), len(places)), not item.path.is_relative_to(TESTS), item.path.parts

    items.sort(key=place_of)


def _covered_by_others(items: list[pytest.Item]) -> set[pytest.Item]:
    """Find the cases of tests marked `covering` whose targets other cases reach; one asked for alone stays."""
    grids = defaultdict(list)
    for item in items:
        if mark := item.get_closest_marker("covering"):
            grids[item.path, item.originalname].append((mark, item))
    left_out = set()
    for cases in grids.values():
        kept = cover([item.callspec.params for _, item in cases], **cases[0][0].kwargs)
        left_out |= {item for _, item in cases} - {cases[position][1] for position in kept}
    return left_out


def pytest_collection_finish() -> None:
    """See `_settle`; what makes a million objects that live has a search less often than every 700.

    Nothing that was collected is dead, so that there is no search now: one takes a second of each worker.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After the last test of a file; after each, nothing may be left of what it did to signals."""
    assert heard() == item.config.stash[SIGNALS], "the test has changed what this process does at signals"
    if nextitem is None or nextitem.path != item.path:
        _settle()


def _have_many_files() -> None:
    """Allow as many open files as the system does: those of objects in cycles are closed by a search, which is rare."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _load_triton_first() -> None:
    """Load Triton, which PyTorch for CUDA brings, before TensorFlow: the other way round they end the process.

    Both have an LLVM. Without Triton, as in PyTorch for the CPU, nothing is imported.
    """
    if find_spec("triton") and find_spec("tensorflow"):
        import torch._dynamo  # noqa: F401  # imports Triton, as the first optimizer would


def _settle() -> None:
    """Keep Python's search for dead cycles from what is there now: the tests, and code compiled by files before.

    A worker holds millions of such objects in the end, and every trial that a test runs in this process asks for a
    search before it looks at its memory. What is kept from it and dies later, dies by its count of references alone.
    """
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests that take `fault_seed` say how many are usual, and what share of N they have with `--faults N`."""
    if "fault_seed" in metafunc.fixturenames:
        usual, share = next(metafunc.definition.iter_markers("faults")).args
        count = metafunc.config.getoption("--faults") // share or usual
        metafunc.parametrize("fault_seed", range(count))

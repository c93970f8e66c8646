"""`benchmarks kernels`, `step` and `pytorch`: kernels and whole steps against other libraries, on CPU and CUDA."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

import kernels
from benchmarks import compare, device, tables
from benchmarks.candidates import list_tasks
from benchmarks.compare import Compared, Target, geometric_mean, ratio_text, target, time_text
from benchmarks.configurations import LIBRARIES, BenchmarkConfiguration, names_of, roots_of
from benchmarks.contest import Record
from benchmarks.device import CACHES, refuse_without_gpu
from benchmarks.harness import Run, Suite
from benchmarks.kernel_contest import POLICY, SECONDS_CELL
from benchmarks.page import Page, Section, frame
from benchmarks.shapes import SHAPES, BenchError, Shape, shape_of
from kernels import devices
from kernels.registry import unknown_name
from workbench.analysis.formatting import format_density, format_number, format_seconds
from workbench.measure import machine, race
from workbench.measure.child import Ended
from workbench.plots import style

# The configurations of each suite and device, all or a quick selection.


WIDTHS = (1, 2, 4, 8, 16, 32, 64, 100, 128, 256)
WIDTHS_LARGE = (1, 4, 16, 64, 128)
"""Where a batch has 65,536 rows and a call takes long."""
SMALL = tuple(Shape("small batch", rows, 10_000, 20, slope=1.0) for rows in (32, 64))
"""Two sizes of batch, from which what a call takes beyond its work follows."""
SIZED = ("criteo clicks", "reuters text")
"""Shapes that are measured at other numbers of rows, too."""
MAIN = ("csr_t_dense", "sgd_fused", "adam_fused", "plan")
"""Tasks that are measured on all shapes; the others on two."""
OTHERS = ("power law 1M", "reuters text")
FEW_ROWS = Shape("32 rows of 14", 32, 123, 14)
"""A batch as people train with on tables of a few columns: what a step takes beyond its work."""
QUICK_ON_CUDA = (
    *("csr_dense", "csr_t_dense", "sddmm", "plan", "softmax", "take_rows"),
    *("sgd_fused", "adagrad_fused", "adam_fused", "adagrad_lazy"),
)


def list_kernels(quick: bool) -> Iterator[BenchmarkConfiguration]:
    """Yield the configurations of the kernel suite on the CPU; fewer if `quick`."""
    if quick:
        shapes = [*map(shape_of, ("uniform 100k", "power law 1M", "square 8192, 1 %")), *SMALL]
    else:
        shapes = [*SHAPES.values(), *(shape_of(name, rows) for rows in (256, 65_536) for name in SIZED), *SMALL]
    for shape in shapes:
        for task in ("csr_dense", *(task for task in list_tasks() if task != "csr_dense")):
            for width in widths_of(task, shape, quick):
                yield BenchmarkConfiguration("kernels", task, shape, width)


def widths_of(task: str, shape: Shape, quick: bool) -> tuple[int, ...]:
    """Return the widths N at which a task is timed on a shape; () if it is not timed there."""
    if task == "csr_dense":
        if quick:
            return (16,) if shape in SMALL else (1, 4, 16, 64)
        return WIDTHS_LARGE if shape.name in SIZED and shape.rows > 4096 else WIDTHS
    has_width = task != "plan" and any("N" in dict(axes) for _, _, axes in kernels.get(task).parsed)
    if shape in SMALL:
        return (16,) if has_width and task != "csr_t_dense_full" else ()
    if task in ("dense_to_csr", "csr_to_dense"):
        return (1,) if shape.name.startswith("square") else ()
    chosen: tuple[int, ...]
    if task in MAIN:
        chosen = ((1, 16, 64) if not quick else (16,)) if shape.slope or not quick else ()
    else:
        full = shape.name in OTHERS and shape.rows == 4096 and not quick
        chosen = (1, 16, 64) if full else (16,) if quick and shape.name == OTHERS[0] else ()
    return chosen if has_width else chosen[:1]


def list_steps(quick: bool) -> Iterator[BenchmarkConfiguration]:
    """Yield the configurations of the training-step suite on the CPU; fewer if `quick`."""
    for batches in ("repeat", "new"):
        yield BenchmarkConfiguration("step", "step", FEW_ROWS, 1, "adagrad", batches)
    for features in (100_000, 1_000_000) if quick else (100_000, 1_000_000, 10_000_000):
        shape = Shape(f"power law {features:,}", 4096, features, 32, sigma=0.2, slope=1.2)
        for width in (16,) if quick else (1, 16, 64):
            for optimizer in ("sgd", "adam") if quick else ("sgd", "adagrad", "adam"):
                for batches in ("repeat", "new"):
                    yield BenchmarkConfiguration("step", "step", shape, width, optimizer, batches)


def list_steps_on_cuda(quick: bool) -> Iterator[BenchmarkConfiguration]:
    """Yield the configurations of the training-step suite on CUDA; fewer if `quick`."""
    for rows in (256, 4096, 65_536):
        shape = Shape("power law 1,000,000", rows, 1_000_000, 32, sigma=0.2, slope=1.2)
        for width in (16,) if quick else (16, 64):
            for optimizer in ("adagrad",) if quick else ("sgd", "adagrad", "adam"):
                for batches in ("repeat", "new"):
                    yield BenchmarkConfiguration("step", "step", shape, width, optimizer, batches, device="cuda")


def list_kernels_on_cuda(quick: bool) -> Iterator[BenchmarkConfiguration]:
    """Yield each configuration of the kernel suite on CUDA twice, with warm and with cold caches."""
    known = QUICK_ON_CUDA if quick else device.list_device_tasks()
    found = [one for one in list_kernels(quick) if one.task in known]
    if quick:
        large = shape_of("criteo clicks", 65_536)
        found.append(BenchmarkConfiguration("kernels", "adagrad_fused", shape_of("power law 1M"), 64))
        found += [
            BenchmarkConfiguration("kernels", task, large, width)
            for task in ("csr_dense", "sgd_fused", "adam_fused")
            for width in (16, 64)
        ]
    for one in found:
        yield from (replace(one, device="cuda", cache=cache) for cache in CACHES)


def list_pytorch(quick: bool) -> Iterator[BenchmarkConfiguration]:
    """Yield the configurations of PyTorch loops: logistic regression on new batches, with and without the bridge."""
    for features in (100_000, 1_000_000):
        for rows in (1024,) if quick else (256, 1024):
            shape = Shape(f"power law {features:,}", rows, features, 32, sigma=0.2, slope=1.2)
            for width, optimizer in ((1, "adam"), (16, "adam"), (64, "adam"), (16, "adagrad")):
                yield BenchmarkConfiguration("pytorch", "pytorch", shape, width, optimizer, "new")


LISTS: dict[str, dict[str, Callable[[bool], Iterator[BenchmarkConfiguration]]]] = {
    "kernels": {"cpu": list_kernels, "cuda": list_kernels_on_cuda},
    "step": {"cpu": list_steps, "cuda": list_steps_on_cuda},
    "pytorch": {"cpu": list_pytorch},
}


def configurations_of(
    suite: str, quick: bool = False, only: str = "", shape: str = "", on: str = "cpu"
) -> list[BenchmarkConfiguration]:
    """Return the configurations of a suite on a device, only those of one task (`only`) or `shape` if given.

    Raises BenchError for an unknown device, task or shape.
    """
    if on not in LISTS[suite]:
        raise BenchError(unknown_name(f"device of the suite {suite}", on, LISTS[suite]))
    found = list(LISTS[suite][on](quick))
    for what, name in (("task", only), ("shape", shape)):
        names = [one.task if what == "task" else one.shape.name for one in found]
        if name and name not in names:
            raise BenchError(unknown_name(f"{what} in this selection of the suite", name, dict.fromkeys(names)))
        found = [one for one, each in zip(found, names, strict=True) if not name or each == name]
    return found


def measured(run: Run, suite: str, only: str, shape: str, on: str) -> Iterator[Record]:
    """Yield the records of a suite on a device, the machine's bandwidths first."""
    gpu = refuse_without_gpu() if on == "cuda" else devices.Gpu()
    own = {"suite": suite, "gpu": gpu.name or None, "versions": machine.versions() | gpu.versions}
    worker = race.Worker("benchmarks.kernel_contest:bandwidths", run.folder)

    def begin() -> Record:
        """Measure bandwidths and store a record each; without them shares of the bound are unknown."""
        run.tell("bandwidth of this machine")
        request, rates = {"threads": run.threads, "device": on}, []
        try:
            rates = list(worker.answers(request, lambda _: SECONDS_CELL))
        except Ended:
            rates = []
        for rate in rates:
            known = {"key": "bandwidth", "status": "ok", "task": "bandwidth", "candidate": rate["level"]}
            run.append(own | known | {"side": "project", "device": on, "case": "bandwidth"} | rate)
        return {"bandwidths": json.dumps(rates), "bytes_cache": gpu.bytes_cache}

    cases = run.choose(configurations_of(suite, run.quick, only, shape, on))
    for record in run.contests(
        cases,
        "benchmarks.kernel_contest:contest",
        lambda case: {name: {"side": side} for name, side, _ in names_of(case)},
        POLICY,
        roots=roots_of,
        libraries=LIBRARIES,
        together=lambda case: (case.shape.name, case.name if case.is_large else ""),
        seconds=SECONDS_CELL,
        begin=begin,
    ):
        yield own | record


def measure_kernels(run: Run, only: str = "", shape: str = "", device: str = "cpu") -> Iterator[Record]:
    """Time every kernel against its competitors on many shapes and widths; stop with Ctrl-C and lose nothing.

    Records and page are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for a wrong name.

    Parameters
    ----------
    only
        One task alone, such as csr_dense; a wrong name lists all.
    shape
        One shape alone; a wrong name lists all.
    device
        cpu, or cuda: our GPU implementations against competitors on the same GPU.

    Examples
    --------
    python -m benchmarks kernels --quick
    python -m benchmarks kernels --only csr_dense --threads 1
    """
    yield from measured(run, "kernels", only, shape, device)


def measure_step(run: Run, shape: str = "", device: str = "cpu") -> Iterator[Record]:
    """Time whole training steps, on batches that repeat and on new ones; stop with Ctrl-C and lose nothing.

    Parameters
    ----------
    shape
        One shape alone; a wrong name lists all.
    device
        cpu, or cuda: our GPU implementations against competitors on the same GPU.

    Examples
    --------
    python -m benchmarks step --quick
    python -m benchmarks step --threads 1
    """
    yield from measured(run, "step", "", shape, device)


def measure_pytorch(run: Run, shape: str = "") -> Iterator[Record]:
    """Time loops of PyTorch on sparse rows as they are, and with the layer and the optimizer of ours.

    Parameters
    ----------
    shape
        One shape alone; a wrong name lists all.

    Examples
    --------
    python -m benchmarks pytorch --quick
    python -m benchmarks pytorch --threads 1
    """
    yield from measured(run, "pytorch", "", shape, "cpu")


# Targets: the geometric mean over configurations, or each of them, of the fastest competitor's time by ours.


LARGE, ROWS_LARGE = 1_000_000, 4096
FUSED = (4096, 1_000_000, 64)
"""Rows, features and width of the configurations of the target for a fused update on CUDA."""
Where = Callable[[Mapping[str, Any]], bool]


class Goal(NamedTuple):
    """At least `least` times as fast as a library (the beginning of its name) in a task, where a record fits."""

    task: str
    what: str
    library: str
    least: float
    where: Where = lambda row: True
    ours: str = ""
    is_mean: bool = True


def is_warm(row: Mapping[str, Any]) -> bool:
    """Return whether a record is of warm caches of a device."""
    return row["cache"] == "warm"


def is_new(row: Mapping[str, Any]) -> bool:
    """Return whether a record is of steps whose batches are new, of a usual number of rows."""
    return row["batches"] == "new" and row["shape"] != FEW_ROWS.name


def repeats(row: Mapping[str, Any]) -> bool:
    """Return whether a record is of steps whose batches repeat, of a usual number of rows."""
    return row["batches"] == "repeat" and row["shape"] != FEW_ROWS.name


def is_batch(row: Mapping[str, Any]) -> bool:
    """Return whether a record is not of the small batches, of which the time of a call is measured."""
    return row["shape"] != SMALL[0].name


GOALS: dict[tuple[str, str], tuple[Goal, ...]] = {
    ("kernels", "cpu"): (
        Goal("csr_dense", "CSR @ dense against MKL (PyTorch), geometric mean", "torch", 2.0, is_batch),
        Goal("csr_dense", "CSR @ dense against MKL (PyTorch), lowest", "torch", 0.95, is_batch, is_mean=False),
        Goal("csr_dense", "CSR @ dense against SciPy, geometric mean", "scipy", 6.0, is_batch),
        Goal("csr_t_dense", "gradient as row_sparse against SciPy's A.T @ G, D ≥ 1e6, plan cached", "scipy", 10.0,
             lambda row: row["features"] >= LARGE),
        Goal("csr_t_dense", "gradient as row_sparse against SciPy's A.T @ G, D ≥ 1e6, plan built", "scipy", 4.0,
             lambda row: row["features"] >= LARGE, "csr_t_dense + plan"),
        Goal("csr_dense", "CSR @ dense against plain Numba, geometric mean", "numba", 1.3),
        Goal("adagrad_fused", "gradient and AdaGrad in one pass against plain Numba, geometric mean", "numba", 1.3),
    ),
    ("step", "cpu"): (
        Goal("step", "whole step, batches that repeat, against TensorFlow, geometric mean", "tensorflow", 10, repeats),
        Goal("step", "whole step, batches that repeat, against PyTorch, geometric mean", "torch", 20, repeats),
        Goal("step", "whole step, a new batch each, against TensorFlow, geometric mean", "tensorflow", 5, is_new),
        Goal("step", "whole step, a new batch each, against PyTorch, geometric mean", "torch", 10, is_new),
        Goal("step", "whole step, a new batch each, against any competitor, lowest", "", 1.0, is_new, is_mean=False),
    ),
    ("kernels", "cuda"): (
        Goal("csr_dense", "CSR @ dense against cuSPARSE at its best, warm, geometric mean", "cusparse.", 1.3, is_warm),
        Goal("csr_dense", "CSR @ dense at N ≤ 32 against cuSPARSE at its best, warm, geometric mean", "cusparse.", 2.0,
             lambda row: is_warm(row) and row["width"] <= 32),
        Goal("csr_dense", "CSR @ dense at D ≥ 1e6 against cupyx, warm, geometric mean", "cupyx.", 10.0,
             lambda row: is_warm(row) and row["features"] >= LARGE),
        Goal("adagrad_fused", "gradient + lazy AdaGrad, R = 4,096, D = 1e6, N = 64, against PyTorch, warm",
             "torch_cuda.", 6.0,
             lambda row: is_warm(row) and (row["rows"], row["features"], row["width"]) == FUSED),
    ),
    ("step", "cuda"): (
        Goal("step", "whole step, batches that repeat, against PyTorch, R = 256, geometric mean", "torch_cuda", 10.0,
             lambda row: repeats(row) and row["rows"] == 256),
        Goal("step", "whole step, batches that repeat, against PyTorch, R = 65,536, geometric mean", "torch_cuda", 3.0,
             lambda row: repeats(row) and row["rows"] == 65_536),
    ),
}  # fmt: skip
WANTED = 0.6
"""The share of the bound that each kernel is to reach, or the page says why not."""
USERS = ("ours, training", "ours, module")
"""The candidates of steps as users take them."""
OF_BATCH = ("csr_dense", "csr_t_dense", "csr_dense_ones", "csr_t_dense_ones", "sddmm", "squared", "logistic", "softmax")
"""Kernels of this project whose work grows with the batch alone, besides fused and lazy updates."""


def best_ratio(one: Compared, library: str = "", ours: str = "") -> tuple[Record, compare.Ratio] | None:
    """Return (fastest competitor of a library, its time by ours): by the candidate `ours`, by default the first."""
    mine = [each for each in one.timed if each["side"] == "project" and ours in ("", each["candidate"])]
    theirs = [each for each in one.timed if each["side"] == "competitor" and each["candidate"].startswith(library)]
    if not mine or not theirs:
        return None
    best = min(theirs, key=lambda each: each["seconds"])
    return dict(best), compare.ratio(best, mine[0])


def list_targets(found: Sequence[Compared]) -> list[Target]:
    """Return the targets of the suites and devices that the cases are of."""
    targets = []
    for (suite, on), goals in GOALS.items():
        own = [one for one in found if (one.settings["suite"], one.settings["device"]) == (suite, on)]
        if not own:
            continue
        for goal in goals:
            fitting = [one for one in own if one.settings["task"] == goal.task and goal.where(one.settings)]
            each = {one.name: best_ratio(one, goal.library, goal.ours) for one in fitting}
            values = {name: pair[1].value if pair else None for name, pair in each.items()}
            targets.append(target(goal.what, values, least=goal.least, is_mean=goal.is_mean))
        targets += MORE.get((suite, on), lambda own: [])(own)
    return targets


def more_of_kernels(found: Sequence[Compared]) -> list[Target]:
    """Return the targets of each kernel's share of the bound, and of the time of a call that does not grow.

    The latter is twice the time of half of a small batch less the time of the whole.
    """
    times: dict[str, dict[int, float]] = {}
    for record in (record for one in found for record in one.timed):
        name = record["candidate"]
        is_alone = name in OF_BATCH or (name.endswith(("_fused", "_lazy")) and not set("+.") & set(name))
        if record["shape"] == SMALL[0].name and record["width"] == 16 and is_alone:
            times.setdefault(name, {})[record["rows"]] = record["seconds"]
    beyond = {name: 2 * each[min(each)] - each[max(each)] for name, each in times.items() if len(each) == 2}
    shares = {share.kernel: share.mean for share in bound_shares(found)}
    what = "share of the bound measured here, each kernel at R ≥ 4096, geometric mean"
    call = "call beyond its work, R = 64, N = 16, each kernel"
    return [
        target(what, shares, least=WANTED, tell=format_density),
        target(call, beyond, most=3e-6, tell=lambda seconds: format_seconds(max(seconds, 0.0))),
    ]


def more_of_steps(found: Sequence[Compared]) -> list[Target]:
    """Return the targets on steps whose batches are cut from a data set: of small ones, and new by repeated ones."""
    users = [record for one in found for record in one.timed if record["candidate"] in USERS]
    few = {
        one["candidate"]: one["seconds"] for one in users if (one["shape"], one["batches"]) == (FEW_ROWS.name, "new")
    }
    times: dict[tuple, dict[str, float]] = {}
    for one in users:
        if one["shape"] != FEW_ROWS.name:
            sizes = tuple(one[name] for name in ("candidate", "shape", "width", "optimizer"))
            times.setdefault(sizes, {})[one["batches"]] = one["seconds"]
    dearer = {sizes: each["new"] / each["repeat"] for sizes, each in times.items() if len(each) == 2}
    targets = [target("whole step of 32 rows of 14 entries, cut from the rows", few, most=60e-6, tell=format_seconds)]
    for user in USERS:
        own = {str(sizes): value for sizes, value in dearer.items() if sizes[0] == user}
        what = f"whole step, cut from the rows by one that repeats, {user}, geometric mean"
        targets.append(target(what, own, most=1.6, is_mean=True))
    return targets


def more_on_cuda(found: Sequence[Compared]) -> list[Target]:
    """Return the target of three kernels' share of the bound of a copy, with cold caches."""
    known = {share.kernel: share.mean for share in bound_shares(found)}
    shares = {name: known.get(name) for name in ("csr_dense", "sgd_fused", "adam_fused")}
    return [target("share of the bound of a copy, cold, geometric mean", shares, least=WANTED, tell=format_density)]


MORE: dict[tuple[str, str], Callable[[Sequence[Compared]], list[Target]]] = {
    ("kernels", "cpu"): more_of_kernels,
    ("step", "cpu"): more_of_steps,
    ("kernels", "cuda"): more_on_cuda,
}


class Share(NamedTuple):
    """The mean share of the bound that a kernel reaches in large batches, what binds most often, in how many cases,
    and why calls stay below."""

    kernel: str
    mean: float
    by: str
    cases: int
    why: str


def bound_shares(found: Sequence[Compared]) -> list[Share]:
    """Return each kernel's mean fraction of the machine's bound for batches of 4096 rows or more, ascending.

    Candidates made of two kernels ("+" in the name) and records without a bound are left out.
    """
    known: dict[str, list[Record]] = {}
    for one in (record for each in found for record in each.timed):
        alone = one["side"] == "project" and "+" not in one["candidate"]
        if alone and one["bound_share"] and one["rows"] >= ROWS_LARGE and one["cache"] != "warm":
            known.setdefault(one["candidate"], []).append(dict(one))
    shares = []
    for name, each in known.items():
        (by, _), *_ = Counter(one["bound_by"] for one in each).most_common(1)
        mean = geometric_mean(one["bound_share"] for one in each) or 0.0
        shares.append(Share(name, mean, by, len(each), each[-1]["why_below"] or ""))
    return sorted(shares, key=lambda share: share.mean)


CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#7A5195", "#8C6D31", "#888888")


def draw(found: Sequence[Compared], task: str, figure: Figure) -> str:
    """Draw the fastest competitor's time by ours against the width, a line a shape; return the sentence below."""
    ratios = [(one, pair[1]) for one in found if (pair := best_ratio(one))]
    axes, lines = figure.add_subplot(), dict[str, list[tuple[int, float, float, float]]]()
    for one, ratio in ratios:
        label = ", ".join(filter(None, (f"{one.settings['shape']}, R {one.settings['rows']:,}", one.settings["cache"])))
        lines.setdefault(label, []).append((one.settings["width"], *ratio[:3]))
    for number, (label, points) in enumerate(lines.items()):
        x, y, low, high = zip(*sorted(points), strict=True)
        look: dict[str, Any] = {"color": CYCLE[number % len(CYCLE)], "marker": "os^Dv<>Ph*X"[number % 11]}
        axes.plot(x, y, label=label, linestyle="-" if number < len(CYCLE) else "--", **look)
        axes.vlines(x, low, high, color=look["color"], alpha=0.4)
    mean = geometric_mean(ratio.value for _, ratio in ratios) or 1.0
    axes.axhline(1.0, color="#222222", label="equal")
    axes.axhline(mean, color=style.GREY, linestyle="--", label=f"mean {format_number(mean)} x")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sorted({one.settings["width"] for one, _ in ratios})))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("width N of the dense operand", fontsize=style.NORMAL)
    style.log_axis(axes.yaxis, lambda value: f"{format_number(value)} x", "competitor's time / ours")
    axes.yaxis.set_minor_formatter(NullFormatter())
    frame(figure, axes, f"{task}: the fastest competitor's time by ours", "bars: 95 % intervals")
    behind = sum(ratio.value < 1 for _, ratio in ratios)
    faster = f"Over {len(ratios)} configurations ours is {format_number(mean)} times as fast as the fastest competitor"
    return f"{faster}, by the geometric mean, and behind in {behind or 'none'} of them."


COLUMNS = ("configuration", "ours", "fastest competitor", "its time", "competitor's time / ours")


def line(one: Compared, pair: tuple[Record, compare.Ratio]) -> list[str]:
    """Return the table row of a configuration as texts."""
    mine = next(each for each in one.timed if each["side"] == "project")
    times = [time_text(each, name=False) for each in (mine, pair[0])]
    return [one.name, times[0], pair[0]["candidate"], times[1], ratio_text(pair[1])]


def page(records: Sequence[Record]) -> Page:
    """Return the page: ratios by task, shares of the bound by kernel, what has no time."""
    found = compare.newest([one for one in records if one["task"] not in ("bandwidth", "start", "overhead")])
    sections, tasks = [], dict.fromkeys(one.settings["task"] for one in found)
    for task in tasks:
        own = [one for one in found if one.settings["task"] == task]
        rows = [line(one, pair) for one in own if (pair := best_ratio(one))]
        section = Section(f"{task}: the fastest competitor by configuration", COLUMNS, rows)
        if task == "csr_dense" and rows:
            section = replace(section, file="kernels-csr-dense.svg", draw=partial(draw, own, task), inches=(9.0, 6.5))
        sections.append(section)
    shares = [
        [one.kernel, format_density(one.mean, 2), one.by, str(one.cases), one.why * (one.mean < WANTED)]
        for one in bound_shares(found)
    ]
    text = (
        "Geometric means over batches of 4,096 rows and more. The bound is what no call can be faster than by rates "
        "measured in the same run: streams and gathers of memory, and what the cores do a second with data at hand."
    )
    names = ("kernel", "share of the bound", "bound by", "configurations", "why it is below")
    sections.append(Section("Share of the bound by kernel", names, shares, text))
    sections.append(Section("Without a time", ("candidate", "status", "reason", "cases"), compare.untimed(found)))
    return Page(list_targets(found), sections, values=compare.method(found))


SUITES = (
    Suite("kernels", tables.KERNELS, measure_kernels, page),
    Suite("step", tables.STEP, measure_step, page),
    Suite("pytorch", tables.PYTORCH, measure_pytorch, page),
)

"""`benchmarks cluster`: bytes and times of training on several machines, predicted and measured."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks import cluster, tables
from benchmarks import cluster_clicks as clicks
from benchmarks.compare import Target
from benchmarks.contest import Record
from benchmarks.harness import Run, Suite
from benchmarks.page import TEXTS, Page, Section, frame
from kernels.registry import format_size
from workbench.analysis.formatting import format_bytes, format_seconds
from workbench.cluster.cost import LocalEpoch, Network, bandwidth_that_pays, predict_epoch
from workbench.measure import environment
from workbench.plots import style
from workbench.plots.chart import message
from workbench.sweeps.spec import Configuration, roots_of

ROOTS = frozenset({"benchmarks.cluster", "workbench.cluster.training"})
"""Modules that what is measured starts from."""
PROGRAM = (sys.executable, "-m", "benchmarks.cluster")
MOST_RATIO, MOST_TABLES_APART = 1.05, 1.001
MOST_SECONDS, MOST_TIMES_BARE = 5e-4, 1.5
"""Wanted of a pull and a push: seconds, and times those of the calls alone."""
LEAST_FASTER, LEAST_PYTORCH, MOST_LOSS = 1.6, 5.0, 1e-3
"""Wanted of an epoch by two processes: times as fast as by one, as two of PyTorch; how much larger its loss may be."""
GBITS, LATENCY, COUNTS = (1.0, 10.0, 100.0), 5e-5, (1, 2, 4, 8, 16, 32, 64)
"""Networks and numbers of machines for which epochs are predicted."""
WANTED_ON = {8: 5.0, 64: 20.0}
"""Wanted of the prediction at 10 Gbit/s: times as fast as one machine, by the number of machines."""
MOST_ERROR = 0.2
"""Wanted: relative error of the predicted time of a step over a network."""
"""Wanted: bytes of a step over those of numbers and values of the active rows; between tables of different sizes."""
PREDICTED, MEASURED = "#0072B2", "#D55E00"


@dataclass(frozen=True)
class Part:
    """What one process measures: its name, and the sizes ("all", "quick", or rows that are streamed)."""

    name: str
    sizes: str

    def columns(self) -> Record:
        """Return no columns: a record says itself what it is of."""
        return {}


def measure(run: Run, streamed: int = 0) -> Iterator[Record]:
    """Count the bytes of a step on large tables, time steps and epochs by several processes, predict 256 machines.

    Each part is a case, so that parts can be measured one by one into one folder. `networks` needs root.
    Records, page, logs and generated rows are in the folder of --results. Exit status: 130 after Ctrl-C.

    Parameters
    ----------
    streamed
        Instead train so many generated rows that stay on disk, in 2 processes that may have half of them in memory:
        from some 8 million on that is more than a process without rows has.

    Examples
    --------
    python -m benchmarks cluster --quick
    python -m benchmarks cluster --case "clicks 1" --case exchange
    python -m benchmarks cluster --streamed 8000000
    """
    sizes = str(streamed or ("quick" if run.quick else "all"))
    parts = [Part(name, sizes) for name in (["rows"] if streamed else cluster.PARTS)]
    roots = ROOTS | roots_of(cluster.QUICK.configuration) | roots_of(Configuration(model="logistic"))
    for part, known in run.new(run.choose(parts), lambda part: run.about(part, roots)):
        yield from (known | {"status": "ok", "candidate": record["case"]} | record for record in answers(run, part))


def answers(run: Run, part: Part) -> Iterator[Record]:
    """Yield the columns that a new process prints as it measures a part; why it failed if it did."""
    command = [*PROGRAM, part.name, part.sizes, str(run.folder)]
    run.folder.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment.measuring_environment()
    ) as process:
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)
    if process.returncode:
        reason = f"The measuring ended with status {process.returncode}; its logs are in {run.folder}."
        yield {"case": part.name, "part": part.name.partition(" ")[0], "status": "failed", "reason": reason}


# What the records say.


class Steps(NamedTuple):
    """Times of a step, by rising number of machines: predicted for machines, predicted for processes here, measured."""

    machines: list[Record]
    here: list[Record]
    measured: list[Record]

    @property
    def ratios(self) -> dict[int, float]:
        """Measured / predicted step time by number of processes."""
        known = {row["machines"]: row["seconds_step"] for row in self.here}
        both = [row for row in self.measured if row["machines"] in known]
        return {row["machines"]: row["seconds_step"] / known[row["machines"]] for row in both}


def newest(records: Sequence[Record], part: str = "") -> list[Record]:
    """Return the newest record of each name on the machine of the last record; of one `part` if given."""
    of_machine = [row for row in records if row["machine"] == records[-1]["machine"]]
    return [row for row in {row["case"]: row for row in of_machine}.values() if part in ("", row["part"])]


def steps_of(records: Sequence[Record]) -> Steps:
    """Return the newest step times of the sizes measured last, ascending in machines, split by how they are known."""
    known = [row for row in newest(records, "step") if row["status"] == "ok"]
    sizes = ("batch_rows", "features", "width")
    same = [row for row in known if all(row[name] == known[-1][name] for name in sizes)]
    ordered = sorted(same, key=lambda row: row["machines"])
    guessed = [row for row in ordered if not row["is_measured"]]
    machines, here = ([row for row in guessed if (row["cores"] is None) == is_apart] for is_apart in (True, False))
    return Steps(machines, here, [row for row in ordered if row["is_measured"]])


def list_targets(records: Sequence[Record]) -> list[Target]:
    """Return the targets on bytes moved, of each table and across tables, and on memory under a limit."""
    rows = [row for row in newest(records, "bytes") if row["status"] == "ok"] if records else []
    wanted = f"≤ {MOST_RATIO:g} of numbers and values"
    found = []
    for row in rows:
        what = f"bytes of a step, table of {row['features']:,} rows"
        found.append(Target(what, wanted, f"{row['ratio']:.3f}", row["ratio"] <= MOST_RATIO))
    if len(rows) > 1:
        each = [row["bytes_moved"] / row["touched"] for row in rows]
        apart = max(each) / min(each)
        text = "bytes of a touched row, largest over smallest of these tables"
        found.append(Target(text, f"≤ {MOST_TABLES_APART:g}", f"{apart:.5f}", apart <= MOST_TABLES_APART))
    if records:
        found += [target for row in good(records, "exchange") for target in _exchange_targets(row)]
        found += [target for ways in epochs_by_width(records).values() for target in _epoch_targets(ways)]
        found += [_network_target(row) for row in good(records, "network")]
        for name, epoch in local_epochs(records).items():
            for count, least in WANTED_ON.items():
                times = epoch.seconds / predict_epoch(epoch, network_of(GBITS[1]), count)
                what = f"epoch of clicks, {name}, predicted on {count} machines of {GBITS[1]:g} Gbit/s"
                found.append(Target(what, f"≥ {least:g} x faster", f"{times:.1f} x", times >= least))
    return found + [_memory_target(row) for row in (newest(records, "rows") if records else [])]


def good(records: Sequence[Record], part: str) -> list[Record]:
    """Return the newest records of a part that were measured."""
    return [row for row in newest(records, part) if row["status"] == "ok"]


def epochs_by_width(records: Sequence[Record]) -> dict[int, dict[str, Record]]:
    """Return the newest epochs of clicks by N and way, of the most rows that were trained on."""
    rows = good(records, "clicks")
    most = max((row["rows_trained"] for row in rows), default=0)
    found: dict[int, dict[str, Record]] = {}
    for row in rows:
        if row["rows_trained"] == most:
            found.setdefault(row["width"], {})[row["way"]] = row
    return found


def _exchange_targets(row: Record) -> list[Target]:
    """Return the targets on the time of a pull and a push."""
    seconds, ratio = row["seconds_step"], row["ratio"]
    return [
        Target(row["case"], f"≤ {format_seconds(MOST_SECONDS)}", format_seconds(seconds), seconds <= MOST_SECONDS),
        Target("the same, times the calls alone", f"≤ {MOST_TIMES_BARE:g}", f"{ratio:.2f}", ratio <= MOST_TIMES_BARE),
    ]


def _epoch_targets(ways: Mapping[str, Record]) -> list[Target]:
    """Return the targets on epochs of clicks of one N, of the ways that were measured."""
    one, pytorch, found = ways.get(clicks.ONE), ways.get(clicks.PYTORCH), []
    two = [ways[name] for name in (clicks.BY_STEP, clicks.LOCAL) if name in ways]
    if not two:
        return []
    best, what = min(two, key=lambda row: row["seconds_epoch"]), f"epoch of clicks, N = {two[0]['width']}"
    if one is not None:
        times = one["seconds_epoch"] / best["seconds_epoch"]
        name = f"{what}, two processes against one ({best['way']})"
        found.append(Target(name, f"≥ {LEAST_FASTER:g} x faster", f"{times:.2f} x", times >= LEAST_FASTER))
        for row in two:
            more = row["loss"] / one["loss"] - 1
            name = f"{what}, loss of {row['way']} against one process"
            found.append(Target(name, f"≤ {MOST_LOSS:.1%} larger", f"{more:+.2%}", more <= MOST_LOSS))
    if pytorch is not None:
        for row in two:
            times = pytorch["seconds_epoch"] / row["seconds_epoch"]
            name = f"{what}, {row['way']} against PyTorch"
            found.append(Target(name, f"≥ {LEAST_PYTORCH:g} x faster", f"{times:.1f} x", times >= LEAST_PYTORCH))
    return found


def local_epochs(records: Sequence[Record]) -> dict[str, LocalEpoch]:
    """Return epochs of clicks by local steps to predict on machines: as measured, and with one synchronisation."""
    found = {}
    for width, ways in epochs_by_width(records).items():
        if clicks.ONE in ways and clicks.LOCAL in ways:
            one, local = ways[clicks.ONE], ways[clicks.LOCAL]
            steps = -(-one["rows_trained"] // one["batch_rows"])
            for count in sorted({1, -(-steps // local["sync_every"])}):
                name = f"N = {width}, {count} synchronisation{'s' if count > 1 else ''} an epoch"
                sizes = 2 * 4 * one["features"] * width, count, local["seconds_addition"]
                found[name] = LocalEpoch(one["seconds_epoch"], *sizes)
    return found


def draw_epochs(epochs: Mapping[str, LocalEpoch], figure: Figure) -> str:
    """Draw how many times faster an epoch is predicted on machines of three networks; return the sentence below."""
    axes, name = figure.add_subplot(), next(iter(epochs))
    for gbits, look in zip(GBITS, ("-o", "--s", ":^"), strict=True):
        times = [epochs[name].seconds / predict_epoch(epochs[name], network_of(gbits), count) for count in COUNTS]
        axes.plot(COUNTS, times, look, label=f"{gbits:g} Gbit/s", color=PREDICTED)
    axes.axhline(1.0, color=style.GREY, linewidth=style.THIN)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    axes.set_xlabel("machines of one core each", fontsize=style.NORMAL)
    axes.set_ylabel("times as fast as one", fontsize=style.NORMAL)
    frame(figure, axes, "When a second machine pays", "an epoch of clicks by local steps")
    return f"Predicted, {name}."


def network_of(gbits: float) -> Network:
    """Return a network of `gbits` each way, so twice as much both ways, whose calls take `LATENCY`."""
    return Network(LATENCY, 2 * gbits * 1e9 / 8)


def _network_target(row: Record) -> Target:
    """Return the target on the prediction of a step over a network."""
    error = 1 / row["ratio"] - 1
    return Target(f"{row['case']}, predicted", f"within {MOST_ERROR:.0%}", f"{error:+.0%}", abs(error) <= MOST_ERROR)


def _memory_target(row: Record) -> Target:
    """Return the target on memory: streamed rows stay below the limit, rows that are all held are refused it."""
    if row["is_held"]:
        text = "refused memory" if row["status"] == "memory" else "it had memory enough, so the limit is none"
        return Target("the same with all rows held", "refused memory", text, row["status"] == "memory")
    if row["status"] != "ok":
        return Target("rows that are streamed", "within the limit", row["reason"], False)
    limit, resident = (format_size(row[name]) for name in ("bytes_limit", "bytes_resident"))
    what = f"{row['rows_trained']:,} rows that are streamed"
    is_met = row["bytes_resident"] <= row["bytes_limit"]
    return Target(what, f"within {limit} a process", f"{resident} resident at most", is_met)


def draw(steps: Steps, figure: Figure) -> str:
    """Draw milliseconds of a step against the number of machines, predicted and measured; return the sentence below."""
    if not steps.machines:
        return message(figure, "No step was predicted: run python -m benchmarks cluster.")
    axes = figure.add_subplot()
    looks = (
        (steps.machines, "-o", "predicted: machines of one core each"),
        (steps.here, "s", "predicted: processes here"),
        (steps.measured, "o", "measured: processes here"),
    )
    for rows, look, label in looks:
        x, y = [row["machines"] for row in rows], [1e3 * row["seconds_step"] for row in rows]
        axes.plot(x, y, look, label=label, color=MEASURED if rows is steps.measured else PREDICTED)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([row["machines"] for row in steps.machines])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("machines, or processes of one, each with a trainer and a shard", fontsize=style.NORMAL)
    axes.set_ylabel("ms a step", fontsize=style.NORMAL)
    frame(figure, axes, "When a second machine pays", "step time")
    return sentence(steps)


def sentence(steps: Steps) -> str:
    """Return a sentence on the number of machines from which on a step is faster than on one, and the model's error."""
    alone = next((row["seconds_step"] for row in steps.machines if row["machines"] == 1), None)
    faster = [row["machines"] for row in steps.machines if alone is not None and row["seconds_step"] < alone]
    best = min(steps.machines, key=lambda row: row["seconds_step"])
    if faster:
        said = f"A step is predicted to be faster than on one machine from {min(faster)} on, fastest on "
        said += f"{best['machines']} ({1e3 * best['seconds_step']:.3g} ms)."
    else:
        said = "A step is predicted to be slower on any number of machines than on one."
    ratios, counts = ", ".join(f"{one:.2g}" for one in steps.ratios.values()), ", ".join(map(str, steps.ratios))
    checked = f" Checked on one machine: measured / predicted is {ratios} with {counts} processes."
    return f"{said}{checked if ratios else ''}"


def _epochs_on_machines(records: Sequence[Record]) -> Section:
    """Return the predicted epochs by local steps, with their chart."""
    epochs = local_epochs(records)
    columns = ("epoch by local steps", *(f"{count} machines" for count in COUNTS[1:]), "a second machine pays from")
    rows = [
        [
            name,
            *(f"{epoch.seconds / predict_epoch(epoch, network_of(GBITS[1]), count):.1f} x" for count in COUNTS[1:]),
            f"{bandwidth_that_pays(epoch, LATENCY) * 8 / 2e9:.2g} Gbit/s",
        ]
        for name, epoch in epochs.items()
    ]
    draws = (lambda figure: draw_epochs(epochs, figure)) if epochs else None
    return Section(
        "An epoch on several machines", columns, rows, TEXTS["cluster"]["machines"], (), "cluster-epochs.svg", draws
    )


def _steps_over_networks(records: Sequence[Record]) -> Section:
    """Return the steps and epochs of two ranks over networks, measured and predicted."""
    first, shown = ("network", "an empty call", "bytes a second"), format_seconds
    columns = (*first, "step, measured", "predicted", "by one process, predicted")
    rows = [
        [
            row["case"],
            *(shown(row["latency"]), f"{format_bytes(row['bytes_second'])}/s"),
            shown(row["seconds_epoch"] if row["seconds_step"] is None else row["seconds_step"]),
            *("" if row[name] is None else shown(row[name]) for name in ("seconds_predicted", "seconds_alone")),
        ]
        for row in good(records, "network")
    ]
    return Section("A step over a network", columns, rows, TEXTS["cluster"]["networks"])


def page(records: Sequence[Record]) -> Page:
    """Return the page: bytes, step times with their chart, and rows that are more than memory."""
    steps, known = steps_of(records), newest(records)
    here, measured = ({row["machines"]: row["seconds_step"] for row in side} for side in (steps.here, steps.measured))
    shown = lambda seconds: "" if seconds is None else format_seconds(seconds)  # noqa: E731
    rows_of_steps = [
        [
            str(row["machines"]),
            *(shown(row[name]) for name in ("seconds_step", "seconds_network", "seconds_waiting")),
            format_bytes(row["bytes_moved"]),
            *(shown(side.get(row["machines"])) for side in (measured, here)),
            f"{steps.ratios[row['machines']]:.2f}" if row["machines"] in steps.ratios else "",
        ]
        for row in steps.machines
    ]
    rows_of_bytes = [
        [
            *(f"{row[name]:,.0f}" for name in ("features", "touched", "bytes_moved", "bytes_least")),
            f"{row['ratio']:.3f}",
            f"{row['rows_made']:,}",
        ]
        for row in known
        if row["part"] == "bytes" and row["status"] == "ok"
    ]
    rows_streamed = [
        [
            row["case"],
            *("" if row[n] is None else format_size(row[n]) for n in ("bytes_data", "bytes_limit", "bytes_resident")),
            "" if row["quality"] is None else f"{row['quality']:.4f}",
            ", ".join(shown(row[name]) for name in ("seconds_made", "seconds_all")),
            row["reason"],
        ]
        for row in known
        if row["part"] == "rows"
    ]
    rows_of_epochs = [
        [
            f"{row['width']}",
            row["way"],
            str(row["sync_every"]),
            *(shown(row["seconds_epoch"]), f"{row['loss']:.5f}", f"{row['quality']:.4f}"),
        ]
        for ways in epochs_by_width(records).values()
        for row in ways.values()
    ]
    rows_of_exchange = [
        [row["case"], shown(row["seconds_step"]), shown(row["seconds_bare"]), f"{row['ratio']:.2f}"]
        for row in good(records, "exchange")
    ]
    of_epochs = ("N", "trained by", "batches between synchronisations", "an epoch", "loss", "AUC or accuracy")
    of_exchange = ("two ranks", "seconds", "the calls alone", "ratio")
    columns = ("rows of the table", "touched a step", "bytes a step", "numbers and values", "ratio", "rows made")
    times = ("machines", "predicted", "of it messages", "of it waiting", "bytes moved")
    both = ("processes here: measured", "predicted", "measured / predicted")
    names = ("training", "files", "limit a process", "resident at most", "AUC", "making, training", "end")
    draws = (lambda figure: draw(steps, figure)) if steps.machines else None
    texts = TEXTS["cluster"]
    return Page(
        list_targets(records),
        [
            Section("Bytes of a step", columns, rows_of_bytes, texts["bytes"]),
            Section("A pull and a push", of_exchange, rows_of_exchange, texts["exchange"]),
            Section("An epoch of clicks", of_epochs, rows_of_epochs, texts["clicks"]),
            _epochs_on_machines(records),
            Section("Time of a step", (*times, *both), rows_of_steps, texts["steps"], (), "cluster-steps.svg", draws),
            _steps_over_networks(records),
            Section("More rows than memory", names, rows_streamed, texts["rows"]),
        ],
    )


SUITE = Suite("cluster", tables.CLUSTER, measure, page)

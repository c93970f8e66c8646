"""The group `bench`: a command for each suite, which measures what its folder lacks and then writes its page.

Imports wait until a command runs.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks import tables
from workbench.command import data_commands
from workbench.command.exit_codes import Commands, exit_interrupted, is_default, original_command_line
from workbench.command.output import echo

if TYPE_CHECKING:
    from rich.table import Table

    from benchmarks import advice_suite
    from benchmarks.experiment import Progress
    from benchmarks.fit.cases import Case

bench = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
Out = Annotated[Path | None, typer.Option(help="File to write, by default report.html or .md next to the rows.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Markdown instead of HTML, as for an --out *.md.")]
Quick = Annotated[bool, typer.Option("--quick", help="A selection that takes about two minutes.")]
Rows = Annotated[
    Path | None, typer.Option(help="Run folder, by default runs/bench-SUITE[-DEVICE]; resumed if it has rows.")
]
Only = Annotated[str, typer.Option(help="One task alone, such as csr_dense; a wrong name lists all.")]
OnShape = Annotated[str, typer.Option(help="One shape alone; a wrong name lists all.")]
Named = Annotated[list[str] | None, typer.Option(help="A configuration by name; a wrong name lists all.")]
Folder = Annotated[Path, typer.Option(help="Folder of records and page; what it has is not measured again.")]
Threads = Annotated[int | None, typer.Option(min=1, help="At most the cores of this machine; by default all.")]
OnDevice = Annotated[
    str, typer.Option("--device", help="cpu, or cuda: our GPU implementations against competitors on the same GPU.")
]


@bench.callback()
def about() -> None:
    """Measure kernels, training steps and whole trainings against other libraries; records and pages are kept."""


OUTCOME = {True: "met", False: "missed", None: "-"}
COLOUR = {True: "green", False: "yellow", None: None}
"""Words and colours of targets that are met or missed."""
PARTS = {"computing": "computing", "network": "messages", "waiting": "waiting"}
"""Names of the parts of a predicted step, by their columns."""
PROGRAM = (sys.executable, "-m", "benchmarks.cluster")


@contextmanager
def progress_line() -> Iterator["Progress"]:
    """Show a progress bar in the terminal within the context.

    Yield the function `(what, share done)` that updates it.
    """
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from workbench.command.console import console

    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(TextColumn("{task.description}"), *columns, console=console) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda what, share: bar.update(task, description=escape(what), completed=share)


def print_targets(targets: Iterable[tuple]) -> None:
    """Print performance targets, each (what, wanted, measured, met: True, False or None), as a table."""
    from workbench.command.console import console, make_table

    known = list(targets)
    rows = [(what, wanted, measured, OUTCOME[met]) for what, wanted, measured, met in known]
    styles = [COLOUR[met] for *_, met in known]
    console.print(make_table(("target", "wanted", "measured", ""), rows, styles=styles))


def exit_unless(ctx: typer.Context, is_whole: bool) -> None:
    """Exit with status 130, printing how to continue, unless the run `is_whole`."""
    if not is_whole:
        exit_interrupted(ctx, "Stopped")


def print_sentence(text: str) -> None:
    """Print text to the terminal as it is, without markup or highlighting."""
    from workbench.command.console import console

    console.print(text, markup=False, highlight=False)


@bench.command("kernels")
def bench_kernels(
    ctx: typer.Context,
    quick: Quick = False,
    run: Rows = None,
    only: Only = "",
    shape: OnShape = "",
    threads: Threads = None,
    device: OnDevice = "cpu",
) -> None:
    """Time every kernel against its competitors on many shapes and widths; stop with Ctrl-C and lose nothing.

    Records and report are in the run folder, which is completed. Exit status: 130 after Ctrl-C, 2 for a wrong name.

    Examples
    --------
    python -m benchmarks kernels --quick
    python -m benchmarks kernels --only csr_dense --threads 1
    """
    _bench(ctx, "kernels", quick, run, only, shape, threads, device)


@bench.command("step")
def bench_step(
    ctx: typer.Context,
    quick: Quick = False,
    run: Rows = None,
    shape: OnShape = "",
    threads: Threads = None,
    device: OnDevice = "cpu",
) -> None:
    """Time whole training steps, on batches that repeat and on new ones; stop with Ctrl-C and lose nothing.

    Examples
    --------
    python -m benchmarks step --quick
    python -m benchmarks step --threads 1
    """
    _bench(ctx, "step", quick, run, "", shape, threads, device)


@bench.command("pytorch")
def bench_pytorch(
    ctx: typer.Context, quick: Quick = False, run: Rows = None, shape: OnShape = "", threads: Threads = None
) -> None:
    """Time loops of PyTorch on sparse rows as they are, and with the layer and the optimizer of ours.

    Examples
    --------
    python -m benchmarks pytorch --quick
    python -m benchmarks pytorch --threads 1
    """
    _bench(ctx, "pytorch", quick, run, "", shape, threads, "cpu")


@bench.command("recommend")
def bench_recommend(
    folder: Folder = Path("runs/bench-recommend"),
    python: Annotated[str, typer.Option(help="Python of an environment that has implicit.")] = sys.executable,
    rounds: Annotated[int, typer.Option(min=1)] = 1,
    quick: Quick = False,
    threads: Threads = None,
) -> None:
    """Time factors of what users took, and EASE, against the library implicit and NumPy, at an equal loss.

    Examples
    --------
    python -m benchmarks recommend --quick
    """
    from benchmarks import recommend

    echo(recommend.run(folder, python, rounds, quick, threads or 1))


@bench.command("report")
def bench_report(run: Path, out: Out = None, markdown: Markdown = False) -> None:
    """Write what was to be reached and what was, the charts, and every configuration.

    Without --out and --markdown, the page of each suite in a folder of results is written again from its records.

    Parameters
    ----------
    run
        A run folder of the benchmark, a file of records, or a folder of results.

    Examples
    --------
    python -m benchmarks report runs/bench-kernels
    python -m benchmarks report results/MACHINE
    """
    from benchmarks.pages import bench as reports

    pages = [] if out or markdown else reports.write_pages(run)
    for path in pages or [reports.write(run, out, markdown=markdown)]:
        echo(path)


def _bench(
    ctx: typer.Context,
    suite: str,
    quick: bool,
    run: Path | None,
    only: str,
    shape: str,
    threads: int | None,
    device: str,
) -> None:
    """Measure what a run folder lacks of a suite on a device, print targets and write the report.

    Ctrl-C exits with status 130 and loses nothing. `run` None is runs/bench-SUITE; `only` and `shape` "" select all;
    `threads` None is all cores.
    """
    from benchmarks import runner
    from benchmarks.analysis.performance_targets import list_targets
    from benchmarks.interleaved import Policy
    from benchmarks.pages import bench as reports
    from benchmarks.runner import Runner

    folder = run or Path("runs") / f"bench-{suite}{'' if device == 'cpu' else f'-{device}'}"
    configurations = runner.configurations_of(suite, quick, only, shape, device)
    starts = () if only or shape or device != "cpu" else runner.starts_of(suite, quick)
    with progress_line() as progress:
        outcome = Runner(folder, Policy(), threads, progress).run(configurations, starts)
    print_sentence(outcome.summary)
    if outcome.file.exists():  # it was stopped before the first record else
        print_targets(list_targets(tables.BENCH.frame(tables.BENCH.read(folder))))
        echo(f"Report: {reports.write(folder)}")
    exit_unless(ctx, not outcome.stopped)


@bench.command("self")
def bench_self(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="PART")] = None,
    results: Path = Path("runs/bench-self"),
    budget: Annotated[float, typer.Option(min=0)] = 3600.0,
) -> None:
    """Record the noise of trials on this machine, and simulate the statistics with it, where the answer is known.

    Parameters
    ----------
    names
        record (noise of this machine), constants, coverage, calibration and power (simulations with it); by default
        all.
    results
        Folder of rows and page; more of both is added to what is there.
    budget
        Seconds for the parts that measure; each ends what it has begun.

    Examples
    --------
    python -m benchmarks self record --budget 120
    python -m benchmarks self record coverage
    """
    from benchmarks import self_trial
    from benchmarks.experiment import Results
    from benchmarks.pages.suites import write_self_trial
    from workbench import store
    from workbench.command.console import console

    self_trial.choose_parts(names or [])
    Results(tables.SELF, results).open()
    with progress_line() as progress:
        for name, rows in self_trial.run(names or [], results, budget, progress):
            if rows:
                console.print(_outcomes_table(f"{name}: {self_trial.PARTS[name].what}", rows))
    if store.is_stored(results / tables.SELF.file):
        echo(f"Page: {write_self_trial(results)}")
    else:
        print_sentence("Noise is recorded. Next: python -m benchmarks self coverage power")


def _outcomes_table(title: str, rows: Sequence[dict[str, Any]]) -> "Table":
    """Return a table of the outcomes in `rows` that have an expected result, with it and whether it is met."""
    from benchmarks.analysis.self_trial import criteria
    from workbench.command.console import make_table

    found = criteria(tables.SELF.frame(rows))
    lines = [(each.what, each.condition, each.wanted, each.measured, OUTCOME[each.met]) for each in found]
    columns = ("what", "condition", "wanted", "measured", "")
    return make_table(columns, lines, title, [COLOUR[each.met] for each in found])


@bench.command("cluster")
def bench_cluster(
    ctx: typer.Context,
    quick: Quick = False,
    results: Path = Path("runs/bench-cluster"),
    runs: Path = Path("runs/bench-cluster"),
    streamed: Annotated[int | None, typer.Option(min=1000)] = None,
) -> None:
    """Count the bytes of a step on large tables, time it with 1, 2 and 4 processes, predict it for 256 machines.

    Parameters
    ----------
    results
        Folder of rows, page and chart; what it has is not measured again.
    runs
        Folder of logs, and of generated rows.
    streamed
        Instead train so many generated rows that stay on disk, in 2 processes that may have half of them in memory:
        from some 8 million on that is more than a process without rows has.

    Examples
    --------
    python -m benchmarks cluster --quick
    python -m benchmarks cluster --streamed 8000000
    """
    measure_cluster(results, runs, str(streamed or ("quick" if quick else "all")), original_command_line(ctx))


def measure_cluster(folder: Path, runs: Path, what: str, command: str = "") -> None:
    """Measure in a separate process what the folder lacks, print the records as they come, and write the page.

    `what` is "all", "quick", or a number of generated rows, as text, that are streamed from disk; logs go to `runs`,
    `command` is cited on the page. RunError if the process fails.
    """
    import subprocess

    from benchmarks.analysis import cluster as analysis
    from benchmarks.pages.suites import write_cluster
    from workbench.analysis import formatting
    from workbench.command.console import console
    from workbench.measure import environment
    from workbench.sweeps.run_folder import RunError

    arguments = [*PROGRAM, str(folder), str(runs), what]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, text=True, env=environment.measuring_environment()
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            record = describe_cluster_record(json.loads(line))
            console.print(record, markup=False, highlight=False, soft_wrap=True)
    if process.returncode:
        raise RunError(f"The measuring ended with status {process.returncode}; its logs are in {runs}.")
    frame = tables.CLUSTER.frame(tables.CLUSTER.read(folder))
    print_targets(analysis.list_targets(frame))
    for processes, ratio in analysis.steps_of(frame).ratios:
        trainers = formatting.format_count(processes, "trainer")
        echo(f"{trainers} here: a step takes {ratio:.2f} x what is predicted")
    echo(f"Page: {write_cluster(folder, command)}")


def describe_cluster_record(row: dict[str, Any]) -> str:
    """Return a record of the cluster suite as one line of text, by its part (bytes, step or rows)."""
    from kernels.registry import format_size

    if row["part"] == "bytes":
        return (
            f"table of {row['features']:,} rows: {row['bytes_moved']:,.0f} bytes a step, {row['ratio']:.3f} of numbers "
            f"and values of the {row['touched']:,.0f} active rows; {row['rows_made']:,} rows were made"
        )
    if row["part"] == "step":
        parts = [(name, row[f"seconds_{part}"]) for part, name in PARTS.items() if row[f"seconds_{part}"] is not None]
        text = ", ".join(f"{name} {1e3 * seconds:.3g}" for name, seconds in parts)
        return f"{row['what']}: {1e3 * row['seconds_step']:.3g} ms{f' ({text})' if text else ''}"
    if row["status"] != "ok":
        return f"{row['what']}: {row['reason']}"
    limit, resident = (format_size(row[name]) for name in ("bytes_limit", "bytes_resident"))
    return (
        f"{row['what']}: {row['rows_trained']:,} rows trained; a process may allocate {limit}, the largest was "
        f"{resident} with its libraries. AUC {row['quality']:.3f}, {row['seconds_all']:,.0f} s"
    )


@bench.command("advise")
def bench_advise(
    ctx: typer.Context,
    quick: bool = False,
    case: list[str] | None = None,
    results: Path = Path("runs/bench-advise"),
    runs: Path = Path("runs/bench-advise"),
    replay: bool = False,
) -> None:
    """Judge `advise` by full sweeps, compared with always sparse, always dense, the bytes rule and a fitted density.

    Parameters
    ----------
    quick
        Twelve cases, about half an hour; all take an hour.
    case
        A case of the suite; a wrong name lists all.
    results
        Folder of rows and page; cases that it has are not measured again.
    runs
        Folder of the trials; resumed.
    replay
        Measure nothing: play races of the cases in RESULTS back, 50 of each.

    Examples
    --------
    python -m benchmarks advise --quick
    python -m benchmarks advise --replay
    """
    names = tuple(case or ())
    if replay:
        _replay_races(names, results)
        return
    exit_unless(ctx, _judge_advice(names, quick, results, runs, original_command_line(ctx)))


def _judge_advice(names: tuple[str, ...], is_quick: bool, folder: Path, runs: Path, command: str) -> bool:
    """Measure the advice cases that `folder` lacks, print targets and write the page; return False after Ctrl-C.

    Trials are in run folders below `runs`; `names` select cases, () all; `command` is cited on the page.
    """
    from benchmarks import advice_suite
    from benchmarks.analysis import advice as analysis
    from benchmarks.pages.suites import write_advice
    from workbench import store
    from workbench.analysis import formatting
    from workbench.command import terminal
    from workbench.sweeps import estimate, progress_bar

    chosen = advice_suite.choose_cases(names, is_quick)
    left = advice_suite.remaining_cases(chosen, folder)
    done = f", {len(chosen) - len(left)} of them found done" if len(left) < len(chosen) else ""
    lasting = f"; about {estimate.format_duration(sum(map(advice_suite.seconds_of, left)))}" if left else ""
    cases = formatting.format_count(len(chosen), "case")
    echo(f"{cases}{done}{lasting}. Ctrl-C stops; the same command resumes.", err=True)
    is_whole = advice_suite.run(chosen, folder, runs, partial(progress_bar.follow, console=terminal.stderr))
    if store.is_stored(folder / tables.ADVICE.file):
        print_targets(analysis.list_targets(tables.ADVICE.frame(tables.ADVICE.read(folder))))
        echo(f"Page: {write_advice(folder, command)}")
    return is_whole


def _replay_races(names: tuple[str, ...], folder: Path) -> None:
    """Print a table of what each racing method chooses on the recorded cases in `folder`; nothing is measured."""
    from benchmarks import advice_suite
    from workbench.command.console import console, make_table

    known = {case.case: case for case in advice_suite.read_recorded_cases(tables.ADVICE.read(folder))}
    advice_suite.choose_cases(names)
    found = advice_suite.replay_races([case for name, case in known.items() if name in (names or known)])
    rows = [(case, way, *_race_summary([(one, known[case]) for one in came])) for (case, way), came in found.items()]
    for way in advice_suite.WAYS:
        every = [(one, known[case]) for (case, name), came in found.items() if name == way for one in came]
        rows.append(("all cases", way, *_race_summary(every)))
    columns = ("case", "way", "times the least", "at worst", "right side", "time")
    console.print(make_table(columns, rows, "Races played back, in a fifth of the time of the sweep"))


def _race_summary(came: Sequence[tuple["advice_suite.RaceResult", "advice_suite.RecordedCase"]]) -> list[str]:
    """Return four texts on races: mean and worst ratio to the fastest, share of right sides, largest share of time.

    "-" each if there are none.
    """
    from benchmarks.analysis.bench import geometric_mean

    if not came:
        return ["-"] * 4
    regrets = [one.regret for one, _ in came]
    right = sum(one.is_right_side for one, _ in came) / len(came)
    share = max(one.seconds / case.seconds_sweep for one, case in came)
    return [f"{geometric_mean(regrets):.3f}", f"{max(regrets):.2f}", f"{right:.0%}", f"{share:.0%}"]


HeldOut = Annotated[
    str, typer.Option(help="Share of the rows held out, or the file of them, read as --data was; for --data.")
]
FirstSeconds = Annotated[
    float | None, typer.Option(min=0.01, help="Seconds of training of every setting; the best go on. By default 0.4.")
]


@bench.command("fit")
@data_commands.with_files
def bench_fit(
    ctx: typer.Context,
    data: str = "",
    model: str = "logistic",
    held_out: HeldOut = "0.2",
    positive: str = "",
    width: Annotated[int | None, typer.Option(min=1)] = None,
    model_options: str = "",
    case: list[str] | None = None,
    candidate: list[str] | None = None,
    seconds: Annotated[float, typer.Option(min=0.1)] = 20.0,
    first_seconds: FirstSeconds = None,
    rounds: Annotated[int, typer.Option(min=1)] = 4,
    threads: Threads = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    quick: bool = False,
    results: Path = Path("runs/bench-fit"),
    **files: str,
) -> None:
    """Train to the same held-out quality, sparse, dense and with other libraries; stop with Ctrl-C and lose nothing.

    Records, page and charts are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for wrong input.

    Parameters
    ----------
    data
        Your file or folder, or a data set; by default the suite's own.
    model
        Model, for --data; by default a guess, which is printed.
    positive
        Positive class of a binary classifier, for --data.
    width
        Outputs or factors; by default the model's.
    model_options
        Options of the model, name=value with commas between.
    case
        A case of the suite; a wrong name lists all.
    candidate
        A candidate alone; a wrong name lists all.
    seconds
        Seconds of training after which a setting is left.
    rounds
        Rounds of each best setting; from 4 on more where needed.
    seed
        Draws rows held out, starting weights and order; for --data.
    quick
        Two small cases of the suite.
    results
        Folder of rows, page and charts; what it has is not measured again.

    Examples
    --------
    python -m benchmarks fit --data train.txt
    python -m benchmarks fit --data clicks.csv --label clicked
    """
    from benchmarks.analysis import fit as analysis
    from benchmarks.fit import cases
    from benchmarks.fit.runner import Policy, Runner
    from benchmarks.pages.suites import write_fit
    from workbench import store

    chosen = cases.choose_cases(tuple(case or ()), quick)
    if data:
        given = {"positive": positive, "model": model, "model_options": model_options, "width": width, "seed": seed}
        settings = {name: value for name, value in given.items() if value}
        if is_default(ctx, "model"):
            settings.pop("model")  # guessed from the labels, as train and advise do
        chosen = [fit_case_of(data, held_out, files, **settings)]
    policy = Policy(seconds, rounds, threads, first_seconds)
    with progress_line() as progress:
        is_whole = Runner(results, policy, progress).run(chosen, tuple(candidate or ()))
    if store.is_stored(results / tables.FIT.file):
        found = analysis.by_tolerance(tables.FIT.frame(tables.FIT.read(results)))
        print_targets(analysis.list_targets(found))
        print_sentence(analysis.tolerance_sensitivity(found))
        echo(f"Page: {write_fit(results, original_command_line(ctx))}")
    exit_unless(ctx, is_whole)


def fit_case_of(source: str, held_out: str, files: Mapping[str, str], **settings: Any) -> "Case":
    """Return the benchmark case of a file or data set `source`, read as `files` say, trained with these settings.

    `held_out` is a share of the rows or a file. A guessed reader or model is printed. Raises DataError or SpecError.
    """
    from benchmarks.fit import cases
    from workbench.command import training
    from workbench.command.data_source import settings_with_notice, with_model

    given = settings_with_notice(source, **files) | settings
    given = given if "model" in given else {"model": "logistic"} | with_model(given)
    settled = training.configuration_of(given).model_dump()
    return cases.case_of({name: settled[name] for name in given}, held_out)

"""The harness of all suites: one loop that measures what a folder lacks, one record schema, one page, one command.

A suite is a generator of records, in the shape of benchopt: a case is a data set, candidates are solvers, and a
function that runs in the measuring process (`benchmarks.contest`) says how each is made ready and judged. The harness
gives the command with its common options, skips what is known, writes each record to the disk before the next one is
measured, ends cleanly at Ctrl-C, prints the targets and writes the page.

How to add a suite: a module such as

    @dataclass(frozen=True)
    class Size:
        rows: int

        @property
        def name(self):
            return f"{self.rows} rows"

        def columns(self):
            return {"rows": self.rows}

    def contest(settings, request):                  # runs in the measuring process
        x = np.random.default_rng(0).random(settings["rows"])
        make = {"project": lambda: Ready(lambda: x.sum(), lambda got: abs(got - math.fsum(x))), ...}
        policy = race.Policy(**request["policy"])
        return Contest({}, {name: lambda _, one=one: prepare(one, policy, 1e-6) for name, one in make.items()})

    def measure(run, quick=False):                   # its own options are those of the command
        '''Time sums, and say so in the help of the command.'''
        cases = run.choose([Size(10), Size(10**6)], quick=[Size(10)])
        yield from run.contests(cases, "benchmarks.sums:contest", lambda case: {"project": {"side": "project"}, ...},
                                race.Policy(), roots=lambda case: {"benchmarks.sums"})

    def page(records):                               # targets, tables and charts from records alone
        found = compare.newest(records)
        return Page(targets=[compare.target("project / competitor", ratios, most=1.0)], sections=[...])

    SUITE = Suite("sums", Table(...), measure, page)

then its name in `benchmarks.suites`, its columns in `columns/`, its text in `pages.toml`. A suite that does not time
calls in one process (whole trainings, sweeps) yields records of its own from `measure`: `run.new(cases, about)` gives
the cases without final records, and `run.is_done(key)` tells it of a single one.
"""

import inspect
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, TypeVar, final

import typer

from benchmarks.shapes import BenchError
from kernels import threads as threads_of_kernels
from kernels.registry import unknown_name
from workbench import store
from workbench.command import exit_codes
from workbench.command.output import echo
from workbench.measure import closure, machine, race
from workbench.measure.child import Ended

if TYPE_CHECKING:
    from benchmarks.page import Page

MACHINE = "machine.json"
AGAIN = ("failed", "timeout")
"""Statuses that a later start tries again."""
SECONDS_CANDIDATE = 120.0
"""Seconds until a candidate is ready, compiling included, and for all rounds together."""
ANSWERS = "benchmarks.contest:answers"

Record = dict[str, Any]
Progress = Callable[[str, float], None]
"""Called with what is measured now, and the share of the whole that is done."""


class Named(Protocol):
    """What has a name by which it is asked for."""

    @property
    def name(self) -> str:
        """Name in records, pages and options."""


NamedOne = TypeVar("NamedOne", bound=Named)


class Case(Named, Protocol):
    """What a suite measures: a dataclass with a name, and with columns of a record."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def columns(self) -> Record:
        """Return the columns of a record that say what was measured, the name left out."""


CaseOne = TypeVar("CaseOne", bound=Case)


def find_by_name(cases: Iterable[NamedOne], names: Iterable[str]) -> list[NamedOne]:
    """Return the cases with these names, in the order of `names`; BenchError for an unknown name."""
    known, found = {one.name: one for one in cases}, []
    for name in names:
        if name not in known:
            raise BenchError(unknown_name("case", name, known))
        found.append(known[name])
    return found


def resolve_threads(threads: int | None) -> int:
    """Return the number of threads, by default all that this process can use; BenchError if out of range."""
    most = threads_of_kernels.max_threads()
    if threads is not None and not 1 <= threads <= most:
        raise BenchError(f"threads is {threads}; this process can use 1 to {most}.")
    return threads or most


def done_keys(records: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the keys whose candidates' newest records all have a final status (not "failed" or "timeout")."""
    newest = {(record["key"], record.get("candidate")): record["status"] for record in records}
    return {key for key, _ in newest} - {key for (key, _), status in newest.items() if status in AGAIN}


@dataclass(frozen=True)
class Suite:
    """A suite: its command, the table of its records, how it measures, and what its page shows.

    `measure(run, **options)` yields records, `page(records)` returns the content of the page.
    """

    name: str
    table: store.Table
    measure: Callable[..., Iterator[Record]]
    page: Callable[[Sequence[Record]], "Page"]

    @property
    def page_file(self) -> str:
        """Name of the page, next to the records."""
        return f"{Path(self.table.file).stem}.md"


@final
class Run:
    """A suite at work in a folder of results, with the common options: names of cases, quick or not, threads."""

    def __init__(
        self,
        table: store.Table,
        folder: str | Path,
        names: Sequence[str] = (),
        quick: bool = False,
        threads: int | None = None,
        progress: Progress = lambda what, share: None,
    ) -> None:
        """Store the options and read the records of the folder; BenchError for a number of threads out of range."""
        self.table, self.folder = table, Path(folder)
        self.names, self.quick, self.progress = tuple(names), quick, progress
        self.threads, self.share = resolve_threads(threads), 0.0
        self.file = self.folder / table.file
        self.records: list[Record] = table.read(self.file) if store.is_stored(self.file) else []
        self.done = done_keys(self.records)

    def choose(self, cases: Iterable[NamedOne], quick: Iterable[NamedOne] | None = None) -> list[NamedOne]:
        """Return the cases named by --case; without names the `quick` ones in a quick run, else all."""
        every = list(cases)
        return find_by_name(every, self.names) or (list(quick) if self.quick and quick is not None else every)

    def about(self, case: Case, roots: Collection[str] = (), libraries: Sequence[str] = (), *more: Any) -> Record:
        """Return the columns of all records of a case: its own, and a key of all that they depend on.

        That is the case, the code of the modules `roots` and what they import, versions of the libraries, threads, and
        `more`.
        """
        source = closure.installed_code().digest(frozenset(roots)) if roots else ""
        parts = [asdict(case), source, machine.describe_stack(*libraries), self.threads, *more]
        return {"key": closure.result_key(parts), "source": source, "case": case.name} | case.columns()

    def new(self, cases: Sequence[CaseOne], about: Callable[[CaseOne], Record]) -> Iterator[tuple[CaseOne, Record]]:
        """Yield (case, its columns) of the cases without final records; tells the progress of each."""
        for place, case in enumerate(cases):
            known = about(case)
            if not self.is_done(known["key"]):
                self.share = place / len(cases)
                self.tell(case.name)
                yield case, known

    def is_done(self, key: str) -> bool:
        """Return whether all records with this key are final."""
        return key in self.done

    def tell(self, what: str) -> None:
        """Show what is measured now."""
        self.progress(what, self.share)

    def contests(
        self,
        cases: Sequence[CaseOne],
        work: str,
        candidates: Callable[[CaseOne], Mapping[str, Record]],
        policy: race.Policy,
        *,
        roots: Callable[[CaseOne], Collection[str]],
        libraries: Sequence[str] = (),
        preload: Sequence[str] = (),
        together: Callable[[CaseOne], Any] = lambda case: case.name,
        seconds: float = SECONDS_CANDIDATE,
        budget: float = float("inf"),
        begin: Callable[[], Record] = dict,
        **request: Any,
    ) -> Iterator[Record]:
        """Yield a record of every candidate of each new case, timed in rounds in a process with limits.

        `work` is what `benchmarks.contest` calls, `candidates(case)` gives the columns of each candidate by name. Cases
        for which `together` is equal share a process, and `request` is what else the work asks for. A candidate that
        ends its process has a record that says how; the others are measured again without it. No process is begun
        `budget` seconds after the start. `begin` is called before the first process, and returns more of the request.
        """
        end, more = time.monotonic() + budget, None
        about: dict[str, Record] = {}
        groups: dict[Any, list[CaseOne]] = {}
        for case in cases:
            names = list(candidates(case))
            about[case.name] = self.about(case, roots(case), libraries, asdict(policy), names, request)
            groups.setdefault(together(case), []).append(case)
        for group in groups.values():
            rest = [case for case in group if not self.is_done(about[case.name]["key"])]
            if rest and time.monotonic() < end:
                more = begin() if more is None else more
                worker = race.Worker(ANSWERS, self.folder, preload)
                asked = request | more | {"work": work, "policy": asdict(policy), "threads": self.threads}
                asked |= {"bytes_limit": worker.bytes_limit}
                for case, found in self._measured(worker, rest, candidates, asked, seconds, len(cases)):
                    yield from (
                        about[case.name] | {"candidate": name} | candidates(case)[name] | found[name] for name in found
                    )

    def _measured(
        self,
        worker: race.Worker,
        cases: Sequence[CaseOne],
        candidates: Callable[[CaseOne], Mapping[str, Record]],
        request: Record,
        seconds: float,
        count: int,
    ) -> Iterator[tuple[CaseOne, dict[str, Record]]]:
        """Yield (case, {candidate: columns}) of cases that share a process, in new processes after each that ended."""
        rest, ended = dict(enumerate(cases)), [dict[str, Record]() for _ in cases]
        for number, case in list(rest.items()):
            needed = getattr(case, "bytes_needed", 0)
            if needed > worker.bytes_limit:
                reason = f"Needs {needed} bytes; the limit is {worker.bytes_limit}."
                yield rest.pop(number), {name: {"status": "memory", "reason": reason} for name in candidates(case)}
        while rest:
            number, at, found = next(iter(rest)), "", dict[str, Record]()
            asked = [(n, asdict(case), list(ended[n])) for n, case in rest.items()]
            try:
                for answer in worker.answers(request | {"cases": asked}, lambda _: seconds):
                    if "case" in answer:
                        number, found = answer["case"], {}
                        self.tell(cases[number].name)
                    at = answer.get("at", at)
                    if "record" in answer:
                        found[answer["name"]] = answer["record"]
                    if "done" in answer:
                        self.share += 1 / count
                        yield rest.pop(number), ended[number] | found
            except Ended as end:
                names = candidates(cases[number])
                if at in names and at not in ended[number]:
                    ended[number][at] = race.end_columns(end)
                    continue
                others = {name: race.end_columns(end) for name in names}
                yield rest.pop(number), others | ended[number] | found

    def append(self, columns: Record) -> None:
        """Append a record with these columns, and time, machine, versions and threads unless given."""
        known: Record = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "machine": machine.machine_id()}
        known |= {"versions": machine.versions(), "threads": self.threads} | columns
        known = {name: value for name, value in known.items() if name in self.table.columns or name in columns}
        self.records.append(self.table.new_row(**known))
        self.table.append(self.file, self.records[-1])

    def collect(self, records: Iterable[Record]) -> bool:
        """Append records as they come, with time, machine and versions; return False if Ctrl-C stopped it.

        Each is on the disk before the next one is measured. An empty log is removed after a complete run.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MACHINE).write_text(json.dumps(machine.describe_machine(), indent=1), encoding="utf-8")
        try:
            for columns in records:
                self.append(columns)
        except KeyboardInterrupt:
            return False
        log = self.folder / race.LOG
        if log.exists() and not log.stat().st_size:
            log.unlink()  # no library printed anything
        return True


# The command of a suite: its own options and the common ones; what it prints.


COMMON = {
    "case": ("A case alone; a wrong name lists all.", list[str] | None, None),
    "quick": ("A selection that takes minutes.", bool, False),
    "threads": ("At most the cores of this machine; by default all.", int | None, None),
    "results": ("Folder of records, page and charts; what it has is not measured again.", Path | None, None),
}
"""Options of every suite: help, type and default."""


def command_of(suite: Suite) -> Callable[..., None]:
    """Return the command of a suite: it measures what the folder lacks, prints the targets and writes the page.

    Its help, options and examples are those of `suite.measure`, and the common options.
    """

    def run_suite(ctx: typer.Context, **given: Any) -> None:
        case, quick, threads, results = (given.pop(name) for name in COMMON)
        device = given.get("device", "cpu")
        folder = results or Path("runs") / f"bench-{suite.name}{'' if device == 'cpu' else f'-{device}'}"
        with progress_line() as progress:
            run = Run(suite.table, folder, case or (), quick, threads, progress)
            is_whole = run.collect(suite.measure(run, **given))
        if run.records:
            from benchmarks.page import OUTCOME, write
            from workbench.command.console import console, make_table

            content = suite.page(run.records)
            rows = [(one.what, one.wanted, one.measured, OUTCOME[one.met]) for one in content.targets]
            colours = [{True: "green", False: "yellow"}.get(one.met) for one in content.targets]  # type: ignore[arg-type]
            if rows:
                console.print(make_table(("target", "wanted", "measured", ""), rows, styles=colours))
            for sentence in content.summary:
                console.print(sentence, markup=False, highlight=False)
            echo(f"Page: {write(suite, folder, exit_codes.original_command_line(ctx))}")
        if not is_whole:
            exit_codes.exit_interrupted(ctx, "Stopped")

    kind = inspect.Parameter.KEYWORD_ONLY
    _, *own = inspect.signature(suite.measure, eval_str=True).parameters.values()
    common = [
        inspect.Parameter(
            name, kind, default=default, annotation=Annotated[type_, typer.Option(*_flag(name, type_), help=text)]
        )
        for name, (text, type_, default) in COMMON.items()
    ]
    ctx = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [ctx, *(one.replace(kind=kind) for one in own), *common]
    run_suite.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run_suite.__annotations__ = {one.name: one.annotation for one in parameters}
    run_suite.__doc__, run_suite.__name__ = suite.measure.__doc__, suite.name
    return run_suite


def _flag(name: str, type_: Any) -> tuple[str, ...]:
    """Return the spelling of a flag, which has no --no-NAME; () for other options."""
    return (f"--{name}",) if type_ is bool else ()


@contextmanager
def progress_line() -> Iterator[Progress]:
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

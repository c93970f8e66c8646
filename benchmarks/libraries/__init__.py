"""`benchmarks libraries`: the density from which on dense is faster in the libraries that people use, by operation.

How to add an operation: in the file of its library here, or in a new one,

    def product(data):
        return lambda: data.csr @ data.w, lambda: data.dense @ data.w

    OPERATIONS = [Operation("SciPy", "CSR @ 64 columns", product, "scipy")]

A function of `Data` returns two calls without arguments, sparse and dense, that do the same by the library's own means
on data in its form already; their results must agree. One file is one process, in which only its library is loaded.
"""

import importlib
import json
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks import compare, tables
from benchmarks.contest import Ready, Record, prepare, set_threads
from benchmarks.harness import MACHINE, Run, Suite
from benchmarks.page import Page, Section
from workbench.advising.breakevens import LibraryBreakEven, Measurement, locate
from workbench.analysis.compare import Contest
from workbench.analysis.formatting import format_density, format_seconds
from workbench.measure import machine, race
from workbench.measure.child import Ended
from workbench.measure.posterior import Ratio

GRID = tuple(2.0 ** (-step / 2) for step in range(22, -1, -1))
"""Densities that a bisection chooses from, from 0.05 % to 100 %, each 1.41 times the one before."""
SIDES = ("sparse", "dense")
POLICY = race.Policy(seconds_call=0.04, rounds=9, rounds_slow=5, rounds_least=5, seconds_most=3.0)
QUICK = race.Policy(seconds_call=0.002, rounds=3, rounds_least=2, seconds_most=0.5)
SECONDS = 120.0
"""Seconds until the next record of a library, its import included."""


@dataclass(frozen=True)
class Data:
    """Rows of one density: X [R, D] float32 as `csr` (int32 indices) and `dense`, dense operands, labels.

    `w` is float32 [D, 64], `v` float32 [D], `y` int64 [R] of 0 and 1, `count` float32 [R] of whole numbers from 0 on.
    """

    csr: scipy.sparse.csr_matrix
    dense: np.ndarray
    w: np.ndarray
    v: np.ndarray
    y: np.ndarray
    count: np.ndarray
    threads: int


Calls = tuple[Callable[[], Any], Callable[[], Any]]


@dataclass(frozen=True)
class Operation:
    """What a library does: `make(data)` returns (sparse call, dense call); pip calls the library `distribution`.

    Results are compared by the largest difference, relative to the largest result; `allowed` is the most. They are
    arrays, sparse ones too. `note` says how the sides differ apart from the storage of X.
    """

    library: str
    what: str
    make: Callable[[Data], Calls]
    distribution: str
    allowed: float = 1e-3
    rows: int = 4096
    features: int = 512
    note: str = ""

    @property
    def name(self) -> str:
        """Name of the case, such as "SciPy: CSR @ 64 columns"."""
        return f"{self.library}: {self.what}"

    def columns(self) -> Record:
        """Return the columns of a record that say what was measured."""
        known = {"library": self.library, "operation": self.what, "rows": self.rows, "features": self.features}
        return known | {"note": self.note, "distribution": self.distribution, "error_allowed": self.allowed}


@dataclass(frozen=True)
class Case:
    """What a record is about: an operation without its code, which the digest of the sources has."""

    name: str
    settings: Record

    def columns(self) -> Record:
        """Return the columns of a record that say what was measured."""
        return self.settings


FILES = tuple(module.name for module in pkgutil.iter_modules(__path__))


ROOTS = (__name__, *(f"{__name__}.{file}" for file in FILES))


def operations_of(file: str) -> list[Operation]:
    """Return the operations of a file of this folder; imports none of their libraries."""
    return importlib.import_module(f"{__name__}.{file}").OPERATIONS


def draw(operation: Operation, density: float, threads: int) -> Data:
    """Return data of an operation, drawn from a seed: places and values are uniform, labels follow from X and noise."""
    rng = np.random.default_rng(0)
    shape = operation.rows, operation.features
    dense = np.where(rng.random(shape) < density, rng.random(shape), 0).astype(np.float32)
    csr = scipy.sparse.csr_matrix(dense)
    w = rng.standard_normal((operation.features, 64)).astype(np.float32)
    scores = dense @ w[:, 0]
    y = (scores + rng.normal(0, scores.std() + 1e-6, len(scores)) > np.median(scores)).astype(np.int64)
    count = rng.poisson(1 + y).astype(np.float32)
    return Data(csr, dense, w, np.ascontiguousarray(w[:, 0]), y, count, threads)


def difference(expected: Any, came: Any) -> float:
    """Return the largest difference of two results, sparse or not, relative to the largest expected number."""
    first, second = (np.asarray(x.toarray() if hasattr(x, "toarray") else x, np.float64) for x in (expected, came))
    if first.shape != second.shape:
        return float("inf")
    return float(np.abs(first - second).max() / max(float(np.abs(first).max()), 1e-30))


def ratio_of(records: Mapping[str, Mapping[str, Any]]) -> Ratio | None:
    """Return the ratio dense / sparse of the times of the records of both sides; None without times of both."""
    if any(records.get(side, {}).get("status") != "ok" for side in SIDES):
        return None
    return compare.ratio(records["dense"], records["sparse"])


def race_at(operation: Operation, density: float, threads: int, policy: race.Policy) -> dict[str, Record]:
    """Return the records of both sides at one density: results compared, then timed in turned rounds."""
    calls = dict(zip(SIDES, operation.make(draw(operation, density, threads)), strict=True))
    expected = calls["dense"]()

    def judge(came: Any) -> float:
        """Return the error of a result against that of the dense call."""
        return difference(expected, came)

    makes = {side: partial(Ready, calls[side], judge, seconds_settle=0.002) for side in SIDES}
    candidates = {
        side: lambda able, make=make: prepare(make, policy, operation.allowed) for side, make in makes.items()
    }
    found = {one["name"]: one["record"] for one in race.measure_candidates(candidates, policy) if "record" in one}
    return {
        side: record | {"kind": side, "density": density, "candidate": f"{side} at {format_density(density, 2)}"}
        for side, record in found.items()
    }


def bisect(measure: Callable[[float], dict[str, Record]]) -> Iterator[dict[str, Record]]:
    """Yield the records of the densities of `GRID` that close in on the break-even, `measure(density)` each.

    Between a win of sparse and one of dense the middle comes next; a density without a winner ends on either side, as
    more would not decide it. Stops at the first density that has no times.
    """
    low, high = 0, len(GRID) - 1
    while low <= high:
        middle = (low + high) // 2
        records = measure(GRID[middle])
        yield records
        ratio = ratio_of(records)
        if ratio is None:
            return
        low, high = (middle + 1, high) if ratio.value > 1 else (low, middle - 1)


def answers(request: Mapping[str, Any]) -> Iterator[Record]:
    """Yield `{"at": name}` and then the records of each operation of a file; runs in a separate process."""
    set_threads(request["threads"])
    policy = race.Policy(**request["policy"])
    for operation in operations_of(request["file"]):
        if operation.name not in request["names"]:
            continue
        yield {"at": operation.name}
        measure = partial(race_at, operation, threads=request["threads"], policy=policy)
        try:
            found = [record for records in bisect(measure) for record in records.values()]
        except Exception as failure:
            found = [race.failure_record(failure)]
        yield {"records": found}


def measure(run: Run) -> Iterator[Record]:
    """Find the density from which on dense is faster, of operations of the libraries that are installed.

    Records and page are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for a wrong name.

    Examples
    --------
    python -m benchmarks libraries --quick
    python -m benchmarks libraries --case "SciPy: CSR @ 64 columns"
    """
    files = {file: operations_of(file) for file in FILES}
    every = [one for group in files.values() for one in group]
    chosen = run.choose(every, [one for group in files.values() for one in group[:1]])
    policy = QUICK if run.quick else POLICY
    about = {
        one.name: run.about(Case(one.name, one.columns()), ROOTS, [one.distribution], asdict(policy)) for one in chosen
    }
    for one in chosen:
        about[one.name]["version"] = machine.describe_stack(one.distribution)[one.distribution]
    for file, group in files.items():
        asked = [one for one in group if one in chosen and not run.is_done(about[one.name]["key"])]
        lacking = [one for one in asked if not about[one.name]["version"]]
        for one in lacking:
            reason = f"{one.library} is not installed: pip install {one.distribution}."
            yield about[one.name] | {"candidate": "sparse", "status": "unsupported", "reason": reason}
        names = [one.name for one in asked if one not in lacking]
        if not names:
            continue
        run.tell(names[0])
        request = {"file": file, "names": names, "policy": asdict(policy), "threads": run.threads}
        at = names[0]
        try:
            for answer in race.Worker(f"{__name__}:answers", run.folder).answers(request, lambda _: SECONDS):
                at = answer.get("at", at)
                run.tell(at)
                yield from (about[at] | {"candidate": "sparse"} | record for record in answer.get("records", ()))
        except Ended as end:
            yield about[at] | {"candidate": "sparse"} | race.end_columns(end)
        run.share += len(asked) / len(every)


def contests_of(records: Sequence[Mapping[str, Any]]) -> list[Contest]:
    """Return the contests of an operation, by density, of records that have times of both sides."""
    found: dict[float, dict[str, Mapping[str, Any]]] = {}
    for record in records:
        if record["density"] is not None:
            found.setdefault(record["density"], {})[record["kind"]] = record
    contests = []
    for density, both in sorted(found.items()):
        if (ratio := ratio_of(both)) is not None:
            sides = dict(both["sparse"]), dict(both["dense"])
            contests.append(Contest(density, *sides, ratio.verdict, ratio))
    return contests


FIELDS = ("library", "version", "operation", "rows", "features", "note")
"""Columns of a record that say which operation it is of."""


def breakeven_of(records: Sequence[Mapping[str, Any]]) -> LibraryBreakEven | None:
    """Return the break-even of an operation from its records; None without times of both sides."""
    contests = contests_of(records)
    return locate(contests, {name: records[0][name] for name in FIELDS}) if contests else None


def line(records: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the cells of an operation: library, what it does, shape, break-even, times at the lowest density."""
    contests, found = contests_of(records), breakeven_of(records)
    assert found is not None
    times = (format_seconds(side["seconds"]) for side in (contests[0].sparse, contests[0].dense) if side)
    at = f"{' and '.join(times)} at {format_density(contests[0].density or 0.0, 2)}"
    return found.library, found.version, found.operation, found.shape, found.text, at


COLUMNS = ("library", "version", "operation", "X", "break-even", "sparse and dense")


def newest_by_case(records: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return the newest records of each operation, by library and operation."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    newest = {record["case"]: record["key"] for record in records}
    for record in records:
        if record["key"] == newest[record["case"]]:
            found.setdefault(record["case"], []).append(record)
    return sorted(found.values(), key=lambda group: (group[0]["library"].lower(), group[0]["operation"].lower()))


def page(records: Sequence[Mapping[str, Any]]) -> Page:
    """Return the page: a table of break-evens by library and operation, and what was not measured."""
    found = newest_by_case(records)
    timed = [group for group in found if contests_of(group)]
    lost = [group for group in found if not contests_of(group)]
    lines = [*map(line, timed)]
    notes = sorted({(group[0]["case"], group[0]["note"]) for group in timed if group[0]["note"]})
    reasons = [(group[0]["case"], next(one["reason"] for one in group if one["status"] != "ok")) for group in lost]
    sections = [
        Section("Break-evens", COLUMNS, lines),
        Section("What has to be known", ("operation", "note"), notes),
        Section("Without a time", ("operation", "reason"), reasons),
    ]
    busy = [record["busy_others"] or 0 for record in records if record["status"] == "ok"]
    values = {"cases": len(timed), "rounds": POLICY.rounds, "threads": records[0]["threads"] if records else 0}
    return Page((), sections, values=values | {"busy": f"{max(busy, default=0):.0%}"})


def measurement_of(folder: str | Path) -> Measurement:
    """Return the break-evens of a folder of results, which the package shows to users (`Measurement.as_toml`)."""
    facts = json.loads((Path(folder) / MACHINE).read_text(encoding="utf-8"))
    records = tables.LIBRARIES.read(Path(folder))
    operations = tuple(one for one in map(breakeven_of, newest_by_case(records)) if one is not None)
    recorded = max(record["time"] for record in records)[:10]
    threads = records[0]["threads"]
    return Measurement(facts["cpu"], facts["cores"], threads, facts["id"], recorded, operations)


SUITE = Suite("libraries", tables.LIBRARIES, measure, page)

"""Runs cases: every contender with its settings, rung by rung, then the best of each in rounds; a row for each.

Rows are on the disk before the next training starts; what is stopped is resumed by starting it again.
"""

import functools
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba

from workbench import store
from workbench.bench.fit.asking import Asked, Rounds
from workbench.bench.fit.cases import Case
from workbench.bench.fit.choosing import (
    ROUNDS_MOST,
    Row,
    Training,
    curve_columns,
    in_more_rounds,
    in_rounds,
    is_end,
    reached_at,
    soonest,
    target_among,
)
from workbench.bench.fit.contract import Contender, contenders_of, get, origin
from workbench.bench.fit.rungs import Rung, going_on, left_early, rungs
from workbench.bench.shapes import BenchError
from workbench.measure import closure, machine, memory
from workbench.measure.child import Child, Ended, fork_server, start, why_too_long
from workbench.measure.rounds import LOOKS, turned
from workbench.measure.stack import stack
from workbench.sweep import sources
from workbench.sweep.spec import Cell

WORK = "workbench.bench.fit.child:answers"
PRELOAD = "workbench.bench.fit.preload"
LIBRARIES = ("torch", "scikit-learn", "implicit", "tensorflow-cpu", "vowpalwabbit")
SECONDS_START = 120.0
"""Seconds for data, imports, and what is compiled."""
SECONDS_JUDGE = 15.0
"""Seconds that judging a point may take, beside those of the training."""
FINAL = ("ok", "unsupported", "memory", "timeout")
MACHINE, LOG = "machine.json", "log.txt"

Told = Callable[[str, float], None]
"""Hears what is done now, and the share of the whole that is over."""


@dataclass(frozen=True)
class Policy:
    """Limits: how long a setting is trained at most, rounds of the best setting, and threads of all libraries."""

    seconds: float = 20.0
    rounds: int = 4
    threads: int | None = None

    def __post_init__(self) -> None:
        most = numba.config.NUMBA_NUM_THREADS
        if self.threads is not None and not 1 <= self.threads <= most:
            raise BenchError(f"threads is {self.threads}; this process can use 1 to {most}.")

    @property
    def is_steady(self) -> bool:
        """Whether there are rounds enough to judge by that more may be added where they spread."""
        return self.rounds >= LOOKS[0]

    @property
    def count(self) -> int:
        """Threads: those asked for, or all cores."""
        return self.threads or numba.config.NUMBA_NUM_THREADS


class Runner:
    """Measures cases into a folder of results."""

    def __init__(self, folder: Path, policy: Policy, told: Told = lambda what, share: None) -> None:
        self.folder, self.policy, self.told = folder, policy, told
        self.file = folder / store.FIT.file
        self.run_id = time.strftime("%Y-%m-%dT%H:%M:%S")
        self.bytes_limit = int(0.85 * memory.available_bytes())
        self.over, self.total = 0, 1

    def run(self, cases: Sequence[Case], only: tuple[str, ...] = ()) -> bool:
        """Measure what the folder has no rows of yet; False where Ctrl-C stopped it, which loses nothing finished."""
        each = [(case, contenders_of(case.model, only)) for case in cases]
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MACHINE).write_text(json.dumps(machine.record(), indent=1), encoding="utf-8")
        rows = store.FIT.read(self.file) if self.file.exists() else []
        self.known = {row["key"]: row for row in rows if row["status"] in FINAL}
        steps = len(rungs(self.policy.seconds)) + self.policy.rounds
        self.total = sum(len(contenders) for _, contenders in each) * steps
        try:
            for case, contenders in each:
                tried = self.climb(case, contenders)
                self.rounds(case, {one.name: one for one in contenders}, tried)
        except KeyboardInterrupt:
            return False
        log = self.folder / LOG
        if log.exists() and not log.stat().st_size:
            log.unlink()  # no library had anything to say
        return True

    def climb(self, case: Case, contenders: Sequence[Contender]) -> dict[str, list[Row]]:
        """The newest row of each setting of each contender, after all rungs."""
        tried: dict[str, dict[int, Row]] = {one.name: {} for one in contenders}
        numbers = {one.name: list(range(len(one.values(case.model)))) for one in contenders}
        for number, rung in enumerate(rungs(self.policy.seconds)):
            if number:
                numbers = going_on(tried, rung, self.policy.seconds)
            for one in contenders:
                self._tell(f"{case.name}: {one.name}, settings for {rung.seconds:g} s")
                self.try_settings(case, one, rung, numbers[one.name], tried[one.name])
        for name, (number, rung) in left_early(tried, self.policy.seconds).items():
            self.try_settings(case, get(name), rung, [number], tried[name])
        return {name: list(rows.values()) for name, rows in tried.items()}

    def try_settings(
        self, case: Case, contender: Contender, rung: Rung, numbers: Sequence[int], rows: dict[int, Row]
    ) -> None:
        """Train settings of a contender, by number, for the seconds of a rung, and put the row of each into `rows`.

        What has a row of that rung, or of a later one, has it already.
        """
        values = contender.values(case.model)
        keys = {number: self._key(case, contender, "settings", values[number]) for number in numbers}
        found = {number: self.known[key] for number, key in keys.items() if key in self.known}
        rows |= {number: row for number, row in found.items() if row["seconds_rung"] >= rung.seconds}
        rest = [number for number in numbers if number not in rows or rows[number]["seconds_rung"] < rung.seconds]
        if any(is_end(row) for row in rows.values()):
            return
        if contender.unavailable and rest:
            columns = {"status": "unsupported", "reason": contender.unavailable}
            rows[rest[0]] = self._append(case, contender, "settings", keys[rest[0]], {}, rung, columns)
            return
        while rest:  # in another process again what is left after a setting that did not end well
            before = {number: rows[number]["curve"] for number in rest if number in rows and contender.refit}
            asked = Asked(case, contender, [(number, values[number]) for number in rest], rung.seconds, before=before)
            for training, facts in self._trainings(asked):
                number = training.number
                columns = facts | curve_columns(training, facts)
                rows[number] = self._append(case, contender, "settings", keys[number], values[number], rung, columns)
                rest.remove(number)
                if is_end(rows[number]):
                    return

    def rounds(self, case: Case, contenders: dict[str, Contender], tried: dict[str, list[Row]]) -> None:
        """Rounds in turned order of those that reached the target with a setting, each with its best.

        Where they are as many as a first look takes, further ones follow of the soonest alone (`in_more_rounds`).
        """
        target, larger = target_among([row for rows in tried.values() for row in rows])
        reached = {name: soonest(rows, target, larger) for name, rows in tried.items()}
        best = {name: found for name, found in reached.items() if found}
        is_ours = {name: contenders[name].side == "ours" for name in best}
        names = in_rounds(best, is_ours)
        self.over += (len(contenders) - len(names)) * self.policy.rounds
        done: dict[str, dict[int, float]] = {name: {} for name in names}
        rounds = Rounds(case, contenders, best, target, done)
        for number in range(self.policy.rounds):
            self._round(rounds, names, number)
        for number in range(self.policy.rounds, ROUNDS_MOST if self.policy.is_steady else 0):
            if not (names := in_more_rounds(done, is_ours)):
                return
            self._round(rounds, names, number)

    def _round(self, rounds: Rounds, names: Sequence[str], number: int) -> None:
        """A round of those named, all again where one lacks: those of a round are neighbours in time."""
        case, target = rounds.case, rounds.target
        parts = {name: ("round", number, target, *rounds.best[name]) for name in names}
        keys = {name: self._key(case, rounds.contenders[name], *each) for name, each in parts.items()}
        rows = {name: self.known[key] for name, key in keys.items() if key in self.known}
        self.over += len(names) if len(rows) == len(names) else 0
        for name in turned(names, number) if len(rows) < len(names) else ():
            self._tell(f"{case.name}: {name}, round {number + 1} of {max(self.policy.rounds, number + 1)}")
            rows[name] = self._training_of_round(rounds, name, keys[name], {"target": target, "round": number})
        for name, row in rows.items():
            if row["seconds"] is not None:
                rounds.seconds[name][number] = row["seconds"]

    def _training_of_round(self, rounds: Rounds, name: str, key: str, known: Row) -> Row:
        """One training to the target; the row of the last of its processes, of which there is one."""
        case, contender, (_, value, iterations) = rounds.case, rounds.contenders[name], rounds.best[name]
        ladder = [int(iterations)] if contender.refit is not None else []
        asked = Asked(case, contender, [(0, value)], self.policy.seconds, known["target"], ladder)
        row: Row = {"seconds": None}
        for training, facts in self._trainings(asked):
            columns = facts | curve_columns(training, facts)
            reached = reached_at(training.points, known["target"], facts.get("larger_is_better", False))
            columns |= known | {"seconds": reached[0] if reached else None}
            row = self._append(case, contender, "rounds", key, value, Rung(self.policy.seconds), columns)
        return row

    def _trainings(self, asked: Asked) -> Iterator[tuple[Training, Row]]:
        """Each training that came to an end, the last by whatever ended the process, and the facts of the data."""
        facts: Row = {}
        training = Training(asked.values[0][0])
        is_open = True
        try:
            for answer in self._answers(asked):
                facts = answer.get("facts", facts)
                if "setting" in answer:
                    training, is_open = Training(answer["setting"]), True
                training.points += [answer["point"]] if "point" in answer else []
                if ending := answer.get("done", answer.get("ended")):
                    training.columns |= ending
                    is_open = False
                    yield training, facts
        except Ended as ended:
            training.columns |= {name: ended.row[name] for name in ("status", "reason")}
            if is_open:
                yield training, facts

    def _answers(self, asked: Asked) -> Iterator[Row]:
        """Each answer of a process; `Ended` where it ends badly, or is silent for too long."""
        request = {
            "case": asdict(asked.case),
            "contender": asked.contender.name,
            "values": [(number, value, asked.before.get(number, [])) for number, value in asked.values],
            "target": asked.target,
            "ladder": list(asked.ladder),
            "seconds": asked.seconds,
            "threads": self.policy.count,
            "bytes_limit": self.bytes_limit,
        }
        process, connection = start(fork_server([PRELOAD]), WORK, request, self.folder / LOG)
        since, limit = time.monotonic(), SECONDS_START

        def why_end() -> Row:
            return why_too_long(since, limit) or child.why_too_large(self.bytes_limit, self.bytes_limit)

        with Child(process, connection) as child:
            for answer in child.answers(why_end):
                yield answer
                since = time.monotonic()
                limit = SECONDS_START if "facts" in answer else asked.seconds + SECONDS_JUDGE

    def _append(
        self, case: Case, contender: Contender, stage: str, key: str, value: Row, rung: Rung, columns: Row
    ) -> Row:
        cell = case.cell
        row = store.FIT.new_row(
            key=key,
            time=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            run=self.run_id,
            case=case.name,
            dataset=cell.dataset,
            path=cell.path,
            model=cell.model,
            held_out=str(case.held_out),
            contender=contender.name,
            side=contender.side,
            is_dense=contender.is_dense,
            stage=stage,
            setting=value,
            tried=len(contender.values(case.model)),
            is_at_end=contender.is_at_end(case.model, value) if value else None,
            seconds_limit=self.policy.seconds,
            seconds_rung=rung.seconds,
            threads=self.policy.count,
            seed=cell.seed,
            machine=machine.machine_id(),
            versions=machine.versions(),
            source=source_hash(case, contender),
            **columns,
        )
        store.FIT.append(self.file, row)
        return row

    def _key(self, case: Case, contender: Contender, *more: Any) -> str:
        policy = {"seconds": self.policy.seconds, "threads": self.policy.count}
        parts = [asdict(case), contender.name, policy, source_hash(case, contender), stack(*LIBRARIES), *more]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]

    def _tell(self, what: str) -> None:
        self.told(what, min(self.over / max(self.total, 1), 1.0))  # rounds may be added
        self.over += 1


@functools.cache
def _source(contender: str, dataset: str, model: str) -> str:
    roots = {"workbench.bench.fit.child", "workbench.measure.serve", origin(get(contender))}
    roots |= closure.registered("data set", [dataset]) | closure.registered("model", [model])
    if get(contender).side == "ours":
        roots |= sources.roots_of(Cell(dataset=dataset, model=model, gradient="fused"))
    return closure.own().digest(roots)


def source_hash(case: Case, contender: Contender) -> str:
    """Hash of the code that makes the data and trains."""
    return _source(contender.name, case.cell.dataset, case.model)

"""Rounds of a comparison that are measured by processes which live side by side and compute in turns.

The processes of the candidates are started one after the other, each does all that comes before its first sample, and
then they take turns (`workbench.measure.child`). One set of processes measures several rounds; the deviation that these
share, above all that of where their arrays lie in memory, shows in the next set alone.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

from workbench.measure import child as measure_child
from workbench.measure.child import Ended, Living
from workbench.sweeps.budget import TrialClock
from workbench.sweeps.schedule import Task, place_of

if TYPE_CHECKING:
    from workbench.sweeps.runner import Supervisor

ROUNDS_A_SET = 3
"""Rounds that one set of processes measures.

Measured on two cores of a shared host: of the standard deviation of a log ratio between fresh processes, 0.28, about
0.11 is the processes' own, the rest is time. A set of two costs about a second to start and 0.4 s a round.
"""
TURN = {"seconds": measure_child.SECONDS_TURN, "seconds_settle": measure_child.SECONDS_SETTLE}
RECORD = {"record": True}


class _NoRoomError(Exception):
    """The candidates do not fit in memory together."""


@final
class _Candidate:
    """Process of a candidate that lives over some rounds; its clock stands still while others compute."""

    def __init__(self, supervisor: "Supervisor", task: Task) -> None:
        """Prepare the candidate of `task` with a new clock; its process is started by `start`."""
        self.supervisor, self.task = supervisor, task
        self.clock = TrialClock(supervisor.budget.seconds_trial, supervisor.budget.end)
        self.living: Living | None = None
        self.bytes = 0
        """Predicted bytes of its arrays."""

    def start(self, bytes_beside: int) -> None:
        """Start its process and run it up to its first turn; `bytes_beside` are the bytes of the other candidates.

        Raises Ended if it ends before that, _NoRoomError if its arrays do not fit next to the others.
        """
        child = self.supervisor.start(self.task, self.clock, in_turns=True, bytes_beside=bytes_beside)
        self.living = Living(child, lambda: self.supervisor.why_end(child, self.clock), self.supervisor.beat)
        self.bytes = self._final(self.living.next())["bytes"]
        self.clock.rest()

    def begin(self, task: Task) -> None:
        """Take over `task`, the next round of the same configuration, in the living process.

        Restart the clock, paused.
        """
        self.task = task
        self.clock.begin()
        self.clock.rest()

    def do(self, order: dict[str, Any]) -> dict[str, Any]:
        """Send an order to the process and return its final answer; the clock runs meanwhile.

        Raises Ended if the process ends or sends the record of a failed trial.
        """
        assert self.living is not None, "it was started"
        self.clock.resume()
        answer = self._final(self.living.do(order))
        self.clock.rest()
        return answer

    def _final(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return `answer`, or the first following message of the process that is no interim message.

        Interim messages are applied to clock and progress. Raises Ended or _NoRoomError as `_checked` does.
        """
        assert self.living is not None, "it was started"
        while self.supervisor.is_interim(answer, self.clock):
            answer = self.living.next()
        return self._checked(answer)

    @staticmethod
    def _checked(answer: dict[str, Any]) -> dict[str, Any]:
        """Return a process's answer; raise _NoRoomError for "no_room", Ended for the record of a trial that ended."""
        if "no_room" in answer:
            raise _NoRoomError
        if "status" in answer:  # the row of a trial that cannot go on
            raise Ended(answer)
        return answer

    def end(self) -> None:
        """Kill the process of the candidate, if one was started."""
        if self.living is not None:
            self.living.child.end()


@final
class AlternatingRounds:
    """Measures rounds in turns; `close` ends the processes that live."""

    def __init__(self, supervisor: "Supervisor") -> None:
        """Start without processes; they are started by the first `measure`."""
        self.supervisor = supervisor
        self.living: dict[str, _Candidate] = {}
        self.first = self.last = 0
        """Rounds that the processes were started in, and that they measured last."""
        self.apart: set[tuple] = set()
        """Comparisons whose candidates do not fit in memory together."""

    def suits(self, tasks: Sequence[Task]) -> bool:
        """Return whether the trials of a round can be measured in turns by processes that are alive together.

        That takes two to `measure_child.MOST` candidates of single-trainer CPU steps without epochs that fit in memory
        together. Not in the first round of a race, where a candidate that starts slowly would take the others' time.
        """
        configurations = [task.configuration for task in tasks]
        if self.supervisor.spec.measure.race and not tasks[0].round:
            return False
        are_few = 2 <= len(tasks) <= measure_child.MOST and place_of(configurations[0]) not in self.apart
        are_steps = all(
            configuration.device == "cpu" and configuration.trainers == 1 and not configuration.epochs
            for configuration in configurations
        )
        return measure_child.can_alternate() and are_few and are_steps

    @property
    def has_rounds_left(self) -> bool:
        """Whether processes are alive and have measured fewer than ROUNDS_A_SET rounds."""
        return bool(self.living) and self.last + 1 < self.first + ROUNDS_A_SET

    def measure(self, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        """Return the records of a round in the order of its tasks; [] if the candidates do not fit in memory together.

        Starts processes that are missing and ends those of other comparisons. A failed candidate has a record that says
        so.
        """
        self.supervisor.tell_of(tasks)
        self._keep(tasks)
        rows: dict[str, dict[str, Any]] = {}
        try:
            for task in tasks:
                self._have(task, rows)
            self.supervisor.enter("measuring")
            measure_child.alternate_turns(list(self.living), lambda key: self._is_through(key, rows))
            for key in list(self.living):
                self._record(key, rows)
        except _NoRoomError:
            self.apart.add(place_of(tasks[0].configuration))
            self.close()
            return []
        return [rows[task.key] for task in tasks]

    def close(self) -> None:
        """End the processes of all candidates and forget them."""
        for key in list(self.living):
            self.living.pop(key).end()

    def _keep(self, tasks: Sequence[Task]) -> None:
        """Keep living processes if they cover all `tasks` and have rounds left; end the others.

        Sets `last` to the round, and `first` too if all were ended.
        """
        keys, self.last = {task.key for task in tasks}, tasks[0].round
        if not (keys <= self.living.keys() and self.last < self.first + ROUNDS_A_SET):
            self.close()
            self.first = self.last
        for key in self.living.keys() - keys:
            self.living.pop(key).end()

    def _have(self, task: Task, rows: dict[str, dict[str, Any]]) -> None:
        """Ensure that the task's process lives, starting it if needed; if it ends, its record is put into `rows`."""
        if task.key in self.living:
            self.living[task.key].begin(task)
            return
        bytes_beside = sum(candidate.bytes for candidate in self.living.values())
        candidate = self.living[task.key] = _Candidate(self.supervisor, task)
        try:
            candidate.start(bytes_beside)
        except Ended as ended:
            self._bury(task.key, ended, rows)

    def _is_through(self, key: str, rows: dict[str, dict[str, Any]]) -> bool:
        """Give the candidate `key` a turn; return whether it needs no more (enough samples, or ended).

        The record of a trial that ended is put into `rows`.
        """
        if key not in self.living:
            return True
        try:
            return bool(self.living[key].do(TURN)["is_enough"])
        except Ended as ended:
            self._bury(key, ended, rows)
            return True

    def _record(self, key: str, rows: dict[str, dict[str, Any]]) -> None:
        """Put the record of a living candidate's round into `rows` (by key), also if its process ends instead."""
        try:
            rows[key] = self._completed(self.living[key], self.living[key].do(RECORD)["row"])
        except Ended as ended:
            self._bury(key, ended, rows)

    def _bury(self, key: str, ended: Ended, rows: dict[str, dict[str, Any]]) -> None:
        """Remove a candidate whose process has ended, and put its record into `rows`.

        Raises _NoRoomError instead if it ended for lack of memory that the other candidates may have taken.
        """
        if ended.row["status"] == "memory" and len(self.living) > 1 and not _is_too_large(ended.row):
            raise _NoRoomError  # it may have lacked what the others hold
        candidate = self.living.pop(key)
        candidate.end()
        rows[key] = self._completed(candidate, ended.row)

    def _completed(self, candidate: _Candidate, row: dict[str, Any]) -> dict[str, Any]:
        """Return the full record of a candidate's round from `row`, the columns of its process."""
        return self.supervisor.completed(candidate.task, row, candidate.clock, self.first)


def _is_too_large(row: dict[str, Any]) -> bool:
    """Return whether a record that ended for memory needed more bytes than its own limit, other candidates apart."""
    bytes_taken = row.get("bytes_needed") or row.get("bytes_peak") or 0
    return bytes_taken > row.get("bytes_limit", math.inf)

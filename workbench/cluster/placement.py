"""Placement of the comparisons of a sweep: which machine measures which.

All candidates of a comparison and all its rounds are measured by one worker, so that no ratio crosses machines, and
all comparisons of a group, such as its densities, on machines of one id, which identifies hardware: so that a
break-even is that of one machine, and nodes that are alike share a group. A worker takes comparisons in turns, a few
at a time, so that rounds of one are apart in time. The comparisons of a lost worker are free: a machine of the same id
continues with the next round, another one begins anew. The first comparison is common: machines of every id measure
it, and its records show how they differ.
"""

from collections.abc import Iterable, Mapping
from typing import Any, final

from workbench import settings
from workbench.sweeps import grid
from workbench.sweeps.problem import Contents
from workbench.sweeps.schedule import Comparison, ComparisonState, Schedule, Task, comparisons
from workbench.sweeps.spec import Configuration, Spec

COMPARISONS_AT_ONCE = 4
"""Comparisons that a worker takes turns with."""

Record = Mapping[str, Any]


@final
class Placement:
    """The comparisons of a spec, the rows that there are of them, and the workers that measure them."""

    def __init__(self, spec: Spec, stored: Iterable[Record], contents: Contents | None = None) -> None:
        """Make the comparisons of `spec`, and take the records `stored` of them; no worker has joined yet.

        `contents` reads the data files for the keys, by default anew.
        """
        self.spec, configurations = spec, grid.expand_grid(spec)
        self.contents = contents or Contents()
        self.dropped = configurations.dropped
        self.comparisons: list[Comparison] = []
        self.place: dict[str, int] = {}
        """Of the comparison of each key."""
        self.groups: list[tuple] = []
        self.rows: dict[tuple[int, str], list[Record]] = {}
        self.over: set[int] = set()
        self.ended: dict[int, ComparisonState] = {}
        """The comparisons that came to their end in this run, as they did: a disturbed round counts as one."""
        self.common: set[str] = set()
        """The machines that have done with the common comparison."""
        self.machine_of_group: dict[tuple, str] = {}
        """The machine that measures a group; it is free when no worker is there any more."""
        self.machines: dict[str, str] = {}
        """The machine of each worker that is there."""
        self.in_progress: dict[str, dict[int, ComparisonState]] = {}
        """The comparisons that each worker has, by place, the one whose turn is next first."""
        self.extend(configurations.configurations, stored)

    def extend(self, configurations: Iterable[Configuration], stored: Iterable[Record]) -> None:
        """Add the comparisons of `configurations` with their records among `stored`.

        Updates `over` and owners of groups.
        """
        first = len(self.comparisons)
        self.comparisons += comparisons(configurations, self.contents)
        places = range(first, len(self.comparisons))
        own = {key: place for place in places for key in self.comparisons[place].configurations}
        self.place |= own
        self.groups += [_group(self.comparisons[place]) for place in places]
        for row in stored:
            if row["key"] in own:
                self._store(row)
        for place, machine in sorted(self.rows, key=lambda key: -len(self.rows[key])):
            if place:  # the common one tells nothing
                self.machine_of_group.setdefault(self.groups[place], machine)
        self.over |= {place for place in places if self._is_over(place)}
        self.common |= {machine for place, machine in self.rows if not place and self._is_done(0, machine)}

    def _store(self, row: Record) -> None:
        """Add a record to those of its comparison and machine; records of other keys are ignored."""
        if (place := self.place.get(row["key"])) is not None:
            self.rows.setdefault((place, row["machine"]), []).append(row)

    def _course(self, place: int, machine: str) -> ComparisonState:
        """Return a new state of the comparison `place` on a machine, resumed from its records there."""
        course = ComparisonState(self.comparisons[place], self.spec.measure.rounds, self.spec.measure.race)
        course.resume(self.rows.get((place, machine), ()))
        return course

    def _best(self, place: int) -> tuple[int, str]:
        """Return (place, id of the machine that has most records of this comparison, "" if none has)."""
        machines = [machine for one, machine in self.rows if one == place]
        return place, max(machines, key=lambda machine: len(self.rows[place, machine]), default="")

    def _is_over(self, place: int) -> bool:
        """Return whether some machine has completed the comparison at index `place`."""
        return any(self._is_done(place, machine) for one, machine in self.rows if one == place)

    def _is_done(self, place: int, machine: str) -> bool:
        """Return whether this machine has completed the comparison at index `place`."""
        return not self._course(place, machine).due()

    # Workers

    def join(self, worker: str, machine: str) -> None:
        """Register a worker and the id of its machine; it has no comparisons yet."""
        self.machines[worker], self.in_progress[worker] = machine, {}

    def leave(self, worker: str) -> None:
        """Remove a worker; its comparisons are free for others. No error for an unknown one."""
        self.machines.pop(worker, None)
        self.in_progress.pop(worker, None)

    def next(self, worker: str) -> list[Task]:
        """Return the trials of the next round that the worker is to measure; [] if other workers have all that is left.

        Assigns comparisons to the worker as needed; it works on them in turns.
        """
        in_progress = self.in_progress[worker]
        self._let_go(worker)
        while len(in_progress) < self._share(worker) and (place := self._free(worker)) is not None:
            in_progress[place] = self._course(place, self.machines[worker])
            self._let_go(worker)
        if not in_progress:
            return []
        turn = next(iter(in_progress))
        in_progress[turn] = in_progress.pop(turn)  # the last in turn now
        return in_progress[turn].round()

    def _let_go(self, worker: str) -> None:
        """Release from the worker the comparisons that are over, and mark them in `over` and `ended`."""
        in_progress = self.in_progress[worker]
        for place in [place for place, course in in_progress.items() if not course.due()]:
            self.ended[place] = in_progress.pop(place)
            self.over.add(place)
            if not place:
                self.common.add(self.machines[worker])

    def add(self, worker: str, row: Record) -> None:
        """Add the record of a trial to the comparison that the worker has; KeyError if it has none such."""
        self._store(row)
        self.in_progress[worker][self.place[row["key"]]].add(row)

    def _share(self, worker: str) -> int:
        """Return how many comparisons the worker may have at once: an equal share on its machine, at most 4."""
        machine = self.machines[worker]
        own = [one for one in self._open_comparisons() if self._assigned_machine(one) in ("", machine)]
        return max(1, min(COMPARISONS_AT_ONCE, -(-len(own) // list(self.machines.values()).count(machine))))

    def _open_comparisons(self) -> list[int]:
        """Return the indices of the comparisons that are not over, in order."""
        return [place for place in range(len(self.comparisons)) if place not in self.over]

    def waiting(self) -> list[int]:
        """Return the indices of the comparisons that are not over and that no worker has."""
        taken = {place for own in self.in_progress.values() for place in own}
        return [place for place in self._open_comparisons() if place not in taken]

    def _free(self, worker: str) -> int | None:
        """Return the index of the next comparison for the worker, None if there is none; marks its group's machine.

        First the reference workload of all machines, then its machine's groups, then any free one.
        """
        machine = self.machines[worker]
        if self._lacks_common(machine):
            return 0
        able = [place for place in self.waiting() if self._may_have(machine, place)]
        found = max(able, key=lambda place: (self._assigned_machine(place) == machine, -place), default=None)
        if found is not None:
            self.machine_of_group[self.groups[found]] = machine
        return found

    def _assigned_machine(self, place: int) -> str:
        """Return the id of the machine that measures the comparison's group, "" if none of the connected does."""
        machine = self.machine_of_group.get(self.groups[place], "")
        return machine if machine in self.machines.values() else ""

    def _may_have(self, machine: str, place: int) -> bool:
        """Return whether a machine may measure the comparison: it has the group, or less than its share of groups."""
        assigned = self._assigned_machine(place)
        left = {self.groups[one]: self._assigned_machine(one) for one in self._open_comparisons()}
        share = -(-len(left) // len(set(self.machines.values())))
        return assigned == machine or (not assigned and list(left.values()).count(machine) < share)

    def _lacks_common(self, machine: str) -> bool:
        """Return whether no worker of a machine has measured, or is measuring, the comparison of index 0.

        That one is measured on every machine, to show how they differ.
        """
        at_work = any(0 in own and self.machines[other] == machine for other, own in self.in_progress.items())
        return bool(self.comparisons) and not at_work and machine not in self.common

    # How far it is

    @property
    def is_over(self) -> bool:
        """Whether every comparison is over on some machine and no worker has one, so that none is needed any more."""
        return len(self.over) == len(self.comparisons) and not any(self.in_progress.values())

    def schedule(self) -> Schedule:
        """Return all comparisons, each in its state on the machine that has it (or has most records), for counting."""
        at_work = self.ended | {place: course for own in self.in_progress.values() for place, course in own.items()}
        places = range(len(self.comparisons))
        courses = [at_work.get(place) or self._course(*self._best(place)) for place in places]
        return Schedule(courses, dropped=self.dropped)


def _group(comparison: Comparison) -> tuple:
    """Return the tuple of settings that all configurations of a group share, such as all densities of a data set."""
    configuration = next(iter(comparison.configurations.values()))
    return tuple(getattr(configuration, name) for name in settings.names(role="group"))

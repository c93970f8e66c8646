"""Placement of comparisons: each is one machine's, a group's machines are alike, and the first is everyone's."""

from tests.support.tiny_sweeps import QUICK, spec_of
from workbench.cluster.placement import Placement

DENSITIES, BATCHES = [0.05, 0.1], [10, 20, 30]
SPEC = spec_of(density=DENSITIES, batch_rows=BATCHES, measure={**QUICK, "rounds": 2})
"""Three groups, each of two comparisons."""


def test_machines_that_differ_share_the_groups():
    placement, machines = Placement(SPEC, []), {"one": "a", "two": "b"}
    for name, machine in machines.items():
        placement.join(name, machine)
    done: dict[int, set[str]] = {batch: set() for batch in BATCHES}
    for _ in range(20):
        for name, machine in machines.items():
            for task in placement.next(name):
                known = {"key": task.key, "round": task.round, "run": machine, "machine": machine, "status": "ok"}
                placement.add(name, {**known, "seconds_step": 1.0})
                if placement.place[task.key]:  # all but the common one
                    done[task.configuration.batch_rows].add(machine)
    assert placement.is_over
    assert sorted(map(sorted, done.values())) in ([["a"], ["a"], ["b"]], [["a"], ["b"], ["b"]])


def test_a_worker_takes_turns_with_a_few_comparisons_and_leaves_others_theirs():
    placement = Placement(spec_of(density=[0.05, 0.1, 0.2, 0.3, 0.5], measure={**QUICK, "rounds": 2}), [])
    placement.join("one", "a")
    placement.join("two", "a")
    taken = []
    for name in ("one", "two"):
        turns = [{task.configuration.density for task in placement.next(name)} for _ in range(3)]
        assert all(len(densities) == 1 for densities in turns)
        taken.append(set().union(*turns))
    assert not taken[0] & taken[1]
    assert sorted(map(len, taken)) == [2, 3]

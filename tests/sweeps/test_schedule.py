"""The schedule: what is compared, in which order, when it is over, and what a resume adds."""

import pytest

from tests.support.tiny_sweeps import DENSE, spec_of
from workbench.sweeps.schedule import ComparisonState, Schedule, comparisons

MEASURE = {"trial_seconds": 0.0}
VENDOR = {"engine": "vendor", "gradient": "dense", "update": "standard"}


def schedule_of(rows=(), candidates=({}, DENSE), rounds=12, race=False, **axes) -> Schedule:
    measure = {**MEASURE, "rounds": rounds, "race": race}
    return Schedule.of(spec_of(candidates=candidates, measure=measure, **axes), rows)


def row_of(task, seconds=1.0, status="ok", run="run") -> dict:
    return {"key": task.key, "round": task.round, "run": run, "status": status, "seconds_step": seconds}


def measured(
    schedule, seconds=lambda task: 3.0 if task.configuration.format == "dense" else 1.0, rounds=10**6, status=None
):
    """The rows of a schedule that is worked through, at most so many rounds of it."""
    rows = []
    for number, tasks in enumerate(schedule.rounds()):
        if number == rounds:
            break
        for task in tasks:
            rows.append(row_of(task, seconds(task), status(task) if status else "ok"))
            schedule.add(rows[-1])
    return rows


def unclear(task) -> float:
    """Ratios around 1 that vary from round to round."""
    return 1.0 + (task.configuration.format == "dense") * (0.5 if task.round % 2 else -0.3)


def test_a_comparison_is_the_configurations_alike_but_for_the_candidate():
    states = schedule_of(density=[0.1, 0.2], width=[2, 3], seed=[0, 1]).comparisons
    configurations = [task.configuration for course in states for task in course.round()]
    found = comparisons(configurations)
    assert len(found) == 4
    for comparison in found:
        assert len(comparison.configurations) == 4
        assert (
            len({(configuration.density, configuration.width) for configuration in comparison.configurations.values()})
            == 1
        )
        assert {comparison.configurations[key].format for key in comparison.baselines} == {"dense"}


def test_candidates_of_a_comparison_come_next_to_each_other_and_rounds_of_one_are_apart():
    rounds = []
    schedule = schedule_of(density=[0.1, 0.2, 0.3], candidates=({}, VENDOR, DENSE), rounds=4)
    for tasks in schedule.rounds():
        rounds.append(tasks)
        for task in tasks:
            schedule.add(row_of(task, unclear(task)))
    assert all(len({task.configuration.density for task in tasks}) == 1 and len(tasks) == 3 for tasks in rounds)
    assert [tasks[0].round for tasks in rounds] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    of_one = [[task.key for task in tasks] for tasks in rounds if tasks[0].configuration.density == 0.1]
    assert of_one[1] == of_one[0][::-1]
    assert len({keys[0] for keys in of_one}) == 3


def test_a_clear_comparison_is_over_soon_and_an_unclear_one_after_all_rounds():
    clear = {"csr": 1.0, "dense": 3.0}
    rows = measured(
        schedule_of(density=[0.1, 0.2]),
        lambda task: unclear(task) if task.configuration.density == 0.2 else clear[task.configuration.format],
    )
    by_density = {}
    schedule = schedule_of(density=[0.1, 0.2])
    densities = {
        key: configuration.density
        for course in schedule.comparisons
        for key, configuration in course.comparison.configurations.items()
    }
    for row in rows:
        by_density.setdefault(densities[row["key"]], set()).add(row["round"])
    assert len(by_density[0.1]) < 12
    assert by_density[0.2] == set(range(12))


def test_level_candidates_are_told_so_before_all_rounds():
    assert len(measured(schedule_of(), lambda task: 1.0)) < 24


def test_noise_that_others_of_the_sweep_show_ends_a_quiet_comparison_sooner():
    alone = len(measured(schedule_of(density=[0.1]), lambda task: 1.0))
    among = len(measured(schedule_of(density=[0.1, 0.2, 0.3, 0.4]), lambda task: 1.0))
    assert among < 4 * alone


def test_fewer_rounds_are_measured_where_fewer_are_asked_for():
    assert len(measured(schedule_of(rounds=2))) == 4


def test_a_comparison_waits_for_the_next_start_after_four_disturbed_rounds_in_a_row():
    rows = measured(schedule_of(), status=lambda task: "disturbed")
    assert len(rows) == 8
    assert schedule_of(rows).trials_due() == 2

    def seconds(task):
        return 1.0 + (task.configuration.format == "dense") * (0.5 if task.round % 4 < 2 else -0.3)

    rows = measured(schedule_of(), seconds, status=lambda task: "disturbed" if task.round % 2 else "ok")
    assert max(row["round"] for row in rows) > 4


def test_disturbed_rounds_count():
    course = ComparisonState(schedule_of().comparisons[0].comparison)
    for task in course.round():
        course.add(row_of(task, 100.0 if task.configuration.format == "dense" else 1.0, "disturbed"))
    assert (course.decision().verdict, course.decision().ratio.disturbed) == ("sparse", 1)


@pytest.mark.parametrize("status", ["memory", "unsupported", "wrong", "timeout", "failed"])
def test_a_candidate_without_a_result_is_measured_once_and_the_others_go_on(status):
    rows = measured(schedule_of(), status=lambda task: status if task.configuration.format == "dense" else "ok")
    assert [row["status"] for row in rows].count(status) == 1
    assert [row["status"] for row in rows].count("ok") == 4


def test_a_comparison_without_any_result_is_over_at_once():
    assert len(measured(schedule_of(), status=lambda task: "unsupported")) == 2


def test_a_sweep_without_a_baseline_has_four_rounds():
    assert len(measured(schedule_of(candidates=({}, VENDOR)))) == 8


def test_a_decided_run_has_nothing_to_do_when_resumed():
    rows = measured(schedule_of(density=[0.1, 0.2]))
    again = schedule_of(rows, density=[0.1, 0.2])
    assert (again.reused, again.trials_due(), list(again.rounds())) == (len(rows), 0, [])


def test_a_resume_measures_a_cut_round_anew_with_the_next_number():
    rows = measured(schedule_of(), rounds=2)
    cut = schedule_of(rows)
    (first, *_), *_ = [next(cut.rounds())]
    again = schedule_of([*rows, row_of(first)])
    assert (again.reused, again.comparisons[0].next_round) == (4, 3)
    rest = measured(again)
    assert [row["round"] for row in rest[:2]] == [3, 3]


def test_a_disturbed_round_counts_when_resumed():
    rows = measured(schedule_of(), status=lambda task: "disturbed" if task.round == 1 else "ok", rounds=3)
    again = schedule_of(rows)
    assert (again.reused, again.comparisons[0].measured) == (6, 3)


@pytest.mark.parametrize("status", ["timeout", "failed"])
def test_what_was_lost_is_tried_again_when_resumed_and_given_up_if_it_is_lost_again(status):
    lost = lambda task: status if task.configuration.format == "dense" else "ok"  # noqa: E731
    rows = measured(schedule_of(), status=lost)
    again = measured(schedule_of(rows), status=lost)
    assert sorted(row["status"] for row in again) == sorted([status, "ok"])
    resumed = measured(schedule_of(rows))
    assert [row["status"] for row in resumed].count("ok") == len(resumed) >= 6


def test_what_cannot_be_helped_is_not_tried_again():
    rows = measured(schedule_of(), status=lambda task: "memory" if task.configuration.format == "dense" else "ok")
    again = schedule_of(rows)
    assert (again.reused, again.trials_due()) == (5, 0)


def test_a_stopped_trial_is_no_result():
    schedule = schedule_of()
    tasks = next(schedule.rounds())
    again = schedule_of([row_of(tasks[0]), row_of(tasks[1], None, "stopped")])
    assert (again.reused, again.comparisons[0].next_round, again.trials_due()) == (0, 1, 4)


def test_a_candidate_added_is_measured_next_to_all_others():
    rows = measured(schedule_of())
    more = schedule_of(rows, candidates=({}, VENDOR, DENSE))
    assert (more.reused, more.trials_due()) == (0, 6)
    assert {row["round"] for row in measured(more)} >= {max(row["round"] for row in rows) + 1}


def test_rounds_of_two_starts_of_a_run_are_one_run_and_those_of_two_runs_are_not_mixed():
    course = ComparisonState(schedule_of().comparisons[0].comparison)
    tasks = course.round()
    course.add(row_of(tasks[0], run="one"))
    course.add(row_of(tasks[1], run="other"))
    assert course.decision().ratio is None


def test_trials_due_and_most():
    schedule = schedule_of(density=[0.1, 0.2])
    assert (schedule.trials_due(), schedule.trials_most()) == (8, 48)
    assert len(schedule.keys) == 4


COO = {"format": "coo"}
RACERS = ({}, VENDOR, COO, DENSE)


def racing(speeds):
    """Seconds of a task by engine and format, as a quiet machine has them."""
    return lambda task: speeds[
        task.configuration.engine if task.configuration.engine == "vendor" else task.configuration.format
    ]


def rounds_of(rows) -> dict:
    counted = {}
    for row in rows:
        counted[row["key"]] = counted.get(row["key"], 0) + 1
    return counted


def test_who_is_far_behind_in_a_race_has_one_round_and_the_best_of_each_side_go_on():
    schedule = schedule_of(candidates=RACERS, race=True)
    csr, vendor, coo, dense = schedule.keys
    came = rounds_of(measured(schedule, racing({"csr": 1.0, "coo": 1.1, "vendor": 5.0, "dense": 30.0})))
    assert came[vendor] == 1
    assert came[csr] >= came[coo] > 1
    assert 1 < came[dense] <= came[csr], "it stays until the ratio is known"


def test_a_race_whose_other_candidates_are_all_far_behind_is_about_both_sides_at_once():
    schedule = schedule_of(candidates=RACERS, race=True)
    keys = list(schedule.keys)
    came = rounds_of(measured(schedule, racing({"csr": 1.0, "coo": 9.0, "vendor": 5.0, "dense": 30.0})))
    assert [came[key] for key in keys][1:3] == [1, 1]
    assert came[keys[0]] == came[keys[3]] > 1


def test_a_race_goes_on_with_those_that_may_be_fastest_when_the_ratio_is_known():
    noisy = racing({"csr": 1.0, "coo": 1.0, "vendor": 5.0, "dense": 30.0})

    def wavering(task):
        return noisy(task) * (1.2 if (task.configuration.format == "coo") == bool(task.round % 2) else 1.0)

    schedule = schedule_of(candidates=RACERS, race=True)
    keys = list(schedule.keys)
    came = rounds_of(measured(schedule, wavering))
    assert (came[keys[0]], came[keys[1]], came[keys[2]]) == (12, 1, 12)
    assert 1 < came[keys[3]] < 12


def test_a_race_that_was_cut_goes_on_with_those_that_are_still_in_it():
    speeds = racing({"csr": 1.0, "coo": 1.1, "vendor": 5.0, "dense": 30.0})
    rows = measured(schedule_of(candidates=RACERS, race=True), speeds, rounds=2)
    again = schedule_of(rows, candidates=RACERS, race=True)
    assert (again.reused, again.comparisons[0].measured) == (len(rows), 2)
    rest = measured(again, speeds)
    others = {again.keys[0], again.keys[2], *again.comparisons[0].comparison.baselines}
    assert {row["key"] for row in rest} == others, "dense until its ratio is known, too; the slow one no more"
    assert {row["round"] for row in rest} >= {2}


def test_a_race_in_which_dense_does_not_fit_is_over_when_the_fastest_is_known():
    schedule = schedule_of(candidates=({}, DENSE), race=True)
    rows = measured(schedule, status=lambda task: "memory" if task.configuration.format == "dense" else "ok")
    assert sorted(rounds_of(rows).values()) == [1, 1]


def test_a_candidate_that_other_programs_disturbed_is_measured_again_before_the_race_goes_on_without_it():
    schedule = schedule_of(candidates=RACERS, race=True)
    speeds = racing({"csr": 1.0, "coo": 9.0, "vendor": 5.0, "dense": 30.0})
    is_busy = lambda task: task.configuration.format == "coo" and task.round == 0  # noqa: E731
    came = rounds_of(measured(schedule, speeds, status=lambda task: "disturbed" if is_busy(task) else "ok"))
    assert came[schedule.keys[2]] == 2


def test_later_rounds_of_a_race_begin_with_the_two_in_front_in_turns():
    schedule = schedule_of(candidates=({}, VENDOR, COO, {"format": "csc"}), race=True)
    speeds = racing({"csr": 1.04, "coo": 1.0, "vendor": 1.06, "csc": 1.02})
    first, *later = [[speeds(task) for task in tasks] for tasks in rounds_in(schedule, speeds, 4)]
    assert first == [1.04, 1.06, 1.0, 1.02]
    assert [tasks[:2] for tasks in later] == [[1.02, 1.0], [1.02, 1.0], [1.0, 1.02]]
    assert all(tasks[2:] == sorted(tasks[2:]) for tasks in later)


def rounds_in(schedule, seconds, count) -> list:
    """The tasks of so many rounds of a schedule."""
    found = []
    for tasks in schedule.rounds():
        if len(found) == count:
            return found
        found.append(tasks)
        for task in tasks:
            schedule.add(row_of(task, seconds(task)))
    return found


def test_what_trains_another_model_sets_no_pace_and_is_measured_once():
    lazy = {"gradient": "row_sparse", "update": "lazy"}
    candidates = ({**lazy, "update": "exact"}, lazy, DENSE)
    schedule = schedule_of(candidates=candidates, race=True, optimizer="adam")
    speeds = {"exact": 3.0, "lazy": 0.1, "standard": 3.1}
    rows = measured(schedule, lambda task: speeds[task.configuration.update])
    came = rounds_of(rows)
    lazies = [key for key, configuration in schedule.configurations.items() if configuration.update == "lazy"]
    assert [came[key] for key in lazies] == [1]
    assert all(count >= 4 for key, count in came.items() if key not in lazies)

"""From rows to configurations: rounds of one run, same code, disturbed ones without time; which make a group."""

import numpy as np
import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import breakeven, configurations, groups, interval_of, pool, pool_rounds
from workbench.analysis.breakeven import breakevens_of_group
from workbench.analysis.compare import contests, contests_of_group
from workbench.analysis.intervals import ONCE, measured_interval_of
from workbench.measure.rounds import mean_interval

DENSE, SPARSE = maker.DENSE, maker.SPARSE


def one_cell(**known):
    return maker.sweep((SPARSE,), (0.01,), **known)


def pooled(rows):
    (row,) = configurations.records(pool_rounds(store.frame(rows)))
    return row


def only(found):
    (one,) = found
    return one


def test_rounds_of_a_configuration_are_pooled_by_round():
    frame = pool_rounds(store.frame(maker.sweep(rounds=6)))
    assert len(frame) == 2 * len(maker.DENSITIES)
    assert set(frame["rounds"]) == {6}
    rows = one_cell(rounds=6)
    row, seconds = pooled(rows), [row["seconds_step"] for row in rows]
    mean = mean_interval(seconds)
    assert (row["seconds_step"], row["seconds_step_low"], row["seconds_step_high"]) == tuple(mean)[:3]
    assert interval_of(row, "seconds_step")[:3] == pytest.approx(tuple(mean)[:3]), "alone, the estimate is as measured"
    assert row["round_values"]["seconds_step"] == {("r1", k): value for k, value in enumerate(seconds)}
    assert row["bytes_peak"] == int(np.median([row["bytes_peak"] for row in rows]))
    assert pool_rounds(frame) is frame


def test_rows_of_a_pooled_frame_are_read_once_and_are_those_of_whoever_asks(monkeypatch):
    frame = pool_rounds(store.frame(maker.sweep(rounds=2)))
    first = configurations.records(frame)
    monkeypatch.setattr(pool, "_python_values", lambda column: pytest.fail("read again"))
    second = configurations.records(frame)
    assert first == second
    first[0]["format"] = "changed"
    assert configurations.records(frame) == second
    with pytest.raises(pytest.fail.Exception):
        configurations.records(frame.copy())


def test_what_follows_from_a_group_is_computed_once_for_all_that_show_it():
    frame = pool_rounds(store.frame(maker.sweep((maker.DENSE, maker.SPARSE), rounds=2)))
    (group,), (again,), (other,) = map(configurations.groups, (frame, frame, frame.copy()))
    assert again is group
    assert other is not group
    for measure in ("seconds_step", "bytes_peak"):
        found = contests_of_group(group, measure)
        assert contests_of_group(group, measure) is found
        assert list(found) == contests(group.rows, measure)
        assert contests_of_group(other, measure) is not found
        assert breakevens_of_group(group, measure) is breakevens_of_group(group, measure)
        assert [even.measure for even in breakevens_of_group(group, measure)] == [measure]


def test_seconds_are_those_of_one_run_and_never_a_mixture():
    early = one_cell(rounds=4)
    late = one_cell(rounds=4, run="r2", time="2026-01-03T00:00:00Z")
    slow = [row | {"seconds_step": 5 * row["seconds_step"]} for row in late]
    row = pooled(early + slow)
    assert row["run"] == "r2", "of runs with as many rounds the newest"
    assert row["seconds_step"] == mean_interval([one["seconds_step"] for one in slow]).value
    assert row["rounds"] == 8
    assert pooled(one_cell(rounds=6) + slow)["run"] == "r1", "more rounds say more"


def test_candidates_of_a_comparison_show_seconds_of_the_same_run():
    first = maker.sweep(densities=(0.01,), rounds=4)
    second = maker.sweep(densities=(0.01,), rounds=6, run="r2", seed=1)
    lost = [row for row in second if row["format"] != "csr" or row["round"] < 3]
    frame = pool_rounds(store.frame(first + lost))
    assert set(frame["run"]) == {"r2"}


def test_a_later_success_supersedes_failures_and_they_are_counted():
    good = one_cell(rounds=1)[0]
    bad = maker.failed(good, "timeout", "no result after 60 s")
    for rows in ([bad, good], [good, bad]):
        row = pooled(rows)
        assert (row["status"], row["rounds"], row["rounds_failed"]) == ("ok", 1, 1)
    row = pooled([bad, bad | {"status": "memory"}])
    assert (row["status"], row["rounds"]) == ("memory", 0)


def test_a_round_measured_twice_counts_once_and_rows_of_another_key_do_not():
    old, again, newer = (one_cell(rounds=1, seed=seed)[0] for seed in range(3))
    assert pooled([old, again])["seconds_step"] == pytest.approx(again["seconds_step"])
    row = pooled([old, newer | {"key": "of newer versions", "round": 1}])
    assert row["seconds_step"] == pytest.approx(newer["seconds_step"]), "the source is the same, the key is not"
    assert row["rounds"] == 1


def test_disturbed_rounds_take_no_part_in_time_and_do_in_memory():
    rows = one_cell(rounds=6)
    quiet = [maker.disturbed(row) if row["round"] < 2 else row for row in rows]
    row = pooled(quiet)
    assert (row["status"], row["rounds"], row["rounds_disturbed"]) == ("ok", 4, 2)
    assert row["seconds_step"] == mean_interval([row["seconds_step"] for row in rows[2:]]).value
    assert len(row["round_values"]["bytes_peak"]) == 6


def test_a_configuration_that_was_only_disturbed_has_memory_and_seconds_without_an_interval():
    rows = [maker.disturbed(row) for row in one_cell()]
    row = pooled(rows)
    assert (row["status"], row["rounds"], row["rounds_disturbed"]) == ("disturbed", 0, 4)
    assert row["seconds_step"] == pytest.approx(np.median([row["seconds_step"] for row in rows]))
    assert (row["seconds_step_low"], row["seconds_step_high"], row["samples"]) == (None, None, None)
    known = measured_interval_of(row, "seconds_step")
    assert (known.low, known.high, known.why) == (known.value, known.value, ONCE)
    assert interval_of(row, "bytes_peak").value == row["bytes_peak"]


@pytest.mark.parametrize(("share", "status"), [(0.3, "disturbed"), (0.05, "ok")])
def test_rows_of_schema_1_beside_other_programs_are_disturbed(share, status):
    row = pooled([row | {"schema": 1, "busy_others": share} for row in one_cell()])
    assert row["status"] == status
    assert ("30 % of the cores" in row["reason"]) == (status == "disturbed")
    tried = pooled([row | {"busy_others": share} for row in one_cell()])
    assert tried["status"] == "ok", "of schema 2 a row says itself whether it was disturbed"


def test_memory_is_known_to_a_mebibyte_two_per_cent_or_half_the_range_whichever_is_most():
    row = one_cell(rounds=1)[0]
    sizes = {(10e6, 10e6): 2**20, (1e9, 1e9): 2e7, (1e9, 1.2e9): 1e8}
    for peaks, half in sizes.items():
        rows = [row | {"bytes_peak": int(peak), "round": k} for k, peak in enumerate(peaks)]
        found = interval_of(pooled(rows), "bytes_peak")
        assert (found.high - found.low) / 2 == pytest.approx(max(half, 0.02 * found.value))
    once = interval_of(pooled([row]), "bytes_peak")
    assert (once.why, once.high - once.low) == ("", pytest.approx(2 * max(2**20, 0.02 * once.value)))


def test_the_model_that_was_trained_is_that_of_one_round():
    first, second = one_cell(rounds=2)
    assert pooled([first, second | {"loss_last": 0.5, "quality": 0.1}])["loss_last"] == 0.5


def test_configurations_of_different_machines_are_not_pooled_nor_compared():
    rows = maker.sweep((SPARSE,)) + maker.sweep((DENSE,), machine="bench-2")
    assert len(groups(store.frame(rows))) == 2
    assert {even.status for even in breakeven(store.frame(rows))} == {"no_baseline"}


def test_densities_with_fewer_rows_of_data_are_another_group():
    rows = [row | {"rows_trained": 85 if row["density"] > 0.05 else 7515} for row in maker.sweep()]
    found = groups(store.frame(rows))
    assert [group.label for group in found] == ["7,515 rows trained on", "85 rows trained on"]
    assert {row["density"] for row in found[1].rows} == {0.1, 0.3}


def test_settings_that_a_row_does_not_have_do_not_join_it_to_rows_that_have_them():
    rows = maker.sweep() + maker.sweep(kind="classes", run="r2")
    assert len(groups(store.frame(rows))) == 2


def test_dense_on_one_thread_is_in_the_group_of_dense_on_all():
    group = only(groups(store.frame(maker.sweep((DENSE, maker.SERIAL, SPARSE)))))
    assert len(configurations.dense_rows(group.rows)) == 2 * len(maker.DENSITIES)
    assert len(configurations.sparse_lines(group.rows)) == 1
    old = [row | {"serial": None} for row in maker.sweep()]
    assert {row["serial"] for row in only(groups(store.frame(old))).rows} == {False}


def test_groups_come_largest_first_with_labels_that_tell_them_apart():
    found = groups(store.frame(maker.rich()))
    assert [group.label for group in found] == ["width 16", "width 64"]
    assert len(found[0].rows) > len(found[1].rows)
    assert groups(store.frame()) == []
    both = maker.sweep(batch_rows=4096) + maker.sweep(batch_rows=4096, intercept=True)
    assert [group.label for group in groups(store.frame(both))] == ["without an intercept", "with an intercept"]
    assert ", 4,096 rows a batch, " in only(groups(store.frame(maker.sweep(batch_rows=4096)))).label


def lost(row):
    """The row of a configuration that failed before its data was read."""
    return maker.failed(row, "timeout", "no result after 60 s") | {"features": None, "rows_total": None}


def test_a_row_that_failed_before_its_data_was_read_joins_the_only_group_it_can_be_of():
    rows = [lost(row) if row["density"] == 0.01 and row["format"] == "csr" else row for row in maker.sweep()]
    assert len(only(groups(store.frame(rows))).rows) == 2 * len(maker.DENSITIES)
    other = maker.sweep(features=500, densities=(0.5,))
    assert len(groups(store.frame(rows + other))) == 2, "the density tells which"
    unclear = maker.sweep(features=500)
    assert len(groups(store.frame([*rows, *unclear]))) == 3, "it could be of either, so it is of none"


def test_a_row_with_a_result_never_joins_a_group_it_only_agrees_with():
    whole = maker.sweep()
    assert len(groups(store.frame(whole + [row | {"features": None} for row in maker.sweep(run="r2")]))) == 2

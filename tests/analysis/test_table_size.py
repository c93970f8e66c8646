"""Active rows against all rows of tables, where the law is known: one line over sizes, and who wins from where."""

from dataclasses import replace

import pytest

from tests.support import rows as maker
from tests.support.size_rows import laws, swept
from workbench import store
from workbench.analysis import table_size


def group(rows: list[dict]):
    (found,) = table_size.groups(store.frame(rows))
    return found


def test_rows_that_differ_in_the_size_make_one_group_and_others_do_not():
    one = group(swept(rounds=30))
    assert [len(line) for line in table_size.records_by_size(one)] == [3, 3]
    assert [row["gradient"] for row in table_size.records_by_size(one)[0]] == ["dense"] * 3
    other = store.frame([*swept(), *swept(reading="hashed={}, slope=2.0")])
    assert [each.label for each in table_size.groups(other)] == ["read with slope=1.5", "read with slope=2.0"]


def test_the_winner_changes_with_the_size():
    found = table_size.contests(group(swept(rounds=30)), "seconds_step")
    assert [(one.rows, one.contest.verdict) for one in found] == [
        (1_000, "dense"), (10_000, "level"), (100_000, "sparse")
    ]  # fmt: skip
    assert found[-1].contest.ratio.low < 10 < found[-1].contest.ratio.high
    title, sentence = table_size.headline(group(swept(rounds=30)), "seconds_step")
    assert title.startswith("Faster: all rows at 1,000 rows, equal at 10,000 rows, active rows at 100,000 rows")
    assert "times faster" in sentence


def test_memory_has_its_own_answer_and_both_are_told():
    time, memory = table_size.table_size_sentences(store.frame(swept()))
    assert "active rows at 100,000 rows" in time
    assert "active rows at 100,000 rows" in memory
    assert "times less memory" in memory


@pytest.mark.parametrize(("size", "won"), [(100_000, "active rows"), (1_000, "all rows")])
def test_a_single_size_is_answered_when_its_dense_gradient_was_measured(size, won):
    """Own ratings have one size: notebook 03 said that dense was not measured though both were."""
    time, memory = table_size.table_size_sentences(store.frame(swept(sizes=(size,), rounds=30)))
    assert time.startswith(f"Rows of a table, faster: {won} at {size:,} rows.")
    assert memory.startswith(f"Rows of a table, less memory: {won} at {size:,} rows.")


@pytest.mark.parametrize("kept", ["dense", "row_sparse"])
def test_a_single_size_with_one_side_is_left_to_the_verdict_on_formats(kept):
    rows = [row for row in swept(sizes=(1_000,)) if row["gradient"] == kept]
    assert table_size.table_size_sentences(store.frame(rows)) == []


def test_a_lazy_update_that_trained_a_worse_model_wins_nothing():
    def worse(size):
        whole, lazy = laws(size)
        return whole, replace(lazy, quality=0.8)

    found = table_size.contests(group(swept(laws_at=worse)), "seconds_step")
    assert {one.contest.verdict for one in found} == {"inconclusive"}


def test_where_all_rows_do_not_fit_touched_rows_win_by_running():
    rows = [
        maker.unfit(row) | {"features": row["features"]}
        if row["gradient"] == "dense" and row["features"] > 50_000
        else row
        for row in swept()
    ]
    found = {one.rows: one.contest for one in table_size.contests(group(rows), "seconds_step")}
    assert (found[100_000].verdict, found[100_000].ratio) == ("sparse", None)


@pytest.mark.parametrize("kept", ["dense", "row_sparse"])
def test_one_side_alone_is_no_answer(kept):
    rows = [row for row in swept() if row["gradient"] == kept]
    title, sentence = table_size.headline(group(rows), "seconds_step")
    assert title.startswith("No comparison of ")
    assert "There is no answer" in sentence

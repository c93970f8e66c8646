"""What stands beside a number to doubt it by, and nothing beside a good one."""

import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import answer_text, configurations, outliers


def told(change=lambda row: row, noise=0.01, **known):
    rows = map(change, maker.sweep((maker.SPARSE,), (0.01,), noise=noise, shared=0.0, **known))
    (row,) = configurations.records(configurations.pool_rounds(store.frame(rows)))
    return list(outliers.warnings_of_record(row))


def of_last(**columns):
    """What changes the last of four rounds."""
    return lambda row: row | (columns if row["round"] == 3 else {name: FIRST[name] for name in columns})


FIRST = {"seconds_reference": 1e-3, "throttled": 0, "bytes_swapped": 0, "hertz": 3.4e9, "busy_others": 0.0}


def test_a_good_row_has_none():
    assert told() == []


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"seconds_reference": 1.5e-3}, "drift: fixed work next to it took up to 1.5 times as long"),
        ({"throttled": 2}, "throttled 2 times by heat"),
        ({"bytes_swapped": 4096}, "the machine swapped 4.1 kB meanwhile"),
        ({"hertz": 2.0e9}, "frequency 2 to 3.4 GHz"),
        ({"busy_others": 0.2}, "other programs took up to 20 % of the cores"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_the_machine_did_meanwhile_is_told(columns, words):
    assert told(of_last(**columns)) == [words]


def test_the_answer_says_what_the_machine_did_meanwhile():
    swap = lambda row: row | {"bytes_swapped": 4096 if row["density"] == 0.01 else 0}  # noqa: E731
    advice = answer_text(store.frame(map(swap, maker.sweep(densities=(0.01, 0.1)))))
    swapping = "The machine had swapping during the trials;"
    assert any(said.startswith(swapping) for said in advice.caveats)


def test_rounds_that_spread_are_told_and_few_that_agree_are_not():
    assert any(words.startswith("rounds spread by") for words in told(noise=0.4))
    assert told(rounds=2) == told(rounds=1) == []


def test_disturbed_rounds_are_counted():
    assert "2 rounds next to other programs" in told(lambda row: maker.disturbed(row) if row["round"] > 1 else row)

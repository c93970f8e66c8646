"""The headline number and the verdict table: they say what the contests say, with marks that are no colours."""

import re
from dataclasses import replace

import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import configurations, contests
from workbench.analysis.standings import headline_of, make_standings

LAZY = replace(maker.SPARSE, update="lazy", fixed=1.01e-4)


def group_of(*laws, **known):
    (group,) = configurations.groups(store.frame(maker.sweep(laws, **{"noise": 0.01} | known)))
    return group


def test_each_density_marks_the_winner_and_what_cannot_be_told_from_it():
    group = group_of(maker.DENSE, maker.SPARSE, LAZY)
    found = make_standings(group, "seconds_step")
    assert found.candidates[0] == "dense"
    assert [line.density for line in found.lines] == ["0.1 %", "0.3 %", "1 %", "3 %", "10 %", "30 %"]
    for line, one in zip(found.lines, contests(group.rows, "seconds_step"), strict=True):
        wins = [place.row for place in line.places if place.mark == "wins"]
        assert [row["format"] for row in wins] == ["csr" if one.verdict == "sparse" else "dense"]
        assert line.verdict.startswith(f"{one.verdict}, ")
        assert sum(place.mark == "alike" for place in line.places) == len(one.level)
    assert set(found.marks) >= {"wins"}


def test_what_trained_a_worse_model_says_so_and_wins_nothing():
    found = make_standings(
        group_of(maker.DENSE, maker.SPARSE, replace(LAZY, fixed=5e-5, loss_last=0.4)), "seconds_step"
    )
    assert {line.places[2].mark for line in found.lines} == {"worse"}
    assert "worse" in found.marks


def test_what_is_inconclusive_has_no_winner_and_says_why():
    alike = replace(maker.SPARSE, fixed=8e-3, slope=0.0)
    found = make_standings(group_of(maker.DENSE, alike, rounds=1), "seconds_step")
    assert {place.mark for line in found.lines for place in line.places} == {"inconclusive"}
    assert {line.verdict for line in found.lines} == {"inconclusive: neither is significantly better"}


def test_what_is_likely_has_no_winner_and_says_its_probability():
    nearly = replace(maker.SPARSE, fixed=5.5e-3, slope=0.0)
    found = make_standings(group_of(maker.DENSE, nearly, rounds=1), "seconds_step")
    assert {place.mark for line in found.lines for place in line.places} == {"inconclusive"}
    for line in found.lines:
        assert line.contest.likely == "sparse"
        stated = re.fullmatch(r"probably sparse, (\d\d) %", line.verdict).group(1)
        assert int(stated) == pytest.approx(100 * line.contest.ratio.probability, abs=0.51)


def test_what_ran_beside_other_programs_has_a_bound_and_no_factor():
    rows = map(maker.disturbed, maker.sweep((maker.DENSE, maker.SPARSE), (0.001,)))
    (group,) = configurations.groups(store.frame(rows))
    (line,) = make_standings(group, "seconds_step").lines
    assert re.fullmatch(r"sparse, at least [\d.]+ times faster", line.verdict)
    number = headline_of(group, "seconds_step").number
    assert re.fullmatch(r"Sparse is at least [\d.]+ times faster \(other programs were running\)", number)
    for text in (line.verdict, number):
        assert float(re.search(r"at least ([\d.]+)", text).group(1)) == pytest.approx(line.contest.ratio.low, rel=0.05)


def test_a_candidate_that_did_not_fit_says_what_it_needs():
    rows = [maker.unfit(row) if row["format"] == "dense" else row for row in maker.sweep()]
    (group,) = configurations.groups(store.frame(rows))
    first = make_standings(group, "seconds_step").lines[0]
    assert first.places[0].text == "no memory: needs 82 GB"
    assert first.verdict == "sparse, the other has none"


def test_the_headline_is_the_number_at_the_datas_own_density_where_there_is_one():
    own = lambda row: row | {"density": None} if row["density"] == 0.03 else row  # noqa: E731
    frame = store.frame(map(own, maker.sweep((maker.DENSE, maker.SPARSE), noise=0.01)))
    (group,) = configurations.groups(frame)
    found = headline_of(group, "seconds_step")
    assert re.fullmatch(r"Sparse is 2\.6 \(95 %: 2\.[2-5] to (2\.[7-9]|3)\) times faster", found.number)
    assert found.where.startswith("At 3.01 %, the data's own density. CSR ours")
    assert [row["format"] for row in found.rows] == ["csr", "dense"]
    assert headline_of(group_of(maker.DENSE), "seconds_step").number == "Not known"


def test_a_side_that_was_not_measured_is_called_so_in_the_headline():
    rows = maker.sweep((maker.DENSE, maker.SPARSE), (0.001,), rounds=1)
    for row, seconds in zip(rows, (6e-4, 6e-5), strict=True):
        stopped = {"status": "stopped", "reason": "The budget was out.", "seconds_predicted": seconds}
        row |= dict.fromkeys(key for key in row if key.startswith("seconds_step")) | stopped | {"samples": None}
    (group,) = configurations.groups(store.frame(rows))
    where = headline_of(group, "seconds_step").where
    assert where == (
        "At 0.1 % density. CSR ours (row_sparse gradient, standard update): not measured; dense: not measured."
    )

"""The headline number and the verdict table: they say what the contests say, with marks that are no colours."""

from dataclasses import replace

from tests.support import rows as maker
from workbench import store
from workbench.analysis import breakeven, cells, contests
from workbench.analysis.standings import headline_of, standings

LAZY = replace(maker.SPARSE, update="lazy", fixed=1.01e-4)


def group_of(*laws, **known):
    (group,) = cells.groups(store.frame(maker.sweep(laws, **{"noise": 0.01} | known)))
    return group


def test_each_density_marks_the_winner_and_what_cannot_be_told_from_it():
    group = group_of(maker.DENSE, maker.SPARSE, LAZY)
    found = standings(group, "seconds_step")
    assert found.contenders[0] == "dense"
    assert [line.density for line in found.lines] == ["0.1 %", "0.3 %", "1 %", "3 %", "10 %", "30 %"]
    for line, one in zip(found.lines, contests(group.rows, "seconds_step"), strict=True):
        wins = [place.row for place in line.places if place.mark == "wins"]
        assert [row["format"] for row in wins] == ["csr" if one.verdict == "sparse" else "dense"]
        assert line.verdict.startswith(f"{one.verdict}, ")
        assert sum(place.mark == "alike" for place in line.places) == len(one.level)
    assert set(found.marks) >= {"wins"}


def test_what_trained_a_worse_model_says_so_and_wins_nothing():
    found = standings(group_of(maker.DENSE, maker.SPARSE, replace(LAZY, fixed=5e-5, loss_last=0.4)), "seconds_step")
    assert {line.places[2].mark for line in found.lines} == {"worse"}
    assert "worse" in found.marks


def test_what_is_undecided_has_no_winner_and_says_why():
    found = standings(group_of(maker.DENSE, maker.SPARSE, rounds=2), "seconds_step")
    assert {place.mark for line in found.lines for place in line.places} == {"undecided"}
    assert found.lines[0].verdict == "undecided: fewer than four rounds"


def test_a_contender_that_did_not_fit_says_what_it_needs():
    rows = [maker.unfit(row) if row["format"] == "dense" else row for row in maker.sweep()]
    (group,) = cells.groups(store.frame(rows))
    first = standings(group, "seconds_step").lines[0]
    assert first.places[0].text == "no memory: needs 82 GB"
    assert first.verdict == "sparse, the other has none"


def test_the_headline_is_the_number_at_the_datas_own_density_where_there_is_one():
    own = lambda row: row | {"density": None} if row["density"] == 0.03 else row  # noqa: E731
    frame = store.frame(map(own, maker.sweep((maker.DENSE, maker.SPARSE), noise=0.01)))
    (group,) = cells.groups(frame)
    found = headline_of(group, "seconds_step", breakeven(frame))
    assert found.number == "Sparse is 2.6 times faster"
    assert found.where.startswith("At 3.01 %, the data's own density. CSR ours")
    assert [row["format"] for row in found.rows] == ["csr", "dense"]
    assert headline_of(group_of(maker.DENSE), "seconds_step", []).number == "Not known"

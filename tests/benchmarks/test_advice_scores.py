"""Advice is judged by the times of full sweeps, beside rules that never see the case that they are judged on."""

import pytest

from benchmarks import tables
from benchmarks.analysis import advice

FUSED = {"format": "csr", "engine": "ours", "gradient": "fused", "update": "lazy", "execution": "step", "serial": False}
EXACT = {**FUSED, "update": "exact"}
WHOLE = {**FUSED, "gradient": "dense", "update": "standard"}
DENSE = {**WHOLE, "format": "dense", "engine": "dense"}
ALONE = {**DENSE, "serial": True}
EPOCH = {**FUSED, "gradient": "row_sparse", "execution": "epoch"}
DENSE_EPOCH = {**DENSE, "execution": "epoch"}
HELD_CSR = {**DENSE_EPOCH, "storage": "csr"}


def configuration(settings, seconds, status="ok", is_faithful=True) -> dict:
    return {**settings, "seconds": seconds, "status": status, "is_faithful": is_faithful, "bytes": 1, "key": "k"}


def case(name, density, times, recommended, data=None, bytes_csr=1, share=0.2) -> dict:
    """A case whose configurations fused, whole, dense and dense on one thread take those seconds."""
    configurations = [
        configuration(settings, one) for settings, one in zip((FUSED, WHOLE, DENSE, ALONE), times, strict=True)
    ]
    return tables.ADVICE.new_row(
        key=name, status="ok", case=name, data=data or name, density=density, cells=configurations,
        recommended=recommended,
        bytes_csr=bytes_csr, bytes_dense=2, seconds_sweep=100.0, seconds_advice=100 * share, machine="bench-1",
    )  # fmt: skip


CASES = (
    case("thin", 0.001, (1.0, 2.0, 9.0, 8.0), FUSED),
    case("thinner", 0.0001, (1.0, 3.0, 30.0, 30.0), WHOLE),
    case("thick", 0.4, (9.0, 8.0, 2.0, 1.0), ALONE, bytes_csr=3),
)


def by_rule(rows=CASES) -> dict:
    found = advice.score_rules(tables.ADVICE.frame(rows))
    return {(score.case, score.rule): (score.side, score.whole) for score in found}


def test_the_side_and_the_whole_choice_are_times_of_the_least():
    found = by_rule()
    assert found["thin", "advice"] == (1.0, 1.0)
    assert found["thinner", "advice"] == (1.0, 3.0)
    assert found["thick", "always sparse"] == (8.0, 9.0)
    assert found["thick", "always dense"] == (1.0, 2.0)
    assert found["thick", "the bytes rule"] == (1.0, 2.0)


def test_the_fitted_rule_does_not_know_the_case_that_it_is_judged_on():
    assert by_rule()["thick", "a fitted density"] == (8.0, 9.0)  # the others know no density where dense wins
    more = (*CASES, case("thicker", 0.5, (9.0, 9.0, 2.0, 1.0), ALONE))
    assert by_rule(more)["thick", "a fitted density"] == (1.0, 1.0)
    same = (*CASES, case("thick again", 0.5, (9.0, 9.0, 2.0, 1.0), ALONE, data="thick"))
    assert by_rule(same)["thick", "a fitted density"] == (8.0, 9.0)


def test_what_trains_another_model_is_neither_the_least_nor_what_always_sparse_takes():
    row = case("adam", 0.001, (1.0, 4.0, 9.0, 9.0), EXACT)
    row["cells"][0]["is_faithful"] = False
    row["cells"].append(configuration(EXACT, 2.0))
    found = by_rule([row])
    assert found["adam", "advice"] == found["adam", "always sparse"] == (1.0, 1.0)


def without_dense(name: str) -> dict:
    """A case whose dense configurations did not fit in memory."""
    row = case(name, 0.001, (1.0, 2.0, None, None), FUSED)
    for dense in row["cells"][2:]:
        dense["status"] = "memory"
    return row


def test_a_case_in_which_the_choice_of_a_rule_did_not_run_is_left_out_and_counted():
    assert by_rule([without_dense("wide")])["wide", "always dense"] == (None, None)
    targets = {
        target.what: target for target in advice.list_targets(tables.ADVICE.frame([*CASES, without_dense("wide")]))
    }
    dense = targets["compared with: always dense"]
    assert (
        dense.measured == "side 6.214 x, whole 8.143 x, worst 30.00 x: thinner; 1 case left out, where it did not run"
    )
    alone = advice.list_targets(tables.ADVICE.frame([without_dense("wide")]))
    assert {target.what: target for target in alone}["compared with: always dense"].measured.startswith(
        "not measured; 1 case left"
    )


def test_advice_that_recommends_what_did_not_run_is_not_left_out():
    row = without_dense("wide")
    row["recommended"] = DENSE
    assert by_rule([row])["wide", "advice"] == (2.0, 2.0)


def test_the_rules_of_one_side_take_the_best_ways_of_that_side_that_ran():
    row = case("thick", 0.4, (9.0, 8.0, 2.0, 2.1), DENSE)
    row["cells"] += [configuration(EPOCH, 4.0), configuration(DENSE_EPOCH, 1.0), configuration(HELD_CSR, 0.5)]
    found = by_rule([row])
    assert found["thick", "always sparse"] == (8.0, 8.0)
    assert found["thick", "always dense"] == (1.0, 2.0)
    assert advice.dense_over_sparse_seconds(row) == 0.125


def judged(*ratios: float) -> dict:
    """Goals of a suite of cases whose dense takes so many times as long as sparse, advised on rightly."""
    rows = [
        case(f"case {place}", 0.1, (1.0, 3.0, ratio, 2 * ratio), FUSED if ratio > 1 else DENSE)
        for place, ratio in enumerate(ratios)
    ]
    return {target.what: target for target in advice.list_targets(tables.ADVICE.frame(rows))}


def test_a_suite_whose_cases_have_one_winner_judges_nothing_and_says_so():
    one_sided = judged(*[5.0] * 12)
    assert one_sided["compared with: always sparse"].met is False
    assert one_sided["cases that dense wins, by 1.1 x or more"].met is False
    assert one_sided["cases with the sides within 1.5 x of each other"].met is False
    fair = judged(*[5.0] * 4, *[0.4] * 4, *[0.95, 1.1, 1.2, 1.4])
    assert fair["cases"].met is True
    assert fair["compared with: always sparse"].met is True, "it misses a target"
    assert fair["compared with: always dense"].met is True
    assert fair["cases that dense wins, by 1.1 x or more"].measured == "4"
    assert fair["cases with the sides within 1.5 x of each other"].measured == "4"
    assert [target.met for target in list(fair.values())[:2]] == [True, True]


@pytest.mark.parametrize(("share", "recommended", "met"), [(0.2, FUSED, True), (0.3, FUSED, False)])
def test_targets_are_met_by_good_choices_in_little_time(share, recommended, met):
    targets = advice.list_targets(
        tables.ADVICE.frame([case("thin", 0.001, (1.0, 2.0, 9.0, 8.0), recommended, share=share)])
    )
    assert [target.met for target in targets[:3]] == [True, True, True]
    assert targets[3].met is met
    assert len(targets) == 4 + len(advice.RULES) - 1 + 3


def test_a_bad_choice_misses_the_targets_and_the_worst_case_is_named():
    targets = advice.list_targets(tables.ADVICE.frame([case("thin", 0.001, (1.0, 2.0, 9.0, 8.0), DENSE)]))
    assert [target.met for target in targets[:3]] == [False, False, False]
    assert "thin" in targets[2].measured


def test_nothing_measured_is_said_so():
    assert advice.list_targets(tables.ADVICE.frame([]))[0].measured == "not measured"
